"""Parameters that are whole only for moments, under FSDP2 (fully_shard): named each time that they come to be.

This reads private attributes of PyTorch. Where they are gone, whole parameters are known by their scope and by the
collective that filled them only.
"""

import sys

from .guard import attempt, describe
from .modules import plain_name
from .storage import storage_of

GATHERED_PARAMETER = 6  # NameCategory in record.h

_MODULE = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
_watching = False


def watch(native):
    """Called now and then: the program may import FSDP at any time."""
    global _watching
    if not _watching and _MODULE in sys.modules:
        _watching = True
        attempt(native, "fsdp", lambda: _observe(native, sys.modules[_MODULE].FSDPParamGroup))


def _observe(native, group_class):
    original = group_class.wait_for_unshard
    working = True

    def wait_for_unshard(group):
        nonlocal working
        result = original(group)
        if working and native.recording():
            try:
                _say_gathered(native, group)
            except Exception as error:
                working = False
                native.setting("layer.agent.fsdp", describe(error))
        return result

    group_class.wait_for_unshard = wait_for_unshard


def _say_gathered(native, group):
    for parameter in group.fsdp_params:
        name = plain_name(parameter._param_fqn or "")
        for output in parameter.all_gather_outputs:
            address, size = storage_of(output)
            if address:
                native.name(output.get_device(), address, size, GATHERED_PARAMETER, name, "", 0, output.numel(), output.element_size(), 0)
