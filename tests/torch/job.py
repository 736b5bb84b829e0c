"""Runs a job on the simulated GPU platform, with the recorder and without it."""

import contextlib
import dataclasses
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

TESTS = pathlib.Path(__file__).resolve().parent


class Failure(Exception):
    """A test's expectation that does not hold."""


@dataclasses.dataclass
class Outcome:
    status: int
    stdout: str
    stderr: str
    page_faults: int  # of the job's processes, those that touched the disk left out


def page_faults_of_children():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def descendants(pid):
    """Of a process: its children, theirs, and so on."""
    parents = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone meanwhile
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def end(process):
    """Ends a job that takes too long. Its interpreters say where they stand (faulthandler). torch's launcher has put its ranks
    into sessions of their own, and ends with them."""
    for pid in descendants(process.pid) or {process.pid}:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGABRT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=60)
    process.terminate()
    try:
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


@dataclasses.dataclass
class Job:
    """What to run: a script of this folder with its arguments, on so many ranks (0: plain python, no launcher)."""

    build: pathlib.Path
    arguments: list
    ranks: int = 0
    environment: dict = dataclasses.field(default_factory=dict)
    limit_s: int = 480  # ends a job that hangs; ten times what one takes beside others on two cores

    def script(self):
        return TESTS / self.arguments[0]

    def command(self):
        python = self.build / "venv/bin/python"
        launcher = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self.ranks)] if self.ranks else [python]
        return [str(part) for part in (*launcher, self.script(), *self.arguments[1:])]

    def settings(self, folder, recorded):
        """The environment, from nothing that the caller's shell may have set for CUDA, torch or the ledger."""
        ours = re.compile(r"(LEDGER|SIMGPU|PYTORCH|TORCH|CUDA|NCCL|NVTX|TRUTH)_|LD_PRELOAD$|LD_LIBRARY_PATH$")
        environment = {key: value for key, value in os.environ.items() if not ours.match(key)}
        simulated = self.build / "lib/simgpu"
        environment |= {
            "LD_LIBRARY_PATH": str(simulated),
            "TRITON_LIBCUDA_PATH": str(simulated),
            "SIMGPU_DEVICES": str(max(self.ranks, 1)),
            "OMP_NUM_THREADS": "1",
            "PYTHONFAULTHANDLER": "1",
            "LEDGER_DIR": str(folder),
        }
        if recorded:
            environment["LD_PRELOAD"] = str(self.build / "lib/libledger.so")
        return environment | self.environment

    def start(self, folder, recorded=True, **options):
        """Starts the job; what it writes (ledgers, truth) goes to `folder`, which is emptied first."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return subprocess.Popen(self.command(), env=self.settings(folder, recorded), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **options)

    def run(self, folder, recorded=True, started=None):
        """Runs the job to its end; `started` is called with its process."""
        faults = page_faults_of_children()
        process = self.start(folder, recorded)
        if started is not None:
            started(process)
        try:
            stdout, stderr = process.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            stdout, stderr = end(process)
            raise Failure(f"still running after {self.limit_s} s: {' '.join(self.command())}\n{stdout[-2000:]}\n{stderr[-16000:]}") from None
        return Outcome(process.returncode, stdout, stderr, page_faults_of_children() - faults)
