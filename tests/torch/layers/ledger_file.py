"""Reads the records that these tests are about, straight from the layout in interpose/record/record.h."""

import collections
import pathlib
import struct

HEADER_BYTES = 4096
RECORD_BYTES = 64
TEXT, SCOPE, SETTING, BLOCK_ALLOC, BLOCK_FREE, BLOCK_PENDING, BLOCK_REUSABLE, BLOCK_SEEN = 1, 2, 5, 32, 33, 35, 36, 37
SEGMENT_ALLOC, SEGMENT_SEEN, MARK, SAVED_TENSOR, PHASE, NAME = 38, 42, 52, 96, 97, 98

# kScope..., kSaved..., kName... and the enums PhaseKind and NameCategory of record.h.
BACKWARD, RECOMPUTE, MODULE, USER, OPTIMIZER_RANGE = 1, 2, 4, 8, 16
PACKED = 1
SHARDED, FROM_GRAPH = 1, 4
PHASES = ("setup", "forward", "backward", "optimizer", "between", "evaluation")
CATEGORIES = ("unknown", "parameter", "master_parameter", "buffer", "gradient", "optimizer_state", "gathered_parameter", "communication_buffer",
              "input", "workspace")

# Fields behind the commit word, in their order; "_" is not looked at.
_LAYOUTS = {
    SETTING: ("<QII", "ticks key value"),
    BLOCK_ALLOC: ("<QQQQQIIQ", "ticks address size allocated reserved scope owner requested"),
    BLOCK_FREE: ("<QQQQQIIQ", "ticks address size allocated reserved scope owner requested"),
    BLOCK_PENDING: ("<QQQQQI", "ticks address size requested stream scope"),
    BLOCK_REUSABLE: ("<QQQQQI", "ticks address size requested stream scope"),
    BLOCK_SEEN: ("<QQQQQI", "ticks address size requested stream scope"),
    SEGMENT_ALLOC: ("<QQQQQQI", "ticks address size stream pool0 pool1 scope"),
    SEGMENT_SEEN: ("<QQQQQQI", "ticks address size stream pool0 pool1 scope"),
    MARK: ("<QII", "ticks scope text"),
    SAVED_TENSOR: ("<QQQQqIB", "ticks address storage_bytes tensor_bytes sequence scope flags"),
    PHASE: ("<QQB3xII", "ticks step phase scope text"),
    NAME: ("<QQQQQIIBBB", "ticks address bytes belongs_to elements text key category element_bytes flags"),
}
_TYPES = {kind: (layout, collections.namedtuple("Event", f"kind device thread {fields}")) for kind, (layout, fields) in _LAYOUTS.items()}

Scope = collections.namedtuple("Scope", "parent name origin source flags")


class Ledger:
    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        self.texts = {0: ""}
        self.scopes = {}
        self.events = []
        chunks = collections.defaultdict(bytes)
        for offset in range(HEADER_BYTES, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
            kind, _, device, thread = struct.unpack_from("<HBbI", data, offset)
            if kind == TEXT:
                text, total, chunk = struct.unpack_from("<IHH", data, offset + 8)
                chunks[text] += data[offset + 16 : offset + 16 + min(48, total - 48 * chunk)]
                self.texts[text] = chunks[text].decode(errors="replace")
            elif kind == SCOPE:
                number, parent, name, _, origin, source, flags = struct.unpack_from("<IIIIIBB", data, offset + 16)
                self.scopes[number] = Scope(parent, self.texts[name], origin, source, flags)
            elif kind in _TYPES:
                layout, event = _TYPES[kind]
                self.events.append(event(kind, device, thread, *struct.unpack_from(layout, data, offset + 8)))

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]

    def settings(self):
        return {self.texts[event.key]: self.texts[event.value] for event in self.of(SETTING)}

    def path(self, scope):
        """From the outermost one inwards."""
        path = []
        while scope:
            path.append(self.scopes[scope])
            scope = path[-1].parent
        return path[::-1]

    def between(self, begin, end):
        """The events between two marks."""
        names = [self.texts[event.text] if event.kind == MARK else None for event in self.events]
        return self.events[names.index(begin) : names.index(end)]
