#include "ledger/report/units.h"

#include <catch2/catch.hpp>

namespace ledger::report {
namespace {

TEST_CASE("numbers are printed with their unit in mind") {
  CHECK(Gib(std::uint64_t{3} << 30) == "3.000");
  CHECK(Gib(1 << 20) == "0.001");
  CHECK(SignedGib(-(std::int64_t{1} << 30)) == "-1.000");
  CHECK(SignedGib(0) == "+0.000");
  CHECK(Seconds(1'234'567'890) == "1.235");
  CHECK(Grouped(0) == "0");
  CHECK(Grouped(999) == "999");
  CHECK(Grouped(1000) == "1,000");
  CHECK(Grouped(1234567) == "1,234,567");
  CHECK(Count(1, "rank") == "1 rank");
  CHECK(Count(2, "rank") == "2 ranks");
}

TEST_CASE("text is fit for a terminal and keeps its width") {
  CHECK(Printable("a\x1b[31m\n") == "a?[31m?");
  CHECK(CutFront("abcdefghij", 10) == "abcdefghij");
  CHECK(CutFront("abcdefghijk", 10) == "...efghijk");
  CHECK(CutFront("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 4) == "...\xc3\xb6");
  CHECK(PadLeft("\xc3\xa4", 3) == "  \xc3\xa4");
  CHECK(PadRight("ab", 4) == "ab  ");
  CHECK(PadRight("abcdef", 4) == "abcdef");
}

}  // namespace
}  // namespace ledger::report
