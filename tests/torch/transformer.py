"""A small decoder for the jobs of these tests: RMSNorm, attention, SwiGLU, dropout, and the ways of checkpointing its blocks."""

import functools

import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        h = self.norm2(x)
        return x + self.dropout(self.down(F.silu(self.gate(h)) * self.up(h)))


class Decoder(nn.Module):
    """`region` calls a block: checkpointing is a way to do that."""

    def __init__(self, width, layers=3, heads=4, vocabulary=512, tied=False, region=None):
        super().__init__()
        self.region = region or (lambda block, x: block(x))
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = self.region(layer, x)
        return self.head(self.norm(x))


def next_token_loss(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


reentrant = functools.partial(checkpoint, use_reentrant=True)
non_reentrant = functools.partial(checkpoint, use_reentrant=False)
