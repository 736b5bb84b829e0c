"""The allocator's other ways to get memory: PYTORCH_ALLOC_CONF decides, as the test sets it."""
import os

import torch

from smoke import MIB, decoder, expect_equal

configuration = os.environ["PYTORCH_ALLOC_CONF"]
free_before = torch.cuda.mem_get_info()[0]
model, tokens = decoder()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(2):
    model(tokens).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
torch.cuda.synchronize()

taken = free_before - torch.cuda.mem_get_info()[0]
reserved = torch.cuda.memory_reserved()
assert taken >= reserved > 0, f"the allocator holds {reserved} bytes, but only {taken} are missing from the device"
if "expandable_segments" in configuration:
    assert any(segment["is_expandable"] for segment in torch.cuda.memory_snapshot()), "no segment is expandable"
else:
    expect_equal("allocator", torch.cuda.memory.get_allocator_backend(), "cudaMallocAsync")

del model, tokens, optimizer
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() < 64 * MIB, f"{torch.cuda.memory_reserved()} bytes stay reserved"
