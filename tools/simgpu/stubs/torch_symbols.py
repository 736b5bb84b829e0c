#!/usr/bin/env python3
"""Writes what an installed PyTorch imports from each of NVIDIA's libraries: symbol lists for generate.py.

    torch_symbols.py --torch site-packages/torch --out FOLDER

FOLDER/<base>.txt holds the symbols of one library, such as libcudart.txt, each with the version node it is wanted
under ("NAME@NODE", "NAME@" for none, "NAME" for any). FOLDER/sonames.txt has one line "<base> <SONAME>" for each of them, and one for
every other library of NVIDIA's that torch's files need. FOLDER/versions.txt has a line "<package> <version>", such as
"cudnn 9.26.0", for each pinned dependency that the wheel's metadata name. All is read from the files themselves (DT_NEEDED, version
needs, undefined symbols), so another release of torch or another major version of CUDA needs no edit.
"""
import argparse
import glob
import os
import pathlib
import re
import subprocess
import sys

# Libraries whose symbols carry no version: the importing file doesn't say where a symbol comes from, its name does.
UNVERSIONED = [
    ("libcufile", re.compile(r"cuFile[A-Z]\w*")),
    ("libcusparseLt", re.compile(r"cusparseLt[A-Z]\w*")),
    ("libnccl", re.compile(r"p?nccl[A-Z]\w*")),
    ("libnvidia-ml", re.compile(r"nvml[A-Z]\w*")),
    ("libnvshmem_host", re.compile(r"nvshmemx?_\w+")),
    ("libcuda", re.compile(r"cu[A-Z]\w*")),
]
NVIDIA = re.compile(r"(libcu\w+|libnv[\w-]+|libnccl\w*)\.so\.[\d.]+")


# "nvidia-cudnn-cu13==9.26.0.51", "nvidia-cuda-runtime-cu12==12.8.90", "cuda-toolkit[...]==13.2.2"
PINNED = re.compile(r"^Requires-Dist: (?:nvidia-|cuda-)(?:cuda-)?([a-z]+)(?:-cu\d+)?(?:\[[^\]]*\])?\s*\(?==([\d.]+)", re.M)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def base_name(soname):
    return soname.split(".so", 1)[0]


def dynamic_section(path):
    """Returns (needed SONAMEs, {version node: the SONAME that it is expected in})."""
    needed, nodes, library = [], {}, None
    for line in run("readelf", "--wide", "--dynamic", "--version-info", path).splitlines():
        if match := re.search(r"\(NEEDED\).*\[(.+)\]", line):
            needed.append(match.group(1))
        elif match := re.search(r"File: (\S+)", line):
            library = match.group(1)
        elif library and (match := re.search(r"Name: (\S+)\s+Flags:", line)):
            nodes[match.group(1)] = library
    return needed, nodes


def undefined_symbols(path):
    for line in run("nm", "--dynamic", "--undefined-only", "--format=posix", path).splitlines():
        name, at, node = line.split()[0].partition("@")
        yield name, node.lstrip("@") if at else ""


def owner(name, node, nodes):
    """Base name of the library of NVIDIA's that the symbol comes from, or None."""
    if node:
        soname = nodes.get(node, "")
        return base_name(soname) if NVIDIA.fullmatch(soname) else None
    return next((base for base, pattern in UNVERSIONED if pattern.fullmatch(name)), None)


def pinned_versions(torch):
    versions = {}
    for metadata in glob.glob(os.path.join(os.path.dirname(torch.rstrip("/")), "torch-*.dist-info", "METADATA")):
        with open(metadata, encoding="utf-8") as file:
            versions.update(PINNED.findall(file.read()))
    return versions


def write(torch, folder):
    """Writes the lists described above for the PyTorch in `torch` into `folder`."""
    files = sorted(glob.glob(os.path.join(torch, "lib", "*.so")) + glob.glob(os.path.join(torch, "_C*.so")))
    if not files:
        sys.exit(f"torch_symbols.py: {torch}: no lib/*.so; expected an installed PyTorch (site-packages/torch)")

    sonames, symbols = {}, {}
    for path in files:
        needed, nodes = dynamic_section(path)
        sonames.update({base_name(soname): soname for soname in needed if NVIDIA.fullmatch(soname)})
        for name, node in undefined_symbols(path):
            if base := owner(name, node, nodes):
                symbols.setdefault(base, set()).add((name, node))

    lists = {
        "sonames.txt": [f"{base} {soname}" for base, soname in sorted(sonames.items())],
        "versions.txt": [f"{package} {version}" for package, version in sorted(pinned_versions(torch).items())],
    }
    for base, wanted in symbols.items():
        # Where a library has nodes, a reference without one is satisfied by any node: the library's usual one.
        has_nodes = any(node for _, node in wanted)
        lists[f"{base}.txt"] = [name if has_nodes and not node else f"{name}@{node}" for name, node in sorted(wanted)]
    replace_files(pathlib.Path(folder), {name: "".join(f"{line}\n" for line in lines) for name, lines in lists.items()})


def replace_files(folder, contents):
    """Makes these all the files of the folder. What is the same already is left alone: nothing has to be built anew then."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in contents:
            path.unlink()
    for name, text in contents.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="site-packages/torch")
    parser.add_argument("--out", required=True, help="folder to write into")
    arguments = parser.parse_args()
    write(arguments.torch, arguments.out)


if __name__ == "__main__":
    main()
