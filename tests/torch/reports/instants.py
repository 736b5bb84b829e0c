"""What is read from an instant of a report."""

import collections

from checks import require

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def held(instant):
    """Bytes of each category that has any."""
    return {name: category["bytes"] for name, category in instant["categories"].items() if category["bytes"]}


def blocks_of(instant, category, **fields):
    """The blocks of a category that have these values."""
    return [block for block in instant["blocks"] if block["category"] == category and all(block[key] == value for key, value in fields.items())]


def total(blocks):
    return sum(block["bytes"] for block in blocks)


def by_name(blocks):
    sums = collections.Counter()
    for block in blocks:
        sums[block["name"]] += block["bytes"]
    return dict(sums)


def same(what, found, expected):
    require(found == expected, f"{what}: {found}, expected {expected}")


def nothing_is_unknown(instant):
    unknown = blocks_of(instant, "unknown")
    require(not unknown, f"{len(unknown)} unknown blocks of {total(unknown)} bytes: {unknown[:3]}")
