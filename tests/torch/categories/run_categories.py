"""The driver behind the tests torch.categories.*: who held the memory, as a report says it and as the job knew it.

    run_categories.py --build DIR --scratch DIR GROUP      status 0: every check holds; 1: one does not; 77: it cannot run here
    run_categories.py --build DIR --scratch DIR --agreement
    run_categories.py --list

Each group of workloads runs twice: as it is, and with libledger.so alone. The shares of the peak that have the same category
in both are printed; with --agreement, for all groups, as the table of docs/agreement.md.
"""

import argparse
import json
import pathlib
import re
import sys

import expectations as expect

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from checks import require  # noqa: E402
from job import Failure, Job  # noqa: E402

SKIPPED = 77
ALONE = {"LEDGER_AGENT": "0", "LEDGER_ADAPTER": "0"}
DOCUMENT = HERE.parents[2] / "docs/agreement.md"
LEAST_AGREEMENT = 0.95

GROUPS = {
    "optimizers": ["mlp", "mlp_foreach", "mlp_fused", "mlp_for_loop", "mlp_momentum", "mlp_adafactor", "mlp_eight_bit"],
    "decoder": ["decoder", "decoder_tied", "decoder_autocast", "decoder_accumulation"],
    "checkpointing": ["decoder_reentrant", "decoder_non_reentrant", "decoder_selective"],
    "programs": ["compiled", "custom_function", "recreated"],
    "copies": ["ema_deep_copy", "ema_clones", "ema_averaged_model"],
    "replicated": ["ddp", "ddp_bucket_view", "zero_redundancy"],
    "sharded_flat": ["fsdp1", "fsdp1_orig_params"],
    "sharded": ["fsdp2", "fsdp2_kept", "fsdp2_prefetch", "fsdp2_accumulation"],
    "sixteen_bytes": ["sixteen_bytes"],
}


class Group:
    def __init__(self, build, scratch, name):
        self.build = build
        self.folder = scratch / name
        self.names = GROUPS[name]
        self.failed = False
        self.agreements = {}  # workload → (share, differences)

    def check(self, what, function, *arguments):
        """Runs a check; returns what it returns, or None when it does not hold."""
        try:
            return function(*arguments)
        except Failure as failure:
            self.failed = True
            print(f"FAILED  {what}: {failure}")
        return None

    def launch(self, kind, environment, names=None):
        """Runs workloads, by default all of the group, in forks of one process."""
        folder = self.folder / kind
        settings = {
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # in the job's own process
            "SIMGPU_DEVICES": "2",
        }
        outcome = Job(self.build, [HERE / "launch.py", folder, *(names or self.names)], environment=settings | environment, limit_s=500).run(folder)
        require(outcome.status == 0, f"status {outcome.status}\n{outcome.stdout[-1000:]}\n{outcome.stderr[-3000:]}")

    def run(self):
        if "compiled" in self.names:  # what a compiler tries out, when it has no cache yet, would be the peak
            self.check("workloads run (to fill caches)", self.launch, "first", {}, ["compiled"])
        for kind, environment in (("full", {}), ("alone", ALONE)):
            self.check(f"workloads run ({kind})", self.launch, kind, environment)
        for name in self.names:
            ranks = self.check(name, self.ranks_of, "full", name)
            for rank in ranks or []:
                self.check_rank(name, rank)
            if ranks:
                self.check(f"{name}, libledger.so alone", self.compare, name, ranks)

    def ranks_of(self, kind, name):
        return expect.report(self.build, self.folder / kind / name)

    def holdings(self, name, rank):
        file = self.folder / "full" / name / f"rank{rank}.holdings.json"
        require(file.exists(), "the job did not say what it holds")
        return json.loads(file.read_text())

    def check_rank(self, name, rank):
        what = f"{name}, rank {rank['rank']}"
        peak = rank["at_peak"]
        self.check(what, expect.layers_are_on, rank)
        self.check(what, expect.nothing_is_unknown, peak)
        self.check(what, expect.evidence_is_strong, peak)
        self.check(what, expect.categories_add_up, peak)
        holdings = self.check(what, self.holdings, name, rank["rank"])
        if not holdings:
            return
        self.check(what, lambda: require(holdings["looks"], "the job did not look"))
        for look in holdings["looks"]:
            instant = self.check(what, self.instant, name, rank["rank"], look["mark"])
            if instant:
                self.check(what, expect.look_agrees, instant, look)
        if name == "sixteen_bytes":
            widths = {"parameter": 2, "gradient": 2, "master_parameter": 4, "optimizer_state": 8}
            self.check(what, expect.state_per_parameter, rank, holdings, 8, widths)

    def instant(self, name, rank, mark):
        ranks = expect.report(self.build, self.folder / "full" / name, "--at", f"mark:{mark}")
        return next(entry for entry in ranks if entry["rank"] == rank)["at"]

    def compare(self, name, full):
        alone = self.ranks_of("alone", name)
        share, different = expect.agreement(full[0]["at_peak"], alone[0]["at_peak"])
        size = full[0]["at_peak"]["bytes"]
        self.agreements[name] = (size, share, different)
        require(share >= LEAST_AGREEMENT, f"only {share:.1%} of the peak have the same category, expected {LEAST_AGREEMENT:.0%}: {differences(different, size)}")
        documented = documented_agreement(name)
        require(share > documented - 0.01, f"{share:.1%} of the peak have the same category, {DOCUMENT.name} says {documented:.1%}")


def differences(different, size):
    """The largest disagreements, as text."""
    return ", ".join(f"{one} taken for {other} {count / size:.1%}" for (one, other), count in different.most_common(3) if count / size >= 0.001)


def documented_agreement(name):
    row = re.search(rf"^\| {name} \| [\d.]+ \| ([\d.]+)% \|", DOCUMENT.read_text(), re.MULTILINE)
    require(row, f"{DOCUMENT.name} has no row for {name}; --agreement prints the table anew")
    return float(row[1]) / 100


def print_agreements(groups):
    print("| workload | peak, MiB | same category | largest differences |\n|---|---|---|---|")
    total = same = 0
    for name, (size, share, different) in [entry for group in groups for entry in group.agreements.items()]:
        print(f"| {name} | {size / 2**20:.1f} | {share:.1%} | {differences(different, size)} |")
        total += size
        same += size * share
    if total:
        print(f"| together | {total / 2**20:.1f} | {same / total:.1%} | |")


def reason_to_skip(build):
    if not (build / "venv/complete").exists():
        return f"no PyTorch in {build}/venv; scripts/build puts it there"
    if not list((build / "lib/adapter").glob("*/libledger_torch.so")):
        return f"no op adapter in {build}/lib/adapter; 'gpuledger adapter build' makes it"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--agreement", action="store_true", help="all groups; prints the table of docs/agreement.md")
    parser.add_argument("group", nargs="?", choices=GROUPS)
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(GROUPS))
        return 0
    if not (arguments.build and arguments.scratch and (arguments.group or arguments.agreement)):
        parser.error("--build, --scratch and a group, or --agreement, are needed")
    if reason := reason_to_skip(arguments.build):
        print(f"SKIPPED: {reason}")
        return SKIPPED
    groups = [Group(arguments.build, arguments.scratch, name) for name in (GROUPS if arguments.agreement else [arguments.group])]
    for group in groups:
        group.run()
    print_agreements(groups)
    return 1 if any(group.failed for group in groups) else 0


if __name__ == "__main__":
    sys.exit(main())
