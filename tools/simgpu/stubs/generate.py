#!/usr/bin/env python3
"""Writes what a stand-in library must export beyond its hand-written part: a C file of stubs and a version script.

A stub returns its library's "not supported" and names itself once on stderr, so that a program that needs more than
the simulated platform has says so. Which symbols need one is computed: the listed symbols less those that the given
objects define. So a new torch release, or a newly hand-written function, needs no edit here.

A symbol list is a text file, one symbol a line, with up to three fields:

    NAME                     an int function that returns --returns
    NAME VALUE               an int function that returns VALUE
    NAME string|pointer|void another return type: a fixed text, a null pointer, nothing
    NAME@NODE [...]          the same, in version node NODE instead of --node ("NAME@" for none)

Empty lines and what follows a '#' are skipped. Several lists may name a symbol; the first list wins.
"""
import argparse
import re
import subprocess
import sys

PROLOGUE = """// Written by tools/simgpu/stubs/generate.py at build time.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Called in any state of the program, so: no allocation, no lock, one write.
static void NameOnce(atomic_flag* said, const char* name) {
  if (atomic_flag_test_and_set_explicit(said, memory_order_relaxed)) return;
  char line[256];
  int n = snprintf(line, sizeof line, "simgpu: %s (%s) is not supported by the simulated platform\\n", name, LIBRARY);
  if (n > 0 && write(2, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0) return;
}
#define EXPORT __attribute__((visibility("default")))
#define SAY(name) static atomic_flag said = ATOMIC_FLAG_INIT; NameOnce(&said, name)
"""

# A name that ends so returns text; an integer in its place would be followed as a pointer by its caller.
TEXT_NAME = re.compile(r"(Get\w*String|GetErrorName|GetStatusName|GetLastErrorString|ErrorString)(_v\d+)?$")


def fail(message):
    sys.exit(f"generate.py: {message}")


def read_symbols(paths):
    """Returns {name: (node or None, return kind or None)} of all lists."""
    symbols = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                fields = line.split("#")[0].split()
                if not fields:
                    continue
                name, at, node = fields[0].partition("@")
                node = node.lstrip("@") if at else None
                if not re.fullmatch(r"[A-Za-z_]\w*", name) or len(fields) > 2:
                    fail(f"{path}:{number}: expected 'NAME[@NODE] [RETURN]', got {line.strip()!r}")
                symbols.setdefault(name, (node, fields[1] if len(fields) == 2 else None))
    return symbols


def defined_symbols(objects):
    if not objects:
        return set()
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", *objects],
                             check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listing.splitlines() if len(line.split()) >= 3 and line.split()[1] in "TWDBRVi"}


def stub(name, kind, default):
    text_function = kind == "string" or (kind is None and TEXT_NAME.search(name))
    if text_function:
        return f'EXPORT const char* {name}(void) {{ SAY("{name}"); return "not supported by the simulated platform"; }}'
    if kind == "pointer":
        return f'EXPORT void* {name}(void) {{ SAY("{name}"); return NULL; }}'
    if kind == "void":
        return f'EXPORT void {name}(void) {{ SAY("{name}"); }}'
    value = kind if kind is not None else default
    if not re.fullmatch(r"-?\d+", value):
        fail(f"{name}: return {value!r} is neither an integer nor string, pointer, void")
    return f'EXPORT int {name}(void) {{ SAY("{name}"); return {value}; }}'


def version_script(nodes):
    """`nodes`: {node or '': [symbols]}. An anonymous node cannot stand beside named ones."""
    if list(nodes) == [""]:
        return "{\n  global:\n" + "".join(f"    {name};\n" for name in sorted(nodes[""])) + "  local: *;\n};\n"
    if "" in nodes:
        fail(f"symbols without a version node beside versioned ones, such as {nodes[''][0]}: give them a node")
    parts = []
    for index, node in enumerate(sorted(nodes)):
        names = "".join(f"    {name};\n" for name in sorted(nodes[node]))
        parts.append(f"{node} {{\n  global:\n{names}" + ("  local: *;\n" if index == 0 else "") + "};\n")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="SONAME, for messages")
    parser.add_argument("--symbols", nargs="*", default=[], help="symbol lists")
    parser.add_argument("--defined", nargs="*", default=[], help="objects and archives of the hand-written part")
    parser.add_argument("--export-defined", default=r"(?!)", metavar="REGEX",
                        help="also export symbols of the hand-written part that match, listed or not")
    parser.add_argument("--node", default="", help="version node of symbols whose list names none")
    parser.add_argument("--returns", default="1", help="what a stub returns whose list says nothing")
    parser.add_argument("--c", required=True, help="C file to write")
    parser.add_argument("--map", required=True, help="version script to write")
    arguments = parser.parse_args()

    symbols = read_symbols(arguments.symbols)
    defined = defined_symbols(arguments.defined)
    export_defined = re.compile(arguments.export_defined)
    nodes = {}
    for name, (node, _) in symbols.items():
        nodes.setdefault(arguments.node if node is None else node, []).append(name)
    for name in sorted(defined - symbols.keys()):
        if export_defined.fullmatch(name):
            nodes.setdefault(arguments.node, []).append(name)
    if not nodes:
        fail(f"{arguments.library}: nothing to export")

    missing = sorted(symbols.keys() - defined)
    with open(arguments.c, "w", encoding="utf-8") as out:
        out.write(f'#define LIBRARY "{arguments.library}"\n' + PROLOGUE)
        for name in missing:
            out.write(stub(name, symbols[name][1], arguments.returns) + "\n")
        if not missing:
            out.write("typedef int NothingIsMissing;\n")
    with open(arguments.map, "w", encoding="utf-8") as out:
        out.write(version_script(nodes))


if __name__ == "__main__":
    main()
