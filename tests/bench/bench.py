"""Prints what recording costs, and how fast a ledger is read, as the table of docs/overhead.md: `bench.py --build DIR`."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
from job import Job  # noqa: E402
from turns import medians, take_turns  # noqa: E402

REPEATS = 3
HEADER_BYTES, RECORD_BYTES = 4096, 64


def progress(message):
    print(f"== {message}", file=sys.stderr, flush=True)


def print_table(head, rows):
    print(head)
    print("|---" * (head.count("|") - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


class Bench:
    def __init__(self, build, scratch):
        self.build = build
        self.scratch = scratch

    def turns(self, workload, variants, instances, rounds):
        return take_turns(self.build, self.scratch / "run", workload, variants, instances, rounds)

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
        """What a block event costs in torch, in nanoseconds: its own, and what is added; rows of the table."""
        results = self.turns("events", ["plain", "off", "alone", "unobserved", "observed", "history", "history-python"], 2, 25)

        def row(what, compare):
            clock, processor = medians(results, compare)
            return f"a block event in torch: {what}", f"{clock * 1e9:.0f} ns", f"{processor * 1e9:.0f} ns", ""

        def added(variant):
            return lambda time: time[variant] - time["off"]

        return [
            row("its own", lambda time: time["plain"]),
            row("library alone, added", added("alone")),
            row("with agent and adapter, added", added("unobserved")),
            row("the same while ops are observed, added", added("observed")),
            row("torch's own history without stacks, added", added("history")),
            row("torch's own history with Python stacks, added", added("history-python")),
        ]

    def steps(self):
        """What recording makes of a training step's time; rows of the table."""
        results = self.turns("steps", ["plain", "off", "alone", "later", "observed", "history-python"], 3, 40)

        def row(what, variant, reference, aim=""):
            clock, processor = medians(results, lambda time: time[variant] / time[reference])
            return f"a training step, {what}", f"{clock:.3f}", f"{processor:.3f}", aim

        milliseconds = [f"{seconds * 1e3:.1f} ms" for seconds in medians(results, lambda time: time["plain"])]
        return [
            ("a training step without the library", *milliseconds, ""),
            row("library loaded and switched off : without it", "off", "plain"),
            row("library alone : switched off", "alone", "off", "≤ 1.02"),
            row("with agent and adapter while ops are observed : switched off", "observed", "off"),
            row("with agent and adapter afterwards : switched off", "later", "off", "≤ 1.03"),
            row("torch's own history with Python stacks : switched off", "history-python", "off"),
        ]

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
        inside = bench.events() + bench.steps()
        events, size, seconds = bench.reading()
    print_table("| what | by the clock | by the processor | aim |", inside)
    print_table("| what | measured | aim |", [
        *((f"hook: {what}", f"{nanoseconds:.0f} ns", "≤ 40 ns" if "block" in what else "") for what, nanoseconds in hooks.items()),
        *((f"reading: {what}", f"{rate:.0f} M events/s", "≥ 20 M/s" if what.startswith(("replay", "attribution")) else "") for what, rate in replay.items()),
        ("`gpuledger report --json` of a recorded job, one core", f"{events / seconds / 1e6:.1f} M events/s ({events / 1e6:.1f} M in {seconds:.2f} s)", ""),
        ("the file, for each event", f"{size / events:.1f} bytes", ""),
    ])


if __name__ == "__main__":
    main()
