// What memory calls leave in the ledger, on the simulated platform; and that nothing changes for the program.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/programs/run_program.h"

namespace ledger::testing {
namespace {

using record::Allocation;
using record::Kind;
using record::Layer;
using record::Memory;

constexpr std::uint64_t kMiB = 1024 * 1024;
const std::string kProgram = std::string(PROGRAM_DIR) + "/memory_program";
const std::map<std::string, std::string> kSimulated = {
    {"LD_LIBRARY_PATH", SIMGPU_DIR}, {"SIMGPU_PROFILE", "tiny"}, {"SIMGPU_DEVICES", "1"}, {"CUDA_VISIBLE_DEVICES", ""}};

std::map<std::string, std::string> Preloaded(std::map<std::string, std::string> more = {}) {
  more.insert(kSimulated.begin(), kSimulated.end());
  more["LD_PRELOAD"] = LEDGER_LIBRARY;
  return more;
}

// Runs `memory_program way ...` with and without the preload, compares, and returns the run with it.
Outcome RunWay(const std::vector<std::string>& way, const std::map<std::string, std::string>& more = {}) {
  std::vector<std::string> command = {kProgram};
  command.insert(command.end(), way.begin(), way.end());
  const Outcome without = Run(command, kSimulated);
  Outcome with = Run(command, Preloaded(more));
  CHECK(with.status == without.status);
  CHECK(with.output == without.output);
  return with;
}

Ledger OnlyLedger(const Outcome& outcome) {
  INFO(outcome.output << outcome.errors);
  REQUIRE(outcome.ledgers.size() == 1);
  return outcome.ledgers[0];
}

void NoLosses(const Ledger& ledger) {
  for (std::size_t reason = 0; reason < static_cast<std::size_t>(record::Loss::kCount); ++reason) {
    INFO("loss " << reason);
    CHECK(ledger.header().losses[reason] == 0);
  }
}

// Addresses that are live at the end; anything that is live twice, or freed and not live, fails.
std::size_t LeftAfter(const Ledger& ledger) {
  std::set<std::uint64_t> live;
  std::uint64_t wrong = 0;
  for (const auto& event : ledger.InOrder<Allocation>({Kind::kAlloc, Kind::kFree})) {
    const bool alloc = event.commit.kind == static_cast<std::uint16_t>(Kind::kAlloc);
    if (alloc ? !live.insert(event.address).second : live.erase(event.address) != 1) ++wrong;
  }
  CHECK(wrong == 0);
  return live.size();
}

TEST_CASE("an allocation of the runtime is one record, and so is one of the driver") {
  const Outcome outcome = RunWay({"linear"});
  CHECK(outcome.status == 0);
  const Ledger ledger = OnlyLedger(outcome);
  const auto got = ledger.All<Allocation>(Kind::kAlloc);
  REQUIRE(got.size() == 2);
  CHECK(got[0].size == 3 * kMiB);
  CHECK(got[0].commit.layer == Layer::kRuntime);
  CHECK(got[0].commit.device == 0);
  CHECK(got[0].memory == Memory::kLinear);
  CHECK(ledger.Text(got[0].call) == "cudaMalloc");
  CHECK(ledger.Text(got[0].owner) == "memory_program");
  CHECK(got[1].size == 5 * kMiB);
  CHECK(got[1].commit.layer == Layer::kDriver);
  CHECK(ledger.Text(got[1].call) == "cuMemAlloc_v2");
  // What the driver says is in use grows by what was got, in units of its own.
  CHECK(got[1].device_used >= got[0].device_used + 5 * kMiB);
  const auto freed = ledger.All<Allocation>(Kind::kFree);
  REQUIRE(freed.size() == 2);
  CHECK(freed[0].address == got[1].address);
  CHECK(freed[1].address == got[0].address);
  NoLosses(ledger);
}

TEST_CASE("the head of a ledger says who and what") {
  const Ledger ledger =
      OnlyLedger(Run({kProgram, "linear"}, Preloaded({{"RANK", "3"},
                                                      {"LOCAL_RANK", "1"},
                                                      {"WORLD_SIZE", "16"},
                                                      {"TORCHELASTIC_RUN_ID", "run-7"},
                                                      {"PYTORCH_CUDA_ALLOC_CONF", "backend:native"}})));
  CHECK(ledger.header().rank == 3);
  CHECK(ledger.header().local_rank == 1);
  CHECK(ledger.header().world_size == 16);
  CHECK((ledger.header().flags & record::kRankKnown) != 0);
  CHECK(std::string(ledger.header().run_id) == "run-7");
  CHECK(std::string(ledger.header().program) == kProgram + " linear");
  CHECK(ledger.header().clean_end == 1);
  CHECK(ledger.header().load_ticks <= ledger.header().open_ticks);
  CHECK(ledger.header().open_ticks < ledger.header().end_ticks);
  CHECK(ledger.header().recorder_peak_rss_bytes > 0);
  std::map<std::string, std::string> settings;
  for (const auto& setting : ledger.All<record::Setting>(Kind::kSetting)) {
    settings[ledger.Text(setting.key)] = ledger.Text(setting.value);
  }
  CHECK(settings["env.PYTORCH_CUDA_ALLOC_CONF"] == "backend:native");
  CHECK(settings["command"] == kProgram + " linear");
  CHECK(settings.count("version.driver") == 1);
  CHECK(settings.count("version.runtime") == 1);
  const auto devices = ledger.All<record::DeviceInfo>(Kind::kDevice);
  REQUIRE(devices.size() == 1);
  CHECK((devices[0].flags & record::kDeviceSimulated) != 0);
  CHECK(devices[0].total_bytes > 0);
  CHECK(!ledger.Text(devices[0].name).empty());
  // The first sample is the context's.
  const auto samples = ledger.All<record::DeviceSample>(Kind::kDeviceSample);
  REQUIRE(!samples.empty());
  CHECK(ledger.Text(samples[0].why) == "cuDevicePrimaryCtxRetain");
  CHECK(samples[0].total_bytes - samples[0].free_bytes > 0);
  CHECK(ledger.All<record::ClockAnchor>(Kind::kClock).size() >= 2);
}

TEST_CASE("every kind of memory has its own record") {
  const Outcome outcome = RunWay({"kinds"});
  const Ledger ledger = OnlyLedger(outcome);
  std::map<Memory, std::uint64_t> sizes;
  for (const auto& got : ledger.All<Allocation>(Kind::kAlloc)) {
    sizes[got.memory] = got.size;
    const bool host = got.memory == Memory::kHost || got.memory == Memory::kHostRegistered;
    CHECK(got.commit.device == (host ? record::kNoDevice : 0));
  }
  CHECK(sizes[Memory::kPitched] >= 100 * 10 * 4);
  CHECK(sizes[Memory::kPitched] % 40 == 0);
  CHECK(sizes[Memory::kManaged] == kMiB);
  CHECK(sizes[Memory::kHost] == 2 * kMiB);
  CHECK(sizes[Memory::kHostRegistered] == 64 * 1024);
  if (outcome.output.find("array: 0,") != std::string::npos) CHECK(sizes[Memory::kArray] == 64 * 32 * 4);
  CHECK(LeftAfter(ledger) == 0);
}

TEST_CASE("a mipmapped array is the sum of its levels, at both layers") {
  const Ledger ledger = OnlyLedger(RunWay({"mipmapped"}));
  const auto got = ledger.All<Allocation>(Kind::kAlloc);
  REQUIRE(got.size() == 2);
  CHECK(got[0].commit.layer == Layer::kRuntime);
  CHECK(got[0].size == (64 * 32 + 32 * 16 + 16 * 8) * 4);
  CHECK(got[1].commit.layer == Layer::kDriver);
  CHECK(got[1].size == (16 * 8 * 4 + 8 * 4 * 2) * 2 * 2);
  for (const auto& array : got) CHECK(array.memory == Memory::kArray);
  CHECK(LeftAfter(ledger) == 0);
  NoLosses(ledger);
}

TEST_CASE("memory of another process is that process's, and is closed again") {
  const Outcome outcome = RunWay({"shared"});
  INFO(outcome.output << outcome.errors);
  CHECK(outcome.output.find("open: 0") != std::string::npos);
  CHECK(outcome.output.find("open below: 0") != std::string::npos);
  REQUIRE(outcome.ledgers.size() == 2);
  std::map<Memory, std::vector<Layer>> seen;
  for (const Ledger& ledger : outcome.ledgers) {
    for (const auto& got : ledger.All<Allocation>(Kind::kAlloc)) {
      CHECK(got.size == 4 * kMiB);
      seen[got.memory].push_back(got.commit.layer);
    }
    CHECK(LeftAfter(ledger) == 0);
    NoLosses(ledger);
  }
  CHECK(seen[Memory::kLinear] == std::vector<Layer>{Layer::kRuntime});
  CHECK(seen[Memory::kPeer] == std::vector<Layer>{Layer::kRuntime, Layer::kDriver});
}

TEST_CASE("frees of what is not there go through unchanged, and refusals stand in the ledger") {
  const Ledger ledger = OnlyLedger(RunWay({"frees"}));
  std::map<std::uint64_t, int> refused;
  int done = 0;
  for (const auto& freed : ledger.All<Allocation>(Kind::kFree)) {
    if (freed.result != 0) {
      ++refused[freed.address];
    } else {
      ++done;
    }
  }
  CHECK(done == 6);            // each call was noted before it was made
  CHECK(refused.size() == 3);  // the same address is refused twice on the stack
  const auto failed = ledger.All<Allocation>(Kind::kAllocFailed);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].result == 2);  // cudaErrorMemoryAllocation
  CHECK(failed[0].size == std::uint64_t{1} << 60);
  NoLosses(ledger);
}

// What `gpuledger report --json` says about the run's folder, after the program has ended in it.
Outcome ReportAfter(const std::string& way) {
  const std::string script = "'" + kProgram + "' " + way +
                             " > /dev/null && LD_PRELOAD= LD_LIBRARY_PATH= '" GPULEDGER
                             "' report \"$LEDGER_DIR\" --json";
  return Run({"sh", "-c", script}, Preloaded({{"RANK", "0"}, {"LOCAL_RANK", "0"}}));
}

// Is a number of a JSON report below zero? One may be: -1 says that there is no such record.
bool HasNegativeNumber(const std::string& json) {
  static const std::string kNoRecord = "\"first_record\": -1";
  for (std::size_t at = json.find(": -"); at != std::string::npos; at = json.find(": -", at + 1)) {
    const std::size_t key = kNoRecord.find(": -");
    if (at < key || json.compare(at - key, kNoRecord.size(), kNoRecord) != 0) return true;
  }
  return false;
}

TEST_CASE("frees of memory that was never seen are a counted loss, and no account falls below zero") {
  const Outcome unseen = ReportAfter("unseen");
  INFO(unseen.output << unseen.errors);
  CHECK(unseen.status == 0);
  CHECK(unseen.output.find("\"unknown_free\"") != std::string::npos);
  CHECK(unseen.output.find("\"paused\"") != std::string::npos);
  CHECK_FALSE(HasNegativeNumber(unseen.output));
  CHECK(unseen.output.find("\"holds\": false") == std::string::npos);
  // Refused frees of what is not there took nothing from anybody.
  const Outcome frees = ReportAfter("frees");
  INFO(frees.output << frees.errors);
  CHECK(frees.status == 0);
  CHECK_FALSE(HasNegativeNumber(frees.output));
  CHECK(frees.output.find("\"holds\": false") == std::string::npos);
}

TEST_CASE("physical memory is charged to where it lies") {
  const Outcome outcome = RunWay({"locations"});
  const Ledger ledger = OnlyLedger(outcome);
  std::map<Memory, int> created;
  for (const auto& handle : ledger.All<Allocation>(Kind::kHandleCreate)) {
    ++created[handle.memory];
    CHECK(handle.size == 2 * kMiB);
    CHECK(handle.commit.device == (handle.memory == Memory::kPhysical ? 0 : record::kNoDevice));
  }
  CHECK(created[Memory::kPhysical] == 1);
  const bool host = outcome.output.find("\nhost: 0,") != std::string::npos;
  const bool numa = outcome.output.find("host NUMA: 0,") != std::string::npos;
  CHECK(created[Memory::kPhysicalHost] == host + numa);
}

TEST_CASE("virtual memory: handles and mappings in their order") {
  const Ledger ledger = OnlyLedger(RunWay({"virtual"}));
  const std::set<Kind> kOfInterest = {Kind::kReserve,       Kind::kHandleCreate, Kind::kMap,      Kind::kHandleRetain,
                                      Kind::kHandleRelease, Kind::kUnmap,        Kind::kUnreserve};
  std::vector<Kind> seen;
  for (const Kind kind : ledger.Kinds()) {
    if (kOfInterest.count(kind) != 0) seen.push_back(kind);
  }
  const std::vector<Kind> expected = {Kind::kReserve,       Kind::kHandleCreate,  Kind::kMap,   Kind::kHandleRetain,
                                      Kind::kHandleRelease, Kind::kHandleRelease, Kind::kUnmap, Kind::kUnreserve};
  CHECK(seen == expected);
  const auto mapped = ledger.All<record::Mapping>(Kind::kMap);
  REQUIRE(mapped.size() == 1);
  CHECK(mapped[0].handle == ledger.All<Allocation>(Kind::kHandleCreate)[0].address);
  CHECK(mapped[0].size == 4 * kMiB);
}

TEST_CASE("stream-ordered memory comes from a pool, and is none while a graph is captured") {
  const Outcome outcome = RunWay({"async"});
  CHECK(outcome.output.find("malloc in a capture: 0") != std::string::npos);
  const Ledger ledger = OnlyLedger(outcome);
  const auto got = ledger.All<Allocation>(Kind::kAlloc);
  REQUIRE(got.size() == 1);
  CHECK(got[0].memory == Memory::kAsync);
  CHECK(ledger.All<Allocation>(Kind::kFree).size() == 1);
  const auto samples = ledger.All<record::PoolSample>(Kind::kPoolSample);
  REQUIRE(samples.size() == 3);  // after the allocation, the free, and the trim
  CHECK(samples[0].used_bytes >= kMiB);
  CHECK(samples[0].reserved_bytes >= samples[0].used_bytes);
  CHECK(samples[2].used_bytes == 0);
  // The pool's growth is the device's, and stands behind the call that caused it.
  std::vector<std::string> grown_by;
  for (const auto& sample : ledger.All<record::DeviceSample>(Kind::kDeviceSample))
    grown_by.push_back(ledger.Text(sample.why));
  CHECK(std::find(grown_by.begin(), grown_by.end(), "cudaMallocAsync") != grown_by.end());
}

TEST_CASE("functions that were looked up are recorded like those that are linked") {
  const Ledger ledger = OnlyLedger(RunWay({"lookups"}));
  const auto got = ledger.All<Allocation>(Kind::kAlloc);
  REQUIRE(got.size() == 1);
  CHECK(got[0].size == 7 * kMiB);
  CHECK(got[0].commit.layer == Layer::kDriver);
  CHECK(ledger.Text(got[0].owner) == "memory_program");
  CHECK(LeftAfter(ledger) == 0);
  NoLosses(ledger);
}

TEST_CASE("a reset ends everything on the device") {
  const Ledger ledger = OnlyLedger(RunWay({"reset"}));
  CHECK(ledger.All<record::DeviceSample>(Kind::kDeviceReset).size() == 1);
}

TEST_CASE("errno and the runtime's error state stay as they were") { OnlyLedger(RunWay({"errors"})); }

TEST_CASE("200,000 pairs from eight threads: nothing is live twice, nothing is left, nothing is lost") {
  const Ledger ledger = OnlyLedger(Run({kProgram, "pairs"}, Preloaded({{"LEDGER_MEMINFO", "0"}})));
  const auto got = ledger.All<Allocation>(Kind::kAlloc);
  CHECK(got.size() == 200'000);
  // The driver was not asked, as LEDGER_MEMINFO=0 says.
  CHECK(std::all_of(got.begin(), got.end(), [](const Allocation& one) { return one.device_used == 0; }));
  CHECK(ledger.All<Allocation>(Kind::kFree).size() == 200'000);
  CHECK(LeftAfter(ledger) == 0);
  NoLosses(ledger);
}

TEST_CASE("children: none writes into the parent's ledger, and one whose cuInit fails has none") {
  const Outcome outcome = RunWay({"children"});
  CHECK(outcome.status == 0);
  std::map<std::uint64_t, const Ledger*> by_size;  // of the only allocation
  for (const Ledger& ledger : outcome.ledgers) {
    const auto got = ledger.All<Allocation>(Kind::kAlloc);
    REQUIRE(got.size() == 1);
    CHECK(got[0].commit.thread == ledger.header().pid);  // each of these programs has one thread
    CHECK(by_size.emplace(got[0].size, &ledger).second);
  }
  REQUIRE(by_size.count(kMiB) == 1);
  CHECK(by_size[kMiB]->header().clean_end == 1);
  CHECK(by_size[kMiB]->All<Allocation>(Kind::kFree).size() == 1);
  CHECK(by_size.count(2 * kMiB) == 0);
  // The platform does not notice a clone without fork handlers; if it serves one, that has a ledger of its own.
  CHECK(outcome.ledgers.size() == 1 + by_size.count(4 * kMiB));
}

TEST_CASE("a child that is forked before CUDA is used has a ledger of its own") {
  const Outcome outcome = RunWay({"fork first"});
  CHECK(outcome.output == "parent 0, child 0\n");
  REQUIRE(outcome.ledgers.size() == 2);
  std::map<std::uint64_t, std::uint32_t> process_of;  // size of its only allocation → process
  for (const Ledger& ledger : outcome.ledgers) {
    const auto got = ledger.All<Allocation>(Kind::kAlloc);
    REQUIRE(got.size() == 1);
    CHECK(got[0].commit.thread == ledger.header().pid);
    CHECK(ledger.header().clean_end == 1);
    process_of[got[0].size] = ledger.header().pid;
  }
  REQUIRE(process_of.size() == 2);
  CHECK(process_of[kMiB] != process_of[2 * kMiB]);
}

TEST_CASE("stdbuf adds itself to the preloads, and both work") {
  const Outcome plain = Run({kProgram, "linear"}, Preloaded());
  const Outcome outcome = Run({"stdbuf", "-o0", kProgram, "linear"}, Preloaded());
  CHECK(outcome.status == 0);
  CHECK(outcome.output == plain.output);
  CHECK(outcome.errors.empty());
  CHECK(OnlyLedger(outcome).All<Allocation>(Kind::kAlloc).size() == 2);
}

TEST_CASE("however a process ends, its status stays and its ledger can be read") {
  const struct {
    const char* how;
    int status;
    bool clean;
  } kEnds[] = {{"return", 5, true},
               {"_exit", 3, false},
               {"quick_exit", 4, false},
               {"abort", 128 + SIGABRT, false},
               {"kill", 128 + SIGKILL, false}};
  for (const auto& end : kEnds) {
    INFO(end.how);
    const Outcome outcome = Run({kProgram, "end", end.how}, Preloaded());
    CHECK(outcome.status == end.status);
    const Ledger ledger = OnlyLedger(outcome);
    CHECK(ledger.header().clean_end == (end.clean ? 1 : 0));
    CHECK(ledger.All<Allocation>(Kind::kAlloc).size() >= 1);
  }
}

TEST_CASE("switched off, or with nowhere to write, the program runs as without us") {
  Outcome off = RunWay({"linear"}, {{"LEDGER_OFF", "1"}});
  CHECK(off.ledgers.empty());
  CHECK(off.errors.find("libledger") == std::string::npos);

  const Outcome nowhere = RunWay({"linear"}, {{"LEDGER_DIR", "/proc/none/here"}});
  CHECK(nowhere.ledgers.empty());
  const std::string message = "libledger: cannot write /proc/none/here: ";
  CHECK(nowhere.errors.find(message) == nowhere.errors.rfind(message));
  CHECK(nowhere.errors.find(message) != std::string::npos);
}

TEST_CASE("a program that finds no device leaves no file") {
  auto environment = Preloaded();
  environment["CUDA_VISIBLE_DEVICES"] = "-1";
  const Outcome outcome = Run({kProgram, "linear"}, environment);
  INFO(outcome.output);
  CHECK(outcome.output.find("cudaMalloc: 0") == std::string::npos);
  CHECK(outcome.ledgers.empty());
}

// Runs `memory_program pairs` with its ledger on a file system of its own that has so much room, and brings the ledger
// back from there. The status is 77 where such a file system can't be made.
Outcome OnSmallDisk(const std::string& size) {
  const std::string script =
      "kept=$LEDGER_DIR; disk=$(mktemp -d); mount -t tmpfs -o size=" + size + " ledger-test \"$disk\" || exit 77; " +
      "LEDGER_DIR=$disk/run LD_PRELOAD='" LEDGER_LIBRARY "' '" + kProgram + "' pairs; status=$?; " +
      "mkdir -p \"$kept\"; cp \"$disk\"/run/*.ledger \"$kept\" 2> /dev/null; umount \"$disk\"; rmdir \"$disk\"; exit "
      "$status";
  return Run({"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script}, kSimulated);
}

TEST_CASE("a file system that is full costs records, and the program nothing") {
  if (Run({"unshare", "--user", "--map-root-user", "--mount", "true"}, {}).status != 0) {
    WARN("SKIP: this user may not make a name space for a small file system");
    return;
  }
  const Outcome outcome = OnSmallDisk("4m");
  if (outcome.status == 77) {
    WARN("SKIP: no file system of its own: " << outcome.errors);
    return;
  }
  INFO(outcome.output << outcome.errors);
  CHECK(outcome.status == 0);
  const std::string message = "libledger: ";
  CHECK(outcome.errors.find(message) != std::string::npos);
  CHECK(outcome.errors.find(message) == outcome.errors.rfind(message));
  const Ledger ledger = OnlyLedger(outcome);
  CHECK(ledger.losses(record::Loss::kDiskFull) >= 1);
  CHECK(ledger.header().clean_end == 0);
  CHECK(ledger.All<Allocation>(Kind::kAlloc).size() > 10'000);

  const Outcome none = OnSmallDisk("64k");  // less than a ledger begins with
  INFO(none.output << none.errors);
  CHECK(none.status == 0);
  CHECK(none.ledgers.empty());
  CHECK(none.errors.find("libledger: cannot write") != std::string::npos);
}

TEST_CASE("a ledger that reaches LEDGER_MAX_BYTES stops, and says so once") {
  const Outcome outcome = Run({kProgram, "pairs"}, Preloaded({{"LEDGER_MAX_BYTES", "1M"}}));
  CHECK(outcome.status == 0);
  const std::string message = "libledger: the ledger has reached LEDGER_MAX_BYTES";
  CHECK(outcome.errors.find(message) != std::string::npos);
  CHECK(outcome.errors.find(message) == outcome.errors.rfind(message));
  const Ledger ledger = OnlyLedger(outcome);
  CHECK(ledger.losses(record::Loss::kFileLimit) >= 1);
  CHECK(ledger.header().clean_end == 0);
}

}  // namespace
}  // namespace ledger::testing
