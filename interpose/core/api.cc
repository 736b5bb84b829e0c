// The public C API. What it does is said in ledger.h.
#include "interpose/core/recorder.h"
#include "interpose/include/ledger/ledger.h"

namespace {

using ledger::record::Kind;
using ledger::record::Layer;

std::string_view View(const char* text) { return text == nullptr ? std::string_view{} : std::string_view{text}; }

template <typename Record>
Record New(Kind kind) {
  Record record = {};
  record.commit = {static_cast<std::uint16_t>(kind), Layer::kApi, ledger::record::kNoDevice, 0};
  record.scope = ledger::CurrentScope();
  return record;
}

void Tag(Kind kind, const void* address, std::size_t bytes, const char* text) {
  const ledger::ErrnoSaver errno_saver;
  if (!ledger::Active()) return;
  auto record = New<ledger::record::Tag>(kind);
  record.address = reinterpret_cast<std::uintptr_t>(address);
  record.size = bytes;
  record.text = ledger::InternText(View(text));
  ledger::Append(record);
}

}  // namespace

#define LEDGER_EXPORT extern "C" [[gnu::visibility("default")]]

LEDGER_EXPORT int ledger_api_version(void) { return LEDGER_API_VERSION; }

LEDGER_EXPORT int ledger_recording(void) { return ledger::Active() ? 1 : 0; }

LEDGER_EXPORT void ledger_range_push(const char* name) {
  const ledger::ErrnoSaver errno_saver;
  ledger::PushScope(Layer::kApi, {}, View(name), 0);
}

LEDGER_EXPORT void ledger_range_pop(void) {
  const ledger::ErrnoSaver errno_saver;
  ledger::PopScope(Layer::kApi, {});
}

LEDGER_EXPORT void ledger_mark(const char* name) {
  const ledger::ErrnoSaver errno_saver;
  if (!ledger::Active()) return;
  auto record = New<ledger::record::Range>(Kind::kMark);
  record.text = ledger::InternText(View(name));
  ledger::Append(record);
}

LEDGER_EXPORT void ledger_tag(const void* address, size_t bytes, const char* tag) {
  Tag(Kind::kTag, address, bytes, tag);
}

LEDGER_EXPORT void ledger_untag(const void* address) { Tag(Kind::kUntag, address, 0, nullptr); }

LEDGER_EXPORT void ledger_pause(void) {
  const ledger::ErrnoSaver errno_saver;
  ledger::Pause();
}

LEDGER_EXPORT void ledger_resume(void) {
  const ledger::ErrnoSaver errno_saver;
  ledger::Resume();
}

LEDGER_EXPORT void ledger_flush(void) {
  const ledger::ErrnoSaver errno_saver;
  ledger::Flush();
}

LEDGER_EXPORT void ledger_value_read(const void* device_address, size_t bytes, const char* place) {
  const ledger::ErrnoSaver errno_saver;
  if (!ledger::Active()) return;
  auto record = New<ledger::record::ValueRead>(Kind::kValueRead);
  record.address = reinterpret_cast<std::uintptr_t>(device_address);
  record.size = bytes;
  record.text = ledger::InternText(View(place));
  ledger::Append(record);
}
