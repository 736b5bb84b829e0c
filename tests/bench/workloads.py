"""What scripts/bench times inside a job: `python workloads.py events|steps [history]`. Prints one number.

events   nanoseconds of a block event with everything around it: tensors that are made and dropped, from Python
steps    seconds of a decoder's training step, the median; no kernel runs, so this is the host's part alone

With `history`, torch records its own history of allocations meanwhile (its cheapest kind, without stacks, and its
usual one, with Python's: history-python).
"""

import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from demo_train import Decoder, initialize, train_step  # noqa: E402


def events():
    pairs = 20_000

    def one_round():
        start = time.perf_counter_ns()
        for _ in range(pairs):
            torch.empty(1000, device="cuda")
        return (time.perf_counter_ns() - start) / (2 * pairs)

    return min(one_round() for _ in range(25))


def steps():
    with torch.device("cuda"):
        model = Decoder(width=256, layers=12, heads=4, hidden=1024).to(torch.bfloat16)
    initialize(model)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randint(32000, (2, 512)).to("cuda")

    def one_step():
        start = time.perf_counter()
        train_step(model, optimizer, batch, batch)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    for _ in range(5):
        one_step()
    return sorted(one_step() for _ in range(60))[30]


def main():
    history = sys.argv[2] if len(sys.argv) > 2 else None
    torch.cuda.init()
    if history:
        context = {"history": None, "history-python": "all"}[history]
        torch.cuda.memory._record_memory_history(context=context, stacks="python", max_entries=10_000_000)
    print({"events": events, "steps": steps}[sys.argv[1]]())


if __name__ == "__main__":
    main()
