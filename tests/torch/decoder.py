"""A decoder's training steps against torch's own counters: alone, or on each rank of a job.

    python decoder.py
    torchrun --nproc-per-node 8 decoder.py --strategy fsdp2 --checkpointing
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from demo_train import Decoder, initialize, phase, shard  # noqa: E402
from truth import Truth  # noqa: E402

SNAPSHOT_STEP = 1  # the first step with optimizer state


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=["plain", "ddp", "fsdp2"], default="plain")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=512)
    return parser.parse_args()


def build(arguments, device):
    shape = {"width": arguments.width, "layers": arguments.layers, "heads": 4, "hidden": 4 * arguments.width,
             "checkpointing": arguments.checkpointing}
    if arguments.strategy == "fsdp2":
        with torch.device("meta"):
            model = Decoder(**shape)
        shard(model)
        model.to_empty(device=device)
    else:
        with torch.device(device):
            model = Decoder(**shape).to(torch.bfloat16)
    initialize(model)
    if arguments.strategy == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    return model


def train(model, arguments, device, truth):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(arguments.steps):
        tokens = torch.randint(32000, (2, arguments.length + 1)).to(device)

        def look(when):
            if step == SNAPSHOT_STEP:
                truth.snapshot(f"step {step}: {when}")

        with truth.window(f"step {step}"), phase(f"step {step}"):
            with phase("forward"):
                loss = model(tokens[:, :-1], tokens[:, 1:])
            look("after forward")
            with phase("backward"):
                loss.backward()
            look("after backward")
            with phase("optimizer"):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            look("after the optimizer")
        # One write: the lines of other ranks must not come between.
        sys.stdout.write(f"rank {os.environ.get('RANK', 0)}: step {step}: {torch.cuda.max_memory_allocated()} bytes\n")


def main():
    arguments = parse_arguments()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if arguments.strategy != "plain":
        dist.init_process_group("nccl", device_id=device)
    truth = Truth()
    train(build(arguments, device), arguments, device, truth)
    torch.cuda.empty_cache()
    truth.snapshot("end")
    truth.write()
    if arguments.strategy != "plain":
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
