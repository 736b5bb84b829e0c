"""What a program asked for when it pinned memory: PyTorch's host allocator rounds sizes up and tells nobody.

The driver's call is seen by libledger.so, which calls `look` as soon as the interpreter can: then the tensor that the memory
is for has just come to be. One that is gone by then, or known to other languages only, has no name.
"""

import gc

from .guard import guarded
from .storage import PLAIN, storage_of

_UNKNOWN = 0  # NameCategory in record.h
# Generations of the interpreter's cycle collector that what is new lies in; all objects would take tens of milliseconds.
_YOUNG = (0, 1)


def install(native):
    @guarded(native, "pinned_memory")
    def look():
        for generation in _YOUNG:
            for thing in gc.get_objects(generation):
                if type(thing) in PLAIN and thing.is_cpu and native.pinned_lately(_address(thing)):
                    address, size = storage_of(thing)
                    native.name(-1, address, size, _UNKNOWN, "pinned memory", "", 0, thing.numel(), thing.element_size(), 0)

    native.on_pinned_memory(look)


def _address(tensor):
    try:
        return tensor.data_ptr()
    except RuntimeError:  # one without memory of its own
        return 0
