"""Training steps of the ways to distribute a model, on the simulated platform.

    torchrun --nproc-per-node N dist_training.py ddp|fsdp2|hsdp|tensor_parallel|offload|fsdp1

Values mean nothing here; memory does. So what is checked are the sizes that sharding promises.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
WIDTH = 256
LAYERS = 4
STEPS = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def network(device="cuda"):
    with torch.device(device):
        return nn.Sequential(*[Block() for _ in range(LAYERS)])


PARAMETER_BYTES = LAYERS * 8 * WIDTH * WIDTH * 4


def train(model, device="cuda"):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        model(torch.randn(64, WIDTH, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        done = torch.tensor([1.0]).cuda()
        dist.all_reduce(done)
        if done.item() != WORLD:
            sys.exit(f"rank {RANK}: all_reduce gave {done.item()}, expected {WORLD}")
    return optimizer


def expect_allocated(low, high):
    allocated = torch.cuda.memory_allocated()
    if not low <= allocated <= high:
        sys.exit(f"rank {RANK}: {allocated} bytes allocated after training, expected {low} to {high}")


def shard(model, **options):
    for block in model:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def ddp():
    model = nn.parallel.DistributedDataParallel(network(), device_ids=[torch.cuda.current_device()])
    optimizer = train(model)  # parameters, two states, and the buckets that gradients are views of
    expect_allocated(4 * PARAMETER_BYTES, 4.5 * PARAMETER_BYTES)
    return model, optimizer


def fsdp2():
    model = shard(network(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    optimizer = train(model)
    expect_allocated(3 * PARAMETER_BYTES / WORLD, 3.5 * PARAMETER_BYTES / WORLD + (16 << 20))
    return model, optimizer


def hsdp():
    mesh = init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("replicate", "shard"))
    model = shard(network(), mesh=mesh)
    optimizer = train(model)
    expect_allocated(3 * PARAMETER_BYTES / 2, 3.5 * PARAMETER_BYTES / 2 + (16 << 20))
    return model, optimizer


def tensor_parallel():
    mesh = init_device_mesh("cuda", (WORLD,))
    model = network()
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = train(model)
    expect_allocated(3 * PARAMETER_BYTES / WORLD, 3.5 * PARAMETER_BYTES / WORLD + (16 << 20))
    return model, optimizer


def offload():
    model = shard(network("cpu"), offload_policy=CPUOffloadPolicy())
    optimizer = train(model)
    expect_allocated(0, 16 << 20)
    return model, optimizer


def fsdp1():
    model = FullyShardedDataParallel(network(), use_orig_params=True)
    return model, train(model)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda", torch.cuda.current_device())
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    kept = {function.__name__: function for function in (ddp, fsdp2, hsdp, tensor_parallel, offload, fsdp1)}[sys.argv[1]]()
    dist.barrier()
    del kept
    dist.destroy_process_group()
    print(f"rank {RANK}: trained with {sys.argv[1]}", flush=True)


if __name__ == "__main__":
    main()
