// For tests: the categories that a job's blocks are given.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "ledger/attribution/attribution.h"
#include "ledger/attribution/describe_life.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {

// What became of a ledger's blocks, by their address.
class Judged {
 public:
  explicit Judged(const TestJob& job)
      : file_(*job.ledger.Read()), analysis_(file_, {}), attribution_(file_, analysis_.devices()) {}

  // The last life at the address.
  const Life& At(std::uint64_t address) const {
    const Life* found = nullptr;
    for (const Life& life : attribution_.lives(0)->lives) {
      if (file_.slots()[life.begin].As<record::Block>().address == address) found = &life;
    }
    REQUIRE(found != nullptr);
    return *found;
  }
  std::string Name(std::uint64_t address) const {
    return NameOf(attribution_.grounds(), *attribution_.lives(0), At(address));
  }
  void Check(std::uint64_t address, Category category, Evidence evidence, Role role = Role::kNone) const {
    const Life& life = At(address);
    CHECK(CategoryName(life.category) == CategoryName(category));
    CHECK(EvidenceName(life.evidence) == EvidenceName(evidence));
    CHECK(RoleName(life.role) == RoleName(role));
  }
  const Attribution& attribution() const { return attribution_; }

 private:
  format::LedgerFile file_;
  replay::Analysis analysis_;
  Attribution attribution_;
};

}  // namespace ledger::attribution
