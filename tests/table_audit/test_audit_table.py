"""An audit says what the library's own functions say, chooses on validation rows, and hides nothing."""

import json
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skfairdp import LaplacePrivatizer, LEACEEraser, RelaxationThreshold, audit_table, group_rates, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import (
    _attackers,
    accuracy_gap,
    demographic_parity_gap,
    equalized_odds_gap,
    estimate_gap,
    grms,
    leakage_report,
    worst_group_accuracy,
)
from skfairdp.random import random_stream
from skfairdp.table_audit import _audit_run
from skfairdp.table_audit._chosen_method import choose_method
from skfairdp.table_audit._methods_compared import method_names
from skfairdp.table_audit._models_of_others import boosted_trees
from skfairdp.table_audit._prepared_table import hold_out, prepare_table, validation_folds
from skfairdp.table_audit._train_and_attack import prepare_fold

STRONG = _attackers.POOL  # before the tests of this folder make it cheap

ROLES = {"target": "target", "sensitive": "group"}


def biased(n=600, **knobs):
    return make_biased_classification(n, 5, as_frame=True, random_state=0, **{"group_shift": 2.5, **knobs}).frame


def audit(frame, methods=("leace",), **arguments):
    arguments = {"random_state": 0, "n_splits": 2, "n_repeats": 1, "verbose": False, **ROLES, **arguments}
    return audit_table(frame, methods=methods, **arguments)


class Remembering(LogisticRegression):
    """Keeps what it was asked to predict last, so that a test can measure again."""

    def predict(self, X):
        self.asked_ = np.asarray(X)
        return super().predict(X)


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_attackers, "POOL", STRONG)
        return audit(biased(), ["leace", "inlp", ("mine", Remembering())])


#: Every method but those that train for longest, without an epsilon: see test_every_method_is_audited.
MOST_METHODS = [name for name in method_names(everything=True) if name not in ("fairlearn", "adversarial", "dp-sgd")]


@pytest.fixture(scope="module")
def all_methods():
    return audit(biased(200), MOST_METHODS, epsilon=6.0, relaxation_threshold=0.02)


def test_figures_are_those_of_the_library(result):
    frame = biased()
    table = prepare_table(frame, "target", "group")
    model = result.models["mine"]
    # The test rows, found again by what the model was asked about.
    prepared = model[:-1].transform(table.X)
    asked = {row.tobytes() for row in np.asarray(model[-1].asked_)}
    test = np.array([k for k, row in enumerate(prepared) if row.tobytes() in asked])
    assert len(test) == result.settings["n_test"] == 180
    predicted = model.predict(table.X.iloc[test])
    y, group = frame["target"].iloc[test], frame["group"].iloc[test]
    row = result.table.loc["mine"]
    assert row["accuracy"] == accuracy_score(y, predicted)
    assert row["balanced_accuracy"] == balanced_accuracy_score(y, predicted)
    assert row["tpr_gap_measured"] == tpr_gap(y, predicted, sensitive_features=group)
    gap = estimate_gap("tpr_gap", y, predicted, sensitive_features=group, pos_label=1)
    np.testing.assert_allclose(row[["tpr_gap", "tpr_gap_lower"]].astype(float), [gap.value, gap.lower], atol=0.02)
    assert (row["rows"], row["n_rows"]) == ("test rows", 180)
    rates = group_rates(y, predicted, sensitive_features=group, interval="exact")
    shown = result.group_rates.query("method == 'mine' and rate == 'tpr' and `class` == 1").set_index("group")
    np.testing.assert_array_equal(shown["value"], rates["tpr_1"])
    np.testing.assert_array_equal(shown["lower"], rates["tpr_1_lower"])
    # A fresh model on the same training rows is the same model.
    train = np.setdiff1d(np.arange(len(frame)), test)
    again = clone(model).fit(table.X.iloc[train], table.y[train])
    np.testing.assert_array_equal(again.predict(table.X.iloc[test]), predicted)


def test_erasure_is_that_of_the_library(result):
    frame = biased()
    table = prepare_table(frame, "target", "group")
    model = result.models["leace"]
    asked = result.models["mine"][-1].asked_
    prepared = result.models["mine"][:-1].transform(table.X)
    held_out = {row.tobytes() for row in asked}
    train = np.array([k for k, row in enumerate(prepared) if row.tobytes() not in held_out])
    scaled = table.preprocessor().fit(table.X.iloc[train]).transform(table.X.iloc[train])
    eraser = LEACEEraser().fit(scaled, sensitive_features=frame[["group"]].iloc[train])
    np.testing.assert_allclose(model["model"]["eraser"].left_, eraser.left_)


def test_leakage_is_that_of_the_strongest_attacker(result):
    model = result.models["leace"]
    frame = biased()
    table = prepare_table(frame, "target", "group")
    strongest = result.leakage.query("attacker == 'strongest'").set_index("method")
    assert set(strongest.index) == {"(columns)", "leace", "inlp", "mine"}
    for name in ("leace", "inlp", "mine"):
        assert result.table.loc[name, "leakage"] == strongest.loc[name, "accuracy"]
        assert result.table.loc[name, "majority"] == strongest.loc[name, "majority"]
    # The columns give the group away; what LEACE leaves does not, for a linear attacker.
    assert strongest.loc["(columns)", "accuracy_lower"] > strongest.loc["(columns)", "majority"]
    H = model["model"][:-1].transform(model["prepare"].transform(table.X))
    mine = leakage_report(H, frame["group"], probe="linear", random_state=0).iloc[0]
    assert mine["accuracy_lower"] < mine["majority"] + 0.02


def test_best_is_chosen_on_validation_rows(result):
    """The rule gives the same choice when it sees nothing but the validation figures."""
    validation = result.table.filter(like="validation_").rename(columns=lambda name: name.removeprefix("validation_"))
    validation["needs_groups"] = False
    score, threshold = result.settings["chosen_by"], result.settings["relaxation_threshold"]
    assert result.best == choose_method(validation, result.reference, "tpr_gap", score, threshold)
    rule = RelaxationThreshold(threshold)
    for _, tried in result.candidates.groupby(level="method"):
        assert rule(tried.reset_index(drop=True)) == np.flatnonzero(tried["chosen"])[0]


def test_test_rows_take_no_part_in_the_choice():
    """Labels of the test rows are turned over: everything that is measured changes, and the choice stays."""
    frame = biased(400, label_bias=0.4)
    groups = pd.factorize(frame["group"], sort=True)[0]
    _, test = hold_out(frame["target"].to_numpy(), groups, 0.3, random_stream(0).generator)
    turned = frame.copy()
    # Turned over in pairs of one group and different classes, so that the same rows are held out.
    for group in (0, 1):
        one, other = (test[(groups[test] == group) & (frame["target"].to_numpy()[test] == y)] for y in (0, 1))
        n = min(len(one), len(other))
        columns = [name for name in frame if name.startswith("x")]
        turned.loc[one[:n], columns] = frame.loc[other[:n], columns].to_numpy()
        turned.loc[other[:n], columns] = frame.loc[one[:n], columns].to_numpy()
    methods = ["logistic", "fair trees"]
    first, second = audit(frame, methods), audit(turned, methods)
    assert second.table.loc["logistic", "accuracy"] < 0.5 < first.table.loc["logistic", "accuracy"]
    for name in first.table.filter(like="validation_"):
        pd.testing.assert_series_equal(first.table[name], second.table[name])
    assert (first.best, first.reference) == (second.best, second.reference)


class ReadsColumn(ClassifierMixin, BaseEstimator):
    """Answers what a column says."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, self.column] > 0).astype(int)


@pytest.mark.parametrize("fair_in_training", ["one", "two"])
def test_what_is_fair_on_test_rows_alone_is_not_chosen(fair_in_training):
    """Two columns of decisions, of which one is fair in the training rows and the other one in the test rows."""
    rng = np.random.default_rng(0)
    y, group = rng.integers(2, size=2000), rng.integers(2, size=2000)
    _, test = hold_out(y, group, 0.3, random_stream(0).generator)
    held_out = np.isin(np.arange(2000), test)
    unfair = np.where((y == 1) & (group == 1) & (rng.random(2000) < 0.4), 0, y)
    fair = np.where(rng.random(2000) < 0.1, 1 - y, y)
    one, two = np.where(held_out, unfair, fair), np.where(held_out, fair, unfair)
    if fair_in_training == "two":
        one, two = two, one
    frame = pd.DataFrame({"x0": 2.0 * one - 1, "x1": 2.0 * two - 1, "target": y, "group": group})
    methods = [("one", ReadsColumn(0)), ("two", ReadsColumn(1))]
    found = audit(frame, methods, relaxation_threshold=0.1)
    other = {"one": "two", "two": "one"}[fair_in_training]
    assert found.table.loc[fair_in_training, "tpr_gap"] > found.table.loc[other, "tpr_gap"] + 0.2
    assert found.best == fair_in_training


def test_no_candidate_is_judged_by_rows_it_was_trained_on():
    """Nothing can be learned from these columns, so whoever looks right has been told the answers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["x0", "x1", "x2"])
    frame = frame.assign(target=rng.integers(2, size=400), group=rng.integers(2, size=400))
    found = audit(frame, [("memory", KNeighborsClassifier(1))])
    assert found.candidates["accuracy"].max() < 0.62
    assert found.table.loc["memory", "accuracy"] < 0.62


@pytest.mark.usefixtures("all_attackers")
def test_attackers_of_an_audit_are_not_all_linear():
    """The group is whether two columns have the same sign: no linear attacker can read it, the others must."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["x0", "x1"])
    frame = frame.assign(target=rng.integers(2, size=1200), group=(frame["x0"] * frame["x1"] > 0).astype(int))
    found = audit(frame, [("mine", ReadsColumn())]).leakage.query("method == '(columns)'")
    found = found.set_index("attacker")
    assert found.loc["linear", "accuracy"] < 0.65
    assert found.loc["strongest", "accuracy"] > 0.8


def test_methods_carry_their_exact_epsilon(all_methods):
    table = all_methods.table
    assert list(table.index) == MOST_METHODS
    assert not [note for note in all_methods.notes if "is left out" in note]
    for name in ("unconstrained", "leace", "inlp", "logistic", "trees", "fair trees", "threshold optimizer"):
        assert table.loc[name, "epsilon"] == math.inf
        assert table.loc[name, "protects"] == "nothing"
    for name in ("noise", "federate", "pate", "fair private trees", "private threshold optimizer"):
        (guarantee,) = all_methods.guarantees[name]
        assert table.loc[name, "epsilon"] == guarantee.epsilon
        assert guarantee.epsilon == pytest.approx(6.0, rel=1e-6)
        assert guarantee.epsilon <= 6.0 * (1 + 1e-12)
        assert any("seed" in scope for scope in guarantee.does_not_cover)  # the audit is seeded, and says so
    assert table.loc["pate", "delta"] == 1e-5
    assert any("how the table was read" in scope for scope in all_methods.guarantees["pate"][0].does_not_cover)
    assert table.loc["noise", "protects"] != table.loc["pate", "protects"]
    assert table.loc["noise", "protects"] == table.loc["fair private trees", "protects"]
    assert all_methods.best_private in ("noise", "federate", "pate", "fair private trees")


@pytest.mark.slow
def test_every_method_is_audited():
    result = audit(biased(400), "all", epsilon=6.0)
    assert list(result.table.index) == method_names(everything=True)
    assert not [note for note in result.notes if "is left out" in note]
    for name in ("adversarial", "fairlearn"):
        assert result.table.loc[name, ["epsilon", "protects"]].tolist() == [math.inf, "nothing"]
    wanted = ["accuracy", "balanced_accuracy", "tpr_gap", "leakage", "majority", "code_bits", "seconds"]
    assert np.isfinite(result.table[wanted].to_numpy(dtype=float)).all()


def test_all_figures_are_there(all_methods):
    wanted = ["accuracy", "balanced_accuracy", "tpr_gap", "leakage", "majority", "code_bits", "seconds"]
    assert np.isfinite(all_methods.table[wanted].to_numpy(dtype=float)).all()
    gaps = all_methods.table[["tpr_gap_lower", "tpr_gap", "tpr_gap_upper"]]
    assert (gaps.diff(axis=1).iloc[:, 1:] >= 0).all().all()


def test_candidates_are_judged_out_of_fold(result):
    """The validation figures are those of one slow loop over the folds, on all training rows at once."""
    frame = biased()
    table = prepare_table(frame, "target", "group")
    stream = random_stream(0)
    groups = pd.factorize(frame["group"], sort=True)[0]
    train, _ = hold_out(table.y, groups, 0.3, stream.generator)
    predicted = np.empty(len(train), dtype=table.y.dtype)
    for fit, valid in validation_folds(table.y[train], groups[train], 2, stream.generator):
        model = make_pipeline(table.preprocessor(), LogisticRegression())
        model.fit(table.X.iloc[train[fit]], table.y[train[fit]])
        predicted[valid] = model.predict(table.X.iloc[train[valid]])
    row = result.candidates.loc["mine"].iloc[0]
    assert row["accuracy"] == accuracy_score(table.y[train], predicted)
    found = estimate_gap("tpr_gap", table.y[train], predicted, sensitive_features=groups[train], pos_label=1)
    assert row["tpr_gap"] == pytest.approx(found.value, abs=0.01)


def test_columns_of_a_fold_are_prepared_by_its_training_rows():
    """Rows that are judged may lie far outside of what training has seen, and have other words."""
    frame = biased(100).assign(region=np.repeat(["north", "south"], 50))
    frame.loc[50:, "x0"] += 1000
    table = prepare_table(frame, "target", "group")
    fit, valid = np.arange(50), np.arange(50, 100)
    learned = table.preprocessor().fit(table.X.iloc[fit])
    for found, rows in zip(prepare_fold(table, fit, valid), (fit, valid)):
        np.testing.assert_array_equal(found, learned.transform(table.X.iloc[rows]))


def test_shared_numbers_of_folds_change_no_figure(monkeypatch):
    """A small table's folds are turned into numbers once for all methods, a large one's by each model again."""
    frame = biased(200).assign(region=np.tile(["north", "south", "east", "west", None], 40))
    methods = ["logistic", "fair private trees", "leace"]
    shared = audit(frame, methods)
    monkeypatch.setattr(_audit_run, "_SHARED_CELLS", 0)
    apart = audit(frame, methods)
    drop = ["seconds", "search_seconds"]
    pd.testing.assert_frame_equal(shared.table.drop(columns=drop), apart.table.drop(columns=drop))
    pd.testing.assert_frame_equal(shared.candidates, apart.candidates)


def test_search_releases_each_row_once_per_candidate():
    """A row of the folds is a release: the audit must not ask for it twice."""
    asked = []

    class Counting(LogisticRegression):
        def predict(self, X):
            asked.append(len(X))
            return super().predict(X)

    audit(biased(200), [("mine", Counting())])
    assert asked == [70, 70, 60]  # two folds of the 140 training rows, then the test rows


def test_preparation_of_pate_learns_from_public_rows(all_methods):
    model = all_methods.models["pate"]
    assert isinstance(model[0], FrozenEstimator)
    n_train = all_methods.settings["n_train"]
    scaler = model[0].estimator.named_transformers_["numbers"][-1]
    assert scaler.n_samples_seen_ == round(0.25 * n_train)


def test_fair_trees_are_fairer_than_trees():
    frame = biased(1000, label_bias=0.4)
    frame["target"] = np.where(frame["target"] == 1, "hired", "not")  # the positive class is the smaller label
    result = audit(frame, ["trees", "fair trees", "fair private trees"], pos_label="hired", epsilon=4.0)
    table = result.table
    for name in ("fair trees", "fair private trees"):
        assert len(result.candidates.loc[name]) == 1
        assert result.models[name][-1].multipliers_.index.tolist() == ["true positive rate of hired"]
        for gap in ("tpr_gap", "validation_tpr_gap"):
            assert table.loc[name, gap] < table.loc["trees", gap]
    # Both are made of one fit.
    for fold in ("validation_accuracy", "validation_tpr_gap"):
        assert table.loc["fair trees", fold] == pytest.approx(table.loc["fair private trees", fold], abs=0.05)
    assert math.isinf(result.models["fair trees"][-1].epsilon_)
    assert result.models["fair private trees"][-1].epsilon_ == 4.0
    assert table["epsilon"].tolist() == [math.inf, math.inf, 4.0]
    # Of fair trees nobody sees more than answers: an attacker that knows one can make one guess for each of them.
    sources = result.leakage.groupby("method")["source"].first()
    assert sources["trees"] == "its predicted probabilities"
    assert sources["fair trees"] == sources["fair private trees"] == "the answers it releases"
    predicted = result.models["fair trees"].predict(prepare_table(frame, "target", "group").X)
    best_guesses = pd.crosstab(predicted, frame["group"]).max(axis=1).sum() / len(frame)
    assert table.loc["fair trees", "leakage"] == pytest.approx(best_guesses, abs=0.05)  # all rows against test rows


def test_fair_trees_take_the_threshold_and_tell_of_small_groups(all_methods):
    for name in ("fair trees", "fair private trees"):
        assert all_methods.models[name][-1].relaxation == 0.02
        assert any(note.startswith(f"{name}: sensitive_features: groups with few rows") for note in all_methods.notes)


def test_one_answer_for_everybody_tells_nothing():
    result = audit(biased(200), ["fair private trees"], epsilon=1e-3)
    row = result.table.loc["fair private trees"]
    assert row["epsilon"] == row["tpr_gap_measured"] == 0
    assert row["constant"]
    assert row["leakage"] == row["majority"]
    assert any("fair private trees: everybody is answered" in note for note in result.notes)


@pytest.mark.slow
def test_fairlearn_is_a_method_when_asked():
    frame = biased(600, label_bias=0.4)
    frame["target"] = np.where(frame["target"] == 1, "hired", "not")  # the positive class is the smaller label
    result = audit(frame, ["fairlearn", ("plain", LogisticRegression())], pos_label="hired")
    assert list(result.table.index) == ["fairlearn", "plain"]
    assert result.table.loc["fairlearn", "epsilon"] == math.inf
    predicted = result.models["fairlearn"].predict(prepare_table(frame, "target", "group").X)
    assert set(predicted) == {"hired", "not"}
    gaps = result.candidates["tpr_gap"]
    assert gaps.loc["fairlearn"].min() < gaps.loc["plain"].min()


def test_fairlearn_refuses_several_classes():
    with pytest.raises(ValueError, match="fairlearn"):
        audit(biased(300, n_classes=3), ["fairlearn"])


@pytest.mark.slow
def test_fairlearn_is_imported_only_when_asked():
    code = "import sys, skfairdp.table_audit, skfairdp.cli; print('fairlearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("seed", range(20))
def test_metrics_agree_with_fairlearn(seed):
    from fairlearn.metrics import (
        MetricFrame,
        demographic_parity_difference,
        equalized_odds_difference,
        selection_rate,
        true_positive_rate,
    )

    rng = np.random.default_rng(seed)
    n_rows, n_groups = int(rng.integers(80, 400)), int(rng.integers(2, 6))
    y, predicted = rng.integers(2, size=(2, n_rows))
    sex = rng.integers(n_groups, size=n_rows)
    known = {"sensitive_features": sex}
    expected = demographic_parity_difference(y, predicted, **known)
    assert demographic_parity_gap(y, predicted, **known) == pytest.approx(expected)
    assert equalized_odds_gap(y, predicted, **known) == pytest.approx(equalized_odds_difference(y, predicted, **known))
    theirs = MetricFrame(
        metrics={"accuracy": accuracy_score, "tpr_1": true_positive_rate, "selection_rate_1": selection_rate},
        y_true=y,
        y_pred=predicted,
        **known,
    )
    ours = group_rates(y, predicted, **known)
    for name, rates in theirs.by_group.items():
        np.testing.assert_allclose(ours[name], rates)
    difference = theirs.difference()
    assert tpr_gap(y, predicted, **known) == pytest.approx(difference["tpr_1"])
    assert accuracy_gap(y, predicted, **known) == pytest.approx(difference["accuracy"])
    assert worst_group_accuracy(y, predicted, **known) == pytest.approx(theirs.group_min()["accuracy"])


@pytest.mark.slow
# joblib replaces a process whose memory has grown, as by an import of torch. As an error, its warning would end the
# thread that gives out the work, and the test would wait for ever.
@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs")
@pytest.mark.usefixtures("all_attackers")  # those of other processes cannot be changed
def test_seed_repeats_with_any_n_jobs():
    first, second = (audit(biased(300), ["leace", "noise", "fair private trees"], n_jobs=jobs) for jobs in (1, 2))
    # A model in another process draws from a stream of its own, and its receipt names that stream.
    assert str(first.guarantees) == str(second.guarantees)
    drop = ["seconds", "search_seconds"]
    pd.testing.assert_frame_equal(first.table.drop(columns=drop), second.table.drop(columns=drop))
    other = audit(biased(300), ["leace", "noise", "fair private trees"], random_state=1)
    assert not first.table.drop(columns=drop).equals(other.table.drop(columns=drop))


def test_methods_that_need_many_rows_wait_for_them():
    """By default they are left out of a small table, with a note; named, they are there."""
    small = audit(biased(300), None)
    assert small.table.index.tolist() == ["logistic", "trees", "fair trees", "fair private trees", "leace"]
    (note,) = [note for note in small.notes if "the table has few rows" in note]
    assert "federate, pate" in note
    named = audit(biased(300), ["pate"])
    assert named.table.index.tolist() == ["pate"]
    assert not any("the table has few rows" in note for note in named.notes)


@pytest.mark.parametrize(("n_rows", "rounds", "leaves"), [(500, 40, 8), (5000, 100, 8), (20_000, 100, 31)])
def test_trees_grow_with_the_table(n_rows, rounds, leaves):
    trees = boosted_trees(n_rows)
    assert (trees.max_iter, trees.max_leaf_nodes) == (rounds, leaves)


def test_the_call_in_the_report_repeats_it():
    frame = biased(200)
    first = audit(frame, ["leace", ("mine", LogisticRegression(C=0.5))], random_state=None, n_probe_rows=100)
    names = {"audit_table": audit_table, "frame": frame, "LogisticRegression": LogisticRegression}
    again = eval(first.command.replace("audit_table(", "audit_table(verbose=False, frame=", 1), names)
    drop = ["seconds", "search_seconds"]
    pd.testing.assert_frame_equal(first.table.drop(columns=drop), again.table.drop(columns=drop))
    assert again.settings == first.settings


def test_infinite_epsilon_protects_nobody():
    private = ["noise", "federate", "pate", "fair private trees"]
    result = audit(biased(200), private, epsilon=math.inf)
    assert list(result.table.index) == private
    assert result.table["protects"].eq("nothing").all()
    assert result.best_private is None
    assert "None of these methods protects anybody" in " ".join(result.verdict.sentences)


def test_without_a_seed_one_is_drawn_and_told():
    frame = biased(200)
    first = audit(frame, random_state=None)
    again = audit(frame, random_state=first.settings["random_state"])
    assert first.table.loc["leace", "accuracy"] == again.table.loc["leace", "accuracy"]
    other = audit(frame.assign(said=frame["target"]), "none", predictions="said", random_state=None)
    assert first.settings["random_state"] != other.settings["random_state"]


class Plain:
    """A model that knows nothing of scikit-learn but its verbs, as a vendor might hand it over."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


def test_models_without_tags_are_used_as_they_are():
    frame = make_biased_classification(400, as_frame=True, random_state=0).frame
    result = audit_table(
        frame, target="target", sensitive="group", methods=["leace", ("vendor", Plain())], random_state=0, verbose=False
    )
    assert result.table.loc["vendor", "epsilon"] == math.inf
    assert result.table.loc["vendor", "protects"] == "nothing"


def test_own_models_join():
    frame = biased(300)
    features = [name for name in frame if name.startswith("x")]
    fitted = RandomForestClassifier(10, random_state=0).fit(frame[["x1", "x0"]], frame["target"])
    private = make_pipeline(LaplacePrivatizer(2.0), LogisticRegression())
    result = audit(frame, [LogisticRegression(), ("forest", fitted), ("private", private)])
    assert list(result.table.index) == ["forest", "LogisticRegression", "private"]
    assert result.models["forest"] is fitted
    assert result.table.loc["forest", "seconds"] < 0.05
    assert result.table.loc["private", "epsilon"] == 2.0
    assert list(result.models["private"].feature_names_in_) == features
    assert result.reference == "forest"  # what exists already


def test_failing_method_is_left_out_with_reason():
    class Broken(LogisticRegression):
        def fit(self, X, y):
            raise ValueError("this model is broken")

    result = audit(biased(200), ["leace", ("broken", Broken())])
    assert list(result.table.index) == ["leace"]
    note = "broken is left out, because it could not be trained: ValueError: this model is broken"
    assert note in result.notes
    assert note in result.to_html()
    with pytest.raises(ValueError, match=r"no method could be trained\. broken is left out"):
        audit(biased(200), [("broken", Broken())])


def test_unknown_labels_and_columns_are_refused():
    frame = biased(200)
    strange = LogisticRegression().fit(frame[["x0"]], np.where(frame["target"] == 1, "yes", "no"))
    with pytest.raises(ValueError, match="'target'"):
        audit(frame, [("strange", strange)])
    stranger = LogisticRegression().fit(frame[["x0"]].rename(columns={"x0": "gone"}), frame["target"])
    with pytest.raises(ValueError, match="'gone'"):
        audit(frame, [("stranger", stranger)])


def test_several_classes_are_judged_by_grms():
    frame = biased(300, n_classes=3)
    result = audit(frame, ["federate", "pate", "fair private trees", ("mine", Remembering())])
    assert list(result.table.index) == ["federate", "pate", "fair private trees", "mine"]
    assert result.fairness == "grms"
    table = prepare_table(frame, "target", "group")
    model = result.models["mine"]
    asked = {row.tobytes() for row in model[-1].asked_}
    test = [k for k, row in enumerate(model[:-1].transform(table.X)) if row.tobytes() in asked]
    expected = grms(table.y[test], model.predict(table.X.iloc[test]), sensitive_features=frame["group"].iloc[test])
    assert result.table.loc["mine", "grms_measured"] == pytest.approx(expected)
    assert "GRMS" in result.to_html()


def test_sensitive_columns_are_crossed():
    rng = np.random.default_rng(0)
    frame = biased(400).assign(region=rng.choice(["north", "south"], 400))
    result = audit(frame, sensitive=["group", "region"])
    assert set(result.group_rates["attribute"]) == {"group", "region", "group x region"}
    assert set(result.leakage["attribute"]) == {"group", "region", "group x region"}
    crossed = result.group_rates.query("attribute == 'group x region'")
    assert crossed["group"].nunique() == 4
    # Small groups are steadied by what the single columns say: their rates lie closer together.
    mine = crossed.query("rate == 'tpr' and `class` == 1")
    assert np.ptp(mine["steadied"]) < np.ptp(mine["value"])
    assert (mine["steadied_upper"] - mine["steadied_lower"]).mean() < (mine["upper"] - mine["lower"]).mean()
    assert result.group_rates.query("attribute == 'group'")["steadied"].isna().all()
    assert "steadied:" in result.to_html()
    crossed = result.leakage.query("method == 'leace' and attribute == 'group x region' and attacker == 'strongest'")
    assert result.table.loc["leace", "leakage"] == crossed["accuracy"].item()


def test_a_sensitive_column_may_have_any_name():
    for name in ("rate", "class", "group", "method", "attribute"):
        frame = biased(200).rename(columns={"group": name}).assign(said=lambda table: table["x0"] > 0)
        result = audit(frame, "none", sensitive=name, predictions="said")
        assert set(result.group_rates["attribute"]) == {name}


def test_looking_at_a_part_of_the_rows_is_told():
    result = audit(biased(400), n_probe_rows=100)
    assert result.settings["n_probed"] == 100
    assert "To save time, attackers look at 100 of the 120 test rows, at random." in result.notes
    assert result.leakage["n_scored"].eq(100).all()
    assert not [note for note in audit(biased(300)).notes if "To save time" in note]


def test_json_is_complete_and_valid(all_methods, tmp_path):
    path = tmp_path / "out.json"
    all_methods.to_json(path)
    document = json.loads(path.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    rows = {row["method"]: row for row in document["table"]}
    assert rows["leace"]["epsilon"] == "inf"
    assert rows["noise"]["accuracy"] == all_methods.table.loc["noise", "accuracy"]
    assert document["guarantees"]["pate"][0]["delta"] == 1e-5
    assert document["settings"]["random_state"] == 0


def test_the_result_can_be_pickled_and_drawn(result):
    copy = pickle.loads(pickle.dumps(result))
    assert copy.best == result.best
    display = result.plot()
    assert display.chosen == list(result.table.index).index(result.best)
    import matplotlib.pyplot as plt

    plt.close("all")
    assert result.best in result._repr_html_()


def test_a_constant_answer_is_never_chosen():
    """It has no gap at all, and a threshold that would allow it."""
    methods = [LogisticRegression(), ("constant", DummyClassifier(strategy="constant", constant=1))]
    result = audit(biased(800, label_bias=0.5, group_shift=3.0), methods, relaxation_threshold=1.0)
    assert result.table.loc["constant", ["tpr_gap_measured", "constant"]].tolist() == [0, True]
    assert result.table.loc["LogisticRegression", "tpr_gap_lower"] > 0
    assert result.best == result.reference == "LogisticRegression"


def test_thresholds_for_each_group_are_marked_and_not_chosen():
    frame = biased(800, label_bias=0.5, group_shift=3.0)
    result = audit(frame, ["logistic", "threshold optimizer", "private threshold optimizer"], relaxation_threshold=1.0)
    told = result.table["needs_groups"]
    assert told.tolist() == [False, True, True]
    assert result.table.loc["threshold optimizer", "tpr_gap"] < result.table.loc["logistic", "tpr_gap"]
    assert result.table.loc["private threshold optimizer", "epsilon"] == 8.0
    assert result.best == "logistic"
    from fairlearn.postprocessing import ThresholdOptimizer

    model = result.models["threshold optimizer"]
    assert isinstance(model.optimizer_, ThresholdOptimizer)
    rows = prepare_table(frame, "target", "group").X.assign(**{"group (group)": frame["group"]})
    told = model.optimizer_.predict(rows.drop(columns="group (group)"), sensitive_features=frame["group"].astype(str))
    assert np.mean(told) == pytest.approx(model.predict_proba(rows)[:, 1].mean(), abs=0.02)


@pytest.mark.parametrize("fairness", ["equalized_odds", "demographic_parity", "calibration"])
def test_other_definitions_of_fairness(fairness):
    frame = biased(600, label_bias=0.4)
    result = audit(frame, ["logistic", "fair trees"], fairness=fairness, relaxation_threshold=0.1)
    name = f"{fairness}_gap"
    assert result.fairness == name
    assert np.isfinite(result.table[[name, f"{name}_lower", f"{name}_upper"]].to_numpy(dtype=float)).all()
    if fairness == "calibration":
        assert "Left out, because they are not about calibration: fair trees." in result.notes
    else:
        assert result.models["fair trees"][-1].fairness == fairness
    if fairness == "demographic_parity":
        assert result.table.loc["fair trees", name] < result.table.loc["logistic", name]


def test_groups_are_compared_within_strata():
    """Groups that live in different regions have different rates, and the same rates within each region."""
    rng = np.random.default_rng(0)
    n = 3000
    group = rng.integers(2, size=n)
    region = np.where(rng.random(n) < np.where(group == 1, 0.8, 0.2), "north", "south")
    target = rng.integers(2, size=n)
    said = np.where(rng.random(n) < np.where(region == "north", 0.3, 0.7), target, 0)
    frame = pd.DataFrame({"group": group, "region": region, "target": target, "said": said, "x": rng.normal(size=n)})
    result = audit(frame, "none", predictions="said", control="region")
    strata = result.strata.set_index("stratum")
    assert result.table.loc["said", "tpr_gap_lower"] > 0.15
    assert strata.loc["all, compared within strata", "lower"] == 0
    assert strata["upper"].max() < 0.15
    assert set(strata.index) == {"all, compared within strata", "north", "south"}
    assert result.table.loc["said", "within_strata_gap_lower"] == 0
    assert "Within region it is" in result.verdict.headline
    assert not [check for check in result.checks if "region" in check.columns]


def test_weights_count_in_every_rate():
    frame = biased(300).assign(w=1.0)
    frame["said"] = (frame["x0"] > 0).astype(int)
    doubled = pd.concat([frame, frame[frame["group"] == 0]], ignore_index=True)
    weighted = frame.assign(w=np.where(frame["group"] == 0, 2.0, 1.0))
    one = audit(doubled, "none", predictions="said", drop="w").table.loc["said"]
    result = audit(weighted, "none", predictions="said", weights="w")
    other = result.table.loc["said"]
    for name in ("accuracy", "balanced_accuracy", "tpr_gap_measured", "worst_group_accuracy"):
        assert other[name] == pytest.approx(one[name])
    assert result.group_rates["trials"].max() == frame["group"].value_counts().max()  # rows, not what they weigh
    assert other["accuracy"] != accuracy_score(frame["target"], frame["said"])


def test_rows_of_a_person_stay_together():
    frame = pd.concat([biased(300).assign(who=np.arange(300)) for _ in range(3)], ignore_index=True)

    class Remembers(LogisticRegression):
        def fit(self, X, y):
            self.seen_ = {row.tobytes() for row in np.asarray(X)}
            return super().fit(X, y)

        def predict(self, X):
            overlaps.append(len(self.seen_ & {row.tobytes() for row in np.asarray(X)}))
            return super().predict(X)

    for arguments in ({"person": "who"}, {"drop": "who"}):
        overlaps = []
        audit(frame, [make_pipeline(Remembers())], **arguments)
        assert (max(overlaps) == 0) == ("person" in arguments)


def test_samples_are_told_and_all_test_rows_judged():
    frame = biased(2000)
    result = audit(frame, ["logistic"], n_train_rows=600, n_search_rows=200)
    assert result.settings["n_train"] == 600
    assert result.settings["n_searched"] == 200
    assert result.table.loc["logistic", "n_rows"] == 600
    assert "To save time: Models are trained on 600 of 1,400 training rows, drawn at random." in result.notes
    assert "To save time: Methods are chosen by 200 of 600 training rows, drawn at random." in result.notes
    whole = audit(frame, ["logistic"])
    assert whole.table.loc["logistic", "tpr_gap_lower"] <= result.table.loc["logistic", "tpr_gap"]
    assert result.table.loc["logistic", "tpr_gap"] <= whole.table.loc["logistic", "tpr_gap_upper"]


def test_groups_with_too_few_rows_decide_nothing():
    """A tiny group that is never recognised makes no gap, and is named."""
    frame = biased(600)
    tiny = np.arange(600) < 40
    frame["group"] = np.where(tiny, "tiny", frame["group"].map({0: "a", 1: "b"}))
    frame.loc[tiny, "target"] = np.where(frame.index[tiny] % 8 == 0, 1, 0)
    frame["said"] = np.where(tiny, 0, frame["target"])
    result = audit(frame, "none", predictions="said")
    assert result.too_few == {"group": ("tiny",)}
    assert result.table.loc["said", ["tpr_gap", "tpr_gap_upper"]].max() < 0.1
    assert "tiny" in " ".join(result.verdict.sentences)
    assert "tiny" not in result.verdict.headline


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["leice"]}, "'leice'.*'leace'"),
        ({"methods": []}, "methods"),
        ({"methods": ["leace", "leace"]}, "methods .*'leace'"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 2.0}, "delta"),
        ({"test_size": 1.0}, "test_size must be a number between 0 and 1; got 1.0"),
        ({"n_splits": 1}, "n_splits"),
        ({"n_probe_rows": 5}, "n_probe_rows"),
        ({"relaxation_threshold": -0.1}, "threshold"),
        ({"n_train_rows": 10}, "n_train_rows"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"choose_by": "luck"}, "choose_by"),
        ({"fairness": "nice"}, "fairness"),
        ({"methods": ["fair trees"], "fairness": "calibration"}, "fair trees .*fairness="),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit(biased(100), **{"methods": ["leace"], **arguments})


def test_thousands_of_columns_are_refused_for_training():
    rng = np.random.default_rng(0)
    many = pd.DataFrame(rng.normal(size=(100, 1100)), columns=[f"c{j}" for j in range(1100)])
    frame = pd.concat([biased(100)[["target", "group"]], many], axis=1)
    with pytest.raises(
        ValueError, match=r"1,100 columns to predict from; an audit trains on up to 1,000\. Choose some"
    ):
        audit(frame)
    assert list(audit(frame.assign(said=frame["target"]), "none", predictions="said").table.index) == ["said"]


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="methods"):
        audit(biased(100), [LogisticRegression])
    with pytest.raises(TypeError, match="methods"):
        audit(biased(100), [3])


def test_warnings_that_are_no_findings_stay_warnings():
    class Chatty(LogisticRegression):
        def fit(self, X, y):
            warnings.warn("old habits", FutureWarning, stacklevel=1)
            return super().fit(X, y)

    with pytest.warns(FutureWarning, match="old habits"):
        audit(biased(200), [Chatty()])


def test_routing_is_left_as_it_was():
    before = sklearn.get_config()
    audit(biased(200))
    assert sklearn.get_config() == before
