"""The models of these workloads: small, and shaped like what people train."""

import torch
import torch.nn.functional as F
import transformer
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

    @staticmethod
    def batch():
        return torch.randn(4096, WIDTH).cuda(), torch.randint(10, (4096,)).cuda()


class Decoder(transformer.Decoder):
    def __init__(self, **shape):
        super().__init__(WIDTH, vocabulary=VOCABULARY, **shape)

    @staticmethod
    def batch():
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).cuda()
        return tokens[:, :-1], tokens[:, 1:]


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
