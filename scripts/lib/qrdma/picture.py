# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws a scene of the timeline: iova against virtual time, by what each byte shows.

The steps are far closer together than the accesses around them, and the parts of
a region that they treat differ by orders of magnitude. Neither axis is to scale,
therefore: a step is a column, its time stands below it; where few parts differ,
each is high enough to be seen, its size stands at its side.
"""

from __future__ import annotations

import os
import textwrap
from bisect import bisect_right
from pathlib import Path
from typing import Any

from . import paths, scene as scenes, timeline
from .errors import Failure
from .scene import Scene, Step
from .timeline import CLASSES, Interval

COLOURS = {"absent": "#eceff1", "old": "#6b9bd1", "new": "#7fbf7b", "torn": "#d7191c",
           "widened": "#fd8d3c", "stale": "#984ea3"}
MEANINGS = {"absent": "absent: no access passes", "old": "old: as before", "new": "new: as after",
            "torn": "TORN: neither old, nor new, nor absent",
            "widened": "WIDENED: more rights than before and after",
            "stale": "STALE: still as before, though revoked"}
HATCHES = {"torn": "xx", "widened": "//", "stale": "\\\\"}
# Parts of a region that are still told apart, and the least height of one.
MOST_PARTS = 12
LEAST_SHARE = 0.09
# Columns before the first step and after the last.
MARGIN = 1.3


class Axis:
    """Maps values to places, linearly between knots."""

    def __init__(self, knots: list[tuple[int, float]]) -> None:
        self.values = [value for value, _ in knots]
        self.places = [place for _, place in knots]

    def __call__(self, value: int) -> float:
        at = min(max(bisect_right(self.values, value), 1), len(self.values) - 1)
        low, high = self.values[at - 1], self.values[at]
        value = min(max(value, low), high)
        share = (value - low) / (high - low) if high > low else 0.0
        return self.places[at - 1] + share * (self.places[at] - self.places[at - 1])


def time_axis(scene: Scene) -> Axis:
    """A column a step; accesses before and after have margins."""
    first = scene.steps[0].begin
    end = max(scene.end, scene.steps[-1].states[-1][0] + 1)
    begin = min([first - 1, *(access.begin for access in scene.accesses)])
    last = max([end + 1, *(access.end for access in scene.accesses)])
    knots = [(begin, -MARGIN)]
    knots += [(step.begin, float(column)) for column, step in enumerate(scene.steps)]
    return Axis([*knots, (end, float(len(scene.steps))), (last, len(scene.steps) + MARGIN)])


def parts(scene: Scene) -> list[int]:
    """The addresses at which the map after some step changes its class, and both ends."""
    region = scene.region
    found = {region.address, region.address + region.length}
    for step in scene.steps:
        for interval in step.states[-1][1]:
            found |= {interval.address, interval.end}
    return sorted(found)


def address_axis(scene: Scene) -> tuple[Axis, bool]:
    """Places of 0 to 1; whether they are to scale."""
    edges = parts(scene)
    whole = edges[-1] - edges[0]
    shares = [(high - low) / whole for low, high in zip(edges, edges[1:])] if whole else [1.0]
    scaled = len(shares) <= MOST_PARTS and min(shares) < LEAST_SHARE
    if scaled:
        shares = [max(share, LEAST_SHARE) for share in shares]
        shares = [share / sum(shares) for share in shares]
    if len(shares) > MOST_PARTS or not whole:
        return Axis([(edges[0], 0.0), (max(edges[-1], edges[0] + 1), 1.0)]), True
    places = [sum(shares[:count]) for count in range(len(shares) + 1)]
    return Axis(list(zip(edges, places))), not scaled


def size(count: int) -> str:
    """Bytes in the largest unit that gives a whole number."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def time(nanoseconds: int) -> str:
    """A span in the unit that suits it."""
    for divisor, unit in ((10 ** 9, "s"), (10 ** 6, "ms"), (10 ** 3, "µs")):
        if nanoseconds >= divisor:
            return f"{nanoseconds / divisor:.3f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{nanoseconds} ns"


def title(scene: Scene) -> str:
    """What is seen."""
    region = scene.region
    lines = [f"mkey {region.index} (key {region.key:#x}), {size(region.length)} "
             f"at {region.address:#x}"]
    kinds = {kind for step in scene.steps for kind in step.kinds()}
    wrong = scene.wrong()
    if wrong:
        steps = [step for step in scene.steps if step.kinds() & wrong]
        during = [access for access in scene.accesses if access.granted
                  and scene.begin <= access.begin <= scene.end]
        lines.append(f"{' and '.join(sorted(wrong)).upper()} after "
                     f"“{_said(steps[0])}”: bytes that show neither what was nor what "
                     f"will be; {len(during)} accesses passed meanwhile")
    elif scene.revoked():
        after = [access for access in scene.accesses if access.begin >= scene.begin]
        refused = sum(not access.granted for access in after)
        lines.append(f"revoked at once: of {len(after)} accesses from then on "
                     f"{refused} were refused, {len(after) - refused} passed")
    elif scene.five:
        lines.append("the page size changes in five steps: a byte shows its old place, nothing, "
                     "or its new place")
    elif kinds <= {"absent", "old"}:
        lines.append("taken away: from old to absent, nothing else in between")
    elif kinds <= {"absent", "new"} and scene.before[0].kind == "absent":
        lines.append("filled: from absent to new, nothing else in between")
    else:
        lines.append("changed: a byte shows its old place, nothing, or its new place")
    return "\n".join(lines)


def _said(step: Step) -> str:
    number = f"{step.name} " if step.name else ""
    return number + (step.text if len(step.text) <= 60 else step.text[:57] + "...")


def _pyplot() -> Any:
    """matplotlib without a display; its caches go where ours are."""
    os.environ.setdefault("MPLCONFIGDIR", str(paths.cache() / "matplotlib"))
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Failure(f"cannot draw: {error}", advice="run scripts/install") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    return pyplot


def draw(scene: Scene, target: Path, name: str) -> None:
    """Writes the picture as PNG; name stands first in its title."""
    pyplot = _pyplot()
    columns = len(scene.steps) + 2 * MARGIN
    width = min(max(1.55 * columns, 10.0), 20.0)
    figure, axes = pyplot.subplots(figsize=(width, 7.5))
    try:
        x, (y, to_scale) = time_axis(scene), address_axis(scene)
        _draw_maps(axes, scene, y)
        _draw_accesses(axes, scene, x, y)
        _label_times(axes, scene)
        _label_addresses(axes, scene, y, to_scale)
        words = [textwrap.fill(line, int(width * 9.5))
                 for line in f"{name}: {title(scene)}".splitlines()]
        axes.set_title("\n".join(words), loc="left", fontsize=12, pad=32)
        _legend(axes, scene)
        figure.tight_layout()
        figure.savefig(target, dpi=110)
    except OSError as error:
        raise Failure(f"cannot write the picture {target}: {error.strerror}") from error
    finally:
        pyplot.close(figure)


def spans(scene: Scene) -> list[tuple[float, float, list[Interval]]]:
    """The maps with the columns in which they were there.

    A step has its column even if the next one came in the same moment.
    """
    states = [(-MARGIN, scene.before)]
    ends = [step.begin for step in scene.steps[1:]] + [scene.end]
    for column, (step, end) in enumerate(zip(scene.steps, ends)):
        lasted = end - step.begin
        for since, state in step.states:
            share = min((since - step.begin) / lasted, 1.0) if lasted > 0 else 0.0
            states.append((column + share, state))
    until = [begin for begin, _ in states[1:]] + [len(scene.steps) + MARGIN]
    return [(begin, end, state) for (begin, state), end in zip(states, until) if end > begin]


def _draw_maps(axes: Any, scene: Scene, y: Axis) -> None:
    from matplotlib.collections import PolyCollection  # pylint: disable=import-outside-toplevel

    maps = spans(scene)
    for kind in CLASSES:
        corners = [((begin, y(part.address)), (end, y(part.address)), (end, y(part.end)),
                    (begin, y(part.end)))
                   for begin, end, state in maps for part in state if part.kind == kind]
        if corners:
            axes.add_collection(PolyCollection(
                corners, facecolors=COLOURS[kind], hatch=HATCHES.get(kind), linewidths=0,
                edgecolors="white" if kind in HATCHES else "none"))
    for column, step in enumerate(scene.steps):
        axes.axvline(column, color="black", linewidth=0.8, linestyle=":")
        axes.text(column, 1.015, step.name, ha="center", va="bottom", fontsize=12,
                  fontweight="bold", color="white" if step.name else "black",
                  bbox={"boxstyle": "circle,pad=0.25", "facecolor": "#333333",
                        "edgecolor": "none"} if step.name else None)
    axes.set_xlim(-MARGIN, len(scene.steps) + MARGIN)
    axes.set_ylim(0, 1)


def _draw_accesses(axes: Any, scene: Scene, x: Axis, y: Axis) -> None:
    """A dot where the key was translated, a line as long as the data moved."""
    for granted, colour, marker in ((True, "black", "o"), (False, "#c2185b", "X")):
        chosen = [access for access in scene.accesses if access.granted == granted]
        places = [y(access.address + access.length // 2) for access in chosen]
        begins = [x(access.begin) for access in chosen]
        axes.hlines(places, begins, [x(access.end) for access in chosen], color=colour,
                    linewidth=1.0, alpha=0.6)
        axes.scatter(begins, places, s=22 if granted else 48, c=colour, marker=marker,
                     linewidths=0.5, edgecolors="white", zorder=3)


def _label_times(axes: Any, scene: Scene) -> None:
    """Below each step: what it did, and when, counted from the first."""
    labels = []
    before = scene.before
    for step in scene.steps:
        after = step.states[-1][1]
        silent = "\n(no byte changes)" if all(state == before for _, state in step.states) else ""
        before = after
        text = step.text if len(step.text) <= 60 else step.text[:57] + "..."
        labels.append(textwrap.fill(text, 15) + silent + f"\n+{time(step.begin - scene.begin)}")
    axes.set_xticks(range(len(scene.steps)), labels, fontsize=8)
    axes.set_xlabel(f"virtual time from {time(scene.begin)} on; a column a step, not to scale. "
                    f"All of it took {time(scene.end - scene.begin)}")


def _label_addresses(axes: Any, scene: Scene, y: Axis, to_scale: bool) -> None:
    edges = parts(scene)
    if len(edges) > MOST_PARTS + 1:
        edges = [edges[0] + (edges[-1] - edges[0]) * part // 8 for part in range(9)]
    axes.set_yticks([y(edge) for edge in edges],
                    [f"+{size(edge - edges[0])}" for edge in edges], fontsize=9)
    axes.set_ylabel(f"iova, from {edges[0]:#x}" + ("" if to_scale else " (not to scale)"))


def _legend(axes: Any, scene: Scene) -> None:
    from matplotlib import lines, patches  # pylint: disable=import-outside-toplevel

    kinds = {interval.kind for interval in scene.before}
    kinds |= {kind for step in scene.steps for kind in step.kinds()}
    handles: list[Any] = [
        patches.Patch(facecolor=COLOURS[kind], hatch=HATCHES.get(kind), edgecolor="white"
                      if kind in HATCHES else "grey", label=MEANINGS[kind])
        for kind in CLASSES if kind in kinds]
    for granted, colour, marker, word in ((True, "black", "o", "granted"),
                                          (False, "#c2185b", "X", "refused, or waits for a page")):
        count = sum(access.granted == granted for access in scene.accesses)
        if count:
            handles.append(lines.Line2D([], [], color=colour, marker=marker, linewidth=1.0,
                                        label=f"access {word} ({count} shown)"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.19),
                ncol=3, fontsize=9, frameon=False)


def from_file(source: Path, target: Path, name: str, index: int | None = None) -> Scene:
    """Draws the most telling scene of a timeline file."""
    content = timeline.read(source)
    scene = scenes.choose(content, index)
    draw(scene, target, name + (" (timeline was cut)" if content.cut else ""))
    return scene
