"""What a report must say about a workload, against what the workload itself knew."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import gpuledger, require  # noqa: E402

# At each look, the blocks of these categories are those that the job knows, and no others.
COMPLETE = ("parameter", "master_parameter", "gradient", "optimizer_state", "buffer")
# They may rest on the scope of their op: nothing else knows of them.
BY_SCOPE = ("temporary", "activation_gradient")
WEAK_SHARE = 0.01


def report(build, folder, *arguments):
    result = gpuledger(build, "report", folder, "--json", "--blocks", *arguments)
    require(result.returncode == 0, f"gpuledger report {' '.join(arguments)}: status {result.returncode}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)["ranks"]


def layers_are_on(rank):
    settings = rank["settings"]
    off = {key: value for key, value in settings.items() if key.startswith("layer.") and value != "on"}
    require(not off and "layer.agent" in settings and "layer.adapter" in settings, f"layers: {off or 'no agent, or no adapter'}")


def describe(blocks):
    """The largest of some blocks, for a message."""
    return "; ".join(map(describe_block, sorted(blocks, key=lambda block: -block["bytes"])[:5]))


def describe_block(block):
    return f"{block['bytes']} bytes called {block['category']} {block['name'] or block['scope']!r} ({block['evidence']}), born in {block['phase']}"


def nothing_is_unknown(instant):
    unknown = [block for block in instant["blocks"] if block["category"] == "unknown"]
    require(not unknown, f"{len(unknown)} unknown blocks at the peak: {describe(unknown)}")


def evidence_is_strong(instant):
    """Names, the graph and calls; the scope for what is made and gone inside of an op; next to nothing by lifetime."""
    weak = [block for block in instant["blocks"] if block["evidence"] in ("lifetime", "none")]
    share = sum(block["bytes"] for block in weak) / instant["bytes"]
    require(share <= WEAK_SHARE, f"{share:.1%} of the peak rest on lifetimes: {describe(weak)}")
    by_scope = [block for block in instant["blocks"] if block["evidence"] == "scope" and block["category"] not in BY_SCOPE]
    require(not by_scope, f"categories by scope alone: {describe(by_scope)}")


def categories_add_up(instant):
    sums = collections.Counter()
    for block in instant["blocks"]:
        sums[block["category"]] += block["bytes"]
    said = {name: category["bytes"] for name, category in instant["categories"].items() if category["bytes"]}
    require(dict(sums) == said, f"blocks add up to {dict(sums)}, the categories say {said}")
    require(sum(said.values()) == instant["bytes"], f"categories add up to {sum(said.values())}, allocated are {instant['bytes']}")


def look_agrees(instant, look):
    """The same blocks as torch's snapshot, and each known storage in its category."""
    blocks = {block["address"]: block for block in instant["blocks"]}
    snapshot = {int(address): size for address, size in look["blocks"].items()}
    require({address: block["bytes"] for address, block in blocks.items()} == snapshot,
            f"{look['mark']}: {len(blocks)} blocks, torch's snapshot has {len(snapshot)}")
    expected = {int(address): known for address, known in look["expected"].items()}
    for address, (category, name, size) in expected.items():
        require(address in blocks, f"{look['mark']}: no block at {address:#x}, where {category} {name} is")
        block = blocks[address]
        known = f"{look['mark']}: {category} {name} of {size} bytes"
        require(block["category"] == category, f"{known} is {describe_block(block)}")
        require(block["requested"] in (0, size), f"{known}: {block['requested']} were requested")
    for category in (*COMPLETE, *look["complete"]):
        more = [block for address, block in blocks.items() if block["category"] == category and address not in expected]
        require(not more, f"{look['mark']}: {len(more)} blocks too many of category {category}: {describe(more)}")


def state_per_parameter(rank, holdings, shards, expected):
    """What training keeps for each parameter, in bytes over all ranks: by the job and by the report."""
    elements = sum(count for count, _ in holdings["parameters"].values())
    sums = collections.Counter()
    for category, _, size in next(look["expected"].values() for look in holdings["looks"] if look["mark"] == "step 2: backward 0 ends"):
        sums[category] += size
    known = {category: sums[category] / elements for category in COMPLETE if sums[category]}
    require(known == expected, f"bytes per parameter: {known} by the job, expected {expected}")
    said = rank["model_state"]["categories"]
    held = {category: [entry["held_bytes"], entry["shard_factor"]] for category, entry in said.items()}
    require(held == {category: [width * elements, shards] for category, width in expected.items()}, f"bytes on this rank, and shards: {held}")
    over_all = sum(entry["bytes_per_parameter"] * entry["shard_factor"] for entry in said.values())
    require(over_all == sum(expected.values()), f"{over_all} bytes per parameter by the report, expected {sum(expected.values())}")


def agreement(full, alone):
    """Share of the peak's bytes that have the same category, and the bytes that have not: {(category, alone): bytes}.

    Both runs allocate the same in the same order, so blocks that are alive at the peak are paired by it.
    """
    blocks, blocks_alone = (sorted(instant["blocks"], key=lambda block: block["record"]) for instant in (full, alone))
    require(len(blocks) == len(blocks_alone), f"{len(blocks)} blocks are alive at the peak, {len(blocks_alone)} in the run with libledger.so alone")
    pairs = list(zip(blocks, blocks_alone))
    unlike = [(one["bytes"], other["bytes"]) for one, other in pairs if one["bytes"] != other["bytes"]]
    require(not unlike, f"the two runs' peaks have different blocks: {unlike[:5]}")
    different = collections.Counter()
    for one, other in pairs:
        if one["category"] != other["category"]:
            different[one["category"], other["category"]] += one["bytes"]
    return 1 - sum(different.values()) / full["bytes"], different
