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

void Push(std::uintptr_t identity, std::string_view name, std::uint8_t flags = 0) {
  PushFrame(FrameInfo{Id(identity), Layer::kOp, flags}, name);
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
    FrameStack* const stack = PushFrame(FrameInfo{Id(2), Layer::kOp, record::kScopeUser}, InternAlways("range"));
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

// The backward node that the calling thread is inside of.
thread_local const NodeInfo* t_node = nullptr;

bool FindNode(NodeInfo* info) {
  if (t_node == nullptr) return false;
  *info = *t_node;
  return true;
}

// Makes the frames look for nodes, as the adapter does.
class Nodes {
 public:
  Nodes() { SetNodeFinder(FindNode); }
  ~Nodes() { SetNodeFinder(nullptr); }
  NodeInfo Make(std::uintptr_t address, std::string_view name, std::uint32_t origin = 0) const {
    return {Id(address), InternAlways(name), origin};
  }
};

std::uint32_t NodePath(std::uint32_t parent, std::string_view name, std::uint32_t origin = 0) {
  return Path(parent, name, record::kScopeBackward, origin);
}

TEST_CASE("A scope has the node that runs, with its origin, as long as it runs") {
  OnNewThread([] {
    const Nodes nodes;
    const std::uint32_t origin = Path(0, "module");
    const NodeInfo first = nodes.Make(16, "MmBackward0", origin);
    const NodeInfo second = nodes.Make(32, "AddBackward0");
    t_node = &first;
    CHECK(RefineScope(0) == NodePath(0, "MmBackward0", origin));
    CHECK(RefineScope(0) == NodePath(0, "MmBackward0", origin));
    t_node = &second;
    CHECK(RefineScope(0) == NodePath(0, "AddBackward0"));
    t_node = nullptr;
    CHECK(RefineScope(0) == 0);
  });
}

TEST_CASE("What a node enters is inside it, and a node that follows is not inside that") {
  OnNewThread([] {
    const Nodes nodes;
    const NodeInfo first = nodes.Make(16, "MmBackward0");
    const NodeInfo second = nodes.Make(32, "AddBackward0");
    Push(1, "range", record::kScopeUser);
    const std::uint32_t range = Path(0, "range", record::kScopeUser);
    t_node = &first;
    Push(2, "aten::mm");
    CHECK(RefineScope(0) == Path(NodePath(range, "MmBackward0"), "aten::mm"));
    PopFrame(Id(2));
    t_node = &second;
    Push(3, "aten::add");
    CHECK(RefineScope(0) == Path(NodePath(range, "AddBackward0"), "aten::add"));
    PopFrame(Id(3));
    t_node = nullptr;
    CHECK(RefineScope(0) == range);
    PopFrame(Id(1));
    CHECK(RefineScope(0) == 0);
  });
}

TEST_CASE("A backward inside a node's backward is inside that node, which goes on after it") {
  OnNewThread([] {
    const Nodes nodes;
    const NodeInfo outer = nodes.Make(16, "CheckpointFunctionBackward");
    const NodeInfo inner = nodes.Make(32, "MmBackward0");
    t_node = &outer;
    Push(1, "layer", record::kScopeModule | record::kScopeRecompute);
    const std::uint32_t layer =
        Path(NodePath(0, "CheckpointFunctionBackward"), "layer", record::kScopeModule | record::kScopeRecompute);
    t_node = &inner;
    CHECK(RefineScope(0) == NodePath(layer, "MmBackward0"));
    t_node = &outer;
    CHECK(RefineScope(0) == layer);
    PopFrame(Id(1));
    CHECK(RefineScope(0) == NodePath(0, "CheckpointFunctionBackward"));
    t_node = nullptr;
    CHECK(RefineScope(0) == 0);
  });
}

TEST_CASE("A node at the address of one that is gone is another node") {
  OnNewThread([] {
    const Nodes nodes;
    const NodeInfo gone = nodes.Make(16, "MmBackward0");
    const NodeInfo next = nodes.Make(16, "AddBackward0");
    t_node = &gone;
    CHECK(RefineScope(0) == NodePath(0, "MmBackward0"));
    t_node = &next;
    CHECK(RefineScope(0) == NodePath(0, "AddBackward0"));
    // A frame of something else at that address is not taken for the node's.
    Push(16, "op");
    PopFrame(Id(16));
    CHECK(RefineScope(0) == NodePath(0, "AddBackward0"));
    t_node = nullptr;
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
