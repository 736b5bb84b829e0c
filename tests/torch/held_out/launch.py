"""Runs programs, one after the other, each in forks of this process: `python launch.py FOLDER [NAME...]`; all without a name. The
name of a module stands for all that are in it.

Ledgers and truth of a program go to FOLDER/NAME. Prints a line for each program that fails; the status is their number.
"""

import contextlib
import functools
import os
import pathlib
import sys

import autograd_programs
import data_parallel
import loop_programs
import memory_programs
import model_parallel
import module_programs
import optimizer_programs
import programs

import forks

MODULES = (programs, autograd_programs, optimizer_programs, memory_programs, module_programs, loop_programs, data_parallel, model_parallel)
PROGRAMS = {name: function for module in MODULES for name, function in module.PROGRAMS.items()}
OF_MODULE = {module.__name__: list(module.PROGRAMS) for module in MODULES}
RANKS = programs.RANKS | data_parallel.RANKS | model_parallel.RANKS
DEVICES = RANKS | programs.DEVICES


def run(program):
    """Libraries take these variables for those of a launcher, where there is none."""
    if os.environ["WORLD_SIZE"] == "1":
        for variable in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            del os.environ[variable]
    program()


def main():
    with contextlib.suppress(ImportError):  # once for all of them
        import diffusers.training_utils, lightning, peft, timm, torchvision, transformers  # noqa: E401, F401
    folder, given = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(OF_MODULE)
    names = [name for part in given for name in OF_MODULE.get(part, [part])]
    failed = 0
    for name in names:
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(DEVICES.get(name, 1))))}  # libraries take all that they see
        statuses = forks.run(folder / name, functools.partial(run, PROGRAMS[name]), RANKS.get(name, 1), visible)
        if any(status != 0 for status in statuses):
            failed += 1
            print(f"{name}: ended with status {statuses}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
