"""The parameters and buffers of all models of the process, with their names.

Models are the outermost modules: those that were called without another one around them, and those that a search found.
They are held by weak references, in the order in which they became known. The names of the first model stand for
themselves; those of the others have the class of the model in front.
"""

import weakref

from .copies import shapes_of
from .modules import is_wrapper, own_name, plain_name
from .storage import parts, plain_address


class Entry:
    """One parameter or buffer: where to look it up again, and its name."""

    __slots__ = ("owner", "key", "is_buffer", "is_copy", "name")

    def __init__(self, owner, key, is_buffer, is_copy, name):
        self.owner = weakref.ref(owner)
        self.key = key
        self.is_buffer = is_buffer
        self.is_copy = is_copy  # of a parameter of another model; None: that is not known yet
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
        self.trained = None  # id() of all that optimizers update, once they are known
        self.devices = set()  # on which parameters lie
        self.least_elements = 0  # on this rank, of the smallest model
        self._addresses = None
        self._places = set()

    def add(self, module):
        if not any(root() is module for root in self._roots):
            self._roots.append(weakref.ref(module))
            self.rebuild()

    def add_found(self, modules, trained):
        """`modules` are all that there are: also models that were never called, such as averaged copies of the weights."""
        self.trained = trained
        inner = {id(child) for module in modules for child in module._modules.values()}
        known = inner | {id(root()) for root in self._roots}
        for module in modules:
            if id(module) not in known and next(module.parameters(), None) is not None:
                self._roots.append(weakref.ref(module))
        self.rebuild()

    def parameters(self):
        """[(name, parameter)] of what is no copy of another one."""
        found = [(entry.name, entry.tensor()) for entry in self.entries if not entry.is_buffer and not entry.is_copy]
        return [(name, parameter) for name, parameter in found if parameter is not None]

    def rebuild(self):
        self.entries = []
        self.names = {}
        self._addresses = None
        self.sharded = False
        models = self._outermost()
        copies = self._copies(models)
        seen = set()
        for number, model in enumerate(models):
            self._add_model(model, f"{type(model).__name__}:" if number else "", copies.get(id(model), False), seen)
        local = [[part for parameter in model.parameters() for _, part in parts(parameter)] for model in models]
        self.devices = {part.get_device() for model in local for part in model if part.is_cuda}
        self.least_elements = min((sum(part.numel() for part in model) for model in local if model), default=0)

    def moved(self):
        """True when a tensor lies elsewhere than at the last call (or at the first one)."""
        addresses = [plain_address(entry.tensor()) for entry in self.entries]
        moved = addresses != self._addresses
        self._addresses = addresses
        return moved

    def left(self):
        """True when something no longer lies where anything lay at the last call."""
        earlier, self._places = self._places, set(self._addresses)
        return not earlier <= self._places

    def _outermost(self):
        self._roots = [root for root in self._roots if root() is not None]
        models = [model for model in (root() for root in self._roots) if model is not None]
        inner = {id(module) for model in models for module in model.modules() if module is not model}
        return [model for model in models if id(model) not in inner]

    def _copies(self, models):
        """By id(): True for a model of the shapes of one that is trained, which is not trained itself. As long as nobody
        knows what is trained, None for all models that have the same shapes."""
        shapes = {id(model): shapes_of(model.parameters()) for model in models} if len(models) > 1 else {}
        if self.trained is None:
            return {model: None for model in shapes if any(shapes[model] == shapes[other] for other in shapes if other != model)}
        trained = {id(model) for model in models if any(id(parameter) in self.trained for parameter in model.parameters())}
        return {model: True for model in shapes if model not in trained and any(shapes[model] == shapes[other] for other in trained)}

    def _add_model(self, model, prefix, is_copy, seen):
        """A tied weight goes by the first of its names."""
        strip = plain_name if any(is_wrapper(module) for module in model.modules()) else own_name
        for path, module in model.named_modules():
            path = path + "." if path else ""
            for is_buffer, tensors in ((False, module._parameters), (True, module._buffers)):
                for key, tensor in tensors.items():
                    if tensor is None or id(tensor) in seen:
                        continue
                    seen.add(id(tensor))
                    entry = Entry(module, key, is_buffer, is_copy, prefix + strip(path + key))
                    self.entries.append(entry)
                    self.sharded = self.sharded or hasattr(tensor, "_local_tensor")
                    if not is_buffer:
                        self.names[id(tensor)] = entry.name
            # Gradients of these are put in their place by the wrapper, after they came to be.
            self.sharded = self.sharded or type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel")
