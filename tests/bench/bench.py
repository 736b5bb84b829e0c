"""Prints what recording costs, and how fast a ledger is read, as the table of docs/overhead.md: `bench.py --build DIR`."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
from job import Job  # noqa: E402

REPEATS = 3
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

    def program(self, *command):
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.build / "lib/simgpu")}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def hooks(self):
        """Nanoseconds that each kind of hook adds, the least of several runs: {what: ns}."""
        progress("hooks alone")
        runs = [self.program(self.build / "bin/recorder_bench", self.build / "lib/libledger.so") for _ in range(REPEATS)]
        rows = [dict(re.findall(r"^(.+?) {2,}[\d.]+ +[\d.]+ +([\d.]+)$", run, re.MULTILINE)) for run in runs]
        return {what: min(float(row[what]) for row in rows) for what in rows[0]}

    def replay(self):
        """Millions of events a second on one core, of the processor's time: {what: rate}."""
        progress("replay of a synthetic job")
        rows = re.findall(r"^(.+?) +([\d.]+) M events/s", self.program(self.build / "bin/replay_bench"), re.MULTILINE)
        return {what: float(rate) for what, rate in rows}

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
        progress("a recorded job's report")
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
        hooks = bench.hooks()
        replay = bench.replay()
        plain, recorded, history, history_python = bench.events()
        step, step_recorded, step_history = bench.steps()
        events, size, seconds = bench.reading()
    rows = [(f"hook: {what}", f"{nanoseconds:.0f} ns", "≤ 40 ns" if "block" in what else "") for what, nanoseconds in hooks.items()]
    rows += [
        ("a block event inside torch, added to its own time", f"{recorded - plain:.0f} ns (own: {plain:.0f} ns)", ""),
        ("the same, by torch's own history without stacks", f"{history - plain:.0f} ns", ""),
        ("the same, by torch's own history with Python stacks", f"{history_python - plain:.0f} ns", ""),
        ("a training step on the host, recorded : not recorded", f"{step_recorded / step:.3f}", "≤ 1.02"),
        ("the same, by torch's own history with Python stacks", f"{step_history / step:.3f}", ""),
    ]
    rows += [(f"reading: {what}", f"{rate:.0f} M events/s", "≥ 20 M/s" if "replay" in what else "") for what, rate in replay.items()]
    rows += [
        ("`gpuledger report --json` of a recorded job, one core", f"{events / seconds / 1e6:.1f} M events/s ({events / 1e6:.1f} M in {seconds:.2f} s)", ""),
        ("the file, for each event", f"{size / events:.1f} bytes", ""),
    ]
    print("| what | measured | aim |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
