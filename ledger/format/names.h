// What records are called where people read them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "interpose/record/record.h"

namespace ledger::format {

// "block_alloc"; "" for a kind that this reader does not know.
absl::string_view KindName(record::Kind kind);
std::optional<record::Kind> KindFromName(absl::string_view name);

absl::string_view MemoryName(record::Memory memory);
absl::string_view LayerName(record::Layer layer);
absl::string_view OperationName(record::Operation operation);
absl::string_view PhaseName(record::PhaseKind phase);

// "disk_full", and what that means for a report.
absl::string_view LossName(record::Loss loss);
absl::string_view LossMeaning(record::Loss loss);

}  // namespace ledger::format
