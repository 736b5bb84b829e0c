"""Programs of several ranks whose data is parallel: wrappers of PyTorch with the settings that people give them.

As in the other files, no rule was made with these in view before they were measured first. Some also say which collectives a step calls.
"""

import copy
import functools
import os

import loop
import torch
import torch.distributed as dist
from loop import adamw, train
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging import averagers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (BackwardPrefetch, CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy,
                                    fully_shard)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.distributed.tensor import Shard

from holdings import Holdings
from models import Decoder, Mlp
from sharded_workloads import fsdp1_holdings, fsdp2_holdings, joined, shard
from transformer import Block, next_token_loss, non_reentrant
from workloads import loss_of_mlp

BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def mesh(*shape):
    return init_device_mesh("cuda", shape, mesh_dim_names=("replicate", "shard")[-len(shape):])


def of_fully_sharded(model, width=4, replicas=1):
    """The collectives of a step, {operation: [calls, bytes of payload]}: each block gathers its parameters, of so many bytes an element, for forward and
    for backward, the root for both at once; gradients are reduced in 32 bits, over shards and then over replicas."""
    blocks = [sum(p.numel() for p in layer.parameters()) for layer in model.layers]
    elements = sum(p.numel() for p in model.parameters())
    calls = {"all_gather": [2 * len(blocks) + 1, (elements + sum(blocks)) * width], "reduce_scatter": [len(blocks) + 1, elements * 4]}
    if replicas > 1:
        calls["all_reduce"] = [len(blocks) + 1, elements * 4 * replicas // dist.get_world_size()]
    return calls


def train_fsdp2(model, loss_of=next_token_loss, truth=None, calls=None, optimizer=None, **options):
    optimizer = optimizer or adamw(model)
    truth = truth or fsdp2_holdings(model, optimizer)
    truth.calls = calls or {}
    train(model, optimizer, loss_of, Decoder.batch, truth=truth, **options)


# --- FSDP2


def fsdp2_hybrid():
    model = shard(Decoder().cuda(), mesh=mesh(2, 2))
    train_fsdp2(model, calls=of_fully_sharded(model, replicas=2))


def fsdp2_hybrid_accumulated():
    """Gradients are reduced over shards in every microbatch, over replicas in the last one."""
    model = shard(Decoder().cuda(), mesh=mesh(2, 2))
    calls = 0

    def loss_of(model, *batch):
        nonlocal calls
        calls += 1
        model.set_requires_all_reduce(calls % 2 == 0)
        return next_token_loss(model, *batch)

    train_fsdp2(model, loss_of, microbatches=2)


def fsdp2_offloaded():
    train_fsdp2(shard(Decoder(), offload_policy=CPUOffloadPolicy()))


def fsdp2_offloaded_mixed():
    train_fsdp2(shard(Decoder(), offload_policy=CPUOffloadPolicy(pin_memory=False), mp_policy=BF16))


def fsdp2_clipped():
    model = shard(Decoder().cuda(), mp_policy=BF16)
    train_fsdp2(model, calls=of_fully_sharded(model, width=2), clip=1.0)


def fsdp2_accumulated_checkpointed():
    model = shard(Decoder(region=non_reentrant).cuda(), mp_policy=BF16)
    calls = 0

    def loss_of(model, *batch):
        nonlocal calls
        calls += 1
        model.set_requires_gradient_sync(calls % 2 == 0)
        return next_token_loss(model, *batch)

    train_fsdp2(model, loss_of, microbatches=2)


def fsdp2_compiled():
    model = Decoder().cuda()
    for layer in model.layers:
        layer.compile()
    train_fsdp2(shard(model))


def fsdp2_partly_resharded():
    """After a forward, parameters are sharded over two ranks of four."""
    model = Decoder().cuda()
    for layer in model.layers:
        fully_shard(layer, reshard_after_forward=2)
    fully_shard(model, reshard_after_forward=2)
    train_fsdp2(model)


def fsdp2_columns():
    def by_largest(parameter):
        return Shard(max(range(parameter.ndim), key=lambda dim: parameter.shape[dim]))

    model = shard(Decoder().cuda(), shard_placement_fn=by_largest)
    train_fsdp2(model, calls=of_fully_sharded(model))


def fsdp2_averaged():
    model = shard(Decoder().cuda())
    average = {name: p.detach().clone() for name, p in model.named_parameters()}
    truth = fsdp2_holdings(model, optimizer := adamw(model))
    truth.copies = {name: copied._local_tensor for name, copied in average.items()}

    def update():
        with torch.no_grad():
            for name, p in model.named_parameters():
                average[name].lerp_(p, 0.01)

    train_fsdp2(model, truth=truth, optimizer=optimizer, after_step=update, calls=of_fully_sharded(model))


def fsdp2_meta():
    with torch.device("meta"):
        model = shard(Decoder(), mp_policy=BF16)
    model.to_empty(device="cuda")
    for p in model.parameters():
        nn.init.ones_(p)
    train_fsdp2(model, optimizer=torch.optim.Adam(model.parameters(), fused=True))


# --- FSDP1


def fsdp1(clip=None, microbatches=1, region=None, build=lambda model: model.cuda(), **options):
    shape = {"region": region} if region else {}
    model = FullyShardedDataParallel(build(Decoder(**shape)), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.cuda.current_device(), **options)
    optimizer = adamw(model)
    train(model, optimizer, next_token_loss, Decoder.batch, microbatches, truth=fsdp1_holdings(model, optimizer))


def fsdp1_hybrid():
    fsdp1(sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh(2, 2), use_orig_params=True)


FSDP1 = {
    "fsdp1_offloaded": functools.partial(fsdp1, build=lambda model: model, cpu_offload=CPUOffload(offload_params=True)),
    "fsdp1_grad_op": functools.partial(fsdp1, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, use_orig_params=True, microbatches=2),
    "fsdp1_unlimited": functools.partial(fsdp1, limit_all_gathers=False, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_POST),
    "fsdp1_mixed": functools.partial(fsdp1, mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.float32), region=non_reentrant, use_orig_params=True),
    "fsdp1_no_shard": functools.partial(fsdp1, sharding_strategy=ShardingStrategy.NO_SHARD, use_orig_params=True),
}


# --- DDP


def replicated(model, **options):
    return nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()], **options)


def train_replicated(model, loss_of=next_token_loss, batch=Decoder.batch, optimizer=None, keeps_buckets=False, **options):
    """`keeps_buckets`: gradients are views of them, also while parameters have none."""
    optimizer = optimizer or adamw(model)
    truth = Holdings(model, optimizer)
    if keeps_buckets:
        options["after_step"] = truth.remember_gradients
    train(model, optimizer, loss_of, batch, truth=truth, **options)


def ddp_static_graph():
    train_replicated(replicated(Decoder(region=non_reentrant).cuda(), static_graph=True))


def ddp_bf16_hook():
    model = replicated(Decoder().cuda())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train_replicated(model)


def ddp_bucket_view_bf16_hook():
    model = replicated(Decoder().cuda(), gradient_as_bucket_view=True)
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train_replicated(model, keeps_buckets=True)


def ddp_power_sgd():
    model = replicated(Decoder().to(torch.bfloat16).cuda())  # in 32 bits it takes cuSOLVER
    model.register_comm_hook(powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    train_replicated(model)


def ddp_accumulated():
    model = replicated(Decoder().cuda())
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    for step in range(loop.STEPS):
        for microbatch in range(3):
            tokens, targets = Decoder.batch()
            model.require_backward_grad_sync = microbatch == 2
            loss = next_token_loss(model, tokens, targets)
            if step == loop.LOOK_AT:
                truth.look(f"forward {microbatch} ends", loss=loss, inputs=(tokens, targets))
            loss.backward()
            if step == loop.LOOK_AT:
                truth.look(f"backward {microbatch} ends", inputs=(tokens, targets))
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def ddp_delayed():
    model = Decoder().cuda()
    delayed = [(name, p) for name, p in model.named_parameters() if "norm" in name]
    train_replicated(replicated(model, delay_all_reduce_named_params=delayed, param_to_hook_all_reduce=model.embedding.weight))


def ddp_several():
    """An encoder and a decoder, wrapped each, with an optimizer each, of which one is not in every loss."""
    first, second = replicated(Mlp().cuda()), replicated(Mlp().cuda(), find_unused_parameters=True)
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()])
    truth = Holdings(nn.ModuleList([first, second]), optimizer)

    def batch():
        x, labels = Mlp.batch()
        return x, x.flip(0), labels

    train(first, optimizer, lambda _, x, turned, labels: loss_of_mlp(first, x, labels) + loss_of_mlp(second, turned, labels), batch, truth=truth)


def ddp_uneven():
    """One rank has a batch more than the other."""
    model = replicated(Decoder().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    truth = Holdings(model, optimizer)
    with model.join():
        for step in range(loop.STEPS + int(os.environ["RANK"])):
            tokens, targets = Decoder.batch()
            loss = next_token_loss(model, tokens, targets)
            if step == loop.LOOK_AT:
                truth.look("forward ends", loss=loss, inputs=(tokens, targets))
            loss.backward()
            optimizer.step()
            if step == loop.LOOK_AT:
                truth.look("optimizer ends", inputs=(tokens, targets))
            optimizer.zero_grad()
    truth.write()


def ddp_zero_overlapped():
    """The optimizer steps inside of backward, as soon as a bucket is reduced. It moves the parameters when it steps first, in the step that is looked at."""
    model = replicated(Decoder().cuda(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, overlap_with_ddp=True, lr=1e-4)
    model.register_comm_hook(None, ddp_zero_hook.hook_with_zero_step(default_hooks.allreduce_hook, model, optimizer))
    truth = Holdings(model, optimizer)
    for step in range(loop.STEPS):
        tokens, targets = Decoder.batch()
        loss = next_token_loss(model, tokens, targets)
        if step == loop.LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(tokens, targets))
        loss.backward()
        optimizer.step()
        truth.remember_gradients()
        optimizer.zero_grad()
    truth.write()


def ddp_post_local_sgd():
    model = replicated(Mlp().cuda())
    state = post_localSGD_hook.PostLocalSGDState(process_group=None, subgroup=dist.new_group([dist.get_rank()], use_local_synchronization=True), start_localSGD_iter=2)
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), averagers.PeriodicModelAverager(period=2, warmup_steps=2))
    truth = Holdings(model, optimizer)
    train(model, optimizer, loss_of_mlp, Mlp.batch, truth=truth, after_step=lambda: truth.add_parameters(model.named_parameters()))  # averaging moves them


def ddp_autocast_averaged():
    """The loop of many training scripts for vision: autocast, an average of the whole model, channels of all ranks normalised together."""
    class Convolutional(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
                                        nn.Conv2d(128, 256, 3, 2, 1), nn.BatchNorm2d(256), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100))

        def forward(self, x):
            return self.layers(x)

    model = nn.SyncBatchNorm.convert_sync_batchnorm(Convolutional()).cuda()
    average = copy.deepcopy(model).requires_grad_(False)
    wrapped = replicated(model)
    truth = Holdings(wrapped, optimizer := adamw(wrapped))
    truth.copies = dict(average.named_parameters()) | dict(average.named_buffers())

    def loss_of(model, x, labels):
        with torch.autocast("cuda", torch.bfloat16):
            return nn.functional.cross_entropy(model(x), labels)

    def update():
        with torch.no_grad():
            for mine, other in zip(average.parameters(), model.parameters()):
                mine.lerp_(other, 0.01)

    train(wrapped, optimizer, loss_of, lambda: loop.images(16), after_step=update, truth=truth)


PROGRAMS = {function.__name__: joined(function) for function in (
    fsdp2_hybrid, fsdp2_hybrid_accumulated, fsdp2_offloaded, fsdp2_offloaded_mixed, fsdp2_clipped, fsdp2_accumulated_checkpointed, fsdp2_compiled, fsdp2_partly_resharded,
    fsdp2_columns, fsdp2_averaged, fsdp2_meta, fsdp1_hybrid, ddp_static_graph, ddp_bf16_hook, ddp_bucket_view_bf16_hook, ddp_power_sgd, ddp_accumulated, ddp_delayed,
    ddp_several, ddp_uneven, ddp_zero_overlapped, ddp_post_local_sgd, ddp_autocast_averaged)} | {name: joined(function) for name, function in FSDP1.items()}
RANKS = dict.fromkeys(PROGRAMS, 2) | dict.fromkeys(("fsdp2_hybrid", "fsdp2_hybrid_accumulated", "fsdp2_accumulated_checkpointed", "fsdp2_partly_resharded", "fsdp1_hybrid"), 4)
