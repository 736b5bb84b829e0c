"""A convolutional network with batch norms, in both memory formats and under autocast."""
import torch
import torch.nn.functional as F
from torch import nn

for benchmark in (False, True):
    torch.backends.cudnn.benchmark = benchmark
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(32, 64, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    for memory_format in (torch.contiguous_format, torch.channels_last):
        images = torch.empty(8, 3, 64, 64, device="cuda").to(memory_format=memory_format)
        target = torch.zeros(8, dtype=torch.int64, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            F.cross_entropy(model(images), target).backward()
        F.cross_entropy(model(images), target).backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
torch.cuda.synchronize()
