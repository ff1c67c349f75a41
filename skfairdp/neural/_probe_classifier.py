"""A probe: the attacker that asks what a representation gives away, as fast as the answer allows."""

import functools
import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import Interval, fit_context
from skfairdp.random import RandomState, random_stream

# Rows per block in predict_proba, so that memory does not grow with the number of rows.
_CHUNK = 8192

# The constants below decide how long a probe trains: as little as can be without making a weaker attacker than
# scikit-learn's network, which benchmarks/case_probe.py measures on eleven representations. "The loss" is that of
# left-out rows, and "the entropy" is the loss of an attacker that knows nothing but the class frequencies.

# At most so many left-out rows are scored at each check. Their mean loss has a standard error of about a hundredth,
# which is fine enough to decide when to stop; scoring more of them would only cost time.
_CHECKED_ROWS = 4096
# Factors on what the members say beyond the class frequencies, tried at every check: below 1 for members that have
# learned some rows by heart, above 1 for members that are stopped before they dare to say enough.
_CONFIDENCES = (2.0, 1.4, 1.0, 0.7, 0.5, 0.3, 0.15)
# Steps over which the learning rate rises to its full size, so that Adam's first estimates of the gradient's size do no
# harm. Few rows in many dimensions have been learned by heart before that.
_WARM_UP = 50
# No run ends earlier: the loss means little until the learning rate has been at its full size for some steps.
_LEAST_STEPS = 60
# A run counts as having found something when the loss is below this share of the entropy; less is chance.
_FOUND = 0.98
# A run that has found nothing ends after _LEAST_STEPS; with more than _MANY_ROWS rows it gets _STEPS_OF_HOPE, because
# products of features (an exclusive or) are found late, and only where there are rows enough to find them in.
_MANY_ROWS, _STEPS_OF_HOPE = 2000, 150
# The loss has fallen when it is lower by this much; less is rounding.
_FALL = 1e-4
# A run that has found something goes on until it is _PATIENCE times as long as it was at the last fall. From then on it
# ends as soon as the loss has risen again by the share _LOST of the way from the entropy down to its lowest value.
_PATIENCE, _LOST = 2, 0.05
# What is hard to learn gets the schedule of learning rates up to _CYCLES times. It is repeated only if there is
# something left to learn (the best loss is above the share _LITTLE_LEFT of the entropy) and if training still pays (the
# second half of the schedule brought the best loss below the share _WORTH_IT of what it was halfway).
_CYCLES, _LITTLE_LEFT, _WORTH_IT = 3, 0.1, 0.95
# Decay rates of Adam's means of the gradient and of its square. The second is less than the usual 0.999, whose mean
# reaches over a thousand steps: more than most runs have.
_FIRST_MOMENT, _SECOND_MOMENT = 0.9, 0.99
# First weights: biases spread the kinks of the hidden units over standardised rows, and output weights are so small
# that the first answers are nearly the class frequencies.
_FIRST_BIAS, _FIRST_OUTPUT = 0.3, 0.1


class ProbeClassifier(ClassifierMixin, SkfairdpEstimator):
    """Two-layer network that attacks a representation: standardise, one hidden layer, class probabilities.

    A weak attacker is a false comfort, and a slow one is not run. Several members are
    therefore trained side by side, with one matrix product for the first layer of all of
    them. Each member leaves out its own part of the rows, so that together they predict
    every row by a member which has not seen it. The loss of these predictions says when to
    stop and how confident to be; then the members' outputs are averaged, which makes them
    one network with ``n_members * hidden_size`` hidden units.

    Parameters
    ----------
    hidden_size : int, default=40
        Number of hidden units of each member.
    n_members : int, default=5
        Number of members; each leaves out one of as many parts of the rows. At least 2.
    weight_decay : float, default=0.003
        Added to the gradient as ``weight_decay`` times the weights.
    learning_rate : float, default=0.02
        Highest step size of Adam; it rises for the first 50 steps and falls along a cosine.
    max_steps : int, default=600
        Number of gradient steps of the schedule, unless the rows need more to be seen ``min_epochs`` times.
        Easy and hopeless runs stop earlier, when the loss has not fallen for as many steps as it fell before and has
        risen again; what is hard to learn but is being learned gets the schedule up to three times.
    min_epochs : int, default=10
        Least number of passes over the rows that the schedule has room for.
    batch_size : int, default=256
        Rows per gradient step.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the parts, the initial weights and the order of the rows. NumPy's global stream is not touched.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    n_iter_ : int
        Number of gradient steps after which the members were kept; 0 means that nothing
        predicted the left-out rows better than the class frequencies.
    left_out_loss_ : float
        Mean log loss (natural logarithm) of the left-out rows at that step. It chose the
        step, so it is slightly optimistic.
    confidence_ : float
        Factor on what the members say beyond the class frequencies, chosen by the same loss.

    Notes
    -----
    The output layer starts at the class frequencies. A representation without a trace of
    the classes therefore gives back these frequencies rather than confident noise.

    Training runs in one thread and in float32, so a seed gives the same weights
    whatever the number of cores; processors of another make may round differently.
    To use more cores, run several probes at once with joblib. It is written in NumPy alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import ProbeClassifier
    >>> rng = np.random.default_rng(0)
    >>> H = rng.normal(size=(2000, 10))
    >>> z = np.where(H[:, 0] * H[:, 1] > 0, "a", "b")  # no linear attacker sees this
    >>> probe = ProbeClassifier(random_state=0).fit(H[:1000], z[:1000])
    >>> probe.score(H[1000:], z[1000:]) > 0.9
    True
    """

    _row_wise_methods: ClassVar[dict] = {"predict": (), "predict_proba": ()}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_size": [Interval(Integral, 1, None, closed="left")],
        "n_members": [Interval(Integral, 2, None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "min_epochs": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": "no_validation",  # read by random_stream, which names what is allowed
    }

    def __init__(
        self,
        *,
        hidden_size: int = 40,
        n_members: int = 5,
        weight_decay: float = 3e-3,
        learning_rate: float = 2e-2,
        max_steps: int = 600,
        min_epochs: int = 10,
        batch_size: int = 256,
        random_state: RandomState = None,
    ):
        self.hidden_size = hidden_size
        self.n_members = n_members
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.max_steps = max_steps
        self.min_epochs = min_epochs
        self.batch_size = batch_size
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> "ProbeClassifier":
        """Train the attacker.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The representation.
        y : array-like of shape (n_samples,)
            What to find out.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        classes, class_indices = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes for a probe to tell apart; got one class: {classes}.")
        generator = random_stream(self.random_state).generator
        rows, self._mean, self._scale = _standardised(X)
        with _matrix_libraries().limit(limits=1):
            team = _Team(rows, class_indices, len(classes), self, generator)
            self.n_iter_, self.left_out_loss_, self.confidence_ = team.train(self, generator)
            self._layers = team.merged(self.confidence_)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The representation.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        hidden_weights, hidden_bias, output_weights, output_bias = self._layers
        probabilities = np.empty((len(X), len(self.classes_)))
        for start in range(0, len(X), _CHUNK):
            rows = (X[start : start + _CHUNK] - self._mean) / self._scale
            hidden = np.maximum(rows @ hidden_weights + hidden_bias, 0)
            probabilities[start : start + _CHUNK] = softmax(hidden @ output_weights + output_bias, axis=1)
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Name the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The representation.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


@functools.cache
def _matrix_libraries() -> ThreadpoolController:
    """Return the libraries that multiply matrices. They were loaded with numpy; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def _standardised(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardise in float32, and return mean and scale as well; a column that only rounding moves keeps scale 1."""
    mean = X.mean(axis=0, dtype=np.float64)
    centred = X - mean
    scale = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(X))
    scale[scale <= len(X) * np.finfo(X.dtype).eps * np.abs(mean)] = 1.0
    return np.divide(centred, scale, out=np.empty(X.shape, dtype=np.float32), casting="same_kind"), mean, scale


def _cross_entropy(scores: np.ndarray, truth: np.ndarray) -> float:
    """Mean log loss of rows of scores, each the logarithm of a probability up to a constant."""
    scores = scores - scores.max(axis=1, keepdims=True)
    return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(truth)), truth]).mean())


class _Team:
    """All members of a probe as one network, with gradients written out.

    In NumPy, because loading torch takes longer than most attacks.
    """

    def __init__(
        self,
        rows: np.ndarray,
        class_indices: np.ndarray,
        n_classes: int,
        settings: ProbeClassifier,
        generator: np.random.Generator,
    ):
        n_rows, n_features = rows.shape
        self.n_members = min(settings.n_members, n_rows)
        self.hidden_size = settings.hidden_size
        # Deal the rows out class by class, so that every part has its share of each class; part k is one slice.
        shuffled = generator.permutation(n_rows)
        by_class = shuffled[np.argsort(class_indices[shuffled], kind="stable")]
        dealt = np.arange(n_rows) % self.n_members
        order = np.argsort(dealt, kind="stable")
        self.part = dealt[order]
        self.rows, self.class_indices = rows[by_class[order]], class_indices[by_class[order]]
        ends = np.bincount(self.part).cumsum().tolist()
        stride = -(-n_rows // _CHECKED_ROWS)  # within a part the rows stand class by class: a stride keeps the shares
        self.checked = [slice(start, stop, stride) for start, stop in zip([0, *ends], ends)]
        self.targets = np.eye(n_classes, dtype=np.float32)[self.class_indices]
        self.prior = np.log((self.targets.sum(axis=0) + 1) / (n_rows + n_classes), dtype=np.float32)
        units = self.n_members * self.hidden_size
        self.shapes = [
            (n_features, units),
            (units,),
            (self.n_members, self.hidden_size, n_classes),
            (self.n_members, 1, n_classes),
        ]
        self.weights = np.zeros(sum(math.prod(shape) for shape in self.shapes), dtype=np.float32)
        hidden_weights, hidden_bias, output_weights, output_bias = self.layers(self.weights)
        hidden_weights[:] = generator.normal(0, n_features**-0.5, hidden_weights.shape)
        hidden_bias[:] = generator.uniform(-_FIRST_BIAS, _FIRST_BIAS, hidden_bias.shape)
        output_weights[:] = generator.normal(0, _FIRST_OUTPUT * self.hidden_size**-0.5, output_weights.shape)
        output_bias += self.prior
        self.kept = self.weights.copy()
        self.gradient = np.zeros_like(self.weights)
        self.now, self.change = self.layers(self.weights), self.layers(self.gradient)
        # What a row weighs for each member: nothing for the one that leaves it out.
        self.weighs = ((self.part[:, None] != np.arange(self.n_members)) / (1 - 1 / self.n_members)).astype(np.float32)

    def layers(self, flat: np.ndarray) -> list[np.ndarray]:
        """View a flat vector as hidden weights and bias, output weights and bias."""
        pieces = np.split(flat, np.cumsum([math.prod(shape) for shape in self.shapes])[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes)]

    def merged(self, confidence: float) -> list[np.ndarray]:
        """Write the kept members as one network whose output is the mean of theirs."""
        hidden_weights, hidden_bias, output_weights, output_bias = (
            part.astype(float) for part in self.layers(self.kept)
        )
        weights = output_weights.reshape(-1, output_weights.shape[2]) * (confidence / self.n_members)
        bias = self.prior + confidence * (output_bias.mean(axis=(0, 1)) - self.prior)
        return [hidden_weights, hidden_bias, weights, bias]

    def left_out_loss(self) -> tuple[float, float]:
        """Mean log loss of every row under the member that does not train on it, and the confidence it asks for."""
        hidden_weights, hidden_bias, output_weights, output_bias = self.now
        said = []
        for k, rows in enumerate(self.checked):
            units = slice(k * self.hidden_size, (k + 1) * self.hidden_size)
            hidden = self.rows[rows] @ hidden_weights[:, units]
            hidden += hidden_bias[units]
            np.maximum(hidden, 0, out=hidden)
            said.append(hidden @ output_weights[k] + (output_bias[k] - self.prior))
        beyond, truth = np.concatenate(said), np.concatenate([self.class_indices[rows] for rows in self.checked])
        return min((_cross_entropy(self.prior + confidence * beyond, truth), confidence) for confidence in _CONFIDENCES)

    def train(self, settings: ProbeClassifier, generator: np.random.Generator) -> tuple[int, float, float]:
        """Take Adam steps until the left-out loss has long stopped falling; keep the weights of its minimum."""
        n_rows = len(self.rows)
        batch_size = min(settings.batch_size, n_rows)
        per_epoch = n_rows // batch_size
        n_steps = max(settings.max_steps, settings.min_epochs * per_epoch)
        # When to check: often at the start, where few rows are soon learned by heart (steps that grow by a factor), and
        # twenty times at equal distances over the whole schedule.
        checks = {round(n_steps ** (i / 12)) for i in range(4, 13)} | {round(n_steps * i / 20) for i in range(21)}
        first, second, scratch = (np.zeros_like(self.weights) for _ in range(3))
        best_step, (best, confidence) = 0, self.left_out_loss()
        fell_at, level = 0, best
        entropy, without_signal = best, _STEPS_OF_HOPE if n_rows > _MANY_ROWS else _LEAST_STEPS
        halfway = best
        batches: list = []
        for step in range(1, _CYCLES * n_steps + 1):
            if batch_size == n_rows:
                batches = [None]
            elif not batches:
                batches = list(generator.permutation(n_rows)[: per_epoch * batch_size].reshape(per_epoch, batch_size))
            self.fill_gradient(batches.pop(), settings.weight_decay)
            within = (step - 1) % n_steps + 1
            rate = settings.learning_rate * min(1, within / _WARM_UP) * (1 + math.cos(math.pi * within / n_steps)) / 2
            rate *= math.sqrt(1 - _SECOND_MOMENT**step) / (1 - _FIRST_MOMENT**step)
            first *= _FIRST_MOMENT
            first += np.multiply(self.gradient, 1 - _FIRST_MOMENT, out=scratch)
            second *= _SECOND_MOMENT
            np.multiply(self.gradient, self.gradient, out=scratch)
            scratch *= 1 - _SECOND_MOMENT
            second += scratch
            np.sqrt(second, out=scratch)
            scratch += 1e-9
            np.divide(first, scratch, out=scratch)
            scratch *= rate
            self.weights -= scratch
            if within not in checks:
                continue
            loss, wanted = self.left_out_loss()
            if loss < best:
                best_step, best, confidence = step, loss, wanted
                self.kept[:] = self.weights
            if loss < level - _FALL:
                fell_at, level = step, loss
            enough = max(_LEAST_STEPS, _PATIENCE * fell_at) if level < _FOUND * entropy else without_signal
            if step >= enough and loss - level >= _LOST * (entropy - level):
                break
            if within == round(n_steps / 2):
                halfway = best
            if within == n_steps and (best < _LITTLE_LEFT * entropy or best > _WORTH_IT * halfway):
                break
        return best_step, best, confidence

    def fill_gradient(self, batch: np.ndarray | None, weight_decay: float) -> None:
        """Write the gradient of the sum of the members' mean losses on a batch, or on all rows."""
        hidden_weights, hidden_bias, output_weights, output_bias = self.now
        to_hidden_weights, to_hidden_bias, to_output_weights, to_output_bias = self.change
        rows, targets, weighs = self.rows, self.targets, self.weighs
        if batch is not None:
            rows, targets, weighs = rows[batch], targets[batch], weighs[batch]
        hidden = rows @ hidden_weights
        hidden += hidden_bias
        np.maximum(hidden, 0, out=hidden)
        members = hidden.reshape(len(rows), self.n_members, self.hidden_size).transpose(1, 0, 2)
        error = members @ output_weights
        error += output_bias
        error -= error.max(axis=2, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=2, keepdims=True)
        error -= targets
        error *= (weighs.T / len(rows))[:, :, None]
        np.matmul(members.transpose(0, 2, 1), error, out=to_output_weights)
        np.sum(error, axis=1, keepdims=True, out=to_output_bias)
        back = (error @ output_weights.transpose(0, 2, 1)).transpose(1, 0, 2).reshape(hidden.shape)
        back *= hidden > 0
        np.matmul(rows.T, back, out=to_hidden_weights)
        np.sum(back, axis=0, out=to_hidden_bias)
        to_hidden_weights += weight_decay * hidden_weights
        to_output_weights += weight_decay * output_weights
