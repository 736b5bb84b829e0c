// Which gathered blocks belong together, and which scopes are their use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"

namespace ledger::attribution {

inline constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

// Is it a parameter that was made whole, or the output of an all-gather?
bool IsGathered(const Life& life);

// A group goes by the module that was sharded: told by FSDP2's ranges ("FSDP::all_gather (layers.3)"), by the name of
// what the all-gather sent, or by the name of the parameter itself, in this order.
class GatherGroups {
 public:
  GatherGroups(const Grounds& grounds, const DeviceLives& lives);

  std::uint32_t OfLife(std::uint64_t life) const { return of_life_[life]; }  // kNoGroup: not gathered
  std::size_t size() const { return names_.size(); }
  const std::string& name(std::uint32_t group) const { return names_[group]; }
  // The root runs all the time. Of a module that nobody saw running it is not known when it does; nor of one that only
  // the names of parameters tell of, since what was sharded may be any module around theirs.
  bool AlwaysInUse(std::uint32_t group) const { return names_[group].empty() || !told_[group] || !runs_[group]; }
  // The group whose module a scope belongs to, the innermost; kNoGroup: none.
  std::uint32_t OfScope(std::uint32_t scope) const { return scope < of_scope_.size() ? of_scope_[scope] : kNoGroup; }

 private:
  std::uint32_t Named(const std::string& name, bool told);
  void NameRanges();
  void NameSenders();
  void NameLives();
  void FindUses();

  const Grounds& grounds_;
  const DeviceLives& lives_;
  std::vector<std::string> names_;
  std::vector<bool> told_, runs_;  // by group: told by a range or by what was sent; has a scope
  absl::flat_hash_map<std::string, std::uint32_t> by_name_;
  std::vector<std::uint32_t> of_range_;                          // by scope: as FSDP2's ranges have it
  absl::flat_hash_map<std::uint32_t, std::uint32_t> of_output_;  // by facts of an all-gather's output
  std::vector<std::uint32_t> of_life_;
  std::vector<std::uint32_t> of_scope_;
};

}  // namespace ledger::attribution
