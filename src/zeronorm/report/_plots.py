"""The pictures of the report on matplotlib axes, with the width and font sizes of a journal column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from zeronorm.report._svg import MOST_WITH_INTERVALS, N_COLOURS, ZERO_ON_LOG, log_ticks, shape_number, visible

if TYPE_CHECKING:
    from zeronorm.report._cells import Bars, Grid
    from zeronorm.report._lines import Lines, Point

COLOURS = ("#0072b2", "#c74a00", "#007f5c", "#a8538a", "#a06a00", "#5f7d00", "#4d4d4d", "#7a4fbf")
SHAPES = ("o", "s", "^", "D")
DASHES = ("-", "--", ":")
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "figure.dpi": 150,
}
LEVELS = {
    "d": ("#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f2f2f2", "#fddbc7", "#f4a582", "#d6604d", "#b2182b"),
    "m": ("#eef0f4", "#8db8dc", "#0b63b0"),
}


def printable(name: str, limit: int) -> str:
    """A name without the symbol for a line break, which the fonts of matplotlib do not have."""
    return visible(name.replace("\n", " ").replace("\t", " "), limit)


@contextmanager
def journal_style() -> Iterator[Any]:
    """``matplotlib.pyplot`` with the font sizes and line widths of a printed figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: install it with `pip install zeronorm[app]`.") from error
    with plt.rc_context(STYLE):
        yield plt


def new_axes(width: float, height: float) -> Any:
    """The axes of a new figure of this size in inches."""
    with journal_style() as plt:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]


def draw_lines(ax: Any, lines: Lines) -> None:
    """Draw lines with their intervals, guides and a legend."""
    series = lines.finite
    for index, line in enumerate(series):
        colour = COLOURS[index % N_COLOURS]
        joined = [p for p in line.points if not p.is_chosen] or list(line.points)
        if line.path:
            ax.plot(*zip(*line.path, strict=True), color=colour)
        if line.beside:
            ax.plot(*zip(*line.beside, strict=True), color=colour, linestyle=":")
        ax.errorbar(
            [_shown_x(p.x, lines) for p in joined],
            [p.y for p in joined],
            None if len(series) > MOST_WITH_INTERVALS else _half_widths(joined),
            color=colour,
            marker=SHAPES[shape_number(index)],
            linestyle="none" if line.path else DASHES[index // N_COLOURS % 3],
            elinewidth=0.7,
            capsize=1.5,
            label=printable(line.name, 30),
        )
        for p in line.points:
            if p.is_chosen:
                ax.plot(
                    [_shown_x(p.x, lines)],
                    [p.y],
                    marker="o",
                    markersize=9,
                    mfc="none",
                    mec=colour,
                    linestyle="none",
                )
    for level, _ in lines.guides.levels:
        ax.axhline(level, color=COLOURS[1], linestyle="--", linewidth=0.8)
    if lines.guides.diagonal:
        ax.axline((0, 0), (1, 1), color=COLOURS[1], linestyle="--", linewidth=0.8)
    for position, _ in lines.guides.positions:
        ax.axvline(position, color="#555555", linestyle=":", linewidth=0.8)
    _finish(ax, lines)
    if len(series) > 3:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    elif len(series) > 1:
        ax.legend()


def _half_widths(points: Sequence[Point]) -> list[list[float]]:
    """Lengths of the intervals below and above the points; 0 where there is none."""
    low = [0.0 if p.low is None else max(0.0, p.y - p.low) for p in points]
    high = [0.0 if p.high is None else max(0.0, p.high - p.y) for p in points]
    return [low, high]


def _shown_x(x: float, lines: Lines) -> float:
    return max(x, ZERO_ON_LOG) if lines.axes.x_log else x


def _finish(ax: Any, lines: Lines) -> None:
    """Set labels, bounds and ticks with plain numbers."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes = lines.axes
    ax.set(xlabel=axes.x_label, ylabel=axes.y_label)
    if axes.x_log:
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xticks(log_ticks(low, high))
        ax.set_xlim(low, high)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: "0" if v == ZERO_ON_LOG else f"{v:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    elif None not in axes.x_bounds:
        ax.set_xlim(*axes.x_bounds)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: axes.y_format(value)))
    lowest, highest = axes.y_bounds
    bottom, top = ax.get_ylim()
    bottom = bottom if lowest is None else (0.0 if lowest == 0.0 else max(bottom, lowest))
    ax.set_ylim(bottom, top if highest is None else min(top, highest + 0.02 * (highest - bottom)))


def draw_bars(ax: Any, bars: Bars) -> None:
    """Draw horizontal bars, the first on top."""
    shown = bars.bars
    positions = range(len(shown))
    colours = [COLOURS[0] if bar.is_selected else "#cfe1f2" for bar in shown]
    ax.barh(positions, [bar.share for bar in shown], color=colours, height=0.7)
    ax.set_yticks(positions, [printable(bar.name, 30) for bar in shown])
    ax.invert_yaxis()
    ax.set(xlabel=bars.x_label)
    if bars.chance is not None:
        ax.axvline(bars.chance[0], color=COLOURS[1], linestyle="--", linewidth=0.8)


def draw_grid(ax: Any, grid: Grid) -> None:
    """Draw a heat map in the colours of the report, with names of rows and columns."""
    from matplotlib.colors import ListedColormap

    scale: dict[str, Any]
    if grid.palette == "r":
        scale = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}
    elif grid.palette == "p":
        scale = {"cmap": "Blues", "vmin": 0, "vmax": 1}
    else:
        colours = LEVELS[grid.palette]
        scale = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": len(colours) - 0.5}
    image = ax.imshow(grid.levels, aspect="auto", interpolation="nearest", **scale)
    ax.set_yticks(range(len(grid.rows)), [printable(name, 30) for name in grid.rows])
    ticks = grid.column_ticks
    turn = 90 if sum(len(text) for _, text in ticks) > 40 else 0
    ax.set_xticks(
        [position for position, _ in ticks], [printable(text, 20) for _, text in ticks], rotation=turn
    )
    ax.set(xlabel=grid.x_label)
    for i, row in enumerate(grid.shown or []):
        for j, text in enumerate(row):
            ink = "white" if abs(grid.levels[i][j]) > 0.6 else "black"
            ax.text(j, i, text, ha="center", va="center", color=ink)
    if grid.marked is not None:
        ax.axvline(grid.marked, color="black", linewidth=0.8, linestyle=":")
    if grid.palette in ("r", "p") and grid.shown is None:
        ax.figure.colorbar(image, ax=ax, shrink=0.7)
