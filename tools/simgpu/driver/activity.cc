#include "tools/simgpu/driver/activity.h"

#include <ctime>

namespace simgpu {
namespace {

struct Subscriber {
  ActivityCallback callback;
  void* user;
};
// Subscribers are never deleted: a call may be under way when one leaves.
std::atomic<const Subscriber*> subscriber{nullptr};
std::atomic<std::uint32_t> last_correlation{0};

std::uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

bool HasActivitySubscriber() { return subscriber.load(std::memory_order_relaxed) != nullptr; }

CUresult SubscribeActivity(ActivityCallback callback, void* user) {
  if (callback == nullptr) {
    subscriber.store(nullptr);
    return CUDA_SUCCESS;
  }
  const Subscriber* nobody = nullptr;
  const auto* wanted = new Subscriber{callback, user};
  if (subscriber.compare_exchange_strong(nobody, wanted)) return CUDA_SUCCESS;
  delete wanted;
  return CUDA_ERROR_ALREADY_MAPPED;
}

std::uint32_t NextCorrelation() { return last_correlation.fetch_add(1, std::memory_order_relaxed) + 1; }

void TellActivity(const Operation& operation, const Activity& where) {
  const Subscriber* told = subscriber.load(std::memory_order_acquire);
  if (told == nullptr) return;
  Activity activity = where;
  switch (operation.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      activity.kind = ActivityKind::kKernel;
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      activity.kind = ActivityKind::kMemcpy;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      activity.kind = ActivityKind::kMemset;
      break;
    default:
      return;
  }
  activity.name = operation.name;
  for (int i = 0; i < 3; ++i) {
    activity.grid[i] = operation.grid[i];
    activity.block[i] = operation.block[i];
  }
  activity.shared_bytes = operation.shared_bytes;
  activity.bytes = operation.bytes;
  activity.copy_kind = operation.copy_kind;
  activity.start_ns = Now();
  activity.end_ns = activity.start_ns + 1'000;  // nothing ran: a duration that no tool divides by in vain
  told->callback(told->user, &activity);
}

Activity PlaceOf(const Stream& stream) {
  Activity place = {};
  place.size = sizeof place;
  place.device = stream.context->device->ordinal;
  place.context_id = stream.context->id;
  place.stream_id = stream.id;
  return place;
}

}  // namespace simgpu
