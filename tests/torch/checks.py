"""What is demanded of a recorded job."""

import json
import subprocess

from job import Failure


def require(holds, message):
    if not holds:
        raise Failure(message)


def gpuledger(build, *arguments, limit_s=120):
    """Runs the tool; returns the finished process."""
    return subprocess.run([str(build / "bin/gpuledger"), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=limit_s, check=False)


def one_file_per_rank(folder, pattern, ranks):
    files = sorted(folder.glob(pattern))
    expected = list(range(max(ranks, 1)))
    found = sorted(int(file.name.split(".")[0].removeprefix("rank")) for file in files)
    require(found == expected, f"{folder}: expected one {pattern} for each of the ranks {expected}, found {[file.name for file in files]}")
    return files


def ended_well(outcome, status=0):
    require(outcome.status == status, f"the job ended with status {outcome.status}, expected {status}\n{outcome.stdout[-2000:]}\n{outcome.stderr[-4000:]}")


def verified(build, folder):
    """The identities, at every event, and torch's counters and snapshots in the truth files: all with 0 bytes of difference."""
    result = gpuledger(build, "verify", folder)
    require(result.returncode == 0, f"gpuledger verify: status {result.returncode}\n{result.stdout[-6000:]}{result.stderr[-2000:]}")
    return result.stdout


def truths(folder, ranks):
    """The truth files of a run; each must hold something, or there was nothing to compare."""
    result = []
    for file in one_file_per_rank(folder, "*.truth.json", ranks):
        truth = json.loads(file.read_text())
        require(truth["windows"] or truth["snapshots"], f"{file} is empty: nothing was compared")
        result.append(truth)
    return result


def dump(build, file):
    """The events of a ledger, as dictionaries."""
    result = gpuledger(build, "dump", file, "--json")
    require(result.returncode == 0, f"gpuledger dump {file.name}: status {result.returncode}\n{result.stderr[-2000:]}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.strip()]


def histories(folder, ranks):
    """torch's own history of every rank: lists of (action, size, address)."""
    return [json.loads(file.read_text()) for file in one_file_per_rank(folder, "*.history.json", ranks)]


def same_allocations(recorded, plain):
    """Two runs' histories: the same actions with the same sizes, in the same order. Addresses differ from run to run."""
    for rank, (left, right) in enumerate(zip(recorded, plain, strict=True)):
        require(left, f"rank {rank}: torch's history is empty: nothing was compared")
        for index, (one, other) in enumerate(zip(left, right)):
            require(one[:2] == other[:2], f"rank {rank}: event {index} of torch's history: {one[:2]} with the recorder, {other[:2]} without it")
        require(len(left) == len(right), f"rank {rank}: {len(left)} events with the recorder, {len(right)} without it")


def same_behaviour(recorded, plain):
    require(recorded.status == plain.status, f"status {recorded.status} with the recorder, {plain.status} without it")
    require(recorded.stdout == plain.stdout, f"stdout differs\nwith the recorder:\n{recorded.stdout}\nwithout it:\n{plain.stdout}")


def report(build, folder):
    result = gpuledger(build, "report", folder, "--json")
    require(result.returncode == 0, f"gpuledger report: status {result.returncode}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)
