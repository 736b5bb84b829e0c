"""The driver behind the tests torch.training.*: bytes per parameter, what sharding adds for moments, and communication.

    run_training.py --build DIR --scratch DIR NAME      status 0: every check holds; 1: one does not; 77: it cannot run here
    run_training.py --list
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from checks import gpuledger, require  # noqa: E402
from driver import Checks, arguments_of  # noqa: E402
from job import Job  # noqa: E402

STEPS = 3
LAYER = 400_000_000  # bytes, of the job `billion`
WORKSPACE = 100 << 20
ROUNDING = 2 << 20  # of large blocks


def report(arguments, ranks=0, environment=None):
    folder = arguments.scratch / arguments.name
    outcome = Job(arguments.build, [HERE / "jobs.py", arguments.name], ranks, environment or {}).run(folder)
    require(outcome.status == 0, f"the job ended with status {outcome.status}\n{outcome.stderr[-3000:]}")
    result = gpuledger(arguments.build, "report", folder, "--json")
    require(result.returncode == 0, f"gpuledger report: status {result.returncode}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)


def same(what, found, expected):
    require(found == expected, f"{what}: found {found}, expected {expected}")


def widths(summary):
    return {name: category["bytes_per_parameter"] for name, category in summary["model_state"]["categories"].items()}


def sixteen_bytes(summary, rank):
    same("parameters", summary["model_state"]["parameters"], 10**9)
    same("bytes per parameter", widths(summary), {"parameter": 2, "gradient": 2, "master_parameter": 4, "optimizer_state": 8})
    same("in all", summary["model_state"]["bytes"], 16 * 10**9)
    same("on this rank", rank["model_state"]["held_bytes"], 2 * 10**9)
    same("shard factors", {category["shard_factor"] for category in rank["model_state"]["categories"].values()}, {8})


def gathered_layer_and_prefetched_layer_and_workspace(rank):
    use = rank["gathered"]["transient"]
    for key, size in (("ahead_bytes", LAYER), ("output_bytes", LAYER), ("in_use_bytes", 2 * LAYER)):
        require(size <= use[key] < size + size // LAYER * ROUNDING, f"{key}: found {use[key]}, expected {size} and its rounding")
    same("workspace", use["workspace_bytes"], WORKSPACE)
    same("sum", use["bytes"], use["in_use_bytes"] + use["ahead_bytes"] + use["workspace_bytes"])
    groups = {group["module"]: group["ahead"] for group in rank["gathered"]["groups"]}
    same("which of them is ahead", groups, {"layers.0": False, "layers.1": True})
    same("held between passes", rank["gathered"]["held"], [])


def billion(checks, arguments):
    whole = checks.check("the job runs", report, arguments, 0, {"CUBLAS_WORKSPACE_CONFIG": f":{WORKSPACE >> 10}:1"})
    if whole:
        rank = whole["ranks"][0]
        checks.check("sixteen bytes for each parameter, an eighth of them here", sixteen_bytes, whole["summary"], rank)
        checks.check("a layer, the next one, and a workspace at once", gathered_layer_and_prefetched_layer_and_workspace, rank)
        change = rank["after_first_step"]
        checks.check("the first step made the optimizer's state", same, "largest change", next(iter(change["categories"])), "optimizer_state")


def rows_of(rank, step, group):
    of_group = {each["communicator"] for each in rank["communicators"] if each["process_group"]["description"] == group}
    return [row for row in rank["communication"] if row["step"] == step and row["communicator"] in of_group]


def calls(rank, step, group="default_pg"):
    rows = rows_of(rank, step, group)
    return {row["operation"]: (row["count"], row["payload_bytes"], row["wire_bytes"]) for row in rows}


def same_in_steps(rank, expected):
    same("before the first step", calls(rank, -1)["all_reduce"], (1, 4000, 4000))
    for step in range(STEPS):
        same(f"step {step}", calls(rank, step), expected)


def process_groups(rank, folder):
    known = json.loads((folder / f"groups{rank['rank']}.json").read_text())
    groups = [dict(each["process_group"]) for each in rank["communicators"]]
    same("process groups", {group.pop("name"): group for group in groups}, known)


def own_groups(rank):
    """Unequal parts, of 1,000 elements for each rank and one more; whole groups of calls."""
    names = [each["communicator"] for each in rank["communicators"]]
    undescribed = 2 + rank["rank"]  # PyTorch's own name for the group
    same("communicators", names, ["communicator 0 \"default_pg\", 2 ranks", "communicator 1 \"pair\", 2 ranks",
                                  f"communicator 2 \"{undescribed}\", 1 rank", "communicator 3 \"late\", 2 ranks"])
    of_rank = 4000 * (rank["rank"] + 1)
    same("the pair", calls(rank, -1, "pair"), {
        "broadcast": (2, 12_000, 12_000),
        "send": (2, 2 * of_rank, of_rank),  # a part stays on the rank
        "receive": (2, 12_000, 12_000 - of_rank),
        "all_reduce": (2, 12_000, 12_000),
    })
    rows = {row["operation"]: row for row in rows_of(rank, -1, "pair")}
    for operation, asked_for in (("broadcast", "allgather"), ("send", "alltoall"), ("receive", "alltoall"), ("all_reduce", "allreduce")):
        names = rows[operation]["calls_of"]
        require(sum(names.values()) == 2 and all(asked_for in name.replace("_", "").lower() for name in names),
                f"{operation}: expected 2 calls for an {asked_for}, found {names}")
    same("the late group", calls(rank, STEPS - 1, "late"), {"all_reduce": (1, 2000, 2000)})


def named_memory(rank):
    accounts = {account["name"] for account in rank["peaks"]["device"]["balance"]["nccl"]}
    communicators = {each["communicator"] for each in rank["communicators"]}
    require(accounts and accounts <= communicators, f"accounts of NCCL: found {accounts}, expected some of {communicators}")


def sharded(checks, arguments):
    layer, root = 512 * 512 * 4, 512 * 256 * 4
    gathers, scatters = root + 2 * 4 * layer, 4 * layer  # a layer is gathered for its forward and for its backward
    expected = {"all_gather": (9, gathers, gathers // 2), "reduce_scatter": (4, scatters, scatters // 2)}
    whole = checks.check("the job runs", report, arguments, 2, {"LEDGER_OPS": "1"})
    for rank in whole["ranks"] if whole else []:
        checks.check(f"process groups of rank {rank['rank']}", process_groups, rank, arguments.scratch / arguments.name)
        checks.check(f"communication in groups of the program's own, rank {rank['rank']}", own_groups, rank)
        checks.check(f"memory of NCCL by process group, rank {rank['rank']}", named_memory, rank)
        checks.check(f"communication of rank {rank['rank']}", same_in_steps, rank, expected)
        factors = {name: category["shard_factor"] for name, category in rank["model_state"]["categories"].items()}
        checks.check("parameters in two shards", same, "shard factor", factors["parameter"], 2)


def replicated(checks, arguments):
    gradients = 4 * 512 * 512 * 4
    whole = checks.check("the job runs", report, arguments, 2)
    for rank in whole["ranks"] if whole else []:
        reduced = [calls(rank, step)["all_reduce"][1:] for step in range(STEPS)]
        checks.check(f"all gradients are reduced on rank {rank['rank']}", same, "all-reduce", reduced, [(gradients, gradients)] * STEPS)
        factors = {category["shard_factor"] for category in rank["model_state"]["categories"].values()} - {0}
        checks.check("nothing is sharded", same, "shard factors", factors, {1})
        checks.check("nothing is gathered", same, "gathered", rank["gathered"]["largest"]["gathered_bytes"], 0)
    if whole:
        checks.check("bytes per parameter", same, "widths", widths(whole["summary"]), {"parameter": 4, "gradient": 4, "optimizer_state": 8})


CASES = {case.__name__: case for case in (billion, sharded, replicated)}


def main():
    arguments = arguments_of(__doc__, list(CASES), adapter=True)
    checks = Checks()
    CASES[arguments.name](checks, arguments)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
