"""Tensors that are kept for backward by something else than the graph's own variables, which the op adapter sees.

These are attributes that a custom autograd function sets on its context, and what selective checkpointing keeps in a
cache of its own. The latter reads a private class of PyTorch. Without either, such tensors are known by their op only.
"""

import functools
import sys

import torch

from .guard import attempt, guarded
from .storage import storage_of, tensors_in

# A program whose first graphs have no such attributes is not looked at again.
_FIRST_GRAPHS = 4
_MOST_NODES = 20_000

_CHECKPOINT = "torch.utils.checkpoint"


def _say(native, tensor):
    address, size = storage_of(tensor)
    if address:
        native.saved(tensor.get_device(), address, size, tensor.numel() * tensor.element_size())


class Contexts:
    """Looks for attributes of contexts right before backward."""

    def __init__(self, native):
        self._native = native
        self._graphs = 0
        self._found = False

    def look(self, roots):
        """Leaves graphs alone in which no function of the program's own can be: a node that Python has looked at keeps an
        object, and is torn down in another order."""
        self._graphs += 1
        if not self._found and (self._graphs > _FIRST_GRAPHS or not _has_functions()):
            return
        for node in _custom_nodes(roots):
            for _, tensor in tensors_in(vars(node)):
                if tensor.is_cuda:
                    self._found = True
                    _say(self._native, tensor)


def _has_functions(base=torch.autograd.Function):
    return any(not function.__module__.startswith("torch.") or _has_functions(function) for function in base.__subclasses__())


def _custom_nodes(roots):
    """Nodes of functions written in Python that have attributes."""
    seen = set()
    waiting = [getattr(root, "grad_fn", None) for root in roots]
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
        if getattr(node, "__dict__", None):
            yield node


class SelectiveCheckpoints:
    """Checkpointing may be imported at any time: `watch` is called now and then."""

    def __init__(self, native):
        self._native = native
        self._watching = False

    def watch(self):
        if not self._watching and _CHECKPOINT in sys.modules:
            self._watching = True
            attempt(self._native, "selective_checkpoints", self._observe)

    def _observe(self):
        kept = sys.modules[_CHECKPOINT]._VersionWrapper
        original = kept.__init__

        @guarded(self._native, "selective_checkpoints")
        def say(value):
            if self._native.recording():
                for _, tensor in tensors_in(value):
                    if tensor.is_cuda:
                        _say(self._native, tensor)

        @functools.wraps(original)
        def initialize(entry, value, *arguments, **options):
            original(entry, value, *arguments, **options)
            say(value)

        kept.__init__ = initialize
