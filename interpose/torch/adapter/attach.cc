#include <exception>
#include <string>

#include "interpose/torch/adapter/adapter.h"

#ifndef LEDGER_TORCH_VERSION
#error "LEDGER_TORCH_VERSION must be the framework's version, as torch.__version__ has it"
#endif

namespace ledger::adapter {
namespace {

const AdapterHost* g_host = nullptr;
constexpr Adapter kAdapter = {kAdapterInterface, LEDGER_TORCH_VERSION, RecordSavedTensor};

}  // namespace

const AdapterHost& Host() { return *g_host; }

extern "C" __attribute__((visibility("default"))) const Adapter* ledger_torch_attach(const AdapterHost* host,
                                                                                     const char** reason) {
  if (g_host != nullptr) return &kAdapter;
  g_host = host;
  static std::string message;
  try {
    StartOps();
    StartAllocator();
    return &kAdapter;
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "an exception of unknown type";
  }
  *reason = message.c_str();
  return nullptr;
}

}  // namespace ledger::adapter
