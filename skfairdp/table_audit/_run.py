"""audit_table: train every method, choose by relaxation threshold, measure on rows that nobody has seen."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from skfairdp._validation import check_count, check_delta, check_epsilon
from skfairdp.model_selection import RelaxationThreshold
from skfairdp.random import RandomState, random_stream
from skfairdp.table_audit._audit import PROBE_COST, Audit
from skfairdp.table_audit._methods import METHODS, Setting, choose_methods
from skfairdp.table_audit._prepare import prepare_table
from skfairdp.table_audit._progress import Progress
from skfairdp.table_audit._result import TableAudit

_REPEATED = (
    "epsilon",
    "delta",
    "pos_label",
    "keep_sensitive",
    "test_size",
    "n_splits",
    "n_probe_rows",
    "relaxation_threshold",
    "random_state",
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
    stream = random_stream(seed)
    table = prepare_table(frame, target, sensitive, pos_label=pos_label, keep_sensitive=keep_sensitive)
    audit = Audit(table, chosen, rule, stream, n_jobs)
    audit.divide(test_size, n_splits, n_probe_rows)
    audit.setting = Setting(epsilon, delta, len(audit.train), len(table.classes))
    work = sum(m.cost * (len(m.candidates(audit.setting)) * n_splits + 1) + PROBE_COST for m in chosen) + PROBE_COST
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
    arguments = {
        "target": table.target,
        "sensitive": list(table.sensitive),
        "methods": [m.name if m.name in METHODS else (m.name, m.make(audit.setting)) for m in chosen],
        **{name: settings[name] for name in _REPEATED},
    }
    command = f"audit_table(frame, {', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
    return replace(audit.result(settings), command=" ".join(command.split()))


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1; got {value!r}.")
