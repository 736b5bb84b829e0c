// NCCL's entry points: which communicators there are, what they are asked to do with which buffers, and for which of
// them NCCL gets memory.
//
// A hook holds no HookGuard across its real call: what NCCL asks the driver for in there is to be recorded. A real
// function that does not exist (the program was compiled against a newer NCCL than it runs with) gives
// ncclInvalidUsage; without us, the program would not have started or would have been ended at the call.
#include "interpose/core/recorder.h"
#include "interpose/hooks/nccl_abi.h"
#include "interpose/hooks/nccl_communicators.h"
#include "interpose/hooks/nccl_function.h"

namespace ledger::nccl {
namespace {

// --- Operations ---

constexpr int kNoPeer = -1;

struct Operands {
  record::Operation operation;
  const void* send;
  const void* receive;
  std::size_t count;
  DataType type;
  int peer;
  Communicator communicator;
  Stream stream;
};

std::uint8_t ElementBytes(DataType type) {
  constexpr std::uint8_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};  // in the order of ncclDataType_t
  return type >= 0 && static_cast<std::size_t>(type) < sizeof(kBytes) ? kBytes[type] : 0;
}

void RecordOperation(const Operands& operands) {
  const ErrnoSaver errno_saver;
  if (!Active()) return;
  record::Collective record = {};
  record.commit = {static_cast<std::uint16_t>(record::Kind::kCollective), record::Layer::kNccl,
                   DeviceOf(operands.communicator), 0};
  record.send = reinterpret_cast<std::uintptr_t>(operands.send);
  record.receive = reinterpret_cast<std::uintptr_t>(operands.receive);
  record.count = operands.count;
  record.communicator = Id(operands.communicator);
  record.stream = reinterpret_cast<std::uintptr_t>(operands.stream);
  Describe(operands.communicator);
  record.scope = ScopeOfCollective();
  record.operation = operands.operation;
  record.element_bytes = ElementBytes(operands.type);
  record.datatype = static_cast<std::uint8_t>(operands.type);
  record.peer_or_root = operands.peer >= 0 && operands.peer < 255 ? static_cast<std::uint8_t>(operands.peer) : 255;
  Append(record);
}

bool Accepted(Result result) { return result == kSuccess || result == kInProgress; }

// The frame of every hook that works for a communicator which exists.
template <typename... Arguments>
Result CallFor(Communicator communicator, Function& function, const Entry& entry, Arguments... arguments) {
  auto* const real = function.For<Result(Arguments...)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  if (entry.internal()) return real(arguments...);
  const Behalf behalf(Id(communicator));
  return real(arguments...);
}

template <typename... Arguments>
Result Operate(const Operands& operands, Function& function, const Entry& entry, Arguments... arguments) {
  const Result result = CallFor(operands.communicator, function, entry, arguments...);
  if (Accepted(result) && !entry.internal()) {
    Complete(operands.communicator, entry.caller());
    RecordOperation(operands);
  }
  return result;
}

// --- Communicators ---

std::string_view NameIn(const Config* config) {
  if (config == nullptr || config->magic != kConfigMagic || config->size < sizeof(Config)) return {};
  return config->communicator_name == nullptr ? std::string_view{} : std::string_view{config->communicator_name};
}

template <typename... Arguments>
Result Make(Communicator* made, Description description, Function& function, const Entry& entry,
            Arguments... arguments) {
  auto* const real = function.For<Result(Arguments...)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  if (entry.internal()) return real(arguments...);
  description.token = NewToken();
  Result result;
  {
    const Behalf behalf(description.token);
    result = real(arguments...);
  }
  if (Accepted(result) && made != nullptr && *made != nullptr) Made(*made, description, entry.caller());
  return result;
}

Description FromId(int ranks, int rank, const UniqueId* id, const Config* config) {
  Description description;
  description.ranks = ranks;
  description.rank = rank;
  if (id != nullptr) description.id_hash = Hash(id->bytes, sizeof(id->bytes), 0);
  description.name = NameIn(config);
  return description;
}

Result Destroy(Communicator communicator, Function& function, const Entry& entry) {
  const std::int8_t device = entry.internal() ? record::kNoDevice : Forget(communicator);
  const Result result = CallFor(communicator, function, entry, communicator);
  if (Accepted(result) && !entry.internal()) RecordDestroyed(communicator, device);
  return result;
}

void RecordGroup(record::Kind kind) {
  const ErrnoSaver errno_saver;
  if (!Active()) return;
  record::Range record = {};
  record.commit = {static_cast<std::uint16_t>(kind), record::Layer::kNccl, record::kNoDevice, 0};
  record.scope = CurrentScope();
  Append(record);
}

template <typename... Arguments>
Result EndGroup(Function& function, const Entry& entry, Arguments... arguments) {
  auto* const real = function.For<Result(Arguments...)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  if (entry.internal()) return real(arguments...);
  Result result;
  {
    const Behalf behalf(CommunicatorOfGroup());
    result = real(arguments...);
  }
  const bool outermost = GroupEnded();
  if (Accepted(result)) {
    if (outermost) CompleteAll(entry.caller());
    RecordGroup(record::Kind::kGroupEnd);
  }
  return result;
}

// Memory that the program gets from NCCL, to register it: NCCL asks the driver for it, and the tag says who asked NCCL.
void RecordTag(record::Kind kind, const void* address, std::size_t bytes) {
  const ErrnoSaver errno_saver;
  if (!Active()) return;
  record::Tag record = {};
  record.commit = {static_cast<std::uint16_t>(kind), record::Layer::kNccl, record::kNoDevice, 0};
  record.address = reinterpret_cast<std::uintptr_t>(address);
  record.size = bytes;
  record.text = kind == record::Kind::kTag ? InternText("ncclMemAlloc") : 0;
  record.scope = CurrentScope();
  Append(record);
}

}  // namespace

// clang-format off
#define LEDGER_NCCL(name)                               \
  static constinit Function g_##name{#name};            \
  extern "C" [[gnu::visibility("default")]] Result name
#define LEDGER_ENTRY Entry(__builtin_return_address(0))
// clang-format on

using record::Operation;

LEDGER_NCCL(ncclAllReduce)
(const void* send, void* receive, std::size_t count, DataType type, ReductionOperator reduction,
 Communicator communicator, Stream stream) {
  return Operate({Operation::kAllReduce, send, receive, count, type, kNoPeer, communicator, stream}, g_ncclAllReduce,
                 LEDGER_ENTRY, send, receive, count, type, reduction, communicator, stream);
}

LEDGER_NCCL(ncclReduce)
(const void* send, void* receive, std::size_t count, DataType type, ReductionOperator reduction, int root,
 Communicator communicator, Stream stream) {
  return Operate({Operation::kReduce, send, receive, count, type, root, communicator, stream}, g_ncclReduce,
                 LEDGER_ENTRY, send, receive, count, type, reduction, root, communicator, stream);
}

LEDGER_NCCL(ncclBroadcast)
(const void* send, void* receive, std::size_t count, DataType type, int root, Communicator communicator,
 Stream stream) {
  return Operate({Operation::kBroadcast, send, receive, count, type, root, communicator, stream}, g_ncclBroadcast,
                 LEDGER_ENTRY, send, receive, count, type, root, communicator, stream);
}

LEDGER_NCCL(ncclBcast)
(void* buffer, std::size_t count, DataType type, int root, Communicator communicator, Stream stream) {
  return Operate({Operation::kBroadcast, buffer, buffer, count, type, root, communicator, stream}, g_ncclBcast,
                 LEDGER_ENTRY, buffer, count, type, root, communicator, stream);
}

LEDGER_NCCL(ncclAllGather)
(const void* send, void* receive, std::size_t count, DataType type, Communicator communicator, Stream stream) {
  return Operate({Operation::kAllGather, send, receive, count, type, kNoPeer, communicator, stream}, g_ncclAllGather,
                 LEDGER_ENTRY, send, receive, count, type, communicator, stream);
}

LEDGER_NCCL(ncclReduceScatter)
(const void* send, void* receive, std::size_t count, DataType type, ReductionOperator reduction,
 Communicator communicator, Stream stream) {
  return Operate({Operation::kReduceScatter, send, receive, count, type, kNoPeer, communicator, stream},
                 g_ncclReduceScatter, LEDGER_ENTRY, send, receive, count, type, reduction, communicator, stream);
}

LEDGER_NCCL(ncclAlltoAll)
(const void* send, void* receive, std::size_t count, DataType type, Communicator communicator, Stream stream) {
  return Operate({Operation::kAllToAll, send, receive, count, type, kNoPeer, communicator, stream}, g_ncclAlltoAll,
                 LEDGER_ENTRY, send, receive, count, type, communicator, stream);
}

LEDGER_NCCL(ncclGather)
(const void* send, void* receive, std::size_t count, DataType type, int root, Communicator communicator,
 Stream stream) {
  return Operate({Operation::kGather, send, receive, count, type, root, communicator, stream}, g_ncclGather,
                 LEDGER_ENTRY, send, receive, count, type, root, communicator, stream);
}

LEDGER_NCCL(ncclScatter)
(const void* send, void* receive, std::size_t count, DataType type, int root, Communicator communicator,
 Stream stream) {
  return Operate({Operation::kScatter, send, receive, count, type, root, communicator, stream}, g_ncclScatter,
                 LEDGER_ENTRY, send, receive, count, type, root, communicator, stream);
}

LEDGER_NCCL(ncclSend)
(const void* send, std::size_t count, DataType type, int peer, Communicator communicator, Stream stream) {
  return Operate({Operation::kSend, send, nullptr, count, type, peer, communicator, stream}, g_ncclSend, LEDGER_ENTRY,
                 send, count, type, peer, communicator, stream);
}

LEDGER_NCCL(ncclRecv)
(void* receive, std::size_t count, DataType type, int peer, Communicator communicator, Stream stream) {
  return Operate({Operation::kReceive, nullptr, receive, count, type, peer, communicator, stream}, g_ncclRecv,
                 LEDGER_ENTRY, receive, count, type, peer, communicator, stream);
}

LEDGER_NCCL(ncclGroupStart)() {
  const Entry entry(__builtin_return_address(0));
  auto* const real = g_ncclGroupStart.For<Result()>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  const Result result = real();
  if (result == kSuccess && !entry.internal()) {
    GroupStarted();
    RecordGroup(record::Kind::kGroupStart);
  }
  return result;
}

LEDGER_NCCL(ncclGroupEnd)() { return EndGroup(g_ncclGroupEnd, LEDGER_ENTRY); }

// Ends a group as well, and only estimates how long its operations would take.
LEDGER_NCCL(ncclGroupSimulateEnd)(void* estimate) { return EndGroup(g_ncclGroupSimulateEnd, LEDGER_ENTRY, estimate); }

LEDGER_NCCL(ncclCommInitRank)(Communicator* made, int ranks, UniqueId id, int rank) {
  return Make(made, FromId(ranks, rank, &id, nullptr), g_ncclCommInitRank, LEDGER_ENTRY, made, ranks, id, rank);
}

LEDGER_NCCL(ncclCommInitRankConfig)(Communicator* made, int ranks, UniqueId id, int rank, Config* config) {
  return Make(made, FromId(ranks, rank, &id, config), g_ncclCommInitRankConfig, LEDGER_ENTRY, made, ranks, id, rank,
              config);
}

LEDGER_NCCL(ncclCommInitRankScalable)
(Communicator* made, int ranks, int rank, int id_count, UniqueId* ids, Config* config) {
  return Make(made, FromId(ranks, rank, id_count > 0 ? ids : nullptr, config), g_ncclCommInitRankScalable, LEDGER_ENTRY,
              made, ranks, rank, id_count, ids, config);
}

LEDGER_NCCL(ncclCommInitAll)(Communicator* made, int count, const int* devices) {
  const Entry entry(__builtin_return_address(0));
  auto* const real = g_ncclCommInitAll.For<Result(Communicator*, int, const int*)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  Description description;
  description.token = NewToken();  // one for all of them: their memory is told apart by its device
  description.id_hash = Hash(&description.token, sizeof(description.token), 0);
  description.ranks = count;
  Result result;
  {
    const Behalf behalf(description.token);
    result = real(made, count, devices);
  }
  if (!Accepted(result) || made == nullptr || entry.internal()) return result;
  for (description.rank = 0; description.rank < count; ++description.rank) {
    if (made[description.rank] != nullptr) Made(made[description.rank], description, entry.caller());
  }
  return result;
}

LEDGER_NCCL(ncclCommSplit)(Communicator parent, int color, int key, Communicator* made, Config* config) {
  Description description;
  description.parent = Id(parent);
  description.id_hash = HashOfSplit(parent, static_cast<std::uint64_t>(static_cast<std::int64_t>(color)));
  description.name = NameIn(config);
  return Make(color == kNoColor ? nullptr : made, description, g_ncclCommSplit, LEDGER_ENTRY, parent, color, key, made,
              config);
}

LEDGER_NCCL(ncclCommShrink)
(Communicator parent, int* excluded, int excluded_count, Communicator* made, Config* config, int flags) {
  Description description;
  description.parent = Id(parent);
  if (excluded != nullptr && excluded_count > 0) {
    const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(excluded_count);
    description.id_hash = HashOfSplit(parent, Hash(excluded, bytes, 0));
    description.ranks = RanksOf(parent) > excluded_count ? RanksOf(parent) - excluded_count : 0;
  }
  description.name = NameIn(config);
  return Make(made, description, g_ncclCommShrink, LEDGER_ENTRY, parent, excluded, excluded_count, made, config, flags);
}

LEDGER_NCCL(ncclCommFinalize)(Communicator communicator) {
  return CallFor(communicator, g_ncclCommFinalize, LEDGER_ENTRY, communicator);
}

LEDGER_NCCL(ncclCommDestroy)(Communicator communicator) {
  return Destroy(communicator, g_ncclCommDestroy, LEDGER_ENTRY);
}

LEDGER_NCCL(ncclCommAbort)(Communicator communicator) { return Destroy(communicator, g_ncclCommAbort, LEDGER_ENTRY); }

LEDGER_NCCL(ncclCommRegister)(Communicator communicator, void* buffer, std::size_t bytes, void** handle) {
  return CallFor(communicator, g_ncclCommRegister, LEDGER_ENTRY, communicator, buffer, bytes, handle);
}

LEDGER_NCCL(ncclCommDeregister)(Communicator communicator, void* handle) {
  return CallFor(communicator, g_ncclCommDeregister, LEDGER_ENTRY, communicator, handle);
}

LEDGER_NCCL(ncclCommWindowRegister)
(Communicator communicator, void* buffer, std::size_t bytes, Window* window, int flags) {
  return CallFor(communicator, g_ncclCommWindowRegister, LEDGER_ENTRY, communicator, buffer, bytes, window, flags);
}

LEDGER_NCCL(ncclCommWindowDeregister)(Communicator communicator, Window window) {
  return CallFor(communicator, g_ncclCommWindowDeregister, LEDGER_ENTRY, communicator, window);
}

LEDGER_NCCL(ncclMemAlloc)(void** address, std::size_t bytes) {
  const Entry entry(__builtin_return_address(0));
  auto* const real = g_ncclMemAlloc.For<Result(void**, std::size_t)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  const Result result = real(address, bytes);
  if (result == kSuccess && address != nullptr && !entry.internal()) {
    RecordTag(record::Kind::kTag, *address, bytes);
  }
  return result;
}

LEDGER_NCCL(ncclMemFree)(void* address) {
  const Entry entry(__builtin_return_address(0));
  auto* const real = g_ncclMemFree.For<Result(void*)>(entry.caller());
  if (real == nullptr) return kInvalidUsage;
  if (address != nullptr && !entry.internal()) RecordTag(record::Kind::kUntag, address, 0);
  return real(address);
}

}  // namespace ledger::nccl
