// Text of bounded length, put together without allocation: paths, messages, the values of settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ledger {

template <std::size_t kCapacity>
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t room = kCapacity - length_;
    const std::size_t taken = text.size() < room ? text.size() : room;
    if (taken > 0) std::memcpy(text_ + length_, text.data(), taken);
    length_ += taken;
    cut_ = cut_ || taken < text.size();
    text_[length_] = '\0';
    return *this;
  }

  Line& operator<<(std::uint64_t number) {
    char digits[20];
    std::size_t at = sizeof(digits);
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << std::string_view(digits + at, sizeof(digits) - at);
  }

  Line& Hex(std::uint64_t number, int digits) {
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
      const char digit = "0123456789abcdef"[(number >> shift) & 15];
      *this << std::string_view(&digit, 1);
    }
    return *this;
  }

  const char* c_str() const { return text_; }
  std::string_view view() const { return std::string_view(text_, length_); }
  bool cut() const { return cut_; }
  void Clear() {
    length_ = 0;
    cut_ = false;
    text_[0] = '\0';
  }

 private:
  std::size_t length_ = 0;
  bool cut_ = false;
  char text_[kCapacity + 1] = {};
};

// One line on stderr, "libledger: " in front. For what a user must know; never on a hot path.
void Say(std::string_view message);

}  // namespace ledger
