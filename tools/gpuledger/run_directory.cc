#include "tools/gpuledger/run_directory.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ledger/format/ledger_file.h"

namespace gpuledger {
namespace {

namespace fs = std::filesystem;
using ledger::record::FileHeader;

constexpr char kExtension[] = ".ledger";

struct Candidate {
  LedgerPath ledger;
  std::string run_id;
  std::int64_t begin_ns = 0;  // CLOCK_REALTIME
  std::int64_t end_ns = 0;
};

std::int64_t ModifiedNs(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(system.time_since_epoch()).count();
}

Candidate MakeCandidate(const std::string& path, const FileHeader& header) {
  Candidate candidate;
  candidate.ledger = {path, header.rank, header.pid};
  candidate.run_id.assign(header.run_id, strnlen(header.run_id, sizeof(header.run_id)));
  const ledger::format::Clock clock(header);
  candidate.begin_ns = clock.open_realtime_ns();
  // Without a clean end the file's own time is the best that is known.
  candidate.end_ns =
      header.clean_end == 1 ? candidate.begin_ns + clock.SinceOpenNs(header.end_ticks) : ModifiedNs(path);
  return candidate;
}

// Processes without a launcher's id belong together when they ran at the same time. Gives each group a name.
void NameAnonymousRuns(std::vector<Candidate>& candidates) {
  std::vector<Candidate*> anonymous;
  for (Candidate& candidate : candidates) {
    if (candidate.run_id.empty()) anonymous.push_back(&candidate);
  }
  std::sort(anonymous.begin(), anonymous.end(), [](const Candidate* a, const Candidate* b) {
    return std::tie(a->begin_ns, a->ledger.pid) < std::tie(b->begin_ns, b->ledger.pid);
  });
  std::string name;
  std::int64_t end_ns = 0;
  for (Candidate* candidate : anonymous) {
    if (name.empty() || candidate->begin_ns > end_ns) {
      name = absl::StrCat("pid", candidate->ledger.pid);
      end_ns = candidate->end_ns;
    }
    end_ns = std::max(end_ns, candidate->end_ns);
    candidate->run_id = name;
  }
}

std::vector<std::string> LedgersIn(const std::string& directory, std::error_code& error) {
  std::vector<std::string> paths;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == kExtension) paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Run ids in the order in which the runs began.
std::vector<std::string> RunsByBeginning(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::int64_t> begins;
  for (const Candidate& candidate : candidates) {
    const auto [begin, added] = begins.try_emplace(candidate.run_id, candidate.begin_ns);
    begin->second = std::min(begin->second, candidate.begin_ns);
  }
  std::vector<std::string> runs;
  for (const auto& [run, begin] : begins) runs.push_back(run);
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const std::string& a, const std::string& b) { return begins[a] < begins[b]; });
  return runs;
}

}  // namespace

std::size_t CountLedgers(const std::string& directory) {
  std::error_code error;
  return LedgersIn(directory, error).size();
}

absl::StatusOr<RunFiles> FindRun(const std::string& path, const std::string& run) {
  std::error_code error;
  std::vector<std::string> paths;
  if (fs::is_directory(path, error)) {
    paths = LedgersIn(path, error);
    if (error) return absl::NotFoundError(absl::StrCat(path, ": cannot list: ", error.message()));
    if (paths.empty()) {
      return absl::NotFoundError(absl::StrCat(
          path, ": no ledgers here (files named rank0.pid4711.ledger); record some with `gpuledger run --out ", path,
          " -- COMMAND`. A process leaves one at its first CUDA call"));
    }
  } else if (fs::exists(path, error)) {
    paths = {path};
  } else {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such directory or file; give the directory of a recorded run (LEDGER_DIR)"));
  }
  RunFiles files;
  std::vector<Candidate> candidates;
  for (const std::string& candidate : paths) {
    const auto header = ledger::format::LedgerFile::ReadHeader(candidate);
    if (header.ok()) {
      candidates.push_back(MakeCandidate(candidate, *header));
    } else {
      files.unreadable.emplace_back(header.status().message());
    }
  }
  if (candidates.empty()) return absl::DataLossError(absl::StrJoin(files.unreadable, "\n"));
  NameAnonymousRuns(candidates);
  const std::vector<std::string> runs = RunsByBeginning(candidates);
  files.run = run.empty() ? runs.back() : run;
  if (std::find(runs.begin(), runs.end(), files.run) == runs.end()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no run \"", run, "\" here; there are: ", absl::StrJoin(runs, ", ")));
  }
  if (runs.size() > 1) {
    files.notes.push_back(absl::StrCat(path, " holds ", runs.size(), " runs; this is ", files.run,
                                       ". --run takes another: ", absl::StrJoin(runs, ", ")));
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.run_id == files.run) files.ledgers.push_back(candidate.ledger);
  }
  std::sort(files.ledgers.begin(), files.ledgers.end(),
            [](const LedgerPath& a, const LedgerPath& b) { return std::tie(a.rank, a.pid) < std::tie(b.rank, b.pid); });
  return files;
}

}  // namespace gpuledger
