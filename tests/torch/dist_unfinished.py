"""Work that no later operation completes, because there is none: whoever asks about it, or waits for it, comes to an end.

    SIMGPU_EVENT_LAG=1000000 torchrun --nproc-per-node N dist_unfinished.py

With an event lag, a process group is destroyed while its watchdog still asks about collectives, and nobody synchronizes.
"""

import os
import sys

import torch
import torch.distributed as dist

MOST_QUESTIONS = 1000


def questions(finished):
    """How often it was asked in vain."""
    for count in range(MOST_QUESTIONS):
        if finished():
            return count
    sys.exit(f"rank {os.environ['RANK']}: still unfinished after {MOST_QUESTIONS} questions")


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    tensor = torch.ones(1 << 20, device="cuda")

    work = dist.all_reduce(tensor, async_op=True)
    questions(work.is_completed)  # the watchdog asks, too
    tensor += 1
    event = torch.cuda.Event()
    event.record()
    if questions(event.query) == 0:
        sys.exit("an event was complete at once: is SIMGPU_EVENT_LAG set?")
    tensor += 1
    if questions(torch.cuda.current_stream().query) == 0:
        sys.exit("a stream had no work to do")

    for _ in range(3):
        dist.all_reduce(tensor, async_op=True)
    dist.destroy_process_group()  # waits for all of them


if __name__ == "__main__":
    main()
