"""Jobs of several ranks with FSDP2."""

import torch
import torch.distributed as dist
from forks import join
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from witness import look, rise, tell

MICROBATCHES = 4
MATRIX = 2048  # one of 16 MiB


def joined(run):
    def job():
        join()
        run()
        dist.barrier()
        torch.cuda.synchronize()  # or the end of the group waits for events that lag, with nothing left that could complete them
        dist.destroy_process_group()
    return job


def blocks():
    """256 MiB of parameters in 8 blocks of two matrices each."""
    with torch.device("cuda"):
        return nn.Sequential(*(nn.Sequential(*(nn.Linear(MATRIX, MATRIX, bias=False) for _ in range(2))) for _ in range(8)))


def shard(model, **options):
    for block in model:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def accumulation(synchronize, **options):
    """Gradients of four microbatches, which are reduced after each, or only after the last one."""
    def run():
        model = shard(blocks(), **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.ones(4, MATRIX, device="cuda")
        look("begin")
        for microbatch in range(MICROBATCHES):
            model.set_requires_gradient_sync(synchronize or microbatch == MICROBATCHES - 1)
            model(x).sum().backward()
            look(f"microbatch {microbatch} ends")
        optimizer.step()
    return joined(run)


BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
ACCUMULATIONS = {
    "synchronized": accumulation(True),
    "unsynchronized": accumulation(False),
    "unsynchronized_mixed_precision": accumulation(False, mp_policy=BF16),
}


class LanguageModel(nn.Module):
    """An embedding and a head of 125 MiB each, in the root's own group."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32000, 1024)
        self.block = nn.Linear(1024, 1024, bias=False)
        self.head = nn.Linear(1024, 32000, bias=False)

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens)))


def scored_by_a_reference(**options):
    """Another model scores a batch once; then three steps of training, to which it does not belong."""
    def run():
        with torch.device("cuda"):
            reference, policy = LanguageModel(), nn.Linear(256, 256, bias=False)
        fully_shard(reference.block)
        fully_shard(reference, **options)
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        tokens, x = torch.zeros(1, 8, dtype=torch.long, device="cuda"), torch.ones(1, 256, device="cuda")
        policy(x).sum().backward()  # the libraries' workspaces
        optimizer.zero_grad()
        with rise("scoring"), torch.no_grad():
            reference(tokens)
        look("scored")
        for step in range(3):
            policy(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            look(f"step {step} ends")
    return joined(run)


ROOTS = {
    "default": scored_by_a_reference(),
    "kept": scored_by_a_reference(reshard_after_forward=False),
    "resharded": scored_by_a_reference(reshard_after_forward=True),
}


def shard_of(parameter):
    return parameter.detach()


def whole(parameter):
    return parameter.detach().full_tensor()


def averaged(part_of, copy=torch.Tensor.clone):
    """An exponential moving average of 256 MiB of parameters in 4 shards, of the shards or of whole parameters."""
    def run():
        model = shard(blocks())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.ones(4, MATRIX, device="cuda")
        with rise("building"):
            average = {name: copy(part_of(parameter)) for name, parameter in model.named_parameters()}
        tell(average={name: getattr(kept, "_local_tensor", kept).data_ptr() for name, kept in average.items()})
        for step in range(2):
            model(x).sum().backward()
            look(f"step {step}: backward ends")
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    average[name].lerp_(part_of(parameter), 0.01)
            look(f"step {step}: averaged")
    return joined(run)


AVERAGES = {
    "shards": averaged(shard_of),
    "whole": averaged(whole),
    "whole_as_gathered": averaged(whole, copy=lambda gathered: gathered),
}
