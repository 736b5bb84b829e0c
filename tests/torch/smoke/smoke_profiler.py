"""torch.profiler with CUDA activities: kernels, copies and fills, tied to the calls that they came from."""
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

from smoke import decoder

model, tokens = decoder()
model(tokens).backward()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as profiler:
    model(tokens).backward()
    torch.empty(1024).cuda()
    torch.cuda.synchronize()

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    profiler.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
kernels = [event for event in events if event.get("cat") == "kernel"]
calls = {event["args"]["correlation"] for event in events if event.get("cat") == "cuda_runtime"}
assert any("gemm" in kernel["name"] for kernel in kernels), f"no matrix product among {len(kernels)} kernels"
lost = [kernel["name"] for kernel in kernels if kernel["args"]["correlation"] not in calls]
assert not lost, f"kernels without a call: {lost[:5]}"
assert any(event.get("cat") == "gpu_memcpy" for event in events), "no copy was recorded"
