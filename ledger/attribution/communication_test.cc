#include "ledger/attribution/communication.h"

#include <catch2/catch.hpp>

#include "ledger/attribution/attribution.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {
namespace {

using record::Operation;
using record::PhaseKind;

std::vector<Communication> CommunicationOf(const TestJob& job) {
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  return CommunicationOf(attribution.grounds(), *attribution.lives(0));
}

record::Collective Call(Operation operation, std::uint64_t count, std::uint8_t element_bytes) {
  record::Collective call = {};
  call.operation = operation;
  call.count = count;
  call.element_bytes = element_bytes;
  return call;
}

TEST_CASE("what NCCL calls a count is a part of the tensor in some operations, and all of it in others") {
  for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter, Operation::kAllToAll,
                                    Operation::kGather, Operation::kScatter}) {
    CHECK(PayloadBytes(Call(operation, 100, 2), 8) == 1600);
  }
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduce, Operation::kBroadcast, Operation::kSend, Operation::kReceive}) {
    CHECK(PayloadBytes(Call(operation, 100, 2), 8) == 200);
  }
}

TEST_CASE("a count that cannot be counts as nothing") {
  CHECK(PayloadBytes(Call(Operation::kAllReduce, ~std::uint64_t{0}, 8), 8) == 0);
  CHECK(PayloadBytes(Call(Operation::kAllGather, std::uint64_t{1} << 47, 1), 8) == 0);
}

TEST_CASE("bytes on the wire are those of a ring") {
  CHECK(WireBytes(Operation::kAllGather, 1600, 8, false) == 1400);
  CHECK(WireBytes(Operation::kReduceScatter, 1600, 8, false) == 1400);
  CHECK(WireBytes(Operation::kAllToAll, 1600, 8, false) == 1400);
  CHECK(WireBytes(Operation::kAllReduce, 1600, 8, false) == 2800);
  CHECK(WireBytes(Operation::kBroadcast, 1600, 8, false) == 1600);
  CHECK(WireBytes(Operation::kReduce, 1600, 8, false) == 1600);
  CHECK(WireBytes(Operation::kGather, 1600, 8, true) == 1400);
  CHECK(WireBytes(Operation::kGather, 1600, 8, false) == 200);
  CHECK(WireBytes(Operation::kSend, 1600, 8, false) == 1600);
  CHECK(WireBytes(Operation::kSend, 1600, 8, true) == 0);  // to itself, as one of many sends that exchange parts
}

TEST_CASE("nothing crosses the wire on a communicator of one rank, or one that is not known") {
  CHECK(WireBytes(Operation::kAllReduce, 1600, 1, false) == 0);
  CHECK(WireBytes(Operation::kAllGather, 1600, 0, false) == 0);
}

TEST_CASE("calls are summed by step, operation and communicator; what lies between steps belongs to the one before") {
  TestJob job(/*agent=*/true);
  job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 4);
  const auto shard = job.Allocate(1024), whole = job.Allocate(4096);
  job.Collect(Operation::kBroadcast, shard, shard, 1024);
  for (std::uint64_t step = 0; step < 2; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Collect(Operation::kAllGather, shard, whole, 1024);
    job.Collect(Operation::kAllGather, shard, whole, 1024);
    job.Enter(PhaseKind::kBetween, step);
    job.Collect(Operation::kAllReduce, whole, whole, 4096);
  }
  const auto all = CommunicationOf(job);
  REQUIRE(all.size() == 5);
  CHECK(all[0].in_setup);
  CHECK(all[0].operation == Operation::kBroadcast);
  CHECK(all[1].step == 0);
  CHECK(all[1].operation == Operation::kAllGather);
  CHECK(all[1].communicator == "communicator 0 \"default_pg\", 4 ranks");
  CHECK(all[1].ranks == 4);
  CHECK(all[1].calls == 2);
  CHECK(all[1].payload_bytes == 2 * 4096);
  CHECK(all[1].buffer_bytes == 1024 + 4096);  // each block once
  CHECK(all[1].wire_bytes == 2 * 3072);
  CHECK(all[2].step == 0);
  CHECK(all[2].wire_bytes == 2 * 3072);
  CHECK(all[2].buffer_bytes == 4096);
  CHECK(all[4].step == 1);
}

TEST_CASE("a row names the process group and its ranks, and what the framework calls the collectives") {
  TestJob job(/*agent=*/true);
  job.ledger.Communicator(0, TestJob::kCommunicator, "5", 4);
  job.ledger.ProcessGroup(TestJob::kCommunicator, "5", "mesh_shard", 4, 1, 2);
  const auto block = job.Allocate(1024);
  const std::uint32_t forward = job.Scope(0, "layers.0", record::kScopeModule, record::Layer::kAgent);
  const std::uint32_t gather = job.Scope(forward, "all_gather", record::kScopeCollective, record::Layer::kOp);
  const std::uint32_t elsewhere = job.Scope(0, "all_gather", record::kScopeCollective, record::Layer::kOp);
  const std::uint32_t broadcast = job.Scope(0, "broadcast", record::kScopeCollective, record::Layer::kOp);
  job.Enter(PhaseKind::kForward, 0);
  for (const std::uint32_t scope : {gather, elsewhere, broadcast, forward}) {
    job.Collect(Operation::kBroadcast, block, block, 1024);
    job.ledger.At<record::Collective>(job.ledger.slots() - 1).scope = scope;
  }
  const auto all = CommunicationOf(job);
  REQUIRE(all.size() == 1);
  CHECK(all[0].communicator == "communicator 0 \"mesh_shard\", 4 ranks");
  CHECK(all[0].ranks_of_job == "1-7 by 2");
  CHECK(all[0].calls == 4);
  CHECK(all[0].calls_of == std::map<std::string, std::uint64_t>{{"all_gather", 2}, {"broadcast", 1}});
}

TEST_CASE("a block that was freed in between is another one at the same address") {
  TestJob job(/*agent=*/true);
  job.Enter(PhaseKind::kForward, 0);
  for (int i = 0; i < 2; ++i) {
    job.ledger.BlockAlloc(0, TestJob::kSegment, 512);
    job.Collect(Operation::kAllReduce, TestJob::kSegment, TestJob::kSegment, 512);
    job.ledger.BlockFree(0, TestJob::kSegment, 512);
  }
  const auto all = CommunicationOf(job);
  REQUIRE(all.size() == 1);
  CHECK(all[0].buffer_bytes == 1024);
  CHECK(all[0].ranks == 0);
}

TEST_CASE("buffers of which no block is known count as calls all the same") {
  TestJob job(/*agent=*/true);
  job.Allocate(512);
  job.Enter(PhaseKind::kForward, 0);
  job.Collect(Operation::kAllReduce, 0x1234, 0x1234, 7);
  const auto all = CommunicationOf(job);
  REQUIRE(all.size() == 1);
  CHECK(all[0].calls == 1);
  CHECK(all[0].payload_bytes == 7);
  CHECK(all[0].buffer_bytes == 0);
}

}  // namespace
}  // namespace ledger::attribution
