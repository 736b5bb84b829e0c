// What libledger.so and the op adapter give each other. The adapter is C++ built against one version of the framework;
// libledger.so knows nothing of the framework's types. Between them go plain functions and pointers only.
//
// libledger.so calls Adapter::attach once per process, with the interpreter's lock, in most programs after the
// framework's CUDA allocator was initialised. Both tables live as long as the process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/record/record.h"

namespace ledger {

struct FrameStack;

// Grows with every change of the tables below: libledger.so refuses an adapter of another number.
inline constexpr std::uint32_t kAdapterInterface = 7;

// A backward node.
struct NodeInfo {
  const void* node;
  std::uint32_t text;    // its name
  std::uint32_t origin;  // the scope of its forward; 0: not known
};

// What the adapter observes of the framework's profiler.
enum class Observed : std::uint8_t { kOperators, kRanges };

struct AdapterHost {
  std::uint32_t steps_with_ops;  // setting LEDGER_OPS
  bool (*recording)();
  // See scope_frames.h. Names that are not copied stay valid until the frame is left.
  void (*push_op)(const void* identity, std::uint8_t flags, const char* name, std::size_t name_bytes);
  void (*pop)(const void* identity);
  // See profiler_ranges.h.
  FrameStack* (*enter_range)(const void* identity, const char* name, std::size_t name_bytes);
  void (*leave_range)(FrameStack* stack, const void* identity, const char* name, std::size_t name_bytes);
  std::uint32_t (*place)();
  std::uint32_t (*current_scope)();
  // Appends one of the layouts of record.h; thread, and ticks where they are 0, are filled in. `ticks` is the second
  // field of all of them.
  void (*append)(void* record);
  // What the allocator's trace says, under its lock, right before its report of the same block: the bytes that were
  // asked for; that the owner let go of the block; that no stream uses it any more.
  void (*block_requested)(std::uint64_t address, std::uint64_t bytes);
  void (*free_requested)(std::uint64_t address);
  void (*free_completed)(std::int8_t device, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream);
  void (*note_setting)(const char* key, const char* value);
  std::uint32_t (*text)(const char* text, std::size_t bytes);
  // A node of a function written in Python is complete. `context` is the function's context object, borrowed; the
  // interpreter's lock is held.
  void (*context_made)(void* context);
  // A node keeps a tensor whose memory only the interpreter knows: a sharded one, one that a collective has yet to
  // fill. `tensor` is its Python object, borrowed; `flags` are those of SavedTensor. With the interpreter's lock or
  // without. False: there is no agent that could tell.
  bool (*wrapper_saved)(void* tensor, std::uint8_t flags);
};

// Exported as `ledger_torch_adapter`. The first two fields stay where they are for good: libledger.so looks at them
// before it uses anything else of an adapter.
struct Adapter {
  std::uint32_t interface;
  const char* built_for;  // the framework's version
  // Null: attached. Otherwise the reason why it could not be; the text stays valid.
  const char* (*attach)(const AdapterHost* host);
  // After the framework made a SavedVariable out of `tensor` (a `const at::Tensor*`).
  void (*saved_tensor)(const void* saved_variable, const void* tensor, bool is_output);
  // When the framework made a node of the graph; `node` is a `const c10::intrusive_ptr<torch::autograd::Node>*`.
  void (*node_created)(const void* node);
  // The node that this thread is inside of; false: none. Called under the allocator's lock: takes no other lock than
  // the C library's, above all not the interpreter's.
  bool (*current_node)(NodeInfo* info);
  // After a gradient was stored, or added to; `node` is a `const torch::autograd::AccumulateGrad*`.
  void (*gradient_accumulated)(const void* node);
  // At any time, on any thread. Frames that are entered already are left as usual.
  void (*stop_observing)(Observed what);
  // See CollectiveSource (collective_source.h).
  std::uint32_t (*collective_name)();
  bool (*process_group)(record::ProcessGroupInfo* info);
  bool (*process_group_named)(const char* name, std::size_t bytes, record::ProcessGroupInfo* info);
};
inline constexpr char kAdapterSymbol[] = "ledger_torch_adapter";

}  // namespace ledger
