"""audit_table: judge what exists, train what could take its place, and measure both on rows that no model has seen."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from skfairdp._validation import check_count, check_delta, check_epsilon, check_number, check_option
from skfairdp.random import RandomState, random_stream
from skfairdp.table_audit._audit_run import MAX_FEATURES, AuditRun
from skfairdp.table_audit._chosen_method import score_to_choose_by
from skfairdp.table_audit._existing_decisions import (
    ask_fitted_model,
    check_missing_decisions,
    name_decision_columns,
    read_decisions,
)
from skfairdp.table_audit._methods_compared import METHODS, Setting, choose_methods
from skfairdp.table_audit._prepared_table import prepare_table
from skfairdp.table_audit._table_audit import TableAudit
from skfairdp.table_audit._table_checks import check_table
from skfairdp.table_audit._terminal_summary import Progress
from skfairdp.table_audit._train_and_attack import group_columns
from skfairdp.table_audit._worker_processes import WorkerProcesses


def audit_table(
    frame: Any,
    *,
    target: str,
    sensitive: Any,
    predictions: Any = None,
    scores: Any = None,
    score_threshold: float | None = None,
    methods: Any = None,
    fairness: str = "equal_opportunity",
    pos_label: Any = None,
    control: Any = (),
    weights: str | None = None,
    person: str | None = None,
    drop: Any = (),
    features: Any = None,
    keep_sensitive: bool = False,
    epsilon: float = 8.0,
    delta: float = 1e-5,
    choose_by: str = "auto",
    relaxation_threshold: float = 0.01,
    test_size: float = 0.3,
    n_splits: int = 3,
    n_repeats: int | None = None,
    n_train_rows: int = 100_000,
    n_search_rows: int = 20_000,
    n_probe_rows: int = 3000,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> TableAudit:
    """Audit a table: how fair are its decisions, or a model of it, what do they leak, what could be had instead.

    Decisions that are in the table, and models that come fitted, are judged on all rows. Methods are chosen on one part
    of the rows and measured on another.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        The table, as it comes.
    target : str
        Column with what is true; 2 to 50 classes.
    sensitive : str or list of str
        Columns whose groups are compared; several are crossed.
    predictions : str, list of str or dict of name to column, optional
        Columns with the decisions of systems that exist already, each a class of the target.
    scores : str, list of str or dict of name to column, optional
        Columns with their scores; under the same name as ``predictions``, they belong to the same system. Scores alone
        become decisions at ``score_threshold``.
    score_threshold : float, optional
        From which score on a decision is favourable; 0.5 for scores between 0 and 1.
    methods : list, "all", "none" or None, default=None
        Names (see the guide), classifiers of your own, and pairs of a name and a classifier. A classifier gets prepared
        numbers; a ``Pipeline`` gets the columns; one that is fitted is a system that exists. None takes ``"logistic"``,
        ``"trees"``, ``"fair trees"``, ``"fair private trees"``, ``"leace"``, and from 2,000 rows on ``"federate"`` and
        ``"pate"``; ``"none"`` trains nothing.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity", "calibration"}, default="equal_opportunity"
        What is compared between groups: true positive rates, true and false positive rates, selection rates, or how far
        scores are from what comes true.
    pos_label : label, optional
        The favourable class. With two classes the larger label is assumed, and the result says so.
    control : str or list of str, default=()
        Columns whose strata groups are compared within; numbers are cut into quarters.
    weights : str, optional
        Column of row weights, for every rate; models are trained without them.
    person : str, optional
        Column that tells which rows are of one person; they stay on one side of every split.
    drop : str or list of str, default=()
        Columns that models may not use.
    features : str or list of str, optional
        The only columns that models may use.
    keep_sensitive : bool, default=False
        Whether models may use the sensitive columns as features.
    epsilon : float, default=8.0
        Privacy loss that the private methods may spend.
    delta : float, default=1e-5
        Of those methods that need one (PATE).
    choose_by : {"auto", "accuracy", "balanced_accuracy"}, default="auto"
        What may be given up for fairness. ``"auto"`` is accuracy, or balanced accuracy where one class has more than
        60 % of the rows.
    relaxation_threshold : float, default=0.01
        How much of it.
    test_size : float, default=0.3
        Share of the rows to measure methods on.
    n_splits : int, default=3
        Folds of the cross-validation by which methods are chosen.
    n_repeats : int or None, default=None
        How often it is repeated with other folds; None is twice below 5,000 rows, and once from there on.
    n_train_rows, n_search_rows : int, default=100_000 and 20_000
        Rows that models are trained on, and that methods are chosen by, at most: samples with the same shares of
        classes and groups. All test rows are judged.
    n_probe_rows : int, default=3000
        Rows that attackers look at, at most.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Of splits, training and noise. None draws a seed, which the result tells.
    n_jobs : int or None, default=None
        Number of processes, with one thread each; None takes all processors where that saves time.
    verbose : bool, default=True
        Whether to tell progress, with the time left, on standard error.

    Returns
    -------
    TableAudit
        With ``table``, ``best``, ``plot()``, ``to_html(path)`` and ``to_json(path)``.

    Notes
    -----
    Parameters of a method, and the best method, are chosen by repeated cross-validation on the training part. A method
    is chosen only if its gap is narrower than the reference's by more than one standard error and it costs at most
    ``relaxation_threshold``; the reference wins ties. Never chosen is a method that tells no more than one answer for
    everybody, or that must be told the group. Test rows are used once, to measure. The attackers are trained on
    test rows too, so that no memory of the training rows helps them.

    **Privacy.** The result is computed from the rows without noise and is itself not private. The guarantee of each
    method is that of the model if it were used as ``TableAudit.guarantees`` says.

    **Fairness.** Gaps are estimated as by :func:`~skfairdp.metrics.estimate_gap`: corrected for what chance adds to a
    largest difference, with intervals that hold for all groups at once. Groups with fewer than thirty rows of what is
    compared decide nothing, as long as two larger ones remain. Rows are taken as independent: where a person has
    several, intervals are too narrow.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
    >>> frame = make_biased_classification(400, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> frame["vendor"] = (frame["x0"] > 0).astype(int)
    >>> roles = {"target": "target", "sensitive": "group", "predictions": "vendor", "pos_label": 1}
    >>> result = audit_table(frame, **roles, methods="none", random_state=0, verbose=False)
    >>> result.reference
    'vendor'
    >>> int(result.table.loc["vendor", "n_rows"])
    400
    """
    columns = name_decision_columns(predictions, scores)
    chosen, fitted = choose_methods(methods, len(columns))
    names = [*(one.name for one in columns), *fitted, *(method.name for method in chosen)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} names two systems or methods; give one of them another name.")
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _check_share(test_size, "test_size")
    for value, name, least in ((n_splits, "n_splits", 2), (n_probe_rows, "n_probe_rows", 100)):
        check_count(value, name, least)
    for value, name in ((n_train_rows, "n_train_rows"), (n_search_rows, "n_search_rows")):
        check_count(value, name, 100)
    if n_repeats is not None:
        check_count(n_repeats, "n_repeats")
    check_option(choose_by, "choose_by", ("auto", "accuracy", "balanced_accuracy"))
    threshold = check_number(relaxation_threshold, "relaxation_threshold", "a number of at least 0", lambda t: t >= 0)
    seed = int(random_state) if isinstance(random_state, Integral) else random_stream(random_state).seed()
    table = prepare_table(
        frame,
        target,
        sensitive,
        pos_label=pos_label,
        keep_sensitive=keep_sensitive,
        fairness=fairness,
        weights=weights,
        control=control,
        person=person,
        drop=drop,
        features=features,
        decisions=list(dict.fromkeys(column for one in columns for column in one.columns)),
    )
    if not table.X.shape[1]:
        chosen = []
    if chosen and table.X.shape[1] > MAX_FEATURES:
        raise ValueError(
            f"the table has {table.X.shape[1]:,} columns to predict from; an audit trains on up to {MAX_FEATURES:,}. "
            "Choose some with features (--features), or judge existing decisions alone with methods='none'."
        )
    systems = [read_decisions(table, one, score_threshold) for one in columns]
    systems += [ask_fitted_model(table, name, model) for name, model in fitted.items()]
    unable = [method.name for method in chosen if fairness not in method.definitions]
    chosen = [method for method in chosen if fairness in method.definitions]
    if not chosen and not systems:
        raise ValueError(f"methods: {', '.join(unable)} cannot be judged by fairness={fairness!r}.")
    if fairness == "calibration" and (without := [system.name for system in systems if system.scores is None]):
        raise ValueError(f"fairness='calibration' is about scores, and {', '.join(without)} has none.")
    small = [method.name for method in chosen if methods is None and len(table.y) < method.least_rows]
    chosen = [method for method in chosen if method.name not in small]
    score = score_to_choose_by(table.y, len(table.classes)) if choose_by == "auto" else choose_by
    run = AuditRun(table, systems, chosen, score, threshold, random_stream(seed))
    run.notes[:0] = getattr(frame, "attrs", {}).get("notes", ())  # what reading the file has changed
    if unable:
        run.notes.append(f"Left out, because they are not about {fairness}: {', '.join(unable)}.")
    if small:
        run.notes.append(
            f"Left out, because the table has few rows: {', '.join(small)}. Name them among the methods to have them."
        )
    if chosen:
        run.divide(test_size, n_splits, n_repeats, n_train_rows, n_search_rows)
    run.choose_attacked_rows(n_probe_rows)
    run.setting = Setting(
        epsilon,
        delta,
        len(run.train),
        len(table.classes),
        table.pos_label,
        threshold,
        fairness,
        group_columns(table),
        table.preprocessor(),
    )
    checks = tuple(check for system in systems for check in check_missing_decisions(table, system))
    checks += check_table(table, run.stream.generator)
    progress = Progress(run.work(), verbose)
    try:
        with WorkerProcesses(n_jobs, len(run.train) * table.X.shape[1], _load_what_reports) as run.workers:
            if chosen:
                run.search(progress)
            run.measure(progress)
    finally:
        progress.close()
    roles = {"target": table.target, "sensitive": list(table.sensitive)}
    options = {
        "predictions": {one.name: one.predictions for one in columns if one.predictions} or None,
        "scores": {one.name: one.scores for one in columns if one.scores} or None,
        "score_threshold": score_threshold,
        "fairness": fairness,
        "pos_label": None if table.assumed_positive else table.pos_label,
        "control": [] if table.control is None else list(table.control),
        "weights": weights,
        "person": person,
        "drop": _as_list(drop),
        "features": None if features is None else _as_list(features),
        "keep_sensitive": bool(keep_sensitive),
        "epsilon": epsilon,
        "delta": delta,
        "choose_by": choose_by,
        "relaxation_threshold": threshold,
        "test_size": float(test_size),
        "n_splits": int(n_splits),
        "n_repeats": n_repeats,
        "n_train_rows": int(n_train_rows),
        "n_search_rows": int(n_search_rows),
        "n_probe_rows": int(n_probe_rows),
        "random_state": seed,
    }
    settings = {
        **roles,
        "classes": list(table.classes),
        **options,
        "pos_label": table.pos_label,
        "assumed_positive": table.assumed_positive,
        "chosen_by": score,
        "n_rows": len(table.y),
        "n_train": len(run.train),
        "n_searched": len(run.searched),
        "n_test": len(run.test),
        "n_probed": len(run.attacked),
        "features": list(table.X),
    }
    compared = [m.name if m.name in METHODS else (m.name, m.make(run.setting)) for m in chosen]
    compared += list(fitted.items())
    arguments = {**roles, "methods": compared or "none", **options}
    command = f"audit_table(frame, {', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
    return replace(run.result(settings, checks), command=" ".join(command.split()))


def _as_list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1; got {value!r}.")


def _load_what_reports() -> None:
    """Load what the report is made with, which takes a second."""
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401

    from skfairdp.table_audit._html_report import page_environment

    page_environment().get_template("report.html.j2")
