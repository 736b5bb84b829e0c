#include "tools/simgpu/cupti/buffers.h"

#include <utility>

namespace simgpu::cupti {

Buffers& Buffers::Get() {
  static auto* buffers = new Buffers;
  return *buffers;
}

void Buffers::SetCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  const std::lock_guard<std::mutex> lock(mutex_);
  request_ = request;
  complete_ = complete;
}

void Buffers::Complete(const Buffer& buffer) {
  if (buffer.data != nullptr && complete_ != nullptr) {
    complete_(nullptr, 0, buffer.data, buffer.capacity, buffer.used);
  }
}

void Buffers::AppendBytes(const void* record, std::size_t size) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!HasRoom()) {
    const Buffer full = std::exchange(current_, {});
    lock.unlock();
    Complete(full);
    Buffer fresh;
    std::size_t record_limit = 0;
    if (request_ != nullptr) request_(&fresh.data, &fresh.capacity, &record_limit);
    if (fresh.data == nullptr || fresh.capacity < kRecordStride) return;
    lock.lock();
    // Another thread may have found a buffer meanwhile; the second one goes back empty.
    if (current_.data != nullptr) {
      lock.unlock();
      Complete(fresh);
      lock.lock();
    } else {
      current_ = fresh;
    }
  }
  std::uint8_t* slot = current_.data + current_.used;
  std::memset(slot, 0, kRecordStride);
  std::memcpy(slot, record, size);
  current_.used += kRecordStride;
}

void Buffers::Flush() {
  std::unique_lock<std::mutex> lock(mutex_);
  const Buffer buffer = std::exchange(current_, {});
  lock.unlock();
  Complete(buffer);
}

}  // namespace simgpu::cupti
