#include "ledger/attribution/describe_life.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ledger/replay/record_fields.h"

namespace ledger::attribution {
namespace {

const record::Name* NameRecord(const Grounds& grounds, const Facts& facts) {
  return facts.name == kNever ? nullptr : &grounds.file.slots()[facts.name].As<record::Name>();
}

std::string ScopeName(const Grounds& grounds, std::uint32_t scope) {
  return scope == 0 ? "" : grounds.file.Text(grounds.file.scopes().Get(scope).name);
}

// The text of a name, or, of a gradient whose name the graph did not know, that of its parameter.
std::string TextOf(const Grounds& grounds, const DeviceLives& lives, const Facts& facts) {
  const record::Name* const name = NameRecord(grounds, facts);
  if (name == nullptr) return "";
  if (name->text != 0) return grounds.file.Text(name->text);
  if (facts.owner == kNever) return "";
  const record::Name* const owner = NameRecord(grounds, lives.FactsOf(lives.lives[facts.owner]));
  return owner == nullptr ? "" : grounds.file.Text(owner->text);
}

}  // namespace

std::string NameOf(const Grounds& grounds, const DeviceLives& lives, const Life& life) {
  if (life.facts == 0) return "";
  const Facts& facts = lives.FactsOf(life);
  if (facts.tag != kNever) return grounds.file.Text(grounds.file.slots()[facts.tag].As<record::Tag>().text);
  std::string text = TextOf(grounds, lives, facts);
  if (text.empty()) return "";
  const record::Name& name = *NameRecord(grounds, facts);
  if (name.key != 0) absl::StrAppend(&text, " ", grounds.file.Text(name.key));
  return text;
}

std::string ModuleOf(const Grounds& grounds, const DeviceLives& lives, const Life& life) {
  if (life.facts != 0 && (IsModelState(life.category) || life.role == Role::kGatheredParameter)) {
    const std::string text = TextOf(grounds, lives, lives.FactsOf(life));
    const std::size_t dot = text.rfind('.');
    return dot == std::string::npos ? "" : text.substr(0, dot);
  }
  const std::uint32_t scope = replay::ScopeOf(grounds.file.slots()[life.begin]);
  return ScopeName(grounds, grounds.scopes.Get(scope).module);
}

std::string OpOf(const Grounds& grounds, const Life& life) {
  return ScopeName(grounds, grounds.scopes.Get(replay::ScopeOf(grounds.file.slots()[life.begin])).op);
}

std::string MemberOf(const Grounds& grounds, const DeviceLives& lives, const Life& life) {
  const std::string name = NameOf(grounds, lives, life);
  if (!name.empty()) return name;
  const format::Slot& slot = grounds.file.slots()[life.begin];
  const std::uint32_t scope = replay::ScopeOf(slot);
  const ScopeFacts& facts = grounds.scopes.Get(scope);
  const std::string module = ScopeName(grounds, facts.module), op = ScopeName(grounds, facts.op);
  if (!module.empty() && !op.empty()) return absl::StrCat(module, ": ", op);
  if (!module.empty() || !op.empty()) return absl::StrCat(module, op);
  if (scope != 0) return grounds.file.ScopePath(scope);
  const std::string owner = grounds.file.Text(replay::OwnerOf(slot));
  return owner.empty() ? "outside of any range" : absl::StrCat("outside of any range, by ", owner);
}

}  // namespace ledger::attribution
