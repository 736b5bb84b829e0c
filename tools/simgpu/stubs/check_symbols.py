#!/usr/bin/env python3
"""Checks that the stand-ins satisfy a PyTorch: every library of NVIDIA's that its files need is there under its SONAME,
and exports every symbol that they import, in the version node that they want it in. Lists what is missing."""
import argparse
import os
import subprocess
import sys
import tempfile

import torch_symbols


def exported(library):
    """Returns {(symbol, node or '')} of the library's default versions, and of its symbols without one."""
    listing = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library],
                             check=True, capture_output=True, text=True).stdout
    names = set()
    for line in listing.splitlines():
        name, _, node = line.split()[0].partition("@")
        names.add((name, node.lstrip("@")))
    return names


def missing_symbols(wanted, offered):
    names = {name for name, _ in offered}
    for line in wanted:
        name, at, node = line.strip().partition("@")
        # A reference without a version is satisfied by a symbol of any version.
        if (name, node) not in offered and not (node == "" and name in names):
            yield f"{name}{at}{node}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", required=True, help="site-packages/torch")
    parser.add_argument("--libraries", required=True, help="folder of the stand-ins")
    arguments = parser.parse_args()

    problems, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        torch_symbols.write(arguments.torch, folder)
        with open(os.path.join(folder, "sonames.txt"), encoding="utf-8") as lines:
            sonames = dict(line.split() for line in lines)
        for base, soname in sonames.items():
            library = os.path.join(arguments.libraries, soname)
            if not os.path.exists(library):
                problems.append(f"{soname}: not in {arguments.libraries}")
                continue
            offered = exported(library)
            symbols = os.path.join(folder, f"{base}.txt")
            if os.path.exists(symbols):
                with open(symbols, encoding="utf-8") as wanted:
                    lines = wanted.readlines()
                checked += len(lines)
                problems += [f"{soname}: {symbol} is not exported" for symbol in missing_symbols(lines, offered)]
    if checked == 0:
        problems.append(f"{arguments.torch}: imports nothing from NVIDIA's libraries; expected a CUDA build of PyTorch")
    print("\n".join(problems) or f"{checked} symbols of {len(sonames)} libraries")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
