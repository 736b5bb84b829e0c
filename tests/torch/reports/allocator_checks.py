"""What a report must say about the jobs of allocator_jobs.py."""

import re

from checks import require
from instants import MIB, held, nothing_is_unknown, same, total

ROUNDED = 512  # the least that the allocator rounds to


def rounding_settings(case, job, expected):
    """What rounding costs, and the settings that make it cost that, in the head of the report."""
    block, settings = expected
    rank = case.ranks(job)[0]
    instant = case.at(job, "mark:allocated")[0]
    same("blocks", sorted(entry["bytes"] for entry in instant["blocks"]), [2 * ROUNDED, block * MIB])
    same("requested", {entry["bytes"]: entry["requested"] for entry in instant["blocks"]}, {2 * ROUNDED: 1000, block * MIB: 514 * MIB})
    categories = [category for category in instant["categories"].values() if category["bytes"]]
    same("requested, of all", sum(category["requested"] for category in categories), 514 * MIB + 1000)
    same("rounding", sum(category["rounded"] - category["requested"] for category in categories), (block - 514) * MIB + 24)
    same("torch's own figure", case.facts(job)["looks"]["allocated"]["allocated"], block * MIB + 2 * ROUNDED)
    same("settings", {key: rank["settings"].get(key) for key in settings}, settings)
    head = case.text(job).split("\n\n")[0]
    for key, value in settings.items():
        require(f"{key.removeprefix('env.')}={value}" in head, f"{key} is not in the head of the report:\n{head}")


def two_devices(case, job, expected):
    """Each device has figures of its own; a block belongs to the place that allocated it, whoever frees it."""
    rank = case.ranks(job)[0]
    same("peaks", {device["device"]: device["peaks"]["allocated"]["bytes"] for device in rank["devices"]}, expected)
    for device in rank["devices"]:
        size = expected[device["device"]]
        sites = device["sites"]
        same(f"device {device['device']}: sites", {site["scope"].split("/")[0] for site in sites}, {"producer"})
        same(f"device {device['device']}: their bytes", (sum(site["bytes"] for site in sites), sum(site["count"] for site in sites)), (size, 2))
    same("main device", rank["main_device"], 0)
    for mark, left in (("produced", 2), ("consumed", 1), ("all consumed", 0)):
        instant = case.at(job, f"mark:{mark}")[0]
        same(f"{mark}: device and bytes", (instant["device"], instant["bytes"]), (0, left * 768 * MIB))
        same(f"{mark}: places", {block["scope"].split("/")[0] for block in instant["blocks"]}, {"producer"} if left else set())
        other = case.ranks(job, "--at", f"mark:{mark}")[0]["devices"][1]["at"]
        same(f"{mark}: the other device", (other["device"], other["bytes"]), (1, left * 256 * MIB))
    text = case.text(job)
    require(re.search(r"^ +1 +0\.500 +2 .*: temporary 0\.500$", text, re.MULTILINE), f"no line of the other device's 0.500 GiB by category:\n{text}")
    require(re.search(r"^ +0 +0 +1\.500 .*\n +0 +1 +0\.500 ", text, re.MULTILINE), f"no lines of 1.500 and 0.500 GiB for the two devices:\n{text}")
    other_units = re.findall(r"\b(?:[KMGT]B|[KMT]iB)\b", text.replace("NVIDIA H100 80GB HBM3", ""))
    same("units other than GiB", other_units, [])


def stages_on_two_devices(case, job, depths):
    """Each device's blocks have categories, and each can be described in full."""
    matrix = 16 * MIB
    rank = case.ranks(job, "--at", "mark:step 1 ends")[0]
    same("main device", rank["main_device"], 0)
    same("identities that fail", [identity["name"] for identity in rank["identities"] if not identity["holds"]], [])
    for device, depth in zip(rank["devices"], depths):
        name = f"device {device['device']}"
        expected = {"parameter": depth * matrix, "gradient": depth * matrix, "optimizer_state": 2 * depth * matrix}
        instant = device["at"]
        nothing_is_unknown(instant)
        same(f"{name}: what a step leaves", {key: held(instant).get(key) for key in expected}, expected)
        same(f"{name}: named", {key: instant["categories"][key]["evidence"]["named"] for key in expected}, expected)
        peak = device["at_peak"]
        nothing_is_unknown(peak)
        same(f"{name}: categories at the peak", sum(held(peak).values()), device["peaks"]["allocated"]["bytes"])
        require(held(peak).get("saved_activation", 0) >= 4 * matrix * (depth - 1), f"{name}: no saved activations at the peak: {held(peak)}")
    described = case.ranks(job, "--device", "1")[0]
    same("described", (described["main_device"], described["at_peak"]["device"]), (1, 1))
    same("its peak", described["at_peak"], rank["devices"][1]["at_peak"])
    require("Who held it: rank 0, device 1," in case.text(job, "--device", "1"), "the text does not describe device 1")


def out_of_memory_holder(case, job, last):
    """What was held when the allocator gave up, and until when: behind the mark `first`, before the mark `then`."""
    rank = case.ranks(job)[0]
    same("times", rank["oom_count"], 1)
    oom = rank["ooms"][0]
    small = 64 * MIB if job == "handled" else 0
    same("requested and allocated", (oom["requested"], oom["allocated"]), (8192 * MIB, 2048 * MIB + small))
    same("of the device", oom["device_total"], 6 << 30)
    require(0 < oom["device_free"] < (6 << 30) - 2048 * MIB, f"free: {oom['device_free']}")
    held = [holder for holder in oom["holders"] if holder["bytes"] == 2048 * MIB]
    same("the one that holds 2 GiB", [(holder["count"], holder["held_at_end"]) for holder in held], [(1, 0)])
    same("all that is held", sum(holder["bytes"] for holder in oom["holders"]), oom["allocated"])
    before, after = (case.at(job, f"mark:{mark}")[0] for mark in last)
    require(before["time_ns"] < held[0]["until_ns"] < after["time_ns"],
            f"held until {held[0]['until_ns']}, expected between {before['time_ns']} ({last[0]}) and {after['time_ns']} ({last[1]})")
    big = [[block for block in instant["blocks"] if block["bytes"] == 2048 * MIB] for instant in (before, after)]
    same("still held", [total(blocks) for blocks in big], [2048 * MIB, 0])
    same("and known from the start to be freed", big[0][0]["freed_ns"], held[0]["until_ns"])
    looks = case.facts(job)["looks"]
    for mark, instant in zip(last, (before, after)):
        same(f"{mark}: torch's own figure", instant["bytes"], looks[mark]["allocated"])


def graph_pools(case, job, expected):
    """A line for each pool of CUDA graphs, as torch's own snapshot has them; (pools, MiB reserved and allocated, if known)."""
    pools, *sizes = expected
    facts = case.facts(job)
    look = facts["looks"]["captured"]
    same("torch's pools", len(facts["pools"]), pools)
    same("torch's figures after the replay", facts["looks"]["replayed"], look)
    instant = case.at(job, "mark:captured")[0]
    said = {pool["name"]: [pool["reserved"], pool["allocated"]] for pool in instant["private_pools"]}
    same("pools", said, {f"private pool {name}": bytes_ for name, bytes_ in facts["pools"].items()})
    for pool in instant["private_pools"]:
        free = pool["pending_free"] + pool["inactive_split"] + pool["cached_segments"]
        same(f"{pool['name']}: its lines add up", pool["allocated"] + free, pool["reserved"])
    accounts = {name: account["bytes"] for name, account in instant["accounts"].items()}
    same("allocated", (instant["bytes"], accounts["allocated"]), (look["allocated"], look["allocated"]))
    in_pools = sum(reserved for reserved, _ in facts["pools"].values())
    same("free in private pools", accounts["private_pools_free"], in_pools)
    reserved = sum(accounts[name] for name in ("allocated", "pending_free", "inactive_split", "cached_segments", "private_pools_free"))
    same("reserved", reserved, look["reserved"])
    same("MiB reserved and allocated", [round(size / MIB) for size in (reserved, instant["bytes"])][: len(sizes)], sizes)
    lines = re.findall(r"^ +private pool (\S+) ", case.text(job, "--at", "mark:captured"), re.MULTILINE)
    same("lines of the text", lines, sorted(facts["pools"]))


def pinned_host_memory(case, job, expected):
    """A balance sheet of the host: what was requested, and what the host allocator made of it."""
    account, requested, sizes = expected  # `requested` is None where nobody can know it
    rounded = int(sum(sizes) * MIB)
    memory = case.ranks(job)[0]["host_memory"]
    kind = account.split()[0]
    same("peaks", {name: memory[f"{name}_peak"] for name in ("pinned", "registered", "managed")}, {"pinned": 0, "registered": 0, "managed": 0} | {kind: rounded})
    accounts = memory["accounts"]
    wanted = {"name": account, "bytes": rounded, "allocations": len(sizes)}
    same("accounts", accounts, [wanted | {"requested": int(sum(requested) * MIB)} if requested else wanted])
    same("at its maximum", memory["peak"], rounded)
    if "host" in case.facts(job):
        same("torch's own figure", case.facts(job)["host"]["allocated_bytes.peak"], rounded)


NONE = {}
CASES = {
    "rounding_settings": (
        rounding_settings,
        {
            "none": (514, NONE),
            "useless": (514, {"env.PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[>:1]"}),
            "halves": (768, {"env.PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[>:2]"}),
            "quarters": (640, {"env.PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"}),
            "quarters_by_its_new_name": (640, {"env.PYTORCH_ALLOC_CONF": "roundup_power2_divisions:4"}),
            "set_by_the_program": (640, NONE),
        },
    ),
    "two_devices": (two_devices, {"two_devices": {0: 1536 * MIB, 1: 512 * MIB}}),
    "stages_on_two_devices": (stages_on_two_devices, {"stages_on_two_devices": (3, 1)}),
    "out_of_memory_holder": (out_of_memory_holder, {"handled": ("handler ends", "handled"), "kept": ("handled", "forgotten")}),
    "graph_pools": (
        graph_pools,
        {"own_pools": (8,), "shared_pool": (1,), "own_pools_lagging": (8,), "shared_pool_lagging": (1,)}
        | {"signatures_own_pools": (8, 2358, 176), "signatures_shared_pool": (1, 644, 176)},
    ),
    "pinned_host_memory": (
        pinned_host_memory,
        {
            "allocated": ("pinned by libtorch_cuda.so", (64, 160, 262.5, 320), (64, 256, 512, 512)),
            "registered_by_torch": ("registered by libtorch_cuda.so", (4, 10, 16.4, 20), (4, 16, 32, 32)),
            "registered": ("registered by libtorch_python.so", (3,), (3,)),
            "registered_late": ("registered by libtorch_python.so", None, (3,)),
        },
    ),
}
