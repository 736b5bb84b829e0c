"""Runs workloads, each in processes of its own, which are forks of this one: PyTorch is imported once.

    python launch.py FOLDER NAME...

Ledgers and truth of a workload go to FOLDER/NAME. This process itself never touches a device. Prints a line for each
workload that fails; the status is their number.
"""

import os
import pathlib
import sys
import time
import traceback

import sharded_workloads
import torch
import workloads

LIMIT_S = 120


def ranks_of(name):
    return sharded_workloads.RANKS.get(name, 1)


def run_rank(folder, name, rank):
    """In the child. Ends the process the way an interpreter ends, so that exit handlers run."""
    ranks = ranks_of(name)
    os.environ["LEDGER_DIR"] = str(folder)
    if name in sharded_workloads.WORKLOADS:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), STORE=str(folder / "store"))
        torch.cuda.set_device(rank)
        sharded_workloads.WORKLOADS[name]()
    else:
        workloads.WORKLOADS[name]()


def start(folder, name):
    folder.mkdir(parents=True)
    children = []
    for rank in range(ranks_of(name)):
        child = os.fork()
        if child == 0:
            try:
                run_rank(folder, name, rank)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            sys.exit(0)
        children.append(child)
    return children


def wait(children, limit_s=LIMIT_S):
    """Exit statuses; None for one that was ended because it, or another one, took too long or failed."""
    deadline = time.monotonic() + limit_s
    statuses = dict.fromkeys(children)
    while None in statuses.values() and time.monotonic() < deadline:
        for child in [child for child, status in statuses.items() if status is None]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                statuses[child] = os.waitstatus_to_exitcode(status)
        if any(statuses.values()):
            deadline = min(deadline, time.monotonic() + 5)  # the others wait for one that is gone
        time.sleep(0.02)
    for child in [child for child, status in statuses.items() if status is None]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return list(statuses.values())


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    failed = 0
    for name in names:
        statuses = wait(start(folder / name, name))
        if any(statuses):
            failed += 1
            print(f"{name}: ended with status {statuses}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
