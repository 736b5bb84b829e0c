#include "tools/gpuledger/load.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ledger/replay/analysis.h"
#include "ledger/report/build.h"
#include "ledger/report/units.h"
#include "tools/gpuledger/progress.h"

namespace gpuledger {
namespace {

using ledger::report::RankReport;

absl::StatusOr<RankReport> LoadRank(const std::string& path, const LoadOptions& options,
                                    std::atomic<std::uint64_t>& done) {
  const auto file = ledger::format::LedgerFile::Open(path);
  if (!file.ok()) return file.status();
  ledger::replay::Analysis::Options wanted;
  const auto truth = options.truths.find(path);
  if (truth != options.truths.end()) wanted = ledger::replay::OptionsFor(*file, truth->second);
  wanted.progress = &done;
  const ledger::replay::Analysis analysis(*file, wanted);
  ledger::report::BuildOptions build{{}, options.at, options.device};
  if (truth != options.truths.end()) build.more = ledger::replay::CheckTruth(analysis, truth->second);
  return ledger::report::BuildRank(analysis, build);
}

std::uint64_t RecordsIn(const RunFiles& files) {
  std::uint64_t bytes = 0;
  for (const LedgerPath& ledger : files.ledgers) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(ledger.path, error);
    if (!error) bytes += size;
  }
  return bytes / ledger::record::kRecordBytes;
}

}  // namespace

LoadedRun LoadRun(const RunFiles& files, const LoadOptions& options) {
  const std::uint64_t records = RecordsIn(files);
  Progress progress(absl::StrCat("replaying ", ledger::report::Count(files.ledgers.size(), "rank"), ", about ",
                                 ledger::report::Count(records, "record")),
                    records);
  std::vector<absl::StatusOr<RankReport>> ranks(files.ledgers.size(), absl::UnknownError("not read"));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < ranks.size(); i = next++) {
      ranks[i] = LoadRank(files.ledgers[i].path, options, progress.done());
    }
  };
  const std::size_t workers = std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  LoadedRun run;
  run.unreadable = files.unreadable;
  std::vector<RankReport> read;
  for (auto& rank : ranks) {
    if (rank.ok()) {
      read.push_back(*std::move(rank));
    } else {
      run.unreadable.emplace_back(rank.status().message());
    }
  }
  run.report = ledger::report::BuildRun(std::move(read));
  run.report.notes = files.notes;
  for (const std::string& what : run.unreadable) run.report.notes.push_back(absl::StrCat("NOT IN THIS REPORT: ", what));
  return run;
}

}  // namespace gpuledger
