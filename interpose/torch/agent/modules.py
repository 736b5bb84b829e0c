"""The path of modules that a thread is inside of.

Module._call_impl is replaced by a function that notes the module and calls the original. Global module hooks would serve
as well, but they slow every call down, switch off shortcuts of torch.compile, and make it warn. While a graph is traced the
function does nothing but call on. A module's name is its fully qualified name below the outermost module that was called.
"""

import functools

import weakref

import torch

from . import inputs, phases
from .guard import describe, guarded, unseen

RECOMPUTE = 2  # kScopeRecompute in record.h

# Wrappers put these into the names of what they wrap. A module of the program's own may be called "module", too.
_WRAPPERS = frozenset(("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module"))
_ALL_WRAPPERS = _WRAPPERS | {"module"}


def plain_name(name, wrappers=_ALL_WRAPPERS):
    return ".".join(part for part in name.split(".") if part not in wrappers)


def own_name(name):
    """Below a model that is not itself a wrapper that calls its child "module"."""
    return plain_name(name, _WRAPPERS)


def is_wrapper(module):
    return type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule", "DataParallel",
                                     "CheckpointWrapper", "AveragedModel")


class ModuleNames:
    """Text ids of names by the module's id(); an entry goes away with its module.

    `strays` are those that were only ever called inside a module that doesn't contain them; `ids` has the others.
    """

    def __init__(self, native):
        self._native = native
        self.ids = {}
        self.strays = {}
        self._references = {}

    def add_tree(self, root):
        for name, module in root.named_modules():
            # Only a wrapper's own child is called "module" by it; a user's module may well have a child of that name.
            name = plain_name(name) if is_wrapper(root) else own_name(name)
            self.strays.pop(id(module), None)
            self._set(self.ids, module, name or type(module).__name__)

    def add_stray(self, module):
        """Called inside another one, without being its child."""
        self._set(self.strays, module, type(module).__name__)

    def _set(self, ids, module, name):
        key = id(module)
        ids[key] = self._native.text(name)
        if key not in self._references:
            self._references[key] = weakref.ref(module, lambda _: self._forget(key))

    def _forget(self, key):
        self.ids.pop(key, None)
        self.strays.pop(key, None)
        self._references.pop(key, None)


def install(native, phase, known):
    module_names = ModuleNames(native)
    ids, strays = module_names.ids, module_names.strays
    is_tracing = torch.compiler.is_dynamo_compiling
    inside_backward = torch._C._current_graph_task_id
    original = torch.nn.Module._call_impl
    working = True

    def text_of(module, inside):
        key = id(module)
        if key in ids:
            return ids[key]
        if not inside:
            module_names.add_tree(module)
            known.model_is_called(module)
            return ids[key]
        if key not in strays:
            module_names.add_stray(module)
        return strays[key]

    def enter_unknown(module, arguments, options):
        """Instead of the native function: in backward, and where a module has no name, or none that says where it belongs."""
        nonlocal working
        try:
            recomputed = phase.kind == phases.BACKWARD and inside_backward() != -1
            with unseen():
                text = text_of(module, recomputed or native.inside_module())
            if native.enter(id(module), text, RECOMPUTE if recomputed else 0) and not recomputed:
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
            inputs.say(native, arguments[1:], options)

    def root_enters(module, arguments, options):
        enter_phase(module)
        say_inputs(arguments, options)

    native.observe_calls(original, ids, enter_unknown, root_enters, phase.root_leaves)
    call = native.call

    # On the way of every call of every module; what most of them need is native.
    @functools.wraps(original)
    def _call_impl(*arguments, **options):
        if is_tracing() or not working:
            return original(*arguments, **options)
        return call(arguments, options)

    torch.nn.Module._call_impl = _call_impl
