// The ledger file: its header page and its 64-byte records.
//
// This is the one header that the recorder (interpose/) and the reader (ledger/) share. It is freestanding: no library,
// no allocation, no code beyond constants. docs/format.md is the specification in prose; a test holds the two together.
//
// A file is one header page of 4,096 bytes, followed by slots of 64 bytes. Slot i lies at 4096 + 64 * i, and i is the
// event's sequence number: the total order of the process. A writer reserves a slot by an atomic add on
// FileHeader::reserved, fills bytes 8..63, and commits by one release store of the first eight bytes (Commit). A slot
// whose Commit is zero was reserved and never committed (the process died in between): it is one lost record, and the
// reader counts it. Integers are little-endian. Unused fields are zero. A reader skips kinds that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ledger::record {

inline constexpr char kMagic[8] = {'G', 'P', 'U', 'L', 'E', 'D', 'G', 'R'};
// Minor: something was added that an older reader may skip. Major: an older reader must refuse.
inline constexpr std::uint16_t kVersionMajor = 1;
inline constexpr std::uint16_t kVersionMinor = 0;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kRecordBytes = 64;
inline constexpr std::size_t kTextChunkBytes = 48;
inline constexpr std::size_t kMaxTextBytes = 960;  // longer texts are cut, and end in "..."
inline constexpr std::int8_t kNoDevice = -1;

// What a record says. The layout struct that goes with each kind is named behind it.
enum class Kind : std::uint16_t {
  kNone = 0,
  // Definitions: written once, before the first record that refers to them.
  kText = 1,          // TextChunk: a piece of an interned text
  kScope = 2,         // ScopeDefinition: a node of the trie of scopes
  kClock = 3,         // ClockAnchor: ticks against the system's clocks
  kDevice = 4,        // DeviceInfo
  kSetting = 5,       // Setting: key and value, both texts
  kCommunicator = 6,  // CommunicatorInfo: a NCCL communicator came to be
  kProcessGroup = 7,  // ProcessGroupInfo: the framework's process group that a communicator works for
  // Memory below the caching allocator.
  kAlloc = 16,          // Allocation: bytes were got
  kFree = 17,           // Allocation: bytes are about to be given back
  kAllocFailed = 18,    // Allocation: a request was refused; `result` says why
  kHandleCreate = 19,   // Allocation: cuMemCreate; address is the handle, size the physical bytes
  kHandleImport = 20,   // Allocation: a handle to another process's physical memory; size is 0 where unknown
  kHandleRetain = 21,   // Allocation: one more reference to a handle
  kHandleRelease = 22,  // Allocation: one reference less
  kMap = 23,            // Mapping: physical memory of a handle appeared at an address
  kUnmap = 24,          // Mapping: it disappeared from there (handle is 0: not said by the call)
  kReserve = 25,        // Allocation: address space without memory
  kUnreserve = 26,      // Allocation
  kDeviceReset = 27,    // DeviceSample: every allocation of this process on the device is gone
  kDeviceSample = 28,   // DeviceSample: what the driver says is used, at this instant
  kPoolSample = 29,     // PoolSample: a stream-ordered pool's own counters
  // The framework's caching allocator.
  kBlockAlloc = 32,  // Block
  kBlockFree = 33,   // Block: freed by its owner; a stream may still use it
  kBlockOom = 34,    // BlockOom: the allocator gave up
  // The same allocator, as the op adapter sees it.
  kBlockPending = 35,   // BlockDetail: the kBlockFree that follows waits until the streams that use the block are done
  kBlockReusable = 36,  // BlockDetail: such a free completed
  kBlockSeen = 37,      // BlockDetail: a block that lived before the adapter was there
  kSegmentAlloc = 38,   // Segment: the allocator got a segment
  kSegmentFree = 39,    // Segment: it gave one back
  kSegmentMap = 40,     // Segment: a part of an expandable segment became backed by memory
  kSegmentUnmap = 41,   // Segment: it no longer is
  kSegmentSeen = 42,    // Segment: one that existed before the adapter was there
  // Time and place.
  kRangePush = 48,   // Range: this thread's scope becomes `scope`
  kRangePop = 49,    // Range: `scope` is the one that ended
  kRangeStart = 50,  // Range: a process-wide range with an id
  kRangeEnd = 51,    // Range
  kMark = 52,        // Range: an instant; `scope` is where, `text` is what
  // Communication.
  kCollective = 64,           // Collective: a NCCL operation was enqueued
  kCommunicatorDestroy = 65,  // CommunicatorInfo
  kGroupStart = 66,           // Range: `scope` only
  kGroupEnd = 67,             // Range: `scope` only
  // Said through the public API.
  kTag = 80,        // Tag: `text` names what lies at an address
  kUntag = 81,      // Tag
  kPause = 82,      // Range: from here on nothing is recorded ...
  kResume = 83,     // Range: ... until here
  kValueRead = 84,  // ValueRead: a simulated device's value was read back by the program; `text` is the place
  // Who holds it: said by the framework's graph (op adapter) and by the agent.
  kSavedTensor = 96,  // SavedTensor: an autograd node saved a tensor for backward
  kPhase = 97,        // Phase: the process entered a phase of its training step
  kName = 98,         // Name: what lies in the storage at an address
};

// Which memory an Allocation is about.
enum class Memory : std::uint8_t {
  kUnknown = 0,
  kLinear = 1,          // cudaMalloc, cuMemAlloc
  kPitched = 2,         // cudaMallocPitch, cudaMalloc3D: size is pitch * height * depth
  kManaged = 3,         // cudaMallocManaged: resident on either side
  kHost = 4,            // pinned host memory, allocated
  kHostRegistered = 5,  // pinned host memory, the caller's own
  kAsync = 6,           // stream-ordered, out of a pool: pool bytes, not physical ones
  kArray = 7,           // CUDA arrays: size is width * height * depth * element; the driver's padding is unknown
  kPhysical = 8,        // cuMemCreate on a device
  kPhysicalHost = 9,    // cuMemCreate on the host or one of its NUMA nodes
  kPeer = 10,           // another process's memory, mapped here: charged to its owner
  kAddressSpace = 11,   // cuMemAddressReserve
};

// Where the recorder saw it. One allocation that is seen at several layers is one record, of the outermost layer.
enum class Layer : std::uint8_t {
  kNone = 0,
  kDriver = 1,
  kRuntime = 2,
  kNccl = 3,
  kAllocator = 4,  // the framework's caching allocator
  kNvtx = 5,
  kApi = 6,    // ledger.h
  kAgent = 7,  // the Python agent: phases, names, modules
  kOp = 8,     // the op adapter: operators, backward nodes, user scopes of the framework
};

// The first eight bytes of a record, written last.
struct Commit {
  std::uint16_t kind;
  Layer layer;
  std::int8_t device;    // CUDA ordinal in this process; kNoDevice: host, or not known
  std::uint32_t thread;  // the kernel's thread id
};

struct TextChunk {
  Commit commit;
  std::uint32_t id;           // 1, 2, 3, ...; 0 is the empty text
  std::uint16_t total_bytes;  // of the whole text
  std::uint16_t chunk;        // this one holds bytes [48 * chunk, ...)
  char bytes[kTextChunkBytes];
};

struct ScopeDefinition {
  Commit commit;
  std::uint64_t ticks;
  std::uint32_t id;      // 1, 2, 3, ...; 0 is the root
  std::uint32_t parent;  // 0: below the root
  std::uint32_t name;    // text
  std::uint32_t domain;  // text: the NVTX domain; 0 for the default one
  std::uint32_t origin;  // of a backward node: the scope (ranges and modules) in which its forward ran; 0: not known
  Layer source;
  std::uint8_t flags;  // kScope...
  std::uint8_t reserved[26];
};
// What a scope of the layers kOp and kAgent is. A path is ranges first, then modules and ops as they nest.
inline constexpr std::uint8_t kScopeBackward = 1;    // a backward node
inline constexpr std::uint8_t kScopeRecompute = 2;   // forward code that runs again inside backward, with all below it
inline constexpr std::uint8_t kScopeModule = 4;      // a module's forward; the name is its fully qualified name
inline constexpr std::uint8_t kScopeUser = 8;        // a range of the framework's profiler (record_function)
inline constexpr std::uint8_t kScopeOptimizer = 16;  // such a range around an optimizer's step or zero_grad
// What the framework calls a collective, as the innermost scope of the NCCL operations that it consists of.
inline constexpr std::uint8_t kScopeCollective = 32;

// The relation of ticks to the system's clocks. Readers interpolate between anchors.
struct ClockAnchor {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t monotonic_ns;
  std::uint64_t realtime_ns;
  std::uint8_t reserved[32];
};

struct DeviceInfo {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t total_bytes;
  std::uint8_t uuid[16];
  std::uint32_t name;                // text
  std::uint32_t pci;                 // text
  std::uint32_t flags;               // kDeviceSimulated
  std::uint32_t compute_capability;  // 10 * major + minor
  std::uint8_t reserved[8];
};
inline constexpr std::uint32_t kDeviceSimulated = 1;

struct Setting {
  Commit commit;
  std::uint64_t ticks;
  std::uint32_t key;    // text, such as "env.PYTORCH_CUDA_ALLOC_CONF", "version.driver", "layer.nvtx"
  std::uint32_t value;  // text
  std::uint8_t reserved[40];
};

struct CommunicatorInfo {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t communicator;  // ncclComm_t
  std::uint64_t id_hash;       // same on all ranks of the communicator; 0: not known
  std::uint32_t nranks;
  std::uint32_t rank;
  std::uint64_t parent;  // the communicator that was split, or 0
  std::uint32_t name;    // text, or 0
  std::uint32_t scope;
  // Stands for the communicator while it is being made and its handle is not known yet: Allocation::context holds the
  // token then, and the handle later on. Never reused in a process; its highest bit is set, which no handle has.
  std::uint64_t token;
};

// Said by the op adapter when the communicator is used for the first time.
struct ProcessGroupInfo {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t communicator;  // ncclComm_t
  std::uint32_t name;          // text: the framework's own, which no other group of the process has
  std::uint32_t description;   // text: what the program calls the group; groups may share one
  std::uint32_t ranks;         // of the group, of which a communicator for sends and receives has two
  std::uint32_t rank;          // of this process in the group
  std::int32_t first_rank;     // of the job: the group's first
  std::int32_t rank_stride;    // from one to the next; 0: there is one rank; kUnevenRanks
  std::uint32_t scope;
  std::uint8_t reserved[12];
};
// The ranks are not evenly spaced, or not known.
inline constexpr std::int32_t kUnevenRanks = -1;

struct Allocation {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;      // pointer, or handle
  std::uint64_t size;         // bytes as asked for; 0 at a free
  std::uint64_t device_used;  // bytes in use on the device after this call, as the driver says; 0: not asked
  std::uint64_t context;      // pool, stream or array, as the call had it; for NCCL's memory: communicator or its token
  std::uint32_t scope;
  std::uint32_t owner;   // text: base name of the library, or of the program, that asked
  std::uint32_t call;    // text: the entry point
  std::uint16_t result;  // error code of the outermost API; 0: success
  Memory memory;
  std::uint8_t reserved;
};

struct Mapping {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t handle;
  std::uint64_t offset;  // into the handle's memory
  std::uint32_t scope;
  std::uint32_t owner;
  std::uint8_t reserved[8];
};

struct DeviceSample {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t free_bytes;
  std::uint64_t total_bytes;
  std::uint32_t scope;
  std::uint32_t why;  // text: the call around which it was taken, or kSampledOutOfMemory
  std::uint8_t reserved[24];
};
// When the allocator gave up.
inline constexpr char kSampledOutOfMemory[] = "out of memory";

struct PoolSample {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t pool;
  std::uint64_t used_bytes;
  std::uint64_t reserved_bytes;
  std::uint64_t used_high_bytes;
  std::uint64_t reserved_high_bytes;
  std::uint32_t scope;
  std::uint8_t reserved[4];
};

// `allocated` and `reserved` are the allocator's own totals after the event.
struct Block {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;  // block bytes, rounded as the allocator does; positive at a free as well
  std::uint64_t allocated;
  std::uint64_t reserved_total;
  std::uint32_t scope;
  std::uint32_t owner;      // text, 0: the framework
  std::uint64_t requested;  // bytes the tensor asked for; 0: not known
};

struct BlockOom {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t requested;
  std::uint64_t allocated;
  std::uint64_t reserved_total;
  std::uint64_t device_free;
  std::uint64_t device_total;
  std::uint32_t scope;
  std::uint8_t reserved[4];
};

struct Range {
  Commit commit;
  std::uint64_t ticks;
  std::uint32_t scope;
  std::uint32_t text;
  std::uint64_t id;  // of a process-wide range
  std::uint64_t payload;
  std::uint32_t domain;  // text: the NVTX domain of a mark or of a process-wide range; 0 for the default one
  std::uint8_t reserved[20];
};

// Operations of Collective::operation.
enum class Operation : std::uint8_t {
  kUnknown = 0,
  kAllReduce = 1,
  kReduce = 2,
  kBroadcast = 3,
  kAllGather = 4,
  kReduceScatter = 5,
  kAllToAll = 6,
  kGather = 7,
  kScatter = 8,
  kSend = 9,
  kReceive = 10,
};

struct Collective {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t send;     // address, or 0
  std::uint64_t receive;  // address, or 0
  std::uint64_t count;    // elements, as the call counts them
  std::uint64_t communicator;
  std::uint64_t stream;
  std::uint32_t scope;
  Operation operation;
  std::uint8_t element_bytes;
  std::uint8_t datatype;      // ncclDataType_t
  std::uint8_t peer_or_root;  // 255: none or larger
};

struct Tag {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;  // 0: whatever lies there
  std::uint32_t text;
  std::uint32_t scope;
  std::uint8_t reserved[24];
};

struct ValueRead {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;
  std::uint32_t text;  // place
  std::uint32_t scope;
  std::uint8_t reserved[24];
};

// What the caching allocator says about a block beyond Block.
struct BlockDetail {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;       // block bytes; 0: not said
  std::uint64_t requested;  // bytes the tensor asked for
  std::uint64_t stream;
  std::uint32_t scope;
  std::uint8_t reserved[12];
};

// Blocks belong to the stream and pool of their segment.
struct Segment {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t stream;
  std::uint64_t pool_id[2];  // the framework's mempool id; {0, 0}: the default pool
  std::uint32_t scope;
  std::uint8_t reserved[4];
};

struct SavedTensor {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;        // of the storage
  std::uint64_t storage_bytes;  // of the storage
  std::uint64_t tensor_bytes;   // elements times width of the tensor, which may be a view of a part
  std::int64_t sequence;        // of the op that saves, ties it to its backward node; -1: not known
  std::uint32_t scope;
  std::uint8_t flags;  // kSaved...
  std::uint8_t reserved[11];
};
inline constexpr std::uint8_t kSavedPacked = 1;  // hooks took the tensor over: the graph does not hold it itself
inline constexpr std::uint8_t kSavedOutput = 2;  // it is the op's own output
inline constexpr std::uint8_t kSavedLeaf = 4;    // it is a leaf that requires a gradient: a parameter, most often

enum class PhaseKind : std::uint8_t {
  kSetup = 0,       // before the first step
  kForward = 1,     // from the forward of a root module until backward starts; the loss belongs to it
  kBackward = 2,    // inside the autograd engine
  kOptimizer = 3,   // inside an optimizer's step
  kBetween = 4,     // after a backward or a step, before the next forward
  kEvaluation = 5,  // the forward of a root module without gradients
};

// A phase belongs to the process and lasts until the next kPhase.
struct Phase {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t step;  // optimizer steps before this one, counting from 0
  PhaseKind phase;
  std::uint8_t reserved[3];
  std::uint32_t scope;
  std::uint32_t text;  // class of the root module or optimizer, or 0
  std::uint8_t padding[28];
};

enum class NameCategory : std::uint8_t {
  kUnknown = 0,
  kParameter = 1,
  kMasterParameter = 2,  // a copy in higher precision that the optimizer updates
  kBuffer = 3,
  kGradient = 4,
  kOptimizerState = 5,     // `key` is the state's own key
  kGatheredParameter = 6,  // a sharded parameter while it is whole
  kCommunicationBuffer = 7,
  kInput = 8,      // what a model was called with: a batch of data
  kWorkspace = 9,  // memory that a library was lent to work in: said by its hook, with layer kRuntime
};

// Holds for the block that contains the address, for the block's whole life.
struct Name {
  Commit commit;
  std::uint64_t ticks;
  std::uint64_t address;     // of the storage
  std::uint64_t bytes;       // of the storage
  std::uint64_t belongs_to;  // a gradient's or state's parameter: the address of its storage; 0: not known
  std::uint64_t elements;    // of the whole tensor, over all ranks; 0: not known
  std::uint32_t text;        // fully qualified name, or 0 where belongs_to has it
  std::uint32_t key;         // text: of optimizer state
  NameCategory category;
  std::uint8_t element_bytes;
  std::uint8_t flags;  // kName...
  std::uint8_t reserved[5];
};
inline constexpr std::uint8_t kNameSharded = 1;    // the storage holds this rank's shard
inline constexpr std::uint8_t kNameFromGraph = 4;  // said by the gradient accumulator, not by the agent

// Reasons for which something could not be recorded; FileHeader::losses is indexed by them.
enum class Loss : std::uint8_t {
  kDiskFull = 0,         // the file could not grow
  kFileLimit = 1,        // LEDGER_MAX_BYTES was reached
  kTextTable = 2,        // no room to intern another text: records refer to text 0 instead
  kScopeTable = 3,       // no room for another scope: records refer to the parent instead
  kRangeDepth = 4,       // ranges nested too deeply on one thread
  kUnbalancedPop = 5,    // a range was popped that had not been pushed (or before the recorder was there)
  kUnresolved = 6,       // a real entry point could not be found
  kTooManyVariants = 7,  // more real functions behind one entry point than there are wrappers
  kInternal = 8,         // an internal error; the part that failed switched itself off
  kCount = 16,
};

// Where FileHeader::ticks_source comes from.
enum class TicksSource : std::uint32_t {
  kMonotonic = 0,  // CLOCK_MONOTONIC, nanoseconds
  kTsc = 1,        // the processor's invariant time-stamp counter
};

struct FileHeader {
  char magic[8];
  std::uint16_t version_major;
  std::uint16_t version_minor;
  std::uint32_t header_bytes;
  std::uint32_t record_bytes;
  std::uint32_t flags;  // kRankKnown
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::int32_t rank;  // of the job; 0 where the environment does not say
  std::int32_t local_rank;
  std::int32_t world_size;
  TicksSource ticks_source;
  // Two anchors: when the library was loaded, and when the file was opened.
  std::uint64_t load_ticks, load_monotonic_ns, load_realtime_ns;
  std::uint64_t open_ticks, open_monotonic_ns, open_realtime_ns;
  std::uint64_t reserved;   // slots handed out so far (written atomically)
  std::uint64_t clean_end;  // 1: the process ended by way of its exit handlers and nothing is missing
  std::uint64_t end_ticks;
  std::uint64_t recorder_peak_rss_bytes;  // memory of the recorder itself: file windows and tables, at their largest
  std::uint64_t losses[static_cast<std::size_t>(Loss::kCount)];
  char recorder_version[32];
  char host[64];
  char program[256];  // the start of the command line, spaces between arguments
  char run_id[64];    // the launcher's id of the run (TORCHELASTIC_RUN_ID, SLURM_JOB_ID), or empty
};
inline constexpr std::uint32_t kRankKnown = 1;

static_assert(sizeof(Commit) == 8);
static_assert(sizeof(TextChunk) == kRecordBytes);
static_assert(sizeof(ScopeDefinition) == kRecordBytes);
static_assert(sizeof(ClockAnchor) == kRecordBytes);
static_assert(sizeof(DeviceInfo) == kRecordBytes);
static_assert(sizeof(Setting) == kRecordBytes);
static_assert(sizeof(CommunicatorInfo) == kRecordBytes);
static_assert(sizeof(ProcessGroupInfo) == kRecordBytes);
static_assert(sizeof(Allocation) == kRecordBytes);
static_assert(sizeof(Mapping) == kRecordBytes);
static_assert(sizeof(DeviceSample) == kRecordBytes);
static_assert(sizeof(PoolSample) == kRecordBytes);
static_assert(sizeof(Block) == kRecordBytes);
static_assert(sizeof(BlockOom) == kRecordBytes);
static_assert(sizeof(Range) == kRecordBytes);
static_assert(sizeof(Collective) == kRecordBytes);
static_assert(sizeof(Tag) == kRecordBytes);
static_assert(sizeof(ValueRead) == kRecordBytes);
static_assert(sizeof(BlockDetail) == kRecordBytes);
static_assert(sizeof(Segment) == kRecordBytes);
static_assert(sizeof(SavedTensor) == kRecordBytes);
static_assert(sizeof(Phase) == kRecordBytes);
static_assert(sizeof(Name) == kRecordBytes);
static_assert(sizeof(FileHeader) <= kHeaderBytes);
static_assert(std::is_trivially_copyable_v<FileHeader> && std::is_trivially_copyable_v<Block>);

}  // namespace ledger::record
