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
  explicit SheetBuilder(const std::vector<const Balance*>& columns) : columns_(columns) {}

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

  std::vector<SheetRow> Take() { return std::move(rows_); }

 private:
  const std::vector<const Balance*>& columns_;
  std::vector<SheetRow> rows_;
};

}  // namespace

std::vector<SheetRow> MakeSheet(const std::vector<const Balance*>& columns) {
  SheetBuilder sheet(columns);
  sheet.Add(0, "device used", true, [](const Balance& b) { return b.used; });
  sheet.Add(1, "caching allocator: reserved", true, [](const Balance& b) { return b.reserved; });
  sheet.Add(2, "allocated", true, [](const Balance& b) { return b.allocated; });
  sheet.Add(3, "unknown", false, [](const Balance& b) { return b.allocated; });
  sheet.Add(2, "inactive or cached", true, [](const Balance& b) { return b.slack; });
  sheet.AddGroup(1, "NCCL", &Balance::nccl);
  sheet.AddGroup(1, "other libraries", &Balance::libraries);
  sheet.AddGroup(1, "the program's own allocations", &Balance::program);
  sheet.Add(1, "stream-ordered pools, free", false, [](const Balance& b) { return b.pool_slack; });
  sheet.Add(1, "context and modules", true, [](const Balance& b) { return b.context; });
  sheet.Add(1, "unexplained", true, [](const Balance& b) { return b.unexplained; });
  return sheet.Take();
}

}  // namespace ledger::report
