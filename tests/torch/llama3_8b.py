"""One rank's memory of Llama 3.1 8B, trained with FSDP2 on eight GPUs: the configuration of a published measurement.

    python llama3_8b.py                                   rank 0 of a world of 8 whose other ranks are not there
    torchrun --nproc-per-node 8 llama3_8b.py              eight ranks

torchtitan's performance page of December 2024 reports 82.4 GiB, the peak of reserved memory, for Llama 3.1 8B on eight H100s
of 96 GB: local batch 2, sequences of 8,192 tokens, selective activation checkpointing by operator, without torch.compile and
without float8. The model follows the published architecture: grouped-query attention, SwiGLU, RMSNorm computed in FP32,
rotary embedding by complex numbers. What decides the figure is said where it is decided.
"""

import collections
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
from truth import Truth

WIDTH, LAYERS, HEADS, KEY_VALUE_HEADS, HIDDEN, VOCABULARY = 4096, 32, 32, 8, 14336, 128256
HEAD_WIDTH = WIDTH // HEADS
BATCH, LENGTH, STEPS, WORLD = 2, 8192, 3, 8


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return wide.type_as(x) * self.weight


def rotary_frequencies(base=500000.0):
    frequencies = 1.0 / (base ** (torch.arange(0, HEAD_WIDTH, 2).float() / HEAD_WIDTH))
    angles = torch.outer(torch.arange(LENGTH).float(), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x, frequencies):
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * frequencies[:, None, :]).flatten(-2).type_as(x)


def repeat_heads(x):
    """(batch, length, key-value heads, width): each head as many times as query heads share it."""
    groups = HEADS // KEY_VALUE_HEADS
    return x[:, :, :, None, :].expand(-1, -1, -1, groups, -1).flatten(2, 3)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.out = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)

    def forward(self, x, frequencies):
        q, k, v = (project(x).unflatten(-1, (-1, HEAD_WIDTH)) for project in (self.query, self.key, self.value))
        q, k = rotate(q, frequencies), rotate(k, frequencies)
        k, v = repeat_heads(k), repeat_heads(v)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.feed_forward = FeedForward()
        self.attention_norm = RMSNorm(WIDTH)
        self.feed_forward_norm = RMSNorm(WIDTH)

    def forward(self, x, frequencies):
        x = x + self.attention(self.attention_norm(x), frequencies)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.register_buffer("frequencies", rotary_frequencies())
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.frequencies)
        return self.head(self.norm(x))


def selective_checkpointing(block):
    """Saves the outputs of flash attention, and of every other matrix product; recomputes the rest."""
    saved = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default,
             torch.ops.aten._scaled_dot_product_efficient_attention.default}

    def contexts():
        products = collections.Counter()

        def policy(context, operator, *_, **__):
            if operator == torch.ops.aten.mm.default:
                products[context.is_recompute] += 1
                if products[context.is_recompute] % 2 == 0:
                    return CheckpointPolicy.PREFER_RECOMPUTE
            return CheckpointPolicy.MUST_SAVE if operator in saved else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    return checkpoint_wrapper(block, context_fn=contexts, preserve_rng_state=False)


def build(device):
    with torch.device("meta"):
        model = Llama()
    for index, block in enumerate(model.blocks):
        model.blocks[index] = selective_checkpointing(block)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for index, block in enumerate(model.blocks):
        # Backward begins with the last block: gathered again at once, it is kept.
        fully_shard(block, mp_policy=policy, reshard_after_forward=index + 1 < LAYERS)
    fully_shard(model, mp_policy=policy, reshard_after_forward=False)
    model.to_empty(device=device)
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter.to_local(), std=0.02)
        model.frequencies.copy_(rotary_frequencies())
    return model


def train_step(model, optimizer, tokens, targets):
    optimizer.zero_grad()
    logits = model(tokens)
    loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    del logits  # 8 GiB that would live through backward
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()


def initialize_world():
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("nccl", device_id=device)
    else:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    return device


def main():
    device = initialize_world()
    model = build(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    truth = Truth()
    with truth.window("training"), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        for _ in range(STEPS):
            tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).to(device)
            train_step(model, optimizer, tokens[:, :-1], tokens[:, 1:])
        torch.cuda.synchronize()
    truth.snapshot("end")
    truth.write()
    if dist.get_rank() == 0:
        print(f"peak {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB reserved,"
              f" {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB allocated")
    if "WORLD_SIZE" in os.environ:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
