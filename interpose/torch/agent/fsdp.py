"""Parameters that are whole only for moments, under FSDP2 (fully_shard) and FSDP1: named each time that they come to be.

This reads private attributes of PyTorch. Where they are gone, whole parameters are known by their scope and by the
collective that filled them only.
"""

import functools
import sys

from .guard import attempt, describe, unseen
from .modules import plain_name
from .storage import storage_of

GATHERED_PARAMETER = 6  # NameCategory in record.h

_watching = set()


def watch(native):
    """Called now and then: the program may import FSDP at any time."""
    for module, class_name, method, gathered in _PLACES:
        if module in sys.modules and module not in _watching:
            _watching.add(module)
            attempt(native, "fsdp", lambda: _observe(native, getattr(sys.modules[module], class_name), method, gathered))


def _observe(native, owner, method, gathered):
    original = getattr(owner, method)
    working = True

    @functools.wraps(original)
    def gather(self):
        nonlocal working
        result = original(self)
        if working and native.recording():
            try:
                with unseen():
                    for name, whole in gathered(self):
                        _say(native, name, whole)
            except Exception as error:
                working = False
                native.setting("layer.agent.fsdp", describe(error))
        return result

    setattr(owner, method, gather)


def _say(native, name, whole):
    address, size = storage_of(whole)
    if address and size:
        native.name(whole.get_device(), address, size, GATHERED_PARAMETER, name, "", 0, whole.numel(), whole.element_size(), 0)


def _gathered_by_group(group):
    return [(plain_name(parameter._param_fqn or ""), output) for parameter in group.fsdp_params for output in parameter.all_gather_outputs]


def _gathered_by_handle(handle):
    """One flat parameter holds many: it goes by the first one's name."""
    flat = handle.flat_param
    more = len(flat._fqns) - 1
    name = plain_name(flat._fqns[0]) + (f" and {more} more" if more else "")
    wholes = (getattr(flat, attribute, None) for attribute in ("_full_param_padded", "_full_prec_full_param_padded"))
    return [(name, whole) for whole in wholes if whole is not None]


# Module, class, the method after which parameters are whole, and what they are then: [(name, tensor)].
_PLACES = (
    ("torch.distributed.fsdp._fully_shard._fsdp_param_group", "FSDPParamGroup", "wait_for_unshard", _gathered_by_group),
    ("torch.distributed.fsdp._flat_param", "FlatParamHandle", "unshard", _gathered_by_handle),
)
