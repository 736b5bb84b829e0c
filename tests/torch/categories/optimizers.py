"""Optimizers of the kinds that PyTorch itself does not have."""

import dataclasses

import torch


@dataclasses.dataclass
class Quantized:
    values: torch.Tensor  # one byte for each element
    absmax: torch.Tensor  # one number for each 256 of them

    @classmethod
    def like(cls, parameter):
        blocks = -(-parameter.numel() // 256)
        return cls(torch.zeros(parameter.numel(), dtype=torch.uint8, device=parameter.device), torch.zeros(blocks, device=parameter.device))


class EightBit(torch.optim.Optimizer):
    """Two moments in eight bits, one in a dataclass, the other in nested containers."""

    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    second = Quantized.like(parameter)
                    state.update(step=0, first=Quantized.like(parameter), second={"blocks": [second.values, (second.absmax,)]})
                state["step"] += 1
                state["first"].values.add_(1)
                parameter.add_(parameter.grad, alpha=-group["lr"])


class MasterAdamW:
    """AdamW over 32-bit copies of the weights. A wrapper of an optimizer, as frameworks have it: not an Optimizer itself."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.masters = [parameter.detach().clone().float() for parameter in self.parameters]
        self.inner = torch.optim.AdamW(self.masters, lr=1e-3)
        self.param_groups = [{"params": self.parameters}]
        self.state = self.inner.state

    @torch.no_grad()
    def step(self):
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = None if parameter.grad is None else parameter.grad.float()
        self.inner.step()
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = None
            parameter.copy_(master)

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            parameter.grad = None
