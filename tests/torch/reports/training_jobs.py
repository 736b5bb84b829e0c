"""Jobs of one process that train or evaluate a model."""

import torch
from torch import nn
from witness import look, rise


class Weights(nn.Module):
    """Square matrices, which the input goes through."""

    def __init__(self, count, width):
        super().__init__()
        self.weights = nn.ParameterList(torch.empty(width, width, device="cuda") for _ in range(count))

    def forward(self, x):
        for weight in self.weights:
            x = x @ weight
        return x


def optimizer_step(make_optimizer):
    """400 MiB of parameters. What the second step adds to what is there before it."""
    def run():
        model = Weights(100, 1024)
        optimizer = make_optimizer(model.parameters())
        x = torch.ones(8, 1024, device="cuda")
        for step in range(2):
            model(x).sum().backward()
            with rise(f"step {step}"):
                optimizer.step()
            optimizer.zero_grad()
    return run


def adamw(**options):
    return optimizer_step(lambda parameters: torch.optim.AdamW(parameters, **options))


OPTIMIZER_STEPS = {
    "foreach": adamw(foreach=True),
    "for_loop": adamw(foreach=False),
    "fused": adamw(fused=True),
    "amsgrad": adamw(foreach=True, amsgrad=True),
    "momentum_and_decay": optimizer_step(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, foreach=True)),
    "momentum_and_decay_for_loop": optimizer_step(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, foreach=False)),
}


class Adapted(nn.Module):
    """Frozen layers with an adapter of low rank beside each of `count` projections of one activation of 8 MiB."""

    def __init__(self, rank, train_a, count=1):
        super().__init__()
        width = 4096
        self.below = nn.Linear(width, width, bias=False, device="cuda").requires_grad_(False)
        self.a = nn.ModuleList(nn.Linear(width, rank, bias=False, device="cuda").requires_grad_(train_a) for _ in range(count))
        self.b = nn.ModuleList(nn.Linear(rank, width, bias=False, device="cuda") for _ in range(count))

    def forward(self, x):
        x = self.below(x)
        return sum(b(a(x)) for a, b in zip(self.a, self.b))


def adapters(**options):
    def run():
        model = Adapted(**options)
        data = torch.ones(512, 4096, device="cuda")
        for step in range(2):
            loss = model(data).sum()
            look(f"step {step}: forward ends")
            loss.backward()
            look(f"step {step}: backward ends")
            model.zero_grad()
    return run


ADAPTERS = {f"{'trainable' if train_a else 'frozen'}_{rank}": adapters(rank=rank, train_a=train_a) for rank in (16, 64, 256) for train_a in (True, False)}
ADAPTERS["three_projections"] = adapters(rank=16, train_a=True, count=3)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(256, 256, device="cuda")
        self.head = nn.Linear(256, 32000, device="cuda")

    def forward(self, x):
        return self.head(self.body(x))


BATCHES = 8


def evaluation(context):
    """A step of training, then batches whose logits stay."""
    def run():
        model = Classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        kept = []
        look("evaluation begins")
        with context():
            for batch in range(BATCHES):
                kept.append(model(torch.ones(512, 256, device="cuda")))
                look(f"batch {batch} ends")
        kept.clear()
        look("evaluation ends")
    return run


EVALUATIONS = {
    "no_grad": evaluation(torch.no_grad),
    "inference_mode": evaluation(torch.inference_mode),
    "with_graph": evaluation(torch.enable_grad),
}
