"""When all of the interpreter's objects are searched for models, optimizers and copies of the weights, which takes tens of
milliseconds: the program may make some at any time.

After the first steps and then ever more seldom; and when there is more memory in use, by what a copy of a model would take,
than there was at some time since the last search. What may be a copy if it lasts is looked at once more, a step later.
"""

_FIRST = (1, 2, 8)
_TIMES = 4  # after the last of these: that many times as many steps each time
# Between two searches for growth: this share of the steps until then, and at most so many steps.
_SHARE, _AT_MOST = 0.5, 100
# No growth below this is looked into.
_LEAST_BYTES = 1 << 20


class Searches:
    def __init__(self):
        self._next = _FIRST[0]
        self._last = 0  # the step of the last one
        self._lowest = 0  # bytes in use, at some time since then
        self._again = None  # the step after which there is another one, whatever else

    def due(self, step):
        return step in (self._next, self._again)

    def has_grown(self, step, used, copy_bytes):
        """`used`: bytes in use after this step; `copy_bytes`: what a copy of a model takes, at least."""
        self._lowest = min(self._lowest, used)
        seldom = step - self._last >= min(self._last * _SHARE, _AT_MOST)
        return seldom and used - self._lowest >= max(copy_bytes, _LEAST_BYTES)

    def done(self, step, used, undecided):
        """`undecided`: there may be copies, if they last. A search that came for them leaves it at that."""
        while self._next <= step:
            self._next = next((first for first in _FIRST if first > step), self._next * _TIMES)
        self._last = step
        self._lowest = used
        self._again = step + 1 if undecided and step != self._again else None
