"""Tensors and the memory behind them."""

import dataclasses

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def parts(tensor):
    """The tensors with memory of their own that a tensor consists of: [(suffix of its name, tensor)].

    A sharded tensor (DTensor) has its local part; another wrapper, such as a quantized one, may have several.
    """
    if type(tensor) in PLAIN:
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
    """Something that changes when the tensor moves: cheap, for tensors of every kind. 0 for one that stands for another,
    as in the transforms of torch.func."""
    if type(tensor) in PLAIN:
        try:
            return tensor.data_ptr()
        except RuntimeError:
            return 0
    local = getattr(tensor, "_local_tensor", None)
    return id(tensor) if local is None else local.data_ptr()


def storage_of(tensor):
    """(address, bytes); (0, 0) where there is none, as for tensors that stand for others while a graph is traced."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:
        return 0, 0


def tensors_in(value, path="", depth=4):
    """All tensors in containers and dataclasses, with where they are in there: [(path, tensor)]."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if depth == 0:
        return []
    if isinstance(value, dict):
        items = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        items = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [(f"{path}.{key}" if path else key, item) for key, item in vars(value).items()]
    else:
        return []
    return [found for key, item in items for found in tensors_in(item, key, depth - 1)]
