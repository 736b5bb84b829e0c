// The part of a module's call that every call goes through: what the agent would do in Python costs several times more.
#pragma once

#include <cstdint>

#include "interpose/record/record.h"
#include "interpose/torch/python_api.h"

namespace ledger {

// observe_calls(original, names, unknown, root_enters, root_leaves): what CallModule needs. `names` is a dict from id()
// to text id; `unknown` is called instead of entering where a module is not in it, and inside backward; the last two
// are called where a module that no other module called is entered, and where one is left in an evaluation.
// All of them but `root_leaves` get (module, arguments, options).
python::Object* ObserveCalls(python::Object* self, python::Object* const* values, std::intptr_t count);

// call(arguments, options) → original(*arguments, **options), inside the scope of the module arguments[0].
python::Object* CallModule(python::Object* self, python::Object* const* values, std::intptr_t count);

// Which phase has begun.
void SetPhaseOfCalls(record::PhaseKind phase);

}  // namespace ledger
