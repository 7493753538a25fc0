"""A picture of a model, drawn from the module itself: `diagram(model, input_shape, ...)`.

Boxes, arrows, shapes and parameters come from one real forward pass, see `_trace.stages`.
"""

from itertools import groupby, pairwise

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path
from torch import float32

from _style import COLOURS, INK, MUTED, PAPER
from _trace import count, stages

# Lengths in inches, y downwards; text sizes in points.
LINE, ROW, PAD, GAP, TITLE, MARGIN, GUTTER, SLOT = 0.19, 0.25, 0.08, 0.21, 0.29, 0.16, 0.36, 0.12
SMALL, NORMAL = 8, 9


def diagram(model, input_shape, style="flow", input_dtype=float32):
    """Draw the model as a matplotlib Figure: a lane for each stream, read from top to bottom.

    input_shape and input_dtype: one, or a tuple with one for each input, as in `_trace.stages`,
    which raises ValueError when they do not fit the model. The one `style` is "flow". The same
    model gives the same picture every time.
    """
    if style != "flow":
        raise ValueError(f"style={style!r} is unknown: the accepted style is 'flow'")
    return _Drawing(stages(model, input_shape, input_dtype)).figure


class _Drawing:
    """The stages in two lanes at most: the stream that ends in the output, left of it the others.

    Edges between neighbours are straight arrows. All others run through the channel right of the
    first lane, as a bus: one vertical line for each source.
    """

    def __init__(self, stages):
        self.stages = stages
        end = next(stage.stream for stage in stages if stage.kind == "output")
        main = [stage for stage in stages if stage.stream is end or stage.kind == "unused"]
        others = [stage for stage in stages if stage not in main]
        others.sort(key=lambda stage: stages.index(stage.stream))
        self.lanes = [lane for lane in (others, main) if lane]
        self.width = 3.4 / 1.25 ** (len(self.lanes) - 1)  # of a box
        self.lane = {stage: i for i, lane in enumerate(self.lanes) for stage in lane}
        self.above = {below: above for lane in self.lanes for above, below in pairwise(lane)}
        self.top = {}
        bottom = max(self._stack(lane) for lane in self.lanes)
        buses = self._buses()
        slots = max((slot + 1 for *_, slot in buses), default=0)
        channel = 2 * GUTTER + SLOT * slots if slots or len(self.lanes) > 1 else 0
        self.left = [2 * MARGIN, 2 * MARGIN + self.width + channel]
        width = self.left[len(self.lanes) - 1] + self.width + 2 * MARGIN
        if len(self.lanes) == 1:
            width += channel

        # Not layout="none": after a first save that falls back to the layout of the rcParams.
        layout = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
        self.figure = Figure((width, bottom + 0.42), facecolor=PAPER, layout=layout)
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(bottom + 0.42, 0))
        self.axes.set_axis_off()
        for lane in self.lanes:
            for role, members in groupby(lane, key=lambda stage: stage.role):
                if role:
                    self._draw_panel(role, list(members))
        for stage in stages:
            self._draw_stage(stage)
        for bus in buses:
            self._draw_bus(*bus)
        total = sum(stage.parameters for stage in stages)
        self._text(
            self.left[0], bottom + 0.25, f"{count(total, 'parameter')} in all", weight="bold"
        )

    def _stack(self, lane):
        """Set the top of each box of a lane; return the bottom of the last one."""
        y = MARGIN
        for role, members in groupby(lane, key=lambda stage: stage.role):
            y += TITLE if role else 0
            for stage in members:
                self.top[stage] = y
                y = self._bottom(stage) + GAP
            y += PAD if role else 0
        return y - GAP

    def _bottom(self, stage):
        lines = 2 if stage.parameters or stage.layers else 1
        height = PAD + LINE * lines + ROW * len(stage.layers) + (0.04 if stage.layers else 0)
        return self.top[stage] + height

    def _row(self, stage, i):
        """The y of the middle of a block's inner row."""
        return self.top[stage] + PAD / 2 + 2 * LINE + ROW * (i + 0.5) + 0.02

    def _buses(self):
        """Return (source, ends as (stage, y), whether attention reads it, slot) for each bus."""
        buses = {}
        for stage in self.stages:
            rows = [i for i, label in enumerate(stage.layers) if "cross-attention" in label]
            for source in stage.sources:
                read = bool(rows) and source.stream is not stage.stream
                ys = [self._row(stage, i) for i in rows] if read else [self.top[stage] + 0.07]
                if source is not self.above.get(stage):
                    buses.setdefault((source, read), []).extend((stage, y) for y in ys)
        taken, placed = [], []  # the slots in use: (slot, low, high)
        for (source, read), ends in buses.items():
            ys = [self._bottom(source), *(y for _, y in ends)]
            low, high, slot = min(ys), max(ys), 0
            while any(slot == s and low < b and a < high for s, a, b in taken):
                slot += 1
            taken.append((slot, low, high))
            placed.append((source, ends, read, slot))
        return placed

    def _side(self, stage):
        """The x of the side of a box that faces the channel."""
        return self.left[self.lane[stage]] + (0 if self.lane[stage] else self.width)

    def _draw_panel(self, role, members):
        x, y = self.left[self.lane[members[0]]], self.top[members[0]] - TITLE
        height = self._bottom(members[-1]) + PAD - y
        self._box(x - PAD, y, self.width + 2 * PAD, height, COLOURS[role], 0.06, line=0)
        parameters = count(sum(stage.parameters for stage in members), "parameter")
        self._line(x, self.width, y + TITLE / 2 + 0.01, role.capitalize(), "", parameters)

    def _draw_stage(self, stage):
        x, y = self.left[self.lane[stage]], self.top[stage]
        if (above := self.above.get(stage)) in stage.sources:
            middle = x + self.width / 2
            self._arrow((middle, self._bottom(above)), (middle, y), MUTED)
        tint = 0 if stage.kind in ("input", "output") else 0.14
        colour = COLOURS.get(stage.role or stage.kind, MUTED)
        self._box(x, y, self.width, self._bottom(stage) - y, colour, tint)
        left, width, line = x + PAD, self.width - 2 * PAD, y + (PAD + LINE) / 2
        about = stage.description + (f" · {stage.calls} calls" if stage.calls > 1 else "")
        shape = str(stage.output_shape) if stage.output_shape else ""
        if stage.parameters or stage.layers:
            parameters = count(stage.parameters, "parameter") if stage.parameters else ""
            self._line(left, width, line, stage.name, "", parameters)
            self._line(left, width, line + LINE, "", about, shape)
        else:
            self._line(left, width, line, stage.name, about, shape)
        for i, label in enumerate(stage.layers):
            attends = "-attention" in label
            colour, tint = (COLOURS["attention"], 0.2) if attends else (MUTED, 0)
            self._box(left, self._row(stage, i) - 0.1, width, 0.2, colour, tint, line=0.7)
            self._line(left + PAD, width - 2 * PAD, self._row(stage, i), "", label, "")

    def _draw_bus(self, source, ends, read, slot):
        colour, line = (COLOURS["attention"], 1.8) if read else (MUTED, 1)
        x = self.left[0] + self.width + GUTTER + SLOT * (slot + 0.5)
        start = self._bottom(source) - 0.07
        for stage, y in ends:
            path = [self._side(source), x, x], [start, start, y]
            self.axes.plot(*path, color=colour, lw=line, solid_joinstyle="round", zorder=1)
            side = self._side(stage)
            inset = PAD * read if side > x else -PAD * read
            self._arrow((x, y), (side + inset, y), colour, line)

    def _line(self, x, width, y, name, about, value):
        """A bold name and what it is on the left, a value on the right; the left cut to fit."""
        self._text(x + width, y, value, ha="right")
        width -= _width(value, SMALL) + 0.1 if value else 0
        name = _fit(name, width, NORMAL, "bold")
        self._text(x, y, name, NORMAL, weight="bold")
        indent = _width(name, NORMAL, "bold") + 0.1 if name else 0
        self._text(x + indent, y, _fit(about, width - indent, SMALL))

    def _text(self, x, y, text, size=SMALL, **options):
        self.axes.text(x, y, text, size=size, color=INK, va="center_baseline", zorder=4, **options)

    def _box(self, x, y, width, height, colour, tint, line=1):
        style = "round,pad=0,rounding_size=0.06"
        fill = [1 - tint * (1 - part) for part in to_rgb(colour)]
        options = {"fc": fill, "ec": colour, "lw": line, "zorder": 2 if line else 0}
        self.axes.add_patch(FancyBboxPatch((x, y), width, height, style, **options))

    def _arrow(self, start, end, colour, line=1):
        style = {"arrowstyle": "-|>,head_width=0.2,head_length=0.4", "color": colour, "lw": line}
        style |= {"shrinkA": 0, "shrinkB": 0, "joinstyle": "miter"}
        self.axes.annotate("", end, start, arrowprops=style, zorder=3)


def _width(text, size, weight="normal"):
    font = FontProperties(size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def _fit(text, width, size, weight="normal"):
    """Cut a text from the left until it fits: the end of a path says most."""
    short = text
    while len(short) > 1 and _width(short, size, weight) > width:
        text = text[1:]
        short = "…" + text
    return short if _width(short, size, weight) <= width else ""
