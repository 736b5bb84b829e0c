"""What libledger.so may be to the processes it is loaded into: library_test.py LIBRARY EXPORT_LIST.

It exports what is on the list and nothing else, needs the C library alone, has little thread-local storage, and refers to
nothing that only the C++ library has.
"""

import re
import subprocess
import sys

MAX_TLS_BYTES = 256
NEEDED = {"libc.so.6"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dynamic_symbols(library):
    """(undefined, defined) names, with their versions cut off; weak references apart from the others."""
    undefined, weak, defined = set(), set(), set()
    for line in output("nm", "-D", library).splitlines():
        kind, name = line.split()[-2:]
        bare = name.split("@")[0]
        (undefined if kind == "U" else weak if kind in "wv" else defined).add(bare)
    return undefined, weak, defined


def libc_symbols():
    loader_and_libc = re.findall(r"=> (\S+libc\.so\.6)", output("ldd", sys.executable)) or ["/lib/x86_64-linux-gnu/libc.so.6"]
    names = set()
    for line in output("nm", "-D", "--defined-only", loader_and_libc[0]).splitlines():
        names.add(line.split()[-1].split("@")[0])
    return names


def problems(library, export_list):
    undefined, _, defined = dynamic_symbols(library)
    expected = set(open(export_list).read().split())
    for name in sorted(defined - expected):
        yield f"{name} is exported, and not on the list"
    for name in sorted(expected - defined):
        yield f"{name} is on the list of exports, and not exported"
    for name in sorted(undefined - libc_symbols()):
        yield f"{name} is undefined, and the C library does not have it"
    for line in subprocess.run(["ldd", "-r", library], capture_output=True, text=True, check=True).stdout.splitlines():
        if "undefined symbol" in line or "not found" in line:
            yield f"ldd -r: {line.strip()}"
    dynamic = output("readelf", "-dW", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if needed != NEEDED:
        yield f"needs {sorted(needed)}, expected {sorted(NEEDED)}"
    if "BIND_NOW" not in dynamic and "NOW" not in dynamic:
        yield "is not linked with -z now"
    if "TEXTREL" in dynamic:
        yield "has text relocations"
    if "VERDEF" in dynamic:
        yield "defines symbol versions: clients that ask for the real libraries' versions would not be bound to it"
    tls = re.search(r"^\s+TLS\s+(\S+\s+){4}(\S+)", output("readelf", "-lW", library), re.MULTILINE)
    tls_bytes = int(tls.group(2), 16) if tls else 0
    if tls_bytes > MAX_TLS_BYTES:
        yield f"has {tls_bytes} bytes of thread-local storage, at most {MAX_TLS_BYTES} are allowed"
    if "__tls_get_addr" in undefined:
        yield "has thread-local storage that is not initial-exec"


def main():
    found = list(problems(sys.argv[1], sys.argv[2]))
    print("\n".join(found) or "exports, needs and thread-local storage are as they should be")
    sys.exit(1 if found else 0)


main()
