#include "ledger/report/sheet.h"

#include <algorithm>
#include <functional>
#include <set>

namespace ledger::report {
namespace {

using replay::Account;
using replay::Balance;
using Accounts = std::vector<Account> Balance::*;

class SheetBuilder {
 public:
  explicit SheetBuilder(const std::vector<const InstantReport*>& instants) : instants_(instants) {
    for (const InstantReport* instant : instants) columns_.push_back(&instant->balance);
  }

  void AddCategories(int depth) {
    for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
      SheetRow row{std::string(attribution::CategoryName(static_cast<attribution::Category>(i))), depth, {}};
      bool zero = true;
      for (const InstantReport* instant : instants_) {
        row.bytes.push_back(i < instant->categories.size() ? instant->categories[i].bytes : 0);
        zero = zero && row.bytes.back() == 0;
      }
      if (!zero) rows_.push_back(std::move(row));
    }
  }

  void Add(int depth, std::string name, bool always, const std::function<std::uint64_t(const Balance&)>& value) {
    SheetRow row{std::move(name), depth, {}};
    for (const Balance* balance : columns_) row.bytes.push_back(value(*balance));
    const bool zero = std::all_of(row.bytes.begin(), row.bytes.end(), [](std::uint64_t b) { return b == 0; });
    if (always || !zero) rows_.push_back(std::move(row));
  }

  // A group and its members, which are those of all columns together.
  void AddGroup(int depth, const std::string& name, Accounts accounts) {
    std::set<std::string> names;
    for (const Balance* balance : columns_) {
      for (const Account& account : balance->*accounts) names.insert(account.name);
    }
    Add(depth, name, false, [&](const Balance& balance) {
      std::uint64_t sum = 0;
      for (const Account& account : balance.*accounts) sum += account.bytes;
      return sum;
    });
    for (const std::string& member : names) {
      Add(depth + 1, member, false, [&](const Balance& balance) {
        for (const Account& account : balance.*accounts) {
          if (account.name == member) return account.bytes;
        }
        return std::uint64_t{0};
      });
    }
  }

  // The free bytes of private pools; what is allocated in them is among the allocated ones.
  void AddPools(int depth) {
    std::set<replay::PoolId> pools;
    for (const Balance* balance : columns_) {
      for (const replay::PoolUse& use : balance->private_pools) pools.insert(use.pool);
    }
    Add(depth, "private pools, free", false, [](const Balance& balance) { return balance.PrivateFree(); });
    for (const replay::PoolId& pool : pools) {
      Add(depth + 1, replay::PoolName(pool), true, [&](const Balance& balance) {
        for (const replay::PoolUse& use : balance.private_pools) {
          if (use.pool == pool) return use.free.Sum();
        }
        return std::uint64_t{0};
      });
    }
  }

  std::vector<SheetRow> Take() { return std::move(rows_); }

 private:
  const std::vector<const InstantReport*>& instants_;
  std::vector<const Balance*> columns_;
  std::vector<SheetRow> rows_;
};

std::uint64_t Sum(const std::vector<Account>& accounts) {
  std::uint64_t sum = 0;
  for (const Account& account : accounts) sum += account.bytes;
  return sum;
}

}  // namespace

std::vector<std::pair<std::string, std::uint64_t>> AccountsOf(const Balance& balance) {
  return {
      {"allocated", balance.allocated},
      {"pending_free", balance.free.pending},
      {"inactive_split", balance.free.inactive},
      {"cached_segments", balance.free.cached},
      {"private_pools_free", balance.PrivateFree()},
      {"nccl", Sum(balance.nccl)},
      {"libraries", Sum(balance.libraries)},
      {"program", Sum(balance.program)},
      {"pool_slack", balance.pool_slack},
      {"context_and_modules", balance.context},
      {"unexplained", balance.unexplained},
  };
}

std::vector<SheetRow> MakeSheet(const std::vector<const InstantReport*>& columns) {
  SheetBuilder sheet(columns);
  sheet.Add(0, "device used", true, [](const Balance& b) { return b.used; });
  sheet.Add(1, "caching allocator: reserved", true, [](const Balance& b) { return b.reserved; });
  sheet.Add(2, "allocated", true, [](const Balance& b) { return b.allocated; });
  sheet.AddCategories(3);
  sheet.Add(2, "pending free", false, [](const Balance& b) { return b.free.pending; });
  sheet.Add(2, "inactive split", true, [](const Balance& b) { return b.free.inactive; });
  sheet.Add(2, "cached segments", true, [](const Balance& b) { return b.free.cached; });
  sheet.AddPools(2);
  sheet.AddGroup(1, "NCCL", &Balance::nccl);
  sheet.AddGroup(1, "other libraries", &Balance::libraries);
  sheet.AddGroup(1, "the program's own allocations", &Balance::program);
  sheet.Add(1, "stream-ordered pools, free", false, [](const Balance& b) { return b.pool_slack; });
  sheet.Add(1, "context and modules", true, [](const Balance& b) { return b.context; });
  sheet.Add(1, "unexplained", true, [](const Balance& b) { return b.unexplained; });
  return sheet.Take();
}

}  // namespace ledger::report
