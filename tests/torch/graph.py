"""What the autograd graph behind a loss keeps alive, found by walking it.

Nothing here shares code or hooks with the recorder: nodes are followed by `next_functions`, and their own attributes are
read. A tensor that hooks have packed is not kept by the graph; what the hooks keep instead is.
"""

import weakref

import torch


def saved_tensors(loss):
    """[(node's name, tensor)], each tensor as often as it is saved."""
    return [(node.name(), tensor) for node in _nodes(loss) for tensor in _kept_by(node)]


def checkpoint_frames(loss):
    """Weak references to the regions of torch.utils.checkpoint (without reentrance) that the graph leads to."""
    frames = {id(frame): frame for node in _nodes(loss) for saved in _variables(node) if (frame := _frame_of(saved)) is not None}
    return [weakref.ref(frame) for frame in frames.values()]


def kept_by_frame(frame):
    """The inputs that a region keeps, to run again."""
    return [tensor for kept in frame.saved_args if hasattr(kept, "unpack_hook") for tensor in _kept_by_variable(kept)]


def recomputed_in(frame):
    return [tensor for run in frame.recomputed.values() for tensor in run.values() if isinstance(tensor, torch.Tensor)]


def _nodes(loss):
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
        yield node


def _variables(node):
    for attribute in dir(type(node)):
        if attribute.startswith("_raw_saved_"):
            saved = getattr(node, attribute)
            yield from (item for item in (saved if isinstance(saved, (list, tuple)) else [saved]) if item is not None)


def _kept_by(node):
    for saved in _variables(node):
        yield from _kept_by_variable(saved)
    for value in getattr(node, "__dict__", {}).values():  # what a custom function put on its context
        yield from _tensors(value)


def _kept_by_variable(saved):
    if saved.unpack_hook is None:
        yield from _tensors(saved.data)
    elif (frame := _frame_of(saved)) is not None:
        yield from kept_by_frame(frame)


def _frame_of(saved):
    return _closure(saved.unpack_hook).get("frame") if saved.unpack_hook is not None else None


def _closure(function):
    cells = getattr(function, "__closure__", None) or ()
    return dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells)))


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
