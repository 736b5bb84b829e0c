"""The caching allocator: sizes, segments, the device's figures, failure, and pinned memory."""
import torch

from smoke import MIB, expect_between, expect_equal

assert torch.cuda.is_available()
expect_equal("devices", torch.cuda.device_count(), 2)
properties = torch.cuda.get_device_properties(0)
assert properties.warp_size == 32 and properties.multi_processor_count > 0, properties

before = torch.cuda.mem_get_info()[0]
tensor = torch.empty(1000, 1000, device="cuda")
expect_equal("allocated", torch.cuda.memory_allocated(), 4_000_256)  # rounded up to 512 bytes
expect_equal("reserved", torch.cuda.memory_reserved(), 20 * MIB)
expect_equal("taken from the device", before - torch.cuda.mem_get_info()[0], 20 * MIB)
segments = torch.cuda.memory_snapshot()
expect_equal("segments", [segment["total_size"] for segment in segments], [20 * MIB])
del tensor
torch.cuda.empty_cache()
expect_equal("reserved after empty_cache", torch.cuda.memory_reserved(), 0)
expect_equal("taken from the device after empty_cache", before - torch.cuda.mem_get_info()[0], 0)

total = torch.cuda.mem_get_info()[1]
try:
    torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    raise AssertionError("twice the device's memory was allocated")
except torch.cuda.OutOfMemoryError as error:
    assert "out of memory" in str(error), error
expect_equal("failures", torch.cuda.memory_stats()["num_ooms"], 1)
assert torch.empty(1, device="cuda").is_cuda, "no allocation works after a failure"

other = torch.empty(MIB, dtype=torch.uint8, device="cuda:1")
expect_equal("allocated on device 1", torch.cuda.memory_allocated(1), MIB)
del other

pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
assert pinned.is_pinned() and not torch.empty(8).is_pinned()
copied = pinned.to("cuda", non_blocking=True)
torch.cuda.synchronize()
expect_between("allocated by a copy", torch.cuda.memory_allocated(), MIB, MIB + 4096)
sent = torch.arange(1000, dtype=torch.float32)
assert torch.equal(sent.cuda().cpu(), sent), "a small tensor came back changed"
