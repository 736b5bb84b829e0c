"""Ranges of torch's profiler: `record_function`, which optimizers, FSDP and programs put around their work.

The op adapter sees them as well, but costs every backward node something as long as it looks for them.
"""

import functools
import types

import torch


def install(native):
    kind = torch.autograd.profiler.record_function
    enter, leave = kind.__enter__, kind.__exit__
    stacks = {}  # id() of a range that is open → what the native function gave for it

    def observed_enter(self):
        result = enter(self)
        stacks[id(self)] = native.enter_range(id(self), self.name)
        return result

    def observed_exit(self, *exception):
        native.leave_range(stacks.pop(id(self), 0), id(self), self.name)
        return leave(self, *exception)

    kind.__enter__ = _with_globals_of(enter, observed_enter)
    kind.__exit__ = _with_globals_of(leave, observed_exit)
    native.take_ranges()


def _with_globals_of(original, function):
    """TorchScript compiles the original's text (of `__wrapped__`) with the names that it finds around the new function."""
    moved = types.FunctionType(function.__code__, original.__globals__, original.__name__, function.__defaults__, function.__closure__)
    return functools.wraps(original)(moved)
