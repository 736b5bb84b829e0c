#include "ledger/report/host_sheet.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ledger/replay/driver_memory.h"

namespace ledger::report {
namespace {

using format::LedgerFile;
using record::Kind;
using record::Memory;

bool OnHost(Memory memory) {
  return memory == Memory::kHost || memory == Memory::kHostRegistered || memory == Memory::kManaged ||
         memory == Memory::kPhysicalHost;
}

absl::string_view NameOf(Memory memory) {
  switch (memory) {
    case Memory::kHostRegistered:
      return "registered";
    case Memory::kManaged:
      return "managed";
    default:
      return "pinned";
  }
}

struct Totals {
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
};

// Replays what is on the host, up to `end`.
class HostReplay {
 public:
  explicit HostReplay(const LedgerFile& file) : file_(file), owners_(file.texts()), driver_(owners_) {}

  Totals RunTo(std::uint64_t end) {
    Totals most;
    const auto slots = file_.slots();
    for (std::uint64_t i = 0; i < end; ++i) {
      if (!slots[i].committed() || !IsMemory(slots[i].kind())) continue;
      driver_.Apply(slots[i], i, anomalies_);
      const replay::HostBytes& host = driver_.host();
      const std::uint64_t bytes = host.pinned + host.registered + host.managed;
      if (bytes > most.bytes) most = {i, bytes};
    }
    return most;
  }

  const replay::DriverMemory& driver() const { return driver_; }

 private:
  static bool IsMemory(Kind kind) { return kind >= Kind::kAlloc && kind <= Kind::kPoolSample; }

  const LedgerFile& file_;
  const replay::OwnerTable owners_;
  replay::DriverMemory driver_;
  replay::Anomalies anomalies_;
};

// What was said to lie in host memory: bytes by the slot of the allocation that they lie in. An address is handed out
// again once it is free, so a name belongs to what lives there when it is said; one that comes late belongs to nothing.
std::map<std::uint64_t, std::uint64_t> NamedOnHost(const LedgerFile& file) {
  std::map<std::uint64_t, std::uint64_t> named;
  struct Life {
    std::uint64_t slot;
    bool ended;
  };
  std::map<std::uint64_t, Life> latest;  // by address
  const auto slots = file.slots();
  for (std::uint64_t i = 0; i < slots.size(); ++i) {
    const format::Slot& slot = slots[i];
    if (!slot.committed()) continue;
    if (slot.kind() == Kind::kAlloc || slot.kind() == Kind::kFree) {
      const auto& allocation = slot.As<record::Allocation>();
      if (!OnHost(allocation.memory)) continue;
      if (slot.kind() == Kind::kAlloc) {
        latest[allocation.address] = {i, false};
      } else if (const auto life = latest.find(allocation.address); life != latest.end()) {
        life->second.ended = allocation.result == 0;  // a free that failed is taken back
      }
    } else if (slot.kind() == Kind::kName && slot.commit().device < 0) {
      const auto& name = slot.As<record::Name>();
      const auto life = latest.find(name.address);
      if (life == latest.end() || life->second.ended) continue;
      std::uint64_t& bytes = named[life->second.slot];
      bytes = std::max(bytes, name.bytes);
    }
  }
  return named;
}

class Sheet {
 public:
  explicit Sheet(const LedgerFile& file) : file_(file), named_(NamedOnHost(file)) {}

  void Charge(const replay::LiveAllocation& live) {
    if (!OnHost(live.memory)) return;
    const auto& record = file_.slots()[live.slot].As<record::Allocation>();
    HostAccount& account = AccountOf(live.memory, record.owner);
    account.bytes += live.bytes;
    ++account.allocations;
    const auto name = named_.find(live.slot);
    if (name != named_.end()) {
      account.requested = account.requested.value_or(0) + std::min(name->second, live.bytes);
    } else {
      unnamed_.insert(account.name);
    }
  }

  void ChargePhysical(const replay::PhysicalMemory::Object& object) {
    if (object.memory != Memory::kPhysicalHost) return;
    HostAccount& account = AccountOf(object.memory, file_.slots()[object.slot].As<record::Allocation>().owner);
    account.bytes += object.bytes;
    ++account.allocations;
    unnamed_.insert(account.name);
  }

  std::vector<HostAccount> Accounts() {
    std::vector<HostAccount> accounts;
    for (auto& [name, account] : accounts_) {
      if (unnamed_.contains(name)) account.requested.reset();  // a part of it is no answer
      accounts.push_back(std::move(account));
    }
    std::stable_sort(accounts.begin(), accounts.end(),
                     [](const HostAccount& a, const HostAccount& b) { return a.bytes > b.bytes; });
    return accounts;
  }

 private:
  HostAccount& AccountOf(Memory memory, std::uint32_t owner) {
    const std::string by = file_.Text(owner);
    std::string name = absl::StrCat(NameOf(memory), by.empty() ? "" : " by ", by);
    HostAccount& account = accounts_[name];
    account.name = std::move(name);
    return account;
  }

  const LedgerFile& file_;
  const std::map<std::uint64_t, std::uint64_t> named_;
  std::map<std::string, HostAccount> accounts_;
  std::set<std::string> unnamed_;  // accounts with something that has no name
};

}  // namespace

HostSheetReport BuildHostSheet(const LedgerFile& file) {
  const Totals most = HostReplay(file).RunTo(file.slots().size());
  HostSheetReport report;
  if (most.bytes == 0) return report;
  HostReplay replay(file);
  replay.RunTo(most.slot + 1);
  Sheet sheet(file);
  for (const auto& [address, live] : replay.driver().allocations()) sheet.Charge(live);
  for (const auto& [address, live] : replay.driver().registered()) sheet.Charge(live);
  for (const auto& [slot, object] : replay.driver().physical().objects()) sheet.ChargePhysical(object);
  report.bytes = most.bytes;
  report.time_ns = file.TimeAt(most.slot);
  report.accounts = sheet.Accounts();
  return report;
}

}  // namespace ledger::report
