"""Holds the table of entry points to the toolkit's headers: entry_points_test.py INTERPOSE_DIR CUDA_INCLUDE_DIR.

Every function of cuda.h and cuda_runtime_api.h that can get, give back, map or import memory, and every one of cuBLAS that
is lent memory to work in, is in entry_points.inc, or in ignored_entry_points.txt with a reason. Every symbol of the table
exists in the headers, and appears there from the CUDA version that the table says.
"""

import pathlib
import re
import subprocess
import sys

# Names that have to do with memory's coming and going: generous, as the second list takes what is meant otherwise.
MEMORY = re.compile(
    r"^(cu|cuda)(Mem(Alloc|Free|Host|Create|Release|Map|Unmap|Address|Retain|Import|Export|Pool|SetMemPool|SetAccess)"
    r"|Malloc|Free|Host(Alloc|Register|Unregister)|Ipc\w*Mem|Array(3D)?(Create|Destroy)|Mipmapped\w*(Create|Destroy)"
    r"|MallocMipmapped|\w*External(Memory|Mem)|DevicePrimaryCtx(Retain|Release|Reset)|Ctx(Create|Destroy|Detach|SetLimit)"
    r"|GreenCtx(Create|Destroy)|Module(Load|Unload)|Library(Load|Unload)|Multicast|Device(Reset|SetLimit|SetMemPool|GraphMem)"
    r"|DeviceSetGraphMem|InitDevice|SetDevice$|Graph\w*(MemAlloc|MemFree|Instantiate|Upload|ExecDestroy|Launch)|GetProcAddress"
    r"|GetDriverEntryPoint|Stream(Begin|End)Capture|Checkpoint\w*(Checkpoint|Restore)|GraphicsMapResources|GL\w*Map)")
SUFFIXES = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")
STREAM_KIND = re.compile(r"(_ptsz|_ptds)$")


def declarations(include):
    """The headers, preprocessed: functions under their real names, `_ptsz` variants and old versions included."""
    source = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cuda_runtime_api.h>\n" \
             "#include <cublas_v2.h>\n#include <cublasLt.h>\n"
    return subprocess.run(["cc", "-E", "-P", "-x", "c++", "-I", include, "-"], input=source, capture_output=True, text=True,
                          check=True).stdout


def declared(text):
    """All functions."""
    return set(re.findall(r"\b(?:CUresult|cudaError_t|cublasStatus_t)\s+(cu\w+)\s*\(", text))


def lent_memory(text):
    """The functions of cuBLAS with a parameter for a workspace."""
    functions = re.findall(r"\bcublasStatus_t\s+(cublas\w+)\s*\(([^;{]*)\)\s*;", text)
    return {name for name, parameters in functions if re.search(r"\bvoid\s*\*\s*workspace\b", parameters)}


def introduced(include):
    """{(name, version)} for which cudaTypedefs.h has a type: when a driver function became what it is."""
    text = (pathlib.Path(include) / "cudaTypedefs.h").read_text()
    return {(name, int(version)) for name, version in re.findall(r"PFN_(cu\w+?)_v(\d+)(?:_ptsz|_ptds)?\)", text)}


def table(interpose):
    text = (pathlib.Path(interpose) / "hooks/entry_points.inc").read_text()
    driver = re.findall(r'^LEDGER_DRIVER\((\w+), "(\w+)", (\d+),', text, re.MULTILINE)
    others = re.findall(r"^LEDGER_(?:RUNTIME|CUBLAS)\((\w+),", text, re.MULTILINE)
    return [(symbol, name, int(since)) for symbol, name, since in driver], others


def ignored(interpose):
    """{name: reason} of `name: reason` lines."""
    entries = {}
    for number, line in enumerate((pathlib.Path(interpose) / "hooks/ignored_entry_points.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(": ")
        if not reason.strip():
            sys.exit(f"ignored_entry_points.txt:{number}: {line!r} gives no reason")
        entries[name] = reason
    return entries


def problems(interpose, include):
    text = declarations(include)
    functions, lent = declared(text), lent_memory(text)
    driver, others = table(interpose)
    hooked = {symbol for symbol, _, _ in driver} | set(others)
    reasons = ignored(interpose)
    if len(functions) < 800:
        yield f"only {len(functions)} functions found in the headers: the search for declarations is broken"
    if len(lent) < 2:
        yield f"only {sorted(lent)} found to take a workspace: the search for parameters is broken"
    for function in sorted(functions):
        bare = STREAM_KIND.sub("", function)
        if (MEMORY.match(function) or function in lent) and function not in hooked and function not in reasons and bare not in reasons:
            yield f"{function} is neither in entry_points.inc nor, with a reason, in ignored_entry_points.txt"
    for symbol in sorted(hooked - functions):
        yield f"{symbol} is hooked, but the headers do not have it"
    for name in sorted(reasons.keys()):
        if name in hooked:
            yield f"{name} is hooked and ignored"
        if name not in functions and name not in {STREAM_KIND.sub("", function) for function in functions}:
            yield f"{name} is ignored, but the headers do not have it"
    versions = introduced(include)
    for symbol, name, since in driver:
        if (name, since) not in versions:
            yield f"{symbol}: {name} did not change in CUDA version {since}"
        if not SUFFIXES.sub("", symbol) == name:
            yield f"{symbol} is listed under another name: {name}"


def main():
    found = list(problems(sys.argv[1], sys.argv[2]))
    print("\n".join(found) or "the table of entry points and the headers agree")
    sys.exit(1 if found else 0)


main()
