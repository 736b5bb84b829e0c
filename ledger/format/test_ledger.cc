#include "ledger/format/test_ledger.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ledger::format {
namespace {

constexpr std::uint64_t kOpenTicks = 1'000'000'000;
constexpr std::uint64_t kOpenRealtimeNs = 1'700'000'000'000'000'000;
constexpr absl::string_view kCachingAllocator = "libc10_cuda.so";

template <std::size_t kSize>
void CopyText(char (&to)[kSize], absl::string_view from) {
  from.copy(to, kSize - 1);
}

}  // namespace

TestLedger::TestLedger() : now_(kOpenTicks) {
  std::memcpy(header_.magic, record::kMagic, sizeof(header_.magic));
  header_.version_major = record::kVersionMajor;
  header_.version_minor = record::kVersionMinor;
  header_.header_bytes = record::kHeaderBytes;
  header_.record_bytes = record::kRecordBytes;
  header_.flags = record::kRankKnown;
  header_.pid = 4711;
  header_.world_size = 1;
  header_.ticks_source = record::TicksSource::kMonotonic;
  header_.load_ticks = header_.load_monotonic_ns = kOpenTicks - 500;
  header_.load_realtime_ns = kOpenRealtimeNs - 500;
  header_.open_ticks = header_.open_monotonic_ns = kOpenTicks;
  header_.open_realtime_ns = kOpenRealtimeNs;
  header_.clean_end = 1;
  CopyText(header_.recorder_version, "0.1.0");
  CopyText(header_.host, "node0");
  CopyText(header_.program, "python train.py");
}

std::uint64_t TestLedger::Append(const void* record) {
  Slot slot;
  std::memcpy(static_cast<void*>(&slot), record, sizeof(slot));
  slots_.push_back(slot);
  return slots_.size() - 1;
}

void TestLedger::AddUncommitted() {
  const record::TextChunk nothing{};
  Append(&nothing);
}

std::uint32_t TestLedger::Text(absl::string_view text) {
  if (text.empty()) return 0;
  const auto known = texts_.find(text);
  if (known != texts_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(texts_.size() + 1);
  texts_.emplace(text, id);
  for (std::size_t begin = 0; begin < text.size(); begin += record::kTextChunkBytes) {
    record::TextChunk chunk{};
    chunk.id = id;
    chunk.total_bytes = static_cast<std::uint16_t>(text.size());
    chunk.chunk = static_cast<std::uint16_t>(begin / record::kTextChunkBytes);
    text.substr(begin).copy(chunk.bytes, record::kTextChunkBytes);
    Add(record::Kind::kText, record::kNoDevice, chunk);
  }
  return id;
}

std::uint32_t TestLedger::Scope(std::uint32_t parent, absl::string_view name) {
  record::ScopeDefinition definition{};
  definition.id = ++scopes_;
  definition.parent = parent;
  definition.name = Text(name);
  Add(record::Kind::kScope, record::kNoDevice, definition, record::Layer::kNvtx);
  return definition.id;
}

void TestLedger::Setting(absl::string_view key, absl::string_view value) {
  record::Setting setting{};
  setting.key = Text(key);
  setting.value = Text(value);
  Add(record::Kind::kSetting, record::kNoDevice, setting);
}

void TestLedger::Device(std::int8_t device, std::uint64_t total, absl::string_view name, bool simulated) {
  record::DeviceInfo info{};
  info.total_bytes = total;
  info.name = Text(name);
  info.flags = simulated ? record::kDeviceSimulated : 0;
  Add(record::Kind::kDevice, device, info, record::Layer::kDriver);
}

record::Allocation TestLedger::MakeAllocation(std::uint64_t address, std::uint64_t size, const AllocOptions& options) {
  record::Allocation allocation{};
  allocation.address = address;
  allocation.size = size;
  allocation.device_used = options.used;
  allocation.context = options.context;
  allocation.scope = options.scope;
  allocation.owner = Text(options.owner);
  allocation.call = Text(options.call);
  allocation.result = options.result;
  allocation.memory = options.memory;
  return allocation;
}

void TestLedger::Alloc(std::int8_t device, std::uint64_t address, std::uint64_t size, const AllocOptions& options) {
  Add(record::Kind::kAlloc, device, MakeAllocation(address, size, options), options.layer);
  if (options.owner == kCachingAllocator && options.memory == record::Memory::kLinear) {
    segments_[address] = size;
    reserved_[device] += size;
  }
}

void TestLedger::Free(std::int8_t device, std::uint64_t address, record::Memory memory) {
  record::Allocation allocation{};
  allocation.address = address;
  allocation.memory = memory;
  Add(record::Kind::kFree, device, allocation, record::Layer::kRuntime);
  const auto segment = segments_.find(address);
  if (segment == segments_.end()) return;
  reserved_[device] -= segment->second;
  segments_.erase(segment);
}

void TestLedger::FreeFailed(std::int8_t device, std::uint64_t address, record::Memory memory) {
  record::Allocation allocation{};
  allocation.address = address;
  allocation.memory = memory;
  allocation.result = 1;  // CUDA_ERROR_INVALID_VALUE
  Add(record::Kind::kFree, device, allocation, record::Layer::kRuntime);
}

void TestLedger::AllocFailed(std::int8_t device, std::uint64_t size, const AllocOptions& options) {
  Add(record::Kind::kAllocFailed, device, MakeAllocation(0, size, options), options.layer);
}

void TestLedger::HandleCreate(std::int8_t device, std::uint64_t handle, std::uint64_t size,
                              const AllocOptions& options) {
  record::Allocation allocation = MakeAllocation(handle, size, options);
  if (allocation.memory == record::Memory::kLinear) allocation.memory = record::Memory::kPhysical;
  Add(record::Kind::kHandleCreate, device, allocation, record::Layer::kDriver);
  if (options.owner == kCachingAllocator) {
    segments_[handle] = size;
    reserved_[device] += size;
  }
}

void TestLedger::HandleEvent(record::Kind kind, std::int8_t device, std::uint64_t handle) {
  record::Allocation allocation{};
  allocation.address = handle;
  allocation.memory = record::Memory::kPhysical;
  Add(kind, device, allocation, record::Layer::kDriver);
}

void TestLedger::Map(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
  record::Mapping mapping{};
  mapping.address = address;
  mapping.size = size;
  mapping.handle = handle;
  Add(record::Kind::kMap, device, mapping, record::Layer::kDriver);
}

void TestLedger::Unmap(std::int8_t device, std::uint64_t address, std::uint64_t size) {
  record::Mapping mapping{};
  mapping.address = address;
  mapping.size = size;
  Add(record::Kind::kUnmap, device, mapping, record::Layer::kDriver);
}

void TestLedger::DeviceSample(std::int8_t device, std::uint64_t used, std::uint64_t total) {
  record::DeviceSample sample{};
  sample.free_bytes = total - used;
  sample.total_bytes = total;
  Add(record::Kind::kDeviceSample, device, sample, record::Layer::kDriver);
}

void TestLedger::PoolSample(std::int8_t device, std::uint64_t pool, std::uint64_t used, std::uint64_t reserved) {
  record::PoolSample sample{};
  sample.pool = pool;
  sample.used_bytes = sample.used_high_bytes = used;
  sample.reserved_bytes = sample.reserved_high_bytes = reserved;
  Add(record::Kind::kPoolSample, device, sample, record::Layer::kDriver);
}

void TestLedger::BlockAlloc(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint32_t scope,
                            std::uint64_t requested) {
  record::Block block{};
  block.address = address;
  block.size = size;
  block.allocated = allocated_[device] += size;
  block.reserved_total = reserved_[device];
  block.scope = scope;
  block.requested = requested;
  Add(record::Kind::kBlockAlloc, device, block, record::Layer::kAllocator);
}

void TestLedger::BlockFree(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint32_t scope) {
  record::Block block{};
  block.address = address;
  block.size = size;
  block.allocated = allocated_[device] -= size;
  block.reserved_total = reserved_[device];
  block.scope = scope;
  Add(record::Kind::kBlockFree, device, block, record::Layer::kAllocator);
}

void TestLedger::BlockOom(std::int8_t device, std::uint64_t requested, std::uint64_t device_free,
                          std::uint64_t device_total, std::uint32_t scope) {
  record::BlockOom oom{};
  oom.requested = requested;
  oom.allocated = allocated_[device];
  oom.reserved_total = reserved_[device];
  oom.device_free = device_free;
  oom.device_total = device_total;
  oom.scope = scope;
  Add(record::Kind::kBlockOom, device, oom, record::Layer::kAllocator);
}

void TestLedger::Mark(absl::string_view name, std::uint32_t scope) {
  record::Range mark{};
  mark.scope = scope;
  mark.text = Text(name);
  Add(record::Kind::kMark, record::kNoDevice, mark, record::Layer::kApi);
}

void TestLedger::ValueRead(std::int8_t device, absl::string_view place) {
  record::ValueRead read{};
  read.size = 4;
  read.text = Text(place);
  Add(record::Kind::kValueRead, device, read, record::Layer::kApi);
}

void TestLedger::Communicator(std::int8_t device, std::uint64_t communicator, absl::string_view name,
                              std::uint32_t nranks, std::uint64_t token) {
  record::CommunicatorInfo info{};
  info.communicator = communicator;
  info.name = Text(name);
  info.nranks = nranks;
  info.token = token;
  Add(record::Kind::kCommunicator, device, info, record::Layer::kNccl);
}

void TestLedger::ProcessGroup(std::uint64_t communicator, absl::string_view name, absl::string_view description,
                              std::uint32_t ranks, std::int32_t first_rank, std::int32_t rank_stride) {
  record::ProcessGroupInfo info{};
  info.communicator = communicator;
  info.name = Text(name);
  info.description = Text(description);
  info.ranks = ranks;
  info.first_rank = first_rank;
  info.rank_stride = rank_stride;
  Add(record::Kind::kProcessGroup, 0, info, record::Layer::kOp);
}

std::vector<std::byte> TestLedger::Bytes() const {
  record::FileHeader header = header_;
  if (header.reserved == 0) header.reserved = slots_.size();
  if (header.end_ticks == 0) header.end_ticks = now_;
  std::vector<std::byte> bytes(header.header_bytes + slots_.size() * sizeof(Slot));
  std::memcpy(bytes.data(), &header, std::min(sizeof(header), bytes.size()));
  if (!slots_.empty()) std::memcpy(bytes.data() + header.header_bytes, slots_.data(), slots_.size() * sizeof(Slot));
  return bytes;
}

bool TestLedger::WriteTo(const std::string& path) const {
  const std::vector<std::byte> bytes = Bytes();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written;
}

}  // namespace ledger::format
