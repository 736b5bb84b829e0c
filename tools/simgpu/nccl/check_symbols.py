#!/usr/bin/env python3
"""Checks what libnccl.so.2 exports and needs: pairs of weak ncclX and strong pncclX without versions, all of nccl.h,
calls between exported functions that can be interposed, and no library of CUDA's among the needed ones."""
import re
import subprocess
import sys

library, header = sys.argv[1:]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


declared = set(re.findall(r"^\s*(?:ncclResult_t|const char\*|void)\s+(p?nccl\w+)\(", open(header).read(), re.M))
assert len(declared) > 80, f"only {len(declared)} functions found in {header}"
kinds = {}
for line in run("nm", "--dynamic", "--defined-only", library).splitlines():
    _, kind, name = line.split()
    kinds[name] = kind
wrong = [f"{name}: expected {'T' if name[0] == 'p' else 'W'}, got {kinds.get(name, 'nothing')}"
         for name in sorted(declared) if kinds.get(name) != ("T" if name[0] == "p" else "W")]
wrong += [f"{name}: not one of NCCL's" for name in kinds if not re.fullmatch(r"p?nccl[A-Z]\w*(@\w+)?", name)]
wrong += [f"{name}: versioned" for name in kinds if "@" in name]
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--wide", "--dynamic", library))
wrong += [f"needs {name}" for name in needed if not re.match(r"lib(c|m|dl|pthread|rt)\.so|ld-linux", name)]
if not re.search(r"JUMP_SLOT?.*\bncclBroadcast\b", run("readelf", "--wide", "--relocs", library)):
    wrong.append("ncclBcast doesn't call ncclBroadcast through its exported name")
if wrong:
    sys.exit("\n".join([f"{library}:", *wrong]))
