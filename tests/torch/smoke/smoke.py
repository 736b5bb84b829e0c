"""What the smoke scripts share. Each script is one process of PyTorch on the simulated GPUs; it asserts facts of
allocation and the absence of errors, never values: nothing is computed."""
import torch
import torch.nn.functional as F
from torch import nn

MIB = 1 << 20


class Block(nn.Module):
    """A decoder layer: attention and a gated feed-forward network, each behind a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.ffn_norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 4 * width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, vocabulary=4096, width=256, layers=2, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), tokens.flatten())


def decoder(dtype=torch.bfloat16, **sizes):
    with torch.device("cuda"):
        return Decoder(**sizes).to(dtype), torch.zeros(2, 256, dtype=torch.int64)


def parameter_bytes(model):
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def expect_equal(what, got, expected):
    assert got == expected, f"{what}: expected {expected}, got {got}"


def expect_between(what, got, low, high):
    assert low <= got <= high, f"{what}: expected {low} to {high}, got {got}"
