#include "interpose/hooks/nccl_communicators.h"

#include <atomic>

#include "interpose/core/collective_source.h"
#include "interpose/core/definitions.h"
#include "interpose/core/recorder.h"
#include "interpose/hooks/nccl_function.h"

namespace ledger::nccl {
namespace {

constexpr std::uint64_t kTokenBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kMixed = ~std::uint64_t{0};  // calls for more than one communicator in one group

constinit std::atomic<std::uint64_t> g_last_token{0};
constinit thread_local std::uint64_t t_group_communicator = 0;
constinit thread_local std::uint32_t t_group_depth = 0;

// One slot per live communicator. A slot is claimed by compare-and-swap (kClaimed), filled, and published by the store
// of the handle. Its fields are written by the thread that makes the communicator, or under the exchange of
// `incomplete`.
constexpr std::size_t kSlots = 1024;
constexpr std::uint64_t kClaimed = 1;
struct Slot {
  std::atomic<std::uint64_t> communicator{0};
  std::atomic<bool> incomplete{false};
  std::atomic<bool> described{false};
  std::atomic<bool> looked_up{false};  // its name, among the framework's groups
  std::atomic<std::int8_t> device{record::kNoDevice};
  std::atomic<std::int32_t> ranks{0};
  std::atomic<std::uint32_t> splits{0};
  std::uint64_t token = 0;
  std::uint64_t id_hash = 0;
  std::uint64_t parent = 0;
  std::int32_t rank = 0;
  std::uint32_t name = 0;
};
constinit Slot g_slots[kSlots];
constinit std::atomic<std::uint32_t> g_used{0};        // slots beyond these were never used
constinit std::atomic<std::uint32_t> g_incomplete{0};  // how many slots are; so that the usual case costs one load

constinit Function g_get_async_error{"ncclCommGetAsyncError"};
constinit Function g_count{"ncclCommCount"};
constinit Function g_user_rank{"ncclCommUserRank"};
constinit Function g_device{"ncclCommCuDevice"};

Slot* Find(Communicator communicator) {
  const std::uint32_t used = g_used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (g_slots[i].communicator.load(std::memory_order_acquire) == Id(communicator)) return &g_slots[i];
  }
  return nullptr;
}

Slot* Claim() {
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    std::uint64_t expected = 0;
    if (!g_slots[i].communicator.compare_exchange_strong(expected, kClaimed, std::memory_order_acq_rel)) continue;
    std::uint32_t used = g_used.load(std::memory_order_relaxed);
    while (used < i + 1 && !g_used.compare_exchange_weak(used, i + 1, std::memory_order_acq_rel)) {
    }
    return &g_slots[i];
  }
  return nullptr;
}

void Write(Communicator communicator, const Slot& slot) {
  if (!Active() && !Wake()) return;
  record::CommunicatorInfo info = {};
  info.commit = {static_cast<std::uint16_t>(record::Kind::kCommunicator), record::Layer::kNccl, slot.device, 0};
  info.communicator = Id(communicator);
  info.id_hash = slot.id_hash;
  info.nranks = static_cast<std::uint32_t>(slot.ranks.load(std::memory_order_relaxed));
  info.rank = static_cast<std::uint32_t>(slot.rank);
  info.parent = slot.parent;
  info.name = slot.name;
  info.scope = CurrentScope();
  info.token = slot.token;
  Append(info);
}

// NCCL logs a warning when a communicator is asked that is not ready, so its state is asked first.
bool IsReady(Communicator communicator, const void* caller) {
  auto* const get_async_error = g_get_async_error.For<Result(Communicator, Result*)>(caller);
  Result state = kSuccess;
  return get_async_error == nullptr || (get_async_error(communicator, &state) == kSuccess && state == kSuccess);
}

bool Ask(Function& function, Communicator communicator, const void* caller, int* answer) {
  auto* const get = function.For<Result(Communicator, int*)>(caller);
  return get != nullptr && get(communicator, answer) == kSuccess;
}

// True if NCCL could be asked.
bool AskNccl(Communicator communicator, Slot& slot, const void* caller) {
  if (InGroup() || !IsReady(communicator, caller)) return false;
  int answer = 0;
  if (Ask(g_count, communicator, caller, &answer)) slot.ranks = answer;
  if (Ask(g_user_rank, communicator, caller, &answer)) slot.rank = answer;
  if (Ask(g_device, communicator, caller, &answer) && answer >= 0 && answer < 127) {
    slot.device = static_cast<std::int8_t>(answer);
  }
  return true;
}

void CompleteSlot(Communicator communicator, Slot& slot, const void* caller) {
  if (!slot.incomplete.exchange(false, std::memory_order_acq_rel)) return;
  if (AskNccl(communicator, slot, caller)) {
    g_incomplete.fetch_sub(1, std::memory_order_relaxed);
    Write(communicator, slot);
  } else {
    slot.incomplete.store(true, std::memory_order_release);
  }
}

// The group that has the communicator's name. Something else than the framework may have given that name: a group of
// another size is not it. A look-up in vain is not cheap, and so there is only one.
bool LookUp(const CollectiveSource& source, Slot& slot, record::ProcessGroupInfo* info) {
  const std::string_view name = TextOf(slot.name);
  if (name.empty() || slot.looked_up.exchange(true, std::memory_order_relaxed)) return false;
  return source.process_group_named(name.data(), name.size(), info) &&
         info->ranks == static_cast<std::uint32_t>(slot.ranks.load(std::memory_order_relaxed));
}

}  // namespace

std::uint64_t NewToken() { return kTokenBit | (g_last_token.fetch_add(1, std::memory_order_relaxed) + 1); }

Behalf::Behalf(std::uint64_t communicator_or_token) : previous_(ExchangeCommunicator(communicator_or_token)) {
  if (t_group_depth == 0 || t_group_communicator == communicator_or_token) return;
  t_group_communicator = t_group_communicator == 0 ? communicator_or_token : kMixed;
}

Behalf::~Behalf() { ExchangeCommunicator(previous_); }

void GroupStarted() {
  if (t_group_depth++ == 0) t_group_communicator = 0;
}
std::uint64_t CommunicatorOfGroup() { return t_group_communicator == kMixed ? 0 : t_group_communicator; }
bool GroupEnded() { return t_group_depth == 0 || --t_group_depth == 0; }
bool InGroup() { return t_group_depth != 0; }

void Made(Communicator communicator, const Description& description, const void* caller) {
  const ErrnoSaver errno_saver;
  Wake();
  Slot* const slot = Claim();
  Slot spare;
  Slot& filled = slot != nullptr ? *slot : spare;  // beyond kSlots, only what is learnt later is lost
  filled.device = record::kNoDevice;
  filled.ranks = description.ranks;
  filled.splits = 0;
  filled.described = false;
  filled.looked_up = false;
  filled.token = description.token;
  filled.id_hash = description.id_hash;
  filled.parent = description.parent;
  filled.rank = description.rank;
  filled.name = InternText(description.name);
  const bool complete = AskNccl(communicator, filled, caller);
  Write(communicator, filled);
  if (slot == nullptr) return;
  if (!complete) g_incomplete.fetch_add(1, std::memory_order_relaxed);
  slot->incomplete.store(!complete, std::memory_order_relaxed);
  slot->communicator.store(Id(communicator), std::memory_order_release);
}

void Complete(Communicator communicator, const void* caller) {
  if (g_incomplete.load(std::memory_order_relaxed) == 0) return;
  const ErrnoSaver errno_saver;
  if (Slot* const slot = Find(communicator); slot != nullptr) CompleteSlot(communicator, *slot, caller);
}

void CompleteAll(const void* caller) {
  if (g_incomplete.load(std::memory_order_relaxed) == 0) return;
  const ErrnoSaver errno_saver;
  const std::uint32_t used = g_used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t id = g_slots[i].communicator.load(std::memory_order_acquire);
    if (id > kClaimed) CompleteSlot(reinterpret_cast<Communicator>(id), g_slots[i], caller);
  }
}

void Describe(Communicator communicator) {
  const CollectiveSource* const source = CurrentCollectiveSource();
  if (source == nullptr) return;
  Slot* const slot = Find(communicator);
  if (slot == nullptr || slot->described.load(std::memory_order_relaxed)) return;
  record::ProcessGroupInfo info = {};
  if (!source->process_group(&info) && !LookUp(*source, *slot, &info)) return;
  if (slot->described.exchange(true, std::memory_order_relaxed)) return;
  info.commit = {static_cast<std::uint16_t>(record::Kind::kProcessGroup), record::Layer::kOp, slot->device, 0};
  info.communicator = Id(communicator);
  info.scope = CurrentScope();
  Append(info);
}

std::uint32_t ScopeOfCollective() {
  const std::uint32_t scope = CurrentScope();
  const CollectiveSource* const source = CurrentCollectiveSource();
  const std::uint32_t name = source == nullptr ? 0 : source->name();
  return name == 0 ? scope : ScopeUnder(scope, ScopeKind{record::Layer::kOp, record::kScopeCollective, 0}, name);
}

std::int8_t DeviceOf(Communicator communicator) {
  const Slot* const slot = Find(communicator);
  return slot == nullptr ? record::kNoDevice : slot->device.load(std::memory_order_relaxed);
}

std::uint64_t Hash(const void* bytes, std::size_t size, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ seed;  // FNV-1a
  for (std::size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const std::uint8_t*>(bytes)[i]) * 0x100000001b3u;
  }
  return hash;
}

std::uint64_t HashOfSplit(Communicator parent, std::uint64_t how) {
  Slot* const slot = Find(parent);
  if (slot == nullptr || slot->id_hash == 0) return 0;
  const std::uint64_t parts[] = {slot->splits.fetch_add(1, std::memory_order_relaxed), how};
  return Hash(parts, sizeof(parts), slot->id_hash);
}

int RanksOf(Communicator communicator) {
  const Slot* const slot = Find(communicator);
  return slot == nullptr ? 0 : slot->ranks.load(std::memory_order_relaxed);
}

std::int8_t Forget(Communicator communicator) {
  Slot* const slot = Find(communicator);
  if (slot == nullptr) return record::kNoDevice;
  const std::int8_t device = slot->device.load(std::memory_order_relaxed);
  if (slot->incomplete.exchange(false)) g_incomplete.fetch_sub(1, std::memory_order_relaxed);
  slot->communicator.store(0, std::memory_order_release);
  return device;
}

void RecordDestroyed(Communicator communicator, std::int8_t device) {
  const ErrnoSaver errno_saver;
  if (!Active()) return;
  record::CommunicatorInfo info = {};
  info.commit = {static_cast<std::uint16_t>(record::Kind::kCommunicatorDestroy), record::Layer::kNccl, device, 0};
  info.communicator = Id(communicator);
  info.scope = CurrentScope();
  Append(info);
}

}  // namespace ledger::nccl
