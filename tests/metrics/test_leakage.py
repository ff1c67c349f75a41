"""Leakage: the attack works where there is something to find, is at chance where there is nothing, and never peeks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy import sparse
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp._sklearn import split_gains
from skfairdp.metrics import _adaptive_attackers, leakage_report, leakage_score
from skfairdp.metrics._adaptive_attackers import BoostingAttacker, NeighborsAttacker, NetworkAttacker
from skfairdp.metrics._attackers import Attack, check_attacked_rows, named_attackers, run_attacks
from skfairdp.metrics._leakage import strongest_attack
from skfairdp.neural import ProbeClassifier
from skfairdp.random import random_stream


def signal(n=600, d=6, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + shift * z[:, None], z


def noise(n=600, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


def chance_band(n, level=1e-4):
    """Where the share of right guesses of a fair coin lies with probability 1 - level."""
    return binom.ppf(level / 2, n, 0.5) / n, binom.ppf(1 - level / 2, n, 0.5) / n


@pytest.mark.parametrize(
    "probe", [None, "linear", "boosting", "neighbors", KNeighborsClassifier(), RidgeClassifier(), "pool"]
)
def test_attack_works_on_a_signal_and_is_at_chance_on_noise(probe):
    assert leakage_score(*signal(), probe=probe, cv=3, random_state=0) > 0.8
    H, z = noise()
    low, high = chance_band(len(z))
    assert low < leakage_score(H, z, probe=probe, cv=3, random_state=0) < high


def test_scorer_that_reads_training_rows_is_caught():
    """The planted fault: on noise, an attacker scored on the rows it was trained on is far outside the band."""
    H, z = noise()
    _, high = chance_band(len(z))
    peeking = leakage_score(H, z, H_test=H, sensitive_features_test=z, probe=RandomForestClassifier(), random_state=0)
    assert peeking > 0.99 > high
    assert leakage_score(H, z, probe=RandomForestClassifier(), random_state=0) < high


def test_standardising_learns_nothing_from_the_scored_rows():
    """A huge test row would flatten all others if the means and scales came from all rows."""
    H, z = signal(400, d=2, shift=3.0)
    spoiled = H.copy()
    spoiled[-1] = 1e9
    for probe in ("linear", "mlp"):
        clean, hit = (
            leakage_score(
                rows[:200], z[:200], H_test=rows[200:], sensitive_features_test=z[200:], probe=probe, random_state=0
            )
            for rows in (H, spoiled)
        )
        assert abs(clean - hit) <= 1 / 200
    together = StandardScaler().fit(spoiled)
    flattened = LogisticRegression().fit(together.transform(spoiled[:200]), z[:200])
    assert flattened.score(together.transform(spoiled[200:]), z[200:]) < 0.9, "the fault would show"


def test_equal_to_a_plain_cross_validation():
    H, z = signal(shift=0.3)
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(H, z))
    probe = make_pipeline(StandardScaler(), LogisticRegression())
    right = sum((probe.fit(H[a], z[a]).predict(H[b]) == z[b]).sum() for a, b in folds)
    assert leakage_score(H, z, probe=probe, cv=folds) == pytest.approx(right / len(z))
    assert leakage_score(H, z, probe=probe, cv=StratifiedKFold(4, shuffle=True, random_state=1)) == pytest.approx(
        right / len(z)
    )


def test_report_figures_against_scikit_learn():
    rng = np.random.default_rng(0)
    z = rng.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=900)
    H = rng.normal(size=(900, 4)) + 0.8 * np.array([z == g for g in "abc"]).T @ np.eye(3, 4)
    probe = LogisticRegression()
    fitted = LogisticRegression().fit(H[:500], z[:500])
    report = leakage_report(H[:500], z[:500], probe=probe, H_test=H[500:], sensitive_features_test=z[500:])
    row = report.iloc[0]
    said = fitted.predict(H[500:])
    assert row.attacker == "LogisticRegression"
    assert row.accuracy == pytest.approx(np.mean(said == z[500:]))
    assert row.balanced_accuracy == pytest.approx(balanced_accuracy_score(z[500:], said))
    areas = [roc_auc_score(z[500:] == g, fitted.predict_proba(H[500:])[:, k]) for k, g in enumerate("abc")]
    assert row.auc == pytest.approx(np.mean(areas))
    assert row.majority == pytest.approx(np.mean(z[500:] == "a"))
    assert row.advantage == pytest.approx(row.accuracy - row.majority)
    hits = round(row.accuracy * 400)
    assert binom.sf(hits - 1, 400, row.accuracy_lower) == pytest.approx(0.025)
    assert binom.cdf(hits, 400, row.accuracy_upper) == pytest.approx(0.025)
    assert (row.n_groups, row.n_scored) == (3, 400)


def test_auc_of_two_groups_from_a_decision_function():
    H, z = signal(shift=0.3)
    fitted = RidgeClassifier().fit(H[:300], z[:300])
    report = leakage_report(H[:300], z[:300], probe=RidgeClassifier(), H_test=H[300:], sensitive_features_test=z[300:])
    assert report.auc[0] == pytest.approx(roc_auc_score(z[300:], fitted.decision_function(H[300:])))


def test_perfect_and_hopeless_attackers_have_whole_intervals():
    H = np.r_[np.arange(20.0), np.arange(100.0, 120.0)][:, None]
    z = (H[:, 0] >= 20).astype(int)
    report = leakage_report(
        H, z, probe=["majority", KNeighborsClassifier(1)], cv=KFold(2, shuffle=True, random_state=0)
    )
    assert report.accuracy_upper.max() == 1.0
    swapped = leakage_report(
        H, z, probe=KNeighborsClassifier(1), H_test=H, sensitive_features_test=1 - z, random_state=0
    )
    assert swapped.accuracy[0] == 0 == swapped.accuracy_lower[0]
    assert swapped.auc[0] == 0


def test_strongest_attacker_is_chosen_on_other_rows():
    """Two hundred attackers that guess: the best of them looks strong, and chosen honestly it is at chance."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    attacks = {str(k): Attack(rng.integers(0, 2, 400), None) for k in range(200)}
    part = np.arange(400) % 5
    honest = np.mean(strongest_attack(attacks, truth, part).predicted == truth)
    boasting = max(np.mean(attack.predicted == truth) for attack in attacks.values())
    low, high = chance_band(400, 1e-2)
    assert boasting > high, "the fault that is avoided: the maximum is outside the band"
    assert low < honest < high


def test_strongest_takes_the_best_attacker():
    H, _ = noise()
    hidden = (H[:, 0] * H[:, 1] > 0).astype(int)
    report = leakage_report(H, hidden, probe=["linear", "boosting", "majority"], random_state=0).set_index("attacker")
    assert report.accuracy["strongest"] == report.accuracy["boosting"] > 0.8
    assert report.auc["strongest"] > 0.85
    assert report.accuracy["majority"] == pytest.approx(0.5, abs=0.01)
    pooled = leakage_score(H, hidden, probe=["linear", "boosting", "majority"], random_state=0)
    assert pooled == report.accuracy["strongest"]
    test_part = leakage_report(
        H[:400], hidden[:400], probe=["linear", "boosting"], H_test=H[400:], sensitive_features_test=hidden[400:]
    )
    assert test_part.accuracy.iloc[-1] == test_part.accuracy.iloc[1]


def test_pool_is_the_default_and_has_all_attackers():
    """One of each kind, and the mean of the network and the trees; a pool without one of them fails here."""
    H, z = signal(200)
    report = leakage_report(H, z, cv=3, random_state=0)
    assert report.attacker.tolist() == ["linear", "mlp", "boosting", "neighbors", "mlp + boosting", "strongest"]
    assert leakage_score(H, z, cv=3, random_state=0) == report.accuracy.iloc[-1]
    assert leakage_score(H, z, cv=3, random_state=0) == leakage_score(H, z, probe="pool", cv=3, random_state=0)


def test_mean_of_network_and_trees():
    H, z = signal(300, shift=0.5)
    groups = np.array(["a", "b", "c"])[z + (H[:, 0] > 1)]
    attacked = check_attacked_rows(H, groups, None, None, 3, random_stream(0))
    indices = attacked.groups.indices[:, 0]
    attacks, _, _ = run_attacks(attacked, indices, named_attackers(["mlp", "boosting"]), random_stream(0), None)
    mean = (attacks["mlp"].scores + attacks["boosting"].scores) / 2
    np.testing.assert_array_equal(attacks["mlp + boosting"].scores, mean)
    np.testing.assert_array_equal(attacks["mlp + boosting"].predicted, mean.argmax(axis=1))


def test_strongest_auc_is_chosen_by_auc():
    """Where everybody is best said to be of the largest group, accuracy cannot tell the attackers apart."""
    rng = np.random.default_rng(0)
    truth = (rng.random(2000) < 0.2).astype(int)
    says_the_largest = np.zeros(2000, dtype=int)
    blind = Attack(says_the_largest, np.column_stack([rng.random(2000), rng.random(2000)]))
    informed = truth + rng.normal(size=2000)
    sees = Attack(says_the_largest, np.column_stack([-informed, informed]))
    for attacks in ({"blind": blind, "sees": sees}, {"sees": sees, "blind": blind}):
        found = strongest_attack(attacks, truth, np.arange(2000) % 5)
        assert roc_auc_score(truth, found.scores[:, 1]) > 0.7
        np.testing.assert_array_equal(found.predicted, says_the_largest)


@pytest.mark.parametrize("n", [300, 2000])
def test_boosting_bears_a_group_of_one(n):
    """Rows for early stopping cannot be held out of a group of one row."""
    H, z = signal(n, shift=4.0)
    z[0] = 2
    assert leakage_score(H, z, probe="boosting", cv=2, random_state=0) > 0.95


def test_boosting_stops_early():
    H, z = noise(3000)
    assert BoostingAttacker(random_state=0).fit(H, z).trees_.n_iter_ < 100


def wide_table(n=4000, d=300, seed=0):
    """What tells the groups apart are the last columns: one decides which of two others counts."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, d))
    return H, np.where(H[:, -1] > 1, H[:, -2] > 0, H[:, -3] > 1)


def test_trees_get_the_telling_columns_of_a_wide_table():
    """Three of three hundred columns say all; the first fifty say no more than the share of the groups."""
    H, z = wide_table()
    attacker = BoostingAttacker(random_state=0).fit(H[:3000], z[:3000])
    assert len(attacker.columns_) == attacker.trees_.n_features_in_ == 50
    assert {297, 298, 299} <= set(attacker.columns_)
    assert attacker.score(H[3000:], z[3000:]) > 0.98
    found = attacker.predict_proba(H[3000:])
    np.testing.assert_array_equal(attacker.predict(H[3000:]), attacker.classes_[found.argmax(axis=1)])
    again = BoostingAttacker(random_state=0).fit(H[:3000], z[:3000])
    np.testing.assert_array_equal(again.predict_proba(H[3000:]), found)
    others = BoostingAttacker(random_state=0).fit(H[:3000, :50], z[:3000])
    assert others.score(H[3000:, :50], z[3000:]) < 0.82


def test_trees_see_every_column_of_a_narrow_table():
    H, z = wide_table(d=100)
    trees = BoostingAttacker(random_state=0).fit(H, z).trees_
    assert trees.n_features_in_ == 100
    plain = HistGradientBoostingClassifier(max_iter=300, early_stopping=True, random_state=trees.random_state)
    np.testing.assert_array_equal(trees.predict_proba(H), plain.fit(H, z).predict_proba(H))


def test_rows_of_a_rare_group_all_choose_columns(monkeypatch):
    """Of ten thousand rows 300 are rare: a plain sample of two thousand would hold sixty of them."""
    asked = []

    class Trees(HistGradientBoostingClassifier):
        def fit(self, X, y):
            asked.append(np.bincount(y))
            return super().fit(X, y)

    monkeypatch.setattr(_adaptive_attackers, "HistGradientBoostingClassifier", Trees)
    rng = np.random.default_rng(0)
    z = rng.permutation(np.repeat([0, 1, 2], [5000, 4700, 300]))
    BoostingAttacker(random_state=0).fit(rng.normal(size=(10_000, 101)), z)
    np.testing.assert_array_equal(asked, [[1000, 1000, 300], [5000, 4700, 300]])


def test_gains_belong_to_the_columns_that_are_split():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    X[:, [0, 1, 3, 5]] = 0  # constant columns cannot be split
    trees = HistGradientBoostingClassifier(max_iter=3, learning_rate=1.0).fit(X, X[:, 2] + 0.5 * X[:, 4] > 0)
    gains = split_gains(trees)
    assert gains[2] > gains[4] > 0
    np.testing.assert_array_equal(gains[[0, 1, 3, 5]], np.zeros(4))


def test_network_is_not_deafened_by_noise_common_to_all_columns():
    """One large draw for each row, as in the public code of DPNR: the plain network hears nothing else."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 2000)
    H = rng.normal(size=(2000, 20))
    H[:, 0] += 3 * z
    loud = H + 1000 * rng.laplace(size=(2000, 1))
    test = {"H_test": loud[1000:], "sensitive_features_test": z[1000:], "random_state": 0}
    low, high = chance_band(1000)
    assert low < leakage_score(loud[:1000], z[:1000], probe=ProbeClassifier(random_state=0), **test) < high
    assert leakage_score(loud[:1000], z[:1000], probe="mlp", **test) > 0.85
    assert NetworkAttacker().fit(H, z).direction_ is None, "nothing is taken out of other rows"


def test_neighbors_are_looked_for_among_5000_rows():
    H, z = signal(6000)
    attacker = NeighborsAttacker(random_state=0).fit(H, z)
    assert attacker.neighbors_.n_samples_fit_ == 5000
    assert attacker.neighbors_.n_neighbors == 35
    assert attacker.score(H, z) > 0.85
    np.testing.assert_array_equal(
        attacker.predict_proba(H[:9]), NeighborsAttacker(random_state=0).fit(H, z).predict_proba(H[:9])
    )


def test_several_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "old": rng.integers(0, 2, 600)})
    H = np.column_stack([table.sex == "f", table.old, rng.normal(size=600)]) + 0.1 * rng.normal(size=(600, 3))
    report = leakage_report(H, table, probe="linear", random_state=0)
    assert report.attribute.tolist() == ["sex", "old", "sex x old"]
    assert report.n_groups.tolist() == [2, 2, 4]
    assert report.accuracy.min() > 0.95
    assert leakage_score(H, table, probe="linear", random_state=0) > 0.95
    only_sex = leakage_score(H[:, :1], table, probe="linear", random_state=0)
    assert 0.4 < only_sex < 0.6, "who reads one of two columns names the intersection half of the time"


@pytest.mark.parametrize(
    "container",
    [list, np.array, pd.Series, pl.Series, lambda v: pd.DataFrame({"g": v}), lambda v: pl.DataFrame({"g": v})],
)
@pytest.mark.parametrize("labels", [("f", "m"), (False, True), (10, 2)])
def test_containers_and_labels(container, labels):
    H, z = signal(120)
    named = [labels[code] for code in z]
    assert leakage_score(H, container(named), probe="linear", cv=3, random_state=0) == pytest.approx(
        leakage_score(H, z if labels[0] < labels[1] else 1 - z, probe="linear", cv=3, random_state=0)
    )


def test_representations_of_any_container():
    H, z = signal(120)
    expected = leakage_score(H, z, probe="linear", cv=3, random_state=0)
    for same in (H.tolist(), pd.DataFrame(H), pl.DataFrame(H), sparse.csr_array(H)):
        assert leakage_score(same, z, probe="linear", cv=3, random_state=0) == pytest.approx(expected)


def test_small_and_unknown_groups_count_as_missed():
    H, z = signal(200, shift=8.0)
    with_single = z.astype(object)
    with_single[0] = 7
    assert leakage_score(H, with_single, probe="linear", cv=5, random_state=0) == pytest.approx(199 / 200)
    unknown = leakage_score(H, z, H_test=H[:4], sensitive_features_test=[z[0], z[1], "new", z[3]], probe="linear")
    assert unknown == 0.75
    report = leakage_report(H, z, H_test=H[:4], sensitive_features_test=[0, 1, "new", 1], probe="linear")
    assert report.n_groups[0] == 3
    assert 0 <= report.auc[0] <= 1
    one_group_in_training = [(np.flatnonzero(z == 0), np.arange(200))]
    assert leakage_score(H, z, cv=one_group_in_training) == pytest.approx(np.mean(z == 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive_features": [0] * 40}, "sensitive_features"),
        ({"sensitive_features": [0, 1]}, "sensitive_features"),
        ({"sensitive_features": None}, "sensitive_features"),
        ({"H": None}, "^H "),
        ({"H": np.arange(40.0)}, "Expected 2D array"),
        ({"H": np.full((40, 2), np.nan)}, "H contains NaN"),
        ({"H_test": np.zeros((3, 2))}, "sensitive_features_test"),
        ({"sensitive_features_test": [0, 1]}, "H_test is missing"),
        ({"H_test": np.zeros((2, 3)), "sensitive_features_test": [0, 1]}, "H_test must have the 2 columns of H"),
        ({"H_test": np.zeros((2, 2)), "sensitive_features_test": [[0, 1], [1, 0]]}, "must have the 1 columns"),
        ({"cv": 1}, "cv must be between 2 and"),
        ({"cv": 10**6}, "cv must be between 2 and"),
        ({"cv": 2.5}, "cv"),
        ({"cv": True}, "cv"),
        ({"probe": "forest"}, "probe must be 'mlp'"),
        ({"probe": LogisticRegression}, "probe must be 'mlp'"),
        ({"probe": []}, "probe"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
@pytest.mark.parametrize("function", [leakage_score, leakage_report])
def test_bad_input_is_named(function, arguments, message):
    good = {"H": np.random.default_rng(0).normal(size=(40, 2)), "sensitive_features": [0, 1] * 20, "probe": "linear"}
    with pytest.raises(ValueError, match=message):
        function(**{**good, **arguments})


def test_confidence_is_checked():
    with pytest.raises(ValueError, match="confidence_level"):
        leakage_report(np.zeros((4, 1)), [0, 1, 0, 1], confidence_level=95)


def test_given_probe_is_not_changed():
    probe = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5))
    leakage_score(*signal(100), probe=probe, random_state=0)
    assert probe[-1].random_state is None
    assert not hasattr(probe[-1], "classes_")


def test_same_names_are_told_apart():
    report = leakage_report(*signal(100), probe=[LogisticRegression(C=0.1), LogisticRegression()], cv=2, random_state=0)
    assert report.attacker.tolist() == ["LogisticRegression", "LogisticRegression#2", "strongest"]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_seed_decides_everything_also_in_other_workers(backend):
    H, z = signal(150, shift=0.3)
    probes = ["mlp", RandomForestClassifier(n_estimators=5)]
    here = leakage_report(H, z, probe=probes, cv=2, random_state=3)
    with parallel_config(backend):
        pd.testing.assert_frame_equal(here, leakage_report(H, z, probe=probes, cv=2, random_state=3, n_jobs=2))
    assert not here.accuracy.equals(leakage_report(H, z, probe=probes, cv=2, random_state=4).accuracy)
