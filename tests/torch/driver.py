"""What the drivers of the tests torch.* share: their command line, where they cannot run, and checks that go on.

    run_....py --build DIR --scratch DIR NAME       status 0: every check holds; 1: one does not; 77: it cannot run here
    run_....py --list
"""

import argparse
import pathlib
import sys

from job import Failure

SKIPPED = 77


class Checks:
    """Checks that are made one after the other, even if an earlier one failed. `quiet`: only failures are printed."""

    def __init__(self, quiet=False):
        self.quiet = quiet
        self.failed = 0

    def check(self, what, function, *arguments):
        """Returns what the check returns; None where it failed."""
        try:
            result = function(*arguments)
        except Failure as failure:
            self.failed += 1
            print(f"FAILED  {what}: {failure}", flush=True)
            return None
        if not self.quiet:
            print(f"ok      {what}", flush=True)
        return result

    def status(self):
        return 1 if self.failed else 0


def reason_to_skip(build, adapter):
    """Why tests cannot run with this build; None: they can. `adapter`: they need the op adapter, too."""
    if not (build / "venv/complete").exists():
        return f"no PyTorch in {build}/venv; scripts/build puts it there"
    if adapter and not list((build / "lib/adapter").glob("*/libledger_torch.so")):
        return f"no op adapter in {build}/lib/adapter; 'gpuledger adapter build' makes it"
    return None


def arguments_of(description, names, adapter=False, unlisted=()):
    """The command line: `build`, `scratch`, `name`. Ends the program where it asks for the list, and where tests cannot run.

    `unlisted`: further names, of what is no test.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("name", nargs="?", choices=[*names, *unlisted])
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(names))
        sys.exit(0)
    if not (arguments.name and arguments.build and arguments.scratch):
        parser.error("--build, --scratch and a name are needed")
    if reason := reason_to_skip(arguments.build, adapter):
        print(f"SKIPPED: {reason}")
        sys.exit(SKIPPED)
    return arguments
