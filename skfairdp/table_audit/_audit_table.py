"""audit_table: train every method, choose by relaxation threshold, measure on rows that no model has seen."""

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from skfairdp._validation import check_count, check_delta, check_epsilon, check_sensitive_features
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.model_selection import RelaxationThreshold
from skfairdp.random import RandomState, clone_with_seed, random_stream
from skfairdp.table_audit._gap_difference import gap_difference
from skfairdp.table_audit._methods_compared import METHODS, RECORDS, Method, Setting, choose_methods
from skfairdp.table_audit._prepared_table import PreparedTable, hold_out, prepare_table, validation_folds
from skfairdp.table_audit._table_audit import TableAudit, versions
from skfairdp.table_audit._terminal_summary import Progress
from skfairdp.table_audit._train_and_attack import (
    Attack,
    PipelineWithPublicRows,
    Predictions,
    attack_representation,
    collect_findings,
    figures_of_predictions,
    guarantees_of,
    predict_out_of_fold,
    protects_fitted_rows,
    rates_of,
    train_and_attack,
)

_ATTACK_COST = 6.0  # time of an attack on a representation, relative to a logistic regression


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
) -> TableAudit:
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
        ``"pate"``, ``"trees"``, ``"fair trees"``, ``"fair private trees"``, ``"fairlearn"``), classifiers of your own,
        and pairs of a name and a classifier. A classifier gets prepared numbers; a ``Pipeline`` gets the columns; one
        that is fitted is used as it is. None takes all names but ``"fairlearn"``, which is slow: it trains up to fifty
        models one after the other.
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
        Number of processes; in each, OpenMP has one thread.
    verbose : bool, default=True
        Whether to tell progress, with the time left, on standard error.

    Returns
    -------
    TableAudit
        With ``table``, ``best``, ``plot()``, ``to_html(path)`` and ``to_json(path)``.

    Notes
    -----
    Parameters of a method, and the best method, are chosen by cross-validation on the training part: among those whose
    accuracy is within ``relaxation_threshold`` of the best, the fairest. Test rows are used once, to measure. The
    attackers are trained on test rows too, so that no memory of the training rows helps them.

    **Privacy.** The result is computed from the rows without noise and is itself not private. The guarantee of each
    method is that of the model if it were used as ``TableAudit.guarantees`` says.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
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
    check_count(n_splits, "n_splits", 2)
    check_count(n_probe_rows, "n_probe_rows", 100)
    rule = RelaxationThreshold(relaxation_threshold)
    seed = int(random_state) if isinstance(random_state, Integral) else random_stream(random_state).seed()
    table = prepare_table(frame, target, sensitive, pos_label=pos_label, keep_sensitive=keep_sensitive)
    run = _TableAuditRun(table, chosen, rule, random_stream(seed), n_jobs)
    run.divide(test_size, n_splits, n_probe_rows)
    run.setting = Setting(epsilon, delta, len(run.train), len(table.classes), table.pos_label, relaxation_threshold)
    progress = Progress(run.work(), verbose)
    try:
        run.search(progress)
        run.measure(progress)
    finally:
        progress.close()
    roles = {"target": table.target, "sensitive": list(table.sensitive)}
    options = {
        "epsilon": epsilon,
        "delta": delta,
        "pos_label": table.pos_label,
        "keep_sensitive": bool(keep_sensitive),
        "test_size": float(test_size),
        "n_splits": int(n_splits),
        "n_probe_rows": int(n_probe_rows),
        "relaxation_threshold": float(relaxation_threshold),
        "random_state": seed,
    }
    settings = {
        **roles,
        "classes": list(table.classes),
        **options,
        "n_rows": len(table.y),
        "n_train": len(run.train),
        "n_test": len(run.test),
        "n_probed": len(run.probed),
        "features": list(table.X),
    }
    compared = [m.name if m.name in METHODS else (m.name, m.make(run.setting)) for m in chosen]
    arguments = {**roles, "methods": compared, **options}
    command = f"audit_table(frame, {', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
    return replace(run.result(settings), command=" ".join(command.split()))


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1; got {value!r}.")


class _TableAuditRun:
    """An audit under way: divide the rows, search, measure, lay out."""

    setting: Setting

    def __init__(
        self, table: PreparedTable, methods: list[Method], rule: RelaxationThreshold, stream: Any, n_jobs: Any
    ):
        self.table = table
        self.methods = methods
        self.rule = replace(rule, fairness=table.fairness)
        self.stream = stream
        self.n_jobs = n_jobs
        self.notes = list(table.notes)
        self.candidates: dict[str, pd.DataFrame] = {}
        self.chosen_models: dict[str, Any] = {}
        self.search_seconds: dict[str, float] = {}
        self.outcomes: dict[str, tuple[Predictions, Attack]] = {}

    def divide(self, test_size: float, n_splits: int, n_probe_rows: int) -> None:
        """Hold out test rows, and divide the others into folds."""
        y = self.table.y
        groups = check_sensitive_features(self.table.sensitive, len(y), intersection=True).indices[:, 0]
        generator = self.stream.generator
        self.train, self.test = hold_out(y, groups, test_size, generator)
        self.folds = validation_folds(y[self.train], groups[self.train], n_splits, generator)
        self.probed = self.test
        if len(self.test) > n_probe_rows:
            self.probed = np.sort(generator.choice(self.test, n_probe_rows, replace=False))
            self.notes.append(
                f"To save time, attackers look at {n_probe_rows:,} of the {len(self.test):,} test rows, at random."
            )

    def work(self) -> float:
        """Estimate the whole work, in units of one logistic regression."""
        fits = [len(method.candidates(self.setting)) * len(self.folds) + 1 for method in self.methods]
        trained = sum(method.cost * n_fits for method, n_fits in zip(self.methods, fits))
        return trained + _ATTACK_COST * (len(self.methods) + 1)

    def _model(self, method: Method, params: dict[str, Any]) -> Any:
        """Make an unfitted, seeded model of the whole way from columns to predictions."""
        estimator = method.make(self.setting)
        if method.fitted:
            return estimator
        model = clone_with_seed(estimator, self.stream.seed())
        model.set_params(**params)
        if method.bare:
            return model
        steps = [("prepare", self.table.preprocessor()), ("model", model)]
        if method.public_share:
            return PipelineWithPublicRows(steps, public_share=method.public_share, transform_input=["public"])
        return Pipeline(steps)

    def _run(self, steps: list[tuple[float, str]], calls: list[Any], progress: Progress) -> list[Any]:
        """Make calls in parallel, each with its cost and what it does; return their results in order."""
        results: list[Any] = [None] * len(calls)
        numbered = (delayed(_call_with_number)(number, *call) for number, call in enumerate(calls))
        for number, found in Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(numbered):
            results[number] = found
            progress.step(*steps[number])
        return results

    def search(self, progress: Progress) -> None:
        """Try every candidate of every method on the folds, and choose by the rule.

        A candidate is judged by its predictions of all training rows, each made by a copy that has not seen the row.
        ``GridSearchCV(refit=rule)`` would judge it by the mean over folds: a gap is a largest difference, which chance
        widens in small folds, so that in 150 trials of five candidates with 350 training rows in three folds it chose
        true gaps that were wider by 0.007 (standard error 0.003; with 1,400 rows both chose alike), and it is undefined
        where one fold lacks a class of all groups but one. It also refuses models that come fitted without
        scikit-learn's tags, and it tells nothing of its progress before the last candidate.
        """
        steps, calls = [], []
        models: dict[str, list[Any]] = {}
        for method in self.methods:
            candidates = method.candidates(self.setting)
            models[method.name] = [self._model(method, params) for params in candidates]
            for number, model in enumerate(models[method.name], 1):
                cost = method.cost * len(self.folds)
                steps.append((cost, f"{method.name}: tried candidate {number} of {len(candidates)}"))
                calls.append((predict_out_of_fold, model, self.table, self.train, self.folds, method.fitted))
        results = iter(self._run(steps, calls, progress))
        for method in self.methods:
            found = [next(results) for _ in models[method.name]]
            failure = next((one.failure for one in found if one.failure is not None), None)
            if failure is not None:
                self._leave_out(method, failure)
                continue
            with collect_findings([]):  # rates that are undefined on validation rows are of no interest to the reader
                tried = pd.DataFrame([figures_of_predictions(self.table, self.train, one.predicted) for one in found])
            tried.insert(0, "params", method.candidates(self.setting))
            best = self._choose(tried)
            self.candidates[method.name] = tried.assign(chosen=np.arange(len(tried)) == best)
            self.chosen_models[method.name] = models[method.name][best]
            self.search_seconds[method.name] = sum(one.seconds for one in found)
        if not self.chosen_models:
            raise ValueError("no method could be trained. " + " ".join(self.notes[len(self.table.notes) :]))

    def _choose(self, tried: pd.DataFrame) -> int:
        if not np.isfinite(tried[self.table.fairness]).any():  # no gap is defined: accuracy alone decides
            return int(tried["accuracy"].to_numpy().argmax())
        return self.rule(tried)

    def _leave_out(self, method: Method, why: str) -> None:
        self.notes.append(f"{method.name} is left out, because it could not be trained: {why}")

    def measure(self, progress: Progress) -> None:
        """Train the chosen candidates on all training rows, and measure them on the test rows."""
        seed = self.stream.seed()
        prepared = self.table.preprocessor().fit(self.table.X.iloc[self.train])
        X = prepared.transform(self.table.X.iloc[self.probed])
        sensitive = self.table.sensitive.iloc[self.probed]
        methods = [method for method in self.methods if method.name in self.chosen_models]
        rows = (self.train, self.test, self.probed)
        steps = [(_ATTACK_COST, "the columns: attacked")]
        calls: list[tuple] = [(attack_representation, X, "the columns themselves", sensitive, seed)]
        for method in methods:
            steps.append((method.cost + _ATTACK_COST, f"{method.name}: measured and attacked"))
            calls.append((train_and_attack, self.chosen_models[method.name], self.table, *rows, method.fitted, seed))
        self.columns_attack, *results = self._run(steps, calls, progress)
        for method, (trained, attacked) in zip(methods, results):
            if trained.failure is not None:
                self._leave_out(method, trained.failure)
                continue
            self.outcomes[method.name] = (trained, attacked)
            self.notes += [f"{method.name}: {finding}" for finding in [*trained.findings, *attacked.findings]]
        if not self.outcomes:
            raise ValueError("no method could be measured. " + " ".join(self.notes[len(self.table.notes) :]))

    def result(self, settings: dict[str, Any]) -> TableAudit:
        """Lay out everything that was measured."""
        seed = self.stream.seed()
        candidates = pd.concat(self.candidates, names=["method", "candidate"])
        validation = candidates[candidates["chosen"]].droplevel("candidate").loc[list(self.outcomes)]
        reference = "unconstrained" if "unconstrained" in self.outcomes else validation["accuracy"].idxmax()
        change_name = f"{self.table.fairness}_change"
        rows, rates, guarantees = {}, {}, {}
        methods = [method for method in self.methods if method.name in self.outcomes]
        for method in methods:
            trained, attacked = self.outcomes[method.name]
            findings: list[str] = []
            with collect_findings(findings):
                measured = figures_of_predictions(self.table, self.test, trained.predicted, seed)
                rates[method.name] = rates_of(self.table, self.test, trained.predicted)
            # The same rate is undefined in several metrics; the table of rates names each once.
            undefined = [finding for finding in findings if finding.startswith("group_rates")]
            self.notes += [f"{method.name}: {finding}" for finding in undefined or findings]
            guarantees[method.name] = guarantees_of(trained.model)
            compared = self.outcomes[reference][0].predicted
            change = gap_difference(self.table, self.test, trained.predicted, compared, seed)
            rows[method.name] = {
                "validation_accuracy": validation.loc[method.name, "accuracy"],
                f"validation_{self.table.fairness}": validation.loc[method.name, self.table.fairness],
                **measured,
                change_name: change.value,
                f"{change_name}_lower": change.lower,
                f"{change_name}_upper": change.upper,
                **_attack_figures(attacked),
                **_privacy_figures(method, trained.model, guarantees[method.name]),
                "seconds": trained.seconds,
                "search_seconds": self.search_seconds[method.name],
            }
        attacks = [("(columns)", self.columns_attack), *((name, found[1]) for name, found in self.outcomes.items())]
        leakage = [found.leakage.assign(method=name, source=found.source) for name, found in attacks]
        return TableAudit(
            table=pd.DataFrame(list(rows.values()), index=pd.Index(rows, name="method")),
            reference=reference,
            best=str(validation.index[self._choose(validation)]),
            fairness=self.table.fairness,
            candidates=candidates,
            group_rates=pd.concat(rates, names=["method", None]).reset_index(level=0).reset_index(drop=True),
            leakage=pd.concat(leakage, ignore_index=True),
            guarantees=guarantees,
            summaries={m.name: m.summary for m in methods},
            models={name: trained.model for name, (trained, _) in self.outcomes.items()},
            notes=tuple(dict.fromkeys(self.notes)),
            settings=settings,
            versions=versions(),
        )


def _attack_figures(attacked: Attack) -> dict[str, Any]:
    last = attacked.leakage.iloc[-1]  # the strongest attacker on all sensitive columns crossed
    return {
        "leakage": last["accuracy"],
        "leakage_lower": last["accuracy_lower"],
        "leakage_upper": last["accuracy_upper"],
        "majority": last["majority"],
        "advantage": last["advantage"],
        "leakage_auc": last["auc"],
        "code_bits": attacked.code_bits,
        "uniform_bits": attacked.uniform_bits,
    }


def _privacy_figures(method: Method, model: Any, guarantees: list[PrivacyGuarantee]) -> dict[str, Any]:
    finite = [g for g in guarantees if math.isfinite(g.epsilon)]
    if not finite:
        return {"epsilon": math.inf, "delta": math.nan, "protects": "nothing"}
    (guarantee,) = finite
    protects = method.protects or ("the training rows" if protects_fitted_rows(model) else RECORDS)
    return {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "protects": protects}


def _call_with_number(number: int, function: Any, *arguments: Any) -> tuple[int, Any]:
    """Call a function in a worker, and tell which call it was: results come in the order in which they are ready.

    OpenMP gets one thread: on a busy machine, the threads of boosted trees wait for each other for minutes.
    """
    with threadpool_limits(1, user_api="openmp"):
        return number, function(*arguments)
