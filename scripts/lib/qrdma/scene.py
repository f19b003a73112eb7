# SPDX-License-Identifier: GPL-2.0-or-later
"""Chooses from a timeline what is worth a picture, and works out what it shows.

A scene is a run of windows of one key, each but the last of which left the region
empty: the invalidation of a region and the five steps that fill it again are two
windows, and one scene. Changes that nobody could see belong to it as well: of a
table that is empty, these are the first three steps.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Iterator

from .errors import Failure
from .timeline import WRONG, Access, Change, Interval, Mark, Timeline, Window

# Accesses shown before and after a scene, and wanted around it for it to be telling.
ACCESSES_AROUND = 40
# More steps than this are not legible.
MOST_STEPS = 12
PAGE_SIZE = re.compile(r"page size 2\^\d+ to 2\^\d+")
REVOKED = re.compile(r"\bfree\b|\bPD\b")


@dataclass
class Step:
    """Changes that count as one: a UMR's, or those of one of the five steps.

    states are the maps that it left, each with the time from which it was there.
    """

    name: str
    text: str
    changes: list[Change]
    states: list[tuple[int, list[Interval]]] = field(default_factory=list)

    @property
    def begin(self) -> int:
        return self.changes[0].time

    def kinds(self) -> set[str]:
        """The classes that occur in the maps it left."""
        return {interval.kind for _, state in self.states for interval in state}


@dataclass
class Run:
    """The windows of a scene, and what was changed since the run before it."""

    windows: list[Window]
    changes: list[Change]

    @property
    def index(self) -> int:
        return self.windows[-1].index

    @property
    def begin(self) -> int:
        return self.changes[0].time

    @property
    def end(self) -> int:
        return self.windows[-1].end


@dataclass
class Scene:
    """What is drawn: the map before, the steps, and the accesses around them."""

    run: Run
    before: list[Interval]
    steps: list[Step]
    accesses: list[Access]
    five: bool = False

    @property
    def begin(self) -> int:
        return self.run.begin

    @property
    def end(self) -> int:
        return self.run.end

    @property
    def region(self) -> Window:
        return self.run.windows[-1]

    def wrong(self) -> set[str]:
        return {kind for step in self.steps for kind in step.kinds() if kind in WRONG}

    def revoked(self) -> bool:
        return any(REVOKED.search(step.text) for step in self.steps)


def choose(timeline: Timeline, index: int | None = None) -> Scene:
    """The most telling scene, of one mkey if an index is given."""
    runs = [run for run in _runs(timeline) if index in (None, run.index)]
    if not runs:
        of = f" of mkey {index}" if index is not None else ""
        known = sorted({window.index for window in timeline.windows})
        raise Failure(f"no change{of} in the timeline {timeline.path}",
                      advice=f"it has changes of the mkeys {_some(known)}" if known else
                      "it is empty of changes: was the audit watching?")
    accesses = by_index(timeline.accesses)
    best = max(runs, key=lambda run: _worth(run, accesses.get(run.index, [])))
    return build(timeline, best, accesses.get(best.index, []))


def _some(numbers: list[int]) -> str:
    more = ", ..." if len(numbers) > 20 else ""
    return ", ".join(map(str, numbers[:20])) + more


def by_index(accesses: list[Access]) -> dict[int, list[Access]]:
    """The accesses by mkey, sorted by time."""
    result: dict[int, list[Access]] = {}
    for access in accesses:
        result.setdefault(access.index, []).append(access)
    return result


def _runs(timeline: Timeline) -> list[Run]:
    """Windows by key, in order, up to each that did not end empty, or to the key's end."""
    result: list[Run] = []
    runs: dict[int, Run] = {}

    def close(index: int) -> None:
        run = runs.pop(index, None)
        if run is not None and run.windows and run.changes:
            result.append(run)

    for _, _, what in sorted(_events(timeline), key=lambda event: event[:2]):
        run = runs.setdefault(what.index, Run([], []))
        if isinstance(what, Change):
            run.changes.append(what)
        elif isinstance(what, Window):
            run.windows.append(what)
            if what.outcome != "empty":
                close(what.index)
        else:
            close(what.index)
    for index in list(runs):
        close(index)
    return result


def _events(timeline: Timeline) -> Iterator[tuple[int, float, Change | Window | Mark]]:
    """Changes, ends of windows and lives of keys. In one moment the number decides."""
    for change in timeline.silent:
        yield change.time, change.number, change
    for window in timeline.windows:
        for change in window.changes:
            yield change.time, change.number, change
        last = max((change.number for change in window.changes), default=0)
        yield window.end, last + 0.5, window
    for mark in timeline.marks:
        if mark.kind in ("create", "destroy"):
            yield mark.time, -1 if mark.kind == "create" else math.inf, mark


def _worth(run: Run, accesses: list[Access]) -> tuple:
    """What is wrong comes first; then what happens, and whether traffic met it."""
    texts = {change.text for change in run.changes}
    numbers = {change.number for change in run.changes}
    first = bisect_left(accesses, run.begin, key=lambda access: access.begin)
    last = bisect_right(accesses, run.end, key=lambda access: access.begin)
    after = accesses[last:last + ACCESSES_AROUND]
    around = min(first, ACCESSES_AROUND) + len(after)
    revoked = any(REVOKED.search(text) for text in texts)
    sizes = sum(bool(PAGE_SIZE.search(text)) for text in texts)
    return (any(window.wrong() for window in run.windows), len(numbers) <= MOST_STEPS,
            2 * bool(around) + min(sizes, 2) + 2 * revoked +
            (revoked and any(not access.granted for access in after)),
            any(change.intervals for change in run.changes),
            min(len(numbers), 7), around, min(last - first, ACCESSES_AROUND),
            sum(len(change.intervals) for change in run.changes))


def build(timeline: Timeline, run: Run, accesses: list[Access]) -> Scene:
    """Works out the map after each change, and takes the accesses around."""
    region = run.windows[-1]
    before = [Interval(_settled_before(timeline, run), region.address,
                       region.address + region.length)]
    steps, five = _steps(run.changes)
    beginnings = [window.changes[0] for window in run.windows[1:] if window.changes]
    state = before
    for step in steps:
        for change in step.changes:
            if any(change is beginning for beginning in beginnings):
                state = _as_old(state)
            state = overlay(state, change.intervals)
            step.states.append((change.time, state))
    return Scene(run, before, steps, _around(timeline, run, accesses), five)


def _settled_before(timeline: Timeline, run: Run) -> str:
    """Whether the region showed anything before its first change here.

    The window before says so. Where there is none, the first change does: an
    absent or old byte was there before.
    """
    born = max((mark.time for mark in timeline.marks if mark.kind == "create"
                and mark.index == run.index and mark.time <= run.begin), default=0)
    earlier = [window for window in timeline.windows
               if window.index == run.index and born <= window.end <= run.begin
               and window is not run.windows[0]]
    if earlier:
        return "absent" if earlier[-1].outcome == "empty" else "old"
    kinds = {interval.kind for change in run.windows[0].changes
             for interval in change.intervals}
    return "old" if kinds & {"absent", "old"} or not kinds else "absent"


def _as_old(state: list[Interval]) -> list[Interval]:
    """Where a window begins, what was new in the one before is old."""
    return [interval._replace(kind="old") if interval.kind == "new" else interval
            for interval in state]


def overlay(state: list[Interval], news: tuple[Interval, ...]) -> list[Interval]:
    """The map with some intervals of it replaced; neighbours of one class are joined."""
    pieces = list(news)
    for old in state:
        begin = old.address
        for new in news:
            if new.end <= begin or new.address >= old.end:
                continue
            if new.address > begin:
                pieces.append(Interval(old.kind, begin, new.address))
            begin = new.end
        if begin < old.end:
            pieces.append(Interval(old.kind, begin, old.end))
    joined: list[Interval] = []
    for piece in sorted(pieces, key=lambda piece: piece.address):
        if joined and joined[-1].kind == piece.kind and joined[-1].end == piece.address:
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    return joined


def _around(timeline: Timeline, run: Run, accesses: list[Access]) -> list[Access]:
    """Accesses during the scene, and some before and after, up to the key's other changes."""
    others = [window for window in timeline.windows
              if window.index == run.index and window not in run.windows]
    begin = max((window.end for window in others if window.end <= run.begin), default=0)
    end = min((window.begin for window in others if window.begin >= run.end), default=None)
    inside = [access for access in accesses
              if access.end >= begin and (end is None or access.begin < end)]
    first = bisect_left(inside, run.begin, key=lambda access: access.begin)
    last = bisect_right(inside, run.end, key=lambda access: access.begin)
    return inside[max(first - ACCESSES_AROUND, 0):last + ACCESSES_AROUND]


def _steps(changes: list[Change]) -> tuple[list[Step], bool]:
    """The changes by UMR; where they are the five steps, as these."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and groups[-1][0].number == change.number:
            groups[-1].append(change)
        else:
            groups.append([change])
    five = _five(groups)
    if five is None:
        return [Step(str(number), _text(group), group)
                for number, group in enumerate(groups, 1)], False
    steps = [Step("", _text(group), group) for group in groups[:five[0]]]
    for number in range(5):
        parts = [change for group in groups[five[number]:five[number + 1]] for change in group]
        steps.append(Step(str(number + 1), _text(parts), parts))
    return steps, True


def _five(groups: list[list[Change]]) -> tuple[int, ...] | None:
    """Where the five steps begin, and their end; None if this is something else."""
    texts = [_text(group) for group in groups]
    sizes = [place for place, text in enumerate(texts) if PAGE_SIZE.fullmatch(text)]
    if len(sizes) < 2:
        return None
    second, fourth = sizes[-2:]
    first = max((place for place in range(second) if texts[place].startswith("entries 0..")),
                default=None)
    entries = all(texts[place].startswith("entries")
                  for place in (*range(second + 1, fourth), *range(fourth + 1, len(texts))))
    if first is None or not entries or fourth == second + 1 or fourth + 1 == len(texts):
        return None
    return first, second, second + 1, fourth, fourth + 1, len(texts)


def _text(changes: list[Change]) -> str:
    """What was done: entries that follow each other are told as one range."""
    parts: list[str] = []
    for change in changes:
        for part in change.text.split(", "):
            joined = _join(parts[-1], part) if parts else None
            if joined is not None:
                parts[-1] = joined
            elif not parts or parts[-1] != part:
                parts.append(part)
    return ", ".join(parts)


ENTRIES = re.compile(r"entries (\d+)\.\.(\d+)(.*)")


def _join(one: str, other: str) -> str | None:
    first, second = ENTRIES.fullmatch(one), ENTRIES.fullmatch(other)
    if first is None or second is None or first[3] != second[3]:
        return None
    if int(second[1]) == int(first[2]) + 1:
        return f"entries {first[1]}..{second[2]}{first[3]}"
    return f"entries {second[1]}..{first[2]}{first[3]}" \
        if int(first[1]) == int(second[2]) + 1 else None
