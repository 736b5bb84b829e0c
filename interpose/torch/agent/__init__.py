"""The agent: what only Python knows about a training process, told to the ledger.

libledger.so loads this package into the process that it records (LEDGER_AGENT=0 prevents it) and hands over a few native
functions. The agent observes: it raises nothing into the program, keeps no tensor, module or optimizer alive, allocates no
device memory, draws no random numbers and leaves autograd alone. Each part stands for itself: one that cannot be installed,
or that fails later on, is switched off and named in the ledger (setting `layer.agent.<part>`), and the others go on.
"""

import types

from . import guard, kept_tensors, modules, names, phases, pinned_memory, ranges


def start(native):
    """Installs all parts. `native` is the dict of functions of libledger.so."""
    functions = types.SimpleNamespace(**native)
    phase = phases.Phases(functions)
    known = names.Names(functions, phase)
    for part, install in (
        ("modules", lambda: modules.install(functions, phase, known)),
        ("phases", lambda: phases.install(phase)),
        ("names", lambda: names.install(functions, known)),
        ("contexts", lambda: kept_tensors.observe_contexts(functions)),
        ("wrappers", lambda: kept_tensors.observe_wrappers(functions)),
        ("ranges", lambda: ranges.install(functions)),
        ("pinned_memory", lambda: pinned_memory.install(functions)),
    ):
        guard.attempt(functions, part, install)
