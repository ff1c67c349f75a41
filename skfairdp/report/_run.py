"""audit_table: train every method, choose by relaxation threshold, measure on rows that nobody has seen."""

import dataclasses
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skfairdp._rng import RandomState, random_stream
from skfairdp._validation import check_delta, check_epsilon, check_sensitive_features
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.metrics._attackers import seeded
from skfairdp.model_selection import RelaxationThreshold
from skfairdp.report._change import gap_change
from skfairdp.report._measure import (
    Attacked,
    Trained,
    attack,
    collected,
    figures,
    guarantees_of,
    rates_of,
    train,
    train_and_attack,
)
from skfairdp.report._methods import Method, Setting, choose_methods
from skfairdp.report._prepare import PreparedTable, prepare_table
from skfairdp.report._progress import Progress
from skfairdp.report._result import AuditResult, versions
from skfairdp.report._split import folds, hold_out

_PROBE_COST = 6.0  # an attack on a representation, relative to a logistic regression
_PREPARATION = (
    "what the preparation of the columns learned from the rows (medians, scales, categories), and the choice between "
    "methods"
)


def audit_table(
    frame: Any,
    *,
    target: str,
    sensitive: Any,
    methods: Any = None,
    epsilon: float = 8.0,
    delta: float = 1e-5,
    pos_label: Any = None,
    keep_sensitive: bool = False,
    test_size: float = 0.3,
    n_splits: int = 3,
    n_probe_rows: int = 3000,
    relaxation_threshold: float = 0.01,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> AuditResult:
    """Audit a table: how unfair is a model of it, what does it leak, and what would privacy and fairness cost.

    Columns are prepared, a test part is held out, every method is tuned on the rest by relaxation threshold and
    measured on the test part.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        The table, as it comes.
    target : str
        Column to predict; 2 to 50 classes.
    sensitive : str or list of str
        Columns whose groups are compared; several are crossed.
    methods : list or None, default=None
        Names (``"unconstrained"``, ``"noise"``, ``"adversarial"``, ``"federate"``, ``"leace"``, ``"inlp"``,
        ``"pate"``), classifiers of your own, and pairs of a name and a classifier. A classifier gets prepared
        numbers; a ``Pipeline`` gets the columns; one that is fitted is used as it is. None takes all names.
    epsilon : float, default=8.0
        Privacy loss that the private methods may spend.
    delta : float, default=1e-5
        Of those methods that need one (PATE).
    pos_label : label, optional
        The favourable class of two; by default the larger label.
    keep_sensitive : bool, default=False
        Whether models may use the sensitive columns as features.
    test_size : float, default=0.3
        Share of the rows to measure on.
    n_splits : int, default=3
        Folds of the cross-validation by which parameters are chosen.
    n_probe_rows : int, default=3000
        Test rows that attackers look at, at most.
    relaxation_threshold : float, default=0.01
        Accuracy that may be given up for fairness.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Of splits, training and noise. None draws a seed, which the result tells.
    n_jobs : int or None, default=None
        Number of processes.
    verbose : bool, default=True
        Whether to tell progress, with the time left, on standard error.

    Returns
    -------
    AuditResult
        With ``table``, ``best``, ``plot()``, ``to_html(path)`` and ``to_json(path)``.

    Notes
    -----
    Parameters of a method, and the best method, are chosen by cross-validation on the training part: among those whose
    accuracy is within ``relaxation_threshold`` of the best, the fairest. Test rows are used once, to measure. The
    attackers are trained on test rows too, so that no memory of the training rows helps them.

    **Privacy.** The result is computed from the rows without noise and is itself not private. The guarantee of each
    method is that of the model if it were used as ``AuditResult.guarantees`` says.

    Examples
    --------
    >>> from skfairdp import audit_table, make_biased_classification
    >>> frame = make_biased_classification(800, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> roles = {"target": "target", "sensitive": "group"}
    >>> result = audit_table(frame, **roles, methods=["leace"], random_state=0, verbose=False)
    >>> result.best
    'leace'
    >>> bool(result.table.loc["leace", "accuracy"] > 0.75)
    True
    """
    chosen = choose_methods(methods)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _check_share(test_size, "test_size")
    _check_count(n_splits, "n_splits", 2)
    _check_count(n_probe_rows, "n_probe_rows", 100)
    rule = RelaxationThreshold(relaxation_threshold)
    seed = int(random_state) if isinstance(random_state, Integral) else random_stream(random_state).seed()
    stream = random_stream(seed)
    table = prepare_table(frame, target, sensitive, pos_label=pos_label, keep_sensitive=keep_sensitive)
    audit = _Audit(table, chosen, rule, stream, n_jobs)
    audit.divide(test_size, n_splits, n_probe_rows)
    audit.setting = Setting(epsilon, delta, len(audit.train), len(table.classes))
    work = sum(m.cost * (len(m.candidates(audit.setting)) * n_splits + 1) + _PROBE_COST for m in chosen) + _PROBE_COST
    progress = Progress(work, verbose)
    try:
        audit.search(progress)
        audit.measure(progress)
    finally:
        progress.close()
    settings = {
        "target": table.target,
        "sensitive": list(table.sensitive),
        "classes": list(table.classes),
        "pos_label": table.pos_label,
        "keep_sensitive": bool(keep_sensitive),
        "epsilon": epsilon,
        "delta": delta,
        "test_size": float(test_size),
        "n_splits": int(n_splits),
        "n_probe_rows": int(n_probe_rows),
        "relaxation_threshold": float(relaxation_threshold),
        "random_state": seed,
        "n_rows": len(table.y),
        "n_train": len(audit.train),
        "n_test": len(audit.test),
        "n_probed": len(audit.probed),
        "features": list(table.X),
    }
    return audit.result(settings)


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1; got {value!r}.")


def _check_count(value: Any, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}; got {value!r}.")


class _Audit:
    """An audit under way."""

    setting: Setting

    def __init__(
        self, table: PreparedTable, methods: list[Method], rule: RelaxationThreshold, stream: Any, n_jobs: Any
    ):
        self.table = table
        self.methods = methods
        self.rule = dataclasses.replace(rule, fairness=table.fairness)
        self.stream = stream
        self.n_jobs = n_jobs
        self.notes = list(table.notes)
        self.candidates: dict[str, pd.DataFrame] = {}
        self.tuned: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.outcomes: dict[str, tuple[Trained, Attacked]] = {}

    def divide(self, test_size: float, n_splits: int, n_probe_rows: int) -> None:
        """Hold out test rows, and fold the others."""
        y = self.table.y
        groups = check_sensitive_features(self.table.sensitive, len(y), intersection=True).codes[:, 0]
        generator = self.stream.generator
        self.train, self.test = hold_out(y, groups, test_size, generator)
        self.folds = [
            (self.train[fit], self.train[valid])
            for fit, valid in folds(y[self.train], groups[self.train], n_splits, generator)
        ]
        self.probed = self.test
        if len(self.test) > n_probe_rows:
            self.probed = np.sort(generator.choice(self.test, n_probe_rows, replace=False))
            self.notes.append(
                f"To save time, attackers look at {n_probe_rows:,} of the {len(self.test):,} test rows, at random."
            )

    def _model(self, method: Method, params: dict[str, Any]) -> Any:
        """Make an unfitted, seeded model of the whole way from columns to predictions."""
        estimator = method.make(self.setting)
        if method.fitted:
            return estimator
        model = seeded(estimator, self.stream.seed())
        model.set_params(**params)
        return model if method.bare else Pipeline([("prepare", self.table.preprocessor()), ("model", model)])

    def _run(self, tasks: list[tuple[Any, float, str, Any]], progress: Progress) -> dict[Any, Any]:
        """Run tasks of key, cost, name and call; their results by key."""
        results = {}
        calls = (delayed(_keyed)(number, call) for number, (_, _, _, call) in enumerate(tasks))
        for number, result in Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(calls):
            key, cost, name, _ = tasks[number]
            results[key] = result
            progress.step(cost, name)
        return results

    def search(self, progress: Progress) -> None:
        """Try every candidate of every method on the folds, and choose by the rule."""
        for method in self.methods:
            candidates = method.candidates(self.setting)
            models = [self._model(method, params) for params in candidates]
            tasks = []
            for k, model in enumerate(models):
                for f, (fit, valid) in enumerate(self.folds):
                    copy = model if method.fitted else clone(model)
                    call = delayed(train)(copy, self.table, fit, valid, method.fitted)
                    tasks.append(((k, f), method.cost, f"{method.name}: tuning", call))
            results = self._run(tasks, progress)
            failure = next((one.failure for one in results.values() if one.failure is not None), None)
            if failure is not None:
                self._leave_out(method, failure)
                continue
            valid = np.concatenate([valid for _, valid in self.folds])
            rows = []
            for k, params in enumerate(candidates):
                predicted = np.concatenate([results[k, f].predicted for f in range(len(self.folds))])
                findings: list[str] = []
                with collected(findings):
                    rows.append({"params": params, **figures(self.table, valid, predicted)})
            tried = pd.DataFrame(rows)
            best = self._choose(tried)
            self.candidates[method.name] = tried.assign(chosen=np.arange(len(tried)) == best)
            self.tuned[method.name] = models[best]
            self.seconds[method.name] = sum(one.seconds for one in results.values())
            progress.say(f"{method.name}: chosen from {len(candidates)} candidate{'s' * (len(candidates) != 1)}")
        if not self.tuned:
            raise ValueError("no method could be trained. " + " ".join(self.notes[len(self.table.notes) :]))

    def _choose(self, tried: pd.DataFrame) -> int:
        if not np.isfinite(tried[self.table.fairness]).any():  # no gap is defined: accuracy alone decides
            return int(tried["accuracy"].to_numpy().argmax())
        return self.rule(tried)

    def _leave_out(self, method: Method, failure: str) -> None:
        self.notes.append(f"{method.name} is left out, because it could not be trained: {failure}")

    def measure(self, progress: Progress) -> None:
        """Train the chosen candidates on all training rows, and measure them on the test rows."""
        seed = self.stream.seed()
        prepared = self.table.preprocessor().fit(self.table.X.iloc[self.train])
        X = prepared.transform(self.table.X.iloc[self.probed])
        call = delayed(attack)(X, "the columns themselves", self.table.sensitive.iloc[self.probed], seed)
        tasks = [(None, _PROBE_COST, "attack on the columns", call)]
        for method in self.methods:
            if method.name in self.tuned:
                call = delayed(train_and_attack)(
                    self.tuned[method.name], self.table, self.train, self.test, self.probed, method.fitted, seed
                )
                tasks.append((method.name, method.cost + _PROBE_COST, f"{method.name}: measuring", call))
        results = self._run(tasks, progress)
        self.columns_attack = results.pop(None)
        for method in self.methods:
            if method.name in results:
                trained, attacked = results[method.name]
                if trained.failure is not None:
                    self._leave_out(method, trained.failure)
                    continue
                self.outcomes[method.name] = (trained, attacked)
                self.notes += [f"{method.name}: {finding}" for finding in [*trained.findings, *attacked.findings]]
        if not self.outcomes:
            raise ValueError("no method could be measured. " + " ".join(self.notes[len(self.table.notes) :]))

    def result(self, settings: dict[str, Any]) -> AuditResult:
        """Lay out everything that was measured."""
        seed = self.stream.seed()
        rows, rates, guarantees = [], {}, {}
        methods = [method for method in self.methods if method.name in self.outcomes]
        validated = {m.name: self.candidates[m.name].query("chosen")["accuracy"].item() for m in methods}
        reference_name = "unconstrained" if "unconstrained" in validated else max(validated, key=validated.__getitem__)
        reference = self.outcomes[reference_name][0].predicted
        for method in methods:
            trained, attacked = self.outcomes[method.name]
            findings: list[str] = []
            with collected(findings):
                measured = figures(self.table, self.test, trained.predicted, seed)
                rates[method.name] = rates_of(self.table, self.test, trained.predicted)
            # The same rate is undefined in several metrics; the table of rates names each once.
            undefined = [finding for finding in findings if finding.startswith("group_rates")]
            self.notes += [f"{method.name}: {finding}" for finding in undefined or findings]
            guarantees[method.name] = self._guarantees(method, trained.model)
            change = gap_change(self.table, self.test, trained.predicted, reference, seed)
            name = f"{self.table.fairness}_change"
            measured |= {name: change.value, f"{name}_low": change.low, f"{name}_high": change.high}
            rows.append({"method": method.name, **measured, **self._attack_figures(attacked)})
            rows[-1] |= self._privacy_figures(method, guarantees[method.name])
            rows[-1]["seconds"] = trained.seconds
            rows[-1]["search_seconds"] = self.seconds[method.name]
        table = pd.DataFrame(rows).set_index("method")
        validation = pd.concat([self.candidates[m.name][self.candidates[m.name]["chosen"]] for m in methods])
        table.insert(0, "validation_accuracy", pd.Series(validated))
        table.insert(1, f"validation_{self.table.fairness}", validation[self.table.fairness].to_numpy())
        attacks = {None: self.columns_attack, **{m.name: self.outcomes[m.name][1] for m in methods}}
        leakage = pd.concat(
            [
                attacked.leakage.assign(method=name or "(columns)", source=attacked.source)
                for name, attacked in attacks.items()
            ],
            ignore_index=True,
        )
        return AuditResult(
            table=table,
            reference=reference_name,
            best=str(table.index[self._choose(validation.reset_index(drop=True))]),
            fairness=self.table.fairness,
            candidates=pd.concat(self.candidates, names=["method", "candidate"]),
            group_rates=pd.concat(rates, names=["method", None]).reset_index(level=0).reset_index(drop=True),
            leakage=leakage,
            guarantees=guarantees,
            summaries={m.name: m.summary for m in methods},
            models={m.name: self.outcomes[m.name][0].model for m in methods},
            notes=tuple(dict.fromkeys(self.notes)),
            settings=settings,
            versions=versions(),
        )

    def _attack_figures(self, attacked: Attacked) -> dict[str, Any]:
        last = attacked.leakage.iloc[-1]  # the strongest attacker on all sensitive columns crossed
        return {
            "leakage": last["accuracy"],
            "leakage_low": last["accuracy_low"],
            "leakage_high": last["accuracy_high"],
            "majority": last["majority"],
            "advantage": last["advantage"],
            "leakage_auc": last["auc"],
            "code_bits": attacked.code_bits,
            "uniform_bits": attacked.uniform_bits,
        }

    def _guarantees(self, method: Method, model: Any) -> list[PrivacyGuarantee]:
        found = guarantees_of(model)
        if method.protects.startswith("the training rows"):
            found = [dataclasses.replace(g, does_not_cover=(*g.does_not_cover, _PREPARATION)) for g in found]
        return found

    def _privacy_figures(self, method: Method, guarantees: list[PrivacyGuarantee]) -> dict[str, Any]:
        # Steps in a row: each guarantee holds for what comes out at the end, so the smallest does.
        finite = [g for g in guarantees if math.isfinite(g.epsilon)]
        if not finite:
            return {"epsilon": math.inf, "delta": math.nan, "protects": "nothing"}
        tightest = min(finite, key=lambda g: g.epsilon)
        return {"epsilon": tightest.epsilon, "delta": tightest.delta, "protects": method.protects}


def _keyed(number: int, call: Any) -> tuple[int, Any]:
    function, arguments, keywords = call
    return number, function(*arguments, **keywords)
