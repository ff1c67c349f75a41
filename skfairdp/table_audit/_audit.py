"""An audit under way: divide the rows, search, measure, lay out."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skfairdp._validation import check_sensitive_features
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.model_selection import RelaxationThreshold
from skfairdp.random import clone_with_seed
from skfairdp.table_audit._change import gap_change
from skfairdp.table_audit._measure import (
    Attacked,
    Trained,
    attack,
    collected,
    figures,
    guarantees_of,
    protects_fitted_rows,
    rates_of,
    train,
    train_and_attack,
)
from skfairdp.table_audit._methods import RECORDS, Method, Setting
from skfairdp.table_audit._prepare import PreparedTable
from skfairdp.table_audit._progress import Progress
from skfairdp.table_audit._result import TableAudit, versions
from skfairdp.table_audit._split import folds, hold_out

PROBE_COST = 6.0  # an attack on a representation, relative to a logistic regression
_READING = (
    "how the table was read (which columns were left out, what counts as missing), and the choice between methods"
)


class Audit:
    """An audit under way."""

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
        self.tuned: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.outcomes: dict[str, tuple[Trained, Attacked]] = {}

    def divide(self, test_size: float, n_splits: int, n_probe_rows: int) -> None:
        """Hold out test rows, and fold the others."""
        y = self.table.y
        groups = check_sensitive_features(self.table.sensitive, len(y), intersection=True).indices[:, 0]
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
        model = clone_with_seed(estimator, self.stream.seed())
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
                    call = delayed(train)(copy, self.table, fit, valid, method.fitted, method.public_share)
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
        tasks = [(None, PROBE_COST, "attack on the columns", call)]
        for method in self.methods:
            if method.name in self.tuned:
                call = delayed(train_and_attack)(
                    self.tuned[method.name],
                    self.table,
                    self.train,
                    self.test,
                    self.probed,
                    method.fitted,
                    method.public_share,
                    seed,
                )
                tasks.append((method.name, method.cost + PROBE_COST, f"{method.name}: measuring", call))
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

    def result(self, settings: dict[str, Any]) -> TableAudit:
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
            measured |= {name: change.value, f"{name}_lower": change.low, f"{name}_upper": change.high}
            rows.append({"method": method.name, **measured, **self._attack_figures(attacked)})
            rows[-1] |= self._privacy_figures(method, trained.model, guarantees[method.name])
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
        return TableAudit(
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
            "leakage_lower": last["accuracy_lower"],
            "leakage_upper": last["accuracy_upper"],
            "majority": last["majority"],
            "advantage": last["advantage"],
            "leakage_auc": last["auc"],
            "code_bits": attacked.code_bits,
            "uniform_bits": attacked.uniform_bits,
        }

    def _guarantees(self, method: Method, model: Any) -> list[PrivacyGuarantee]:
        found = guarantees_of(model)
        if protects_fitted_rows(model):
            found = [replace(g, does_not_cover=(*g.does_not_cover, _READING)) for g in found]
        return found

    def _privacy_figures(self, method: Method, model: Any, guarantees: list[PrivacyGuarantee]) -> dict[str, Any]:
        finite = [g for g in guarantees if math.isfinite(g.epsilon)]
        if not finite:
            return {"epsilon": math.inf, "delta": math.nan, "protects": "nothing"}
        (guarantee,) = finite
        protects = method.protects or ("the training rows" if protects_fitted_rows(model) else RECORDS)
        return {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "protects": protects}


def _keyed(number: int, call: Any) -> tuple[int, Any]:
    function, arguments, keywords = call
    return number, function(*arguments, **keywords)
