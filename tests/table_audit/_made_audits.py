"""Audits made by hand, with every column that an audit fills: what is told can be tested without any training."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import beta, chi2_contingency

from skfairdp.accounting import PrivacyGuarantee
from skfairdp.table_audit import TableAudit
from skfairdp.table_audit._table_checks import TableCheck

FAIRNESS = ("tpr_gap", "grms", "equalized_odds_gap", "demographic_parity_gap", "calibration_gap")
LEAKY = TableCheck(
    "gives_target_away",
    ("stamp",),
    True,
    "The column 'stamp' predicts hired almost alone.",
    "Leave it out: --drop stamp.",
)
TWINS = TableCheck(
    "duplicates", (), False, "12 rows occur twice.", "Name the column that tells people apart: --person COLUMN."
)
_RATES = {"equalized_odds_gap": ["tpr", "fpr"], "demographic_parity_gap": ["selection_rate"]}


def _row(group, rate, label, hits, trials):
    lower = beta.ppf(0.025, hits, trials - hits + 1) if trials and hits else 0.0
    upper = beta.ppf(0.975, hits + 1, trials - hits) if trials and hits < trials else 1.0
    value = hits / trials if trials else math.nan
    return {
        "group": group,
        "rate": rate,
        "class": label,
        "value": value,
        "trials": trials,
        "lower": lower,
        "upper": upper,
    }


def rates_by_group(y, predicted, groups, classes, attribute, method):
    """Accuracy, and true and false positive rate, selection rate and precision of every class, slowly."""
    rows = []
    for group in sorted(set(groups)):
        mine = groups == group
        rows.append(_row(group, "accuracy", None, int((y == predicted)[mine].sum()), int(mine.sum())))
        for label in classes:
            true, said = (y == label) & mine, (predicted == label) & mine
            both = int((true & said).sum())
            rows.append(_row(group, "tpr", label, both, int(true.sum())))
            rows.append(_row(group, "fpr", label, int(said.sum()) - both, int(mine.sum() - true.sum())))
            rows.append(_row(group, "selection_rate", label, int(said.sum()), int(mine.sum())))
            rows.append(_row(group, "ppv", label, both, int(said.sum())))
    frame = pd.DataFrame(rows)
    frame.insert(0, "attribute", attribute)
    frame.insert(0, "method", method)
    return frame


def _gap_of(rates, fairness, label, few):
    """Largest difference, shrunk a little, with ends that hold it; and the groups at its ends."""
    mine = rates[rates["rate"].isin(_RATES.get(fairness, ["tpr"])) & ~rates["group"].isin(few) & rates["value"].notna()]
    if label is not None:
        mine = mine[mine["class"] == label]
    widest = {"measured": math.nan}
    for _, part in mine.groupby(["rate", "class"]):
        if len(part) < 2:
            continue
        high, low = part.loc[part["value"].idxmax()], part.loc[part["value"].idxmin()]
        measured = high["value"] - low["value"]
        if widest["measured"] >= measured:
            continue
        error = math.sqrt(sum(r["value"] * (1 - r["value"]) / r["trials"] for r in (high, low)))
        value = max(0.0, measured - 0.3 * error * math.log(len(part)))
        hits = (part["value"] * part["trials"]).round()
        table = np.array([hits, part["trials"] - hits])
        p_value = chi2_contingency(table).pvalue if (table.sum(axis=1) > 0).all() else 1.0
        width = (1.9 + 0.4 * math.log(len(part) / 2)) * error
        lower = max(0.0, value - width) if p_value <= 0.05 else 0.0
        widest = {"measured": measured, "value": value, "lower": lower, "upper": value + width, "p_value": p_value,
                  "highest": high["group"], "lowest": low["group"]}  # fmt: skip
    undefined = dict.fromkeys(("value", "lower", "upper", "p_value"), math.nan)
    return {**undefined, "highest": None, "lowest": None} | widest


def _interval_of_rate(rate, n):
    half = 1.96 * math.sqrt(rate * (1 - rate) / n)
    return rate, max(0.0, rate - half), min(1.0, rate + half)


def _with_ends(name, values):
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), values))


@cache  # nobody may change what it returns
def made_audit(
    n_groups=2,
    n_classes=2,
    fairness="tpr_gap",
    systems=(),
    methods=("trees", "logistic", "fair trees", "fair private trees", "noise"),
    pos_label="yes",
    n=3000,
    scores=False,
    checks=(),
    assumed=False,
    bias=0.2,
    tiny=False,
    undefined=False,
    attribute="sex",
    groups=None,
    seed=0,
):
    """Make an audit of a table whose last group is recognised less often by ``bias``, by fair methods by a tenth."""
    rng = np.random.default_rng(seed)
    names = list(groups or [f"g{k}" for k in range(n_groups)])
    shares = np.linspace(2, 1, len(names)) / np.linspace(2, 1, len(names)).sum()
    group = rng.choice(np.array(names, dtype=object), n, p=shares)
    few = ()
    if tiny:
        group[:7], few = "tiny", ("tiny",)
    classes = ["no", "yes"] if n_classes == 2 else ["no", "yes", *(f"maybe {k}" for k in range(n_classes - 2))]
    if pos_label not in (None, *classes):
        classes[1] = pos_label
    y = rng.choice(np.array(classes, dtype=object), n)
    if undefined:
        y[group != names[0]] = classes[0]
    if n_classes > 2 and fairness == "grms":
        pos_label = None
    test = np.arange(n) % 10 < 3
    rows, rates, calibration, leaks = {}, [], [], []
    reference = systems[0] if systems else methods[0]
    for name in [*systems, *methods]:
        fair, system = name.startswith("fair"), name in systems
        ours = np.ones(n, bool) if system else test
        wrong = 0.15 + (bias * (0.1 if fair else 1.0)) * (group == names[-1]) * (y == classes[1])
        wrong = np.clip(wrong + 0.01 * fair + 0.03 * ("private" in name) + 0.005 * methods.index(name) * (not system)
                        if not system else wrong, 0, 0.9)  # fmt: skip
        others = rng.choice(np.array(classes, dtype=object), n)
        predicted = np.where(rng.random(n) < wrong * len(classes) / (len(classes) - 1), others, y)
        mine = rates_by_group(y[ours], predicted[ours], group[ours], classes, attribute, name)
        rates.append(mine)
        gap = _gap_of(mine, fairness, pos_label, few)
        n_rows = int(ours.sum())
        accuracy = float((y == predicted)[ours].mean())
        if scores and (system or fairness == "calibration_gap"):
            calibration += _calibration(name, attribute, names, rng)
        if fairness == "calibration_gap":
            ends = [(c["observed"] - c["mean_score"], c["group"]) for c in calibration
                    if c["method"] == name and c["bin"] == "all"]  # fmt: skip
            wide = max(ends)[0] - min(ends)[0] if ends else math.nan
            gap = {"measured": wide, "value": wide, "lower": wide / 2, "upper": 1.5 * wide, "p_value": 0.01,
                   "highest": max(ends)[1] if ends else None, "lowest": min(ends)[1] if ends else None}  # fmt: skip
        selected = mine[(mine["rate"] == "selection_rate") & (mine["class"] == pos_label) & ~mine["group"].isin(few)]
        ratio = selected["value"].min() / selected["value"].max() if len(selected) else math.nan
        private = name in ("noise", "fair private trees")
        majority = float(pd.Series(group).value_counts(normalize=True).iloc[0])
        advantage = 0.01 if fair else 0.08
        rows[name] = {
            **_with_ends("accuracy", _interval_of_rate(accuracy, n_rows)),
            "balanced_accuracy": accuracy - 0.01,
            fairness: gap["value"],
            f"{fairness}_measured": gap["measured"],
            f"{fairness}_lower": gap["lower"],
            f"{fairness}_upper": gap["upper"],
            f"{fairness}_p_value": gap["p_value"],
            "highest_group": gap["highest"],
            "lowest_group": gap["lowest"],
            **_with_ends("selection_ratio", (ratio, ratio - 0.05, min(1.0, ratio + 0.05))),
            **{other: 0.1 for other in FAIRNESS[:4] if other != fairness},
            "accuracy_gap": 0.05,
            "worst_group_accuracy": accuracy - 0.05,
            **_with_ends("leakage", (majority + advantage, majority + advantage - 0.03, majority + advantage + 0.03)),
            **_with_ends("leakage_auc", (0.52, 0.48, 0.56) if fair else (0.63, 0.6, 0.66)),
            **_with_ends("advantage", (advantage, advantage - 0.03, advantage + 0.03)),
            "majority": majority,
            "code_bits": 812.4,
            "uniform_bits": 900.0,
            "epsilon": 8.0 if private else math.inf,
            "delta": 0.0 if private else math.nan,
            "protects": "each record that it is given" if private else "nothing",
            "seconds": math.nan if system else 1.5,
            "search_seconds": math.nan if system else 4.0,
            "validation_accuracy": math.nan if system else accuracy + 0.004,
            f"validation_{fairness}": math.nan if system else gap["value"],
            "n_rows": n_rows,
            "rows": "all rows" if system else "test rows",
            "kind": "system" if system else "reference" if name in ("trees", "logistic") else "method",
            "needs_groups": name == "threshold optimizer",
            "constant": False,
        }
        leaks += [_leak(name, attribute, attacker, majority, advantage) for attacker in ("linear", "mlp", "strongest")]
    table = pd.DataFrame(list(rows.values()), index=pd.Index(rows, name="method"))
    for name in table.index:
        change = table.loc[name, fairness] - table.loc[reference, fairness]
        half = 0.0 if name == reference else 0.03
        for end, shift in (("", 0.0), ("_lower", -half), ("_upper", half)):
            table.loc[name, f"{fairness}_change{end}"] = change + shift
    best = next((name for name in methods if name.startswith("fair")), reference)
    if methods:
        leaks = [_leak("(columns)", attribute, "strongest", majority, 0.2), *leaks]
    receipt = PrivacyGuarantee(8.0, mechanism="laplace")
    return TableAudit(
        table=table,
        best=best,
        reference=reference,
        fairness=fairness,
        candidates=_candidates(table.loc[list(methods)], fairness),
        group_rates=pd.concat(rates, ignore_index=True),
        leakage=pd.DataFrame(leaks),
        guarantees={name: [receipt] if math.isfinite(table.loc[name, "epsilon"]) else [] for name in table.index},
        summaries={name: f"What {name} does." for name in table.index},
        models=dict.fromkeys(methods),
        notes=("zip is left out: an identifier.",),
        settings={
            "target": "hired",
            "sensitive": [attribute],
            "classes": classes,
            "pos_label": pos_label,
            "assumed_positive": assumed,
            "fairness": fairness,
            "epsilon": 8.0,
            "delta": 1e-5,
            "keep_sensitive": False,
            "test_size": 0.3,
            "n_splits": 3,
            "n_probe_rows": 3000,
            "relaxation_threshold": 0.01,
            "random_state": 0,
            "n_rows": n,
            "n_train": int((~test).sum()),
            "n_test": int(test.sum()),
            "n_probed": int(test.sum()),
            "features": ["age", "hours"],
        },
        versions={"skfairdp": "0.1.0", "python": "3.12"},
        command="skfairdp audit people.csv --target hired --sensitive sex",
        title="Audit of people.csv",
        systems=tuple(systems),
        checks=tuple(checks),
        calibration=pd.DataFrame(calibration) if calibration else None,
        too_few={attribute: few},
    )


def _candidates(table, fairness):
    rows = {
        (name, k): {"params": {"model__C": 10.0**k}, "accuracy": row["accuracy"] - 0.01 * k, fairness: row[fairness],
                    "chosen": k == 0}
        for name, row in table.iterrows()
        for k in range(2)
    }  # fmt: skip
    index = pd.MultiIndex.from_tuples(rows, names=["method", "candidate"]) if rows else None
    return pd.DataFrame(list(rows.values()), index=index)


def _calibration(method, attribute, names, rng):
    rows = []
    for k, group in enumerate(names):
        for place in [*range(10), "all"]:
            score = 0.5 if place == "all" else (place + 0.5) / 10
            observed = min(1.0, score + 0.05 * k)
            n = 1000 if place == "all" else 100
            rows.append({"method": method, "attribute": attribute, "group": group, "bin": place, "n": n,
                         "mean_score": score, "observed": observed, "lower": max(0.0, observed - 0.06),
                         "upper": min(1.0, observed + 0.06)})  # fmt: skip
    return rows


def _leak(method, attribute, attacker, majority, advantage):
    return {
        "attribute": attribute, "attacker": attacker, "accuracy": majority + advantage,
        "accuracy_lower": majority + advantage - 0.03, "accuracy_upper": majority + advantage + 0.03,
        "majority": majority, "advantage": advantage, "balanced_accuracy": 0.6, "auc": 0.6, "n_groups": 2,
        "n_scored": 900, "method": method, "source": "its predicted probabilities",
    }  # fmt: skip


def with_figures(result, method, **figures):
    """The same audit, with other figures of one method."""
    table = result.table.copy()
    for name, value in figures.items():
        assert name in table, name
        table[name] = table[name].astype(object) if isinstance(value, str) else table[name]
        table.loc[method, name] = value
    return replace(result, table=table)


def strata_of(result):
    rows = [
        {"method": name, "gap": row[result.fairness] / 2, "lower": 0.0, "upper": row[result.fairness], "p_value": 0.2,
         "highest_group": row["highest_group"], "lowest_group": row["lowest_group"]}
        for name, row in result.table.iterrows()
    ]  # fmt: skip
    settings = result.settings | {"control": ["education"]}
    return replace(result, strata=pd.DataFrame(rows), settings=settings)
