"""What a job tells the test about itself: marks in its ledger, and facts beside it."""

import contextlib
import ctypes
import json
import os
import pathlib

import torch

MIB = 1 << 20
_library = ctypes.PyDLL(None)  # holds the interpreter's lock
_facts = {}


def mark(name):
    _library.ledger_mark(name.encode())


def look(name):
    """Marks the instant, and tells what torch says there."""
    mark(name)
    _facts.setdefault("looks", {})[name] = {
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
    }


def tell(**facts):
    _facts.update(facts)


def write():
    pathlib.Path(os.environ["LEDGER_DIR"], f"rank{os.environ['RANK']}.facts.json").write_text(json.dumps(_facts))


@contextlib.contextmanager
def rise(name):
    """Tells by how much torch's peak inside is above what was allocated before, and what remains."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    yield
    entry = {"peak": torch.cuda.max_memory_allocated() - before, "kept": torch.cuda.memory_allocated() - before}
    _facts.setdefault("rises", {})[name] = entry


def tensor(mebibytes):
    return torch.empty(int(mebibytes * MIB), dtype=torch.uint8, device="cuda")
