"""How every lesson looks: colours, figures with captions and alt text, tables, measured sentences.

A lesson calls `start()` before anything else and `footer()` in its last cell.
"""

import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO

import cpuinfo
import matplotlib.pyplot as plt
import torch
from IPython.display import Markdown, display
from PIL import Image
from scipy.stats import binomtest

from _memory import peak_megabytes

# The palette of Okabe and Ito (2008), "Color universal design": one meaning a colour.
COLOURS = {
    "encoder": "#0072B2",
    "decoder": "#D55E00",
    "attention": "#009E73",
    "embedding": "#CC79A7",
}
MUTED = "#7a8288"
INK = "#1d2429"
PAPER = "#ffffff"

COLUMN_WIDTH = 10
PIXELS_PER_INCH = 96

_clock = {}


def start():
    """Set the look of figures and start the clock that `footer` reads."""
    _clock["start"] = time.monotonic()
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "axes.edgecolor": MUTED,
            "axes.labelcolor": INK,
            "axes.prop_cycle": plt.cycler(color=COLOURS.values()),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
            "figure.constrained_layout.use": True,
            "figure.dpi": PIXELS_PER_INCH,
            "figure.figsize": (7, 3),
            "font.size": 10,
            "image.cmap": "gray_r",
            "legend.frameon": False,
            "savefig.facecolor": PAPER,
            "svg.fonttype": "none",
            "svg.hashsalt": "reading-in-order",
            "text.color": INK,
            "xtick.color": MUTED,
            "xtick.labelcolor": INK,
            "ytick.color": MUTED,
            "ytick.labelcolor": INK,
        }
    )


def quiet(ax):
    """Take away everything but the picture: for axes that show pixels. Returns `ax`."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    return ax


def with_palette(png):
    """A PNG file with at most 256 colours: bytes, about half of those of the file given."""
    smaller = BytesIO()
    Image.open(png).convert("RGB").quantize(256).save(smaller, format="png", optimize=True)
    return smaller.getvalue()


def _caption(kind, number, caption, name):
    """Display the numbered caption of the figure or table above it; the pages move it there."""
    display(
        Markdown(f"**{kind} {number}.** {caption}"),
        metadata={"caption": number, "of": kind.lower(), "name": name},
    )


def _check_text(of, **texts):
    for name, text in texts.items():
        if not text.strip():
            raise ValueError(f"{of} has an empty {name}: write what a reader would see")


def show(fig, number, caption, alt, kind="svg", name=None, card=False):
    """Display a figure with its number, caption and alt text, and close it.

    caption states what the figure shows; alt says what a person would see. kind is "svg" for
    lines and text, "png" for pixels. The alt text travels in the output's metadata, from where
    the pages take it. Text that refers to a figure links to its name: `[Figure 2](#its-name)`.
    The one figure of a lesson with card=True stands for the lesson on the index and where its
    page is shared. Raises ValueError for another kind or an empty caption or alt text.
    """
    if kind not in ("svg", "png"):
        raise ValueError(f'kind is {kind!r}: use "svg" for lines and text, "png" for pixels')
    _check_text(f"figure {number}", caption=caption, alt=alt)

    pictures = {}
    if kind == "svg":
        buffer = BytesIO()
        fig.savefig(buffer, format="svg", metadata={"Date": None})
        pictures["image/svg+xml"] = buffer.getvalue().decode()
    if kind == "png" or card:
        buffer = BytesIO()
        fig.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH, metadata={"Software": None})
        pictures["image/png"] = with_palette(buffer)
    width, height = (round(inches * PIXELS_PER_INCH) for inches in fig.get_size_inches())
    plt.close(fig)

    described = {"alt": alt, "width": width, "height": height}
    display(
        {**pictures, "text/plain": f"Figure {number}: {alt}"},
        metadata=dict.fromkeys(pictures, described) | ({"card": True} if card else {}),
        raw=True,
    )
    _caption("Figure", number, caption, name)


def table(headers, rows, number, caption, name=None):
    """Print a table whose columns keep their width whatever the numbers are, and its caption.

    number, caption and name are those of `show`. rows is a list, or a generator whose rows are
    printed as they come. The first column is left-aligned, as wide as its longest cell in a list
    and as its header for a generator; every other column is right-aligned in `COLUMN_WIDTH`
    characters or those of its header. Cells are printed as they are: format numbers before.
    Raises ValueError for a row of another length than the header, a cell too wide for its column
    or an empty caption.
    """
    _check_text(f"table {number}", caption=caption)
    labels = [row[0] for row in rows if row] if isinstance(rows, list) else []
    first = max(len(str(label)) for label in [headers[0], *labels])
    widths = [first, *(max(COLUMN_WIDTH, len(header)) for header in headers[1:])]

    def line(cells):
        if len(cells) != len(headers):
            raise ValueError(f"row {cells} has {len(cells)} cells, the header {len(headers)}")
        for cell, header, width in zip(cells, headers, widths, strict=True):
            if len(str(cell)) > width:
                raise ValueError(f"{cell!r} is wider than the {width} of its column {header!r}")
        padded = [str(cell).rjust(width) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join([str(cells[0]).ljust(first), *padded[1:]]).rstrip()

    print(line(headers))
    print("  ".join("-" * width for width in widths))
    for row in rows:
        print(line(row))
    _caption("Table", number, caption, name)


def prose(text):
    """Display a sentence that quotes measured numbers, as Markdown."""
    display(Markdown(text))


def headline(text):
    """Display the lesson's main result; the index and the README repeat this sentence."""
    display(Markdown(text), metadata={"headline": True})


def wilson(right, total):
    """Share of `right` out of `total` and its 95 % Wilson interval, all three in per cent."""
    low, high = binomtest(right, total).proportion_ci(method="wilson")
    return 100 * right / total, 100 * low, 100 * high


def percent(right, total):
    """The same as text, such as `50.0 % [47.8, 52.2]`."""
    return "{:.1f} % [{:.1f}, {:.1f}]".format(*wilson(right, total))


def footer():
    """Print when, where and with what the lesson was built, and what time and memory it took."""
    if "start" not in _clock:
        raise RuntimeError("the clock is not running: call _style.start() first")
    seconds = time.monotonic() - _clock["start"]
    facts = {
        "built": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "seconds": f"{seconds:.0f}",
        "memory": f"{peak_megabytes():.0f} MB at most",
        "platform": f"{platform.system()} {platform.machine()}",
        "CPU": cpuinfo.get_cpu_info().get("brand_raw", "unknown"),
        "threads": f"{torch.get_num_threads()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numpy", "matplotlib")},
    }
    lines = "\n".join(f"{name:<12}{value}" for name, value in facts.items())
    display({"text/plain": lines}, metadata={"seconds": round(seconds)}, raw=True)
