"""What a report must say about the jobs of sharded_jobs.py."""

from instants import MIB, blocks_of, by_name, held, nothing_is_unknown, same, total

MATRICES = [f"{block}.{matrix}.weight" for block in range(8) for matrix in range(2)]
MICROBATCHES = 4


def accumulation_without_synchronization(case, job, unsharded):
    """Gradients by name, whole or sharded, from the first microbatch on."""
    looks = case.facts(job)["looks"]
    for microbatch in range(MICROBATCHES):
        whole = unsharded and microbatch < MICROBATCHES - 1
        expected = (256 if whole else 64) * MIB
        name = f"microbatch {microbatch} ends"
        same(f"{name}: torch's own figure", looks[name]["allocated"] - looks["begin"]["allocated"], expected)
        for instant in case.at(job, f"mark:{name}"):
            nothing_is_unknown(instant)
            same(f"{name}: gradients", held(instant).get("gradient"), expected)
            same(f"{name}: their evidence", instant["categories"]["gradient"]["evidence"]["named"], expected)
            gradients = blocks_of(instant, "gradient", role="unsharded" if whole else "")
            # The shards of a group's gradients lie in one block, which goes by the first one's name.
            names = dict.fromkeys(MATRICES, 16 * MIB) if whole else dict.fromkeys(MATRICES[::2], 8 * MIB)
            same(f"{name}: their names", by_name(gradients), names)
    for rank in case.ranks(job):
        same("unsharded at most", rank["model_state"]["unsharded_gradient_bytes"], 256 * MIB if unsharded else 32 * MIB)


def root_that_never_reshards(case, job, kept):
    """Parameters of the root that stay gathered after a forward that no backward follows, and for how many steps."""
    same("torch's own figure", case.facts(job)["rises"]["scoring"]["kept"], kept)
    for name in ("scored", *(f"step {step} ends" for step in range(3))):
        for instant in case.at(job, f"mark:{name}"):
            nothing_is_unknown(instant)
            gathered = blocks_of(instant, "comm_buffer", role="gathered parameter")
            same(f"{name}: gathered", total(gathered), kept)
            # 125 MiB each, and what is left of their segments, which is too small to be split off.
            same(f"{name}: their names", by_name(gathered), {"embedding.weight": 126 * MIB, "head.weight": 126 * MIB} if kept else {})
            same(f"{name}: requested", sum(block["requested"] for block in gathered), 250 * MIB if kept else 0)
            same(f"{name}: phase in which they were gathered", {block["phase"] for block in gathered}, {"evaluation"} if kept else set())
    for rank in case.ranks(job):
        gathered = [(group["bytes"], group["blocks"], group["age_steps"], group["until_ns"]) for group in rank["gathered"]["held"]]
        same("held from step to step", gathered, [(kept, 2, 2, -1)] if kept else [])


def averaged_copies(case, job, expected):
    """Copies of the weights are known as such, whether sharded or whole."""
    size, peak = (mebibytes * MIB for mebibytes in expected)
    same("torch's own figure", case.facts(job)["rises"]["building"], {"peak": peak, "kept": size})
    for step in range(2):
        for when in ("backward ends", "averaged"):
            for instant in case.at(job, f"mark:step {step}: {when}"):
                nothing_is_unknown(instant)
    for rank, instant in enumerate(case.at(job, "mark:step 1: averaged")):
        copies = [block for block in instant["blocks"] if block["address"] in case.facts(job, rank)["average"].values()]
        same("copies", len(copies), len(MATRICES))
        same("what they are", {(block["category"], block["evidence"]) for block in copies}, {("buffer", "named")})
        # All parameters have the same shape, so that a tensor's own cannot tell of which one it is the copy.
        shape = (2048, 2048) if size == 256 * MIB else (512, 2048)
        same("their names", by_name(copies), {f"of shape {shape} copy of parameters": size})


CASES = {
    "accumulation_without_synchronization": (
        accumulation_without_synchronization,
        {"synchronized": False, "unsynchronized": True, "unsynchronized_mixed_precision": True, "unsynchronized_lagging": True},
    ),
    "root_that_never_reshards": (
        root_that_never_reshards,
        {"default": 252 * MIB, "kept": 252 * MIB, "resharded": 0, "default_lagging": 252 * MIB, "resharded_lagging": 0},
    ),
    "averaged_copies": (  # MiB of copies, and at most while they are made
        averaged_copies,
        {"shards": (64, 64), "whole": (256, 272), "whole_as_gathered": (256, 256), "whole_lagging": (256, 272)},
    ),
}
