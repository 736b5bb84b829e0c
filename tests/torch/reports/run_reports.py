"""The driver behind the tests torch.reports.*: what people reported about other tools and frameworks, as small jobs, and what
a report must answer about each of them.

    run_reports.py --build DIR --scratch DIR CASE
    run_reports.py --list
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import allocator_checks  # noqa: E402
import sharded_checks  # noqa: E402
import training_checks  # noqa: E402
from checks import gpuledger, require  # noqa: E402
from driver import Checks, arguments_of  # noqa: E402
from job import Job  # noqa: E402

CASES = training_checks.CASES | sharded_checks.CASES | allocator_checks.CASES


class Case:
    """The jobs of a case, run once, and what the tool reports about each of them."""

    def __init__(self, build, folder):
        self.build = build
        self.folder = folder

    def run(self, jobs):
        """Runs all jobs, in forks of one process."""
        outcome = Job(self.build, [HERE / "jobs.py", self.folder, self.folder.name], environment={"SIMGPU_DEVICES": "4"}).run(self.folder)
        require(outcome.status == 0, f"{outcome.stdout[-1000:]}\n{outcome.stderr[-6000:]}")
        ran = {folder.name for folder in self.folder.iterdir() if folder.is_dir()}
        require(ran == jobs.keys(), f"jobs {sorted(ran)} ran, expected {sorted(jobs)}")

    def ranks(self, job, *arguments):
        """The ranks of a job's report."""
        result = gpuledger(self.build, "report", self.folder / job, "--json", "--blocks", *arguments)
        require(result.returncode == 0, f"gpuledger report {' '.join(arguments)}: status {result.returncode}\n{result.stderr[-2000:]}")
        return json.loads(result.stdout)["ranks"]

    def at(self, job, instant):
        """What was alive at an instant: an entry for each rank."""
        return [rank["at"] for rank in self.ranks(job, "--at", instant)]

    def text(self, job, *arguments):
        result = gpuledger(self.build, "report", self.folder / job, *arguments)
        require(result.returncode == 0, f"gpuledger report: status {result.returncode}\n{result.stderr[-2000:]}")
        return result.stdout

    def facts(self, job, rank=0):
        return json.loads((self.folder / job / f"rank{rank}.facts.json").read_text())


def main():
    arguments = arguments_of(__doc__, CASES, adapter=True)
    check, jobs = CASES[arguments.name]
    case = Case(arguments.build, arguments.scratch / arguments.name)
    checks = Checks()
    checks.check("the jobs run", case.run, jobs)
    for job, expected in jobs.items():
        checks.check(job, check, case, job, expected)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
