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
        self.undecided = False  # at the last look there were copies, if only they last

    def look(self, tensors, named_parameters, known_addresses):
        """Returns [(name, tensor)] of what is a copy; `tensors` are all that the interpreter knows of."""
        local = [(name, part.shape) for name, parameter in named_parameters for _, part in parts(parameter) if part.numel() > 1]
        # Of sharded parameters, copies may be kept whole.
        whole = [(name, parameter.shape) for name, parameter in named_parameters if parameter.numel() > 1]
        shapes = {shape for _, shape in local + whole}
        candidates = [tensor for tensor in tensors if self._may_be_copy(tensor, shapes, known_addresses)]
        earlier, self._candidates = self._candidates, {id(tensor): weakref.ref(tensor) for tensor in candidates}
        lasting = [tensor for tensor in candidates if id(tensor) in earlier and earlier[id(tensor)]() is tensor]
        kinds = [local] if whole == local else [local, whole]
        found = [copy for kind in kinds for copy in _copies_of(kind, lasting)]
        self.undecided = sum(len(_copies_of(kind, candidates)) for kind in kinds) > len(found)
        return found

    @staticmethod
    def _may_be_copy(tensor, shapes, known_addresses):
        if not (tensor.is_cuda and tensor.shape in shapes and tensor.is_leaf):
            return False
        address, size = storage_of(tensor)
        return size != 0 and address not in known_addresses


def _copies_of(named_shapes, tensors):
    """[(name, tensor)] of the tensors that have the shapes, if there is one for each."""
    wanted = collections.Counter(shape for _, shape in named_shapes)
    fitting = [tensor for tensor in tensors if tensor.shape in wanted]
    found = collections.Counter(tensor.shape for tensor in fitting)
    if not wanted or any(found[shape] < number for shape, number in wanted.items()):
        return []
    names = {shape: name for name, shape in named_shapes}
    return [(names[tensor.shape] if wanted[tensor.shape] == 1 else f"of shape {tuple(tensor.shape)}", tensor) for tensor in fitting]
