"""Prints what the installed torch requires, as pip reads it, without NVIDIA's libraries.

Also numpy, which torch can do without, but warns about.
"""

import importlib.metadata
import re

from pip._vendor.packaging.requirements import Requirement

NVIDIA = re.compile(r"(nvidia|cuda)[-_.]", re.IGNORECASE)


def main():
    for text in importlib.metadata.requires("torch") or []:
        requirement = Requirement(text)
        if NVIDIA.match(requirement.name):
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            print(f"{requirement.name}{requirement.specifier}")
    print("numpy")


if __name__ == "__main__":
    main()
