// Turns the driver's activity into records of the kinds that the client has enabled.
#ifndef TOOLS_SIMGPU_CUPTI_COLLECTOR_H_
#define TOOLS_SIMGPU_CUPTI_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "tools/simgpu/cupti/api.h"
#include "tools/simgpu/driver/export_table.h"

namespace simgpu::cupti {

class Collector {
 public:
  // Lives for ever, like the driver's subscription that points to it.
  static Collector& Get();

  CUptiResult Enable(CUpti_ActivityKind kind);
  CUptiResult Disable(CUpti_ActivityKind kind);
  void DisableAll();

  // Null restores CUPTI's own clock.
  void SetClock(CUpti_TimestampCallbackFunc clock) { clock_.store(clock); }
  std::uint64_t Now() const;

  // The calling thread's stack of the client's ids.
  CUptiResult PushExternalId(CUpti_ExternalCorrelationKind kind, std::uint64_t id);
  CUptiResult PopExternalId(CUpti_ExternalCorrelationKind kind, std::uint64_t* id);

 private:
  struct Interval {
    std::uint64_t start;
    std::uint64_t end;
  };

  static void OnActivity(void* collector, const Activity* activity);
  void Collect(const Activity& activity);
  bool IsEnabled(CUpti_ActivityKind kind) const { return (enabled_.load() >> kind & 1) != 0; }
  // The interval of the operation on the client's clock.
  Interval DeviceInterval(const Activity& activity) const;
  void RecordCall(const Activity& activity, Interval device) const;
  void RecordExternalIds(std::uint32_t correlation) const;
  // Follows the driver's activity exactly as long as some kind that is made from it is enabled.
  CUptiResult UpdateSubscription();

  std::atomic<std::uint64_t> enabled_{0};  // one bit per kind
  std::atomic<CUpti_TimestampCallbackFunc> clock_{nullptr};
  std::mutex mutex_;  // guards subscribed_
  bool subscribed_ = false;
};

}  // namespace simgpu::cupti

#endif  // TOOLS_SIMGPU_CUPTI_COLLECTOR_H_
