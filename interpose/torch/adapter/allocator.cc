// What the CUDA caching allocator tells its tracers and PyTorch's profiler does not: the bytes that were asked for,
// streams and pools of segments, and when a delayed free completes. It is told under the allocator's lock for the
// device.
#include "interpose/torch/adapter/adapter.h"

#ifdef LEDGER_TORCH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>

namespace ledger::adapter {
namespace {

using c10::cuda::CUDACachingAllocator::SegmentInfo;
using c10::cuda::CUDACachingAllocator::TraceEntry;

std::uint64_t StreamOf(void* stream) { return reinterpret_cast<std::uintptr_t>(stream); }

record::Commit CommitOf(record::Kind kind, c10::DeviceIndex device) {
  return {static_cast<std::uint16_t>(kind), record::Layer::kAllocator, static_cast<std::int8_t>(device), 0};
}

void RecordSegment(record::Kind kind, const TraceEntry& entry) {
  if (!Host().recording()) return;
  record::Segment segment = {};
  segment.commit = CommitOf(kind, entry.device_);
  segment.address = entry.addr_;
  segment.size = entry.size_;
  segment.stream = StreamOf(entry.stream_);
  segment.pool_id[0] = entry.mempool_.first;
  segment.pool_id[1] = entry.mempool_.second;
  segment.scope = Host().current_scope();
  Host().append(&segment);
}

void OnTrace(const TraceEntry& entry) {
  switch (entry.action_) {
    case TraceEntry::ALLOC:
      return Host().block_requested(entry.addr_, entry.size_);
    case TraceEntry::FREE_REQUESTED:
      return Host().free_requested(entry.addr_);
    case TraceEntry::FREE_COMPLETED:
      return Host().free_completed(static_cast<std::int8_t>(entry.device_), entry.addr_, entry.size_,
                                   StreamOf(entry.stream_));
    case TraceEntry::SEGMENT_ALLOC:
      return RecordSegment(record::Kind::kSegmentAlloc, entry);
    case TraceEntry::SEGMENT_FREE:
      return RecordSegment(record::Kind::kSegmentFree, entry);
    case TraceEntry::SEGMENT_MAP:
      return RecordSegment(record::Kind::kSegmentMap, entry);
    case TraceEntry::SEGMENT_UNMAP:
      return RecordSegment(record::Kind::kSegmentUnmap, entry);
    default:
      return;  // snapshots, annotations, out of memory (see the observer)
  }
}

// The reporter of the out-of-memory error doesn't say what the device had left.
void OnOutOfMemory(std::int64_t device, std::size_t, std::size_t device_total, std::size_t device_free) {
  if (!Host().recording()) return;
  constexpr std::string_view kWhy = record::kSampledOutOfMemory;
  record::DeviceSample sample = {};
  sample.commit = CommitOf(record::Kind::kDeviceSample, static_cast<c10::DeviceIndex>(device));
  sample.free_bytes = device_free;
  sample.total_bytes = device_total;
  sample.scope = Host().current_scope();
  sample.why = Host().text(kWhy.data(), kWhy.size());
  Host().append(&sample);
}

void RecordBlocksOf(const SegmentInfo& segment) {
  std::uint64_t address = segment.address;
  for (const auto& block : segment.blocks) {
    if (block.allocated || block.active) {
      record::BlockDetail detail = {};
      detail.commit = CommitOf(record::Kind::kBlockSeen, segment.device);
      detail.address = address;
      detail.size = block.size;
      detail.requested = block.requested_size;
      detail.stream = StreamOf(segment.stream);
      Host().append(&detail);
    }
    address += block.size;
  }
}

// What was there before us. A snapshot leaves an entry in the history that the program may be recording; then the
// little that is there by now goes without its details.
void RecordExisting() {
  if (c10::cuda::CUDACachingAllocator::isHistoryEnabled()) return;
  for (const SegmentInfo& info : c10::cuda::CUDACachingAllocator::snapshot({0, 0}, false).segments) {
    record::Segment segment = {};
    segment.commit = CommitOf(record::Kind::kSegmentSeen, info.device);
    segment.address = info.address;
    segment.size = info.total_size;
    segment.stream = StreamOf(info.stream);
    segment.pool_id[0] = info.owner_private_pool_id.first;
    segment.pool_id[1] = info.owner_private_pool_id.second;
    Host().append(&segment);
    RecordBlocksOf(info);
  }
}

}  // namespace

void StartAllocator() {
  // Without devices yet there is nothing to attach to (and a snapshot would touch what is not there). Other allocators
  // than the caching one refuse tracers with an exception.
  auto* const allocator = c10::cuda::CUDACachingAllocator::get();
  if (allocator == nullptr || !allocator->initialized()) {
    Host().note_setting("layer.allocator_trace", "off: CUDA was not initialised when the adapter came");
    return;
  }
  try {
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(OnTrace);
    c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(OnOutOfMemory);
    RecordExisting();
    Host().note_setting("layer.allocator_trace", "on");
  } catch (const std::exception&) {
    Host().note_setting("layer.allocator_trace", "off: this allocator takes no tracers");
  }
}

}  // namespace ledger::adapter

#else

namespace ledger::adapter {

void StartAllocator() { Host().note_setting("layer.allocator_trace", "off: this PyTorch has no CUDA"); }

}  // namespace ledger::adapter

#endif
