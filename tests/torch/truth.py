"""What PyTorch itself says about its memory, written beside the ledger for `gpuledger verify`.

    truth = Truth()
    with truth.window("training"):         # torch's peaks of what happens inside
        ...
        truth.snapshot("after forward")    # every block that is alive at this instant
    truth.write()

Each instant is a mark in the ledger, made by ledger_mark() right when torch is asked. Without libledger.so there are no
marks, and nothing else changes: a job is the same with the recorder and without it.
"""

import contextlib
import ctypes
import json
import os
import pathlib

import torch

_library = ctypes.CDLL(None)


def mark(name):
    """Returns the name; None where the ledger has not begun yet, or there is none: an instant before its first event."""
    if not hasattr(_library, "ledger_mark") or not _library.ledger_recording():
        return None
    _library.ledger_mark(name.encode())
    return name


class Truth:
    def __init__(self, device=None, history=True):
        """With TRUTH_HISTORY=1 in the environment, torch's own history of allocations is written too."""
        self._device = torch.cuda.current_device() if device is None else device
        self._windows = []
        self._snapshots = []
        self._tensors = []
        self._history = history and os.environ.get("TRUTH_HISTORY") == "1"
        if self._history:
            torch.cuda.memory._record_memory_history(context=None, max_entries=10_000_000, device=self._device)
            mark("history: begin")

    @contextlib.contextmanager
    def window(self, name):
        """Windows follow one another: torch has one set of peaks."""
        torch.cuda.reset_peak_memory_stats(self._device)
        begin = mark(f"{name}: begin")
        yield
        self._windows.append({
            "from": begin,
            "to": f"{name}: end",
            "device": self._device,
            "max_allocated": torch.cuda.max_memory_allocated(self._device),
            "max_reserved": torch.cuda.max_memory_reserved(self._device),
            "allocated": torch.cuda.memory_allocated(self._device),
            "reserved": torch.cuda.memory_reserved(self._device),
        })
        mark(f"{name}: end")

    def snapshot(self, name):
        segments = [s for s in torch.cuda.memory_snapshot() if s["device"] == self._device]
        mark(name)
        blocks = [{"address": block["address"], "size": block["size"], "requested": block["requested_size"],
                   "state": block["state"]}
                  for segment in segments for block in segment["blocks"] if block["state"] != "inactive"]
        self._snapshots.append({
            "mark": name,
            "device": self._device,
            "blocks": blocks,
            "segments": [{"address": s["address"], "size": s["total_size"]} for s in segments],
        })

    def tensors(self, name, alive):
        """For an allocator without blocks: where the tensors that are alive lie, and their bytes."""
        self._tensors.append({
            "mark": name,
            "device": self._device,
            "allocations": [{"address": tensor.data_ptr(), "size": tensor.untyped_storage().nbytes()} for tensor in alive],
        })
        mark(name)

    def join(self, other):
        """Takes over what another device's truth holds: a process writes one file."""
        self._windows += other._windows
        self._snapshots += other._snapshots

    def write(self):
        """Writes the truth, and the history where asked for, into the ledger's folder (LEDGER_DIR)."""
        folder = pathlib.Path(os.environ.get("LEDGER_DIR") or "ledger-run")
        folder.mkdir(parents=True, exist_ok=True)
        name = f"rank{os.environ.get('RANK', '0')}.pid{os.getpid()}"
        if self._history:
            mark("history: end")
            trace = torch.cuda.memory._snapshot(self._device)["device_traces"][self._device]
            events = [[event["action"], event["size"], event["addr"]] for event in trace if "addr" in event]
            (folder / f"{name}.history.json").write_text(json.dumps([self._device, events]))
        if self._tensors:
            (folder / f"{name}.tensors.json").write_text(json.dumps(self._tensors, indent=1) + "\n")
        truth = {"windows": self._windows, "snapshots": self._snapshots}
        (folder / f"{name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
