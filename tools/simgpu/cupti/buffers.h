// The client's buffers of activity records: asked for when needed, handed back when full or flushed.
#ifndef TOOLS_SIMGPU_CUPTI_BUFFERS_H_
#define TOOLS_SIMGPU_CUPTI_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "tools/simgpu/cupti/api.h"

namespace simgpu::cupti {

// Every record takes this much room, with zeros after its fields. Clients walk buffers with
// cuptiActivityGetNextRecord only, and may be built for newer, longer versions of a record's structure than this
// library was: what they find in the fields that are unknown here must be zeros.
inline constexpr std::size_t kRecordStride = 512;

class Buffers {
 public:
  // Lives for ever: activity may arrive while the process exits.
  static Buffers& Get();

  // The last registration wins; buffers that are out are handed to its completion function.
  void SetCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);

  // Dropped, as in life without a registered client, if no buffer can be had.
  template <class Record>
  void Append(const Record& record) {
    static_assert(sizeof(Record) <= kRecordStride);
    AppendBytes(&record, sizeof(record));
  }

  // Hands the current buffer back, full or not.
  void Flush();

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t capacity = 0;
    std::size_t used = 0;
  };

  void AppendBytes(const void* record, std::size_t size);
  bool HasRoom() const { return current_.data != nullptr && current_.used + kRecordStride <= current_.capacity; }
  // Calls the client; the mutex must not be held, since clients take locks of their own around calls of CUPTI.
  void Complete(const Buffer& buffer);

  std::mutex mutex_;  // guards current_
  Buffer current_;
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;    // set before any kind is enabled
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;  // likewise
};

}  // namespace simgpu::cupti

#endif  // TOOLS_SIMGPU_CUPTI_BUFFERS_H_
