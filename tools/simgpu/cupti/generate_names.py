#!/usr/bin/env python3
"""Writes the enumerators of a header of CUPTI as lines {value, "name"}, in ascending order of the values."""
import argparse
import re


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", required=True)
    parser.add_argument("--prefix", required=True, help="what the enumerators start with")
    parser.add_argument("--strip", default="", help="what to leave out of the names, at their start")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with open(arguments.header, encoding="utf-8", errors="replace") as header:
        found = re.findall(rf"\b({arguments.prefix}\w*)\s*=\s*(0[xX][0-9a-fA-F]+|\d+)", header.read())
    # The first name of a value counts: later ones are limits such as _SIZE and _FORCE_INT.
    names = {}
    for name, value in found:
        names.setdefault(int(value, 0), name.removeprefix(arguments.strip))
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.writelines(f'{{{value}, "{names[value]}"}},\n' for value in sorted(names))


if __name__ == "__main__":
    main()
