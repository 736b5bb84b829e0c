"""Programs with optimizers, and ways to use them, beside a plain step of AdamW."""

import torch
from loop import LOOK_AT, STEPS, Optimizers, adamw, pairs, perceptron, rows, squared_loss, train
from torch.optim.swa_utils import SWALR, AveragedModel

from holdings import Holdings


def optimizer_in_backward():
    """Each parameter has an optimizer of its own, which steps and drops the gradient as soon as it is there."""
    model = perceptron()
    optimizers = {p: torch.optim.AdamW([p]) for p in model.parameters()}

    class All:
        state = property(lambda self: {p: optimizer.state[p] for p, optimizer in optimizers.items()})
        param_groups = [{"params": list(optimizers)}]

    def step_now(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step_now)
    truth = Holdings(model, All())
    for step in range(STEPS):
        x, y = pairs()
        loss = squared_loss(model, x, y)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(x, y))
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
    truth.write()


def gradients_stay():
    """zero_grad(set_to_none=False): gradients are made once, and written over."""
    model = perceptron()
    optimizer = adamw(model)
    zero = optimizer.zero_grad
    optimizer.zero_grad = lambda: zero(set_to_none=False)
    train(model, optimizer, squared_loss, pairs, microbatches=2)


def lbfgs():
    model = perceptron(256)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, history_size=5, tolerance_grad=-1, tolerance_change=-1)
    truth = Holdings(model, optimizer)
    for step in range(STEPS):
        x, y = rows(4096, 256), rows(4096, 256)
        calls = 0

        def closure():
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            loss = squared_loss(model, x, y)
            # Later, the direction to come is there, which the state does not have yet.
            if step == LOOK_AT and calls == 1:
                truth.look("forward ends", loss=loss, inputs=(x, y))
            loss.backward()
            if step == LOOK_AT and calls == 1:
                truth.look("backward ends", inputs=(x, y))
            return loss

        optimizer.step(closure)
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
    truth.write()


class Sam(torch.optim.Optimizer):
    """Sharpness-aware minimization: a step up, which is taken back, and a step of another optimizer by the gradient from there."""

    def __init__(self, parameters, base, rho=0.05, **options):
        super().__init__(parameters, {"rho": rho, **options})
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.detach().clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(self.state[p]["old"])
        self.base.step()
        self.zero_grad()


def sam():
    model = perceptron()
    optimizer = Sam(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)

    class Both:
        state = property(lambda self: {p: {**optimizer.state[p], "base": optimizer.base.state[p]} for p in model.parameters()})
        param_groups = optimizer.param_groups

    truth = Holdings(model, Both())
    for step in range(STEPS):
        x, y = pairs()
        for half in ("first", "second"):
            loss = squared_loss(model, x, y)
            if step == LOOK_AT:
                truth.look(f"{half} forward ends", loss=loss, inputs=(x, y))
            loss.backward()
            if step == LOOK_AT:
                truth.look(f"{half} backward ends", inputs=(x, y))
            getattr(optimizer, f"{half}_step")()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
    truth.write()


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal by a Newton-Schulz iteration; what is no matrix is left to the caller."""

    def __init__(self, parameters, lr=0.02, momentum=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(momentum, group["momentum"]).bfloat16()
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    gram = x @ x.mT
                    x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
                p.add_(x, alpha=-group["lr"])


def muon():
    model = perceptron(768)
    matrices = [p for p in model.parameters() if p.ndim == 2]
    optimizers = Muon(matrices), torch.optim.AdamW([p for p in model.parameters() if p.ndim != 2])

    train(model, Optimizers(*optimizers), squared_loss, lambda: (rows(1024, 768), rows(1024, 768)))


class Shampoo(torch.optim.Optimizer):
    """Preconditioners on both sides of a matrix; their roots are made anew every other step, by an iteration of products."""

    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr})
        self.steps = 0

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                    state["sides"] = [torch.eye(size, device=p.device) for size in p.shape]
                gradient = p.grad
                for dim, side in enumerate(state["sides"]):
                    rows_ = gradient.transpose(0, dim).flatten(1)
                    side.addmm_(rows_, rows_.T)
                if self.steps % 2 == 0:
                    state["roots"] = [self._root(side) for side in state["sides"]]
                for root in state["roots"]:
                    gradient = (root @ gradient.flatten(1)).T.contiguous()
                state["momentum"].mul_(0.9).add_(gradient.T.view_as(p) if p.ndim == 1 else gradient)
                p.sub_(state["momentum"], alpha=group["lr"])
        self.steps += 1

    @staticmethod
    def _root(side):
        y, z, one = side / side.norm(), torch.eye(len(side), device=side.device), torch.eye(len(side), device=side.device)
        for _ in range(4):
            t = 1.5 * one - 0.5 * z @ y
            y, z = y @ t, t @ z
        return z


def shampoo():
    model = perceptron(bias=False)
    train(model, Shampoo(model.parameters()), squared_loss, lambda: (rows(1024), rows(1024)))


class Lookahead(torch.optim.Optimizer):
    """Slow weights in the state of a wrapper, to which the fast ones return every other step."""

    def __init__(self, base):
        self.base, self.steps = base, 0
        super().__init__(base.param_groups, {})

    @torch.no_grad()
    def step(self, closure=None):
        self.base.step()
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                slow = self.state[p].setdefault("slow", p.detach().clone())
                if self.steps % 2 == 0:
                    p.copy_(slow.lerp_(p, 0.5))


def lookahead():
    model = perceptron()
    optimizer = Lookahead(adamw(model))

    class Both:
        state = property(lambda self: {p: {**optimizer.state[p], **optimizer.base.state[p]} for p in model.parameters()})
        param_groups = optimizer.param_groups
        step, zero_grad = optimizer.step, optimizer.zero_grad

    train(model, Both(), squared_loss, pairs)


def averaged_late():
    """Stochastic weight averaging that begins in the second step."""
    model = perceptron()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    average, schedule, steps = None, None, 0

    def update():
        nonlocal average, schedule, steps
        steps += 1
        if steps == 2:
            average, schedule = AveragedModel(model), SWALR(optimizer, 0.01)
        if average:
            truth.copies = dict(average.named_parameters()) | dict(average.named_buffers())
            average.update_parameters(model)
            schedule.step()

    train(model, optimizer, squared_loss, pairs, after_step=update, truth=truth)


def averaged_in_optimizer():
    """A hook behind the step that keeps averages in the optimizer's own state."""
    model = perceptron()
    optimizer = adamw(model)

    @torch.no_grad()
    def average(optimizer, _arguments, _options):
        for group in optimizer.param_groups:
            for p in group["params"]:
                state = optimizer.state[p]
                if "ema" not in state:
                    state["ema"] = p.detach().clone()
                state["ema"].lerp_(p, 0.01)

    optimizer.register_step_post_hook(average)
    train(model, optimizer, squared_loss, pairs)


def groups_added_later():
    """Frozen layers are thawed half-way, and join the optimizer then."""
    model = perceptron(depth=3)
    model[:6].requires_grad_(False)
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    steps = 0

    def thaw():
        nonlocal steps
        steps += 1
        if steps in (1, 2):
            part = model[6 - 3 * steps:9 - 3 * steps].requires_grad_(True)
            optimizer.add_param_group({"params": list(part.parameters()), "lr": 1e-5})

    train(model, optimizer, squared_loss, pairs, after_step=thaw)


def states_loaded():
    """The optimizer's state and the weights are replaced in the middle of training."""
    model = perceptron()
    optimizer = adamw(model)
    steps = 0
    truth = Holdings(model, optimizer)

    def load():
        nonlocal steps
        steps += 1
        if steps == 3:
            weights = {name: value.cpu() for name, value in model.state_dict().items()}
            states = optimizer.state_dict()
            optimizer.load_state_dict({**states, "state": {key: {k: v.cpu() for k, v in s.items()} for key, s in states["state"].items()}})
            model.load_state_dict({name: value.cuda() for name, value in weights.items()})

    train(model, optimizer, squared_loss, pairs, after_step=load, truth=truth)


def weights_assigned():
    """load_state_dict(assign=True) puts other parameters in the place of the first ones, before there is an optimizer."""
    model = perceptron()
    loss = squared_loss(model, *pairs())
    loss.backward()
    del loss
    model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()}, assign=True)
    train(model, adamw(model), squared_loss, pairs)


def in_bfloat16_with_masters():
    """32-bit copies of 16-bit weights, kept by the program."""
    model = perceptron().to(torch.bfloat16)
    masters = [p.detach().float() for p in model.parameters()]
    inner = torch.optim.AdamW(masters)

    class Outer:
        state = inner.state
        param_groups = [{"params": list(model.parameters())}, {"params": masters}]

        @torch.no_grad()
        def step(self):
            for master, p in zip(masters, model.parameters()):
                master.grad = p.grad.float()
            inner.step()
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
                master.grad = None

        def zero_grad(self):
            model.zero_grad()

    truth = Holdings(model, Outer())
    truth.masters = {str(number): master for number, master in enumerate(masters)}
    train(model, Outer(), squared_loss, lambda: (rows().bfloat16(), rows().bfloat16()), truth=truth)


def gradients_in_one_buffer():
    """16-bit weights whose gradients are added up in a 32-bit buffer for all of them (Megatron's main_grad), and 32-bit copies that are trained."""
    model = perceptron().to(torch.bfloat16)
    parameters = list(model.parameters())
    buffer = torch.zeros(sum(p.numel() for p in parameters), device="cuda")
    masters = [p.detach().float().requires_grad_() for p in parameters]
    optimizer = torch.optim.AdamW(masters)
    for p, part in zip(parameters, buffer.split([p.numel() for p in parameters])):
        p.main_grad = part.view_as(p)

        def add(p):
            p.main_grad.add_(p.grad)
            p.grad = None

        p.register_post_accumulate_grad_hook(add)
    truth = Holdings(model, optimizer)
    truth.masters = {str(number): master for number, master in enumerate(masters)}
    truth.more_gradients = lambda: [buffer]
    for step in range(STEPS):
        data = [(rows().bfloat16(), rows().bfloat16()) for _ in range(2)]
        for number, (x, y) in enumerate(data):
            loss = squared_loss(model, x, y)
            if step == LOOK_AT:
                truth.look(f"forward {number} ends", loss=loss, inputs=(x, y))
            loss.backward()
            if step == LOOK_AT:
                truth.look(f"backward {number} ends", inputs=(x, y))
        with torch.no_grad():
            for master, p in zip(masters, parameters):
                master.grad = p.main_grad
            optimizer.step()
            for master, p in zip(masters, parameters):
                p.copy_(master)
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, y))
        buffer.zero_()
    truth.write()


PROGRAMS = {function.__name__: function for function in (
    optimizer_in_backward, gradients_stay, lbfgs, sam, muon, shampoo, lookahead, averaged_late, averaged_in_optimizer, groups_added_later, states_loaded, weights_assigned,
    in_bfloat16_with_masters, gradients_in_one_buffer)}
