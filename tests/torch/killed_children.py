"""Fifty jobs that are killed at random instants: `python killed_children.py COUNT`.

PyTorch is imported once. Each job is a forked child that starts CUDA, trains, and says which steps it has finished: in the
ledger by a mark, then on a pipe. What was said on the pipe before the SIGKILL must be in the ledger. Prints a line of JSON for
each child: its process, and the last step that it finished.
"""

import json
import os
import random
import signal
import sys
import time

import torch
from cases import small_network
from truth import mark


def train(said):
    """Until killed. Backward has a thread of its own, which writes records beside this one."""
    model = small_network()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1_000_000):
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        mark(f"step {step} is done")
        os.write(said, f"{step}\n".encode())


def kill_one():
    """The child and its last finished step."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        train(writer)
    os.close(writer)
    with os.fdopen(reader) as steps:
        if not steps.readline():
            sys.exit("a child ended before its first step")
        time.sleep(random.uniform(0, 0.5))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"a child ended by itself, with status {status}")
        # The line that was being written may be cut off.
        finished = [0] + [int(line) for line in steps if line.endswith("\n")]
    return {"pid": child, "last_step": finished[-1]}


def main():
    torch.optim.AdamW([torch.zeros(1)])  # imports what optimizers need, here instead of in every child
    for _ in range(int(sys.argv[1])):
        print(json.dumps(kill_one()), flush=True)


if __name__ == "__main__":
    main()
