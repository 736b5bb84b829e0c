"""Tensors and the memory behind them."""

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def parts(tensor):
    """The tensors with memory of their own that a tensor consists of: [(suffix of its name, tensor)].

    A sharded tensor (DTensor) has its local part; another wrapper, such as a quantized one, may have several.
    """
    if type(tensor) in _PLAIN:
        return [("", tensor)]
    local = getattr(tensor, "_local_tensor", None)
    if local is not None:
        return parts(local)
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return [("", tensor)]
    names, _ = flatten()
    return [(f".{name}{suffix}", part) for name in names for suffix, part in parts(getattr(tensor, name))]


def plain_address(tensor):
    """Something that changes when the tensor moves: cheap, for tensors of every kind."""
    if type(tensor) in _PLAIN:
        return tensor.data_ptr()
    local = getattr(tensor, "_local_tensor", None)
    return id(tensor) if local is None else local.data_ptr()


def storage_of(tensor):
    """(address, bytes); (0, 0) where there is none, as for tensors that stand for others while a graph is traced."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:
        return 0, 0
