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


def dump(build, file, *kinds):
    """The records of these kinds, as dictionaries."""
    result = gpuledger(build, "dump", file, "--json", "--kind", ",".join(kinds))
    require(result.returncode == 0, f"gpuledger dump {file.name}: status {result.returncode}\n{result.stderr[-2000:]}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def histories(folder, ranks):
    """torch's own history of every rank: its device, and a list of (action, size, address)."""
    return [json.loads(file.read_text()) for file in one_file_per_rank(folder, "*.history.json", ranks)]


def same_allocations(recorded, plain):
    """Two runs' histories: the same actions with the same sizes, in the same order. Addresses differ from run to run, and
    that somebody took a snapshot (as the recorder's adapter does once) stands in torch's history too, but allocates nothing."""
    def allocations(history):
        return [event for event in history[1] if event[0] != "snapshot"]

    for rank, (left, right) in enumerate(zip(map(allocations, recorded), map(allocations, plain), strict=True)):
        require(left, f"rank {rank}: torch's history is empty: nothing was compared")
        for index, (one, other) in enumerate(zip(left, right)):
            require(one[:2] == other[:2], f"rank {rank}: event {index} of torch's history: {one[:2]} with the recorder, {other[:2]} without it")
        require(len(left) == len(right), f"rank {rank}: {len(left)} events with the recorder, {len(right)} without it")


def same_behaviour(recorded, plain):
    require(recorded.status == plain.status, f"status {recorded.status} with the recorder, {plain.status} without it")
    # The lines of several ranks are mixed as it happens.
    require(sorted(recorded.stdout.splitlines()) == sorted(plain.stdout.splitlines()),
            f"stdout differs\nwith the recorder:\n{recorded.stdout}\nwithout it:\n{plain.stdout}")


def report(build, folder):
    result = gpuledger(build, "report", folder, "--json")
    require(result.returncode == 0, f"gpuledger report: status {result.returncode}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)


HEADER_BYTES, RECORD_BYTES = 4096, 64  # record.h

# torch's word for an action in its history, and the ledger's.
ACTIONS = {"alloc": "block_alloc", "free_requested": "block_free"}


def while_history_was_recorded(events):
    """The block events between the script's marks; the first is not there where the ledger began later."""
    marks = {event["text"]: index for index, event in enumerate(events) if event["kind"] == "mark"}
    inside = events[marks.get("history: begin", -1) + 1:marks["history: end"]]
    return [event for event in inside if event["kind"] != "mark"]


def same_events(build, ledgers, histories_of_ranks):
    """The block events of each ledger are those of torch's own history, address by address, in torch's order."""
    for ledger, (device, history) in zip(ledgers, histories_of_ranks, strict=True):
        expected = [(ACTIONS[action], address) for action, _, address in history if action in ACTIONS]
        events = while_history_was_recorded(dump(build, ledger, "mark", *ACTIONS.values()))
        found = [(event["kind"], event["address"]) for event in events if event["device"] == device]
        require(expected, f"{ledger.name}: torch's history has no block: nothing was compared")
        for index, (one, other) in enumerate(zip(found, expected)):
            require(one == other, f"{ledger.name}: block event {index}: {one} in the ledger, {other} in torch's history")
        require(len(found) == len(expected), f"{ledger.name}: {len(found)} block events, torch's history has {len(expected)}")


def few_records_after(build, ledger, mark, most):
    """What is written behind the last thing that the program did is bounded, and the file ends there."""
    slots = (ledger.stat().st_size - HEADER_BYTES) // RECORD_BYTES
    marks = [event["record"] for event in dump(build, ledger, "mark") if event["text"] == mark]
    require(len(marks) == 1, f"{ledger.name}: {len(marks)} marks {mark!r}, expected one")
    require(slots - marks[0] <= most, f"{ledger.name}: {slots - marks[0]} records after {mark!r}, at most {most} are allowed")


def lacks_nothing_but_the_last_record(build, ledger, last_step):
    """A ledger of a killed job: what the job had finished is in it, and of what was under way at most a record per thread is lost."""
    require(ledger is not None, "there is no ledger")
    marks = {event["text"] for event in dump(build, ledger, "mark")}
    missing = [step for step in range(last_step + 1) if f"step {step} is done" not in marks]
    require(not missing, f"{ledger.name}: the job had finished the steps {missing}, which are not there")
    rank = report(build, ledger)["ranks"][0]
    losses = {loss["reason"]: loss["count"] for loss in rank["losses"]}
    lost = losses.pop("uncommitted", 0)
    require(lost <= 2, f"{ledger.name}: {lost} records were never committed, at most one each of the two threads may be")
    require(not losses, f"{ledger.name}: {losses}")
    failed = [identity["detail"] for identity in rank["identities"] if not identity["holds"]]
    require(lost or not failed, f"{ledger.name}: {failed}")
    require(rank["peaks"]["allocated"]["bytes"] > 10 << 20, f"{ledger.name}: peaks: {rank['peaks']}")


def tensors_are_allocations(build, ledger, looks):
    """At each look of the script, the driver allocations that libc10_cuda.so holds are the tensors, address and bytes."""
    require(looks, f"{ledger.name}: the script did not look: nothing was compared")
    expected = {look["mark"]: {(tensor["address"], tensor["size"]) for tensor in look["allocations"]} for look in looks}
    alive = {}
    for event in dump(build, ledger, "alloc", "free", "mark"):
        if event["kind"] == "free":
            alive.pop(event["address"], None)
        elif event["kind"] == "alloc" and event["owner"] == "libc10_cuda.so":
            alive[event["address"]] = event["size"]
        elif event["kind"] == "mark" and event["text"] in expected:
            require(set(alive.items()) == expected.pop(event["text"]), f"{ledger.name}: at {event['text']!r}: {alive} in the ledger, {looks} by the script")
    require(not expected, f"{ledger.name}: no mark {sorted(expected)}")


WORKSPACE = 9  # NameCategory in record.h


def workspaces_are_named(build, ledger):
    """Of the blocks that were allocated between the marks of a turn, all are named a workspace while they live; of others, none."""
    alive, unnamed, named, inside = {}, [], 0, False
    for event in dump(build, ledger, "mark", "name", "block_alloc", "block_free"):
        if event["kind"] == "mark":
            inside = event["text"].endswith(": begin")
        elif event["kind"] == "block_alloc":
            alive[event["address"]] = {"size": event["size"], "lent": inside, "named": False}
        elif event["kind"] == "block_free":
            block = alive.pop(event["address"], None)
            if block and block["lent"] and not block["named"]:
                unnamed.append(block)
        elif event["category"] == WORKSPACE:
            block = alive.get(event["address"])
            require(block is not None, f"{ledger.name}: a workspace of {event['bytes']} bytes is at {event['address']:#x}, where no block is")
            require(block["lent"], f"{ledger.name}: a block of {block['size']} bytes that is no workspace was named one")
            require(event["bytes"] <= block["size"], f"{ledger.name}: a workspace of {event['bytes']} bytes in a block of {block['size']}")
            require(not block["named"], f"{ledger.name}: a workspace of {event['bytes']} bytes is named twice")
            block["named"] = True
            named += 1
    require(not unnamed, f"{ledger.name}: {len(unnamed)} workspaces have no name, sizes {[block['size'] for block in unnamed]}")
    require(named >= 2, f"{ledger.name}: {named} workspaces were named, expected one or more each of cuBLAS and cuBLASLt")
