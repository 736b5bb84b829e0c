"""Jobs for these tests: `python jobs.py NAME`. What a job found out itself goes to expected.json beside its ledger."""

import contextlib
import copy
import ctypes
import hashlib
import json
import os
import pathlib
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import graph  # noqa: E402
from transformer import Decoder, next_token_loss, non_reentrant, reentrant  # noqa: E402

_library = ctypes.PyDLL(None)  # holds the interpreter's lock


def mark(name):
    if hasattr(_library, "ledger_mark"):
        _library.ledger_mark(name.encode())


def mlp(width=256):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))


def start_layers():
    """A job without a device has to ask for them."""
    if hasattr(_library, "ledger_start_layers"):
        _library.ledger_start_layers()


def expect(**values):
    pathlib.Path(os.environ["LEDGER_DIR"], "expected.json").write_text(json.dumps(values))


def digest(tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(tensor.detach().contiguous().cpu().numpy().tobytes())
    return total.hexdigest()


def numerics():
    """Three steps on the CPU, to the last bit, for every kind of model; and the check of versions of saved tensors."""
    start_layers()
    torch.set_num_threads(1)
    tokens = torch.randint(512, (2, 64), generator=torch.Generator().manual_seed(1))
    for name, region in (("plain", None), ("checkpointed", non_reentrant), ("checkpointed, reentrant", reentrant)):
        torch.manual_seed(0)
        model = Decoder(128, region=region)
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(3):
            loss = next_token_loss(model, tokens, tokens)
            loss.backward()
            gradients = digest(p.grad for p in model.parameters())
            optimizer.step()
            optimizer.zero_grad()
            print(name, step, loss.item().hex(), gradients, digest(model.parameters()))
    a = torch.ones(4, requires_grad=True) * 2
    b = a.sin()
    a.add_(1)
    with contextlib.suppress(RuntimeError):
        b.sum().backward()
        print("a changed saved tensor went unnoticed")


class Listening(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        print(torch.overrides.resolve_name(function))
        return function(*arguments, **(options or {}))


def function_modes():
    """What a mode of the program's sees of three steps."""
    start_layers()
    model, tokens = Decoder(32, layers=1, region=non_reentrant), torch.zeros(2, 8, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        with Listening():
            loss = next_token_loss(model, tokens, tokens)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


class Interrupting:
    def __str__(self):
        signal.raise_signal(signal.SIGINT)
        return "the agent wants to know what a tensor is called"


def interrupted():
    """A signal whose handler runs while the agent does something."""
    start_layers()
    model = nn.Identity()
    try:
        model({Interrupting(): torch.zeros(2)})
        print("nothing was interrupted")
    except KeyboardInterrupt:
        print("interrupted")
    print(model(3))


def saved_tensors(make_loss):
    """What the graph holds when backward begins, in the third step."""
    found = {}
    for step in range(3):
        mark(f"step {step}: forward begins")
        loss = make_loss()
        mark(f"step {step}: forward ends")
        kept = [tensor for _, tensor in graph.saved_tensors(loss)]
        found = {address: size for tensor in kept for address, size in [_place(_innermost(tensor))]}
        loss.backward()
        del loss
    expect(storages=sorted(found.items()))


def saved_mlp():
    model, x = mlp().cuda(), torch.randn(512, 256, device="cuda")
    saved_tensors(lambda: nn.functional.mse_loss(model(x), x))


def saved_decoder(region=None):
    model, tokens = Decoder(128, region=region).cuda(), torch.zeros(2, 64, dtype=torch.long, device="cuda")
    saved_tensors(lambda: next_token_loss(model, tokens, tokens))


def saved_autocast():
    model, x = mlp().cuda(), torch.randn(512, 256, device="cuda")

    def make_loss():
        with torch.autocast("cuda", torch.bfloat16):
            return model(x).float().square().mean()

    saved_tensors(make_loss)


class Scaled(nn.Module):
    """Tied weights, a buffer, and a parameter that is created anew on the device."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(256, 256)
        self.b = nn.Linear(256, 256, device="meta")
        self.tied = nn.Linear(256, 256)
        self.tied.weight = self.a.weight
        self.register_buffer("scale", torch.ones(256))

    def forward(self, x):
        return self.tied(self.b(self.a(x))) * self.scale


class Regions(nn.Module):
    """Two, of which the second one runs again in backward."""

    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(), mlp()

    def forward(self, x):
        y = self.first(x)
        return y.square().mean() + non_reentrant(self.second, y.exp()).mean()


def saved_sharded():
    """Tensors that consist of others: parts of products by columns and by rows, and what a collective fills. One rank of two,
    whose other one is not there."""
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    split = {"first.0": ColwiseParallel(), "first.3": RowwiseParallel(output_layouts=Shard(0)),
             "second.0": ColwiseParallel(input_layouts=Shard(0)), "second.3": RowwiseParallel()}
    model, x = parallelize_module(Regions().cuda(), init_device_mesh("cuda", (2,)), split), torch.randn(512, 256, device="cuda")
    saved_tensors(lambda: model(x))


def names():
    model = Scaled()
    model.b.to_empty(device="cuda")
    model = model.cuda()
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, 256, device="cuda")
    model(x).sum().backward()
    gradients = {name: _place(p.grad) for name, p in model.named_parameters()}
    optimizer.step()
    expect(
        parameter={name: _place(p) for name, p in model.named_parameters()},
        buffer={name: _place(b) for name, b in model.named_buffers()},
        gradient=gradients,
        optimizer_state={
            f"{name}/{key}": _place(value)
            for name, p in model.named_parameters() for key, value in optimizer.state[p].items() if value.is_cuda
        },
    )


def _innermost(tensor):
    """The one with memory of its own in a sharded tensor, or in one that a collective is filling."""
    inner = getattr(tensor, "_local_tensor", getattr(tensor, "elem", None))
    return tensor if inner is None else _innermost(inner)


def _place(tensor):
    storage = tensor.untyped_storage()
    return [storage.data_ptr(), storage.nbytes()]


def late_copies():
    """Copies of the weights that come to be in the middle of training, and are gone before its end."""
    model, x = mlp().cuda(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {}
    for step in range(40):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 20:
            kept["clones"] = [p.detach().clone() for p in model.parameters()]
        if step == 30:
            kept["module"] = list(copy.deepcopy(model).parameters())
    expect(copies={kind: [_place(tensor) for tensor in tensors] for kind, tensors in kept.items()})
    kept.clear()


def phases():
    """Two steps of two microbatches; a gradient as a value inside the first forward; an evaluation at the end."""
    model, x = mlp().cuda(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for _ in range(2):
            y = model(x)
            torch.autograd.grad(y.sum(), model[0].weight, create_graph=True)
            y.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        model(x)


def paths():
    """Where blocks come from: a checkpointed module, an exception out of one, and what follows."""
    model, x = mlp().cuda(), torch.randn(64, 256, device="cuda", requires_grad=True)
    for use_reentrant in (False, True):
        mark(f"checkpoint {use_reentrant}: begins")
        loss = checkpoint(model, x, use_reentrant=use_reentrant).sum()
        mark(f"checkpoint {use_reentrant}: backward begins")
        loss.backward()
        mark(f"checkpoint {use_reentrant}: ends")
    mark("plain: begins")
    loss = model(x).sum()
    mark("plain: backward begins")
    loss.backward()
    mark("plain: ends")
    with contextlib.suppress(RuntimeError):
        model(torch.randn(64, 3, device="cuda"))
    mark("exception: begins")
    torch.zeros(1 << 20, device="cuda")
    mark("exception: ends")


def ranges():
    """Ranges of the profiler, as programs use them; `blocks` has the ranges that each block was allocated in."""
    record_function = torch.profiler.record_function
    torch.zeros(1, device="cuda")
    blocks = {}

    def allocate(*inside):
        tensor = torch.empty(1000 * (len(blocks) + 1), device="cuda")
        blocks[tensor.data_ptr()] = [tensor, inside]

    @record_function("decorator")
    def decorated():
        allocate("decorator")

    @torch.jit.script
    def scripted(x):
        with torch.autograd.profiler.record_function("script"):
            return x + 1

    mark("begin")
    with record_function("outer"):
        allocate("outer")
        with contextlib.suppress(ValueError), record_function("inner"):
            allocate("outer", "inner")
            raise ValueError
        allocate("outer")
    allocate()
    decorated()
    assert scripted(torch.zeros(1)).item() == 1
    range_ = record_function("ends on another thread")
    range_.__enter__()
    allocate("ends on another thread")
    thread = threading.Thread(target=range_.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    allocate()
    mark("end")
    expect(blocks={str(address): inside for address, (_, inside) in blocks.items()})


def requested():
    """Odd sizes; a block that another stream still uses when it is freed."""
    side = torch.cuda.Stream()
    kept = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 511, 513, 1 << 20, (1 << 20) + 1, 11_000_000)]
    used_elsewhere = torch.empty(3_000_001, dtype=torch.uint8, device="cuda")
    used_elsewhere.record_stream(side)
    with torch.cuda.stream(side):
        used_elsewhere.add_(1)
    address = used_elsewhere.data_ptr()
    del used_elsewhere
    torch.cuda.synchronize()
    kept.append(torch.empty(5, dtype=torch.uint8, device="cuda"))
    blocks = []
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks.append([block["address"], block["size"], block["requested_size"]])
    mark("snapshot")
    expect(blocks=blocks, delayed=address)


class Gated(torch.autograd.Function):
    """Keeps a tensor as a plain attribute of its context; `kept` collects where those lie that backward was given."""

    kept = []

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.gates = {"positive": [x > 0]}
        return x * ctx.gates["positive"][0]

    @staticmethod
    def backward(ctx, gradient):
        gate = ctx.gates["positive"][0]
        Gated.kept.append(_place(gate))
        return gradient * gate


class GatedMlp(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(Gated.apply(self.up(x)))


def contexts():
    """Attributes of contexts, by the way that the function is called; more steps than those in which ops are observed."""
    model, x = GatedMlp().cuda(), torch.randn(64, 256, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ways = {"plain": model, "checkpointed": lambda x: non_reentrant(model, x), "checkpointed, reentrant": lambda x: reentrant(model, x)}
    kept = {}
    for step in range(6):
        for way, call in ways.items():
            name = f"{way} {step}"
            mark(f"{name}: forward")
            loss = call(x).sum()
            mark(f"{name}: backward")
            loss.backward()
            mark(f"{name}: ends")
            kept[name] = Gated.kept.pop()
        optimizer.step()
    expect(kept=kept)


def teardown():
    """Graphs that are dropped as a whole, before they were used and afterwards. All tensors differ in size."""
    def branch(number, call):
        x = torch.ones(number * 1000, device="cuda", requires_grad=True)
        y = call(lambda t: Gated.apply(t.sin()).exp().cos(), x * 2)
        return (model(y) * y.detach()).sum()  # a model may be called with what has a history

    model = nn.Identity()
    regions = [lambda f, x: f(x), non_reentrant, reentrant]
    for used in (False, True):
        loss = sum(branch(1 + number, regions[number % 3]) for number in range(12))
        if used:
            loss.backward(retain_graph=True)
        mark(f"used {used}: dropped")
        del loss
        mark(f"used {used}: gone")


class Returning(torch.optim.Optimizer):
    """Keeps, in its own state, where the weights were; another optimizer, which it wraps, makes the steps."""

    def __init__(self, base):
        self.base = base
        super().__init__(base.param_groups, {})

    @torch.no_grad()
    def climb(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.clone()


def train_by_values():
    """Gradients come from a transform and are put in their place; a model that no optimizer steps for itself."""
    torch.zeros(1, device="cuda")
    wait_for_layers()
    model, x = mlp().cuda(), torch.randn(64, 256, device="cuda")
    optimizer = Returning(torch.optim.SGD(model.parameters(), lr=0.1))
    found = {"parameter": [_place(p) for p in model.parameters()], "gradient": [], "optimizer_state": []}
    held = []

    def loss_of(values, x):
        return torch.func.functional_call(model, values, (x,)).square().mean()

    for step in range(4):
        mark(f"step {step}: transform")
        gradients = torch.func.grad(loss_of)({name: p.detach() for name, p in model.named_parameters()}, x)
        mark(f"step {step}: ends")
        for name, p in model.named_parameters():
            p.grad = gradients[name]
        found["gradient"] += [_place(p.grad) for p in model.parameters()]
        optimizer.climb()
        found["optimizer_state"] += [_place(state["old"]) for state in optimizer.state.values()]
        held += [state["old"] for state in optimizer.state.values()]  # so that each has a place of its own
        optimizer.base.step()
    expect(**found)


def moved():
    """Weights lie elsewhere in each step, also where they lay before; gradients are added up in places of their own."""
    model, x = mlp().cuda(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sums = [torch.zeros_like(p) for p in model.parameters()]
    places = []
    for step in range(24):
        for p in model.parameters():
            p.data = p.data.clone()
        model(x).sum().backward()
        for p, total in zip(model.parameters(), sums):
            p.grad = total.add_(p.grad)
        optimizer.step()
        optimizer.zero_grad()
        places.append([_place(p) for p in model.parameters()])
        mark(f"step {step} ends")
    expect(places=places, sums=[_place(total) for total in sums])


def wait_for_layers():
    """For those that another thread loads: until ranges are observed, which comes last. Gives up after a minute."""
    for _ in range(6000):
        if hasattr(torch.autograd.profiler.record_function.__enter__, "__wrapped__"):
            return
        time.sleep(0.01)


def in_thread():
    """The first thread only waits, and makes no pending calls of the interpreter."""
    thread = threading.Thread(target=train_by_values)
    thread.start()
    thread.join()


def compiled_step():
    """The graphs that a compiler makes of an optimizer's step."""
    start_layers()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, graphs = mlp(), []
    optimizer = torch.optim.AdamW(model.parameters())

    def backend(graph, _inputs):
        graphs.append([node.name for node in graph.graph.nodes])
        return graph.forward

    step = torch.compile(optimizer.step, backend=backend)
    for _ in range(3):
        model(torch.ones(4, 256)).sum().backward()
        step()
        optimizer.zero_grad()
    print(len(graphs), hashlib.sha256(repr(graphs).encode()).hexdigest(), digest(model.parameters()))


JOBS = {
    "numerics": numerics,
    "function_modes": function_modes,
    "interrupted": interrupted,
    "saved_mlp": saved_mlp,
    "saved_decoder": saved_decoder,
    "saved_decoder_checkpointed": lambda: saved_decoder(non_reentrant),
    "saved_autocast": saved_autocast,
    "saved_sharded": saved_sharded,
    "names": names,
    "late_copies": late_copies,
    "phases": phases,
    "paths": paths,
    "ranges": ranges,
    "requested": requested,
    "contexts": contexts,
    "teardown": teardown,
    "moved": moved,
    "in_thread": in_thread,
    "compiled_step": compiled_step,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]]()
