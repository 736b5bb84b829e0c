"""Programs with modules of PyTorch's own beside linear layers and convolutions, and tensors of kinds beside dense 32-bit ones."""

import torch
import torch.nn.functional as F
from loop import VOCABULARY, adamw, images, pairs, perceptron, rows, squared_loss, tokens, train
from torch import nn
from torch.nn.utils import parametrizations

from holdings import Holdings


def translation():
    """nn.Transformer, with masks."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 256)
            self.body = nn.Transformer(256, 4, 2, 2, 1024, batch_first=True)
            self.head = nn.Linear(256, VOCABULARY)

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
            return self.head(self.body(self.embedding(source), self.embedding(target), tgt_mask=mask, tgt_is_causal=True))

    model = Model().cuda()
    train(model, adamw(model), lambda model, source, target: F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()),
          lambda: (tokens(8, 128), tokens(8, 129)))


def attention_with_weights():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.MultiheadAttention(256, 4, dropout=0.1, batch_first=True) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                attended, self.weights = layer(x, x, x)
                x = x + attended
            return x

    model = Model().cuda()
    train(model, adamw(model), squared_loss, lambda: (torch.randn(8, 256, 256, device="cuda"), torch.randn(8, 256, 256, device="cuda")))


def recurrent():
    """A GRU without cuDNN."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.GRU(256, 384, 2, batch_first=True), nn.Linear(384, 256)

        def forward(self, x):
            return self.head(self.body(x)[0])

    torch.backends.cudnn.enabled = False
    model = Model().cuda()
    train(model, adamw(model), squared_loss, lambda: (torch.randn(16, 64, 256, device="cuda"), torch.randn(16, 64, 256, device="cuda")), clip=1.0)


def truncated_backpropagation():
    """A hidden state that is carried from step to step, cut off from the last one's graph."""
    model = nn.GRUCell(512, 512).cuda()
    state = torch.zeros(256, 512, device="cuda")

    def loss_of(model, x, y):
        nonlocal state
        state = state.detach()
        total = 0
        for part, goal in zip(x, y):
            state = model(part, state)
            total = total + F.mse_loss(state, goal)
        return total

    train(model, adamw(model), loss_of, lambda: (torch.randn(16, 256, 512, device="cuda"), torch.randn(16, 256, 512, device="cuda")))


def bags_of_words():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.rest = nn.EmbeddingBag(VOCABULARY, 512, mode="sum"), perceptron(depth=1)

        def forward(self, ids):
            return self.rest(self.words(ids))

    model = Model().cuda()
    train(model, adamw(model), squared_loss, lambda: (tokens(2048, 16), rows()))


def complex_numbers():
    """Weights and activations of two parts."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = nn.Parameter(torch.randn(256, 2))
            self.mix = nn.Parameter(torch.randn(256, 256, dtype=torch.complex64))

        def forward(self, x):
            factors = torch.view_as_complex(self.rates)
            return ((x * factors) @ self.mix * factors.conj()).real

    model = nn.Sequential(Layer(), nn.SiLU(), Layer()).cuda()
    train(model, adamw(model), squared_loss, lambda: (torch.randn(8, 128, 256, device="cuda"), torch.randn(8, 128, 256, device="cuda")))


def channels_last():
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(True), nn.AdaptiveAvgPool2d(8),
                          nn.Flatten(), nn.Linear(4096, 100)).cuda().to(memory_format=torch.channels_last)

    def loss_of(model, x, labels):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(model(x.to(memory_format=torch.channels_last)), labels, label_smoothing=0.1)

    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True), loss_of, lambda: images(16, 64))


def weights_made_of_others():
    """Weight and spectral normalization as parametrizations."""
    model = perceptron()
    parametrizations.weight_norm(model[0])
    parametrizations.spectral_norm(model[2])
    parametrizations.weight_norm(model[3])
    train(model, adamw(model), squared_loss, pairs)


def weights_in_lists():
    """Parameters in lists and dicts, stacked anew in each forward; a table that is a plain attribute."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ParameterList(torch.randn(512, 512) for _ in range(4))
            self.scales = nn.ParameterDict({"in": torch.ones(512), "out": torch.ones(512)})
            self.table = torch.randn(2048, 512, device="cuda")  # no buffer

        def forward(self, x):
            x = x * self.scales["in"] + self.table[:len(x)]
            outputs = x @ torch.stack(list(self.experts))
            return outputs.mean(0) * self.scales["out"]

    model = Model().cuda()
    truth = Holdings(model, optimizer := adamw(model))
    truth.copies = {"table": model.table}
    train(model, optimizer, squared_loss, pairs, truth=truth)


class Scaled(torch.Tensor):
    """A weight in eight bits with a scale for each row, which products take apart."""

    @staticmethod
    def __new__(cls, values, scale):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32, device=values.device)

    def __init__(self, values, scale):
        self.values, self.scale = values, scale

    def __tensor_flatten__(self):
        return ["values", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, _context, _size, _stride):
        return cls(inner["values"], inner["scale"])

    def widen(self):
        return self.values.to(torch.float32) * self.scale

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        if function is F.linear:
            return F.linear(arguments[0], arguments[1].widen(), *arguments[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(options or {}))

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments, options=None):
        if function in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(arguments[0].values, arguments[0].scale)
        raise NotImplementedError(function)


def weights_of_another_class():
    model = nn.Sequential(nn.Linear(512, 1024), nn.SiLU(), nn.Linear(1024, 512), nn.Linear(512, 512)).cuda()
    for layer in (model[0], model[2]):
        out, inward = layer.weight.shape
        values, scale = torch.ones(out, inward, dtype=torch.int8, device="cuda"), torch.ones(out, 1, device="cuda")
        layer.weight = nn.Parameter(Scaled(values, scale), requires_grad=False)
    truth = Holdings(nn.ModuleList([model[3]]), optimizer := torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]))
    parts = [(f"{name}.{part}", getattr(p, part)) for name, p in model.named_parameters() for part in (("values", "scale") if isinstance(p, Scaled) else ())]
    truth.add_parameters([*parts, *((name, p) for name, p in model.named_parameters() if not isinstance(p, Scaled))])
    train(model, optimizer, squared_loss, pairs, truth=truth)


def mixture_with_capacity():
    """Experts of fixed capacity, by one batched product; an auxiliary loss; jitter on the router."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(512, 8)
            self.up, self.down = nn.Parameter(torch.randn(8, 512, 1024)), nn.Parameter(torch.randn(8, 1024, 512))

        def forward(self, x):
            scores = self.router(x).softmax(-1)
            gates, chosen = scores.T.topk(256, dim=1)
            picked = torch.gather(x.expand(8, -1, -1), 1, chosen[..., None].expand(-1, -1, 512).clamp(0, len(x) - 1))
            made = torch.bmm(F.gelu(torch.bmm(picked, self.up)), self.down) * gates[..., None]
            return torch.zeros_like(x).index_add(0, chosen.flatten().clamp(0, len(x) - 1), made.flatten(0, 1)), scores.mean(0).square().sum()

    model = Model().cuda()

    def loss_of(model, x, y):
        out, auxiliary = model(x)
        return F.mse_loss(out, y) + 0.01 * auxiliary

    train(model, adamw(model), loss_of, pairs)


PROGRAMS = {function.__name__: function for function in (
    translation, attention_with_weights, recurrent, truncated_backpropagation, bags_of_words, complex_numbers, channels_last, weights_made_of_others, weights_in_lists,
    weights_of_another_class, mixture_with_capacity)}
