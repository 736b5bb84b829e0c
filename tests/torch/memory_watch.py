"""How much memory a process and all its descendants take."""

import collections
import pathlib
import re
import threading

INTERVAL_S = 1.0


def descendants(root):
    """The process itself and everything below it."""
    children = collections.defaultdict(list)
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            children[int(stat.read_text().rpartition(")")[2].split()[1])].append(int(stat.parent.name))
        except OSError:  # it ended meanwhile
            pass
    found = [root]
    for process in found:
        found += children[process]
    return found


def proportional_bytes(process):
    try:
        rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        return int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)[1]) * 1024
    except (OSError, TypeError):  # it ended meanwhile, or is a zombie
        return 0


class MemoryWatch:
    """Samples the sum of the proportional set sizes: memory that processes share counts once."""

    def __init__(self):
        self._ended = threading.Event()
        self._thread = None
        self._most_bytes = 0

    def start(self, process):
        self._thread = threading.Thread(target=self._sample, args=(process.pid,), daemon=True)
        self._thread.start()

    def stop(self):
        """Returns the most that was seen."""
        self._ended.set()
        self._thread.join()
        return self._most_bytes

    def _sample(self, root):
        while not self._ended.wait(INTERVAL_S):
            self._most_bytes = max(self._most_bytes, sum(map(proportional_bytes, descendants(root))))
