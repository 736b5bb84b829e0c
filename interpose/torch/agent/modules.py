"""The path of modules that a thread is inside of.

Module._call_impl is replaced by a function that notes the module and calls the original. Global module hooks would serve
as well, but they slow every call down, switch off shortcuts of torch.compile, and make it warn. While a graph is traced the
function does nothing but call on. A module's name is its fully qualified name below the outermost module that was called.
"""

import functools

import weakref

import torch

from . import phases
from .guard import describe

RECOMPUTE = 2  # kScopeRecompute in record.h

# Wrappers put these into the names of what they wrap.
_WRAPPERS = frozenset(("module", "_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module"))


def plain_name(name):
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def is_wrapper(module):
    return type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule", "DataParallel",
                                     "CheckpointWrapper")


class ModuleNames:
    """Text ids of names by the module's id(); an entry goes away with its module."""

    def __init__(self, native):
        self._native = native
        self.ids = {}
        self._references = {}

    def add_tree(self, root):
        for name, module in root.named_modules():
            # Only a wrapper's own child is called "module" by it; a user's module may well have a child of that name.
            self._set(module, plain_name(name) if is_wrapper(root) else name, type(module).__name__)

    def add_stray(self, module):
        """Called inside another one, without being its child."""
        self._set(module, "", type(module).__name__)
        return self.ids[id(module)]

    def _set(self, module, name, type_name):
        key = id(module)
        self.ids[key] = self._native.text(name or type_name)
        if key not in self._references:
            self._references[key] = weakref.ref(module, lambda _: self._forget(key))

    def _forget(self, key):
        self.ids.pop(key, None)
        self._references.pop(key, None)


def install(native, phase, known):
    module_names = ModuleNames(native)
    ids = module_names.ids
    is_compiling = torch.compiler.is_compiling
    inside_backward = torch._C._current_graph_task_id
    enter, leave, backward = native.enter, native.leave, phases.BACKWARD
    seen_roots = weakref.WeakSet()
    original = torch.nn.Module._call_impl
    working = True

    def name_new(module):
        """Of a module that has no name yet, before it is entered."""
        if native.inside_module():
            return module_names.add_stray(module)
        module_names.add_tree(module)
        return ids[id(module)]

    def root_enters(module):
        if module not in seen_roots:
            seen_roots.add(module)
            module_names.add_tree(module)  # it may have been called inside another one before
            known.model_is_called(module)
        phase.root_enters(module)

    def before_forward(module, key):
        nonlocal working
        try:
            text = ids.get(key)
            if text is None:
                text = name_new(module)
            flags = RECOMPUTE if phase.kind == backward and inside_backward() != -1 else 0
            if enter(key, text, flags):
                root_enters(module)
        except Exception as error:
            working = False
            native.setting("layer.agent.modules", describe(error))

    @functools.wraps(original)
    def _call_impl(self, *arguments, **options):
        if is_compiling() or not working:
            return original(self, *arguments, **options)
        key = id(self)
        before_forward(self, key)
        try:
            return original(self, *arguments, **options)
        finally:
            if leave(key):
                phase.root_leaves()

    torch.nn.Module._call_impl = _call_impl
