#include "interpose/hooks/nvtx_event.h"

#include <cstddef>
#include <cstring>

namespace ledger::nvtx {
namespace {

// The payload type and layout of NVTX's payload extension, and the numbers of the schemas that NCCL registers: the
// first application-defined schema id, plus the number of the operation.
constexpr std::int32_t kPayloadTypeExtended = static_cast<std::int32_t>(0xDFBD0009);
constexpr std::uint64_t kFirstStaticSchema = std::uint64_t{1} << 24;
struct ExtendedPayload {
  std::uint64_t schema;
  std::size_t bytes;
  const void* data;
};

enum class NcclSchema : std::uint64_t {
  kCommInitRank = 0,
  kAllGather = 4,
  kAllReduce = 5,
  kBroadcast = 6,
  kReduceScatter = 7,
  kReduce = 8,
  kSend = 9,
  kReceive = 10,
  kAllToAll = 16,
  kGather = 17,
  kScatter = 18,
};

// Where in NCCL's structure the number lies that we keep: all begin with the communicator's hash, and those of
// operations go on with the bytes of the message.
bool OffsetOfNumber(NcclSchema schema, std::size_t* offset) {
  switch (schema) {
    case NcclSchema::kCommInitRank:
      *offset = 0;
      return true;
    case NcclSchema::kAllGather:
    case NcclSchema::kAllReduce:
    case NcclSchema::kBroadcast:
    case NcclSchema::kReduceScatter:
    case NcclSchema::kReduce:
    case NcclSchema::kSend:
    case NcclSchema::kReceive:
    case NcclSchema::kAllToAll:
    case NcclSchema::kGather:
    case NcclSchema::kScatter:
      *offset = sizeof(std::uint64_t);
      return true;
  }
  return false;
}

std::uint64_t NcclNumber(const nvtxEventAttributes_t& attributes) {
  if (attributes.reserved0 < 1 || attributes.payload.ullValue == 0) return 0;
  ExtendedPayload extended;
  std::memcpy(&extended, reinterpret_cast<const void*>(attributes.payload.ullValue), sizeof(extended));
  std::size_t offset = 0;
  std::uint64_t number = 0;
  if (extended.schema < kFirstStaticSchema || extended.data == nullptr ||
      !OffsetOfNumber(static_cast<NcclSchema>(extended.schema - kFirstStaticSchema), &offset) ||
      extended.bytes == SIZE_MAX || extended.bytes < offset + sizeof(number)) {
    return 0;
  }
  std::memcpy(&number, static_cast<const char*>(extended.data) + offset, sizeof(number));
  return number;
}

std::uint64_t Rounded(double value) {
  constexpr double kLimit = 9.2e18;  // within the range of a signed 64-bit integer
  if (!(value > -kLimit && value < kLimit)) return 0;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value < 0 ? value - 0.5 : value + 0.5));
}

std::uint64_t Number(const Domain& domain, const nvtxEventAttributes_t& attributes) {
  switch (attributes.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
    case NVTX_PAYLOAD_TYPE_INT64:
      return attributes.payload.ullValue;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return Rounded(attributes.payload.dValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return attributes.payload.uiValue;
    case NVTX_PAYLOAD_TYPE_INT32:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(attributes.payload.iValue));
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return Rounded(static_cast<double>(attributes.payload.fValue));
    case kPayloadTypeExtended:
      return domain.is_nccl ? NcclNumber(attributes) : 0;
    default:
      return 0;
  }
}

}  // namespace

std::string_view Narrow::Fill(const wchar_t* wide) {
  static_assert(sizeof(wchar_t) == 4);
  if (wide == nullptr) return {};
  std::size_t used = 0;
  for (; *wide != 0 && used <= record::kMaxTextBytes; ++wide) {
    auto code = static_cast<std::uint32_t>(*wide);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;  // not a character: the replacement one
    const auto put = [&](std::uint32_t byte) { buffer_[used++] = static_cast<char>(byte); };
    const auto put_tail = [&](int shift) { put(0x80u | ((code >> shift) & 0x3Fu)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0u | (code >> 6));
      put_tail(0);
    } else if (code < 0x10000) {
      put(0xE0u | (code >> 12));
      put_tail(6);
      put_tail(0);
    } else {
      put(0xF0u | (code >> 18));
      put_tail(12);
      put_tail(6);
      put_tail(0);
    }
  }
  return {buffer_, used};
}

OpName SplitOpName(std::string_view name) {
  constexpr std::string_view kNumbers[] = {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "};
  const char* const end = name.data() + name.size();
  const char* comma = name.data();
  while (comma < end) {
    comma = static_cast<const char*>(std::memchr(comma, ',', static_cast<std::size_t>(end - comma)));
    if (comma == nullptr) break;
    const std::string_view rest(comma, static_cast<std::size_t>(end - comma));
    for (const std::string_view& number : kNumbers) {
      if (!rest.starts_with(number)) continue;
      OpName op = {{name.data(), name.size() - rest.size()}, 0};
      for (const char* digit = comma + number.size(); &number == kNumbers && digit < end; ++digit) {
        if (*digit < '0' || *digit > '9') break;
        op.sequence = op.sequence * 10 + static_cast<std::uint64_t>(*digit - '0');
      }
      return op;
    }
    ++comma;
  }
  return {name, 0};
}

// An application compiled against another version of NVTX says by `size` how much of the structure there is.
Event::Event(nvtxDomainHandle_t handle, const Domain& domain, const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr) return;
  if (attributes->size >= offsetof(nvtxEventAttributes_t, payload) + sizeof(attributes->payload)) {
    payload_ = Number(domain, *attributes);
  }
  if (attributes->size < offsetof(nvtxEventAttributes_t, message) + sizeof(attributes->message)) return;
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      name_ = View(attributes->message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      name_ = narrow_.Fill(attributes->message.unicode);
      break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      name_ = RegisteredString(handle, attributes->message.registered);
      break;
    default:
      break;
  }
}

}  // namespace ledger::nvtx
