"""A CUDA graph of a training step: captured once, replayed, its private pool held as long as the graph."""
import torch
from torch import nn

from smoke import expect_equal

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
x = torch.empty(64, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        model(x).sum().backward()
torch.cuda.current_stream().wait_stream(side)
model.zero_grad(set_to_none=True)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    model(x).sum().backward()
held = torch.cuda.memory_allocated()
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
expect_equal("allocated after replays", torch.cuda.memory_allocated(), held)
pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
expect_equal("pools", len(pools), 2)  # the default one and the graph's

callable_ = torch.cuda.make_graphed_callables(nn.Linear(64, 64).cuda(),
                                              (torch.empty(2, 64, device="cuda", requires_grad=True),))
expect_equal("shape", tuple(callable_(torch.empty(2, 64, device="cuda", requires_grad=True)).shape), (2, 64))
