"""What FederateClassifier decides where its parameters leave it open, what it refuses, and when it warns."""

import inspect
import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfairdp._validation import warn_user
from skfairdp.adversarial._training_table import TrainingTable
from skfairdp.exceptions import MissingSensitiveFeaturesWarning

# A table is trained on for about so many steps, in passes within these bounds: small tables settle within two thousand
# steps, and large ones within 20 passes, mostly well before, when early stopping ends the training.
_STEPS, _FEWEST_EPOCHS, _MOST_EPOCHS = 2000, 20, 200
_SMALLEST_BATCH, _LARGEST_BATCH = 16, 256
# Hidden layers of the encoder. The wide ones were worth eight points with twenty classes; with few classes they learned
# small tables by heart, and took half as much time again on large ones.
_WIDE, _NARROW, _MOST_CLASSES_FOR_NARROW = (256, 128), (100, 50), 10
# With fewer rows, a share to validate on would be a dozen rows that tell nothing and that training misses.
_ROWS_TO_STOP_BY = 100
# Fewer rows than this tell too little about when to stop, so that small tables give a larger share of theirs.
_ROWS_TO_VALIDATE = 200
# Whether a loss has settled can be said after so many epochs; somebody who asks for fewer wants a short training.
_EPOCHS_TO_JUDGE = 10
# A loss has settled when a quarter of the epochs lowers it by no more than so many nats.
_SETTLED = 0.05
# On Adult this weight takes four fifths of the TPR-gap away and costs about a quarter of a point of accuracy.
_PENALTY = 0.2
# With fewer rows of a group in a batch its rate is mostly chance: on Adult by race (White, Black, others; two rows a
# batch) the penalty more than doubled the gap of the test part, and cost a point of accuracy.
_ROWS_TO_COMPARE = 3


def resolve_channel(estimator: Any) -> str:
    """Name what stands between encoder and head."""
    if math.isinf(estimator.epsilon):
        return "none"
    return "codes" if estimator.channel == "auto" else estimator.channel


def choose_batch_and_epochs(estimator: Any, n_rows: int) -> tuple[int, int]:
    """Settle the batch size and the number of epochs for epochs of this many rows."""
    batch_size, max_epochs = estimator.batch_size, estimator.max_epochs
    if isinstance(batch_size, str):
        batch_size = 2 ** round(math.log2(min(max(n_rows / 10, _SMALLEST_BATCH), _LARGEST_BATCH)))
    if isinstance(max_epochs, str):
        max_epochs = min(max(math.ceil(_STEPS * batch_size / n_rows), _FEWEST_EPOCHS), _MOST_EPOCHS)
    return batch_size, max_epochs


def choose_hidden_sizes(estimator: Any, n_classes: int) -> dict[str, tuple[int, ...]]:
    """Settle the widths of the hidden layers of each network."""
    chosen = {}
    for name in ("encoder", "classifier", "adversary"):
        sizes = getattr(estimator, f"{name}_hidden_sizes")
        if isinstance(sizes, str):
            sizes = _WIDE if estimator._is_tabular and n_classes > _MOST_CLASSES_FOR_NARROW else _NARROW
        chosen[name] = tuple(int(width) for width in sizes)
        if any(width < 1 for width in chosen[name]):
            raise ValueError(f"{name}_hidden_sizes must hold layer widths of at least 1; got {chosen[name]!r}.")
    return chosen


def choose_fairness_weights(estimator: Any, table: TrainingTable, n_outputs: int) -> tuple[float, float]:
    """Settle the weights of adversary and penalty; the parameters of the classifier say why."""
    if table.sensitive is None:
        return 0.0, 0.0
    weight, penalty = estimator.adversary_weight, estimator.fairness_penalty
    if penalty is None:
        penalty = _PENALTY if weight is None and _batches_show_the_gap(estimator, table) else 0.0
    if weight is None:
        tells_the_answer = resolve_channel(estimator) == "codes" and n_outputs <= len(table.classes)
        weight = 0.0 if tells_the_answer and estimator.n_adversaries == 1 else 1.0
    return float(weight), float(penalty)


def _batches_show_the_gap(estimator: Any, table: TrainingTable) -> bool:
    """Whether every rate that the penalty compares has rows enough in a batch; warn if not."""
    batch_size, _ = choose_batch_and_epochs(estimator, table.n_draws)
    by_class = estimator.fairness != "demographic_parity"
    one_rate = estimator.fairness == "equal_opportunity" and len(table.classes) == 2
    for j, n_groups in enumerate(table.n_groups):
        cells = (table.y if by_class else 0 * table.y) * n_groups + table.groups[:, j]
        mass = np.bincount(cells, weights=table.weight, minlength=(len(table.classes) if by_class else 1) * n_groups)
        rows = batch_size * (mass / mass.sum()).reshape(-1, n_groups)[1 if one_rate else 0 :]
        if (smallest := rows[rows > 0].min()) < _ROWS_TO_COMPARE:
            group = table.sensitive.labels[j][int(np.argwhere(rows == smallest)[0, 1])]
            warn_user(
                f"The default fairness penalty is left out: of group {group!r} a batch of {batch_size} rows holds "
                f"about {smallest:.1g} that count, too few to tell a gap from chance. Merge small groups, raise "
                "batch_size, or say fairness_penalty=... or adversary_weight=... yourself.",
            )
            return False
    return True


def stops_early(estimator: Any, n_rows: int) -> bool:
    """Whether rows are kept out to stop by."""
    return n_rows >= _ROWS_TO_STOP_BY if isinstance(estimator.early_stopping, str) else estimator.early_stopping


def validation_share(estimator: Any, n_rows: int) -> float:
    """Share of the rows that is kept out to stop by."""
    if not isinstance(estimator.validation_fraction, str):
        return estimator.validation_fraction
    return min(max(_ROWS_TO_VALIDATE / n_rows, 0.1), 0.2)


def warn_of_poor_training(estimator: Any, table: TrainingTable) -> None:
    """Warn if the loss has not settled, or if the model knows no more than which class is the most frequent."""
    from skfairdp.neural import noiseless_answers

    if estimator.n_iter_ < _EPOCHS_TO_JUDGE:
        return
    watched = estimator.history_["valid_loss" if "valid_loss" in estimator.history_ else "classifier_loss"].to_numpy()
    quarter = max(1, estimator.n_iter_ // 4)
    fall = watched[-2 * quarter : -quarter].mean() - watched[-quarter:].mean()
    if not estimator.stopped_early_ and fall > _SETTLED:
        warn_user(
            f"FederateClassifier has not converged: in the last {quarter} of {estimator.n_iter_} epochs the loss "
            f"fell by another {fall:.2g} nats. Use more max_epochs or a larger learning_rate.",
            ConvergenceWarning,
        )
    right = noiseless_answers(estimator.net_.module_, table.x) == table.y
    accuracy, shares = np.average(right, weights=table.weight), table.class_shares()
    if accuracy <= shares.max() + 1e-12:
        warn_user(
            f"FederateClassifier is right about {accuracy:.1%} of its training rows, no more than if it answered "
            f"{estimator.classes_[shares.argmax()]} about everybody ({shares.max():.1%}): it found nothing to learn, "
            "or not yet (max_epochs, learning_rate), or a fairness term or alpha outweighs it.",
            ConvergenceWarning,
        )


def refuse_idle_parameters(estimator: Any) -> None:
    """Raise if a parameter was set that does nothing beside the others: its user expects it to do something."""
    of_laplace, of_codes = ("n_components", "norm", "calibration"), ("n_codes",)
    reasons = dict.fromkeys(of_laplace if estimator.channel == "codes" else of_codes, "channel")
    if estimator.channel == "auto":
        idle = ("norm", "calibration", "n_codes") if math.isinf(estimator.epsilon) else of_laplace
        reasons = dict.fromkeys(idle, "channel")
    if not isinstance(estimator.encoder, str) and estimator.alpha > 0:
        reasons["alpha"] = "encoder"
    for network in ("encoder", "classifier", "adversary"):
        if not isinstance(getattr(estimator, network), str):
            reasons[f"{network}_hidden_sizes"] = network
    defaults = inspect.signature(type(estimator).__init__).parameters
    for name, reason in reasons.items():
        value, default = getattr(estimator, name), defaults[name].default
        if name == "n_components" and value == 1:
            continue  # a code is one value; and scikit-learn's checks set this where they find the parameter
        if (value if isinstance(value, str | Real | None) else tuple(value)) != default:
            given = f"{reason}={getattr(estimator, reason)!r}"
            if reason == "channel" and estimator.channel == "auto":
                given += f", which takes {resolve_channel(estimator)!r} for epsilon={estimator.epsilon:g}"
            raise ValueError(
                f"{name}={value!r} does nothing with {given}; leave it at its default {default!r}, or change {reason}."
            )


def refuse_without_groups(estimator: Any) -> None:
    """Raise if a fairness term was asked for and no groups were given; warn if it is only left out by default."""
    asked = {
        "adversary_weight": estimator.adversary_weight is not None and estimator.adversary_weight > 0,
        "fairness_penalty": estimator.fairness_penalty is not None and estimator.fairness_penalty > 0,
        "n_adversaries": estimator.n_adversaries > 1 and estimator.adversary_weight != 0,
    }
    wanted = [f"{name}={getattr(estimator, name)!r}" for name, is_asked in asked.items() if is_asked]
    if wanted:
        raise ValueError(
            f"{' and '.join(wanted)} asks for a fairness term, and sensitive_features are missing. Give "
            "fit(X, y, sensitive_features=...); in a pipeline or a search, "
            "sklearn.set_config(enable_metadata_routing=True) and route_sensitive_features pass them on. To train "
            "without groups, set adversary_weight=0 and fairness_penalty=0."
        )
    if estimator.adversary_weight is None and estimator.fairness_penalty is None:
        warn_user(
            "FederateClassifier was fitted without sensitive_features: it is trained without a fairness term. Give "
            "fit(X, y, sensitive_features=...), or say adversary_weight=0 or fairness_penalty=0.",
            MissingSensitiveFeaturesWarning,
        )
