"""Every implementation of scaled_dot_product_attention, forward and backward."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
                SDPBackend.CUDNN_ATTENTION):
    query = torch.empty(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(query, query, query, is_causal=True)
        assert out.shape == query.shape
        out.sum().backward()
    assert query.grad.shape == query.shape, backend
torch.cuda.synchronize()
