"""What the page about the papers says in words is what its tables say in numbers."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers._shipped import TABLES

DOCS = Path(__file__).resolve().parents[3] / "docs"


@cache
def page() -> str:
    return " ".join((DOCS / "reproduction.md").read_text(encoding="utf-8").split())


@cache
def table(name: str) -> pd.DataFrame:
    return pd.read_csv(TABLES / f"{name}.csv", keep_default_na=False, dtype=str)


def mean(cell: str) -> float:
    """Of ``12.3 ± 0.4``, the first number."""
    found = re.match(r"-?[\d.,]+", cell)
    return float(found.group().replace(",", "")) if found else np.nan


def federate(data: str, method: str, column: str, epsilon: str | None = None) -> tuple[float, float]:
    """Published and ours; the line in which epsilon was chosen too, or that of one epsilon."""
    lines = table(f"federate-{data}-full-methods")
    lines = lines[lines["method"] == method]
    line = lines.iloc[0] if epsilon is None else lines[lines["claimed ε"] == epsilon].iloc[0]
    return tuple(mean(part) for part in line[column].split(" / "))


def ours(data: str, method: str, column: str, epsilon: str | None = None) -> float:
    return federate(data, method, column, epsilon)[1]


def auc(method: str, data: str = "adult") -> list[float]:
    """Of the strongest attacker, in every line of a method, whatever its noise."""
    lines = table(f"federate-{data}-full-methods")
    return [mean(cell) for cell in lines.loc[lines["method"].str.split(", ").str[0] == method, AUC]]


def at_epsilon(method: str, epsilon: str, data: str = "adult") -> float:
    """The accuracy at a claimed epsilon."""
    lines = table(f"federate-{data}-full-figure-4")
    return mean(lines.loc[(lines["method"] == method) & (lines["claimed ε"] == epsilon), "accuracy"].item())


def within(points: str, data: str = "adult") -> pd.DataFrame:
    """What is chosen within so many points of the best accuracy."""
    lines = table(f"federate-{data}-full-thresholds").set_index("method")
    return lines[lines["within points"] == points]


def pate(name: str, data: str, column: str) -> list[float]:
    lines = table(name)
    return [mean(cell) for cell in lines.loc[lines["data"] == data, column]]


def flipping_and_risk(student: str) -> list[float]:
    lines = table("pate-full-figures-3-5-6").set_index(["figure", "student"])
    return [mean(lines.loc[("6: flipping probability and excessive risk", student), data]) for data in SETS]


def hard_and_soft(column: str, k: int, labels: str) -> list[pd.DataFrame]:
    """A number with hard and with soft labels: a row for each data set, a column for each epsilon."""
    lines = table("pate-full-figure-7")
    lines = lines[(lines["k"] == str(k)) & (lines["soft labels"] == labels)].astype({"exact ε": float})
    return [
        lines.pivot(index="data", columns="exact ε", values=f"{column}, {kind}").map(mean) for kind in ("hard", "soft")
    ]


def soft_over_hard(column: str, k: int, labels: str) -> pd.DataFrame:
    hard, soft = hard_and_soft(column, k, labels)
    return soft / hard


def soft_less_hard(column: str, k: int, labels: str) -> pd.DataFrame:
    hard, soft = hard_and_soft(column, k, labels)
    return soft - hard


def ends(values) -> tuple[float, float]:
    values = list(values)
    return min(values), max(values)


def dpnr(method: str, column: str = "1 - F, ours") -> float:
    lines = table("dpnr-full-table-4").set_index("method")
    return mean(lines.loc[method, column])


def accuracies(method: str) -> list[float]:
    """Accuracies of a column of table 2; the first is without noise, which one column has."""
    return [mean(cell) for cell in table("dpnr-full-table-2")[method] if isinstance(cell, str) and cell]


def changes(method: str) -> list[tuple[float, float]]:
    """By how many points the groups of each person differ more than without noise, and the p-value."""
    cells = table("dpnr-full-table-7-significance").set_index("method").loc[method]
    found = [re.fullmatch(r"([+-][\d.]+) points, p = ([\d.e-]+)", cell) for cell in cells]
    return [(float(match[1]), float(match[2])) for match in found]


def ome(data: str, protocol: str, column: str = "published rates", epsilon: str | None = None) -> list[float]:
    """A column of the table on OME, of all lines of a protocol or of one claimed epsilon."""
    lines = table("ome-full-accuracy")
    lines = lines[(lines["data"] == data) & lines["protocol"].str.replace("\u00a0", " ").str.startswith(protocol)]
    return [mean(cell) for cell in lines.loc[lines["claimed ε"] == (epsilon or lines["claimed ε"]), column]]


def combined(method: str, column: str = "TPR-gap") -> float:
    lines = table("federate-adult-combinations-full-combinations").set_index("method")
    return mean(lines.loc[method, column])


AUC = "AUC, strongest attacker"
STRONGEST = "1 - F, strongest attacker"
REVIEWS = ("IMDb", "Amazon", "Yelp")
READ_WELL = ("OME, λ = 10", "OME, λ = 50")  # the first also begins the name of a factor of 100
NOT_PRIVATE = ("Unconstrained", "INLP", "Adversarial", "Adversarial + Multiple")
SETS = ("Credit card", "Bank", "Income", "Parkinsons")
GAP, ACCURACY = "logistic: gap × 1000", "logistic: accuracy"


def falls(values: list[float]) -> bool:
    return bool((np.diff(values) < 0).all())


def trees(column: str, data: str = "adult") -> float:
    """Of fair private trees at an exact epsilon of 8."""
    lines = table(f"federate-{data}-trees-full-methods").set_index("exact ε")
    return mean(lines.loc["8", column].split(" / ")[-1])


#: Words of the page, and whether the tables bear them out.
STATEMENTS = {
    "with a factor of 10 or more, OME is within 4.2 points in every cell": lambda: (
        max(
            abs(ours - published)
            for data in (*REVIEWS, "Intent", "MRPC")
            for protocol in READ_WELL
            for ours, published in zip(ome(data, protocol), ome(data, protocol, "published"))
        )
        == pytest.approx(4.2, abs=0.05)
    ),
    "the bits of a sentence lose 6,903 at a factor of 100, and a factor of 10 still costs 3,407": lambda: all(
        ome(data, "OME, λ = 100", "exact ε") == [6903] * 4 and ome(data, "OME, λ = 10", "exact ε")[-1] == 3407
        for data in (*REVIEWS, "Intent")
    ),
    "At the exact epsilon of these factors `optimal` reads up to nine points more on reviews and commands": lambda: (
        round(
            max(
                best - ours
                for data in (*REVIEWS, "Intent")
                for protocol in READ_WELL
                for ours, best in zip(ome(data, protocol), ome(data, protocol, "optimal at the exact ε"))
            )
        )
        == 9
    ),
    "only seven commands at an epsilon of 10 are read a little better than chance by `optimal`": lambda: (
        ome("Intent", "optimal", "claimed ε kept", "10") > ome("Intent", "majority class", "claimed ε kept")
        and all(
            ome(data, "optimal", "claimed ε kept", "10") < ome(data, "majority class", "claimed ε kept")
            for data in (*REVIEWS, "MRPC")
        )
    ),
    "without noise our vectors do eight to eleven points better on reviews": lambda: all(
        7.5 < ome(data, "no noise")[0] - max(ome(data, "OME")) < 11.5 for data in REVIEWS
    ),
    "on MRPC it makes no difference (69 to 70 with a factor of 100, 70 without noise)": lambda: (
        [round(value) for value in ends(ome("MRPC", "OME, λ = 100"))] == [69, 70]
        and round(ome("MRPC", "no noise")[0]) == 70
    ),
    "Fair private trees have 86.7 % and a gap of 3.2 at an exact epsilon of 8, and give away what an answer tells: an "
    "AUC of 57.8": lambda: (trees("accuracy"), trees("TPR-gap"), trees(AUC)) == (86.7, 3.2, 57.8),
    "Fair private trees have 84.9 % and a gap of 0.1 at an exact epsilon of 8, with an AUC of 52.8": lambda: (
        tuple(trees(column, "celeba") for column in ("accuracy", "TPR-gap", AUC)) == (84.9, 0.1, 52.8)
    ),
    "The plain network gives sex away (76.5 against 67.7 for the largest group) and has a gap of 9.3": lambda: (
        ours("adult", "Unconstrained", "leakage") == 76.5
        and ours("adult", "largest group", "leakage") == 67.7
        and ours("adult", "Unconstrained", "TPR-gap") == 9.3
    ),
    "if they do not raise it (an AUC of 86.8 after 85.5)": lambda: (
        (auc("Adversarial"), auc("Unconstrained")) == ([86.8], [85.5])
    ),
    "with a gap of 3 to 4 at a cost of one to two points of accuracy": lambda: all(
        2.5 < ours("adult", f"FEDERATE, {which}", "TPR-gap", epsilon) < 4.5
        and 0.9
        < ours("adult", "Unconstrained", "accuracy") - ours("adult", f"FEDERATE, {which}", "accuracy", epsilon)
        < 2
        for which in ("published", "exact")
        for epsilon in (None, "8")
    ),
    "Accuracy behind noise rises by 0.6 to 1.1 points from an epsilon of 8 to 16": lambda: (
        {
            round(at_epsilon(f"{name}, {which}", "16") - at_epsilon(f"{name}, {which}", "8"), 1)
            for name in ("Noise", "FEDERATE")
            for which in ("published", "exact")
        }
        == {0.6, 0.8, 0.9, 1.1}
    ),
    "69.2 to 70.4 behind noise alone, 64.8 to 67.1 with FEDERATE, and 58.3 from codes": lambda: (
        [(min(found), max(found)) for found in (auc("Noise"), auc("FEDERATE"), auc("codes"))]
        == [(69.2, 70.4), (64.8, 67.1), (58.3, 58.3)]
    ),
    "what is chosen at 3 points is chosen at 10, too": lambda: (
        within("3").drop(columns="within points").equals(within("10").drop(columns="within points"))
    ),
    "is larger there on test rows than at one point (3.3 after 2.3)": lambda: (
        [mean(within(points).loc["Adversarial", "TPR-gap"]) for points in ("3", "1")] == [3.3, 2.3]
    ),
    "The published rows of Noise and FEDERATE spend 57 to 113 and not 8 to 16": lambda: all(
        (line["claimed ε"], line["exact ε"]) == ("8 to 16", "56.57 to 113.1")
        for _, line in table("federate-adult-full-methods").iterrows()
        if "published" in line["method"] and " to " in line["claimed ε"]
    ),
    "Keeping 8 costs 0.4 points, because two coordinates suffice": lambda: (
        round(
            ours("adult", "FEDERATE, published", "accuracy", "8") - ours("adult", "FEDERATE, exact", "accuracy", "8"), 1
        )
        == 0.4
    ),
    "adversaries without noise have a gap of 2.3, where the paper has 7.0, and with noise of 3.7": lambda: (
        federate("adult", "Adversarial", "TPR-gap") == (7.02, 2.3)
        and ours("adult", "FEDERATE, exact", "TPR-gap", "8") == 3.7
    ),
    "the published 2.7 of FEDERATE and 3.6 of Adversarial + Multiple are within one deviation": lambda: (
        round(federate("adult", "FEDERATE, published", "TPR-gap")[0], 1) == 2.7
        and round(federate("adult", "Adversarial + Multiple", "TPR-gap")[0] + 0.001, 1) == 3.6
    ),
    "The probe finds less than one point above the largest group in what noisy methods release": lambda: all(
        mean(line["leakage"].split(" / ")[-1]) - ours("adult", "largest group", "leakage") < 1
        for _, line in table("federate-adult-full-methods").iterrows()
        if line["method"].split(",")[0] in ("Noise", "FEDERATE", "codes")
    ),
    "Our accuracies are one to two points above the published ones": lambda: all(
        0.9 < ours("adult", name, "accuracy") - federate("adult", name, "accuracy")[0] < 2
        for name in ("Unconstrained", "INLP", "Noise, published", "Adversarial", "FEDERATE, published")
    ),
    "it has 16.0 kbit by our probe": lambda: federate("adult", "Random", "MDL, kbit") == (20.15, 16.0),
    "they lose 0.1 points against the plain network and have a gap of 3.7": lambda: (
        round(ours("adult", "Unconstrained", "accuracy") - ours("adult", "codes, exact", "accuracy", "8"), 1) == 0.1
        and ours("adult", "codes, exact", "TPR-gap", "8") == 3.7
    ),
    "from 9.3 to 1.7 without noise, from 9.4 to 2.8 with Laplace noise and from 6.6 to 3.7 with codes": lambda: (
        [combined(name) for name in ("no noise", "Laplace", "codes")] == [9.3, 9.4, 6.6]
        and [combined(f"{name} + penalty") for name in ("no noise", "Laplace", "codes")] == [1.7, 2.8, 3.7]
    ),
    "where an adversary alone leaves 5.0, 7.2 and 5.3": lambda: (
        [combined(f"{name} + adversary") for name in ("no noise", "Laplace", "codes")] == [5.0, 7.2, 5.3]
    ),
    "an AUC of 69.3 behind Laplace noise, 67.8 with the adversary, and 58.6 from codes": lambda: (
        [combined(name, AUC) for name in ("Laplace", "Laplace + adversary", "codes")] == [69.3, 67.8, 58.6]
    ),
    'name the sex no more often than whoever always says "male"': lambda: all(
        combined(name + term, column) <= combined("largest group", column)
        for name in ("Laplace", "codes")
        for term in ("", " + adversary", " + penalty", " + adversary + penalty")
        for column in ("leakage, network", "leakage, strongest attacker")
    ),
    "have two points more accuracy than any network at the same epsilon": lambda: (
        1.8
        < combined("fair private trees", "accuracy")
        - max(
            combined(name + term, "accuracy")
            for name in ("Laplace", "codes")
            for term in ("", " + adversary", " + penalty", " + adversary + penalty")
        )
        < 2.2
    ),
    "accuracies are within 0.6 points of the published ones (INLP: 1.1)": lambda: all(
        abs(np.subtract(*federate("celeba", name, "accuracy"))) <= (1.1 if name == "INLP" else 0.6) + 1e-9
        for name in (*NOT_PRIVATE, "Noise, published", "FEDERATE, published")
    ),
    "has a gap of 13.1 (published 12.3)": lambda: (
        federate("celeba", "Unconstrained", "TPR-gap") == pytest.approx((12.3, 13.1), abs=0.051)
    ),
    "(an AUC of 97.4, or 97.1 with several, after 96.5)": lambda: (
        [auc(name, "celeba") for name in ("Adversarial", "Adversarial + Multiple", "Unconstrained")]
        == [[97.4], [97.1], [96.5]]
    ),
    "(59.7, published 59.0) and leaves the gap": lambda: (
        federate("celeba", "Noise, published", "leakage") == (59.01, 59.7)
        and abs(ours("celeba", "Noise, published", "TPR-gap") - ours("celeba", "Unconstrained", "TPR-gap")) < 0.5
    ),
    "FEDERATE has the smallest gap of the paper's methods": lambda: (
        ours("celeba", "FEDERATE, published", "TPR-gap")
        < min(ours("celeba", name, "TPR-gap") for name in (*NOT_PRIVATE, "Noise, published"))
    ),
    "accuracy rises by 0.7 to 1.5 points from an epsilon of 8 to 16": lambda: (
        ends(
            round(at_epsilon(f"{name}, {which}", "16", "celeba") - at_epsilon(f"{name}, {which}", "8", "celeba"), 1)
            for name in ("Noise", "FEDERATE")
            for which in ("published", "exact")
        )
        == (0.7, 1.5)
    ),
    "has a gap of 2.9 instead of 4.1 and an AUC of 58.0 instead of 60.3, for 0.2 points of accuracy": lambda: (
        [ours("celeba", f"FEDERATE, {which}", "TPR-gap") for which in ("exact", "published")] == [2.9, 4.1]
        and {58.0, 60.3} < set(auc("FEDERATE", "celeba"))
        and round(ours("celeba", "FEDERATE, published", "accuracy") - ours("celeba", "FEDERATE, exact", "accuracy"), 1)
        == 0.2
    ),
    "9.4 against 7.8, 10.0 against 5.8 if there are several, 4.1 against 2.7 in FEDERATE": lambda: (
        [
            federate("celeba", name, "TPR-gap")
            for name in ("Adversarial", "Adversarial + Multiple", "FEDERATE, published")
        ]
        == [(7.83, 9.4), (5.79, 10.0), (2.68, 4.1)]
    ),
    "leakage of FEDERATE, 65.5, was not seen: our probe finds 58.8, half a point above the largest group": lambda: (
        federate("celeba", "FEDERATE, published", "leakage") == (65.49, 58.8)
        and ours("celeba", "largest group", "leakage") == 58.3
    ),
    "60.7 to 63.4 behind noise alone, 55.2 to 60.3 with FEDERATE, and 52.8 from codes": lambda: (
        [ends(auc(name, "celeba")) for name in ("Noise", "FEDERATE")] == [(60.7, 63.4), (55.2, 60.3)]
        and min(auc("codes", "celeba")) == 52.8
    ),
    "87.9 against the published 66.0": lambda: federate("celeba", "INLP", "leakage") == (66.0, 87.9),
    "(87.5 against 81.3)": lambda: federate("celeba", "Unconstrained", "leakage") == (81.3, 87.5),
    "with none to give up its gap is 12.4, with three it is 2.9 (2.3 at exact epsilons)": lambda: (
        [
            mean(within(points, "celeba").loc[f"FEDERATE, {which}", "TPR-gap"])
            for points in ("0", "3")
            for which in ("published", "exact")
        ]
        == [12.4, 12.4, 2.9, 2.3]
    ),
    "what is chosen at 3 points is chosen at 10 on CelebA, too": lambda: (
        within("3", "celeba").drop(columns="within points").equals(within("10", "celeba").drop(columns="within points"))
    ),
    "have 84.4 % and a gap of 0.6, where the paper's FEDERATE has 84.8 % and 2.7": lambda: (
        ours("celeba", "codes, exact", "accuracy", "8") == 84.4
        and ours("celeba", "codes, exact", "TPR-gap", "8") == 0.6
        and round(federate("celeba", "FEDERATE, published", "accuracy")[0], 1) == 84.8
    ),
    "accuracy hardly depends on the claimed epsilon (73.5 to 74.4 %, 74.3 without noise)": lambda: (
        ends(accuracies("DPNR, one draw per row (public code)")[1:]) == (73.5, 74.4)
        and accuracies("DPNR, one draw per row (public code)")[0] == 74.3
    ),
    "the empirical privacy of the very same rows falls from 50 to 30, with a guess at 49": lambda: (
        round(dpnr("DPNR, one draw per row (public code)")) == 50
        and round(dpnr("the same, least value of each row subtracted")) == 30
        and round(dpnr("majority")) == 49
    ),
    "it finds 28 on the rows as they are released, and 16 after the subtraction; rows without any noise have 15": (
        lambda: (
            round(dpnr("DPNR, one draw per row (public code)", STRONGEST)) == 28
            and round(dpnr("the same, least value of each row subtracted", STRONGEST)) == 16
            and round(dpnr("NON-PRIV", STRONGEST)) == 15
        )
    ),
    "Two lines of table 4 are far above the guess, 62.7 and 62.9": lambda: (
        dpnr("DPNR, Lap(1/ε) per coordinate (as printed)") == 62.7
        and dpnr("DPNR, Lap(64/ε) per coordinate (exact)") == 62.9
    ),
    "the strongest attacker has the guess's 49 there": lambda: (
        int(dpnr("DPNR, Lap(1/ε) per coordinate (as printed)", STRONGEST)) == 49
        and int(dpnr("DPNR, Lap(64/ε) per coordinate (exact)", STRONGEST)) == 49
    ),
    "what it keeps at a claimed 1 and 5 (70 and 74 %)": lambda: (
        [round(value) for value in accuracies("DPNR, Lap(1/ε) per coordinate (as printed)")[-2:]] == [70, 74]
    ),
    "learned codes read the topic at an exact epsilon of 5 (72 %)": lambda: (
        round(accuracies("codes (exact)")[-1]) == 72
    ),
    "changes none of them by more than 1.1 points (no p-value below 0.8)": lambda: (
        max(abs(change) for change, _ in changes("DPNR, one draw per row (public code)")) == 1.1
        and min(p for _, p in changes("DPNR, one draw per row (public code)")) > 0.8
    ),
    "the groups differ by 9 to 18 points more": lambda: (
        ends(
            round(change)
            for method in (
                "DPNR, Lap(1/ε) per coordinate (as printed)",
                "DPNR, Lap(64/ε) per coordinate (exact)",
                "codes (exact)",
            )
            for change, _ in changes(method)
        )
        == (9, 18)
    ),
    "More penalty makes logistic students less sensitive to noise on all four sets": lambda: all(
        falls(pate("pate-full-figure-2", data, "logistic: model sensitivity")) for data in SETS
    ),
    "and networks too but for one step (10 to 20 on Parkinsons)": lambda: (
        sum(int(np.sum(np.diff(pate("pate-full-figure-2", data, "network: model sensitivity")) > 0)) for data in SETS)
        == 1
        and np.diff(pate("pate-full-figure-2", "Parkinsons", "network: model sensitivity"))[1] > 0
    ),
    "so do more teachers but for one step (20 to 50 on Parkinsons, logistic)": lambda: (
        [
            (data, student)
            for data in SETS
            for student in ("logistic", "network")
            if not falls(pate("pate-full-figures-3-4", data, f"{student}: model sensitivity"))
        ]
        == [("Parkinsons", "logistic")]
        and np.diff(pate("pate-full-figures-3-4", "Parkinsons", "logistic: model sensitivity"))[0] > 0
    ),
    "The flipping probability falls with k from about 0.4 to 0.1 (0.29 on Parkinsons)": lambda: all(
        falls(values := pate("pate-full-figures-3-4", data, "mean flipping probability"))
        and 0.4 < values[0] < 0.45
        and (round(values[-1], 2) == 0.29 if data == "Parkinsons" else 0.05 < values[-1] < 0.12)
        for data in SETS
    ),
    "More penalty makes the gap of logistic students smaller on three sets, and so do more teachers": lambda: all(
        [data for data in SETS if not falls(pate(name, data, GAP))] == [other]
        for name, other in (("pate-full-figure-2", "Parkinsons"), ("pate-full-figures-3-4", "Bank"))
    ),
    "on Bank the gap is 60.8, 29.4, 36.2 and 31.8 for 20, 50, 100 and 150 teachers": lambda: (
        pate("pate-full-figures-3-4", "Bank", GAP) == [60.8, 29.4, 36.2, 31.8]
    ),
    "a larger flipping probability goes with a larger risk (rank correlations of 0.64 to 0.92)": lambda: (
        ends(flipping_and_risk("network")) == (0.64, 0.92)
    ),
    "are weakly correlated (0.16 to 0.44) on three sets": lambda: (
        ends(flipping_and_risk("logistic")[:3]) == (0.16, 0.44)
    ),
    "have the smallest risk (-0.52)": lambda: flipping_and_risk("logistic")[3] == -0.52,
    "At 150 teachers centred soft labels have smaller gaps than hard ones in every cell": lambda: bool(
        (soft_over_hard("gap × 1000", 150, "affine") < 1).all(axis=None)
        and (soft_over_hard("gap × 1000", 150, "simplex") < 1).all(axis=None)
    ),
    "with accuracies that differ by less than one point": lambda: bool(
        all((soft_less_hard("accuracy", 150, labels).abs() < 1).all(axis=None) for labels in ("affine", "simplex"))
    ),
    "they also move logistic students less in every cell": lambda: bool(
        (soft_over_hard("sensitivity", 150, "affine") < 1).all(axis=None)
    ),
    "at 1 centred soft labels move logistic students 2.5 to 7 times as far as hard ones": lambda: (
        ends(soft_over_hard("sensitivity", 20, "affine")[1].round(1)) == (2.5, 7.1)
    ),
    "have larger gaps on all four sets, 15 times on Income; at 3 they have larger gaps on three": lambda: bool(
        (soft_over_hard("gap × 1000", 20, "affine")[1] > 1).all()
        and round(soft_over_hard("gap × 1000", 20, "affine").loc["Income", 1]) == 15
        and (soft_over_hard("gap × 1000", 20, "affine")[3] > 1).sum() == 3
    ),
    "on Credit card by a hair": lambda: 1 < soft_over_hard("gap × 1000", 20, "affine").loc["Credit card", 3] < 1.03,
    "at 20 teachers, too, but for Parkinsons at 1 and 3": lambda: (
        [*(soft_over_hard("gap × 1000", 20, "simplex") > 1).stack().loc[lambda larger: larger].index]
        == [("Parkinsons", 1), ("Parkinsons", 3)]
    ),
    "is worse off with them at an epsilon of 1 on all four sets, at 3 on three and at 10 on two": lambda: (
        [*(soft_over_hard("gap × 1000", 150, "none") > 1).sum()] == [4, 3, 2, 0, 0]
    ),
    "by factors from 2.5 to 279 and with up to five points less accuracy": lambda: (
        ends([f for f in soft_over_hard("gap × 1000", 150, "none").round(1).to_numpy().ravel() if f > 1])
        == (2.5, 279.2)
        and round(float(soft_less_hard("accuracy", 150, "none").min(axis=None))) == -5
    ),
    "(by 251 to 513 times at an epsilon of 1 with 20 teachers)": lambda: (
        ends(soft_over_hard("gap × 1000", 20, "none")[1].round()) == (251, 513)
    ),
    "logistic students on Credit card rise from 79.5 to 79.9 up to λ = 50": lambda: (
        pate("pate-full-figure-2", "Credit card", ACCURACY)[:4] == [79.5, 79.6, 79.7, 79.9]
    ),
    "networks on Income from 80.8 to 81.7 up to λ = 10": lambda: (
        pate("pate-full-figure-2", "Income", "network: accuracy")[:2] == [80.8, 81.7]
    ),
    "On Parkinsons the gap of logistic students grows with the penalty up to λ = 50": lambda: bool(
        (np.diff(pate("pate-full-figure-2", "Parkinsons", GAP)[:4]) > 0).all()
    ),
    "on Credit card the gap of networks does not fall with more teachers": lambda: (
        pate("pate-full-figures-3-4", "Credit card", "network: gap × 1000")[-1]
        > pate("pate-full-figures-3-4", "Credit card", "network: gap × 1000")[0]
    ),
}


@pytest.mark.parametrize("words", STATEMENTS)
def test_words_are_on_the_page_and_true(words):
    assert words in page(), "the page says it in other words: check both"
    assert STATEMENTS[words]()


def cells(name: str, **rows: str) -> pd.DataFrame:
    """The lines of a table of the guide to PATE that have these names, as numbers."""
    lines = table(f"pate-guide-full-{name}")
    for column, value in rows.items():
        lines = lines[lines[column] == value]
    return lines.map(mean)


def less_certain(*sets: str) -> tuple[float, float]:
    """By how much the cross-entropy of soft labels exceeds that of hard ones, 150 teachers, from epsilon 3 on."""
    found = [cells("results", data=data, k="150").query("epsilon >= 3") for data in sets]
    return ends(round(d, 3) for one in found for d in one["cross-entropy, soft"] - one["cross-entropy, hard"])


#: Words of the page on PATE by groups, and whether its tables bear them out.
STATEMENTS_ON_PATE = {
    "-0.6 there with 150 teachers from epsilon 10 on": lambda: (
        {
            round(line["accuracy, soft"] - line["accuracy, hard"], 1)
            for _, line in cells("results", data="Parkinsons", k="150").query("epsilon >= 10").iterrows()
        }
        == {-0.6}
    ),
    "0.007 to 0.009 *higher* than that of hard labels on Bank, Credit card and Income": lambda: (
        less_certain("Bank", "Credit card", "Income") == (0.007, 0.009)
    ),
    "0.02 to 0.04 lower on Parkinsons": lambda: (
        [round(value, 2) for value in less_certain("Parkinsons")] == [-0.04, -0.02]
    ),
    "of input norm with risk 0.25 to 0.33": lambda: ends(cells("correlations")["norm and risk"]) == (0.25, 0.33),
    "of closeness with flipping probability 0.32 to 0.68, of flipping probability with risk from -0.53": lambda: (
        ends(cells("correlations")["closeness and flipping probability"]) == (0.32, 0.68)
        and ends(cells("correlations")["flipping probability and risk"]) == (-0.53, 0.53)
    ),
    "1.1 to 2 times the gap of hard labels on the student's own rows, 0.8 to 0.95 times on the test set": lambda: all(
        ends(cells("postprocessing", k="20").query("epsilon <= 3")[column]) == pytest.approx(expected, abs=0.051)
        for column, expected in (("clip, gap", (1.1, 2.0)), ("clip, test gap", (0.8, 0.95)))
    ),
    "With simplex labels its gap is 1 to 39 per cent of that of hard labels": lambda: (
        ends((100 * cells("network-students")["gap, simplex"] / cells("network-students")["gap, hard"]).round())
        == (1, 39)
    ),
    "up to 371 times the gap of hard labels": lambda: (
        round(max(cells("network-students")["gap, none"] / cells("network-students")["gap, hard"])) == 371
    ),
}


@pytest.mark.parametrize("words", STATEMENTS_ON_PATE)
def test_words_on_pate_are_on_the_page_and_true(words):
    text = (DOCS / "reproduction" / "pate_by_group.md").read_text(encoding="utf-8")
    assert words in " ".join(text.split()), "the page says it in other words: check both"
    assert STATEMENTS_ON_PATE[words]()


@pytest.mark.parametrize(
    ("line", "method", "epsilon"),
    [
        ("Unconstrained | ∞", "Unconstrained", None),
        ("Adversarial | ∞", "Adversarial", None),
        ("Noise (Laplace) | 8", "Noise, exact", "8"),
        ("FEDERATE (Laplace) | 8", "FEDERATE, exact", "8"),
        ("codes with `fairness_penalty` | 8", "codes, exact", "8"),
    ],
)
def test_guide_has_the_numbers_of_the_table(line, method, epsilon):
    """The guide has some methods on Adult, the page behind it all of them, first on Adult and then on CelebA."""
    expected = [
        [ours(data, method, column, epsilon) for column in ("accuracy", "TPR-gap")] for data in ("adult", "celeba")
    ]
    pattern = rf"^\| {re.escape(line)} \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ±"
    guide, behind = (
        [
            [float(number) for number in numbers]
            for numbers in re.findall(pattern, (DOCS / place).read_text(encoding="utf-8"), flags=re.MULTILINE)
        ]
        for place in ("guide/federate.md", "reproduction/federate_on_tables.md")
    )
    assert guide in ([], expected[:1])
    assert behind == expected


def test_guide_has_three_methods():
    shown = re.findall(
        r"^\| [^|]+ \| [∞8] \| [\d.]+ ±", (DOCS / "guide/federate.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(shown) == 3


def test_a_wrong_number_is_noticed(monkeypatch):
    changed = table("federate-adult-full-methods").copy()
    changed["TPR-gap"] = changed["TPR-gap"].str.replace("9.3", "9.4")
    monkeypatch.setitem(globals(), "table", lambda name: changed)
    wrong = [words for words in STATEMENTS if "gap of 9.3" in words]
    assert len(wrong) == 1
    assert not STATEMENTS[wrong[0]]()
