"""An audit under way: divide the rows, try candidates, train, measure, attack, lay out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skfairdp._validation import check_sensitive_features
from skfairdp.dp import PrivacyGuarantee
from skfairdp.model_selection import RelaxationThreshold
from skfairdp.random import clone_with_seed
from skfairdp.table_audit._chosen_method import choose_method, choose_reference
from skfairdp.table_audit._existing_decisions import ExistingSystem, columns_of_model
from skfairdp.table_audit._judged_predictions import (
    Answers,
    accuracy_figures,
    calibration_of,
    change_of_gap,
    figures_of,
    gap_of,
    groups_with_too_few_rows,
    rates_of,
    strata_of,
)
from skfairdp.table_audit._methods_compared import RECORDS, Method, Setting
from skfairdp.table_audit._prepared_table import PreparedTable, hold_out, validation_folds
from skfairdp.table_audit._table_audit import TableAudit, versions
from skfairdp.table_audit._table_checks import TableCheck
from skfairdp.table_audit._terminal_summary import Progress
from skfairdp.table_audit._train_and_attack import (
    Attack,
    PipelineWithPublicRows,
    Predictions,
    attack_decisions,
    attack_model,
    attack_representation,
    collect_findings,
    guarantees_of,
    predict_out_of_fold,
    prepare_fold,
    protects_fitted_rows,
    train_and_attack,
)
from skfairdp.table_audit._worker_processes import WorkerProcesses

#: Columns to predict from at most: an eraser of more would take hours.
MAX_FEATURES = 1000
_ATTACK_COST = 6.0  # time of an attack on a representation, relative to a logistic regression
#: Cells of the searched rows up to which all methods share their folds, as numbers. Of more cells, these would be
#: gigabytes, and turning columns into numbers is a small part of the work.
_SHARED_CELLS = 40_000


class AuditRun:
    """An audit under way.

    Parameters
    ----------
    table : PreparedTable
        The table.
    systems : sequence of ExistingSystem
        What exists already.
    methods : list of Method
        What is trained.
    score : str
        The column by which methods are chosen, ``"accuracy"`` or ``"balanced_accuracy"``.
    threshold : float
        How much of it may be given up.
    stream : RandomStream
        Of splits, training and noise.
    """

    setting: Setting
    workers: WorkerProcesses

    def __init__(
        self,
        table: PreparedTable,
        systems: Sequence[ExistingSystem],
        methods: list[Method],
        score: str,
        threshold: float,
        stream: Any,
    ):
        self.table = table
        self.systems = {system.name: system for system in systems}
        self.methods = methods
        self.score, self.threshold = score, threshold
        self.stream = stream
        self.notes = [*table.notes, *(note for system in systems for note in system.notes)]
        self.answers = {s.name: Answers(s.rows, s.predicted, s.scores) for s in systems}
        self.attacks: dict[str, Attack] = {}
        self.models: dict[str, Any] = {s.name: s.model for s in systems if s.model is not None}
        self.guarantees = {name: guarantees_of(model) for name, model in self.models.items()}
        self.seconds: dict[str, float] = {}
        self.candidates: dict[str, pd.DataFrame] = {}
        self.chosen_models: dict[str, Any] = {}
        self.out_of_fold: dict[str, list[Answers]] = {}
        self.search_seconds: dict[str, float] = {}
        self.train = self.searched = np.empty(0, dtype=np.intp)
        self.test = np.arange(len(table.y))

    def divide(
        self, test_size: float, n_splits: int, n_repeats: int | None, n_train_rows: int, n_search_rows: int
    ) -> None:
        """Hold out test rows; of the others, take samples to train on and to choose by."""
        y, generator = self.table.y, self.stream.generator
        groups = check_sensitive_features(self.table.sensitive, len(y), intersection=True).indices[:, 0]
        self.train, self.test = hold_out(y, groups, test_size, generator, self.table.person)
        self.train = self._sample(self.train, groups, n_train_rows, "Models are trained on")
        self.searched = self._sample(self.train, groups, n_search_rows, "Methods are chosen by")
        if n_repeats is None:  # chance decides more where rows are few, and there repeats are cheap
            n_repeats = 2 if len(self.searched) < 5000 else 1
        person = None if self.table.person is None else self.table.person[self.searched]
        self.folds = [
            validation_folds(y[self.searched], groups[self.searched], n_splits, generator, person)
            for _ in range(n_repeats)
        ]

    def _sample(self, rows: np.ndarray, groups: np.ndarray, n: int, what: str) -> np.ndarray:
        """Take a sample with the same shares of classes and groups, and note it."""
        if len(rows) <= n:
            return rows
        taken = hold_out(self.table.y[rows], groups[rows], n / len(rows), self.stream.generator)[1]
        self.notes.append(f"To save time: {what} {len(taken):,} of {len(rows):,} training rows, drawn at random.")
        return rows[taken]

    def choose_attacked_rows(self, n_probe_rows: int) -> None:
        """Choose the rows that attackers look at."""
        self.attacked = self.test
        if len(self.test) > n_probe_rows:
            self.attacked = np.sort(self.stream.generator.choice(self.test, n_probe_rows, replace=False))
            kind = "test rows" if self.methods else "rows"
            self.notes.append(
                f"To save time, attackers look at {n_probe_rows:,} of the {len(self.test):,} {kind}, at random."
            )

    def work(self) -> float:
        """Estimate the whole work, in units of one logistic regression."""
        n_fits = sum(len(folds) for folds in self.folds) if self.methods else 0
        firsts = [family[0] for family in self._families()]
        trained = sum(m.cost * (len(m.candidates(self.setting)) * n_fits + 1) for m in firsts)
        return trained + _ATTACK_COST * (len(self.methods) + len(self.systems) + 1)

    def _run(self, steps: list[tuple[float, str]], calls: list[Any], progress: Progress) -> list[Any]:
        """Make calls in parallel, each with its cost and what it does; return their results in order.

        The dearest come first, so that no process is left with one at the end.
        """
        order = sorted(range(len(calls)), key=lambda number: -steps[number][0])
        results: list[Any] = [None] * len(calls)
        for place, found in self.workers.results([calls[number] for number in order]):
            results[order[place]] = found
            progress.step(*steps[order[place]])
        return results

    def _model(self, method: Method, params: dict[str, Any]) -> Any:
        """Make an unfitted, seeded model of the whole way from columns to predictions."""
        model = clone_with_seed(method.make(self.setting), self.stream.seed())
        model.set_params(**params)
        if method.bare:
            return model
        steps = [("prepare", self.table.preprocessor()), ("model", model)]
        if method.public_share:
            return PipelineWithPublicRows(steps, public_share=method.public_share, transform_input=["public"])
        return Pipeline(steps)

    def _families(self) -> list[list[Method]]:
        """Bring methods together that are made of one fitted model; the first of each is trained."""
        names = [method.name for method in self.methods]
        families = {method.name: [method] for method in self.methods if method.same_fit_as not in names}
        for method in self.methods:
            if method.name not in families:
                families[str(method.same_fit_as)].append(method)
        return list(families.values())

    def _adapts(self, family: list[Method]) -> list[Any]:
        return [None, *(method.adapt(self.setting) for method in family[1:] if method.adapt is not None)]

    # -- choosing -----------------------------------------------------------------------------------------------------

    def search(self, progress: Progress) -> None:
        """Try every candidate of every method on the folds, and choose one of each.

        A candidate is judged by its predictions of all rows that are searched, each made by a copy that has not seen
        the row, as the mean over repeated divisions into folds. ``GridSearchCV(refit=rule)`` would judge it by the mean
        over folds: a gap is a largest difference, which chance widens in small folds, so that in 150 trials of five
        candidates with 350 training rows in three folds it chose true gaps that were wider by 0.007 (standard error
        0.003; with 1,400 rows both chose alike), and it is undefined where one fold lacks a class of all groups but
        one. It also tells nothing of its progress before the last candidate.
        """
        steps, calls, owners = [], [], []
        models: dict[str, list[Any]] = {}
        part = self.table.take(self.searched)  # a process is sent no more than it needs
        shared = self._prepared_folds(part)
        for family in self._families():
            method, adapts = family[0], self._adapts(family)
            models[method.name] = [self._model(method, params) for params in method.candidates(self.setting)]
            takes_numbers = not method.bare and not method.public_share
            for number, model in enumerate(models[method.name]):
                for folds, prepared in zip(self.folds, shared):
                    steps.append((method.cost * len(folds), f"{method.name}: tried candidate {number + 1}"))
                    call = (predict_out_of_fold, model, part, folds, method.needs_groups, adapts)
                    if takes_numbers and prepared is not None:
                        call = (predict_out_of_fold, model[-1], part, folds, False, adapts, prepared)
                    calls.append(call)
                    owners.append((family, number))
        tried_by: dict[str, list[list[Predictions]]] = {method.name: [] for method in self.methods}
        for (family, number), found in zip(owners, self._run(steps, calls, progress)):
            for method, predictions in zip(family, found):
                predictions.answers = predictions.answers.about(self.searched)
                if number == len(tried_by[method.name]):
                    tried_by[method.name].append([])
                tried_by[method.name][number].append(predictions)
        seed = self.stream.seed()
        for method in self.methods:
            found = tried_by[method.name]
            failure = next((one.failure for tried in found for one in tried if one.failure is not None), None)
            if failure is None and self.table.fairness == "calibration_gap" and found[0][0].answers.scores is None:
                failure = "calibration is about scores, and it gives none"
            if failure is not None:
                self._leave_out(method.name, failure)
                continue
            with collect_findings([]):  # rates that are undefined on validation rows are of no interest to the reader
                judged = pd.DataFrame([self._validation_figures([p.answers for p in tried], seed) for tried in found])
            judged.insert(0, "params", method.candidates(self.setting))
            best = self._best_candidate(judged)
            self.candidates[method.name] = judged.assign(chosen=np.arange(len(judged)) == best)
            if method.name in models:
                self.chosen_models[method.name] = models[method.name][best]
            self.out_of_fold[method.name] = [one.answers for one in found[best]]
            self.search_seconds[method.name] = sum(one.seconds for tried in found for one in tried)
        if not self.candidates:
            raise ValueError("no method could be trained. " + " ".join(n for n in self.notes if " is left out" in n))

    def _prepared_folds(self, part: PreparedTable) -> list[Any]:
        """Turn the columns of all folds of a small table into numbers, once for all methods; None for a large one."""
        if part.X.size > _SHARED_CELLS:
            return [None] * len(self.folds)
        calls = [(prepare_fold, part, *fold) for folds in self.folds for fold in folds]
        found = dict(self.workers.results(calls))
        numbers = iter(range(len(calls)))
        return [[found[next(numbers)] for _ in folds] for folds in self.folds]

    def _validation_figures(self, repeats: list[Answers], seed: int) -> dict[str, float]:
        """Compute the mean over repeats of what methods are chosen by."""
        rows = []
        for answers in repeats:
            figures = accuracy_figures(self.table, answers)
            gap = gap_of(self.table, answers, seed)
            rows.append({name: figures[name] for name in ("accuracy", "balanced_accuracy", "constant")})
            rows[-1] |= {self.table.fairness: gap.value}
        return pd.DataFrame(rows).astype(float).mean().to_dict()

    def _best_candidate(self, judged: pd.DataFrame) -> int:
        fairness = self.table.fairness
        if not np.isfinite(judged[fairness]).any():  # no gap is defined: accuracy alone decides
            return int(judged[self.score].to_numpy().argmax())
        directions = {self.score: "max", fairness: "min"}
        return RelaxationThreshold(self.threshold, accuracy=self.score, fairness=fairness, directions=directions)(
            judged
        )

    def _leave_out(self, name: str, why: str) -> None:
        self.notes.append(f"{name} is left out, because it could not be trained: {why}")

    def _validation(self) -> tuple[pd.DataFrame, str]:
        """Lay out the validation figures of systems and methods, and choose the reference."""
        seed = self.stream.seed()
        candidates = pd.concat(self.candidates, names=["method", "candidate"])
        validation = candidates[candidates["chosen"]].droplevel("candidate").drop(columns=["params", "chosen"])
        validation = validation.loc[[name for name in self.out_of_fold if name in self.answers]]
        by_name = {method.name: method for method in self.methods}
        reference = choose_reference(
            validation,
            list(self.systems),
            [name for name in validation.index if by_name[name].is_own],
            [name for name in validation.index if by_name[name].is_reference],
            self.score,
            len(self.searched),
        )
        repeats = {name: self.out_of_fold[name] for name in validation.index}
        rows = validation.to_dict("index")
        for name in self.systems:
            known = self.answers[name].among(self.searched)
            if len(known.rows):
                repeats[name] = [known] * len(self.folds)
                rows[name] = self._validation_figures([known], seed)
        if reference not in repeats:  # a system that decided about none of the rows that methods are chosen by
            raise ValueError(f"{reference} has no decision about the rows that methods are chosen by.")
        names = [f"{self.table.fairness}_change{end}" for end in ("", "_lower", "_upper")]
        for name, of_method in repeats.items():
            found = [change_of_gap(self.table, a, b, seed) for a, b in zip(of_method, repeats[reference])]
            rows[name] |= dict(zip(names, np.mean(found, axis=0)))
            rows[name]["needs_groups"] = name in by_name and by_name[name].needs_groups
            rows[name]["constant"] = rows[name]["constant"] > 0.5  # in most repeats
        return pd.DataFrame.from_dict(rows, orient="index"), reference

    # -- measuring ----------------------------------------------------------------------------------------------------

    def measure(self, progress: Progress) -> None:
        """Train the chosen candidates, let them answer about the test rows, and attack what everybody gives away."""
        seed = self.stream.seed()
        sensitive = self.table.sensitive
        steps: list[tuple[float, str]] = []
        calls: list[tuple] = []
        if 0 < self.table.X.shape[1] <= MAX_FEATURES:
            fitted_on = self.train if len(self.train) else self.attacked
            prepared = self.table.preprocessor().fit(self.table.X.iloc[fitted_on])
            X = prepared.transform(self.table.X.iloc[self.attacked])
            steps.append((_ATTACK_COST, "the columns: attacked"))
            calls.append((attack_representation, X, "the columns themselves", sensitive.iloc[self.attacked], seed))
        names = ["(columns)"] * len(calls)
        for name, system in self.systems.items():
            steps.append((_ATTACK_COST, f"{name}: attacked"))
            names.append(name)
            if system.model is None:
                calls.append((attack_decisions, self.answers[name], self.attacked, sensitive, seed))
            else:
                X = columns_of_model(system.model, self.table, self.attacked, name)
                calls.append((attack_model, system.model, X, sensitive.iloc[self.attacked], seed))
        families = [family for family in self._families() if family[0].name in self.chosen_models]
        self.used = np.union1d(self.train, self.test)
        part = self.table.take(self.used)  # a process is sent no more than it needs
        rows = tuple(np.searchsorted(self.used, these) for these in (self.train, self.test, self.attacked))
        for family in families:
            method = family[0]
            steps.append((method.cost + _ATTACK_COST * len(family), f"{method.name}: measured and attacked"))
            # Scores of released answers are a further release, and tell nothing that the answers do not.
            with_scores = self.table.fairness == "calibration_gap" or method.protects in ("nothing", "")
            model = self.chosen_models[method.name]
            how = (method.needs_groups, with_scores and len(family) == 1, self._adapts(family))
            calls.append((train_and_attack, model, part, *rows, *how, seed))
        results = self._run(steps, calls, progress)
        self.attacks = dict(zip(names, results))
        for family, outcomes in zip(families, results[len(names) :]):
            for method, (trained, attacked) in zip(family, outcomes):
                if method.name in self.candidates:
                    self._note_trained(method.name, trained, attacked)
        if not self.answers:
            raise ValueError("no method could be measured. " + " ".join(n for n in self.notes if " is left out" in n))

    def _note_trained(self, name: str, trained: Predictions, attacked: Attack) -> None:
        if trained.failure is not None:
            self._leave_out(name, trained.failure)
            return
        self.answers[name], self.attacks[name] = trained.answers.about(self.used), attacked
        self.models[name], self.seconds[name] = trained.model, trained.seconds
        self.guarantees[name] = trained.guarantees
        self.notes += [f"{name}: {finding}" for finding in [*trained.findings, *attacked.findings]]

    def result(self, settings: dict[str, Any], checks: tuple[TableCheck, ...]) -> TableAudit:
        """Lay out everything that was measured."""
        table, seed = self.table, self.stream.seed()
        by_name = {method.name: method for method in self.methods}
        if self.methods:
            with collect_findings([]):
                validation, reference = self._validation()
            best = choose_method(validation, reference, table.fairness, self.score, self.threshold)
            validation = validation.drop(columns="needs_groups").add_prefix("validation_")
        else:
            validation, reference = pd.DataFrame(index=list(self.systems)), next(iter(self.systems))
            best = reference
        rows, rates, guarantees, calibration, strata = {}, {}, {}, {}, {}
        for name, answers in self.answers.items():
            findings: list[str] = []
            with collect_findings(findings):
                figures = figures_of(table, answers, seed)
                rates[name] = rates_of(table, answers, seed)
                change = change_of_gap(table, answers, self.answers[reference], seed)
            # The same rate is undefined in several metrics; the table of rates names each once.
            undefined = [finding for finding in findings if finding.startswith("group_rates")]
            self.notes += [f"{name}: {finding}" for finding in undefined or findings]
            if answers.scores is not None:
                calibration[name] = calibration_of(table, answers)
            within: dict[str, float] = {}
            if table.control is not None:
                strata[name] = strata_of(table, answers, seed)
                ends = strata[name].iloc[0][["gap", "lower", "upper"]]
                within = dict(zip([f"within_strata_gap{end}" for end in ("", "_lower", "_upper")], ends))
            model, method = self.models.get(name), by_name.get(name)
            guarantees[name] = self.guarantees.get(name, [])
            changes = zip(("change", "change_lower", "change_upper"), change)
            rows[name] = {
                "kind": "system" if method is None else "reference" if _is_told_against(method) else "method",
                "rows": "all rows" if method is None or not len(self.train) else "test rows",
                "n_rows": len(answers.rows),
                **(validation.loc[name].to_dict() if name in validation.index else {}),
                **figures,
                **{f"{table.fairness}_{what}": value for what, value in changes},
                **within,
                **_attack_figures(self.attacks[name]),
                **_privacy_figures("" if method is None else method.protects, model, guarantees[name]),
                "needs_groups": method is not None and method.needs_groups,
                "seconds": self.seconds.get(name, 0.0),
                "search_seconds": self.search_seconds.get(name, 0.0),
            }
        leakage = [found.leakage.assign(method=name, source=found.source) for name, found in self.attacks.items()]
        summaries = {name: system.summary for name, system in self.systems.items()}
        candidates = pd.DataFrame(index=pd.MultiIndex.from_arrays([[], []], names=["method", "candidate"]))
        return TableAudit(
            table=pd.DataFrame(list(rows.values()), index=pd.Index(rows, name="method")),
            reference=reference,
            best=best,
            fairness=table.fairness,
            candidates=pd.concat(self.candidates, names=["method", "candidate"]) if self.candidates else candidates,
            group_rates=_stacked(rates),
            leakage=pd.concat(leakage, ignore_index=True),
            guarantees=guarantees,
            summaries=summaries | {m.name: m.summary for m in self.methods if m.name in self.answers},
            models=self.models,
            notes=tuple(dict.fromkeys(self.notes)),
            settings=settings,
            versions=versions(),
            systems=tuple(self.systems),
            checks=checks,
            calibration=_stacked(calibration) if calibration else None,
            strata=_stacked(strata) if strata else None,
            too_few=groups_with_too_few_rows(table, self.answers[reference], seed),
        )


def _is_told_against(method: Method) -> bool:
    return method.is_reference or method.is_own


def _stacked(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Put the tables of all methods below each other, with the method as first column."""
    return pd.concat(frames, names=["method", None]).reset_index(level=0).reset_index(drop=True)


def _attack_figures(attacked: Attack) -> dict[str, Any]:
    last = attacked.leakage.iloc[-1]  # the strongest attacker on all sensitive columns crossed
    return {
        "leakage": last["accuracy"],
        "leakage_lower": last["accuracy_lower"],
        "leakage_upper": last["accuracy_upper"],
        "majority": last["majority"],
        "advantage": last["advantage"],
        "advantage_lower": last["advantage_lower"],
        "advantage_upper": last["advantage_upper"],
        "leakage_auc": last["auc"],
        "leakage_auc_lower": last["auc_lower"],
        "leakage_auc_upper": last["auc_upper"],
        "code_bits": attacked.code_bits,
        "uniform_bits": attacked.uniform_bits,
    }


def _privacy_figures(protects: str, model: Any, guarantees: list[PrivacyGuarantee]) -> dict[str, Any]:
    finite = [g for g in guarantees if math.isfinite(g.epsilon)]
    if not finite:
        return {"epsilon": math.inf, "delta": math.nan, "protects": "nothing"}
    (guarantee,) = finite
    protects = protects or ("the training rows" if protects_fitted_rows(model) else RECORDS)
    return {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "protects": protects}
