"""Jobs of which it is known beforehand what a report must say.

    python jobs.py NAME
"""

import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "categories"))
from optimizers import MasterAdamW  # noqa: E402

STEPS = 3


class Layers(nn.Module):
    """Matrices of one size, in a row."""

    def __init__(self, layers, rows, columns):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*((rows, columns) if number % 2 == 0 else (columns, rows)), bias=False) for number in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x.float().mean()


def shard(model):
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)


def train(model, optimizer, shape, dtype):
    for _ in range(STEPS):
        model(torch.empty(shape, dtype=dtype, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()


def billion():
    """Five layers of 200 million parameters in 16 bits, with master parameters and two moments in 32, in eight shards. Each layer
    gathers the next one before it runs. One rank of a world of eight whose other ranks are not there."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    with torch.device("meta"):
        model = Layers(5, 10_000, 20_000).to(torch.bfloat16)
    shard(model)
    model.to_empty(device="cuda")
    layers = list(model.layers)
    for number, layer in enumerate(layers):
        layer.set_modules_to_forward_prefetch(layers[number + 1 : number + 2])
    train(model, MasterAdamW(model.parameters()), (4096, 10_000), torch.bfloat16)


def join():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    dist.all_reduce(torch.zeros(1000, device="cuda"))


def own_groups():
    """Collectives in groups of the program's own."""
    rank = dist.get_rank()
    pair = dist.new_group([0, 1], group_desc="pair")
    alone = [dist.new_group([each]) for each in range(2)][rank]
    uneven = [torch.empty(1000 * (each + 1), device="cuda") for each in range(2)]
    dist.all_gather([part.clone() for part in uneven], uneven[rank], group=pair)
    received, sent = torch.empty(3000, device="cuda"), torch.empty(2000 * (rank + 1), device="cuda")
    dist.all_to_all_single(received, sent, [1000, 2000], [1000 * (rank + 1)] * 2, group=pair)
    with dist._coalescing_manager(group=pair, device=torch.device("cuda", rank)):
        for part in uneven:
            dist.all_reduce(part, group=pair)
    dist.all_reduce(received, group=alone)
    return pair, alone


def tell(groups):
    """What the program knows of its groups goes beside the ledger."""
    known = {
        group.group_name: {
            "description": group.group_desc,
            "ranks": dist.get_world_size(group),
            "rank": dist.get_rank(group),
            "first_rank": dist.get_process_group_ranks(group)[0],
            "rank_stride": dist.get_world_size(group) - 1,  # one or two ranks, next to each other
        }
        for group in (dist.group.WORLD, *groups)
    }
    pathlib.Path(os.environ["LEDGER_DIR"], f"groups{dist.get_rank()}.json").write_text(json.dumps(known))


def sharded():
    join()
    groups = own_groups()
    model = Layers(4, 512, 512).cuda()
    model.norm = nn.Linear(512, 256, bias=False).cuda()  # the root's own; no step uses it
    shard(model)
    train(model, torch.optim.AdamW(model.parameters()), (16, 512), torch.float32)
    late = dist.new_group([0, 1], group_desc="late")  # when ops are no longer observed
    dist.all_reduce(torch.zeros(500, device="cuda"), group=late)
    tell([*groups, late])


def replicated():
    join()
    model = Layers(4, 512, 512).cuda()
    train(nn.parallel.DistributedDataParallel(model), torch.optim.AdamW(model.parameters()), (16, 512), torch.float32)


JOBS = {job.__name__: job for job in (billion, sharded, replicated)}

if __name__ == "__main__":
    JOBS[sys.argv[1]]()
    dist.destroy_process_group()
