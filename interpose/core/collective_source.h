// What the framework says about the collective that the calling thread is inside of: set when the op adapter is there,
// asked by NCCL's hooks. A collective of the framework is one NCCL operation or several, and enqueues them on the
// thread that calls it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/record/record.h"

namespace ledger {

struct CollectiveSource {
  // Text: the framework's name for the collective. 0: the thread is inside of none.
  std::uint32_t (*name)();
  // Fills in the group's own fields of `info`. False: the thread is inside of no collective.
  bool (*process_group)(record::ProcessGroupInfo* info);
  // The same for the group that the framework calls so. False: there is none.
  bool (*process_group_named)(const char* name, std::size_t bytes, record::ProcessGroupInfo* info);
};

// To be called once in a process.
void SetCollectiveSource(const CollectiveSource& source);

// Null: there is none.
const CollectiveSource* CurrentCollectiveSource();

}  // namespace ledger
