// How fast ledgers are read and replayed: events a second on one core, of a synthetic training job.
//
//   replay_bench [EVENTS] [DIRECTORY]      DIRECTORY: also write eight such ranks there, for `gpuledger report`
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "ledger/attribution/attribution.h"
#include "ledger/format/test_ledger.h"
#include "ledger/replay/analysis.h"

namespace {

using ledger::format::LedgerFile;
using ledger::format::TestLedger;
namespace record = ledger::record;

constexpr int kRanks = 8;
constexpr int kRepeats = 5;
// A step of a decoder with 32 layers: 1,500 block events, and parameters and optimizer state alive all the time.
constexpr std::uint64_t kPersistent = 3000;
constexpr std::uint64_t kActivations = 700;
constexpr std::uint64_t kBlockBytes = 2 << 20;

void Persist(TestLedger& ledger) {
  ledger.DeviceSample(0, 500 << 20, 80ull << 30);
  for (std::uint64_t i = 0; i < kPersistent; ++i) {
    ledger.Alloc(0, (i + 1) << 32, 20 << 20);
    ledger.BlockAlloc(0, (i + 1) << 32, kBlockBytes);
    record::Name name = {};
    name.address = (i + 1) << 32;
    name.text = ledger.Text("layers.weight");
    name.category = i % 3 == 0 ? record::NameCategory::kParameter : record::NameCategory::kOptimizerState;
    ledger.Add(record::Kind::kName, 0, name);
  }
}

void Enter(TestLedger& ledger, record::PhaseKind kind, std::uint64_t step) {
  record::Phase phase = {};
  phase.phase = kind;
  phase.step = step;
  ledger.Add(record::Kind::kPhase, 0, phase);
}

// Forward allocates, every other block is saved; backward frees in the opposite order, with a temporary for each.
void Step(TestLedger& ledger, std::uint32_t scope, std::uint32_t node, std::uint64_t step) {
  constexpr std::uint64_t kBase = std::uint64_t{1} << 45;
  Enter(ledger, record::PhaseKind::kForward, step);
  for (std::uint64_t i = 0; i < kActivations; ++i) {
    ledger.BlockAlloc(0, kBase + i * kBlockBytes, kBlockBytes, scope);
    if (i % 2 != 0) continue;
    record::SavedTensor saved = {};
    saved.address = kBase + i * kBlockBytes;
    saved.scope = scope;
    ledger.Add(record::Kind::kSavedTensor, 0, saved);
  }
  Enter(ledger, record::PhaseKind::kBackward, step);
  for (std::uint64_t i = kActivations; i-- > 0;) {
    ledger.BlockAlloc(0, kBase + (kActivations + i) * kBlockBytes, kBlockBytes, node);
    ledger.BlockFree(0, kBase + i * kBlockBytes, kBlockBytes, node);
    ledger.BlockFree(0, kBase + (kActivations + i) * kBlockBytes, kBlockBytes, node);
  }
}

// Without the op adapter, nothing tells backward nodes, and more has to be inferred.
TestLedger MakeLedger(int rank, std::uint64_t events, bool op_adapter = true) {
  TestLedger ledger;
  ledger.header().rank = rank;
  ledger.header().pid = static_cast<std::uint32_t>(1000 + rank);
  const std::uint32_t scope = ledger.Scope(0, "layers.0");
  const std::uint32_t node = ledger.Scope(0, "MmBackward0");
  if (op_adapter) {
    auto& definition = ledger.At<record::ScopeDefinition>(ledger.slots() - 1);
    definition.source = record::Layer::kOp;
    definition.flags = record::kScopeBackward;
    definition.origin = scope;
  }
  Persist(ledger);
  for (std::uint64_t step = 0; ledger.slots() < events; ++step) Step(ledger, scope, node, step);
  return ledger;
}

// Of the processor, not of the wall: the machine may have other work.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double BestSeconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const double start = CpuSeconds();
    work();
    best = std::min(best, CpuSeconds() - start);
  }
  return best;
}

void Print(const char* what, std::uint64_t events, double seconds) {
  std::printf("%-28s %7.1f M events/s  (%.0f ms)\n", what, static_cast<double>(events) / seconds / 1e6, seconds * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t events = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (events == 0) {
    std::fprintf(stderr, "usage: replay_bench [EVENTS] [DIRECTORY]\n");
    return 2;
  }
  const std::string path = std::string(argc > 2 ? argv[2] : "/tmp") + "/rank0.pid1000.ledger";
  if (!MakeLedger(0, events).WriteTo(path)) {
    std::fprintf(stderr, "replay_bench: cannot write %s\n", path.c_str());
    return 1;
  }
  const auto file = LedgerFile::Open(path);
  if (!file.ok()) {
    std::fprintf(stderr, "replay_bench: %s\n", std::string(file.status().message()).c_str());
    return 1;
  }
  const std::uint64_t slots = file->slots().size();
  Print("open (definitions, counts)", slots, BestSeconds([&] { (void)LedgerFile::Open(path); }));
  Print("replay, every total checked", slots, BestSeconds([&] {
          ledger::replay::Replayer replayer(*file);
          replayer.Finish();
        }));
  Print("analysis, with live sets", slots, BestSeconds([&] { ledger::replay::Analysis analysis(*file, {}); }));
  const ledger::replay::Analysis analysis(*file, {});
  Print("attribution, with categories", slots,
        BestSeconds([&] { ledger::attribution::Attribution attribution(*file, analysis.devices()); }));
  const auto alone = MakeLedger(0, events, /*op_adapter=*/false).Read();
  if (alone.ok()) {
    Print("the same, without the adapter", slots,
          BestSeconds([&] { ledger::attribution::Attribution attribution(*alone, analysis.devices()); }));
  }
  if (argc > 2) {
    for (int rank = 1; rank < kRanks; ++rank) {
      const std::string name = "/rank" + std::to_string(rank) + ".pid" + std::to_string(1000 + rank) + ".ledger";
      if (!MakeLedger(rank, events).WriteTo(argv[2] + name)) return 1;
    }
  } else {
    std::remove(path.c_str());
  }
  return 0;
}
