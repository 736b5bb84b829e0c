"""Copies of a model's weights that nothing trains: averages (EMA), snapshots, a teacher made from its student.

As a module, a copy has the shapes of a model that an optimizer updates, and no optimizer of its own. As loose tensors (a
list or dict of clones), a copy is a set of tensors that has a tensor for every parameter of such a model, and that was
there at an earlier look already. What is less than a whole copy is not taken for one.
"""

import collections
import weakref

from .storage import parts, storage_of

KEY = "copy of parameters"


def shapes_of(parameters):
    """How many tensors there are of each shape, of what lies on this rank."""
    return collections.Counter(part.shape for parameter in parameters for _, part in parts(parameter) if part.numel() > 1)


class LooseCopies:
    def __init__(self):
        self._candidates = {}  # id() → weak reference

    def look(self, tensors, named_parameters, known_addresses):
        """Returns [(name, tensor)] of what is a copy; `tensors` are all that the interpreter knows of."""
        wanted = shapes_of(parameter for _, parameter in named_parameters)
        candidates = [tensor for tensor in tensors if self._may_be_copy(tensor, wanted, known_addresses)]
        earlier, self._candidates = self._candidates, {id(tensor): weakref.ref(tensor) for tensor in candidates}
        lasting = [tensor for tensor in candidates if id(tensor) in earlier and earlier[id(tensor)]() is tensor]
        found = collections.Counter(tensor.shape for tensor in lasting)
        if not wanted or any(found[shape] < number for shape, number in wanted.items()):
            return []
        names = {part.shape: name for name, parameter in named_parameters for _, part in parts(parameter)}
        return [(names[tensor.shape] if wanted[tensor.shape] == 1 else f"of shape {tuple(tensor.shape)}", tensor) for tensor in lasting]

    @staticmethod
    def _may_be_copy(tensor, wanted, known_addresses):
        return tensor.is_cuda and tensor.shape in wanted and tensor.grad_fn is None and storage_of(tensor)[0] not in known_addresses
