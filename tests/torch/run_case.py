"""The driver behind the tests torch.*: runs jobs on the simulated GPU platform and compares the ledger with torch.

    run_case.py --build DIR --scratch DIR NAME       status 0: every check holds; 1: one does not; 77: it cannot run here
    run_case.py --list
"""

import json
import pathlib
import re
import sys
import time

import checks
from driver import Checks, arguments_of
from job import Job
from memory_watch import MemoryWatch

PROJECT = pathlib.Path(__file__).resolve().parents[2]
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
HISTORY = {"TRUTH_HISTORY": "1"}


class Case(Checks):
    """One test, in a folder of its own."""

    def __init__(self, build, scratch, name):
        super().__init__()
        self.build = build
        self.folder = scratch / name


def against_torch(case, arguments, ranks=0, environment=None, ordered=True):
    """The whole proof for one job: torch's counters and snapshots equal the ledger's, event by event, and the job is the
    same without the recorder. `ordered`: two runs of the job allocate in the same order."""
    job = Job(case.build, arguments, ranks, HISTORY | (environment or {}))
    folder = case.folder / "recorded"
    recorded = case.check("the job runs under the recorder", job.run, folder)
    if recorded is None:
        return
    case.check("it ends well", checks.ended_well, recorded)
    ledgers = case.check("one ledger per rank, none of the launcher", checks.one_file_per_rank, folder, "*.ledger", ranks)
    case.check("torch's numbers were written", checks.truths, folder, ranks)
    case.check("gpuledger verify: 0 bytes of difference", checks.verified, case.build, folder)
    history = case.check("torch's history was written", checks.histories, folder, ranks)
    if ledgers and history:
        case.check("every block event is torch's, in its order", checks.same_events, case.build, ledgers, history)

    plain_folder = case.folder / "plain"
    plain = case.check("the job runs without the recorder", job.run, plain_folder, False)
    if plain is None:
        return
    case.check("status and output are the same", checks.same_behaviour, recorded, plain)
    if ordered and history:
        case.check("the same allocations in the same order", lambda: checks.same_allocations(history, checks.histories(plain_folder, ranks)))


def single(name, environment=None, **options):
    return lambda case: against_torch(case, ["cases.py", name], environment=environment, **options)


def decoder(*arguments, ranks=0, environment=None):
    return lambda case: against_torch(case, ["decoder.py", *arguments], ranks, environment)


def without_blocks(environment):
    """The driver layer alone: tensors are driver allocations, or those of a stream-ordered pool."""
    def run(case):
        job = Job(case.build, ["cases.py", "unmanaged"], environment=environment)
        outcome = case.check("the job runs under the recorder", job.run, case.folder / "recorded")
        if outcome is None:
            return
        case.check("it ends well", checks.ended_well, outcome)
        ledgers = case.check("one ledger", checks.one_file_per_rank, case.folder / "recorded", "*.ledger", 1)
        case.check("gpuledger verify", checks.verified, case.build, case.folder / "recorded")
        if ledgers:
            tensors = json.loads(ledgers[0].with_suffix(".tensors.json").read_text())
            case.check("every tensor is an allocation, and every allocation a tensor", checks.tensors_are_allocations, case.build, ledgers[0], tensors)
        plain = case.check("the job runs without the recorder", job.run, case.folder / "plain", False)
        if plain:
            case.check("status and output are the same", checks.same_behaviour, outcome, plain)
    return run


def llama3_8b(case):
    """A published figure, 82.4 GiB of reserved memory, within 0.5 %, by torch and by the ledger alike."""
    job = Job(case.build, ["llama3_8b.py"], environment={"SIMGPU_PROFILE": "h100-96gb"})
    folder = case.folder / "recorded"
    outcome = case.check("the job runs under the recorder", job.run, folder)
    if outcome is None:
        return
    case.check("it ends well", checks.ended_well, outcome)
    print(outcome.stdout.strip())
    case.check("gpuledger verify: 0 bytes of difference", checks.verified, case.build, folder)

    def published(by, reserved):
        checks.require(abs(reserved / 2**30 - 82.4) <= 0.005 * 82.4, f"{by}: peak of {reserved / 2**30:.2f} GiB reserved, expected 82.4 within 0.5 %")

    truth = case.check("torch's numbers were written", checks.truths, folder, 1)
    if truth:
        case.check("torch's peak is the published one", published, "torch", max(w["max_reserved"] for w in truth[0]["windows"]))
    report = case.check("gpuledger report", checks.report, case.build, folder)
    if report:
        case.check("the ledger's peak is the published one", published, "ledger", report["ranks"][0]["peaks"]["reserved"]["bytes"])


def demo(case):
    """The demonstration's job, as large as it is: eight ranks of a decoder of a billion parameters in 8 GB. The time is
    printed: it is to stay below 90 s on two idle cores; the limit here only ends a job that hangs."""
    folder = case.folder / "recorded"
    job = Job(case.build, [PROJECT / "scripts/demo_train.py"], ranks=8)
    watch = MemoryWatch()
    start = time.monotonic()
    outcome = case.check("the job runs under the recorder", job.run, folder, True, watch.start)
    most_bytes = watch.stop()
    print(f"{time.monotonic() - start:.0f} s, at most {most_bytes / 1e9:.1f} GB")
    if outcome is None:
        return
    case.check("it ends well", checks.ended_well, outcome)
    case.check("within 8 GB", lambda: checks.require(0 < most_bytes < 8e9, f"{most_bytes} bytes"))
    case.check("one ledger per rank, none of the launcher", checks.one_file_per_rank, folder, "*.ledger", 8)
    case.check("gpuledger verify", checks.verified, case.build, folder)
    report = case.check("gpuledger report", checks.report, case.build, folder)
    if report:
        for rank in report["ranks"]:
            phase = rank["peaks"]["allocated"]["phase"]
            case.check(f"rank {rank['rank']}: the peak is in a step", lambda p=phase: checks.require("step" in p, f"phase: {p!r}"))


def killed(case):
    """SIGKILL at a random instant, 50 times: each ledger lacks at most the record that each of its threads was writing."""
    count = 50
    outcome = case.check("the jobs run under the recorder", Job(case.build, ["killed_children.py", count]).run, case.folder)
    if outcome is None:
        return
    case.check("they end as they are meant to", checks.ended_well, outcome)
    children = [json.loads(line) for line in outcome.stdout.splitlines()]
    case.check("all were killed", lambda: checks.require(len(children) == count, f"{len(children)} of {count} jobs"))
    ledgers = {int(file.name.split(".pid")[1].split(".")[0]): file for file in case.folder.glob("*.ledger")}
    case.check("one ledger each, none of their parent", lambda: checks.require(ledgers.keys() == {child["pid"] for child in children}, f"{sorted(ledgers)}"))
    for child in children:
        case.check(f"the job that was killed after step {child['last_step']}", checks.lacks_nothing_but_the_last_record, case.build,
                   ledgers.get(child["pid"]), child["last_step"])


def long(case):
    """Two million events: bounded memory, the job's own exit status, and an end that is no more work than after a few."""
    def faults_to_stop(name):
        """The pages that the end of the process is the first to touch: those of the whole ledger, if it went through it."""
        outcome = Job(case.build, ["cases.py", name]).run(case.folder / name)
        ended = time.monotonic_ns()
        checks.ended_well(outcome, status=7)
        checks.require("memory grew by less than 8 MiB: True" in outcome.stdout, outcome.stdout)
        stopped, faults = map(int, re.search(r"stopped at (\d+) after (\d+) page faults", outcome.stderr).groups())
        print(f"{name}: {(ended - stopped) / 1e9:.2f} s and {outcome.page_faults - faults} page faults to stop")
        return outcome.page_faults - faults

    after_many = case.check("two million events: status kept, memory bounded", faults_to_stop, "long")
    after_few = case.check("twenty thousand events: the same", faults_to_stop, "short")
    if after_many is not None and after_few is not None:
        # A ledger of two million records has 31,250 pages; one fault makes at most 16 of them visible.
        case.check("its end does not go through the ledger", lambda: checks.require(after_many < after_few + 1000, f"{after_many} page faults after many events, {after_few} after few"))
    ledgers = case.check("one ledger", checks.one_file_per_rank, case.folder / "long", "*.ledger", 1)
    if ledgers:
        case.check("its end writes a handful of records", checks.few_records_after, case.build, ledgers[0], "last", 64)
    case.check("gpuledger verify", checks.verified, case.build, case.folder / "long")
    report = case.check("gpuledger report", checks.report, case.build, case.folder / "long")
    if report:
        rss = report["ranks"][0]["host_memory"]["recorder_peak_rss"]
        print(f"the recorder's own memory: {rss} bytes")
        case.check("an eighth of the ledger at most was in memory", lambda: checks.require(0 < rss < 16 << 20, f"{rss} bytes"))


def value_reads(case):
    """The head of the report says how many values were read back, and where in the program."""
    job = Job(case.build, ["cases.py", "value_reads"])
    outcome = case.check("the job runs under the recorder", job.run, case.folder / "recorded")
    if outcome is None:
        return
    case.check("it ends well", checks.ended_well, outcome)
    marked = [(number, re.search(r"# read back: (\d+)$", line)) for number, line in enumerate(job.script().read_text().splitlines(), 1)]
    expected = {f"cases.py:{number} value_reads": int(mark[1]) for number, mark in marked if mark}
    report = case.check("gpuledger report", checks.report, case.build, case.folder / "recorded")
    if report:
        found = {place["place"].rpartition("/")[2]: place["count"] for place in report["ranks"][0]["values_read_back"]["places"]}
        case.check("each place, with its count", lambda: checks.require(found == expected, f"expected {expected}, found {found}"))
        case.check("and their sum", lambda: checks.require(report["summary"]["values_read_back"] == 4, f"{report['summary']['values_read_back']}, expected 4"))


def workspaces(case):
    """What torch lends cuBLAS and cuBLASLt is named, block by block, and nothing else is called a workspace."""
    job = Job(case.build, ["cases.py", "workspaces"])
    outcome = case.check("the job runs under the recorder", job.run, case.folder / "recorded")
    if outcome is None:
        return
    case.check("it ends well", checks.ended_well, outcome)
    ledgers = case.check("one ledger", checks.one_file_per_rank, case.folder / "recorded", "*.ledger", 1)
    if ledgers:
        case.check("every workspace is named, and nothing else", checks.workspaces_are_named, case.build, ledgers[0])


def compiled(case):
    """torch.compile with empty caches: its compilers and worker processes inherit the preload, and leave no file."""
    caches = {"TRITON_CACHE_DIR": str(case.folder / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(case.folder / "inductor")}
    job = Job(case.build, ["cases.py", "compiled"], environment=caches)
    outcome = case.check("the job runs under the recorder", job.run, case.folder / "recorded")
    if outcome is None:
        return
    case.check("it ends well", checks.ended_well, outcome)
    case.check("one ledger: no worker and no compiler has one", checks.one_file_per_rank, case.folder / "recorded", "*.ledger", 1)
    plain = Job(case.build, ["cases.py", "compiled"], environment={name: f"{path}-plain" for name, path in caches.items()})
    unrecorded = case.check("the job runs without the recorder", plain.run, case.folder / "plain", False)
    if unrecorded:
        case.check("status and output are the same", checks.same_behaviour, outcome, unrecorded)
        case.check("so are its messages", lambda: checks.require(outcome.stderr == unrecorded.stderr, f"with the recorder:\n{outcome.stderr}\nwithout it:\n{unrecorded.stderr}"))
    case.check("gpuledger verify: 0 bytes of difference", checks.verified, case.build, case.folder / "recorded")


CASES = {
    "mlp": single("mlp"),
    "empty_cache": single("empty_cache"),
    "empty_cache_expandable": single("empty_cache", EXPANDABLE),
    "streams": single("streams", {"SIMGPU_EVENT_LAG": "0"}),
    "streams_event_lag": single("streams", {"SIMGPU_EVENT_LAG": "7"}),
    "out_of_memory": single("out_of_memory", {"SIMGPU_PROFILE": "tiny"}),
    "threads": single("threads", ordered=False),
    "graph": single("graph"),
    "two_devices": single("two_devices", {"SIMGPU_DEVICES": "2"}),
    "async_pool": without_blocks({"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    "no_caching": without_blocks({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    "decoder": decoder(),
    "decoder_expandable": decoder(environment=EXPANDABLE),
    "decoder_checkpointing": decoder("--checkpointing"),
    "ddp": decoder("--strategy", "ddp", ranks=2),
    "fsdp2": decoder("--strategy", "fsdp2", ranks=8),
    "fsdp2_checkpointing": decoder("--strategy", "fsdp2", "--checkpointing", ranks=8),
    "llama3_8b": llama3_8b,
    "demo": demo,
    "killed": killed,
    "long": long,
    "value_reads": value_reads,
    "workspaces": workspaces,
    "compiled": compiled,
}


def main():
    arguments = arguments_of(__doc__, CASES)
    case = Case(arguments.build, arguments.scratch, arguments.name)
    CASES[arguments.name](case)
    return case.status()


if __name__ == "__main__":
    sys.exit(main())
