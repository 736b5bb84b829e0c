// What a process communicated, step by step: its calls, the bytes of their tensors, of the blocks that those lie in,
// and of what has to cross the wire. docs/communication.md has the definitions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"

namespace ledger::attribution {

// All calls of one operation on one communicator in one step.
struct Communication {
  bool in_setup = false;   // before the first step; `step` is 0 then
  std::uint64_t step = 0;  // what lies between steps belongs to the one before
  record::Operation operation = record::Operation::kUnknown;
  std::string communicator;
  std::string ranks_of_job;  // of its process group: "0-7"; "" where the framework did not say it
  std::uint32_t ranks = 0;   // of the communicator; 0: not known
  std::uint64_t calls = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint64_t wire_bytes = 0;
  // Calls by the framework's name for the collective that they were made for; of none where it did not say it.
  std::map<std::string, std::uint64_t> calls_of;
};

// Bytes of the whole tensor that a call on `ranks` ranks is about. Of several things that NCCL calls a count, each
// operation has its own: what a rank sends in an all-gather, what it receives in a reduce-scatter, what goes to each
// peer in an all-to-all, and all of it in the rest.
std::uint64_t PayloadBytes(const record::Collective& call, std::uint32_t ranks);

// Bytes that leave or reach a rank, whichever is more, when the operation runs as a ring. `at_peer`: this rank is the
// root, or sends to itself or receives from itself.
std::uint64_t WireBytes(record::Operation operation, std::uint64_t payload, std::uint32_t ranks, bool at_peer);

// By step, then in the order of first use.
std::vector<Communication> CommunicationOf(const Grounds& grounds, const DeviceLives& lives);

}  // namespace ledger::attribution
