"""What the autograd graph behind a loss keeps alive, found by walking it.

Nothing here shares code or hooks with the recorder: nodes are followed by `next_functions`, and their own attributes are
read. A tensor that hooks have packed is not kept by the graph; what the hooks keep instead is.
"""

import torch


def saved_tensors(loss):
    """[(node's name, tensor)], each tensor as often as it is saved."""
    found, seen, waiting = [], set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
        found.extend((node.name(), tensor) for tensor in _kept_by(node))
    return found


def _kept_by(node):
    for attribute in dir(type(node)):
        if attribute.startswith("_raw_saved_"):
            saved = getattr(node, attribute)
            for item in saved if isinstance(saved, (list, tuple)) else [saved]:
                if item is not None:
                    yield from _kept_by_variable(item)
    for value in getattr(node, "__dict__", {}).values():  # what a custom function put on its context
        yield from _tensors(value)


def _kept_by_variable(saved):
    if saved.unpack_hook is None:
        yield from _tensors(saved.data)
    elif (frame := _closure(saved.unpack_hook).get("frame")) is not None:
        # A region of torch.utils.checkpoint keeps its inputs, to run again.
        for kept in frame.saved_args:
            if hasattr(kept, "unpack_hook"):
                yield from _kept_by_variable(kept)


def _closure(function):
    cells = getattr(function, "__closure__", None) or ()
    return dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells)))


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
