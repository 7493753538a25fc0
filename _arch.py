"""A picture of a model, drawn from the module itself: `diagram(model, input_shape, ...)`.

Boxes, arrows, shapes and parameters come from one real forward pass, see `_trace.stages`.
"""

from itertools import groupby

import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path

from _style import COLOURS, INK, MUTED, PAPER
from _trace import count, stages

# Lengths in inches, y downwards; text sizes in points.
LINE, ROW, PAD, GAP, TITLE, MARGIN, EDGE, CHANNEL = 0.19, 0.25, 0.08, 0.21, 0.29, 0.16, 0.32, 0.84
SMALL, NORMAL = 8, 9


def diagram(model, input_shape, style="flow", input_dtype=torch.float32):
    """Draw the model as a matplotlib Figure, read from top to bottom.

    input_shape and input_dtype: one, or a tuple with one for each input, as in `_trace.stages`,
    which raises ValueError when they do not fit the model. The one `style` is "flow". The same
    model gives the same picture every time.
    """
    if style != "flow":
        raise ValueError(f"style={style!r} is unknown: the accepted style is 'flow'")
    return _Drawing(stages(model, input_shape, input_dtype)).figure


class _Drawing:
    """Two lanes at most: the stream that ends in the output, and left of it all others.

    Edges between neighbours are straight arrows. All others run through the channel right of the
    first lane, as a bus: one vertical line for each source.
    """

    def __init__(self, stages):
        # Not layout="none": after a first save that falls back to the layout of the rcParams.
        layout = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
        self.figure = Figure(facecolor=PAPER, layout=layout)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()

        end = next(stage.stream for stage in stages if stage.kind == "output")
        main = [stage for stage in stages if stage.stream is end or stage.kind == "unused"]
        others = [stage for stage in stages if stage not in main]
        others.sort(key=lambda stage: stages.index(stage.stream))
        self.width = 2.72 if others else 3.4  # of a box
        self.wall = EDGE + self.width  # where the channel begins
        self.left, self.bottom, self.buses = {}, {}, {}
        bottom = self._draw_lane(others, EDGE)
        bottom = max(bottom, self._draw_lane(main, self.wall + CHANNEL if others else EDGE))
        self._draw_buses()
        total = count(sum(stage.parameters for stage in stages), "parameter")
        self._text(EDGE, bottom + 0.25, f"{total} in all", weight="bold")
        right = self.left[main[-1]] + self.width
        right, bottom = max(right + EDGE, self.wall + CHANNEL * bool(self.buses)), bottom + 0.42
        self.axes.set(xlim=(0, right), ylim=(bottom, 0))
        self.figure.set_size_inches(right, bottom)

    def _draw_lane(self, lane, x):
        """Draw boxes below each other, with a panel around those of one role; return the bottom."""
        y, above = MARGIN, None
        for role, members in groupby(lane, key=lambda stage: stage.role):
            start, parameters = y, 0
            y += TITLE if role else 0
            for stage in members:
                self._draw_stage(stage, above, x, y)
                parameters += stage.parameters
                above, y = stage, self.bottom[stage] + GAP
            if role:
                y += PAD
                size = self.width + 2 * PAD, y - GAP - start
                self._box(x - PAD, start, *size, COLOURS[role], 0.06, line=0)
                title = role.capitalize(), "", count(parameters, "parameter")
                self._line(x, self.width, start + 0.155, *title)
        return y - GAP

    def _draw_stage(self, stage, above, x, y):
        head = _head(stage)
        height = PAD + LINE * len(head) + (ROW * len(stage.layers) + 0.04 if stage.layers else 0)
        self.left[stage], self.bottom[stage] = x, y + height
        tint = 0 if stage.kind in ("input", "output") else 0.14
        self._box(x, y, self.width, height, COLOURS.get(stage.role or stage.kind, MUTED), tint)
        left, width, row = x + PAD, self.width - 2 * PAD, y + (PAD + LINE) / 2
        for i, texts in enumerate(head):
            self._line(left, width, row + LINE * i, *texts)
        ends = {False: [y + 0.07], True: []}  # where a bus arrives, and one that attention reads
        for i, label in enumerate(stage.layers):
            row = y + PAD / 2 + 2 * LINE + ROW * (i + 0.5) + 0.02
            colour, tint = (COLOURS["attention"], 0.2) if "-attention" in label else (MUTED, 0)
            self._box(left, row - 0.1, width, 0.2, colour, tint, line=0.7)
            self._line(left + PAD, width - 2 * PAD, row, "", label)
            ends[True] += [row] if "cross-attention" in label else []
        for source in stage.sources:
            read = bool(ends[True]) and source.stream is not stage.stream
            if source is above:
                self._arrow(
                    (x + self.width / 2, self.bottom[above]), (x + self.width / 2, y), MUTED
                )
            else:
                bus = self.buses.setdefault((source, read), [])
                bus += [(stage, end) for end in ends[read]]

    def _draw_buses(self):
        for i, ((source, read), ends) in enumerate(self.buses.items(), start=1):
            colour, line, inset = (COLOURS["attention"], 1.8, PAD) if read else (MUTED, 1, 0)
            x, y = self.wall + CHANNEL * i / (len(self.buses) + 1), self.bottom[source] - 0.07
            for stage, end in ends:
                path = [max(self.wall, self.left[source]), x, x], [y, y, end]
                self.axes.plot(*path, color=colour, lw=line, solid_joinstyle="round", zorder=1)
                left = self.left[stage]
                tip = self.wall - inset if left < self.wall else left + inset
                self._arrow((x, end), (tip, end), colour, line)

    def _line(self, x, width, y, name, about="", value=""):
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


def _head(stage):
    """The first line or two of a box: name, what it is, a number or shape."""
    calls = f" · {stage.calls} calls" if stage.calls > 1 else ""
    about = stage.description.removeprefix("torch.") + calls
    shape = "" if stage.kind == "unused" else str(stage.output_shape)
    if not (stage.parameters or stage.layers):
        return [(stage.name, about, shape)]
    parameters = count(stage.parameters, "parameter") if stage.parameters else ""
    return [(stage.name, "", parameters), ("", about, shape)]


def _width(text, size, weight="normal"):
    font = FontProperties(size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def _fit(text, width, size, weight="normal"):
    """Cut a text from the left until it fits: the end of a path says most."""
    while len(text) > 1 and _width(text, size, weight) > width:
        text = "…" + text[2:]
    return text
