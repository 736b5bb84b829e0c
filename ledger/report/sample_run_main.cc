// Writes the sample run into a directory: ledger_sample_run DIR
#include <cstdio>
#include <string>

#include "ledger/report/sample_run.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ledger_sample_run DIR\n");
    return 2;
  }
  for (int rank = 0; rank < ledger::report::kSampleRanks; ++rank) {
    const std::string path =
        std::string(argv[1]) + "/rank" + std::to_string(rank) + ".pid" + std::to_string(100 + rank) + ".ledger";
    if (!ledger::report::SampleRank(rank).WriteTo(path)) {
      std::fprintf(stderr, "ledger_sample_run: cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
