"""torch.distributed on the simulated platform: small messages arrive, for every collective that the nccl backend has.

    torchrun --nproc-per-node N dist_collectives.py [--lazy]

--lazy leaves out the device of init_process_group, so that communicators are made at the first operation, one per pair
of ranks for sends and receives. Tensors are filled on the host and copied, since kernels compute nothing here.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])


def on_device(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).cuda()


def expect(what, got, expected):
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    if got != expected:
        sys.exit(f"rank {RANK}: {what}: expected {expected}, got {got}")


def check_reductions(group, ranks):
    me = dist.get_rank(group)
    total = sum(range(1, ranks + 1))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8):
        tensor = on_device([me + 1, 2], dtype)
        dist.all_reduce(tensor, group=group)
        expect(f"all_reduce of {dtype}", tensor, [total, 2 * ranks])
    for operation, expected in ((dist.ReduceOp.MAX, ranks), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, total / ranks)):
        tensor = on_device([me + 1])
        dist.all_reduce(tensor, operation, group=group)
        expect(f"all_reduce {operation}", tensor, [expected])
    tensor = on_device([me + 1])
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5), group=group)
    expect("all_reduce premul_sum", tensor, [total / 2])
    out = on_device([0])
    dist.reduce_scatter_tensor(out, on_device([float(i) for i in range(ranks)]), group=group)
    expect("reduce_scatter_tensor", out, [float(me * ranks)])
    dist.reduce_scatter(out, [on_device([10 * i + me]) for i in range(ranks)], group=group)
    expect("reduce_scatter", out, [float(10 * me * ranks + sum(range(ranks)))])
    tensor = on_device([me + 1])
    dist.reduce(tensor, group_dst=ranks - 1, group=group)
    if me == ranks - 1:
        expect("reduce", tensor, [total])
    coalesced = [on_device([me]), on_device([2 * me])]
    with dist._coalescing_manager(group=group, device=torch.device("cuda", torch.cuda.current_device())):
        for tensor in coalesced:
            dist.all_reduce(tensor, group=group)
    expect("coalesced all_reduce", coalesced[0], [total - ranks])
    expect("coalesced all_reduce", coalesced[1], [2 * (total - ranks)])


def check_moves(group, ranks):
    me = dist.get_rank(group)
    mine = on_device([21 + me], torch.int64)
    everything = [21 + i for i in range(ranks)]
    gathered = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(gathered, mine, group=group)
    expect("all_gather", [tensor.item() for tensor in gathered], everything)
    flat = on_device([0] * ranks, torch.int64)
    dist.all_gather_into_tensor(flat, mine, group=group)
    expect("all_gather_into_tensor", flat, everything)
    # Of different sizes: a group of broadcasts.
    uneven = [on_device([0] * (i + 1), torch.int64) for i in range(ranks)]
    dist.all_gather(uneven, on_device([me] * (me + 1), torch.int64), group=group)
    expect("all_gather, uneven", [tensor.tolist() for tensor in uneven], [[i] * (i + 1) for i in range(ranks)])

    tensor = on_device([7 + me])
    dist.broadcast(tensor, group_src=ranks - 1, group=group)
    expect("broadcast", tensor, [7.0 + ranks - 1])
    gathered = [torch.empty_like(mine) for _ in range(ranks)] if me == 0 else None
    dist.gather(mine, gathered, group_dst=0, group=group)
    if me == 0:
        expect("gather", [tensor.item() for tensor in gathered], everything)
    out = torch.empty_like(mine)
    dist.scatter(out, [on_device([5 * i], torch.int64) for i in range(ranks)] if me == 0 else None, group_src=0,
                 group=group)
    expect("scatter", out, [5 * me])

    out = on_device([0] * ranks, torch.int64)
    dist.all_to_all_single(out, on_device([10 * me + i for i in range(ranks)], torch.int64), group=group)
    expect("all_to_all_single", out, [10 * i + me for i in range(ranks)])
    out = on_device([0] * sum(i + 1 for i in range(ranks)), torch.int64)
    dist.all_to_all_single(out, on_device([me] * (ranks * (me + 1)), torch.int64), [i + 1 for i in range(ranks)],
                           [me + 1] * ranks, group=group)
    expect("all_to_all_single, uneven", out, [i for i in range(ranks) for _ in range(i + 1)])
    outs = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_to_all(outs, [on_device([10 * me + i], torch.int64) for i in range(ranks)], group=group)
    expect("all_to_all", [tensor.item() for tensor in outs], [10 * i + me for i in range(ranks)])


def check_point_to_point():
    left, right = (RANK - 1) % WORLD, (RANK + 1) % WORLD
    out, inward = on_device([float(RANK)] * 4), on_device([0.0] * 4)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, inward, left)]):
        work.wait()
    expect("batch_isend_irecv", inward, [float(left)] * 4)
    # A pipeline: one rank after the other.
    if RANK > 0:
        dist.recv(inward, RANK - 1)
        expect("recv", inward, [100.0 + RANK - 1] * 4)
    if RANK < WORLD - 1:
        dist.send(on_device([100.0 + RANK] * 4), RANK + 1)


def check_objects():
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK})
    expect("all_gather_object", objects, [{"rank": i} for i in range(WORLD)])
    objects = [RANK, "x"]
    dist.broadcast_object_list(objects, 0)
    expect("broadcast_object_list", objects, [0, "x"])


def check_large():
    """Larger than what is moved: returns, and takes its memory."""
    large = torch.empty(64 << 20, device="cuda")
    dist.all_reduce(large)
    parts = torch.empty((64 << 20) // WORLD, device="cuda")
    dist.reduce_scatter_tensor(parts, large)
    dist.all_gather_into_tensor(large, parts)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    eager = {} if "--lazy" in sys.argv else {"device_id": torch.device("cuda", torch.cuda.current_device())}
    dist.init_process_group("cpu:gloo,cuda:nccl", **eager)
    dist.barrier()
    check_reductions(dist.group.WORLD, WORLD)
    check_moves(dist.group.WORLD, WORLD)
    check_point_to_point()
    check_objects()
    check_large()
    # Parts of the world: communicators split off the first (eager), or made anew.
    mesh = init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("outer", "inner"))
    for name in mesh.mesh_dim_names:
        group = mesh.get_group(name)
        check_reductions(group, dist.get_world_size(group))
        check_moves(group, dist.get_world_size(group))
    work = dist.all_reduce(on_device([1.0]), async_op=True)
    work.wait()
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {RANK}: all collectives as expected", flush=True)


if __name__ == "__main__":
    main()
