"""The path of modules that a thread is inside of.

Module._call_impl is replaced by a function that notes the module and calls the original. Global module hooks would serve
as well, but they slow every call down, switch off shortcuts of torch.compile, and make it warn. While a graph is traced the
function does nothing but call on. A module's name is its fully qualified name below the outermost module that was called.
"""

import functools

import weakref

import torch

from . import inputs, phases
from .guard import describe, guarded

RECOMPUTE = 2  # kScopeRecompute in record.h

# Wrappers put these into the names of what they wrap.
_WRAPPERS = frozenset(("module", "_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module"))


def plain_name(name):
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def is_wrapper(module):
    return type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule", "DataParallel",
                                     "CheckpointWrapper", "AveragedModel")


class ModuleNames:
    """Text ids of names by the module's id(); an entry goes away with its module.

    `strays` are those that were only ever called inside a module that doesn't contain them.
    """

    def __init__(self, native):
        self._native = native
        self.ids = {}
        self._references = {}
        self.strays = set()

    def add_tree(self, root):
        for name, module in root.named_modules():
            # Only a wrapper's own child is called "module" by it; a user's module may well have a child of that name.
            self._set(module, plain_name(name) if is_wrapper(root) else name, type(module).__name__)

    def add_stray(self, module):
        """Called inside another one, without being its child."""
        self._set(module, "", type(module).__name__)
        self.strays.add(id(module))
        return self.ids[id(module)]

    def _set(self, module, name, type_name):
        key = id(module)
        self.ids[key] = self._native.text(name or type_name)
        self.strays.discard(key)
        if key not in self._references:
            self._references[key] = weakref.ref(module, lambda _: self._forget(key))

    def _forget(self, key):
        self.ids.pop(key, None)
        self._references.pop(key, None)
        self.strays.discard(key)


def install(native, phase, known):
    module_names = ModuleNames(native)
    ids, strays = module_names.ids, module_names.strays
    is_compiling = torch.compiler.is_compiling
    inside_backward = torch._C._current_graph_task_id
    enter, leave, backward = native.enter, native.leave, phases.BACKWARD
    original = torch.nn.Module._call_impl
    working = True

    def name_new(module, recomputed):
        """Of a module that is about to be called and has no name, or none that says where it belongs."""
        if recomputed or native.inside_module():
            return module_names.add_stray(module)
        module_names.add_tree(module)
        known.model_is_called(module)
        return ids[id(module)]

    def before_forward(module, key, arguments, options):
        nonlocal working
        try:
            recomputed = phase.kind == backward and inside_backward() != -1
            text = ids.get(key)
            if text is None or (key in strays and not recomputed and not native.inside_module()):
                text = name_new(module, recomputed)
            if enter(key, text, RECOMPUTE if recomputed else 0) and not recomputed:
                root_enters(module, arguments, options)
        except Exception as error:
            working = False
            native.setting("layer.agent.modules", describe(error))

    @guarded(native, "phases")
    def enter_phase(module):
        phase.root_enters(module)

    @guarded(native, "inputs")
    def say_inputs(arguments, options):
        if phase.kind == phases.FORWARD and native.recording():
            inputs.say(native, arguments, options)

    def root_enters(module, arguments, options):
        enter_phase(module)
        say_inputs(arguments, options)

    # On the way of every call of every module: the first lines are all that most of them see.
    @functools.wraps(original)
    def _call_impl(self, *arguments, **options):
        if is_compiling() or not working:
            return original(self, *arguments, **options)
        key = id(self)
        text = ids.get(key)
        if text is None or phase.kind == backward or strays:
            before_forward(self, key, arguments, options)
        elif enter(key, text, 0):
            root_enters(self, arguments, options)
        try:
            return original(self, *arguments, **options)
        finally:
            if leave(key):
                phase.root_leaves()

    torch.nn.Module._call_impl = _call_impl
