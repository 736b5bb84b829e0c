"""The loop that most of these programs train by, and the data that they train on."""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "categories"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from holdings import Holdings  # noqa: E402

STEPS = 4
LOOK_AT = 2  # the step that is looked at
VOCABULARY = 4096


def tokens(batch=4, length=256):
    return torch.randint(VOCABULARY, (batch, length), device="cuda")


def images(batch=8, size=128, labels=100):
    return torch.randn(batch, 3, size, size, device="cuda"), torch.randint(labels, (batch,), device="cuda")


def rows(count=2048, width=512):
    return torch.randn(count, width, device="cuda")


def perceptron(width=512, depth=2, bias=True):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, 2 * width, bias=bias), nn.SiLU(), nn.Linear(2 * width, width, bias=bias))]
    return nn.Sequential(*layers).cuda()


def pairs():
    return rows(), rows()


class Optimizers:
    """Several in one: to step with, and to the one who looks."""

    def __init__(self, *optimizers):
        self._optimizers = optimizers

    @property
    def state(self):
        return {key: state for optimizer in self._optimizers for key, state in optimizer.state.items()}

    @property
    def param_groups(self):
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def step(self):
        for optimizer in self._optimizers:
            optimizer.step()

    def zero_grad(self):
        for optimizer in self._optimizers:
            optimizer.zero_grad()


def train(model, optimizer, loss_of, batch, microbatches=1, after_step=lambda: None, truth=None, scaler=None, clip=None):
    """The usual loop. `batch` makes the tensors that `loss_of` takes behind the model."""
    truth = truth or Holdings(model, optimizer)
    for step in range(STEPS):
        for microbatch in range(microbatches):
            inputs = batch()
            loss = loss_of(model, *inputs)
            if step == LOOK_AT:
                truth.look(f"forward {microbatch} ends", loss=loss, inputs=inputs)
            (scaler.scale(loss) if scaler else loss).backward()
            if step == LOOK_AT:
                truth.look(f"backward {microbatch} ends", inputs=inputs)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        after_step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=inputs)
        optimizer.zero_grad()
    truth.write()


def language_loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


def classify_loss(model, x, labels):
    return F.cross_entropy(model(x), labels)


def squared_loss(model, x, y):
    return F.mse_loss(model(x), y)


def adamw(model, **options):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, **options)
