#!/usr/bin/env python3
"""Prints the names of the functions that C headers declare, one a line: a symbol list for generate.py.

    header_symbols.py --prefix cu --include DIR [--define MACRO]... HEADER...

Each header is run through the C preprocessor once per --define set (and once without any), since some headers declare
the older versions of an entry point, or its per-thread-stream twin, only under a macro. --raw reads a header's text
as it is, for headers whose own dependencies (OpenGL, EGL) need not be installed.
"""
import argparse
import os
import re
import subprocess

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def names(text, prefix):
    # A declaration: the name, its parameters, then ';' — not a typedef of a function pointer, not a call.
    return set(re.findall(rf"(?<![\w(*])({prefix}\w*)\s*\([^;{{}}]*\)\s*;", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, help="regular expression that function names start with")
    parser.add_argument("--include", required=True, help="folder of the headers")
    parser.add_argument("--define", action="append", default=[], help="preprocess once more with this macro defined")
    parser.add_argument("--raw", action="append", default=[], help="header to read without preprocessing")
    parser.add_argument("--out", required=True)
    parser.add_argument("headers", nargs="*")
    arguments = parser.parse_args()

    found = set()
    for header in arguments.headers:
        path = os.path.join(arguments.include, header)
        for define in [None, *arguments.define]:
            command = ["cc", "-E", "-P", "-I", arguments.include, *([f"-D{define}"] if define else []), path]
            found |= names(subprocess.run(command, check=True, capture_output=True, text=True).stdout, arguments.prefix)
    for header in arguments.raw:
        path = os.path.join(arguments.include, header)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found |= names(COMMENT.sub(" ", file.read()), arguments.prefix)
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.writelines(f"{name}\n" for name in sorted(found))


if __name__ == "__main__":
    main()
