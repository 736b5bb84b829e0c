"""Runs the jobs of a case, one after the other, each in forks of this process: `python jobs.py FOLDER CASE`.

Ledgers and facts of a job go to FOLDER/JOB. Prints a line for each job that fails; the status is their number.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import allocator_jobs  # noqa: E402
import forks  # noqa: E402
import sharded_jobs  # noqa: E402
import training_jobs  # noqa: E402
import witness  # noqa: E402

# With a lag, an event completes only after that many operations: memory that another stream used is held until then.
LAG = {"SIMGPU_EVENT_LAG": "40"}


@dataclasses.dataclass
class Job:
    run: Callable[[], None]
    ranks: int = 1
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


def each(runs, **options):
    return {name: Job(run, **options) for name, run in runs.items()}


def both_ways(runs, lagging, **options):
    """Jobs that use several streams: with events that complete at once, and some with events that lag, too."""
    return each(runs, **options) | {f"{name}_lagging": Job(runs[name], environment=LAG, **options) for name in lagging}


ROUNDING = {name: Job(allocator_jobs.rounding, environment=settings) for name, settings in allocator_jobs.ROUNDING_SETTINGS.items()}
REGISTERING = {"PYTORCH_CUDA_ALLOC_CONF": "pinned_use_cuda_host_register:True"}
PINNED = {
    "allocated": Job(allocator_jobs.pinned),
    # Registering touches all pages: a sixteenth of the sizes.
    "registered_by_torch": Job(lambda: allocator_jobs.pinned((4, 10, 16.4, 20)), environment=REGISTERING),
    "registered": Job(allocator_jobs.registered),
    "registered_late": Job(lambda: allocator_jobs.registered(late=True)),
}

CASES = {
    "optimizer_step_peak": each(training_jobs.OPTIMIZER_STEPS),
    "accumulation_without_synchronization": both_ways(sharded_jobs.ACCUMULATIONS, ["unsynchronized"], ranks=4),
    "root_that_never_reshards": both_ways(sharded_jobs.ROOTS, ["default", "resharded"], ranks=2),
    "rounding_settings": ROUNDING | {"set_by_the_program": Job(allocator_jobs.rounding_set_by_the_program)},
    "adapters_saved_storages": each(training_jobs.ADAPTERS),
    "evaluation_keeps_logits": each(training_jobs.EVALUATIONS),
    "averaged_copies": both_ways(sharded_jobs.AVERAGES, ["whole"], ranks=4),
    "two_devices": {"two_devices": Job(allocator_jobs.two_devices)},
    "stages_on_two_devices": {"stages_on_two_devices": Job(allocator_jobs.stages_on_two_devices)},
    "out_of_memory_holder": each(allocator_jobs.FAILURES, environment={"SIMGPU_MEMORY": str(6 << 30)}),
    "graph_pools": both_ways(allocator_jobs.GRAPHS, allocator_jobs.GRAPHS) | each(allocator_jobs.SIGNATURES),
    "pinned_host_memory": PINNED,
}


def with_facts(run):
    def run_and_write():
        run()
        witness.write()
    return run_and_write


def main():
    folder, case = pathlib.Path(sys.argv[1]), sys.argv[2]
    sys.exit(forks.run_all(folder, {name: (with_facts(job.run), job.ranks, job.environment) for name, job in CASES[case].items()}))


if __name__ == "__main__":
    main()
