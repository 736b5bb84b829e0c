"""What a model is called with: the batch of data, named each time that an outermost module is called for training.

Not for evaluation: what a model is given there may be another one's output, and nothing tells the two apart.
"""

import torch

from .storage import parts, storage_of, tensors_in

INPUT = 8  # NameCategory in record.h
_MOST = 32  # of one call


def say(native, arguments, options):
    found = tensors_in(arguments, "input")
    if options:
        found += tensors_in(options)
    for name, tensor in found[:_MOST]:
        # What has a history is an activation, and what a parameter is goes by its own name. To ask for `grad_fn` would leave
        # an object of Python's on the node.
        if tensor.is_cuda and tensor.is_leaf and not isinstance(tensor, torch.nn.Parameter):
            for suffix, part in parts(tensor):
                address, size = storage_of(part)
                if address:
                    native.name(part.get_device(), address, size, INPUT, name + suffix, "", 0, part.numel(), part.element_size(), 0)
