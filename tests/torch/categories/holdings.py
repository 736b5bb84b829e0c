"""What a job itself knows about its memory at chosen instants: which storage holds what, written beside its ledger.

    truth = Holdings(model, optimizer)
    truth.look("step 1: forward ends", loss=loss, inputs=[tokens])
    truth.write()

Each look is a mark in the ledger, with the blocks of torch's own snapshot and the category that each known storage must
have. What the job does not know (temporaries, workspaces, buckets) has none.
"""

import collections
import ctypes
import dataclasses
import json
import os
import pathlib

import graph
import torch

_library = ctypes.PyDLL(None)


def locals_of(tensor):
    """The tensors with memory of their own: a sharded tensor's local part, what a collective that runs will have made."""
    for attribute in ("_local_tensor", "elem"):
        inner = getattr(tensor, attribute, None)
        if isinstance(inner, torch.Tensor):
            return locals_of(inner)
    return [tensor]


def tensors_of(value, path=""):
    """All tensors inside containers and dataclasses: [(path, tensor)]."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return []
    return [found for key, item in items for found in tensors_of(item, f"{path}.{key}" if path else str(key))]


def place(tensor):
    """(address, bytes) of a storage; address 0 where it has been given back."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


class Holdings:
    """Takes parameters and buffers as they lie when it is made: a sharding wrapper swaps them for whole ones later on."""

    def __init__(self, model, optimizer=None):
        self.model = model
        self.optimizer = optimizer
        self.masters = {}  # name → tensor
        self.copies = {}  # name → tensor: further copies of the weights, which nothing trains
        self.gathered = lambda: []  # → whole parameters that are alive
        self.more_gradients = lambda: []  # → gradients that are not in their parameters
        self.also_saved = lambda: []  # → activations that something else than the graph keeps for backward
        self.knows_recomputed = True  # what regions have run again
        self.calls = {}  # collectives of the step that is looked at: operation → [calls, bytes of payload]
        self._frames = []
        self._counts = collections.Counter()
        self._parameters = [(name, part) for name, p in model.named_parameters() for part in locals_of(p)]
        self._places = {name: place(part) for name, part in self._parameters if part.is_cuda}
        self._looks = []

    def add_parameters(self, named):
        """Of further models, which the optimizer may not know: [(name, parameter)]."""
        self._places.update((name, place(part)) for name, parameter in named for part in locals_of(parameter))

    def look(self, mark, loss=None, inputs=(), running=False):
        """`running`: a forward is under way, whose latest results may still be saved."""
        device = torch.cuda.current_device()
        expected = {}

        def hold(category, name, tensor):
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                for part in locals_of(tensor):
                    self._hold(expected, category, name, place(part))

        for name, where in self._places.items():
            self._hold(expected, "parameter", name, where)
        for name, tensor in self.masters.items():
            for part in locals_of(tensor):
                hold("master_parameter", name, part)
        for name, tensor in self.copies.items():
            hold("buffer", name, tensor)
        for name, tensor in self.model.named_buffers():
            hold("buffer", name, tensor)
        for name, tensor in self._gradients():
            hold("gradient", name, tensor)
        for name, tensor in self._states():
            hold("optimizer_state", name, tensor)
        for number, tensor in enumerate(inputs):
            hold("input", f"input {number}", tensor)
        for number, tensor in enumerate(self.gathered()):
            hold("comm_buffer", f"gathered {number}", tensor)
        if loss is not None:
            self._frames = graph.checkpoint_frames(loss)
        frames = [frame for reference in self._frames if (frame := reference()) is not None]
        for tensor in [tensor for frame in frames for tensor in graph.kept_by_frame(frame)]:
            hold("saved_activation", "a region's input", tensor)
        for tensor in [tensor for frame in frames if self.knows_recomputed for tensor in graph.recomputed_in(frame)]:
            hold("recomputed_activation", "recomputed", tensor)
        if loss is not None:
            for name, tensor in graph.saved_tensors(loss):
                hold("saved_activation", name, tensor)
        for tensor in self.also_saved():
            hold("saved_activation", "kept", tensor)
        _library.ledger_mark(mark.encode())
        complete = ["saved_activation"] if loss is not None else []
        complete += ["recomputed_activation"] if self.knows_recomputed and not running else []
        self._looks.append({"mark": mark, "complete": complete, "blocks": blocks_of(device), "expected": expected})

    def count(self, what):
        """1, 2, ...: for the names of looks that a program's callbacks make."""
        self._counts[what] += 1
        return self._counts[what]

    @staticmethod
    def _hold(expected, category, name, where):
        address, size = where
        if address and size:
            expected.setdefault(address, [category, name, size])

    def remember_gradients(self):
        """Where they lie in buckets, these stay while no parameter has a gradient."""
        kept = [p.grad.detach() for group in self.optimizer.param_groups for p in group["params"] if p.grad is not None]
        self.more_gradients = lambda: kept

    def _gradients(self):
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]] if self.optimizer else []
        gradients = [p.grad for p in parameters] + self.more_gradients()
        return [("gradient", part) for gradient in gradients if gradient is not None for part in locals_of(gradient)]

    def _states(self):
        if self.optimizer is None:
            return []
        optimizer = getattr(self.optimizer, "optim", self.optimizer)  # one that shards keeps its own part in another one
        found = [entry for state in optimizer.state.values() for entry in tensors_of(state)]
        return [(key, part) for key, tensor in found for part in locals_of(tensor)]

    def write(self, **facts):
        facts["parameters"] = {name: [part.numel(), part.element_size()] for name, part in self._parameters}
        facts["looks"] = self._looks
        facts["calls"] = self.calls
        name = f"rank{os.environ.get('RANK', '0')}.holdings.json"
        pathlib.Path(os.environ["LEDGER_DIR"], name).write_text(json.dumps(facts))


def blocks_of(device):
    """Address → bytes of every block of the caching allocator that somebody holds."""
    segments = [segment for segment in torch.cuda.memory_snapshot() if segment["device"] == device]
    return {block["address"]: block["size"] for segment in segments for block in segment["blocks"] if block["state"] == "active_allocated"}
