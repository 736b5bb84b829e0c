"""Workloads of several ranks."""

import torch
import torch.distributed as dist
from forks import join
from holdings import Holdings
from models import Decoder, Mlp
from optimizers import MasterAdamW
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from transformer import Block, next_token_loss
from workloads import loss_of_mlp, train


def joined(run):
    def workload():
        join()
        run()
        dist.barrier()
        dist.destroy_process_group()
    return workload


def ddp(gradient_as_bucket_view):
    def run():
        model = nn.parallel.DistributedDataParallel(Decoder().cuda(), device_ids=[torch.cuda.current_device()],
                                                    gradient_as_bucket_view=gradient_as_bucket_view)
        optimizer = torch.optim.AdamW(model.parameters())
        truth = Holdings(model, optimizer)
        if gradient_as_bucket_view:  # buckets are made anew in the second step, and stay
            train(model, optimizer, truth, Decoder.batch, next_token_loss, first_look=2, after_step=truth.remember_gradients)
        else:
            train(model, optimizer, truth, Decoder.batch, next_token_loss, inside=model.module.layers[1].norm2)
    return joined(run)


def zero_redundancy():
    model = nn.parallel.DistributedDataParallel(Mlp().cuda(), device_ids=[torch.cuda.current_device()])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    train(model, optimizer, Holdings(model, optimizer), Mlp.batch, loss_of_mlp)


def fsdp1_holdings(model, optimizer):
    """Adds what FSDP1 holds: whole parameters, and shards of gradients that wait for the optimizer."""
    truth = Holdings(model, optimizer)
    flat = [module._handle.flat_param for module in FullyShardedDataParallel.fsdp_modules(model)]
    truth.gathered = lambda: [getattr(parameter, "_full_param_padded", None) for parameter in flat]
    truth.more_gradients = lambda: [getattr(parameter, "_saved_grad_shard", None) for parameter in flat]
    return truth


def fsdp1(use_orig_params):
    def run():
        model = FullyShardedDataParallel(Decoder().cuda(), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=use_orig_params)
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, fsdp1_holdings(model, optimizer), Decoder.batch, next_token_loss, inside=model.module.layers[1].module.norm2)
    return joined(run)


def fsdp2_groups(model):
    return [group for module in model.modules() if hasattr(module, "_get_fsdp_state") for group in module._get_fsdp_state()._fsdp_param_groups]


def fsdp2_parameters(model):
    return [parameter for group in fsdp2_groups(model) for parameter in group.fsdp_params]


def fsdp2_holdings(model, optimizer):
    """Adds what FSDP2 holds: whole parameters, what was gathered ahead, and whole gradients that wait to be reduced."""
    truth = Holdings(model, optimizer)
    truth.gathered = lambda: [
        *(output for parameter in fsdp2_parameters(model) for output in parameter.all_gather_outputs),
        *(getattr(parameter, "_sharded_post_forward_param_data", None) for parameter in fsdp2_parameters(model)),
        *(group._all_gather_result.all_gather_output for group in fsdp2_groups(model) if group._all_gather_result is not None),
    ]
    truth.more_gradients = lambda: [
        gradient for parameter in fsdp2_parameters(model) if hasattr(parameter, "_unsharded_param")
        for gradient in (parameter._unsharded_param.grad, parameter.unsharded_accumulated_grad)
    ] + [group._partial_reduce_output for group in fsdp2_groups(model)]
    return truth


def shard(model, **options):
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


def train_fsdp2(model, loss_of=next_token_loss, **options):
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, fsdp2_holdings(model, optimizer), Decoder.batch, loss_of, inside=model.layers[1].norm2, **options)


def fsdp2(**options):
    return joined(lambda: train_fsdp2(shard(Decoder().cuda(), **options)))


def fsdp2_prefetch():
    model = shard(Decoder(layers=4).cuda(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    layers = list(model.layers)
    for number, layer in enumerate(layers):
        layer.set_modules_to_forward_prefetch(layers[number + 1 : number + 3])
        layer.set_modules_to_backward_prefetch(layers[max(number - 2, 0) : number][::-1])
    train_fsdp2(model)


def fsdp2_accumulation():
    """Four microbatches, of which the last one reduces gradients: until then each rank keeps whole ones."""
    model = shard(Decoder().cuda())
    calls = 0

    def loss_of(model, tokens, targets):
        nonlocal calls
        calls += 1
        model.set_requires_gradient_sync(calls % 4 == 0)
        return next_token_loss(model, tokens, targets)

    train_fsdp2(model, loss_of, microbatches=4)


def sixteen_bytes():
    """Weights and gradients in 16 bits, 32-bit copies and two 32-bit moments, all in eight shards: one rank of a world of eight
    whose other ranks are not there."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    model = shard(Decoder().to(torch.bfloat16).cuda())
    optimizer = MasterAdamW(model.parameters())
    truth = fsdp2_holdings(model, optimizer)
    truth.masters = {name: master for (name, _), master in zip(model.named_parameters(), optimizer.masters)}
    train(model, optimizer, truth, Decoder.batch, next_token_loss)
    dist.destroy_process_group()


WORKLOADS = {
    "ddp": ddp(False),
    "ddp_bucket_view": ddp(True),
    "zero_redundancy": joined(zero_redundancy),
    "fsdp1": fsdp1(False),
    "fsdp1_orig_params": fsdp1(True),
    "fsdp2": fsdp2(),
    "fsdp2_kept": fsdp2(reshard_after_forward=False),
    "fsdp2_prefetch": joined(fsdp2_prefetch),
    "fsdp2_accumulation": joined(fsdp2_accumulation),
    "sixteen_bytes": sixteen_bytes,
}
RANKS = {name: 2 for name in WORKLOADS} | {"sixteen_bytes": 1}
