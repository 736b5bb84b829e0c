// Numbers, texts and lines as a report prints them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ledger::report {

// Of a column of numbers.
inline constexpr std::size_t kColumnWidth = 11;

// "10.032": GiB, of 1,073,741,824 bytes, with three digits.
std::string Gib(std::uint64_t bytes);
// The same with a sign, for differences.
std::string SignedGib(std::int64_t bytes);
// "12.345": seconds.
std::string Seconds(std::int64_t ns);
// "12.3%" of a whole; 0.0% of nothing.
std::string Percent(std::uint64_t part, std::uint64_t whole);
// "1,234,567".
std::string Grouped(std::uint64_t number);
// "1 rank", "8 ranks".
std::string Count(std::uint64_t number, absl::string_view noun);

// Text out of a file, fit for a terminal: without control characters.
std::string Printable(absl::string_view text);
// The same of a path of ranges, which is empty outside of any.
std::string PrintablePath(absl::string_view path);
// At most `width` characters; what is cut off at the front shows as "...", because the end of a path says more.
std::string CutFront(absl::string_view text, std::size_t width);

std::string PadLeft(absl::string_view text, std::size_t width);
std::string PadRight(absl::string_view text, std::size_t width);

void Line(std::string& out, absl::string_view text);

}  // namespace ledger::report
