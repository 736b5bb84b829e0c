#include "ledger/report/sample_run.h"

#include <cstring>

namespace ledger::report {
namespace {

using format::TestLedger;
using record::Memory;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kTotal = 81559 * kMiB;
constexpr std::uint64_t kToken = (std::uint64_t{1} << 63) | 1;

void Describe(TestLedger& ledger, int rank) {
  ledger.header().rank = ledger.header().local_rank = rank;
  ledger.header().world_size = kSampleRanks;
  ledger.header().pid = 100 + static_cast<std::uint32_t>(rank);
  ledger.header().recorder_peak_rss_bytes = 3 * kMiB;
  ledger.header().open_realtime_ns += static_cast<std::uint64_t>(rank) * 1'000'000;
  std::strncpy(ledger.header().run_id, "sample", sizeof(ledger.header().run_id));
  ledger.Setting("version.torch", "2.15.0");
  ledger.Setting("version.driver", "13.2");
  ledger.Setting("env.PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False");
  ledger.Device(0, kTotal, "NVIDIA H100 80GB HBM3", /*simulated=*/true);
}

}  // namespace

TestLedger SampleRank(int rank) {
  TestLedger ledger;
  Describe(ledger, rank);
  const std::uint32_t setup = ledger.Scope(0, "setup");
  const std::uint32_t step = ledger.Scope(0, "step 0");
  const std::uint32_t forward = ledger.Scope(step, "forward");
  const std::uint32_t backward = ledger.Scope(step, "backward");
  std::uint64_t used = 520 * kMiB;
  ledger.DeviceSample(0, used, kTotal);
  ledger.Alloc(0, 0x10000000, 1024 * kMiB, {.scope = setup, .used = used += 1024 * kMiB});
  ledger.BlockAlloc(0, 0x10000000, 512 * kMiB, setup, 512 * kMiB - 100);
  ledger.HandleCreate(0, 1, 64 * kMiB,
                      {.owner = "libnccl.so.2", .call = "cuMemCreate", .used = used += 64 * kMiB, .context = kToken});
  ledger.Communicator(0, 0xc0ffee, "0", kSampleRanks, kToken);
  ledger.ProcessGroup(0xc0ffee, "0", "default_pg", kSampleRanks, 0, 1);
  ledger.Alloc(0, 0x90000000, 32 * kMiB, {.owner = "libcublas.so.13", .scope = forward, .used = used += 34 * kMiB});
  ledger.Alloc(record::kNoDevice, 0x7000, 256 * kMiB,
               {.owner = "libtorch_cuda.so", .call = "cudaHostAlloc", .memory = Memory::kHost});
  ledger.Mark("step 0");
  ledger.BlockAlloc(0, 0x30000000, (128 + 64 * static_cast<std::uint64_t>(rank)) * kMiB, forward, 0);
  ledger.BlockAlloc(0, 0x40000000, 96 * kMiB, backward, 96 * kMiB);
  ledger.ValueRead(0, "train.py:88 train_step");
  ledger.BlockFree(0, 0x30000000, (128 + 64 * static_cast<std::uint64_t>(rank)) * kMiB, backward);
  if (rank == 1) {
    ledger.AllocFailed(0, 90000 * kMiB, {.scope = backward, .result = 2});
    ledger.BlockOom(0, 90000 * kMiB, kTotal - used, kTotal, backward);
  }
  ledger.BlockFree(0, 0x40000000, 96 * kMiB, backward);
  return ledger;
}

}  // namespace ledger::report
