// Reads what an application hands to NVTX with a range or a mark: its name, and a number.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/hooks/nvtx_names.h"
#include "interpose/hooks/nvtx_types.h"
#include "interpose/record/record.h"

namespace ledger::nvtx {

// A wide string as UTF-8, cut where the ledger would cut it. Refers to its own buffer: neither copied nor moved.
class Narrow {
 public:
  explicit Narrow(const wchar_t* wide) : view_(Fill(wide)) {}
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
  std::string_view view() const { return view_; }

 private:
  friend class Event;
  Narrow() = default;  // empty, to be filled only if it is needed
  std::string_view Fill(const wchar_t* wide);

  // One byte more than a text may have, so that a cut is seen; and room for the rest of its last character.
  char buffer_[record::kMaxTextBytes + 4];
  std::string_view view_;
};

inline std::string_view View(const char* text) { return text == nullptr ? std::string_view{} : std::string_view{text}; }

// PyTorch's emit_nvtx numbers its ranges: "aten::mul, seq = 12, op_id = 345". A name for each would fill the ledger's
// tables, so the numbers are cut off; the sequence number, which ties backward to forward, becomes the number of the
// range.
struct OpName {
  std::string_view name;
  std::uint64_t sequence = 0;
};
OpName SplitOpName(std::string_view name);

// The name and the number of an event. Valid as long as the attributes and this object are.
//
// The number: integers as they are, floating-point numbers rounded. NCCL attaches structures: of its operations we take
// the bytes of the message, of the making of a communicator its hash.
class Event {
 public:
  Event(nvtxDomainHandle_t handle, const Domain& domain, const nvtxEventAttributes_t* attributes);
  std::string_view name() const { return name_; }
  std::uint64_t payload() const { return payload_; }

 private:
  Narrow narrow_;
  std::string_view name_;
  std::uint64_t payload_ = 0;
};

}  // namespace ledger::nvtx
