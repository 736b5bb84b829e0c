"""Jobs that put questions to the caching allocator, to its pools and to pinned memory."""

import gc

import torch
from torch import nn
from witness import MIB, look, mark, tell, tensor


def rounding():
    """One tensor of 514 MiB, and a small one."""
    kept = [tensor(514), torch.empty(1000, dtype=torch.uint8, device="cuda")]
    look("allocated")
    del kept


ROUNDING_SETTINGS = {
    "none": {},
    "useless": {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[>:1]"},
    "halves": {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[>:2]"},
    "quarters": {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"},
    "quarters_by_its_new_name": {"PYTORCH_ALLOC_CONF": "roundup_power2_divisions:4"},
}


def rounding_set_by_the_program():
    torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:4")
    rounding()


def two_devices():
    """A producer on each device, whose tensors a consumer frees."""
    kept = []
    for device, mebibytes in ((0, 1536), (1, 512)):
        torch.cuda.set_device(device)
        with torch.cuda.nvtx.range("producer"):
            kept.append([tensor(mebibytes / 2) for _ in range(2)])
    mark("produced")
    with torch.cuda.nvtx.range("consumer"):
        for tensors in kept:
            tensors.pop()
        del tensors  # or the second device's stay
    mark("consumed")
    with torch.cuda.nvtx.range("consumer"):
        kept.clear()
    mark("all consumed")


WIDTH = 2048  # a matrix of 16 MiB


def stages_on_two_devices():
    """A pipeline in one process: three matrices on the first device, one on the second."""
    stages = [nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(depth))).to(f"cuda:{device}") for device, depth in enumerate((3, 1))]
    optimizers = [torch.optim.AdamW(stage.parameters()) for stage in stages]
    batch = torch.ones(4 * WIDTH, WIDTH, device="cuda:0")
    for step in range(2):
        stages[1](stages[0](batch).to("cuda:1")).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        mark(f"step {step} ends")
        for optimizer in optimizers:
            optimizer.zero_grad()


def fails_holding_much():
    held = tensor(2048)
    more = tensor(8192)
    return held, more


def out_of_memory():
    """The exception's traceback holds the frame, and that holds the tensor."""
    small = tensor(64)
    try:
        fails_holding_much()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        look("handler ends")
    torch.cuda.empty_cache()
    look("handled")
    del small


def out_of_memory_kept():
    """The same, with an exception that is kept for a report at the end."""
    errors = []
    try:
        fails_holding_much()
    except torch.cuda.OutOfMemoryError as error:
        errors.append(error)
    torch.cuda.empty_cache()
    look("handled")
    tensor(64)
    errors.clear()
    look("forgotten")


FAILURES = {"handled": out_of_memory, "kept": out_of_memory_kept}


def captured_steps(shared):
    """Forward and backward of eight batch sizes, each captured into a graph of its own."""
    def run():
        with torch.device("cuda"):
            model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(4)))
        batches = [torch.ones(256 * size, 1024, device="cuda") for size in range(1, 9)]
        warm_up = torch.cuda.Stream()
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            model(batches[0]).sum().backward()
        torch.cuda.current_stream().wait_stream(warm_up)
        model.zero_grad(set_to_none=False)
        pool = torch.cuda.graph_pool_handle() if shared else None
        graphs = []
        for batch in batches:
            graphs.append(torch.cuda.CUDAGraph())
            with torch.cuda.graph(graphs[-1], pool=pool):
                model(batch).sum().backward()
        look("captured")
        tell(pools=private_pools())
        for graph in graphs:
            graph.replay()
        look("replayed")
    return run


def private_pools():
    """By torch's snapshot: [reserved, allocated] bytes of each pool but the common one."""
    pools = {}
    for segment in torch.cuda.memory_snapshot():
        if segment["segment_pool_id"] != (0, 0):
            sums = pools.setdefault("{}.{}".format(*segment["segment_pool_id"]), [0, 0])
            sums[0] += segment["total_size"]
            sums[1] += segment["allocated_size"]
    return pools


GRAPHS = {"own_pools": captured_steps(shared=False), "shared_pool": captured_steps(shared=True)}


def captured_signatures(shared):
    """The bytes of a public report: a graph for each of eight signatures, the largest one first; MiB of forward and backward."""
    def run():
        kept = [tensor(22) for _ in range(8)]
        pool = torch.cuda.graph_pool_handle() if shared else None
        graphs = []
        for forward, backward in ((234, 234), (204, 202), (174, 174), (146, 144), (116, 116), (88, 86), (74, 72), (60, 58)):
            graphs.append(torch.cuda.CUDAGraph())
            with torch.cuda.graph(graphs[-1], pool=pool):
                saved = tensor(forward).fill_(1)
                tensor(backward).fill_(1)
                del saved
        look("captured")
        tell(pools=private_pools())
        for graph in graphs:
            graph.replay()
        look("replayed")
        del kept
    return run


SIGNATURES = {"signatures_own_pools": captured_signatures(shared=False), "signatures_shared_pool": captured_signatures(shared=True)}


def pinned(sizes=(64, 160, 262.5, 320)):
    """Tensors in pinned memory; half of it is given back to the host allocator, which keeps it."""
    torch.ones(1, device="cuda")
    kept = [torch.empty(int(size * MIB), dtype=torch.uint8, pin_memory=True) for size in sizes]
    look("pinned")
    del kept[2:]
    look("half freed")
    tell(host=torch.cuda.host_memory_stats())


def registered(late=False):
    """Memory of the program's own, which it registers; `late`: when the interpreter counts it among what is old."""
    torch.ones(1, device="cuda")
    gc.collect()
    own = torch.zeros(3 * MIB, dtype=torch.uint8)
    if late:
        gc.collect()
    torch.cuda.check_error(torch.cuda.cudart().cudaHostRegister(own.data_ptr(), own.nbytes, 0))
    look("pinned")
    torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(own.data_ptr()))
    look("half freed")
