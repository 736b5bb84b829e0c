"""The driver behind the tests torch.layers.*: what the op adapter and the agent say, against what a job found out itself.

    run_layers.py --build DIR --scratch DIR NAME      status 0: every check holds; 1: one does not; 77: it cannot run here
    run_layers.py --list
"""

import collections
import json
import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import ledger_file as lf  # noqa: E402
from checks import require  # noqa: E402
from driver import Checks, arguments_of  # noqa: E402
from job import Job  # noqa: E402


class Case:
    def __init__(self, build, folder):
        self.build = build
        self.folder = folder

    def run(self, name, environment=None, recorded=True):
        folder = self.folder / ("recorded" if recorded else "plain")
        outcome = Job(self.build, [HERE / "jobs.py", name], environment=environment or {}).run(folder, recorded)
        require(outcome.status == 0, f"the job ended with status {outcome.status}\n{outcome.stderr[-3000:]}")
        return outcome

    def ledger(self):
        files = list((self.folder / "recorded").glob("*.ledger"))
        require(len(files) == 1, f"expected one ledger, got {[file.name for file in files]}")
        return lf.Ledger(files[0])

    def expected(self):
        return json.loads((self.folder / "recorded/expected.json").read_text())


def layers_are_on(ledger):
    settings = ledger.settings()
    for layer in ("layer.adapter", "layer.agent"):
        require(settings.get(layer) == "on", f"{layer} is {settings.get(layer)!r}, expected 'on'")
    failed = {key: value for key, value in settings.items() if value.startswith("failed")}
    require(not failed, f"parts have failed: {failed}")


def numerics(case):
    """Bit-identical losses, gradients and parameters on the CPU; autograd's checks as they were."""
    recorded, plain = case.run("numerics"), case.run("numerics", recorded=False)
    layers_are_on(case.ledger())
    require(len(plain.stdout.splitlines()) == 9, f"expected 9 lines, got:\n{plain.stdout}")
    require(recorded.stdout == plain.stdout, f"with the ledger:\n{recorded.stdout}without:\n{plain.stdout}")


def function_modes(case):
    """Modes that a program puts in front of torch's functions see what it does itself, and nothing else."""
    recorded, plain = case.run("function_modes"), case.run("function_modes", recorded=False)
    layers_are_on(case.ledger())
    seen, expected = recorded.stdout.splitlines(), plain.stdout.splitlines()
    require(len(expected) > 100, f"a mode saw hardly anything: {expected}")
    more = list((collections.Counter(seen) - collections.Counter(expected)).items())
    require(seen == expected, f"with the ledger, a mode saw {len(seen)} calls, without it {len(expected)}; more of these: {more[:10]}")


def interrupted(case):
    """What the handler of a signal raises while the agent is at work reaches the program; the agent goes on."""
    outcome = case.run("interrupted")
    layers_are_on(case.ledger())
    require(outcome.stdout.split() == ["interrupted", "3"], f"the job printed {outcome.stdout!r}")


def saved(name):
    def run(case):
        """The bytes that nodes save in a forward are those of a walk of the graph."""
        case.run(name)
        ledger = case.ledger()
        layers_are_on(ledger)
        events = ledger.between("step 2: forward begins", "step 2: forward ends")
        live = {}
        for event in events:
            if event.kind == lf.SAVED_TENSOR and not event.flags & lf.PACKED:
                live[event.address] = event.storage_bytes
        expected = dict(map(tuple, case.expected()["storages"]))
        require(expected, "the job found nothing that is saved")
        require(live == expected, f"{name}: nodes saved {sum(live.values())} bytes in {len(live)} storages, "
                                  f"the graph holds {sum(expected.values())} in {len(expected)}")
        unknown = [event for event in events if event.kind == lf.SAVED_TENSOR and not event.scope]
        require(not unknown, f"{len(unknown)} tensors were saved by no op")
    return run


def names(case):
    """Every parameter, buffer, gradient and state is named, at its address and with its bytes."""
    case.run("names")
    ledger, expected = case.ledger(), case.expected()
    layers_are_on(ledger)
    said = {category: {} for category in lf.CATEGORIES}
    parameters = {}
    for event in ledger.of(lf.NAME):
        name = ledger.texts[event.text]
        category = lf.CATEGORIES[event.category]
        if category == "parameter":
            parameters[event.address] = name
        if event.flags & lf.FROM_GRAPH:
            name = parameters[event.belongs_to]
        key = f"{name}/{ledger.texts[event.key]}" if event.key else name
        said[category][key] = [event.address, event.bytes]
    for category, entries in expected.items():
        for name, place in entries.items():
            require(said[category].get(name) == place, f"{category} {name}: expected {place}, said {said[category].get(name)}")
    tied = [e for e in ledger.of(lf.NAME) if e.category == 1 and ledger.texts[e.text] == "tied.weight" and e.address != expected["parameter"]["a.weight"][0]]
    require(not tied, "a tied weight was given a place of its own")


def late_copies(case):
    """Copies of the weights are found whenever they come to be, also those that do not stay to the end."""
    case.run("late_copies")
    ledger = case.ledger()
    layers_are_on(ledger)
    said = [[event.address, event.bytes] for event in ledger.of(lf.NAME) if ledger.texts[event.key] == "copy of parameters"]
    for kind, places in case.expected()["copies"].items():
        missing = [place for place in places if place not in said]
        require(places and not missing, f"{kind}: of {places} these were not named: {missing}; named were {said}")


def searches(case):
    """All objects are searched ever more seldom; at once where memory grows by a copy, but not for each step of a leak."""
    schedule = runpy.run_path(str(case.build / "lib/ledger_agent/searches.py"))

    def searched(used, steps=3000, copy_bytes=2 << 20, undecided=()):
        searches = schedule["Searches"]()
        found = []
        for step in range(1, steps + 1):
            if searches.due(step) or searches.has_grown(step, used(step), copy_bytes):
                searches.done(step, used(step), step in undecided)
                found.append(step)
        return found

    steady = [1, 2, 8, 32, 128, 512, 2048]
    for what, found, expected in (
        ("steady", searched(lambda _: 1 << 30), steady),
        ("a copy at step 1000", searched(lambda step: (2 << 20) * (step >= 1000)), sorted([*steady, 1000])),
        ("less than a copy at step 1000", searched(lambda step: (1 << 20) * (step >= 1000)), steady),
        ("a copy where an activation was", searched(lambda step: (4 << 20) * (step <= 8 or step >= 20)), sorted([*steady, 20])),
        ("may be copies at step 32", searched(lambda _: 1 << 30, undecided=(32, 33)), sorted([*steady, 33])),
    ):
        require(found == expected, f"{what}: searched after {found}, expected {expected}")
    leak = searched(lambda step: step << 30)
    require(len(leak) < 45 and max(b - a for a, b in zip(leak, leak[1:])) <= 100, f"a leak: searched after {leak}")


def phases(case):
    """Forward, backward, optimizer, in the order of the program; steps counted by it."""
    case.run("phases")
    ledger = case.ledger()
    layers_are_on(ledger)
    microbatch = ["forward", "backward", "forward", "backward", "between"]
    step = microbatch * 2 + ["optimizer", "between"]
    expected = [(kind, 0) for kind in step] + [(kind, 1) for kind in step] + [("evaluation", 1), ("between", 1)]
    said = [(lf.PHASES[event.phase], event.step) for event in ledger.of(lf.PHASE)]
    require(said == expected, f"expected {expected},\nsaid {said}")


def paths(case):
    """Recomputation is told apart; backward nodes know their module; an exception leaves no module open."""
    case.run("paths")
    ledger = case.ledger()
    layers_are_on(ledger)

    def blocks(begin, end):
        return [event for event in ledger.between(begin, end) if event.kind == lf.BLOCK_ALLOC]

    def recomputed(events):
        return sum(event.size for event in events if ledger.path(event.scope) and ledger.path(event.scope)[-1].flags & lf.RECOMPUTE)

    for kind in ("checkpoint False", "checkpoint True", "plain"):
        require(recomputed(blocks(f"{kind}: begins", f"{kind}: backward begins")) == 0, f"{kind}: recomputation in forward")
        again = recomputed(blocks(f"{kind}: backward begins", f"{kind}: ends"))
        require((again > 0) == kind.startswith("checkpoint"), f"{kind}: {again} bytes of recomputation in backward")
    backward = [ledger.path(event.scope) for event in blocks("plain: backward begins", "plain: ends")]
    nodes = [scope for path in backward for scope in path if scope.flags & lf.BACKWARD and scope.name == "GeluBackward0"]
    require(nodes, "no block of GELU's backward node")
    origins = {ledger.scopes[node.origin].name if node.origin else "" for node in nodes}
    require(origins == {"1"}, f"GELU's backward comes from {origins}, expected the module '1'")
    after = [[scope.name for scope in ledger.path(event.scope)] for event in blocks("exception: begins", "exception: ends")]
    require(after and all(path and path[0].startswith("aten::") for path in after), f"after an exception blocks come from {after}")


def ranges(case):
    """Blocks know the profiler's ranges around them, whether the adapter says them, the agent, or the one for the other."""
    for missing in ({}, {"LEDGER_AGENT": "0"}, {"LEDGER_ADAPTER": "0"}):
        case.run("ranges", {"LEDGER_OPS": "0"} | missing)
        ledger, expected = case.ledger(), case.expected()["blocks"]
        got = {str(event.address): [scope.name for scope in ledger.path(event.scope)]
               for event in ledger.between("begin", "end") if event.kind == lf.BLOCK_ALLOC}
        require(len(expected) == 7 and got == expected, f"without {missing or 'nothing'}: expected {expected}, got {got}")


def requested(case):
    """The bytes that were asked for, as torch's snapshot has them; a delayed free and its end."""
    case.run("requested", {"SIMGPU_EVENT_LAG": "50"})
    ledger, expected = case.ledger(), case.expected()
    layers_are_on(ledger)
    live = {}
    for event in ledger.events:
        if event.kind == lf.MARK:
            break
        if event.kind in (lf.BLOCK_ALLOC, lf.BLOCK_SEEN):
            live[event.address] = (event.size, event.requested)
        elif event.kind == lf.BLOCK_FREE:
            live.pop(event.address)
    wrong = [block for block in expected["blocks"] if live.get(block[0]) != tuple(block[1:])]
    require(len(expected["blocks"]) == 7 and not wrong, f"of {expected['blocks']} these differ: {wrong}, the ledger has {live}")
    kinds = [event.kind for event in ledger.events if getattr(event, "address", None) == expected["delayed"]]
    at = kinds.index(lf.BLOCK_PENDING)
    require(kinds[at : at + 3] == [lf.BLOCK_PENDING, lf.BLOCK_FREE, lf.BLOCK_REUSABLE], f"the delayed block's records: {kinds}")


def contexts(case):
    """Tensors that are attributes of a context are saved when the function has run, also where a region runs again."""
    case.run("contexts")
    ledger = case.ledger()
    layers_are_on(ledger)
    for name, (address, size) in case.expected()["kept"].items():
        reentrant = "reentrant" in name  # whose graph is made in backward only
        forward, backward = ledger.between(f"{name}: forward", f"{name}: backward"), ledger.between(f"{name}: backward", f"{name}: ends")
        said = [[event.address, event.storage_bytes] for event in (backward if reentrant else forward) if event.kind == lf.SAVED_TENSOR]
        require([address, size] in said, f"{name}: {size} bytes at {address:#x} were not said to be saved, but {said}")


def teardown(case):
    """A graph that is dropped frees its tensors in the order in which it does so without the layers."""
    freed = {}
    for kind, environment in (("with", {}), ("without", {"LEDGER_AGENT": "0", "LEDGER_ADAPTER": "0"})):
        case.run("teardown", environment)
        ledger = case.ledger()
        if kind == "with":
            layers_are_on(ledger)
        freed[kind] = [
            [event.size for event in ledger.between(f"used {used}: dropped", f"used {used}: gone") if event.kind == lf.BLOCK_FREE]
            for used in (False, True)
        ]
    require(all(len(sizes) > 12 for sizes in freed["without"]), f"hardly anything was freed: {freed['without']}")
    require(freed["with"] == freed["without"], f"freed with the layers: {freed['with']}, without: {freed['without']}")


def moved(case):
    """What moves from step to step has its name in each, also where it comes back; and so have gradients that the program put in their place."""
    case.run("moved")
    ledger, expected = case.ledger(), case.expected()
    layers_are_on(ledger)
    named = {}  # address of a block that is alive → category
    steps = iter(expected["places"])
    for event in ledger.events:
        if event.kind == lf.BLOCK_ALLOC:
            named[event.address] = None
        elif event.kind == lf.NAME:
            named[event.address] = lf.CATEGORIES[event.category]
        elif event.kind == lf.MARK:
            places = next(steps)
            wrong = {address: named.get(address) for address, _ in places if named.get(address) != "parameter"}
            require(places and not wrong, f"{ledger.texts[event.text]}: weights are at {wrong}")
    require(next(steps, None) is None, "not all steps have ended")
    other = {address: named.get(address) for address, _ in expected["sums"] if named.get(address) != "gradient"}
    require(expected["sums"] and not other, f"sums of gradients are called {other}")


def in_thread(case):
    """Training in a thread, by gradients as values: saved tensors inside of a transform, and names of what is replaced at each step."""
    case.run("in_thread")
    ledger = case.ledger()
    layers_are_on(ledger)
    said = {category: [] for category in lf.CATEGORIES}
    for event in ledger.of(lf.NAME):
        said[lf.CATEGORIES[event.category]].append([event.address, event.bytes])
    for category, places in case.expected().items():
        missing = [place for place in places if place not in said[category]]
        require(places and not missing, f"{category}: of {places} these were not named: {missing}")
    for step in range(4):
        events = ledger.between(f"step {step}: transform", f"step {step}: ends")
        made = {event.address for event in events if event.kind == lf.BLOCK_ALLOC}
        saved = {event.address for event in events if event.kind == lf.SAVED_TENSOR} & made
        require(len(saved) >= 3, f"step {step}: of {len(made)} blocks in a transform, {len(saved)} were said to be saved")


def compiled_step(case):
    """A compiler that traces an optimizer's step finds the same graph, and nothing of the agent in it."""
    recorded, plain = case.run("compiled_step"), case.run("compiled_step", recorded=False)
    layers_are_on(case.ledger())
    require(plain.stdout.split() and recorded.stdout == plain.stdout, f"with the ledger: {recorded.stdout}without: {plain.stdout}")


def switched_off(case):
    """LEDGER_AGENT=0 and LEDGER_ADAPTER=0: blocks as ever, and nothing else."""
    case.run("phases", {"LEDGER_AGENT": "0", "LEDGER_ADAPTER": "0"})
    ledger = case.ledger()
    settings = ledger.settings()
    for layer in ("layer.agent", "layer.adapter"):
        require(settings.get(layer, "").startswith("off"), f"{layer} is {settings.get(layer)!r}, expected 'off ...'")
    by_layers = [event for event in ledger.events if event.kind != lf.NAME or lf.CATEGORIES[event.category] != "workspace"]
    others = {event.kind for event in by_layers} & {lf.SAVED_TENSOR, lf.PHASE, lf.NAME, lf.SEGMENT_ALLOC}
    require(ledger.of(lf.BLOCK_ALLOC) and not others, f"records of kinds {others} were written")


CASES = {
    "numerics": numerics,
    "function_modes": function_modes,
    "interrupted": interrupted,
    "saved_mlp": saved("saved_mlp"),
    "saved_decoder": saved("saved_decoder"),
    "saved_decoder_checkpointed": saved("saved_decoder_checkpointed"),
    "saved_autocast": saved("saved_autocast"),
    "saved_sharded": saved("saved_sharded"),
    "names": names,
    "late_copies": late_copies,
    "searches": searches,
    "phases": phases,
    "paths": paths,
    "ranges": ranges,
    "requested": requested,
    "contexts": contexts,
    "teardown": teardown,
    "moved": moved,
    "in_thread": in_thread,
    "compiled_step": compiled_step,
    "switched_off": switched_off,
}


def main():
    arguments = arguments_of(__doc__, CASES, adapter=True)
    checks = Checks()
    case = CASES[arguments.name]
    checks.check(case.__doc__, case, Case(arguments.build, arguments.scratch / arguments.name))
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
