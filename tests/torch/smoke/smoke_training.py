"""Linear forward and backward, and steps of a decoder under AdamW in both forms: what lives between steps adds up."""
import torch

from smoke import decoder, expect_equal, parameter_bytes

linear = torch.nn.Linear(512, 512, device="cuda", dtype=torch.bfloat16)
x = torch.empty(64, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
linear(x).sum().backward()
assert x.grad.shape == x.shape and linear.weight.grad.shape == linear.weight.shape
del linear, x


def steady_bytes(**optimizer_form):
    """Bytes allocated between steps, which must be the same after each step but the first."""
    model, tokens = decoder()
    optimizer = torch.optim.AdamW(model.parameters(), **optimizer_form)
    seen = []
    for _ in range(3):
        model(tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen.append(torch.cuda.memory_allocated())
    expect_equal("allocated after steps 2 and 3", seen[1], seen[2])
    assert torch.cuda.max_memory_allocated() > seen[2]
    states = sum(state[key].untyped_storage().nbytes() for state in optimizer.state.values()
                 for key in ("exp_avg", "exp_avg_sq"))
    expect_equal("bytes of the moments", states, 2 * parameter_bytes(model))
    assert seen[2] >= 3 * parameter_bytes(model), f"{seen[2]} bytes can't hold the parameters and both moments"
    return seen[2]


# On its own, cuBLAS's workspace is taken before the first count and stays.
for form in ({"foreach": True}, {"fused": True}):
    steady_bytes(**form)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
torch.cuda.synchronize()
