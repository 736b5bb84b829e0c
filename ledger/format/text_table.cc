#include "ledger/format/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ledger::format {
namespace {

constexpr std::size_t kMaxChunks = record::kMaxTextBytes / record::kTextChunkBytes;
static_assert(kMaxChunks * record::kTextChunkBytes == record::kMaxTextBytes && kMaxChunks <= 32);

std::size_t ChunkCount(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + record::kTextChunkBytes - 1) / record::kTextChunkBytes);
}

}  // namespace

bool TextTable::Add(const record::TextChunk& chunk) {
  if (chunk.id == 0 || chunk.id > max_id_) return false;
  if (chunk.total_bytes > record::kMaxTextBytes || chunk.chunk >= ChunkCount(chunk.total_bytes)) return false;
  if (texts_.size() <= chunk.id) texts_.resize(chunk.id + std::size_t{1});
  Text& text = texts_[chunk.id];
  if (!text.defined) {
    text.defined = true;
    text.bytes.assign(chunk.total_bytes, '?');
  } else if (text.bytes.size() != chunk.total_bytes) {
    return false;
  }
  const std::size_t begin = std::size_t{chunk.chunk} * record::kTextChunkBytes;
  const std::size_t count = std::min(record::kTextChunkBytes, text.bytes.size() - begin);
  std::copy_n(chunk.bytes, count, text.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
  text.chunks_seen |= std::uint32_t{1} << chunk.chunk;
  return true;
}

bool TextTable::Complete(const Text& text) {
  const std::size_t chunks = ChunkCount(text.bytes.size());
  return text.chunks_seen == (std::uint32_t{1} << chunks) - 1;
}

std::string TextTable::Get(std::uint32_t id) const {
  if (id == 0) return "";
  if (id >= texts_.size() || !texts_[id].defined) return absl::StrCat("<text ", id, ">");
  return texts_[id].bytes;
}

std::size_t TextTable::CountIncomplete() const {
  return static_cast<std::size_t>(
      std::count_if(texts_.begin(), texts_.end(), [](const Text& t) { return t.defined && !Complete(t); }));
}

}  // namespace ledger::format
