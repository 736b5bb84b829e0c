"""Tensors that are kept for backward and that the op adapter cannot see in the graph's own variables.

These are tensors that are made of others, attributes that a custom autograd function sets on its context, and what
selective checkpointing keeps in a cache of its own. The latter reads a private class of PyTorch. Without either, such
tensors are known by their op only.
"""

import functools
import sys

import torch

from .guard import attempt, guarded
from .storage import parts, storage_of, tensors_in

_CHECKPOINT = "torch.utils.checkpoint"


def _say_tensors(native, value, flags=0):
    for _, tensor in tensors_in(value):
        if tensor.is_cuda:
            for _, part in parts(tensor):
                address, size = storage_of(part)
                if address:
                    native.saved(part.get_device(), address, size, part.numel() * part.element_size(), flags)


def observe_contexts(native):
    """The op adapter tells of each node of a function written in Python, when its forward has run: attributes are there,
    also where a checkpointed region runs again, and nobody has to go through a graph for them. A node that Python has looked
    at would keep an object, and be torn down in another order."""
    is_compiling = torch.compiler.is_compiling

    @guarded(native, "contexts")
    def look(context):
        attributes = vars(context)
        if attributes and native.recording() and not is_compiling():
            _say_tensors(native, attributes)

    native.on_context(look)


def observe_wrappers(native):
    """The op adapter hands over each tensor that the graph keeps and that is made of others: the local part of a sharded one,
    what a collective under way will have filled, the parts of a quantized one."""
    is_compiling = torch.compiler.is_compiling

    @guarded(native, "wrappers")
    def look(tensor, flags):
        if native.recording() and not is_compiling():
            _say_tensors(native, tensor, flags)

    native.on_saved_wrapper(look)


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
                _say_tensors(self._native, value)

        @functools.wraps(original)
        def initialize(entry, value, *arguments, **options):
            original(entry, value, *arguments, **options)
            say(value)

        kept.__init__ = initialize
