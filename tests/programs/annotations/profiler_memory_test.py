"""PyTorch's own memory profile is the same with the ledger and without it: its reports are passed on, on both devices."""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "torch"))
from job import Job  # noqa: E402

SKIP = 77


def workload():
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        for device in ("cpu", "cuda"):
            weight = torch.ones(64, 64, requires_grad=True, device=device)
            for _ in range(3):
                (weight @ weight).relu().sum().backward()
            del weight
    events = [event for event in profiler.events() if event.name == "[memory]"]
    host = [event.cpu_memory_usage for event in events if event.cpu_memory_usage]
    device = [event.device_memory_usage for event in events if event.device_memory_usage]
    operators = sorted((row.key, row.count, row.self_cpu_memory_usage, row.self_device_memory_usage) for row in profiler.key_averages())
    print("events", len(host), host, len(device), device)
    print("operators", operators)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--workload", action="store_true")
    options = parser.parse_args()
    if options.workload:
        return workload()
    if not (options.build / "venv/bin/python").exists():
        print("SKIP: there is no PyTorch in this build: scripts/build installs it")
        return SKIP
    results = []
    for recorded in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            outcome = Job(options.build, [HERE / "profiler_memory_test.py", "--workload"]).run(pathlib.Path(folder) / "run", recorded)
            if outcome.status != 0:
                sys.exit(f"the workload ended with status {outcome.status}:\n{outcome.stderr}")
            results.append(outcome.stdout)
            if len(list((pathlib.Path(folder) / "run").glob("*.ledger"))) != (1 if recorded else 0):
                sys.exit("there is a ledger too many or too few")
    if results[0] != results[1]:
        sys.exit(f"the profiles differ.\nWithout the ledger:\n{results[0]}\nWith it:\n{results[1]}")
    if "events 0" in results[0] or " 0 []" in results[0]:
        sys.exit(f"a device has no memory events at all, so nothing was compared:\n{results[0]}")
    print("the same profile, with the ledger and without it:", results[0].splitlines()[0][:100], "...")
    return 0


sys.exit(main())
