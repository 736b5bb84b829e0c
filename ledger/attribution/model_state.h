// What a model takes by its number of parameters: each of its tensors as it was named, and the bytes of it that this
// process holds. docs/model_state.md has the definitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"
#include "ledger/attribution/timeline.h"

namespace ledger::attribution {

// One tensor, over all ranks that hold a part of it.
struct StateTensor {
  Category category = Category::kUnknown;
  std::string name, key;  // key: of optimizer state
  std::uint64_t elements = 0;
  std::uint32_t element_bytes = 0;

  std::uint64_t Bytes() const { return elements * element_bytes; }
};

struct ModelState {
  // Those of the instant at which the most of it was held, and the gradients of these parameters whenever they were
  // alive. By category, name and key; each once.
  std::vector<StateTensor> tensors;
  std::uint64_t slot = kNever;  // that instant; kNever: nothing of the kind was ever seen
  // Bytes held on this device then, as their storages have them, without the allocator's rounding; of gradients, the
  // most at once.
  CategoryBytes held{};
  std::uint64_t unsharded_gradients = 0;  // the most at once of gradients of whole parameters, before they are reduced
  std::uint64_t master_gradients = 0;     // likewise, of master parameters
};

ModelState ModelStateOf(const Grounds& grounds, const DeviceLives& lives);

// Is it kept from one step to the next? Parameters, their copies, optimizer state and buffers always are; a gradient is
// where it is alive in a later step than the one that made it.
bool IsPersistent(const Grounds& grounds, const Life& life);

}  // namespace ledger::attribution
