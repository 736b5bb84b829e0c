"""Runs functions in forks of this process, so that PyTorch is imported once for many jobs. This process itself must never touch a
device; each fork is a process of its own to the recorder, and to PyTorch, which reads its settings at the first use of a device.
"""

import os
import signal
import sys
import time
import traceback

import torch
import torch._dynamo  # every optimizer imports it, which takes longer than most jobs
import torch.distributed as dist

LIMIT_S = 120
GRACE_S = 5  # for the other ranks, when one of them has failed


def join(backend="nccl"):
    """The process group of the ranks of this job."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(os.environ["STORE"], ranks)
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))


def run(folder, function, ranks=1, environment=None, limit_s=LIMIT_S):
    """Runs a function in forks, one a rank. Ledgers go to the folder, which must not be there yet. Returns their statuses."""
    folder.mkdir(parents=True)
    return _wait([_start(folder, function, rank, ranks, environment or {}) for rank in range(ranks)], limit_s)


def run_all(folder, jobs):
    """Runs jobs, one after the other: {name: the arguments of `run` behind the folder}. Ledgers go to FOLDER/NAME. Prints a line
    for each job that fails; returns their number."""
    failed = 0
    for name, arguments in jobs.items():
        statuses = run(folder / name, *arguments)
        if any(status != 0 for status in statuses):
            failed += 1
            print(f"{name}: ended with status {statuses}", flush=True)
    return failed


def _start(folder, function, rank, ranks, environment):
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        return child
    try:
        os.environ.update(environment, LEDGER_DIR=str(folder), RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), STORE=str(folder / "store"))
        torch.cuda.set_device(rank)
        function()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(0)  # the way an interpreter ends, with its exit handlers


def _wait(children, limit_s):
    """Exit statuses; None for one that was ended because it, or another one, took too long or failed."""
    deadline = time.monotonic() + limit_s
    statuses = dict.fromkeys(children)
    while None in statuses.values() and time.monotonic() < deadline:
        for child in [child for child, status in statuses.items() if status is None]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                statuses[child] = os.waitstatus_to_exitcode(status)
        if any(statuses.values()):
            deadline = min(deadline, time.monotonic() + GRACE_S)
        time.sleep(0.02)
    for child in [child for child, status in statuses.items() if status is None]:
        os.kill(child, signal.SIGABRT)  # its interpreter says where it stands (faulthandler)
        os.waitpid(child, 0)
    return list(statuses.values())

