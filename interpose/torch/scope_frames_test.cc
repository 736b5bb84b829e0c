#include "interpose/torch/scope_frames.h"

#include <string>
#include <thread>
#include <vector>

#include "catch2/catch.hpp"
#include "interpose/core/definitions.h"
#include "interpose/core/recorder.h"

namespace ledger {
namespace {

using record::Layer;

// Identities are addresses that nothing is ever read from.
const void* Id(std::uintptr_t number) { return reinterpret_cast<const void*>(number); }

void Push(std::uintptr_t identity, std::string_view name, std::uint8_t flags = 0, FramePart part = FramePart::kWhole,
          std::uint32_t origin = 0) {
  PushFrame(FrameInfo{Id(identity), Layer::kOp, flags, part, origin}, name);
}

// A thread of its own: no ranges, no frames, whatever other tests left open.
template <typename Function>
void OnNewThread(Function function) {
  std::thread(function).join();
}

std::uint32_t Path(std::uint32_t parent, std::string_view name, std::uint8_t flags = 0, std::uint32_t origin = 0) {
  return ScopeUnder(parent, ScopeKind{Layer::kOp, flags, origin}, InternAlways(name));
}

TEST_CASE("Frames give the path in which they nest") {
  OnNewThread([] {
    CHECK(RefineScope(0) == 0);
    Push(1, "outer");
    Push(2, "inner");
    CHECK(RefineScope(0) == Path(Path(0, "outer"), "inner"));
    PopFrame(Id(2));
    CHECK(RefineScope(0) == Path(0, "outer"));
    PopFrame(Id(1));
    CHECK(RefineScope(0) == 0);
  });
}

TEST_CASE("Frames stand below the thread's ranges, also when these change") {
  OnNewThread([] {
    const std::uint32_t range = ScopeUnder(0, Layer::kNvtx, {}, "range");
    Push(1, "op");
    CHECK(RefineScope(range) == Path(range, "op"));
    CHECK(RefineScope(0) == Path(0, "op"));
    PopFrame(Id(1));
  });
}

TEST_CASE("Leaving a frame leaves what is inside it; leaving an unknown one does nothing") {
  OnNewThread([] {
    Push(1, "outer");
    Push(2, "leaked by an exception");
    Push(3, "leaked as well");
    PopFrame(Id(99));
    CHECK(RefineScope(0) == Path(Path(Path(0, "outer"), "leaked by an exception"), "leaked as well"));
    PopFrame(Id(1));
    CHECK(RefineScope(0) == 0);
  });
}

TEST_CASE("A frame can end on another thread") {
  OnNewThread([] {
    Push(1, "outer");
    FrameStack* const stack =
        PushFrame(FrameInfo{Id(2), Layer::kOp, record::kScopeUser, FramePart::kWhole, 0}, InternAlways("range"));
    REQUIRE(stack != nullptr);
    CHECK(RefineScope(0) == Path(Path(0, "outer"), "range", record::kScopeUser));
    std::thread([stack] { EndFrame(stack, Id(2)); }).join();
    CHECK(RefineScope(0) == Path(0, "outer"));
    Push(3, "next");
    CHECK(RefineScope(0) == Path(Path(0, "outer"), "next"));
    PopFrame(Id(1));
  });
}

TEST_CASE("What runs inside recomputation is recomputed, but for backward nodes") {
  OnNewThread([] {
    Push(1, "op", record::kScopeRecompute);
    Push(2, "kernel");
    const std::uint32_t recomputed = Path(0, "op", record::kScopeRecompute);
    CHECK(RefineScope(0) == Path(recomputed, "kernel", record::kScopeRecompute));
    PopFrame(Id(2));
    Push(3, "node", record::kScopeBackward);
    CHECK(RefineScope(0) == Path(recomputed, "node", record::kScopeBackward));
    PopFrame(Id(1));
  });
}

TEST_CASE("A node takes the place of the engine's frame, and leaves it its origin") {
  OnNewThread([] {
    const std::uint32_t origin = Path(0, "module");
    const std::uint32_t node = Path(0, "MmBackward0", record::kScopeBackward, origin);
    Push(1, "MmBackward0", record::kScopeBackward, FramePart::kEngine);
    CHECK(RefineScope(0) == Path(0, "MmBackward0", record::kScopeBackward));
    Push(2, "MmBackward0", record::kScopeBackward, FramePart::kNode, origin);
    CHECK(RefineScope(0) == node);
    PopFrame(Id(2));
    CHECK(RefineScope(0) == node);
    PopFrame(Id(1));
    // Without the engine's frame (ops are not observed) the node stands below whatever there is.
    Push(3, "range", record::kScopeUser);
    Push(4, "MmBackward0", record::kScopeBackward, FramePart::kNode, origin);
    CHECK(RefineScope(0) == Path(Path(0, "range", record::kScopeUser), "MmBackward0", record::kScopeBackward, origin));
    PopFrame(Id(3));
  });
}

TEST_CASE("A place is the innermost module") {
  OnNewThread([] {
    CHECK(PlaceScope() == 0);
    CHECK_FALSE(InsideModule());
    Push(1, "layer", record::kScopeModule);
    Push(2, "op");
    CHECK(InsideModule());
    CHECK(PlaceScope() == Path(0, "layer", record::kScopeModule));
    PopFrame(Id(1));
    CHECK_FALSE(InsideModule());
  });
}

TEST_CASE("A thread without ranges is where the one is that waits for it") {
  const std::uint32_t waiting = ScopeUnder(0, Layer::kNvtx, {}, "loss.backward()");
  SetWaitingScope(waiting);
  OnNewThread([waiting] {
    Push(1, "node", record::kScopeBackward);
    CHECK(RefineScope(0) == Path(waiting, "node", record::kScopeBackward));
    PopFrame(Id(1));
    const std::uint32_t own = ScopeUnder(0, Layer::kNvtx, {}, "own range");
    CHECK(RefineScope(own) == own);
  });
  SetWaitingScope(0);
}

TEST_CASE("Frames beyond the room for them are left out, and the others stay right") {
  OnNewThread([] {
    constexpr std::uintptr_t kMany = 2000;
    for (std::uintptr_t id = 1; id <= kMany; ++id) Push(id, "deep");
    for (std::uintptr_t id = kMany; id >= 2; --id) PopFrame(Id(id));
    CHECK(RefineScope(0) == Path(0, "deep"));
    PopFrame(Id(1));
    CHECK(RefineScope(0) == 0);
  });
}

}  // namespace
}  // namespace ledger
