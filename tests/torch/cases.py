"""What the caching allocator can be made to do, against torch's own counters: `python cases.py NAME`.

Each case is a job of its own. It prints nothing that differs between two runs.
"""

import os
import resource
import sys
import threading
import time

import torch
from torch import nn
from truth import Truth, mark

MIB = 1 << 20


def megabytes(count):
    return torch.empty(count * MIB, dtype=torch.uint8, device="cuda")


def small_network():
    with torch.device("cuda"):
        return nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 512))


def mlp(truth):
    """The plainest of training loops."""
    model = small_network()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        with truth.window(f"step {step}"):
            x = torch.randn(256, 512, device="cuda")
            loss = model(x).square().mean()
            truth.snapshot(f"step {step}: after forward")
            loss.backward()
            truth.snapshot(f"step {step}: after backward")
            optimizer.step()
            optimizer.zero_grad()
    truth.snapshot("end")


def empty_cache(truth):
    """Segments that come, are cached, and go back to the driver."""
    for size in (1, 24, 300):
        with truth.window(f"{size} MiB"):
            kept = [megabytes(size) for _ in range(6)]
            del kept[1::2]
            truth.snapshot(f"{size} MiB: half freed")
            torch.cuda.empty_cache()
            truth.snapshot(f"{size} MiB: emptied, half kept")
            del kept
        with truth.window(f"{size} MiB: all emptied"):
            torch.cuda.empty_cache()
            truth.snapshot(f"{size} MiB: nothing left")
    print("reserved at the end:", torch.cuda.memory_reserved())


def streams(truth):
    """Blocks of one stream that another still uses: freed, and not yet free."""
    side = [torch.cuda.Stream() for _ in range(3)]
    with truth.window("streams"):
        for turn in range(20):
            x = torch.empty(4 * MIB, device="cuda")
            for stream in side:
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    y = x + 1
                    x.record_stream(stream)
                    y.record_stream(torch.cuda.current_stream())
                    z = torch.empty((turn + 1) * 100_000, device="cuda")
                    del y, z
            del x
            if turn % 5 == 0:
                truth.snapshot(f"turn {turn}")
    with truth.window("after a synchronization"):
        torch.cuda.synchronize()
        x = torch.empty(4 * MIB, device="cuda")
        truth.snapshot("synchronized")
        del x
        torch.cuda.empty_cache()
    truth.snapshot("end")


def out_of_memory(truth):
    """The allocator frees its cache and tries again; then it gives up, the job catches that and goes on."""
    free, _ = torch.cuda.mem_get_info()
    part = free // 8 // MIB
    with truth.window("a retry"):
        kept = [megabytes(part) for _ in range(6)]
        del kept[:3]
        kept.append(megabytes(3 * part))  # fits only after the cached segments are given back
    print("retries:", torch.cuda.memory_stats()["num_alloc_retries"])
    with truth.window("out of memory"):
        try:
            megabytes(6 * part)
        except torch.cuda.OutOfMemoryError as error:
            print("caught:", type(error).__name__)
        truth.snapshot("caught")
    with truth.window("afterwards"):
        del kept
        kept = megabytes(6 * part)
        truth.snapshot("afterwards")
    print("out of memory:", torch.cuda.memory_stats()["num_ooms"])


def threads(truth):
    """Two threads that allocate at once, each freeing what the other made."""
    exchange = [[], []]
    start = threading.Barrier(2)

    def work(index):
        start.wait()
        for turn in range(3000):
            exchange[index].append(torch.empty((turn % 97 + 1) * 1000, device="cuda"))
            if turn % 3 == 2:
                other = exchange[1 - index]
                if other:
                    other.pop(0)

    with truth.window("threads"):
        workers = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        truth.snapshot("joined")
    with truth.window("freed"):
        exchange[0].clear()
        exchange[1].clear()
    truth.snapshot("end")


def graph(truth):
    """A training step captured into a CUDA graph has a private pool; replaying allocates nothing."""
    model = small_network()
    x = torch.randn(64, 512, device="cuda")
    with truth.window("warm-up"):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                model(x).sum().backward()
        torch.cuda.current_stream().wait_stream(stream)
        model.zero_grad()
    captured = torch.cuda.CUDAGraph()
    with truth.window("capture"):
        with torch.cuda.graph(captured):
            loss = model(x).sum()
            loss.backward()
        truth.snapshot("captured")
    with truth.window("replay"):
        for _ in range(3):
            captured.replay()
        torch.cuda.synchronize()
    truth.snapshot("replayed")
    with truth.window("gone"):
        del captured, loss
        model.zero_grad()
        torch.cuda.empty_cache()
    truth.snapshot("end")


def two_devices(truth):
    """One process that uses two devices."""
    if torch.cuda.device_count() < 2:
        sys.exit("two devices are needed")
    other = Truth(device=1, history=False)
    kept = []
    with truth.window("first"), other.window("second"):
        for size in (1, 20, 300):
            kept.append(torch.empty(size * MIB, dtype=torch.uint8, device="cuda:0"))
            kept.append(torch.empty(2 * size * MIB, dtype=torch.uint8, device="cuda:1"))
        del kept[:2]
        truth.snapshot("device 0")
        other.snapshot("device 1")
    truth.join(other)


def unmanaged(truth):
    """Without the caching allocator, or with the driver's pools behind it: every tensor is the driver's."""
    sizes = (100, 4096, 1 << 20, 3 * MIB + 512, 200 * MIB)
    kept = {number: torch.empty(size, dtype=torch.uint8, device="cuda") for number, size in enumerate(sizes)}
    truth.tensors("all", kept.values())
    del kept[1], kept[4]
    torch.cuda.synchronize()
    truth.tensors("two freed", kept.values())
    kept[9] = torch.empty(MIB // 2, dtype=torch.float32, device="cuda")
    truth.tensors("one more", kept.values())
    if torch.cuda.memory.get_allocator_backend() == "cudaMallocAsync":
        print("torch's peak:", torch.cuda.max_memory_allocated())


def workspaces(_):
    """Matrix products into tensors that are there: all that is allocated meanwhile are workspaces."""
    left, right, result = (torch.zeros(256, 256, device="cuda") for _ in range(3))
    bias = torch.zeros(256, device="cuda")
    for turn in range(3):
        mark(f"turn {turn}: begin")
        torch.mm(left, right, out=result)
        torch.addmm(bias, left, right, out=result)
        mark(f"turn {turn}: end")
        reused = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")  # where a workspace was, and is none
        del reused


def compiled(truth):
    """torch.compile: Triton kernels, compilers in processes of their own."""
    model = torch.compile(small_network())
    with truth.window("compiled"):
        for _ in range(2):
            model(torch.randn(64, 512, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        truth.snapshot("end")


def value_reads(truth):
    """Values of a simulated device that steer a program are not real; the report must say where they were read."""
    x = torch.ones(8, device="cuda")
    for _ in range(3):
        x.sum().item()  # read back: 3
    x.cpu()  # read back: 1
    with truth.window("nothing"):
        pass


def memory_of_process():
    """Anonymous and file-backed resident bytes."""
    fields = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Rss"))
    return sum(int(value.split()[0]) * 1024 for value in fields.values())


def churn_and_stop(pairs):
    """What the recorder keeps in memory must not grow with the events, nor its work at the end. Exits with status 7."""
    def churn(pairs):
        for _ in range(pairs):
            torch.empty(1000, device="cuda")

    churn(pairs // 10)
    early = memory_of_process()
    churn(pairs - pairs // 10)
    growth = memory_of_process() - early
    print("memory grew by less than 8 MiB:", growth < 8 * MIB)
    if growth >= 8 * MIB:
        print("growth:", growth)
    mark("last")
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    print(f"stopped at {time.monotonic_ns()} after {faults} page faults", file=sys.stderr, flush=True)
    sys.exit(7)


def long(_):
    churn_and_stop(1_000_000)


def short(_):
    churn_and_stop(10_000)


CASES = {case.__name__: case for case in (mlp, empty_cache, streams, out_of_memory, threads, graph, two_devices, unmanaged, workspaces, compiled, value_reads,
                                          long, short)}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(f"usage: cases.py {{{','.join(CASES)}}}")
    torch.cuda.init()
    truth = Truth()
    CASES[sys.argv[1]](truth)
    truth.write()


if __name__ == "__main__":
    main()
