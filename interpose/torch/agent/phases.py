"""Steps and phases: forward, backward, optimizer, and what lies between. They belong to the process, not to a thread.

A step begins with the first forward after an optimizer has stepped: several forwards and backwards before it (accumulation)
belong to one step, and so do several optimizers in a row.
"""

import functools

import torch

from .guard import guarded

# PhaseKind in record.h.
SETUP, FORWARD, BACKWARD, OPTIMIZER, BETWEEN, EVALUATION = range(6)


class Phases:
    def __init__(self, native):
        self.native = native
        self.kind = SETUP
        self.step = 0
        self.stepped = False  # an optimizer has, since the last forward
        self.optimizers = 0  # that many steps are under way
        self.before_evaluation = None
        self.gives_gradients = False  # as values, to the program

    def enter(self, kind, text=""):
        if kind != self.kind:
            self.kind = kind
            self.native.phase(kind, self.step, self.native.text(text))

    def root_enters(self, module):
        """The forward of a module that no other module called. Inside backward it is recomputation."""
        if self.kind == BACKWARD:
            return
        if torch.is_grad_enabled():
            if self.stepped:
                self.stepped = False
                self.step += 1
            self.enter(FORWARD, type(module).__name__)
        elif self.kind != EVALUATION:
            self.before_evaluation = self.kind
            self.enter(EVALUATION, type(module).__name__)

    def root_leaves(self):
        if self.kind == EVALUATION:
            self.enter(self.before_evaluation)

    def backward_ends(self, before, accumulates):
        if not accumulates:  # a gradient as a value, for a loss to come, or for an update of the program's own
            self.gives_gradients = True
            self.enter(before)
        else:
            self.enter(OPTIMIZER if self.optimizers else BETWEEN)

    def optimizer_enters(self, optimizer):
        self.optimizers += 1
        if self.kind != BACKWARD:  # some step inside backward, one parameter after the other
            self.enter(OPTIMIZER, type(optimizer).__name__)

    def optimizer_leaves(self):
        self.optimizers = max(self.optimizers - 1, 0)
        self.stepped = True
        if self.kind == OPTIMIZER and not self.optimizers:
            self.enter(BETWEEN)

    def say_again(self):
        """In a forked child, whose ledger is new."""
        self.native.phase(self.kind, self.step, 0)


def install(phase):
    _observe_backward(phase)
    _observe_optimizers(phase)


def _observe_backward(phase):
    """torch.autograd has the engine's entry in two namespaces. A call inside a backward (reentrant checkpointing) is part of it."""
    import torch.autograd.graph

    original = torch.autograd.graph._engine_run_backward
    inside_backward = torch._C._current_graph_task_id

    @functools.wraps(original)
    def run_backward(*arguments, **options):
        if inside_backward() != -1:
            return original(*arguments, **options)
        before = phase.kind
        phase.enter(BACKWARD)
        try:
            return original(*arguments, **options)
        finally:
            phase.backward_ends(before, options.get("accumulate_grad", False))

    for namespace in (torch.autograd.graph, torch.autograd):
        if getattr(namespace, "_engine_run_backward", None) is original:
            namespace._engine_run_backward = run_backward


def _observe_optimizers(phase):
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    @guarded(phase.native, "phases")
    def before_step(optimizer, _arguments, _options):
        phase.optimizer_enters(optimizer)

    @guarded(phase.native, "phases")
    def after_step(_optimizer, _arguments, _options):
        phase.optimizer_leaves()

    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
