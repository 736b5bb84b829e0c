"""Programs that decide themselves what stays in memory: off-loading, checkpointing, CUDA graphs, pools, compilers, narrow weights."""

import functools

import torch
import torch.nn.functional as F
import transformer
from loop import LOOK_AT, STEPS, VOCABULARY, adamw, pairs, perceptron, rows, squared_loss, tokens, train
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from holdings import Holdings


def next_token_loss(model, ids):
    return transformer.next_token_loss(model, ids[:, :-1], ids[:, 1:])


def decoder(region=None):
    return transformer.Decoder(384, vocabulary=VOCABULARY, region=region).cuda()


def offloaded():
    """What the graph saves goes to pinned memory of the host, and comes back in backward."""
    model = decoder()
    truth = Holdings(model, optimizer := adamw(model))
    for step in range(STEPS):
        ids = tokens()
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            loss = next_token_loss(model, ids)
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=[ids])
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def checkpointed_by_products():
    """Selective checkpointing of the attention and the products."""
    saved = (torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_efficient_attention.default, torch.ops.aten._scaled_dot_product_flash_attention.default)

    def policy(_context, operator, *_, **__):
        return CheckpointPolicy.MUST_SAVE if operator in saved else CheckpointPolicy.PREFER_RECOMPUTE

    caches = []

    def contexts():
        caching, cached = create_selective_checkpoint_contexts(policy)
        caches.append(caching.storage)
        return caching, cached

    def kept():
        entries = [entry for cache in caches for of_operator in cache.values() for entry in of_operator.values()]
        values = [getattr(part, "val", None) for entry in entries for part in (entry if isinstance(entry, (tuple, list)) else [entry])]
        return [value for value in values if isinstance(value, torch.Tensor)]

    def loss_of(model, ids):
        caches.clear()
        return next_token_loss(model, ids)

    model = decoder(functools.partial(checkpoint, use_reentrant=False, context_fn=contexts))
    truth = Holdings(model, optimizer := adamw(model))
    truth.also_saved, truth.knows_recomputed = kept, False
    train(model, optimizer, loss_of, lambda: (tokens(),), truth=truth)


def checkpointed_within_checkpoints():
    """A region around two layers, in which each is a region again."""
    model = perceptron(depth=4)

    def loss_of(model, x, y):
        inner = lambda part, x: checkpoint(part, x, use_reentrant=False)  # noqa: E731
        outer = lambda part, x: inner(part[3:], inner(part[:3], x))  # noqa: E731
        for part in (model[:6], model[6:]):
            x = checkpoint(outer, part, x, use_reentrant=False)
        return F.mse_loss(x, y)

    truth = Holdings(model, optimizer := adamw(model))
    truth.knows_recomputed = False
    train(model, optimizer, loss_of, pairs, truth=truth)


def checkpointed_to_the_end():
    """Without early stop; a function in a region that is no module."""
    model = perceptron(depth=4)

    def loss_of(model, x, y):
        with torch.utils.checkpoint.set_checkpoint_early_stop(False):
            for part in (model[:6], model[6:]):
                x = checkpoint(lambda x, part: F.gelu(part(x)) + x, x, part, use_reentrant=False)
            return F.mse_loss(x, y)

    truth = Holdings(model, optimizer := adamw(model))
    train(model, optimizer, loss_of, pairs, truth=truth, microbatches=2)


def checkpointed_in_sequence():
    model = perceptron(depth=4)
    truth = Holdings(model, optimizer := adamw(model))
    truth.knows_recomputed = False
    train(model, optimizer, lambda model, x, y: F.mse_loss(torch.utils.checkpoint.checkpoint_sequential(model, 3, x, use_reentrant=False), y), pairs, truth=truth)


def graphed_step():
    """A CUDA graph of forward, backward and optimizer, replayed on data that is copied to where it was captured."""
    model = perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    truth = Holdings(model, optimizer)
    x, y = pairs()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            optimizer.zero_grad()
            loss = squared_loss(model, x, y)
            loss.backward()
            optimizer.step()
    del loss
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        loss = squared_loss(model, x, y)
        truth.look("captured forward ends", loss=loss, inputs=(x, y))
        loss.backward()
        truth.look("captured backward ends", inputs=(x, y))
        optimizer.step()
    for _ in range(STEPS):
        for place in (x, y):
            place.copy_(rows())
        graph.replay()
    truth.look("replayed", inputs=(x, y))
    truth.write()


def graphed_callables():
    """A model whose forward and backward are graphs, in an ordinary loop."""
    model = perceptron()
    head = nn.Linear(512, 512).cuda()
    graphed = torch.cuda.make_graphed_callables(model, (rows(),))
    both = nn.ModuleList([model, head])
    truth = Holdings(both, optimizer := adamw(both))
    for step in range(STEPS):
        x, y = pairs()
        loss = F.mse_loss(head(graphed(x)), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=[y])
        optimizer.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=[y])
    truth.write()


def own_pool():
    """Activations in a pool of their own."""
    model, pool = perceptron(), torch.cuda.MemPool()

    def loss_of(model, x, y):
        with torch.cuda.use_mem_pool(pool):
            return squared_loss(model, x, y)

    train(model, adamw(model), loss_of, pairs)


def compiled_decoder():
    model = decoder()
    truth = Holdings(model, optimizer := adamw(model))
    train(torch.compile(model), optimizer, next_token_loss, lambda: (tokens(),), truth=truth)


def compiled_blocks():
    """Each block compiled for itself, with checkpointing around it."""
    model = transformer.Decoder(384, vocabulary=VOCABULARY, region=transformer.non_reentrant).cuda()
    for layer in model.layers:
        layer.compile()
    truth = Holdings(model, optimizer := adamw(model))
    truth.knows_recomputed = False
    train(model, optimizer, next_token_loss, lambda: (tokens(),), truth=truth)


def compiled_dynamically():
    """Sequences of other lengths in each step."""
    model, length = decoder(), 128
    truth = Holdings(model, optimizer := adamw(model))

    def batch():
        nonlocal length
        length += 64
        return (tokens(length=length + 1),)

    train(torch.compile(model, dynamic=True), optimizer, next_token_loss, batch, truth=truth)


def compiled_optimizer():
    model = perceptron()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    step = torch.compile(lambda: type(optimizer).step(optimizer))

    class Compiled:
        state, param_groups, zero_grad = optimizer.state, optimizer.param_groups, optimizer.zero_grad

        def step(self):
            step()

    train(model, Compiled(), squared_loss, pairs, truth=truth)


def compiled_autograd():
    model = perceptron()
    truth = Holdings(model, optimizer := adamw(model))
    with torch._dynamo.config.patch(compiled_autograd=True):
        train(torch.compile(model), optimizer, squared_loss, pairs, truth=truth)


class Narrow(nn.Module):
    """A frozen weight in four bits, two to a byte, with a scale for each 64 of them; and a low-rank update in full width."""

    def __init__(self, inward, outward, rank=16):
        super().__init__()
        self.packed = nn.Parameter(torch.zeros(outward, inward // 2, dtype=torch.uint8), requires_grad=False)
        self.register_buffer("scales", torch.ones(outward, inward // 64))
        self.a, self.b = nn.Parameter(torch.randn(rank, inward)), nn.Parameter(torch.zeros(outward, rank))

    def weight(self):
        values = torch.stack((self.packed & 15, self.packed >> 4), -1).flatten(1).to(torch.float32) - 8
        return (values.view(len(values), -1, 64) * self.scales[..., None]).flatten(1)

    def forward(self, x):
        return F.linear(x, self.weight()) + F.linear(F.linear(x, self.a), self.b)


def narrow_weights():
    model = nn.Sequential(Narrow(512, 1024), nn.SiLU(), Narrow(1024, 512), Narrow(512, 1024), nn.SiLU(), Narrow(1024, 512)).cuda()
    train(model, adamw(model), squared_loss, pairs)


def loss_in_chunks():
    """Logits of a large vocabulary are made and dropped a chunk at a time, each with a backward of its own (a fused loss)."""
    class Chunked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hidden, weight, targets):
            gradient, of_weight, total = torch.empty_like(hidden), torch.zeros_like(weight), 0
            for part, goal, out in zip(hidden.chunk(4), targets.chunk(4), gradient.chunk(4)):
                with torch.enable_grad():
                    part = part.detach().requires_grad_()
                    leaf = weight.detach().requires_grad_()
                    loss = F.cross_entropy(part @ leaf.T, goal, reduction="sum")
                    got, of_leaf = torch.autograd.grad(loss, (part, leaf))
                out.copy_(got)
                of_weight.add_(of_leaf)
                total = total + loss.detach()
            ctx.save_for_backward(gradient, of_weight)
            return total

        @staticmethod
        def backward(ctx, upstream):
            gradient, of_weight = ctx.saved_tensors
            return gradient * upstream, of_weight * upstream, None

    model, head = perceptron(), nn.Linear(512, 8192, bias=False).cuda()
    both = nn.ModuleList([model, head])
    train(both, adamw(both), lambda both, x, y: Chunked.apply(both[0](x), both[1].weight, y), lambda: (rows(), torch.randint(8192, (2048,), device="cuda")))


PROGRAMS = {function.__name__: function for function in (
    offloaded, checkpointed_by_products, checkpointed_within_checkpoints, checkpointed_to_the_end, checkpointed_in_sequence, graphed_step, graphed_callables, own_pool,
    compiled_decoder, compiled_blocks, compiled_dynamically, compiled_optimizer, compiled_autograd, narrow_weights, loss_in_chunks)}
