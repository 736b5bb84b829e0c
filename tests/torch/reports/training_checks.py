"""What a report must say about the jobs of training_jobs.py."""

from instants import KIB, MIB, blocks_of, held, nothing_is_unknown, same, total


def optimizer_step_peak(case, job, expected):
    """What the second step takes above what is there before it is temporary, and in the phase `optimizer`."""
    peak, state = (mebibytes * MIB for mebibytes in expected)
    same("torch's own figure", case.facts(job)["rises"]["step 1"], {"peak": peak, "kept": 0})
    rank = case.ranks(job)[0]
    step = next(phase for phase in rank["phases"] if (phase["step"], phase["phase"]) == (1, "optimizer"))
    same("rise in the phase", step["peak_bytes"] - step["begin_bytes"], peak)
    same("kept by the phase", step["end_bytes"], step["begin_bytes"])
    same("temporary at its peak", step["categories_at_peak"].get("temporary", 0), peak)
    instant = case.at(job, "phase:step 1 optimizer")[0]
    same("phase", (instant["phase"], instant["step"]), ("step 1 optimizer", 1))
    same("the model's state", [held(instant).get(name) for name in ("parameter", "gradient")], [400 * MIB] * 2)
    # Steps are counted in tensors of a few bytes, which some implementations keep on the device.
    states = blocks_of(instant, "optimizer_state")
    same("optimizer state", total([block for block in states if not block["name"].endswith(" step")]), state)
    nothing_is_unknown(instant)
    by_itself = [block for block in blocks_of(instant, "temporary") if block["phase"] != "step 1 optimizer" or block["evidence"] != "scope"]
    same("temporaries that come from elsewhere", by_itself, [])
    if peak >= 400 * MIB:
        same("phase of the highest peak", rank["at_peak"]["phase"].split()[-1], "optimizer")


def adapters_saved_storages(case, job, expected):
    """What the graph saves besides parameters, each storage once."""
    instant = case.at(job, "mark:step 1: forward ends")[0]
    nothing_is_unknown(instant)
    same("saved", held(instant)["saved_activation"], expected * KIB)
    same("evidence", instant["categories"]["saved_activation"]["evidence"]["graph"], expected * KIB)
    shared = [block for block in blocks_of(instant, "saved_activation") if block["module"] == "below"]
    same("the activation that all projections save", [block["bytes"] for block in shared], [8 * MIB] if expected > 8 * KIB else [])
    modules = {block["module"] for block in blocks_of(instant, "saved_activation")} - {"below"}
    expected_modules = {f"a.{number}" for number in range(3 if job == "three_projections" else 1)}
    same("modules whose results are saved", modules, expected_modules)
    after = case.at(job, "mark:step 1: backward ends")[0]
    same("saved after backward", held(after).get("saved_activation", 0), 0)


BATCHES = 8
LOGITS = 512 * 32000 * 4


def evaluation_keeps_logits(case, job, phase):
    """Evaluation is a phase of its own; each batch leaves its logits, and the report says where they come from."""
    looks = case.facts(job)["looks"]
    for batch in (0, BATCHES - 1):
        instant = case.at(job, f"mark:batch {batch} ends")[0]
        nothing_is_unknown(instant)
        same("allocated", instant["bytes"], looks[f"batch {batch} ends"]["allocated"])
        logits = [block for block in instant["blocks"] if block["bytes"] == LOGITS]
        same("logits", [(block["module"], block["phase"].split()[-1]) for block in logits], [("head", phase)] * (batch + 1))
        if phase == "evaluation":
            same("kept by evaluation", instant["bytes"] - looks["evaluation begins"]["allocated"], (batch + 1) * LOGITS)
            same("what they are", {(block["category"], block["role"]) for block in logits}, {("temporary", "held by the program")})
    rank = case.ranks(job)[0]
    kept_by_phases = [entry["end_bytes"] - entry["begin_bytes"] for entry in rank["phases"] if entry["phase"] == "evaluation"]
    slopes = [(slope["per"], slope["category"], slope["bytes_per_round"], slope["blocks_per_round"], slope["live_bytes"]) for slope in rank["growth"]]
    if phase != "evaluation":  # with a graph, it looks like the forward of a training step
        same("phases of evaluation", kept_by_phases, [])
        return
    same("kept by each", kept_by_phases, [LOGITS] * BATCHES)
    same("slopes", slopes, [("evaluation", "temporary", LOGITS, 1, BATCHES * LOGITS)])
    same("their site", rank["growth"][0]["scope"], "Classifier/head/aten::linear/aten::addmm")


CASES = {
    "optimizer_step_peak": (
        optimizer_step_peak,
        {  # MiB that the second step takes, and MiB of optimizer state
            "foreach": (400, 800),
            "for_loop": (12, 800),
            "fused": (0, 800),
            "amsgrad": (400, 1200),
            "momentum_and_decay": (400, 400),
            "momentum_and_decay_for_loop": (4, 400),
        },
    ),
    "adapters_saved_storages": (
        adapters_saved_storages,
        {  # KiB
            "trainable_16": 8224,
            "trainable_64": 8320,
            "trainable_256": 8704,
            "frozen_16": 32,
            "frozen_64": 128,
            "frozen_256": 512,
            "three_projections": 8192 + 3 * 32,
        },
    ),
    "evaluation_keeps_logits": (
        evaluation_keeps_logits,
        {"no_grad": "evaluation", "inference_mode": "evaluation", "with_graph": "forward"},
    ),
}
