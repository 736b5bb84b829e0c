// What was given to streams, for a subscriber (the stand-in of CUPTI).
#pragma once

#include <atomic>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/driver/graph.h"

namespace simgpu {

// A subscriber is there. Cheap; asked at every launch.
bool HasActivitySubscriber();
CUresult SubscribeActivity(ActivityCallback callback, void* user);
std::uint32_t NextCorrelation();

// Tells the subscriber, if there is one and the operation is of a kind that it knows. Without the lock.
void TellActivity(const Operation& operation, const Activity& where);
// Fills in what is known of the place: device, context and stream. With the lock held.
Activity PlaceOf(const Stream& stream);

}  // namespace simgpu
