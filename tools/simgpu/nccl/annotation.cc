#include "tools/simgpu/nccl/annotation.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

namespace simgpu::nccl {
namespace {

constexpr std::uint64_t kSchemaBase = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
constexpr std::uint64_t kReductionEnum = kSchemaBase + 20;  // the first number after the schemas'

constexpr nvtxPayloadSchemaEntry_t Entry(std::uint64_t type, const char* name, std::size_t offset) {
  return {.flags = 0,
          .type = type,
          .name = name,
          .description = nullptr,
          .arrayOrUnionDetail = 0,
          .offset = offset,
          .semantics = nullptr,
          .reserved = nullptr};
}

constexpr const char* kCommunicatorText = "NCCL communicator ID";
constexpr const char* kBytesText = "Message size [bytes]";
constexpr const char* kReductionText = "Reduction operation";
constexpr const char* kRanksText = "No. of ranks";
constexpr const char* kRankText = "Rank";
constexpr const char* kDeviceText = "CUDA device";

#define UINT64_ENTRY(Payload, member, text) Entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, text, offsetof(Payload, member))
#define SIZE_ENTRY(Payload, member, text) Entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, text, offsetof(Payload, member))
#define INT_ENTRY(Payload, member, text) Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, text, offsetof(Payload, member))
#define REDUCTION_ENTRY(Payload, member) Entry(kReductionEnum, kReductionText, offsetof(Payload, member))

constexpr nvtxPayloadSchemaEntry_t kMessage[] = {UINT64_ENTRY(MessagePayload, communicator, kCommunicatorText),
                                                 SIZE_ENTRY(MessagePayload, bytes, kBytesText)};
constexpr nvtxPayloadSchemaEntry_t kReduction[] = {UINT64_ENTRY(ReductionPayload, communicator, kCommunicatorText),
                                                   SIZE_ENTRY(ReductionPayload, bytes, kBytesText),
                                                   REDUCTION_ENTRY(ReductionPayload, reduction)};
constexpr nvtxPayloadSchemaEntry_t kRooted[] = {UINT64_ENTRY(RootedPayload, communicator, kCommunicatorText),
                                                SIZE_ENTRY(RootedPayload, bytes, kBytesText),
                                                INT_ENTRY(RootedPayload, root, "Root")};
constexpr nvtxPayloadSchemaEntry_t kPeer[] = {UINT64_ENTRY(RootedPayload, communicator, kCommunicatorText),
                                              SIZE_ENTRY(RootedPayload, bytes, kBytesText),
                                              INT_ENTRY(RootedPayload, root, "Peer rank")};
constexpr nvtxPayloadSchemaEntry_t kReduce[] = {
    UINT64_ENTRY(ReducePayload, communicator, kCommunicatorText), SIZE_ENTRY(ReducePayload, bytes, kBytesText),
    INT_ENTRY(ReducePayload, root, "Root"), REDUCTION_ENTRY(ReducePayload, reduction)};
constexpr nvtxPayloadSchemaEntry_t kInitAll[] = {UINT64_ENTRY(InitAllPayload, communicator, kCommunicatorText),
                                                 INT_ENTRY(InitAllPayload, devices, "No. of devices")};
constexpr nvtxPayloadSchemaEntry_t kInitRank[] = {
    UINT64_ENTRY(InitRankPayload, communicator, kCommunicatorText), INT_ENTRY(InitRankPayload, ranks, kRanksText),
    INT_ENTRY(InitRankPayload, rank, kRankText), INT_ENTRY(InitRankPayload, device, kDeviceText)};
constexpr nvtxPayloadSchemaEntry_t kSplit[] = {UINT64_ENTRY(SplitPayload, communicator, kCommunicatorText),
                                               UINT64_ENTRY(SplitPayload, parent, "Parent NCCL communicator ID"),
                                               INT_ENTRY(SplitPayload, ranks, kRanksText),
                                               INT_ENTRY(SplitPayload, rank, kRankText),
                                               INT_ENTRY(SplitPayload, device, kDeviceText),
                                               INT_ENTRY(SplitPayload, color, "Color"),
                                               INT_ENTRY(SplitPayload, key, "Key")};
constexpr nvtxPayloadSchemaEntry_t kShrink[] = {
    UINT64_ENTRY(ShrinkPayload, communicator, kCommunicatorText), INT_ENTRY(ShrinkPayload, ranks, kRanksText),
    INT_ENTRY(ShrinkPayload, rank, kRankText), INT_ENTRY(ShrinkPayload, device, kDeviceText),
    INT_ENTRY(ShrinkPayload, excluded, "num_exclude")};
constexpr nvtxPayloadSchemaEntry_t kFinalize[] = {UINT64_ENTRY(FinalizePayload, communicator, kCommunicatorText)};

struct Layout {
  const nvtxPayloadSchemaEntry_t* entries;
  std::size_t count;
  std::size_t bytes;
};

template <class Payload, std::size_t kCount>
constexpr Layout LayoutOf(const nvtxPayloadSchemaEntry_t (&entries)[kCount]) {
  return {entries, kCount, sizeof(Payload)};
}

// In the order of Schema.
constexpr Layout kLayouts[] = {
    LayoutOf<InitRankPayload>(kInitRank), LayoutOf<InitAllPayload>(kInitAll),
    LayoutOf<InitRankPayload>(kInitRank), LayoutOf<InitRankPayload>(kInitRank),
    LayoutOf<MessagePayload>(kMessage),   LayoutOf<ReductionPayload>(kReduction),
    LayoutOf<RootedPayload>(kRooted),     LayoutOf<ReductionPayload>(kReduction),
    LayoutOf<ReducePayload>(kReduce),     LayoutOf<RootedPayload>(kPeer),
    LayoutOf<RootedPayload>(kPeer),       LayoutOf<InitRankPayload>(kInitRank),
    LayoutOf<InitRankPayload>(kInitRank), LayoutOf<SplitPayload>(kSplit),
    LayoutOf<FinalizePayload>(kFinalize), LayoutOf<ShrinkPayload>(kShrink),
    LayoutOf<MessagePayload>(kMessage),   LayoutOf<RootedPayload>(kRooted),
    LayoutOf<RootedPayload>(kRooted),     LayoutOf<InitRankPayload>(kInitRank),
};
static_assert(std::size(kLayouts) == static_cast<std::size_t>(Schema::kCommRevoke) + 1);

constexpr nvtxPayloadEnum_t kReductions[] = {{.name = "Sum", .value = ncclSum, .isFlag = 0},
                                             {.name = "Product", .value = ncclProd, .isFlag = 0},
                                             {.name = "Max", .value = ncclMax, .isFlag = 0},
                                             {.name = "Min", .value = ncclMin, .isFlag = 0},
                                             {.name = "Avg", .value = ncclAvg, .isFlag = 0}};

bool Disabled() {
  static const bool disabled = [] {
    const char* text = std::getenv("NCCL_NVTX_DISABLE");
    return text != nullptr && std::atoi(text) != 0;
  }();
  return disabled;
}

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = [] {
    const nvtxDomainHandle_t created = nvtxDomainCreateA("NCCL");
    const nvtxPayloadEnumAttr_t attributes{
        .fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
        .name = nullptr,
        .entries = kReductions,
        .numEntries = std::size(kReductions),
        .sizeOfEnum = sizeof(ncclRedOp_t),
        .schemaId = kReductionEnum,
        .extension = nullptr};
    nvtxPayloadEnumRegister(created, &attributes);
    return created;
  }();
  return domain;
}

std::uint64_t RegisteredId(Schema schema) {
  static std::once_flag registered[std::size(kLayouts)];
  const auto index = static_cast<std::size_t>(schema);
  const std::uint64_t id = kSchemaBase + index;
  std::call_once(registered[index], [&] {
    nvtxPayloadSchemaAttr_t attributes{};
    attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    attributes.flags = NVTX_PAYLOAD_SCHEMA_FLAG_NONE;
    attributes.entries = kLayouts[index].entries;
    attributes.numEntries = kLayouts[index].count;
    attributes.payloadStaticSize = kLayouts[index].bytes;
    attributes.schemaId = id;
    nvtxPayloadSchemaRegister(Domain(), &attributes);
  });
  return id;
}

void Push(RangeName& name, const nvtxPayloadData_t* payload) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = name.Handle();
  if (payload != nullptr) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;  // how many payloads follow
    attributes.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(payload);
  }
  nvtxDomainRangePushEx(Domain(), &attributes);
}

}  // namespace

nvtxStringHandle_t RangeName::Handle() {
  nvtxStringHandle_t handle = handle_.load(std::memory_order_acquire);
  if (handle == nullptr) {
    // Two threads may both register at first; a tool gives both the same handle, or two for the same text.
    handle = nvtxDomainRegisterStringA(Domain(), function_);
    handle_.store(handle, std::memory_order_release);
  }
  return handle;
}

Range::Range(RangeName& name) {
  if (Disabled()) return;
  pushed_ = true;
  Push(name, nullptr);
}

Range::Range(RangeName& name, Schema schema, const void* payload, std::size_t bytes) {
  if (Disabled()) return;
  pushed_ = true;
  const nvtxPayloadData_t data{.schemaId = RegisteredId(schema), .size = bytes, .payload = payload};
  Push(name, &data);
}

Range::~Range() {
  if (!pushed_) return;
  if (end_data_.payload != nullptr) {
    nvtxRangePopPayload(Domain(), &end_data_, 1);
  } else {
    nvtxDomainRangePop(Domain());
  }
}

void Range::SetEndPayload(Schema schema, const void* payload, std::size_t bytes) {
  if (!pushed_) return;
  std::memcpy(end_payload_, payload, bytes);
  end_data_ = {.schemaId = RegisteredId(schema), .size = bytes, .payload = end_payload_};
}

}  // namespace simgpu::nccl
