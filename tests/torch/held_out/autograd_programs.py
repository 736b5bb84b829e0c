"""Programs that use automatic differentiation in other ways than one `loss.backward()` a step."""

import time

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from loop import LOOK_AT, STEPS, Optimizers, adamw, pairs, perceptron, rows, squared_loss, train
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

from holdings import Holdings


def gradient_penalty():
    """A critic whose gradient by its input is part of the loss (WGAN-GP)."""
    critic = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(64, 64, 3, 2, 1), nn.SiLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.SiLU(),
                           nn.Flatten(), nn.Linear(64 * 64, 1)).cuda()
    optimizer = adamw(critic)
    truth = Holdings(critic, optimizer)
    for step in range(STEPS):
        real, fake = torch.randn(32, 3, 32, 32, device="cuda"), torch.randn(32, 3, 32, 32, device="cuda")
        between = torch.lerp(real, fake, torch.rand(32, 1, 1, 1, device="cuda")).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(real, fake, between))
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(real, fake, between))
        optimizer.step()
        optimizer.zero_grad()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(real, fake, between))
    truth.write()


def energy_and_forces():
    """An interatomic potential: forces are the energy's derivative, and the loss has both."""
    model = perceptron(256)
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    for step in range(STEPS):
        positions, energies, forces = rows(2048, 256).requires_grad_(), rows(2048, 1), rows(2048, 256)
        energy = model(positions).sum(1, keepdim=True)
        (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=True)
        loss = F.mse_loss(energy, energies) + F.mse_loss(-slope, forces)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(positions, energies, forces))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(positions, energies, forces))
    truth.write()


def retained_graph():
    """Two losses over one forward, each with a backward of its own."""
    model, heads = perceptron(), nn.ModuleList(nn.Linear(512, 512) for _ in range(2)).cuda()
    both = nn.ModuleList([model, heads])
    optimizer = adamw(both)
    truth = Holdings(both, optimizer)
    for step in range(STEPS):
        x, y = pairs()
        hidden = model(x)
        losses = [F.mse_loss(head(hidden), y) for head in heads]
        if step == LOOK_AT:
            truth.look("forward ends", loss=losses[0] + losses[1], inputs=(x, y))
        losses[0].backward(retain_graph=True)
        if step == LOOK_AT:
            truth.look("between backwards", loss=losses[0] + losses[1], inputs=(x, y))
        losses[1].backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def gradients_as_values():
    """torch.autograd.grad, and gradients that the program puts in place itself."""
    model = perceptron()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    parameters = list(model.parameters())
    for step in range(STEPS):
        x, y = pairs()
        loss = squared_loss(model, x, y)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(x, y))
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = gradient
        del gradient
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        optimizer.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
        optimizer.zero_grad()
    truth.write()


def descent_by_hand():
    """No optimizer: parameters are changed in place by their gradients."""
    model = perceptron()
    truth = Holdings(model)
    truth.more_gradients = lambda: [p.grad for p in model.parameters() if p.grad is not None]
    for step in range(STEPS):
        x, y = pairs()
        loss = squared_loss(model, x, y)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(x, y))
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=0.1)
                parameter.grad = None
    truth.write()


def functional_training():
    """torch.func: a module called with the parameters in a dict, and its gradients as a dict."""
    model = perceptron()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    parameters = dict(model.named_parameters())

    def loss_of(values, x, y):
        return F.mse_loss(functional_call(model, values, (x,)), y)

    for step in range(STEPS):
        x, y = pairs()
        gradients, _ = grad_and_value(loss_of)({name: p.detach() for name, p in parameters.items()}, x, y)
        for name, gradient in gradients.items():
            parameters[name].grad = gradient
        del gradient, gradients
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        optimizer.step()
        optimizer.zero_grad()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
    truth.write()


def per_sample_gradients():
    """Gradients of each sample, clipped and summed (differential privacy)."""
    model = perceptron(256, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    truth = Holdings(model, optimizer)

    def loss_of(values, x, y):
        return F.mse_loss(functional_call(model, values, (x[None],)), y[None])

    for step in range(STEPS):
        x, y = rows(32, 256), rows(32, 256)
        values = {name: p.detach() for name, p in model.named_parameters()}
        each, _ = vmap(grad_and_value(loss_of), in_dims=(None, 0, 0))(values, x, y)
        time.sleep(0.2)  # the graph is given back by the thread of backward, while this one goes on: it would be another peak each time
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        factors = (1 / (norms + 1e-6)).clamp(max=1)
        for name, parameter in model.named_parameters():
            parameter.grad = (each[name].flatten(1) * factors[:, None]).mean(0).view_as(parameter)
        del each
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def forward_mode():
    """Gradients by directional derivatives: no backward at all."""
    model = perceptron(256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    truth = Holdings(model, optimizer)
    for step in range(STEPS):
        x, y = rows(2048, 256), rows(2048, 256)
        directions = {name: torch.randn_like(p) for name, p in model.named_parameters()}
        with torch.no_grad(), forward_ad.dual_level():
            duals = {name: forward_ad.make_dual(p.detach(), directions[name]) for name, p in model.named_parameters()}
            slope = forward_ad.unpack_dual(F.mse_loss(functional_call(model, duals, (x,)), y)).tangent
            for name, parameter in model.named_parameters():
                parameter.grad = directions[name] * slope
            del duals, slope
        if step == LOOK_AT:
            truth.look("gradients are there", inputs=(x, y))
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def maml():
    """Two inner steps for each of two tasks, and a backward through them."""
    model = perceptron(256)
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    for step in range(STEPS):
        total, data = 0, [rows(1024, 256) for _ in range(4)]
        for x, y in (data[:2], data[2:]):
            fast = dict(model.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(functional_call(model, fast, (x,)), y)
                gradients = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {name: value - 0.1 * gradient for (name, value), gradient in zip(fast.items(), gradients)}
            total = total + F.mse_loss(functional_call(model, fast, (x,)), y)
        del fast, gradients, loss
        if step == LOOK_AT:
            truth.look("forward ends", loss=total, inputs=data)
        total.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=data)
        optimizer.step()
        optimizer.zero_grad()
        del total
    truth.write()


def two_models_in_turn():
    """An actor and a critic that share nothing, each with its optimizer, and both losses in one backward."""
    actor, critic = perceptron(depth=1), perceptron(depth=1)
    optimizers = adamw(actor), adamw(critic)
    truth = Holdings(nn.ModuleList([actor, critic]), Optimizers(*optimizers))
    for step in range(STEPS):
        x, y = pairs()
        values = critic(x)
        loss = (actor(x) * (values.detach() - y)).mean() + F.mse_loss(values, y)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(x, y))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
    truth.write()


def anomaly_detection():
    model = perceptron()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        train(model, adamw(model), squared_loss, pairs)


PROGRAMS = {function.__name__: function for function in (
    gradient_penalty, energy_and_forces, retained_graph, gradients_as_values, descent_by_hand, functional_training, per_sample_gradients, forward_mode, maml,
    two_models_in_turn, anomaly_detection)}
