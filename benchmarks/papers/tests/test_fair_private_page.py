"""What the pages on FairPrivateClassifier say in words is what their tables say in numbers."""

import math
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.papers._shipped import TABLES

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE, GUIDE = "reproduction/fair_private.md", "guide/fair_private.md"
FAIR, MORE = "fair private trees", ", on 80 %"
BINARY = ("adult", "credit", "bank", "celeba")


@cache
def text(place: str) -> str:
    return " ".join((DOCS / place).read_text(encoding="utf-8").split())


@cache
def table(data: str) -> pd.DataFrame:
    path = TABLES / f"fair-private-guide-full-{data}.csv"
    return pd.read_csv(path, keep_default_na=False, dtype=str).set_index(["method", "exact epsilon"])


def value(data: str, method: str, column: str = "TPR-gap", epsilon: str = "∞") -> float:
    """The mean over the splits."""
    return float(re.match(r"-?[\d.]+", table(data).loc[(method, epsilon), column]).group())


def values(method: str, column: str = "TPR-gap", sets=("adult", "bank", "celeba")) -> list[float]:
    return [value(data, method, column) for data in sets]


def at_epsilons(method: str, column: str) -> list[float]:
    """On Adult at 8, 4 and 3, for which something was asked."""
    return [value("adult", method, column, epsilon) for epsilon in ("8", "4", "3")]


def every(column: str, sets=(*BINARY, "adult-race", "made-multiclass")) -> list[float]:
    return [value(data, *line[:1], column, line[1]) for data in sets for line in table(data).index]


def keeps_what_was_asked(data: str, lines: str = "") -> bool:
    """A third of the trees' gap or two points, within 1.2 points of their accuracy, without noise."""
    gaps, accuracies = (
        [value(data, method + lines, column) for method in (FAIR, "trees")] for column in ("TPR-gap", "accuracy")
    )
    return gaps[0] <= max(gaps[1] / 3, 2) and accuracies[1] - accuracies[0] <= 1.2


def at_least(found: list[float], asked: tuple[float, ...]) -> bool:
    return all(one >= other for one, other in zip(found, asked, strict=True))


#: Page, words, and whether the tables bear them out.
STATEMENTS = [
    (
        PAGE,
        "the trees' 7.3, 17.8 and 12.8 points become 2.3, 4.7 and 0.1 (trained on 80 %: 1.7, 3.3 and 0.3), for at most "
        "one point of accuracy",
        lambda: (
            (values("trees"), values(FAIR), values(FAIR + MORE))
            == ([7.3, 17.8, 12.8], [2.3, 4.7, 0.1], [1.7, 3.3, 0.3])
            and max(a - b for a, b in zip(values("trees", "accuracy"), values(FAIR, "accuracy"))) < 1
        ),
    ),
    (
        GUIDE,
        "the trees' gaps of 7.3, 17.8 and 12.8 points on Adult, Bank and CelebA become 2.3, 4.7 and 0.1",
        lambda: (values("trees"), values(FAIR)) == ([7.3, 17.8, 12.8], [2.3, 4.7, 0.1]),
    ),
    (GUIDE, "shows 3.1, 3.0 and 0.2", lambda: values("ThresholdOptimizer, trees") == [3.1, 3.0, 0.2]),
    (PAGE, "shows 3.1, 3.0 and 0.2", lambda: values("ThresholdOptimizer, trees") == [3.1, 3.0, 0.2]),
    (
        PAGE,
        "On Credit card the trees' 1.8 points (2.3 on 80 %) cannot be told from none",
        lambda: [value("credit", "trees" + lines) for lines in ("", MORE)] == [1.8, 2.3],
    ),
    (
        PAGE,
        "the gap is 2.0 (2.7 on 80 %)",
        lambda: [value("credit", FAIR + lines) for lines in ("", MORE)] == [2.0, 2.7],
    ),
    (
        PAGE,
        "is kept by the lines on 80 % (1.7, 1.4, 1.6), and by those on 60 % only at 4 (2.3, 2.1, 2.3), at the "
        "accuracies asked for (86.3, 85.0 and 82.8) both times",
        lambda: (
            [at_epsilons(FAIR + lines, "TPR-gap") for lines in (MORE, "")] == [[1.7, 1.4, 1.6], [2.3, 2.1, 2.3]]
            and all(at_least(at_epsilons(FAIR + lines, "accuracy"), (86.3, 85.0, 82.8)) for lines in ("", MORE))
        ),
    ),
    (
        PAGE,
        "Bank and CelebA keep it; Adult keeps it (a third of 7.3 is 2.4)",
        lambda: all(keeps_what_was_asked(data) for data in ("bank", "celeba", "adult")),
    ),
    (
        PAGE,
        "Credit card misses it, by 0.04 points on 60 % and by 0.7 on 80 %",
        lambda: not keeps_what_was_asked("credit", MORE) and value("credit", FAIR) - 2 == pytest.approx(0.04, abs=0.05),
    ),
    (PAGE, "24.7 and 23.6 points", lambda: [value("adult-race", name) for name in ("trees", FAIR)] == [24.7, 23.6]),
    (
        PAGE,
        "12.7 points become 10.4, with a standard error of 2.0",
        lambda: (
            value("made-multiclass", "trees") == 12.7
            and table("made-multiclass").loc[(FAIR, "∞"), "TPR-gap"].replace("\u00a0", " ") == "10.4 ± 2.0"
        ),
    ),
    (
        PAGE,
        "at most half a point more often than by always naming the largest group, with every method",
        lambda: max(every("leakage − majority")) <= 0.5,
    ),
    (
        PAGE,
        "the AUC on Adult and CelebA is 58.8 and 58.7 for the trees, and 57.7 and 52.8 for fair ones at epsilon 8",
        lambda: (
            [value(data, "trees", "AUC") for data in ("adult", "celeba")] == [58.8, 58.7]
            and [value(data, FAIR, "AUC", "8") for data in ("adult", "celeba")] == [57.7, 52.8]
        ),
    ),
    (
        PAGE,
        "On Bank it falls from 58.5 to 52.4, and on Credit card it is at most 50.9 throughout",
        lambda: (
            (value("bank", "trees", "AUC"), value("bank", FAIR, "AUC", "8")) == (58.5, 52.4)
            and max(every("AUC", ["credit"])) == 50.9
        ),
    ),
    (
        PAGE,
        "at epsilon 2 it is still 55.9 on Adult, and 50.0 at 1",
        lambda: [value("adult", FAIR, "AUC", epsilon) for epsilon in ("2", "1")] == [55.9, 50.0],
    ),
]


@pytest.mark.parametrize(("place", "words", "holds"), STATEMENTS)
def test_words_are_on_the_page_and_true(place, words, holds):
    assert words in text(place), "the page says it in other words: check both"
    assert holds()


def test_a_wrong_number_is_noticed(monkeypatch):
    changed = table("bank").copy()
    changed.loc[(FAIR, "8"), "AUC"] = "53.4 ± 0.4"
    monkeypatch.setitem(globals(), "table", lambda data: changed)
    wrong = [holds for _, words, holds in STATEMENTS if words.startswith("On Bank it falls")]
    assert len(wrong) == 1
    assert not wrong[0]()


def test_classes_and_epsilons_are_those_that_the_page_speaks_of():
    for data in BINARY:
        epsilons = {float(epsilon.replace("∞", "inf")) for method, epsilon in table(data).index if method == FAIR}
        assert epsilons == {1.0, 2.0, 3.0, 4.0, 8.0, math.inf}
