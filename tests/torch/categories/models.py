"""The models of these workloads: small, and shaped like what people train."""

import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

WIDTH, VOCABULARY, BATCH, LENGTH = 512, 4096, 8, 512


class Mlp(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.norm(x + self.down(F.gelu(self.up(x)))))

    def loss(self, x, labels):
        return F.cross_entropy(self(x), labels)

    @staticmethod
    def batch():
        return torch.randn(4096, WIDTH).cuda(), torch.randint(10, (4096,)).cuda()


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

    def __init__(self, width=WIDTH, layers=3, heads=4, tied=False, region=None):
        super().__init__()
        self.region = region or (lambda block, x: block(x))
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = self.region(layer, x)
        return self.head(self.norm(x))

    @staticmethod
    def batch():
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).cuda()
        return tokens[:, :-1], tokens[:, 1:]


def next_token_loss(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


reentrant = functools.partial(checkpoint, use_reentrant=True)
non_reentrant = functools.partial(checkpoint, use_reentrant=False)


class Selective:
    """A region that keeps the outputs of matrix products, and runs the rest again."""

    def __init__(self):
        self._caches = []

    def __call__(self, block, x):
        return checkpoint(block, x, use_reentrant=False, context_fn=self._contexts)

    def _contexts(self):
        caching, cached = create_selective_checkpoint_contexts(self._policy)
        self._caches.append(caching.storage)
        return caching, cached

    @staticmethod
    def _policy(_context, operator, *_, **__):
        return CheckpointPolicy.MUST_SAVE if operator == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def kept(self):
        """The tensors that the regions of the last forward keep."""
        entries = [entry for cache in self._caches for of_operator in cache.values() for entry in of_operator.values()]
        return [entry.val for entry in entries if isinstance(getattr(entry, "val", None), torch.Tensor)]

    def forget(self):
        self._caches.clear()


class SquaredRelu(torch.autograd.Function):
    """Saves its input as it should be done, and a mask as a plain attribute."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.mask = x > 0
        return x.square().mul_(ctx.mask)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return (gradient * x).mul_(ctx.mask).mul_(2)


class CustomFunction(Mlp):
    def forward(self, x):
        return self.head(self.norm(x + self.down(SquaredRelu.apply(self.up(x)))))
