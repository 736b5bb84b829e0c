"""The models of these tests."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def mlp(width=256):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """`checkpointing`: None, or what torch's checkpoint takes as use_reentrant."""

    def __init__(self, width=128, layers=3, heads=4, vocabulary=512, checkpointing=None):
        super().__init__()
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x) if self.checkpointing is None else checkpoint(layer, x, use_reentrant=self.checkpointing)
        return self.head(self.norm(x))


def next_token_loss(model, tokens):
    logits = model(tokens)
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def _checkpoint_inputs(hook):
    """What the checkpoint whose hook this is keeps in order to run its forward again."""
    variables = dict(zip(hook.__code__.co_freevars, (cell.cell_contents for cell in hook.__closure__ or ())))
    return [kept.data for kept in variables["frame"].saved_args if hasattr(kept, "unpack_hook")] if "frame" in variables else []


def graph_storages(root):
    """What the graph behind a tensor keeps, found by walking it: {address of storage: bytes}.

    Follows next_functions and reads the nodes' `_raw_saved_...`. What the hooks of a checkpoint took over is not kept; the
    inputs of the checkpoint are.
    """
    storages, seen, waiting = {}, set(), [root.grad_fn]

    def keep(tensor):
        if isinstance(tensor, torch.Tensor):
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()

    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
        for attribute in dir(type(node)):
            if not attribute.startswith("_raw_saved_"):
                continue
            saved = getattr(node, attribute)
            for item in saved if isinstance(saved, (list, tuple)) else [saved]:
                if item is not None and item.unpack_hook is None:
                    keep(item.data)
                elif item is not None:
                    for tensor in _checkpoint_inputs(item.unpack_hook):
                        keep(tensor)
    return storages
