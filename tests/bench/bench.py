"""Prints what recording costs, and how fast a ledger is read, as the table of docs/overhead.md: `bench.py --build DIR`."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
from job import Job  # noqa: E402

REPEATS = 5
HEADER_BYTES, RECORD_BYTES = 4096, 64


def progress(message):
    print(f"== {message}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, build, scratch):
        self.build = build
        self.scratch = scratch

    def run(self, *arguments, recorded):
        """Runs a workload to its end; returns the number that it printed."""
        outcome = Job(self.build, [HERE / "workloads.py", *arguments]).run(self.scratch / "run", recorded)
        if outcome.status != 0:
            sys.exit(f"bench.py: error: {arguments} ended with status {outcome.status}\n{outcome.stderr}")
        return float(outcome.stdout.split()[-1])

    def alternate(self, *variants):
        """Medians of variants that take turns, so that what else goes on in the machine hits all of them."""
        results = [[] for _ in variants]
        for _ in range(REPEATS):
            for variant, result in zip(variants, results, strict=True):
                result.append(variant())
        return [statistics.median(result) for result in results]

    def hook(self):
        environment = os.environ | {"LD_PRELOAD": str(self.build / "lib/libledger.so"), "LEDGER_DIR": str(self.scratch / "hook")}
        command = [self.build / "bin/block_event"]
        return min(float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout) for _ in range(REPEATS))

    def events(self):
        progress("block events")
        return self.alternate(lambda: self.run("events", recorded=False), lambda: self.run("events", recorded=True),
                              lambda: self.run("events", "history", recorded=False),
                              lambda: self.run("events", "history-python", recorded=False))

    def steps(self):
        progress("training steps")
        return self.alternate(lambda: self.run("steps", recorded=False), lambda: self.run("steps", recorded=True),
                              lambda: self.run("steps", "history-python", recorded=False))

    def reading(self):
        """Events, bytes of the file, and the seconds of a whole `gpuledger report` on one core."""
        progress("replay")
        folder = self.scratch / "long"
        Job(self.build, [HERE.parent / "torch/cases.py", "long"]).run(folder)
        (ledger,) = folder.glob("*.ledger")
        command = ["taskset", "-c", "0", str(self.build / "bin/gpuledger"), "report", str(folder), "--json"]

        def seconds():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return time.perf_counter() - start

        size = ledger.stat().st_size
        return (size - HEADER_BYTES) // RECORD_BYTES, size, min(seconds() for _ in range(REPEATS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments.build, pathlib.Path(scratch))
        hook = bench.hook()
        plain, recorded, history, history_python = bench.events()
        step, step_recorded, step_history = bench.steps()
        events, size, seconds = bench.reading()
    rows = [
        ("a block event, the hook alone", f"{hook:.0f} ns", "≤ 40 ns"),
        ("a block event, in torch, added to one without recording", f"{recorded - plain:.0f} ns of {plain:.0f}", ""),
        ("the same, torch's own history without stacks", f"{history - plain:.0f} ns", ""),
        ("the same, torch's own history with Python stacks", f"{history_python - plain:.0f} ns", ""),
        ("a training step (host's part), recorded / not", f"{step_recorded / step:.3f}", "≤ 1.02"),
        ("the same, torch's own history with Python stacks", f"{step_history / step:.3f}", ""),
        ("`gpuledger report --json` of one rank, events a second on one core", f"{events / seconds / 1e6:.1f} M ({events / 1e6:.1f} M in {seconds:.2f} s)", "≥ 20 M"),
        ("bytes of an event in the file", f"{size / events:.1f}", ""),
    ]
    print("| what | measured | aim |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
