"""The driver behind the tests torch.categories.*: who held the memory, as a report says it and as the job knew it.

    run_categories.py --build DIR --scratch DIR GROUP      status 0: every check holds; 1: one does not; 77: it cannot run here
    run_categories.py --build DIR --scratch DIR agreement  prints the table of docs/agreement.md
    run_categories.py --list

Each group of workloads runs as it is, and with fewer layers: with libledger.so alone all of them, with the agent or the op
adapter alone those of PARTLY (for the table: all). How much of the peak has the same category as in the full run is held to
what the table says.
"""

import json
import pathlib
import re
import sys

import expectations as expect

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from checks import require  # noqa: E402
from driver import Checks, arguments_of  # noqa: E402
from job import Job  # noqa: E402

DOCUMENT = HERE.parents[2] / "docs/agreement.md"
TABLE = "agreement"
# Columns of the table: what is left of the layers.
ALONE, AGENT, ADAPTER = "libledger.so alone", "with the agent", "with the adapter"
WITHOUT = {ALONE: {"LEDGER_AGENT": "0", "LEDGER_ADAPTER": "0"}, AGENT: {"LEDGER_ADAPTER": "0"}, ADAPTER: {"LEDGER_AGENT": "0"}}
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
PARTLY = ("mlp", "decoder", "decoder_reentrant", "custom_function", "ema_clones", "sixteen_bytes")


class Group:
    def __init__(self, build, scratch, name, partly):
        """`partly`: the workloads that also run with one layer alone."""
        self.build = build
        self.folder = scratch / name
        self.checks = Checks(quiet=True)
        self.names = {"full": GROUPS[name], ALONE: GROUPS[name]}
        some = [workload for workload in GROUPS[name] if workload in partly]
        self.names |= {kind: some for kind in (AGENT, ADAPTER) if some}
        self.agreements = {workload: {} for workload in GROUPS[name]}  # by kind: (share, differences)
        self.peaks = {}  # bytes

    def folder_of(self, kind):
        return self.folder / kind.replace(" ", "_")

    def launch(self, folder, environment, names):
        """Runs workloads in forks of one process."""
        settings = {
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # in the job's own process
            "SIMGPU_DEVICES": "2",
        }
        outcome = Job(self.build, [HERE / "launch.py", folder, *names], environment=settings | environment, limit_s=500).run(folder)
        require(outcome.status == 0, f"status {outcome.status}\n{outcome.stdout[-1000:]}\n{outcome.stderr[-3000:]}")

    def run(self):
        if "compiled" in self.names["full"]:  # what a compiler tries out, when it has no cache yet, would be the peak
            self.checks.check("workloads run (to fill caches)", self.launch, self.folder / "first", {}, ["compiled"])
        for kind, names in self.names.items():
            self.checks.check(f"workloads run ({kind})", self.launch, self.folder_of(kind), WITHOUT.get(kind, {}), names)
        for name in self.names["full"]:
            ranks = self.checks.check(name, self.ranks_of, "full", name)
            if not ranks:
                continue
            for rank in ranks:
                self.check_rank(name, rank)
            peak = ranks[0]["at_peak"]
            self.peaks[name] = peak["bytes"]
            for kind in WITHOUT:
                if name in self.names.get(kind, ()):
                    self.checks.check(f"{name}, {kind}", self.compare, name, kind, peak)

    def ranks_of(self, kind, name):
        return expect.report(self.build, self.folder_of(kind) / name)

    def holdings(self, name, rank):
        file = self.folder_of("full") / name / f"rank{rank}.holdings.json"
        require(file.exists(), "the job did not say what it holds")
        return json.loads(file.read_text())

    def check_rank(self, name, rank):
        check = self.checks.check
        what = f"{name}, rank {rank['rank']}"
        peak = rank["at_peak"]
        check(what, expect.layers_are_on, rank)
        check(what, expect.nothing_is_unknown, peak)
        check(what, expect.evidence_is_strong, peak)
        check(what, expect.categories_add_up, peak)
        holdings = check(what, self.holdings, name, rank["rank"])
        if not holdings:
            return
        check(what, lambda: require(holdings["looks"], "the job did not look"))
        for look in holdings["looks"]:
            instant = check(what, self.instant, name, rank["rank"], look["mark"])
            if instant:
                check(what, expect.look_agrees, instant, look)
        if name == "sixteen_bytes":
            widths = {"parameter": 2, "gradient": 2, "master_parameter": 4, "optimizer_state": 8}
            check(what, expect.state_per_parameter, rank, holdings, 8, widths)

    def instant(self, name, rank, mark):
        ranks = expect.report(self.build, self.folder_of("full") / name, "--at", f"mark:{mark}")
        return next(entry for entry in ranks if entry["rank"] == rank)["at"]

    def compare(self, name, kind, full):
        share, different = expect.agreement(full, self.ranks_of(kind, name)[0]["at_peak"])
        self.agreements[name][kind] = (share, different)
        what = f"{share:.1%} of the peak have the same category ({differences(different, full['bytes'])})"
        if kind == ALONE:
            require(share >= LEAST_AGREEMENT, f"{what}, expected {LEAST_AGREEMENT:.0%}")
        documented = documented_agreement(name, kind)
        require(share > documented - 0.01, f"{what}, {DOCUMENT.name} says {documented:.1%}")


def differences(different, size):
    """The largest disagreements, as text."""
    return ", ".join(f"{one} taken for {other} {count / size:.1%}" for (one, other), count in different.most_common(3) if count / size >= 0.001)


def documented_agreement(name, kind):
    row = re.search(rf"^\| {name} \| [\d.]+ ((?:\| [\d.]+% ){{{len(WITHOUT)}}})", DOCUMENT.read_text(), re.MULTILINE)
    require(row, f"{DOCUMENT.name} has no row for {name}; 'run_categories.py ... {TABLE}' prints the table anew")
    return float(re.findall(r"[\d.]+", row[1])[list(WITHOUT).index(kind)]) / 100


def print_row(*cells):
    print(f"| {' | '.join(cells)} |")


def print_agreements(groups):
    """Only for workloads that have run in all settings."""
    print_row("workload", "peak, MiB", *WITHOUT, "largest differences")
    print_row(*["---"] * (3 + len(WITHOUT)))
    total, same = 0, dict.fromkeys(WITHOUT, 0)
    for group in groups:
        for name, found in group.agreements.items():
            if len(found) < len(WITHOUT):
                continue
            size = group.peaks[name]
            notes = [f"{kind.split()[-1]}: {note}" for kind, (_, different) in found.items() if (note := differences(different, size))]
            print_row(name, f"{size / 2**20:.1f}", *(f"{share:.1%}" for share, _ in found.values()), "; ".join(notes))
            total += size
            for kind, (share, _) in found.items():
                same[kind] += size * share
    if total:
        print_row("together", f"{total / 2**20:.1f}", *(f"{bytes_ / total:.1%}" for bytes_ in same.values()), "")


def main():
    arguments = arguments_of(__doc__, GROUPS, adapter=True, unlisted=[TABLE])
    table = arguments.name == TABLE
    everything = [workload for names in GROUPS.values() for workload in names]
    groups = [Group(arguments.build, arguments.scratch, name, everything if table else PARTLY) for name in (GROUPS if table else [arguments.name])]
    for group in groups:
        group.run()
    print_agreements(groups)
    return 1 if any(group.checks.failed for group in groups) else 0


if __name__ == "__main__":
    sys.exit(main())
