#!/usr/bin/env python3
"""Writes the parts of the simulated driver that follow from CUDA's headers.

    --entry-points FILE   the table behind cuGetProcAddress: for each (name, version) the exported symbol
    --per-thread FILE     the `_ptsz` and `_ptds` twins of the entry points that the hand-written objects define
    --errors FILE         names and descriptions of CUresult's values

cudaTypedefs.h says in which versions of CUDA an entry point got a new form: PFN_cuMemAlloc_v2000 and
PFN_cuMemAlloc_v3020 are cuMemAlloc and cuMemAlloc_v2. The n-th version of a name is the symbol with the suffix _vN.
"""
import argparse
import os
import re
import subprocess
import sys

BANNER = "// Written by tools/simgpu/driver/generate_driver.py at build time.\n"
PER_THREAD_SINCE = 7000


def fail(message):
    sys.exit(f"generate_driver.py: {message}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def preprocessed(include, header):
    """The header's declarations, of all versions, per-thread twins included."""
    command = ["cc", "-E", "-P", "-I", include]
    path = os.path.join(include, header)
    return "".join(subprocess.run([*command, *define, path], check=True, capture_output=True, text=True).stdout
                   for define in ([], ["-D__CUDA_API_VERSION_INTERNAL"]))


def prototypes(text):
    """{symbol: its parameters as declared}"""
    return dict(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;", text))


def versions(include):
    """{name: [version of the first form, of the second, ...]}"""
    found = {}
    for typedefs in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        for name, version in re.findall(r"\bPFN_(cu[A-Z]\w*?)_v(\d+)\)", read(os.path.join(include, typedefs))):
            found.setdefault(name, set()).add(int(version))
    return {name: sorted(numbers) for name, numbers in found.items()}


def write_entry_points(path, include, symbols):
    rows = []
    for name, numbers in sorted(versions(include).items()):
        for index, number in enumerate(numbers):
            symbol = name if index == 0 else f"{name}_v{index + 1}"
            if symbol not in symbols:
                fail(f"cudaTypedefs.h has version {number} of {name}, but no header declares {symbol}")
            twin = next((symbol + suffix for suffix in ("_ptsz", "_ptds") if symbol + suffix in symbols), None)
            rows.append((name, number, symbol, twin))
    with open(path, "w", encoding="utf-8") as out:
        out.write(BANNER + '#include "tools/simgpu/driver/entry_points.h"\n\nextern "C" {\n')
        for symbol in sorted({r[2] for r in rows} | {r[3] for r in rows if r[3]}):
            out.write(f"void {symbol}();\n")
        out.write("}\n\nnamespace simgpu {\nconst EntryPoint kEntryPoints[] = {\n")
        for name, number, symbol, twin in rows:
            out.write(f'    {{"{name}", {number}, {symbol}, {twin or "nullptr"}}},\n')
        out.write(f"}};\nconst std::size_t kEntryPointCount = {len(rows)};\n}}  // namespace simgpu\n")


def defined_symbols(objects):
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", *objects],
                             check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listing.splitlines() if line.strip() and len(line.split()) >= 3}


def write_per_thread(path, include, declared, objects):
    defined = defined_symbols(objects)
    # Launch configurations carry their stream inside.
    in_struct = {"cuLaunchKernelEx"}
    with open(path, "w", encoding="utf-8") as out:
        out.write(BANNER + "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n\n"
                  "// The null stream of a per-thread entry point is the calling thread's own.\n"
                  "static inline CUstream Own(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }\n\n")
        for symbol in sorted(declared):
            base = re.sub(r"_pt[sd][sz]$", "", symbol)
            if base == symbol or base not in defined or symbol in defined:
                continue
            parameters = [p.strip() for p in declared[symbol].split(",")]
            if any("(" in p for p in parameters):
                fail(f"{symbol}: cannot read its parameters: {declared[symbol]}")
            types, arguments = [], []
            for index, parameter in enumerate(parameters):
                match = re.fullmatch(r"(.*?)(\w+)((?:\[\w*\])*)", parameter, re.S)
                types.append((match[1].strip(), match[3]))
                is_stream = match[1].strip() == "CUstream"
                arguments.append(f"Own(p{index})" if is_stream else f"p{index}")
            signature = ", ".join(f"{t} p{i}{array}" for i, (t, array) in enumerate(types))
            plain = ", ".join(f"{t} p{i}{array}" for i, (t, array) in enumerate(types))
            call = f"return {base}({', '.join(arguments)});"
            if base in in_struct:
                call = (f"CUlaunchConfig config = *p0; config.hStream = Own(config.hStream); "
                        f"return {base}({', '.join(['&config', *arguments[1:]])});")
            out.write(f'extern "C" CUresult {base}({plain});\n'
                      f'extern "C" __attribute__((visibility("default"))) CUresult {symbol}({signature}) {{ {call} }}\n')


def write_errors(path, include):
    text = read(os.path.join(include, "cuda.h"))
    body = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", text, re.S)
    if not body:
        fail("cuda.h: no 'typedef enum cudaError_enum { ... } CUresult;'")
    entries = re.findall(r"/\*\*(.*?)\*/\s*(CUDA_\w+)\s*=\s*(\d+|0x[0-9a-f]+)", body[1], re.S)
    if len(entries) < 50:
        fail(f"cuda.h: only {len(entries)} error codes found")
    known = {  # the short texts that programs print and scripts look for
        "CUDA_SUCCESS": "no error", "CUDA_ERROR_INVALID_VALUE": "invalid argument",
        "CUDA_ERROR_OUT_OF_MEMORY": "out of memory", "CUDA_ERROR_NOT_INITIALIZED": "initialization error",
        "CUDA_ERROR_DEINITIALIZED": "driver shutting down", "CUDA_ERROR_NO_DEVICE": "no CUDA-capable device is detected",
        "CUDA_ERROR_INVALID_DEVICE": "invalid device ordinal", "CUDA_ERROR_INVALID_CONTEXT": "invalid device context",
        "CUDA_ERROR_INVALID_HANDLE": "invalid resource handle", "CUDA_ERROR_NOT_FOUND": "named symbol not found",
        "CUDA_ERROR_NOT_READY": "device not ready", "CUDA_ERROR_NOT_SUPPORTED": "operation not supported",
        "CUDA_ERROR_CONTEXT_IS_DESTROYED": "context is destroyed", "CUDA_ERROR_UNKNOWN": "unknown error",
        "CUDA_ERROR_NOT_PERMITTED": "operation not permitted", "CUDA_ERROR_INVALID_IMAGE": "device kernel image is invalid",
    }
    with open(path, "w", encoding="utf-8") as out:
        out.write(BANNER + '#include "tools/simgpu/driver/errors.h"\n\nnamespace simgpu {\nconst Error kErrors[] = {\n')
        for _, name, value in entries:
            words = name.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
            out.write(f'    {{{value}, "{name}", "{known.get(name, words)}"}},\n')
        out.write(f"}};\nconst int kErrorCount = {len(entries)};\n}}  // namespace simgpu\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True, help="folder of CUDA's headers")
    parser.add_argument("--entry-points")
    parser.add_argument("--per-thread")
    parser.add_argument("--errors")
    parser.add_argument("--objects", nargs="*", default=[], help="for --per-thread: the hand-written objects")
    arguments = parser.parse_args()
    declared = prototypes(preprocessed(arguments.include, "cuda.h"))
    declared |= prototypes(preprocessed(arguments.include, "cudaProfiler.h"))
    if arguments.entry_points:
        write_entry_points(arguments.entry_points, arguments.include, declared)
    if arguments.per_thread:
        write_per_thread(arguments.per_thread, arguments.include, declared, arguments.objects)
    if arguments.errors:
        write_errors(arguments.errors, arguments.include)


if __name__ == "__main__":
    main()
