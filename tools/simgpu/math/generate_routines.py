#!/usr/bin/env python3
"""Writes C++ definitions of a library's compute routines, with their prototypes as the toolkit's headers declare them.

A routine is a function whose first parameter is the library's handle. Each definition hands its handle and its name to
--run, which launches a kernel. Which routines get one: those whose name matches --routines, and those of the symbol
lists (what an installed program imports), less those that match --except.
"""
import argparse
import os
import re
import subprocess


def declarations(header, include):
    """Yields (return type, name, parameters) of every function that the header declares."""
    source = subprocess.run(["cc", "-E", "-P", "-I", include, os.path.join(include, header)],
                            check=True, capture_output=True, text=True).stdout
    for result, name, parameters in re.findall(r"([\w*\s]+?[\s*])(\w+)\s*\(([^(){};]*)\)\s*;", source):
        yield " ".join(result.replace("extern", " ").split()), name, " ".join(parameters.split())


def listed(paths):
    names = set()
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            names.update(re.split(r"[@\s]", line, maxsplit=1)[0] for line in lines if line.strip())
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True, help="folder of the toolkit's headers")
    parser.add_argument("--header", required=True)
    parser.add_argument("--status", required=True, help="the library's result type")
    parser.add_argument("--handle", required=True, help="type of the first parameter")
    parser.add_argument("--run", required=True, help="function (handle, name) that a definition calls")
    parser.add_argument("--routines", required=True, metavar="REGEX", help="names that always get a definition")
    parser.add_argument("--except", required=True, metavar="REGEX", dest="excluded", help="names that never do")
    parser.add_argument("--symbols", nargs="*", default=[], help="symbol lists")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()

    wanted, excluded = re.compile(arguments.routines), re.compile(arguments.excluded)
    imported = listed(arguments.symbols)
    written = set()
    with open(arguments.out, "w", encoding="utf-8") as out:
        for result, name, parameters in declarations(arguments.header, arguments.include):
            first = re.match(rf"{arguments.handle}\s+(\w+)", parameters)
            if not first or result.split()[-1] != arguments.status or name in written or excluded.search(name):
                continue
            if wanted.search(name) or name in imported:
                written.add(name)
                out.write(f'{arguments.status} {name}({parameters}) {{ '
                          f'return {arguments.run}({first.group(1)}, "{name}"); }}\n')


if __name__ == "__main__":
    main()
