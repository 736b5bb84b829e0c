// CUPTI's callback interface: a process may have one subscriber. No callback is ever made, since the simulated driver
// doesn't report calls; a subscriber is only counted, so that two tools meet the same refusal as on a real machine.
#include <algorithm>
#include <atomic>
#include <iterator>

#include "tools/simgpu/cupti/api.h"

// The header declares this type and leaves it to the library.
struct CUpti_Subscriber_st {
  CUpti_CallbackFunc callback;
  void* user_data;
};

namespace {

struct Name {
  unsigned value;
  const char* text;
};

// Generated from the toolkit's headers, in ascending order of the values.
constexpr Name kRuntimeNames[] = {
#include "cupti_runtime_names.inc"
};
constexpr Name kDriverNames[] = {
#include "cupti_driver_names.inc"
};
constexpr Name kResultNames[] = {
#include "cupti_result_names.inc"
};

template <size_t N>
const char* Find(const Name (&names)[N], unsigned value) {
  const Name* found = std::lower_bound(std::begin(names), std::end(names), value,
                                       [](const Name& name, unsigned wanted) { return name.value < wanted; });
  return found != std::end(names) && found->value == value ? found->text : nullptr;
}

std::atomic<CUpti_SubscriberHandle> current_subscriber{nullptr};

CUptiResult RequireCurrent(CUpti_SubscriberHandle subscriber) {
  return subscriber != nullptr && subscriber == current_subscriber.load() ? CUPTI_SUCCESS
                                                                          : CUPTI_ERROR_INVALID_PARAMETER;
}

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user_data) {
  if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  auto* candidate = new CUpti_Subscriber_st{callback, user_data};
  CUpti_SubscriberHandle none = nullptr;
  if (!current_subscriber.compare_exchange_strong(none, candidate)) {
    delete candidate;
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *subscriber = candidate;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  CUpti_SubscriberHandle expected = subscriber;
  if (!current_subscriber.compare_exchange_strong(expected, nullptr)) return CUPTI_ERROR_INVALID_PARAMETER;
  delete subscriber;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain, CUpti_CallbackId) {
  return RequireCurrent(subscriber);
}

CUptiResult cuptiEnableDomain(uint32_t, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain) {
  return RequireCurrent(subscriber);
}

CUptiResult cuptiEnableAllDomains(uint32_t, CUpti_SubscriberHandle subscriber) { return RequireCurrent(subscriber); }

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    *name = Find(kRuntimeNames, id);
  } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    *name = Find(kDriverNames, id);
  } else {
    *name = nullptr;
  }
  return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = Find(kResultNames, static_cast<unsigned>(result));
  return *text == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

}  // extern "C"
