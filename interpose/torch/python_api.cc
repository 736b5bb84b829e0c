#include "interpose/torch/python_api.h"

#include <dlfcn.h>

#include <atomic>

#include "interpose/core/real_dlsym.h"

namespace ledger::python {
namespace {

enum class Search : int { kNotYet, kFound, kNothing };

constinit Api g_api = {};
constinit std::atomic<Search> g_search{Search::kNotYet};

}  // namespace

const Api* Find() {
  Search search = g_search.load(std::memory_order_acquire);
  if (search == Search::kNotYet) {
    // Two threads that come here at once store the same values.
    const DlsymFunction find = RealDlsym();
    bool complete = find != nullptr;
#define LEDGER_FIND(name, ...)                                             \
  if (complete) {                                                          \
    g_api.name = reinterpret_cast<__VA_ARGS__>(find(RTLD_DEFAULT, #name)); \
    complete = g_api.name != nullptr;                                      \
  }
    LEDGER_PYTHON_API(LEDGER_FIND)
#undef LEDGER_FIND
    if (!complete) dlerror();  // the program must not find our message
    search = complete ? Search::kFound : Search::kNothing;
    g_search.store(search, std::memory_order_release);
  }
  return search == Search::kFound ? &g_api : nullptr;
}

}  // namespace ledger::python
