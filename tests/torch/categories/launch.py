"""Runs workloads, one after the other, each in forks of this process: `python launch.py FOLDER NAME...`.

Ledgers and truth of a workload go to FOLDER/NAME. Prints a line for each workload that fails; the status is their number.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import forks  # noqa: E402
import sharded_workloads  # noqa: E402
import workloads  # noqa: E402


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    all_workloads = workloads.WORKLOADS | sharded_workloads.WORKLOADS
    sys.exit(forks.run_all(folder, {name: (all_workloads[name], sharded_workloads.RANKS.get(name, 1)) for name in names}))


if __name__ == "__main__":
    main()
