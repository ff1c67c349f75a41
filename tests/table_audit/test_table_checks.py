"""Flaws that are planted in a table are found before anything is trained, and honest tables pass."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from skfairdp.datasets import fetch_adult, fetch_bank_marketing, fetch_credit_default
from skfairdp.table_audit import _table_checks
from skfairdp.table_audit._column_names import (
    comes_later,
    names_person,
    names_rows,
    perhaps_later,
    perhaps_names_person,
    perhaps_weighs_rows,
    weighs_rows,
)
from skfairdp.table_audit._one_column import told_alone, told_by_thresholds, value_indices
from skfairdp.table_audit._prepared_table import prepare_table
from skfairdp.table_audit._repeated_rows import alike_by_chance, repeated_rows
from skfairdp.table_audit._table_checks import check_table


def people(n=1500, seed=0, n_classes=2, **columns):
    """An honest table: some columns say something about the target, none says all."""
    rng = np.random.default_rng(seed)
    able = rng.normal(size=n)
    sex = rng.choice(["f", "m"], n)
    score = able + 0.5 * (sex == "m") + rng.normal(0, 0.7, n)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "points": np.exp(able + rng.normal(0, 0.5, n) + 8).round(),
            "job": np.array(["cook", "nurse", "pilot", "vet"])[np.digitize(able + rng.normal(0, 2, n), [-1, 0, 1])],
            "sex": sex,
            "passed": np.array(["a no", "b yes", "c best", "d more"])[y],
        }
    )
    return frame.assign(**columns)


def found(frame, target="passed", sensitive="sex", seed=0, **arguments):
    table = prepare_table(frame, target, sensitive, **arguments)
    return check_table(table, np.random.default_rng(seed))


def kinds(checks):
    return {(check.kind, name, check.serious) for check in checks for name in check.columns or ("",)}


def truth(frame):
    return (frame["passed"] == "b yes").to_numpy().astype(int)


def flipped(bits, share, seed=1):
    return np.where(np.random.default_rng(seed).random(len(bits)) < share, 1 - bits, bits)


@pytest.mark.parametrize("n", [150, 1500])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_an_honest_table_raises_nothing(n, n_classes):
    for seed in range(15):
        assert found(people(n, seed, n_classes), seed=seed) == ()


@pytest.mark.parametrize("n", [150, 1500, 30_000])
@pytest.mark.parametrize(
    "copy",
    [
        lambda y, rng: np.where(y, "Ja", "Nein"),
        lambda y, rng: flipped(y, 0.03),
        lambda y, rng: np.where(y, rng.uniform(50, 99, len(y)), rng.uniform(0, 50, len(y))),
        lambda y, rng: np.where(y, rng.uniform(20, 30, len(y)), rng.choice([1, 40], len(y)) + rng.random(len(y))),
        lambda y, rng: np.where(y, np.nan, rng.normal(size=len(y))),  # filled in for one class only
        lambda y, rng: np.where(y, "closed " + pd.Series(rng.integers(4, size=len(y))).astype(str), None),
    ],
    ids=["text", "97 of 100", "number cut once", "number cut twice", "missing", "missing text"],
)
def test_columns_that_give_the_target_away_are_found(copy, n):
    frame = people(n)
    frame["planted"] = copy(truth(frame), np.random.default_rng(2))
    (check,) = found(frame)
    assert (check.kind, check.columns, check.serious) == ("gives_target_away", ("planted",), True)
    assert "'planted' alone tells 'passed' with a balanced accuracy of" in check.sentence
    assert "--drop planted" in check.advice
    assert found(frame, drop="planted") == ()


def test_a_rare_class_is_not_hidden_by_the_common_one():
    rng = np.random.default_rng(0)
    rare = rng.random(20_000) < 0.01
    frame = people(20_000, passed=np.where(rare, "rare", "usual"), planted=flipped(rare.astype(int), 0.03))
    assert kinds(found(frame)) == {("gives_target_away", "planted", True)}
    # A constant guess is right in 99 of 100 rows and still tells nothing.
    assert found(frame.assign(planted=np.where(rng.random(20_000) < 0.01, "x", "y"))) == ()


def test_copies_of_several_classes_are_found():
    frame = people(n_classes=4)
    frame["planted"] = frame["passed"].str.upper().where(np.random.default_rng(0).random(1500) > 0.03, "other")
    frame["number"] = frame["passed"].map({"a no": 1, "b yes": 7, "c best": 2, "d more": 9})
    assert kinds(found(frame)) == {("gives_target_away", "planted", True), ("gives_target_away", "number", True)}


def test_one_sided_giveaways_want_a_look():
    frame = people()
    bits = truth(frame) * (np.random.default_rng(0).random(1500) < 0.5)
    (check,) = found(frame.assign(bonus=bits))
    assert (check.kind, check.columns, check.serious) == ("gives_target_away", ("bonus",), False)
    assert "of a class have values that no other class has" in check.sentence
    (check,) = found(frame.assign(recoveries=bits))  # here the name says why
    assert (check.kind, check.columns, check.serious) == ("after_outcome", ("recoveries",), True)


def test_columns_without_meaning_tell_nothing_of_unseen_rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=2000)
    half = np.arange(2000) % 2 == 0
    for column in (pd.Series(rng.normal(size=2000)), pd.Series(rng.integers(900, size=2000).astype(str))):
        (told,) = told_alone([value_indices(column)], labels, half)
        assert abs(told.balanced - 0.5) < 0.04
        assert abs(told.auc - 0.5) < 0.04
    assert told_by_thresholds(rng.normal(size=2000), labels, half).certainty < 0.1


def test_what_is_told_agrees_with_a_slow_version():
    rng = np.random.default_rng(0)
    labels = rng.choice(2, 600, p=[0.7, 0.3])
    columns = [rng.integers(k, size=600) + labels * rng.integers(3, size=600) for k in (2, 5, 40)]
    half = rng.random(600) < 0.5
    for column, told in zip(columns, told_alone(columns, labels, half)):
        balanced, areas = [], []
        for learned in (half, ~half):
            base = (np.bincount(labels[learned]) + 1) / (learned.sum() + 2)
            likelihood = np.empty((600, 2))
            for row in range(600):
                mine = labels[learned & (column == column[row])]
                likelihood[row] = (np.bincount(mine, minlength=2) + base) / (len(mine) + 1) / base
            unseen = labels[~learned]
            balanced.append(balanced_accuracy_score(unseen, likelihood[~learned].argmax(axis=1)))
            areas.append(roc_auc_score(unseen, likelihood[~learned, 1].round(12)))
        assert told.balanced == pytest.approx(np.mean(balanced))
        assert told.auc == pytest.approx(np.mean(areas), abs=1e-6)


def test_names_that_speak_of_the_outcome_want_a_look():
    rng = np.random.default_rng(0)
    frame = people(final_result=rng.choice(["x", "y"], 1500), previous_result=rng.choice(["x", "y"], 1500))
    (check,) = found(frame)
    assert (check.kind, check.columns, check.serious) == ("after_outcome", ("final_result",), False)
    assert "--features" in check.advice
    telling = truth(frame) + rng.normal(0, 0.6, 1500)
    assert kinds(found(people(final_result=telling))) == {("after_outcome", "final_result", True)}
    assert found(people(result_before=telling)) == ()


def test_a_duration_counts_only_if_it_tells_the_target():
    rng = np.random.default_rng(0)
    frame = people()
    frame["duration"] = rng.exponential(100, 1500)
    assert found(frame) == ()
    frame["duration"] *= 1 + 5 * truth(frame)
    assert kinds(found(frame)) == {("after_outcome", "duration", False)}


@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda day: day,
        lambda day: day.tz_localize("UTC"),
        lambda day: day.strftime("%d/%m/%Y"),
        lambda day: day.strftime("%m/%d/%y 12:30"),
    ],
    ids=["text", "dates", "with zone", "day first", "month first"],
)
def test_dates_after_another_date_are_told(written):
    rng = np.random.default_rng(0)
    arrest = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=1500), unit="D"))
    hearing = arrest + pd.to_timedelta(rng.integers(1, 90, size=1500), unit="D")
    born = arrest - pd.to_timedelta(rng.integers(7000, 20_000, size=1500), unit="D")
    frame = people(arrest=arrest.map(written), hearing=hearing.map(written), birthday=born.map(written))
    (check,) = found(frame)
    assert (check.kind, check.columns, check.serious) == ("after_outcome", ("hearing",), False)
    assert "Dates lie after 'arrest': 'hearing'" in check.sentence
    assert found(people(arrest=arrest.map(written), hearing=arrest.sample(frac=1, random_state=0).to_numpy())) == ()


@pytest.mark.parametrize(
    "values",
    [
        [f"{k:016x}" for k in np.random.default_rng(0).integers(2**62, size=1500)],
        [f"{k}@example.org" for k in range(1500)],
        np.random.default_rng(0).permutation(20_000)[:1500],
        np.random.default_rng(0).integers(600_000_000, 700_000_000, 1500),
    ],
    ids=["hash", "e-mail", "numbers with gaps", "telephone"],
)
def test_identifiers_are_left_out_and_named(values):
    frame = people(extra=values)
    assert "extra" not in prepare_table(frame, "passed", "sex").X
    (check,) = found(frame)
    assert (check.kind, check.columns, check.serious) == ("identifier", ("extra",), False)
    assert "1,500 different values" in check.sentence


def test_an_identifier_may_be_known_by_its_name():
    numbers = np.random.default_rng(1).choice(10**7, 1500, replace=False)
    assert kinds(found(people(customer_id=numbers))) == {("identifier", "customer_id", False)}
    assert found(people(salary=numbers)) == ()  # the same numbers may as well be amounts


def test_near_copies_of_a_sensitive_column_are_found():
    rng = np.random.default_rng(0)
    frame = people()
    male = (frame["sex"] == "m").to_numpy().astype(int)
    (check,) = found(frame.assign(title=np.where(flipped(male, 0.02), "Mr", "Ms")))
    assert (check.kind, check.columns, check.serious) == ("proxy", ("title",), True)
    assert "'title' alone tells 'sex'" in check.sentence
    single = rng.random(1500) < 0.4
    relation = np.where(single, "single", np.where(male, "husband", "wife"))
    assert kinds(found(frame.assign(relation=relation))) == {("proxy", "relation", False)}
    assert found(frame.assign(weak=flipped(male, 0.35))) == ()


def test_every_sensitive_column_is_looked_at():
    rng = np.random.default_rng(0)
    origin = rng.choice(["n", "e", "s", "w"], 1500, p=[0.6, 0.2, 0.15, 0.05])
    frame = people(origin=origin, tongue=pd.Series(origin).map({"n": 1, "e": 2, "s": 3, "w": 4}), title=None)
    frame["title"] = frame["sex"].map({"f": "Ms", "m": "Mr"})
    checks = found(frame, sensitive=["sex", "origin"])
    assert kinds(checks) == {("proxy", "title", True), ("proxy", "tongue", True)}
    assert found(frame, sensitive=["sex", "origin"], drop=["title", "tongue"], keep_sensitive=True) == ()


def test_survey_weights_are_told_from_the_weight_of_bodies():
    rng = np.random.default_rng(9)
    weight = rng.lognormal(8, 0.6, 1500)
    for name in ("fnlwgt", "PERWT", "sampling_weight", "weight"):
        (check,) = found(people(**{name: weight}))
        assert (check.kind, check.columns, check.serious) == ("survey_weight", (name,), False)
        assert f"--weights {name}" in check.advice
        assert f"--drop {name}" in check.advice
        assert found(people(**{name: weight}), weights=name) == ()
    assert found(people(weight=rng.normal(75, 12, 1500))) == ()
    assert found(people(weight=weight, height=rng.normal(170, 9, 1500))) == ()


def test_copied_rows_are_serious_and_chance_is_not():
    frame = people(1000)
    (check,) = found(pd.concat([frame, frame[:200]]))
    assert (check.kind, check.serious) == ("duplicates", True)
    assert check.sentence.startswith("16.7% of the rows are exact copies of an earlier row, and 0.0% equal")
    (check,) = found(frame[["job", "sex", "passed"]])  # of little information: many people are alike
    assert (check.kind, check.serious) == ("duplicates", False)
    assert "may be alike by chance" in check.sentence


def test_copies_with_other_targets_are_told():
    frame = people(1000)
    other = frame[:100].assign(passed=frame["passed"][:100].map({"a no": "b yes", "b yes": "a no"}))
    (check,) = found(pd.concat([frame, other]))
    assert "18.2% equal another row in everything but the target" in check.sentence


def test_repeated_rows_agree_with_pandas():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{j}": rng.integers(3, size=400) for j in range(20)})
    frame["text"] = rng.choice(["a", "b"], 400)
    frame = pd.concat([frame, frame[:50]], ignore_index=True)
    y = np.append(rng.integers(2, size=400), np.zeros(50, dtype=int))
    repeated = repeated_rows([frame[name] for name in frame], y)
    assert repeated.copies == pytest.approx(frame.assign(y=y).duplicated().mean())
    assert (~repeated.first).sum() == frame.assign(y=y).duplicated().sum()
    conflicting = frame.assign(y=y).groupby(list(frame))["y"].transform("nunique") > 1
    assert repeated.contradictions == pytest.approx(conflicting.mean())
    assert alike_by_chance([pd.Series([1, 1, 2, 2]), pd.Series([1, 1, 1, 1])], 12) == pytest.approx(4.0)


def rows_of_persons(**columns):
    """Three rows of each of 500 persons, who keep their sex."""
    frame = people(1500)
    person = np.arange(1500) // 3
    frame["sex"] = np.random.default_rng(0).choice(["f", "m"], 500)[person]
    order = np.random.default_rng(1).permutation(1500)
    return frame.assign(**columns), person, order


@pytest.mark.parametrize("name", ["patient_nbr", "PersonID", "e-mail", "ssn"])
def test_a_person_on_both_sides_is_found_by_name(name):
    frame, person, order = rows_of_persons()
    frame[name] = [f"{k:x}" for k in np.random.default_rng(2).integers(2**60, size=500)[person]]
    (check,) = [check for check in found(frame.iloc[order]) if check.kind == "person_on_both_sides"]
    assert (check.columns, check.serious) == ((name,), True)
    assert "500 different values in 1,500 rows; 100% of the rows share theirs" in check.sentence
    assert f"--person {name}" in check.advice
    assert not any(check.kind == "person_on_both_sides" for check in found(frame, person=name))
    # Not to learn from it does not keep the rows of a person together.
    assert any(check.kind == "person_on_both_sides" for check in found(frame, drop=name))


def test_a_person_is_found_by_what_rows_have_in_common():
    frame, person, order = rows_of_persons()
    frame["ref"] = np.random.default_rng(2).permutation(9000)[person]
    (check,) = found(frame.iloc[order])
    assert (check.kind, check.columns, check.serious) == ("person_on_both_sides", ("ref",), False)
    assert "100% of those are of the same group (by chance: 51%)" in check.sentence
    frame["ref"] = frame["ref"].to_numpy()[order]  # the same numbers, but not of persons
    assert found(frame) == ()


def test_a_word_that_may_mean_a_person_needs_more_than_the_word():
    frame, *_ = rows_of_persons(subject=np.random.default_rng(5).integers(40, size=1500).astype(str))
    assert found(frame) == ()  # mathematics
    frame["sex"] = np.where(frame["subject"].astype(int) % 2, "f", "m")
    assert ("person_on_both_sides", "subject", True) in kinds(found(frame))  # forty people


def test_serious_findings_come_first():
    frame = people(fnlwgt=np.random.default_rng(9).lognormal(8, 0.6, 1500))
    frame["planted"] = truth(frame)
    assert [check.serious for check in found(frame)] == [True, False]


def test_names_are_quoted_for_the_shell():
    frame = people()
    frame["it's; a copy"] = truth(frame)
    (check,) = found(frame)
    assert """--drop 'it'"'"'s; a copy'""" in check.advice


def test_the_same_seed_finds_the_same():
    frame = people(30_000)
    frame["planted"] = flipped(truth(frame), 0.04)
    assert found(frame, seed=3) == found(frame, seed=3)


def test_odd_columns_are_no_trouble():
    rng = np.random.default_rng(0)
    n = 1500
    frame = people(
        n,
        mixed=pd.Series([1, "a", None, 2.5, True] * 300, dtype=object),
        lists=pd.Series([[k] for k in range(n)], dtype=object),
        person_id=pd.Series([[k % 300] for k in range(n)], dtype=object),
        empty=np.nan,
        constant="x",
        almost_empty=[1.0] + [np.nan] * (n - 1),
        infinite=np.where(rng.random(n) < 0.5, np.inf, -np.inf),
        truth_values=rng.random(n) < 0.5,
        nullable=pd.array([1, None, 3] * 500, dtype="Int64"),
        category=pd.Categorical(rng.choice(["a", "b", None], n)),
        span=pd.to_timedelta(rng.integers(100, size=n), unit="D"),
        complex=rng.normal(size=n) + 1j,
        bad_date=["2020-13-45"] * n,
        big=rng.integers(2**62, size=n),
    )
    frame["sex"] = pd.Series([1, "m", 2.5] * 500, dtype=object).sample(frac=1, random_state=0).to_numpy()
    assert not any(check.serious for check in found(frame))
    alone = found(frame[["sex", "passed", "mixed"]].assign(says="x"), decisions=["says", "mixed"])
    assert {check.kind for check in alone} == {"duplicates"}


def test_a_wide_table_is_screened(monkeypatch):
    monkeypatch.setattr(_table_checks, "SCREENED_ROWS", 400)
    monkeypatch.setattr(_table_checks, "SCREENED_CELLS", 300_000)
    rng = np.random.default_rng(0)
    frame = people(1200)
    noise = pd.DataFrame(rng.normal(size=(1200, 500))).add_prefix("noise ")
    noise["noise 499"] = flipped(truth(frame), 0.02)
    assert kinds(found(pd.concat([frame, noise], axis=1))) == {("gives_target_away", "noise 499", True)}


def test_what_names_say():
    later = ["outcome", "is_recid", "twoYearRecid", "charged_off", "loan status", "post_treatment", "Case-Disposition"]
    honest = ["age", "postcode", "post code", "poutcome", "marital-status", "prior_outcome", "capital-gain", "duration"]
    assert all(map(comes_later, later))
    assert not any(map(comes_later, honest))
    assert perhaps_later("duration")
    assert not perhaps_later("durable")
    assert all(map(names_rows, ["id", "ID", "customer_id", "caseNumber", "uuid", "loan_no"]))
    assert not any(map(names_rows, ["paid", "number_of_children", "age", "acid", "liquid", "humidity"]))
    assert all(map(names_person, ["patient_nbr", "person_id", "SSN", "e_mail", "userId"]))
    assert not any(map(names_person, ["persons_in_household", "case_id", "username_length", "age", "school_name"]))
    assert all(map(perhaps_names_person, ["subject#", "name", "ID", "Students"]))
    assert not any(map(perhaps_names_person, ["subjects_taught", "names", "paid"]))
    assert weighs_rows("fnlwgt")
    assert weighs_rows("Final_Weight")
    assert perhaps_weighs_rows("weight")
    assert not perhaps_weighs_rows("birth_weight")
    assert not perhaps_weighs_rows("weightlifting")


@pytest.mark.parametrize(
    ("fetch", "target", "sensitive", "expected"),
    [
        (
            fetch_adult,
            "income",
            ["sex", "race"],
            {("proxy", "relationship", False), ("survey_weight", "fnlwgt", False)},
        ),
        (fetch_credit_default, "default", "sex", set()),
        (fetch_bank_marketing, "subscribed", "marital", set()),
    ],
)
def test_real_tables(data_home, fetch, target, sensitive, expected):
    frame = fetch(data_home=data_home, as_frame=True).frame
    assert kinds(found(frame, target, sensitive)) == expected
