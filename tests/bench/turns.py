"""Times variants of a workload (workloads.py) that take turns, so that whatever else goes on in the machine hits all alike."""

import dataclasses
import pathlib
import statistics
import subprocess
import sys

from job import Job

WORKLOADS = pathlib.Path(__file__).resolve().parent / "workloads.py"


@dataclasses.dataclass(frozen=True)
class Time:
    """Seconds of a part of a turn."""

    clock: float
    processor: float


class Server:
    """A Python process with PyTorch in it, from which the processes of some variants are forked."""

    def __init__(self, build, folder, workload, variants, recorded):
        job = Job(build, [WORKLOADS, workload, *variants])
        self.process = subprocess.Popen(job.command(), env=job.settings(folder, recorded), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for variant in variants:
            print(f" {variant}", end="", file=sys.stderr, flush=True)
            self._answer()

    def _answer(self):
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench.py: error: {WORKLOADS.name} ended with status {self.process.wait()}; its message is above")
        return answer.split()

    def turn(self, variant):
        print(variant, file=self.process.stdin, flush=True)
        return Time(*map(float, self._answer()))

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"bench.py: error: {WORKLOADS.name} ended with status {self.process.returncode}; its message is above")


def _rounds(servers, variants, count):
    """Times of `count` turns of each variant; who begins changes from round to round."""
    times = {variant: [] for variant in variants}
    for number in range(count):
        first = number % len(variants)
        for variant in variants[first:] + variants[:first]:
            times[variant].append(servers[variant].turn(variant))
    return times


def take_turns(build, folder, workload, variants, instances, rounds):
    """[{variant: [Time of each round]}], one of each instance: a start of everything anew."""
    results = []
    for instance in range(1, instances + 1):
        print(f"== {workload}, start {instance} of {instances}:", end="", file=sys.stderr, flush=True)
        with_library = [variant for variant in variants if variant != "plain"]
        recorded = Server(build, folder, workload, with_library, True)
        plain = Server(build, folder, workload, ["plain"], False)
        servers = dict.fromkeys(with_library, recorded) | {"plain": plain}
        print(f"; {rounds} rounds", file=sys.stderr, flush=True)
        results.append(_rounds(servers, variants, rounds))
        for server in (recorded, plain):
            server.end()
    return results


def medians(results, compare):
    """(by the clock, by the processor): the median over all starts of what `compare` makes of a round's times."""

    def median(field):
        values = []
        for times in results:
            rounds = [dict(zip(times, row, strict=True)) for row in zip(*times.values(), strict=True)]
            values.append(statistics.median(compare({name: getattr(time, field) for name, time in row.items()}) for row in rounds))
        return statistics.median(values)

    return median("clock"), median("processor")
