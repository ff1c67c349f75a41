"""Pictures as SVG that takes the colours of the page: light, dark or paper."""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CHARACTER = 6.7  # mean width of a character at the size that labels have


def tag(name: str, text: str | None = None, **attributes: object) -> str:
    """Write one element; everything that comes from outside is escaped."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}/>" if text is None else f"<{name}{pairs}>{html.escape(text)}</{name}>"


def _written(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def picture(parts: Iterable[str], width: float, height: float, label: str, css: str) -> str:
    """Frame the parts; a screen reader says the label."""
    return (
        f'<svg class="{css}" viewBox="0 0 {_written(width)} {_written(height)}" role="img" '
        f'aria-label="{html.escape(label)}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def shortened(text: str, width: float) -> str:
    """Cut a text to what fits."""
    most = max(3, int(width / _CHARACTER))
    return text if len(text) <= most else text[: most - 1] + "…"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two ends."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Scale:
    """A straight line from values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = 0.5 if self.high == self.low else (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


Box = tuple[float, float, float, float]


def _overlaps(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place_labels(points: Sequence[tuple[float, float, str]], frame: Box) -> list[tuple[float, float, str]]:
    """Find a place beside each point where its label hides neither another label nor a point.

    Returns x, y and text anchor of each label. Tried in order: right, left, above, below, and farther away; if all
    are taken, the one that hides least.
    """
    taken: list[Box] = [(x - 8, y - 8, x + 8, y + 8) for x, y, _ in points]
    placed = []
    for x, y, text in points:
        w, h = _CHARACTER * len(text), 15.0
        best: tuple[int, float, float, str, Box] | None = None
        for dx, dy, anchor in (
            (14, 4, "start"),
            (-14, 4, "end"),
            (0, -13, "middle"),
            (0, 23, "middle"),
            (10, -12, "start"),
            (-10, -12, "end"),
            (10, 20, "start"),
            (-10, 20, "end"),
            (0, -28, "middle"),
            (0, 38, "middle"),
            (14, -26, "start"),
            (14, 34, "start"),
        ):
            left = x + dx - {"start": 0.0, "middle": w / 2, "end": w}[anchor]
            box = (left, y + dy - 12, left + w, y + dy - 12 + h)
            hidden = sum(_overlaps(box, other) for other in taken)
            outside = box[0] < frame[0] or box[2] > frame[2] or box[1] < frame[1] or box[3] > frame[3]
            cost = hidden + 3 * outside
            if best is None or cost < best[0]:
                best = (cost, x + dx, y + dy, anchor, box)
        assert best is not None
        taken.append(best[4])
        placed.append((best[1], best[2], best[3]))
    return placed
