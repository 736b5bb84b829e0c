"""The tables of settings in README.md have the variables and defaults that the code has: `settings_test.py PROJECT`."""

import pathlib
import re
import sys


def documented(readme, prefix):
    """The rows `| `NAME` | default | meaning |` of the tables: {name: default}."""
    rows = re.findall(rf"^\| `({prefix}_\w+)` \|([^|]*)\|", readme, re.MULTILINE)
    return {name: default.strip().strip("`") for name, default in rows}


def recorder_settings(project):
    source = (project / "interpose/core/options.cc").read_text()
    return dict(re.findall(r'\{"(LEDGER_\w+)", "([^"]*)",', source))


def simulation_settings(project):
    """Names are what the one parser reads; defaults are the initializers of the struct, beside the name in its comment."""
    read = set(re.findall(r'"(SIMGPU_\w+)"', (project / "tools/simgpu/driver/options.cc").read_text()))
    header = (project / "tools/simgpu/driver/options.h").read_text()
    defaults = {name: value for value, name in re.findall(r"^  [\w:]+ \w+(?: = ([^;]+))?;\s*// (SIMGPU_\w+)", header, re.MULTILINE)}
    if read != set(defaults):
        sys.exit(f"tools/simgpu/driver: options.cc reads {sorted(read)}, options.h explains {sorted(defaults)}")
    return {name: as_text(initializer) for name, initializer in defaults.items()}


def as_text(initializer):
    """The value of a C++ initializer: none, a quoted text, a number, or a shifted number."""
    if '"' in initializer or not initializer:
        return initializer.strip('"')
    number, _, shift = initializer.partition("<<")
    return str(int(number.strip(" u")) << int(shift or 0))


def differences(code, table):
    for name in sorted(code.keys() | table.keys()):
        if code.get(name) != table.get(name):
            yield f"{name}: default {code.get(name, '(no such setting)')!r} in the code, {table.get(name, '(not there)')!r} in README.md"


def main():
    project = pathlib.Path(sys.argv[1])
    readme = (project / "README.md").read_text()
    wrong = [*differences(recorder_settings(project), documented(readme, "LEDGER")),
             *differences(simulation_settings(project), documented(readme, "SIMGPU"))]
    print("\n".join(wrong) or "the tables agree with the code")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
