"""Attribution of programs that no rule was made for: models of public libraries (programs.py), and other ways to train.

    run_held_out.py --build DIR --scratch DIR --python PYTHON [NAME...]

PYTHON is an interpreter that has the PyTorch that the build's op adapter is for, and the libraries of the programs. It is not part of the
tests, since these would have to be downloaded, and all of them take too long. Each program runs twice, as it is and with libledger.so alone;
the rows of docs/agreement.md are printed.
Status 0: all checks hold; 1: some do not.
"""

import argparse
import dataclasses
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "categories"))
sys.path.insert(0, str(HERE.parent))
import expectations as expect  # noqa: E402
from checks import require  # noqa: E402
from job import Failure, Job  # noqa: E402
from run_categories import ALONE, WITHOUT, differences  # noqa: E402

LOOK_AT = 2  # as loop.py, which imports PyTorch, has it


@dataclasses.dataclass
class HeldOutJob(Job):
    python: pathlib.Path = pathlib.Path()

    def command(self):
        return [str(self.python), *super().command()[1:]]


def weak_share(peak):
    return sum(block["bytes"] for block in peak["blocks"] if block["evidence"] == "lifetime") / peak["bytes"]


def lifetimes_are_few(peak):
    require(weak_share(peak) <= expect.WEAK_SHARE, f"{weak_share(peak):.1%} of the peak rest on lifetimes")


def look_agrees(instant, look):
    """Each known storage is in its category, and no other block in the model's. What is saved for backward but made by the
    libraries in ways that the program does not see may be a thousandth of what is alive."""
    blocks = {block["address"]: block for block in instant["blocks"]}
    expected = {int(address): known for address, known in look["expected"].items()}
    for address, (category, name, size) in expected.items():
        known = f"{look['mark']}: {category} {name} of {size} bytes"
        require(address in blocks, f"{known}: no block is there")
        require(blocks[address]["category"] == category, f"{known} is {expect.describe_block(blocks[address])}")
    more = [block for address, block in blocks.items() if address not in expected]
    of_model = [block for block in more if block["category"] in ("parameter", "master_parameter", "gradient", "optimizer_state")]
    require(not of_model, f"{look['mark']}: {len(of_model)} blocks too many: {expect.describe(of_model)}")
    saved = [block for block in more if block["category"] in look["complete"]]
    require(sum(block["bytes"] for block in saved) <= instant["bytes"] / 1000, f"{look['mark']}: {len(saved)} too many: {expect.describe(saved)}")


# How often a ring passes on the whole tensor but for a rank's own part.
CROSSINGS = {"all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "all_reduce": 2}


def calls_agree(rank, calls):
    """The collectives of the step that is looked at: as often as the program called them, and with as many bytes."""
    said = {}
    for row in rank["communication"]:
        if row["step"] != LOOK_AT:
            continue
        known = said.setdefault(row["operation"], [0, 0])
        known[0] += row["count"]
        known[1] += row["payload_bytes"]
        crossings = CROSSINGS.get(row["operation"])
        if crossings:
            wire = crossings * row["payload_bytes"] * (row["ranks"] - 1) / row["ranks"]
            of_rounding = crossings * row["count"]
            require(abs(row["wire_bytes"] - wire) <= of_rounding, f"{row['operation']}: {row['wire_bytes']} bytes on the wire, expected {wire:.0f}")
    for operation, expected in calls.items():
        require(said.get(operation) == expected, f"{operation} in step {LOOK_AT}: [calls, bytes] are {said.get(operation)}, expected {expected}")


class HeldOut:
    def __init__(self, options):
        self.build = options.build
        self.scratch = options.scratch
        self.python = options.python
        self.names = options.names  # none: all that there are
        self.reports_only = options.reports_only
        self.failures = 0

    def check(self, what, function, *arguments):
        try:
            return function(*arguments)
        except Failure as failure:
            self.failures += 1
            print(f"FAILED  {what}: {failure}", flush=True)
        return None

    def launch(self, kind, environment):
        folder = self.scratch / kind
        settings = {
            "SIMGPU_DEVICES": "4", "HF_HUB_OFFLINE": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "TRITON_CACHE_DIR": str(self.scratch / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(self.scratch / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # in the job's own process
        } | environment
        job = HeldOutJob(self.build, [HERE / "launch.py", folder, *self.names], environment=settings, limit_s=3000, python=self.python)
        outcome = job.run(folder)
        print(outcome.stdout + outcome.stderr, file=sys.stderr)
        require(outcome.status == 0, f"{outcome.status} programs failed")

    def run(self):
        for kind, environment in () if self.reports_only else (("full", {}), ("alone", WITHOUT[ALONE])):
            self.check(f"programs run ({kind})", self.launch, kind, environment)
        there = sorted(folder.name for folder in (self.scratch / "full").iterdir())
        ran = [name for name in there if name in self.names] if self.reports_only and self.names else there
        rows = [row for name in ran if (row := self.check(name, self.row, name))]
        print("| program | peak, MiB | by lifetime | same category alone | largest differences |\n|---|---|---|---|---|")
        print("\n".join(rows))

    def row(self, name):
        ranks = expect.report(self.build, self.scratch / "full" / name)
        for rank in ranks:
            self.check_rank(name, rank)
        alone = expect.report(self.build, self.scratch / "alone" / name)
        peak = ranks[0]["at_peak"]
        share, different = expect.agreement(peak, alone[0]["at_peak"])
        return f"| {name} | {peak['bytes'] / 2**20:.1f} | {weak_share(peak):.1%} | {share:.1%} | {differences(different, peak['bytes'])} |"

    def check_rank(self, name, rank):
        what = f"{name}, rank {rank['rank']}"
        self.check(what, expect.layers_are_on, rank)
        self.check(what, expect.nothing_is_unknown, rank["at_peak"])
        self.check(what, lifetimes_are_few, rank["at_peak"])
        self.check(what, expect.categories_add_up, rank["at_peak"])
        holdings = json.loads((self.scratch / "full" / name / f"rank{rank['rank']}.holdings.json").read_text())
        self.check(what, calls_agree, rank, holdings["calls"])
        for look in holdings["looks"]:
            instant = self.check(what, self.instant, name, rank["rank"], look["mark"])
            if instant:
                self.check(what, look_agrees, instant, look)

    def instant(self, name, rank, mark):
        ranks = expect.report(self.build, self.scratch / "full" / name, "--at", f"mark:{mark}")
        return next(entry for entry in ranks if entry["rank"] == rank)["at"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True)
    parser.add_argument("--reports-only", action="store_true", help="of programs that have run into the scratch folder before")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a program, or of a module of them")
    held_out = HeldOut(parser.parse_args())
    held_out.run()
    return 1 if held_out.failures else 0


if __name__ == "__main__":
    sys.exit(main())
