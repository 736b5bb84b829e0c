// Which workspaces the ledger names already. Libraries are told of a workspace again and again, many times between the
// moment its memory is got and the moment it is given back; the ledger is told once.
#pragma once

#include <cstdint>

namespace ledger {

// True if the workspace at `address` is new: its memory was given back since, or nobody asked before. A table of fixed
// size answers, so that a workspace which shares its place with another can be called new once more.
bool NewWorkspace(std::uint64_t address);

// The memory at `address` is given back. On the hot path of every free; called before anybody can get it again.
void ForgetWorkspace(std::uint64_t address);

}  // namespace ledger
