// The communicators of this process, and on whose behalf NCCL gets memory.
//
// NCCL's memory is recorded where it asks the driver for it. Which communicator it is for, only the call around that
// can tell: so each hook of NCCL says it for the length of its real call (Behalf). A communicator that is being made
// has no handle yet and goes by a token, which its CommunicatorInfo then names.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/hooks/nccl_abi.h"

namespace ledger::nccl {

inline std::uint64_t Id(Communicator communicator) { return reinterpret_cast<std::uintptr_t>(communicator); }

// A name for a communicator that has no handle yet. Never repeated; the highest bit is set.
std::uint64_t NewToken();

// While it lives, memory that NCCL gets on this thread is for that communicator. Also notes it for the end of the group
// that is open: NCCL does the work of grouped calls only then.
class Behalf {
 public:
  explicit Behalf(std::uint64_t communicator_or_token);
  ~Behalf();
  Behalf(const Behalf&) = delete;
  Behalf& operator=(const Behalf&) = delete;

 private:
  std::uint64_t previous_;
};

// Groups of this thread, which nest.
void GroupStarted();
// To be called before the real end: the communicator of all grouped calls, or 0 if there was more than one.
std::uint64_t CommunicatorOfGroup();
// True for the end of the outermost group.
bool GroupEnded();
bool InGroup();

// What is known about a communicator when the call that makes it returns.
struct Description {
  std::uint64_t token = 0;
  std::uint64_t id_hash = 0;  // 0: not known
  std::uint64_t parent = 0;
  int ranks = 0;  // 0: not known yet
  int rank = 0;
  std::string_view name;
};

// A communicator was made by a call from `caller`: writes its CommunicatorInfo. NCCL itself is asked for what the call
// did not say, as soon as the communicator is ready (which, in a group or without blocking, it is not at first); a
// second CommunicatorInfo follows then.
void Made(Communicator communicator, const Description& description, const void* caller);

// Asks for what is still missing, of one communicator or of all.
void Complete(Communicator communicator, const void* caller);
void CompleteAll(const void* caller);

// Writes which process group of the framework a communicator works for, once for each communicator. To be called when
// it is used: then the framework may say of which group the collective is, or know a group by NCCL's name for it.
void Describe(Communicator communicator);

// The thread's scope, and in it the framework's collective that it is inside of, if there is one.
std::uint32_t ScopeOfCollective();

// The device that a communicator works on; kNoDevice if it is not known.
std::int8_t DeviceOf(Communicator communicator);

// The hash of the communicator that results from the next split of `parent`: the same on all ranks, as they all split
// their communicators in the same order.
std::uint64_t HashOfSplit(Communicator parent, std::uint64_t how);
std::uint64_t Hash(const void* bytes, std::size_t size, std::uint64_t seed);
int RanksOf(Communicator communicator);

// Forgets a communicator before it is destroyed, as NCCL may give out its handle again. Returns its device.
std::int8_t Forget(Communicator communicator);
void RecordDestroyed(Communicator communicator, std::int8_t device);

}  // namespace ledger::nccl
