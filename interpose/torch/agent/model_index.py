"""The parameters and buffers of all models of the process, with their names.

Models are the outermost modules: those that were called without another one around them, and those that a search found.
They are held by weak references, in the order in which they became known. The names of the first model stand for
themselves; those of the others have the class of the model in front.
"""

import gc
import weakref

import torch

from .modules import is_wrapper, plain_name
from .storage import plain_address


class Entry:
    """One parameter or buffer: where to look it up again, and its name."""

    __slots__ = ("owner", "key", "is_buffer", "name")

    def __init__(self, owner, key, is_buffer, name):
        self.owner = weakref.ref(owner)
        self.key = key
        self.is_buffer = is_buffer
        self.name = name

    def tensor(self):
        owner = self.owner()
        if owner is None:
            return None
        return (owner._buffers if self.is_buffer else owner._parameters).get(self.key)


class ModelIndex:
    def __init__(self):
        self._roots = []  # weak references
        self.entries = []
        self.names = {}  # id() of a parameter → name
        self.sharded = False
        self._addresses = None

    def add(self, module):
        if not any(root() is module for root in self._roots):
            self._roots.append(weakref.ref(module))
            self.rebuild()

    def search(self):
        """Finds models that were never called, such as averaged copies of the weights. Slow: goes through all objects."""
        modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
        inner = {id(child) for module in modules for child in module._modules.values()}
        known = {id(root()) for root in self._roots}
        for module in modules:
            if id(module) not in inner | known and next(module.parameters(), None) is not None:
                self._roots.append(weakref.ref(module))
        self.rebuild()

    def rebuild(self):
        self.entries = []
        self.names = {}
        self._addresses = None
        self.sharded = False
        models = self._outermost()
        seen = set()
        for number, model in enumerate(models):
            self._add_model(model, f"{type(model).__name__}:" if number else "", seen)

    def moved(self):
        """True when a tensor lies elsewhere than at the last call (or at the first one)."""
        addresses = [plain_address(entry.tensor()) for entry in self.entries]
        moved = addresses != self._addresses
        self._addresses = addresses
        return moved

    def _outermost(self):
        models = [model for model in (root() for root in self._roots) if model is not None]
        inner = {id(module) for model in models for module in model.modules() if module is not model}
        return [model for model in models if id(model) not in inner]

    def _add_model(self, model, prefix, seen):
        """A tied weight goes by the first of its names."""
        strip = plain_name if any(is_wrapper(module) for module in model.modules()) else str
        for path, module in model.named_modules():
            path = path + "." if path else ""
            for is_buffer, tensors in ((False, module._parameters), (True, module._buffers)):
                for key, tensor in tensors.items():
                    if tensor is None or id(tensor) in seen:
                        continue
                    seen.add(id(tensor))
                    entry = Entry(module, key, is_buffer, prefix + strip(path + key))
                    self.entries.append(entry)
                    self.sharded = self.sharded or hasattr(tensor, "_local_tensor")
                    if not is_buffer:
                        self.names[id(tensor)] = entry.name
            # Gradients of these are put in their place by the wrapper, after they came to be.
            self.sharded = self.sharded or type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel")
