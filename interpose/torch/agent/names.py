"""Whose storage is it: parameters, buffers, gradients, optimizer state, by name.

Addresses are looked up when they are known to be right: before the first forward of a model, around optimizer steps, when
the allocator has given up, and at the end. What was said once is not said again as long as it stays where it is.
"""

import atexit
import gc
import itertools
import os
import weakref

import torch

from . import copies, fsdp
from .guard import attempt, guarded
from .kept_tensors import SelectiveCheckpoints
from .model_index import ModelIndex
from .searches import Searches
from .storage import PLAIN, parts, plain_address, storage_of, tensors_in

# NameCategory in record.h.
PARAMETER, MASTER_PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE = range(1, 6)
SHARDED = 1  # kNameSharded in record.h

# Optimizers that keep a copy of the parameter in higher precision in their state call it something like this.
_MASTER_KEYS = ("master", "fp32", "main_param")
# How often it is looked whether something has moved: at every step for so many, from the first one or from a move on, then
# after so many steps more, and at most so many.
_EVERY_STEP_FOR, _MORE, _AT_MOST = 16, 0.5, 100
# Counters and the like on the host.
_SMALL_HOST_BYTES = 64


class Names:
    def __init__(self, native, phase):
        self.native = native
        self._phase = phase
        self.models = ModelIndex()
        self.optimizers = weakref.WeakSet()
        self._said = {}  # (category, name, key) → addresses
        self._state_addresses = weakref.WeakKeyDictionary()  # by optimizer
        self._stepping = weakref.WeakSet()  # optimizers whose own step was called
        self._searches = Searches()
        self._searched = False
        self._steps = 0
        self._moved_at = 0  # the last step after which something lay elsewhere than before
        self._next_looks = weakref.WeakKeyDictionary()  # steps, by optimizer
        self._loose_copies = copies.LooseCopies()
        self._selective_checkpoints = SelectiveCheckpoints(native)

    def say(self, category, tensor, name, key="", belongs_to=0, always=False):
        """Says where a tensor lies, with all the tensors that it consists of."""
        entries = parts(tensor)
        addresses = [plain_address(part) for _, part in entries]
        identity = (category, name, key)
        if not always and self._said.get(identity) == addresses:
            return
        self._said[identity] = addresses
        elements = getattr(tensor, "_unpadded_unsharded_size", tensor.shape).numel()  # a flat parameter knows its whole size
        for suffix, part in entries:
            address, size = storage_of(part)
            device = part.get_device()
            if address and not (device < 0 and size <= _SMALL_HOST_BYTES):
                flags = SHARDED if part.numel() < elements and not suffix else 0
                self.native.name(device, address, size, category, name, key + suffix, belongs_to, elements, part.element_size(), flags)

    def say_models(self):
        """Says whether something had moved since the last time."""
        restless = self._is_restless()
        if not self.models.moved() and not restless:
            return False
        self.models.rebuild()  # what moved may be another object now
        self.models.moved()
        for entry in self.models.entries:
            tensor = entry.tensor()
            if tensor is None or entry.is_copy is None:
                continue
            if entry.is_copy:
                self.say(BUFFER, tensor, entry.name, copies.KEY, always=restless)
            else:
                self.say(BUFFER if entry.is_buffer else PARAMETER, tensor, entry.name, always=restless)
        return self.models.left()

    def say_gradients(self, optimizer):
        """A gradient is made anew in most steps, often at its old address.

        The op adapter sees each one that autograd makes for a plain parameter; the others are said every time: a wrapper may
        have put them in their place, or the program, which was given them as values. At a look, all are said: the program may
        add gradients up in a place of its own.
        """
        others = self.models.sharded or self._phase.gives_gradients or self._is_look(optimizer, self._steps + 1)
        if self.native.sees_gradients() and not others:
            return
        seen = set()
        for name, parameter in (*self._parameters(optimizer), *self.models.parameters()):
            gradient = parameter.grad
            if gradient is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                self.say(GRADIENT, gradient, name, belongs_to=_address(parameter), always=True)

    def say_state(self, optimizer):
        """Says whether it had to be said again."""
        state = [(owner, tensors_in(values)) for owner, values in optimizer.state.items()]
        addresses = [plain_address(value) for _, values in state for _, value in values]
        earlier = self._state_addresses.get(optimizer)
        restless = self._is_restless()
        if earlier == addresses and not restless:
            return False
        self._state_addresses[optimizer] = addresses
        names = {id(parameter): name for name, parameter in self._parameters(optimizer)}
        for owner, values in state:
            is_tensor = isinstance(owner, torch.Tensor)
            name = names.get(id(owner)) or ("" if is_tensor else str(owner))
            for key, value in values:
                master = is_tensor and value.shape == owner.shape and any(word in key for word in _MASTER_KEYS)
                self.say(MASTER_PARAMETER if master else OPTIMIZER_STATE, value, name, key, _address(owner) if is_tensor else 0, always=restless)
        return bool(earlier) and earlier != addresses

    def _parameters(self, optimizer):
        names = self.models.names
        for group_number, group in enumerate(optimizer.param_groups):
            for number, parameter in enumerate(group["params"]):
                name = names.get(id(parameter))
                if name is None:
                    name = f"param_groups[{group_number}].params[{number}]"
                    # In no model: the optimizer's own copy, in most cases the one in full precision.
                    copy = parameter.dtype == torch.float32 and bool(names)
                    self.say(MASTER_PARAMETER if copy else PARAMETER, parameter, name)
                yield name, parameter

    def model_is_called(self, module):
        self.models.add(module)
        self.say_models()
        fsdp.watch(self.native)
        self._selective_checkpoints.watch()

    def before_step(self, optimizer):
        self.optimizers.add(optimizer)
        if not self._searched:
            self._search()
            self.say_models()
        self.say_gradients(optimizer)

    def after_step(self, optimizer):
        # A name holds for its block's whole life, so it may come late: in most steps nothing has moved.
        self._steps += 1
        self._stepping.add(optimizer)
        look = self._is_look(optimizer, self._steps)
        if self._searches.due(self._steps) or (look and self._has_grown()):
            self._search()
        if look:
            # One that is not called itself wraps another one, beside which it keeps state of its own.
            if any([self.say_models(), *map(self.say_state, (optimizer, *(self.optimizers - self._stepping)))]):
                self._moved_at = self._steps
            if self._steps - self._moved_at >= _EVERY_STEP_FOR:
                self._next_looks[optimizer] = self._steps + min(int(self._steps * _MORE), _AT_MOST)

    def _is_restless(self):
        """Something moves now and then: what lies at an old address may be another block there."""
        return self._moved_at != 0 and self._steps - self._moved_at < _EVERY_STEP_FOR

    def _is_look(self, optimizer, step):
        return step >= self._next_looks.get(optimizer, 0)

    def _has_grown(self):
        return self._searches.has_grown(self._steps, self._used_bytes(), self.models.least_elements)

    def _used_bytes(self):
        return sum(map(torch.cuda.memory_allocated, self.models.devices))

    def say_all(self):
        if self.native.recording():
            self._search()
            self.say_models()
            for optimizer in list(self.optimizers):
                self.say_gradients(optimizer)
                self.say_state(optimizer)

    def _search(self):
        self._searched = True
        modules, optimizers, tensors = _all_of((torch.nn.Module,), (torch.optim.Optimizer,), PLAIN)
        self.optimizers.update(optimizers)
        trained = {id(parameter) for optimizer in list(self.optimizers) for group in optimizer.param_groups for parameter in group["params"]}
        self.models.add_found(modules, trained)
        self._say_loose_copies([tensor for tensor in tensors if type(tensor) in PLAIN])
        self._searches.done(self._steps, self._used_bytes(), self._loose_copies.undecided)

    def _say_loose_copies(self, tensors):
        parameters = self.models.parameters()
        known = [tensor for entry in self.models.entries if (tensor := entry.tensor()) is not None]
        for optimizer in list(self.optimizers):
            known += [parameter for group in optimizer.param_groups for parameter in group["params"]]
            known += [value for values in optimizer.state.values() for _, value in tensors_in(values)]
        known += [tensor.grad for tensor in known if tensor.is_leaf and tensor.grad is not None]
        addresses = {storage_of(part)[0] for tensor in known for _, part in parts(tensor)}
        for name, tensor in self._loose_copies.look(tensors, parameters, addresses):
            self.say(BUFFER, tensor, name, copies.KEY, always=True)

    def forget(self):
        """In a forked child, whose ledger is new: everything is said again."""
        self._said.clear()
        self._state_addresses.clear()
        self.models.rebuild()


def _all_of(*wanted):
    """For each tuple of classes, the objects of these and of their subclasses. Slow: goes through all objects there are."""
    things = gc.get_objects()
    kinds = list(map(type, things))
    # Not isinstance: an object may say what it likes about its class.
    wanted_kinds = [frozenset(kind for kind in set(kinds) if issubclass(kind, classes)) for classes in wanted]
    found = list(itertools.compress(things, map(frozenset().union(*wanted_kinds).__contains__, kinds)))
    return [[thing for thing in found if type(thing) in kinds] for kinds in wanted_kinds]


def _address(parameter):
    return storage_of(parts(parameter)[0][1])[0]


def install(native, known):
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    @guarded(native, "names")
    def before_step(optimizer, _arguments, _options):
        if native.recording():
            known.before_step(optimizer)

    @guarded(native, "names")
    def after_step(optimizer, _arguments, _options):
        if native.recording():
            known.after_step(optimizer)

    def say_all():
        attempt(native, "names", known.say_all)

    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    native.on_out_of_memory(say_all)
    atexit.register(say_all)
    os.register_at_fork(after_in_child=known.forget)
