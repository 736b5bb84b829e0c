// The modules and ops that a thread is inside of: frames on top of its ranges, so that a block knows which op of which
// module allocated it.
//
// Entering an op costs a few stores; only when something is recorded inside it does it become a scope (Refine), which
// looks the path up and remembers it in the frames. Frames are told apart by identity, not by depth: an exception, or a
// range that ends out of order, takes the frames above it along; one that ends on another thread is taken out there.
//
// Backward nodes have neither a beginning nor an end here: having the framework report them costs more than all else
// that is recorded. Whenever a frame is entered or a scope is wanted, it is looked which node the thread is inside of.
//
// A stack belongs to its thread. Other threads do no more than clear a frame's identity (EndFrame); stacks are
// never given back to the system, so that they can do it at any time.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/record/record.h"
#include "interpose/torch/adapter_interface.h"

namespace ledger {

struct FrameInfo {
  const void* identity;  // not null, unlike that of every other open frame of the thread
  record::Layer source;  // kOp or kAgent
  std::uint8_t flags;    // record::kScope...
};

// Enters a frame. `name` must stay valid until the frame is left on this very thread.
void PushFrame(const FrameInfo& info, std::string_view name);
// The same with an interned text, for frames whose end may come from another thread. Returns what EndFrame wants.
FrameStack* PushFrame(const FrameInfo& info, std::uint32_t text);

// Leaves the frame and everything inside it; does nothing when there is none.
void PopFrame(const void* identity);
// Leaves a frame of any thread. The object behind `identity` is still there, so that no other frame has its address.
void EndFrame(FrameStack* stack, const void* identity);

// Is the calling thread inside of any module?
bool InsideModule();

// The calling thread's innermost module (or its ranges, where it is in none) as a scope: the place that backward nodes
// refer to as their origin.
std::uint32_t PlaceScope();

// The scope of the thread's ranges and frames; of the thread that waits for backward, where this one has neither.
std::uint32_t RefineScope(std::uint32_t ranges);

// Where to ask for the backward node that a thread is inside of.
using NodeFinder = bool (*)(NodeInfo* info);
void SetNodeFinder(NodeFinder finder);

// The scope in which somebody waits for the backward that runs now; 0: none does.
void SetWaitingScope(std::uint32_t scope);

}  // namespace ledger
