"""What scripts/bench times inside a job: `python workloads.py events|steps VARIANT…`, with libledger.so preloaded or not.

events   a block event with everything around it: tensors that are made and dropped, from Python; its parts are single events
steps    a decoder's training step; no kernel runs, so this is the host's part alone

PyTorch is imported once. Then each variant gets a process of its own, forked from this one, so that all of them have the same
libraries at the same addresses: where code and data happen to lie makes more of a difference than recording does. They run
when they are told to: each line "VARIANT" on the standard input has that variant do one turn, and is answered by the seconds
of the clock and of the processor that it took, for each part of the turn.
"""

import dataclasses
import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from demo_train import Decoder, initialize, train_step  # noqa: E402

# More optimizer steps than ops are observed by default (LEDGER_OPS) and than names are looked after at every step.
WARM_UP_STEPS = 20
STEPS_A_TURN = 2
TENSORS_A_TURN = 4_000


@dataclasses.dataclass(frozen=True)
class Variant:
    settings: dict
    history: str | None = None  # of torch's own record of allocations: "none" (without stacks) or "python"


VARIANTS = {
    "plain": Variant({}),  # in a process without the library
    "off": Variant({"LEDGER_OFF": "1"}),
    "alone": Variant({"LEDGER_AGENT": "0", "LEDGER_ADAPTER": "0"}),
    "observed": Variant({"LEDGER_OPS": "all"}),
    "later": Variant({}),  # the warm-up has gone through the steps in which ops are observed
    "unobserved": Variant({"LEDGER_OPS": "0"}),
    "history": Variant({"LEDGER_OFF": "1"}, "none"),
    "history-python": Variant({"LEDGER_OFF": "1"}, "python"),
}


def events():
    def turn():
        for _ in range(TENSORS_A_TURN):
            torch.empty(1000, device="cuda")

    turn()
    return turn, 2 * TENSORS_A_TURN


def steps():
    with torch.device("cuda"):
        model = Decoder(width=256, layers=12, heads=4, hidden=1024).to(torch.bfloat16)
    initialize(model)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randint(32000, (2, 512)).to("cuda")

    def turn(count=STEPS_A_TURN):
        for _ in range(count):
            train_step(model, optimizer, batch, batch)
            torch.cuda.synchronize()

    turn(WARM_UP_STEPS)
    return turn, STEPS_A_TURN


def serve(workload, variant, requests, answers):
    """One variant's process: does a turn for each byte that comes in, until there are no more."""
    os.environ.update(variant.settings)
    torch.cuda.init()
    if variant.history:
        context = None if variant.history == "none" else "all"
        torch.cuda.memory._record_memory_history(context=context, stacks="python", max_entries=1_000_000)
    turn, parts = workload()
    os.write(answers, b"ready\n")
    while os.read(requests, 1):
        clock, processor = time.perf_counter(), time.process_time()
        turn()
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        os.write(answers, f"{clock / parts:.9f} {processor / parts:.9f}\n".encode())


class Process:
    def __init__(self, workload, variant):
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.requests)
            status = 1
            try:
                serve(workload, variant, requests, answers)
                status = 0
            finally:
                os._exit(status)  # neither the parent's exit handlers nor its other children's pipes are this one's
        os.close(requests)
        os.close(answers)
        self.answer()

    def answer(self):
        answer = os.read(self.answers, 100).decode().strip()
        if not answer:
            sys.exit(f"workloads.py: error: a variant's process ended with status {os.waitpid(self.pid, 0)[1]}")
        return answer

    def turn(self):
        os.write(self.requests, b".")
        return self.answer()

    def end(self):
        os.close(self.requests)
        os.waitpid(self.pid, 0)


def main():
    workload = {"events": events, "steps": steps}[sys.argv[1]]
    processes = {}
    for name in sys.argv[2:]:
        processes[name] = Process(workload, VARIANTS[name])
        print("ready", flush=True)
    for line in sys.stdin:
        print(processes[line.strip()].turn(), flush=True)
    # The later ones hold copies of the earlier ones' pipes.
    for process in reversed(processes.values()):
        process.end()


if __name__ == "__main__":
    main()
