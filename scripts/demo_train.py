"""An ordinary training job: a decoder of about one billion parameters, fully sharded over the GPUs of one node.

    torchrun --nproc-per-node 8 scripts/demo_train.py

BF16 compute, FP32 master weights, AdamW, a microbatch of 2 sequences of 2,048 tokens on each GPU. Nothing in here knows of
the ledger; the NVTX ranges are the ones that a profile of the job would want too.
"""

import argparse
import contextlib
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention_norm = nn.RMSNorm(width)
        self.attention = Attention(width, heads)
        self.feed_forward_norm = nn.RMSNorm(width)
        self.feed_forward = FeedForward(width, hidden)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """The defaults make 1.005 billion parameters."""

    def __init__(self, width=2048, layers=17, heads=16, hidden=5632, vocabulary=32000, checkpointing=False):
        super().__init__()
        self.vocabulary = vocabulary
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def shard(model, reduce_dtype=torch.float32):
    """FSDP2: one group of parameters per block, and one for the rest."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)


def initialize(model):
    """Fills the local shards: matrices at random, vectors (the norms' weights) with ones."""
    with torch.no_grad():
        for parameter in model.parameters():
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            nn.init.normal_(local, std=0.02) if parameter.dim() > 1 else nn.init.ones_(local)


@contextlib.contextmanager
def phase(name):
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def train_step(model, optimizer, batch, targets):
    with phase("forward"):
        loss = model(batch, targets)
    with phase("backward"):
        loss.backward()
    with phase("optimizer"):
        optimizer.step()
        optimizer.zero_grad()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=2, help="sequences on each GPU")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a sequence")
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=17)
    parser.add_argument("--checkpointing", action="store_true", help="recompute the blocks' activations in backward")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())

    with phase("setup"):
        with torch.device("meta"):
            model = Decoder(arguments.width, arguments.layers, hidden=arguments.width * 11 // 4, checkpointing=arguments.checkpointing)
        shard(model)
        model.to_empty(device=device)
        initialize(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        shape = (arguments.batch, arguments.length)
        batch = torch.randint(model.vocabulary, shape, device=device)
        targets = torch.randint(model.vocabulary, shape, device=device)

    if dist.get_rank() == 0:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        print(f"{parameters / 1e9:.3f} billion parameters on {dist.get_world_size()} x {torch.cuda.get_device_name()}", flush=True)
    for step in range(arguments.steps):
        start = time.monotonic()
        with phase(f"step {step}"):
            train_step(model, optimizer, batch, targets)
            torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f"step {step}: {time.monotonic() - start:.2f} s, peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB allocated,"
                  f" {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB reserved", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
