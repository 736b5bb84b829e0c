#include "ledger/report/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ledger::report {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kNsPerSecond = 1e9;

bool IsContinuationByte(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

std::size_t Width(absl::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += IsContinuationByte(c) ? 0 : 1;
  return width;
}

}  // namespace

std::string Gib(std::uint64_t bytes) { return absl::StrFormat("%.3f", static_cast<double>(bytes) / kGib); }

std::string SignedGib(std::int64_t bytes) { return absl::StrFormat("%+.3f", static_cast<double>(bytes) / kGib); }

std::string Seconds(std::int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) / kNsPerSecond); }

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  return absl::StrFormat("%.1f%%", whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Grouped(std::uint64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) grouped.push_back(',');
    grouped.push_back(digits[i]);
  }
  return grouped;
}

std::string Count(std::uint64_t number, absl::string_view noun) {
  return absl::StrCat(Grouped(number), " ", noun, number == 1 ? "" : "s");
}

std::string Printable(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return printable;
}

std::string PrintablePath(absl::string_view path) { return path.empty() ? "(no range)" : Printable(path); }

std::string CutFront(absl::string_view text, std::size_t width) {
  constexpr absl::string_view kEllipsis = "...";
  if (Width(text) <= width) return std::string(text);
  std::size_t begin = text.size();
  for (std::size_t kept = kEllipsis.size(); kept < width && begin > 0; ++kept) {
    do {
      --begin;
    } while (begin > 0 && IsContinuationByte(text[begin]));
  }
  return absl::StrCat(kEllipsis, text.substr(begin));
}

std::string PadLeft(absl::string_view text, std::size_t width) {
  const std::size_t have = Width(text);
  return absl::StrCat(std::string(have < width ? width - have : 0, ' '), text);
}

std::string PadRight(absl::string_view text, std::size_t width) {
  const std::size_t have = Width(text);
  return absl::StrCat(text, std::string(have < width ? width - have : 0, ' '));
}

void Line(std::string& out, absl::string_view text) { absl::StrAppend(&out, text, "\n"); }

}  // namespace ledger::report
