#include "ledger/report/describe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ledger/format/names.h"
#include "ledger/replay/record_fields.h"
#include "ledger/report/units.h"
#include "nlohmann/json.hpp"

namespace ledger::report {
namespace {

using format::LedgerFile;
using format::Slot;
using record::Kind;

struct Field {
  enum class Type { kNumber, kSigned, kAddress, kText };
  const char* name;
  Type type;
  std::uint64_t number = 0;
  std::string text;
};

// Collects the fields of a record. Empty texts and absent addresses are left out; numbers never are.
class Fields {
 public:
  explicit Fields(const LedgerFile& file) : file_(file) {}

  Fields& Number(const char* name, std::uint64_t number) { return Add({name, Field::Type::kNumber, number, ""}); }
  Fields& Signed(const char* name, std::int64_t number) {
    return Add({name, Field::Type::kSigned, static_cast<std::uint64_t>(number), ""});
  }
  Fields& Address(const char* name, std::uint64_t address) {
    return address == 0 ? *this : Add({name, Field::Type::kAddress, address, ""});
  }
  Fields& Words(const char* name, std::string text) {
    return text.empty() ? *this : Add({name, Field::Type::kText, 0, std::move(text)});
  }
  Fields& Text(const char* name, std::uint32_t id) { return Words(name, file_.Text(id)); }
  Fields& Scope(std::uint32_t id) { return Words("scope", file_.ScopePath(id)); }

  std::vector<Field> Take() { return std::move(fields_); }

 private:
  Fields& Add(Field field) {
    fields_.push_back(std::move(field));
    return *this;
  }

  const LedgerFile& file_;
  std::vector<Field> fields_;
};

void Definition(const LedgerFile& file, const Slot& slot, Fields& fields) {
  switch (slot.kind()) {
    case Kind::kText: {
      const auto& r = slot.As<record::TextChunk>();
      fields.Number("id", r.id).Number("chunk", r.chunk).Words("text", file.Text(r.id));
      return;
    }
    case Kind::kScope: {
      const auto& r = slot.As<record::ScopeDefinition>();
      fields.Number("id", r.id).Number("parent", r.parent).Text("name", r.name).Text("domain", r.domain);
      fields.Number("flags", r.flags).Scope(r.id);
      return;
    }
    case Kind::kClock: {
      const auto& r = slot.As<record::ClockAnchor>();
      fields.Number("ticks", r.ticks).Number("monotonic_ns", r.monotonic_ns).Number("realtime_ns", r.realtime_ns);
      return;
    }
    case Kind::kDevice: {
      const auto& r = slot.As<record::DeviceInfo>();
      fields.Text("name", r.name).Number("total", r.total_bytes).Text("pci", r.pci);
      fields.Number("compute_capability", r.compute_capability);
      fields.Number("simulated", (r.flags & record::kDeviceSimulated) != 0 ? 1 : 0);
      return;
    }
    case Kind::kSetting: {
      const auto& r = slot.As<record::Setting>();
      fields.Text("key", r.key).Text("value", r.value);
      return;
    }
    case Kind::kProcessGroup: {
      const auto& r = slot.As<record::ProcessGroupInfo>();
      fields.Address("communicator", r.communicator).Text("name", r.name).Text("description", r.description);
      fields.Number("ranks", r.ranks).Number("rank", r.rank).Signed("first_rank", r.first_rank);
      fields.Signed("rank_stride", r.rank_stride).Scope(r.scope);
      return;
    }
    default: {
      const auto& r = slot.As<record::CommunicatorInfo>();
      fields.Address("communicator", r.communicator).Address("token", r.token).Address("parent", r.parent);
      fields.Text("name", r.name).Number("nranks", r.nranks).Number("rank", r.rank).Address("id_hash", r.id_hash);
      fields.Scope(r.scope);
    }
  }
}

void Allocation(const record::Allocation& r, Fields& fields) {
  fields.Address("address", r.address).Number("size", r.size);
  fields.Words("memory", std::string(format::MemoryName(r.memory)));
  fields.Text("owner", r.owner).Text("call", r.call).Number("used", r.device_used).Address("context", r.context);
  fields.Number("result", r.result).Scope(r.scope);
}

void Sample(const Slot& slot, Fields& fields) {
  if (slot.kind() == Kind::kPoolSample) {
    const auto& r = slot.As<record::PoolSample>();
    fields.Address("pool", r.pool).Number("used", r.used_bytes).Number("reserved", r.reserved_bytes);
    fields.Number("used_high", r.used_high_bytes).Number("reserved_high", r.reserved_high_bytes).Scope(r.scope);
    return;
  }
  const auto& r = slot.As<record::DeviceSample>();
  fields.Number("free", r.free_bytes).Number("total", r.total_bytes).Text("why", r.why).Scope(r.scope);
}

void Block(const LedgerFile&, const Slot& slot, Fields& fields) {
  switch (slot.kind()) {
    case Kind::kBlockAlloc:
    case Kind::kBlockFree: {
      const auto& r = slot.As<record::Block>();
      fields.Address("address", r.address).Number("size", r.size).Number("requested", r.requested);
      fields.Number("allocated", r.allocated).Number("reserved", r.reserved_total).Text("owner", r.owner);
      fields.Scope(r.scope);
      return;
    }
    case Kind::kBlockOom: {
      const auto& r = slot.As<record::BlockOom>();
      fields.Number("requested", r.requested).Number("allocated", r.allocated).Number("reserved", r.reserved_total);
      fields.Number("free", r.device_free).Number("total", r.device_total).Scope(r.scope);
      return;
    }
    case Kind::kBlockPending:
    case Kind::kBlockReusable:
    case Kind::kBlockSeen: {
      const auto& r = slot.As<record::BlockDetail>();
      fields.Address("address", r.address).Number("size", r.size).Number("requested", r.requested);
      fields.Address("stream", r.stream).Scope(r.scope);
      return;
    }
    default: {
      const auto& r = slot.As<record::Segment>();
      fields.Address("address", r.address).Number("size", r.size).Address("stream", r.stream);
      fields.Number("pool_id_0", r.pool_id[0]).Number("pool_id_1", r.pool_id[1]).Scope(r.scope);
    }
  }
}

void Said(const Slot& slot, Fields& fields) {
  switch (slot.kind()) {
    case Kind::kTag:
    case Kind::kUntag: {
      const auto& r = slot.As<record::Tag>();
      fields.Address("address", r.address).Number("size", r.size).Text("text", r.text).Scope(r.scope);
      return;
    }
    case Kind::kValueRead: {
      const auto& r = slot.As<record::ValueRead>();
      fields.Address("address", r.address).Number("size", r.size).Text("place", r.text).Scope(r.scope);
      return;
    }
    case Kind::kSavedTensor: {
      const auto& r = slot.As<record::SavedTensor>();
      fields.Address("address", r.address).Number("storage", r.storage_bytes).Number("tensor", r.tensor_bytes);
      fields.Signed("sequence", r.sequence).Number("flags", r.flags).Scope(r.scope);
      return;
    }
    case Kind::kPhase: {
      const auto& r = slot.As<record::Phase>();
      fields.Number("step", r.step).Words("phase", std::string(format::PhaseName(r.phase))).Text("text", r.text);
      fields.Scope(r.scope);
      return;
    }
    default: {
      const auto& r = slot.As<record::Name>();
      fields.Address("address", r.address).Number("bytes", r.bytes).Address("belongs_to", r.belongs_to);
      fields.Number("elements", r.elements).Text("text", r.text).Text("key", r.key);
      fields.Number("category", static_cast<std::uint64_t>(r.category)).Number("flags", r.flags);
    }
  }
}

void Range(const record::Range& r, Fields& fields) {
  fields.Text("text", r.text).Text("domain", r.domain).Address("id", r.id).Number("payload", r.payload).Scope(r.scope);
}

void Collective(const record::Collective& r, Fields& fields) {
  fields.Words("operation", std::string(format::OperationName(r.operation)));
  fields.Number("count", r.count).Number("element_bytes", r.element_bytes).Number("datatype", r.datatype);
  fields.Address("send", r.send).Address("receive", r.receive).Address("communicator", r.communicator);
  fields.Address("stream", r.stream).Number("peer_or_root", r.peer_or_root).Scope(r.scope);
}

std::vector<Field> FieldsOf(const LedgerFile& file, const Slot& slot) {
  Fields fields(file);
  if (replay::IsAllocation(slot.kind())) {
    Allocation(slot.As<record::Allocation>(), fields);
    return fields.Take();
  }
  switch (slot.kind()) {
    case Kind::kText:
    case Kind::kScope:
    case Kind::kClock:
    case Kind::kDevice:
    case Kind::kSetting:
    case Kind::kCommunicator:
    case Kind::kCommunicatorDestroy:
    case Kind::kProcessGroup:
      Definition(file, slot, fields);
      break;
    case Kind::kMap:
    case Kind::kUnmap: {
      const auto& r = slot.As<record::Mapping>();
      fields.Address("address", r.address).Number("size", r.size).Address("handle", r.handle);
      fields.Number("offset", r.offset).Text("owner", r.owner).Scope(r.scope);
      break;
    }
    case Kind::kDeviceReset:
    case Kind::kDeviceSample:
    case Kind::kPoolSample:
      Sample(slot, fields);
      break;
    case Kind::kBlockAlloc:
    case Kind::kBlockFree:
    case Kind::kBlockOom:
    case Kind::kBlockPending:
    case Kind::kBlockReusable:
    case Kind::kBlockSeen:
    case Kind::kSegmentAlloc:
    case Kind::kSegmentFree:
    case Kind::kSegmentMap:
    case Kind::kSegmentUnmap:
    case Kind::kSegmentSeen:
      Block(file, slot, fields);
      break;
    case Kind::kRangePush:
    case Kind::kRangePop:
    case Kind::kRangeStart:
    case Kind::kRangeEnd:
    case Kind::kMark:
    case Kind::kGroupStart:
    case Kind::kGroupEnd:
    case Kind::kPause:
    case Kind::kResume:
      Range(slot.As<record::Range>(), fields);
      break;
    case Kind::kCollective:
      Collective(slot.As<record::Collective>(), fields);
      break;
    case Kind::kTag:
    case Kind::kUntag:
    case Kind::kValueRead:
    case Kind::kSavedTensor:
    case Kind::kPhase:
    case Kind::kName:
      Said(slot, fields);
      break;
    default:
      fields.Number("kind_number", slot.commit().kind);
  }
  return fields.Take();
}

std::string NameOf(const Slot& slot) {
  const absl::string_view name = format::KindName(slot.kind());
  return name.empty() ? "unknown" : std::string(name);
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A text has no time of its own.
std::int64_t TimeOf(const LedgerFile& file, const Slot& slot) {
  return slot.kind() == Kind::kText ? 0 : file.clock().SinceOpenNs(slot.ticks());
}

}  // namespace

std::string DescribeText(const LedgerFile& file, std::uint64_t index) {
  const Slot& slot = file.slots()[index];
  if (!slot.committed()) return absl::StrFormat("%9d  (never committed)", index);
  const record::Commit& commit = slot.commit();
  std::string line =
      absl::StrFormat("%9d %14.6f  dev %2d  thread %-7d %-16s", index, static_cast<double>(TimeOf(file, slot)) / 1e9,
                      commit.device, commit.thread, NameOf(slot));
  for (const Field& field : FieldsOf(file, slot)) {
    switch (field.type) {
      case Field::Type::kNumber:
        absl::StrAppend(&line, " ", field.name, "=", field.number);
        break;
      case Field::Type::kSigned:
        absl::StrAppend(&line, " ", field.name, "=", static_cast<std::int64_t>(field.number));
        break;
      case Field::Type::kAddress:
        absl::StrAppend(&line, " ", field.name, "=0x", absl::Hex(field.number));
        break;
      case Field::Type::kText:
        absl::StrAppend(&line, " ", field.name, "=\"", Printable(field.text), "\"");
        break;
    }
  }
  return line;
}

std::string DescribeJson(const LedgerFile& file, std::uint64_t index) {
  const Slot& slot = file.slots()[index];
  if (!slot.committed()) return absl::StrCat("{\"record\": ", index, ", \"kind\": \"uncommitted\"}");
  const record::Commit& commit = slot.commit();
  std::string line = absl::StrCat("{\"record\": ", index, ", \"time_ns\": ", TimeOf(file, slot), ", \"kind\": \"",
                                  NameOf(slot), "\", \"device\": ", commit.device, ", \"thread\": ", commit.thread,
                                  ", \"layer\": \"", format::LayerName(commit.layer), "\"");
  for (const Field& field : FieldsOf(file, slot)) {
    absl::StrAppend(&line, ", \"", field.name, "\": ");
    switch (field.type) {
      case Field::Type::kNumber:
      case Field::Type::kAddress:
        absl::StrAppend(&line, field.number);
        break;
      case Field::Type::kSigned:
        absl::StrAppend(&line, static_cast<std::int64_t>(field.number));
        break;
      case Field::Type::kText:
        absl::StrAppend(&line, Quoted(field.text));
        break;
    }
  }
  return line + "}";
}

}  // namespace ledger::report
