#include <exception>
#include <string>

#include "interpose/torch/adapter/adapter.h"

#ifndef LEDGER_TORCH_VERSION
#error "LEDGER_TORCH_VERSION must be the framework's version, as torch.__version__ has it"
#endif

namespace ledger::adapter {
namespace {

const AdapterHost* g_host = nullptr;

const char* Attach(const AdapterHost* host) {
  static std::string message;
  g_host = host;
  try {
    StartOps();
    StartAllocator();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "an exception of unknown type";
  }
  return message.c_str();
}

}  // namespace

const AdapterHost& Host() { return *g_host; }

extern "C" __attribute__((visibility("default"))) const Adapter ledger_torch_adapter = {
    .interface = kAdapterInterface,
    .built_for = LEDGER_TORCH_VERSION,
    .attach = Attach,
    .saved_tensor = RecordSavedTensor,
    .node_created = RememberNode,
    .current_node = CurrentNode,
    .gradient_accumulated = RecordGradient,
    .stop_observing = StopObserving,
    .collective_name = CollectiveName,
    .process_group = CurrentProcessGroup,
    .process_group_named = ProcessGroupNamed,
};

}  // namespace ledger::adapter
