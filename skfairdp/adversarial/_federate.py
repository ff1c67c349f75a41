"""FederateClassifier: a private encoder, a classifier, and an adversary that is meant to fail."""

import math
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import HasMethods, Interval, StrOptions, fit_context
from skfairdp._validation import check_epsilon
from skfairdp.adversarial._answers import PrivateAnswers
from skfairdp.adversarial._encoded import COVERS, check_records_stay_apart, not_covered
from skfairdp.adversarial._prepare import history_table, make_settings, prepare, refuse_without_groups
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import Mechanism, OpenMechanism, code_mechanism, laplace_mechanism
from skfairdp.random import RandomState, training_and_noise_streams


class FederateClassifier(PrivateAnswers, ClassifierMixin, SkfairdpEstimator):
    """Classifier on a private representation that an adversary cannot read groups from (FEDERATE).

    An encoder turns a record into a vector, a channel makes it private, and a head predicts from what
    the channel releases. In training, adversaries try to tell the sensitive groups from the released
    values, behind a layer that reverses their gradient; a fairness definition can also be penalised
    directly. FEDERATE is the name of a method; nothing here is federated learning.

    Parameters
    ----------
    epsilon : float, default=8.0
        Exact privacy loss of one release of one record. Infinity switches the channel off.
    channel : {"laplace", "codes"}, default="laplace"
        ``"laplace"``: rows of norm 1 plus Laplace noise, as published. ``"codes"``: one of ``n_codes`` learned
        codes by randomised response; usually far more accurate at the same epsilon.
    n_components : int, default=2
        Width of the Laplace representation. Noise of scale ``2 / epsilon`` is added to every coordinate
        of a row of norm 1: a few suffice, and among many of them the signal is no longer found.
    n_codes : int or None, default=None
        Number of codes; None takes as many as there are classes, which is enough for predicting. With fewer, classes
        share codes; with more, the named code is released less often, but tells how sure the encoder was.
    norm : {"l1", "l2"}, default="l1"
        Norm of the rows before Laplace noise.
    calibration : {"exact", "published"}, default="exact"
        ``"published"`` adds noise of scale ``2 / epsilon`` to L2 rows too, which costs
        ``sqrt(n_components) * epsilon``; it warns and says so in ``privacy_``.
    encoder : "mlp", torch module, callable or BagOfEmbeddingsEncoder, default="mlp"
        A callable gets the number of features and returns a module. A linear layer is appended when
        the module's output has another width than the channel. A module is copied, never trained in place. It must
        keep records apart: what it makes of one must not depend on the others, which ``fit`` checks.
    encoder_hidden_sizes : sequence of int, default=(100, 50)
        Hidden layers of ``encoder="mlp"``.
    classifier_hidden_sizes : sequence of int, default=()
        Hidden layers of the head; none means linear.
    adversary_hidden_sizes : sequence of int, default=(100, 50)
        Hidden layers of each adversary.
    dropout : float, default=0.1
        Share of hidden units dropped in training.
    adversary_weight : float or None, default=None
        The lambda of ``L_class - lambda L_adv``; 0 trains no adversary. ``None`` is 1 where sensitive features are
        given and 0, with a warning, where they are not. A number above 0 without them is an error.
    adversary_schedule : {"sigmoid", "linear", "constant"}, default="sigmoid"
        How lambda rises over the epochs; sigmoid is ``2 / (1 + exp(-p)) - 1`` with p from 0 to 10.
    n_adversaries : int, default=1
        Adversaries for each sensitive column.
    orthogonality : float, default=0.0
        Weight of the overlap between the hidden layers of adversaries of one column.
    fairness_penalty : float, default=0.0
        Weight of the expected gap between groups; exact for codes, of the noisy batch for Laplace.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"}, default="equal_opportunity"
        Whose gap is penalised: the largest difference of two groups' rates, averaged over rates and columns.
        With two classes the rates are those of ``classes_[1]``.
    max_epochs : int, default=50
        Passes through the training data.
    batch_size : int, default=256
        Rows of a step.
    lr : float, default=0.005
        Learning rate.
    optimizer : {"adam", "adamw", "sgd"} or torch optimiser class, default="adam"
        The optimiser of all networks.
    early_stopping : bool, default=False
        Keep ``validation_fraction`` of the rows out, stop when ``n_iter_no_change`` epochs have brought no
        better loss on them, and take the best weights.
    validation_fraction : float, default=0.1
        Share of the rows to stop by.
    n_iter_no_change : int, default=10
        Patience of the early stopping, in epochs.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    device : str, default="cpu"
        "cpu", "cuda", or "auto".
    callbacks : list or None, default=None
        Further skorch callbacks; each fit works on copies of them.
    verbose : int, default=0
        1 shows a progress bar, 2 a table of losses.
    warm_start : bool, default=False
        Continue from the last fit for another ``max_epochs``.
    random_state : int, Generator, RandomState or None, default=None
        None draws from the operating system. A seed makes the noise reproducible, so that it protects nobody
        who knows it or sees two releases that start from it; ``privacy_`` says so. A Generator or RandomState decides
        the training, while the noise still comes from the operating system.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    mechanism_ : Mechanism
        What draws the released values, frozen.
    privacy_ : PrivacyGuarantee
        What one call of ``predict``, ``predict_proba`` or ``transform`` costs each of its records.
    net_ : skorch.NeuralNet
        The trained net.
    history_ : DataFrame
        Losses of every epoch. ``adversary_advantage`` is how far the adversary is better than chance, in nats:
        0 throughout means that it never learned anything, be it for noise or for a fault.
    sensitive_groups_ : dict
        Group labels of each sensitive column; empty without sensitive features.
    n_iter_ : int
        Epochs that were run.
    stopped_early_ : bool
        Whether early stopping or a callback ended the training.
    n_features_in_, feature_names_in_
        Of the training data.

    Notes
    -----
    **Privacy.** Any two records are neighbours, and the guarantee is pure (delta = 0). Laplace: two rows of L1 norm
    1 differ by at most 2, so noise of scale ``2 / epsilon`` gives epsilon (Theorem 1 of [1]_); released noise
    is drawn in integers, so that floating point does not undo it. Codes: a code has a probability in
    ``[1, e^epsilon] / (n_codes - 1 + e^epsilon)`` whatever the record, as in randomised response [2]_ [3]_.
    Each call is one release of each record; two calls cost twice. The training data are not protected.
    An interrupted or failed ``fit`` leaves the estimator as it was before.

    **Fairness.** The adversary makes groups hard to tell from the released values; the penalty works on a
    definition itself. Neither is a promise: measure the gap on data that were not trained on.

    Training depends on the rows as a weighted multiset: their order does not count, and a row given twice is a row of
    weight 2.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller, A. Bellet (2022). Fair NLP models with differentially private
       text encoders. Findings of EMNLP. Eqs. 3 and 4.
    .. [2] S. L. Warner (1965). Randomized response. JASA 60.
    .. [3] P. Kairouz, S. Oh, P. Viswanath (2014). Extremal mechanisms for local differential privacy. NeurIPS.
    .. [4] Y. Ganin, V. Lempitsky (2015). Unsupervised domain adaptation by backpropagation. ICML.
    .. [5] X. Han, T. Baldwin, T. Cohn (2021). Diverse adversaries for mitigating bias in training. EACL.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import FederateClassifier
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(2, size=400)
    >>> y = rng.integers(2, size=400)
    >>> X = rng.normal(size=(400, 5)) + 2.0 * y[:, None] + 0.5 * z[:, None]
    >>> clf = FederateClassifier(epsilon=4.0, channel="codes", batch_size=50, random_state=0)
    >>> clf = clf.fit(X, y, sensitive_features=z)
    >>> clf.privacy_.epsilon
    4.0
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "channel": [StrOptions({"laplace", "codes"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_codes": [Interval(Integral, 2, None, closed="left"), None],
        "norm": [StrOptions({"l1", "l2"})],
        "calibration": [StrOptions({"exact", "published"})],
        "encoder": [StrOptions({"mlp"}), callable, HasMethods(["fit", "transform", "make_module"])],
        "encoder_hidden_sizes": ["array-like"],
        "classifier_hidden_sizes": ["array-like"],
        "adversary_hidden_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "adversary_weight": [Interval(Real, 0, None, closed="left"), None],
        "adversary_schedule": [StrOptions({"sigmoid", "linear", "constant"})],
        "n_adversaries": [Interval(Integral, 1, None, closed="left")],
        "orthogonality": [Interval(Real, 0, None, closed="left")],
        "fairness_penalty": [Interval(Real, 0, None, closed="left")],
        "fairness": [StrOptions({"equal_opportunity", "equalized_odds", "demographic_parity"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "optimizer": [StrOptions({"adam", "adamw", "sgd"}), callable],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "device": [str],
        "callbacks": [list, None],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        channel: str = "laplace",
        n_components: int = 2,
        n_codes: int | None = None,
        norm: str = "l1",
        calibration: str = "exact",
        encoder: Any = "mlp",
        encoder_hidden_sizes: Sequence[int] = (100, 50),
        classifier_hidden_sizes: Sequence[int] = (),
        adversary_hidden_sizes: Sequence[int] = (100, 50),
        dropout: float = 0.1,
        adversary_weight: float | None = None,
        adversary_schedule: str = "sigmoid",
        n_adversaries: int = 1,
        orthogonality: float = 0.0,
        fairness_penalty: float = 0.0,
        fairness: str = "equal_opportunity",
        max_epochs: int = 50,
        batch_size: int = 256,
        lr: float = 0.005,
        optimizer: Any = "adam",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Mapping[Any, float] | str | None = None,
        device: str = "cpu",
        callbacks: list | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        random_state: RandomState = None,
    ):
        self.epsilon = epsilon
        self.channel = channel
        self.n_components = n_components
        self.n_codes = n_codes
        self.norm = norm
        self.calibration = calibration
        self.encoder = encoder
        self.encoder_hidden_sizes = encoder_hidden_sizes
        self.classifier_hidden_sizes = classifier_hidden_sizes
        self.adversary_hidden_sizes = adversary_hidden_sizes
        self.dropout = dropout
        self.adversary_weight = adversary_weight
        self.adversary_schedule = adversary_schedule
        self.n_adversaries = n_adversaries
        self.orthogonality = orthogonality
        self.fairness_penalty = fairness_penalty
        self.fairness = fairness
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.optimizer = optimizer
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> "FederateClassifier":
        """Train encoder, head and adversaries; releases nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or documents for a text encoder
            Training rows; the guarantee does not cover them.
        y : array-like of shape (n_samples,)
            Labels of any type; two classes or more.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups; several columns get an adversary each. None trains without a fairness term, and is refused
            if one was asked for (``adversary_weight`` or ``fairness_penalty`` above 0, several adversaries).
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        self : FederateClassifier
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y, sensitive_features, sample_weight)
        except BaseException:  # also Ctrl-C: whole or not at all
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> "FederateClassifier":
        from skfairdp.neural import train_net

        epsilon = check_epsilon(self.epsilon)
        rows, y = self._training_rows(X, y)
        table = prepare(rows, y, sensitive_features, sample_weight, self.class_weight)
        if table.sensitive is None:
            refuse_without_groups(self)
        continued = self.warm_start and hasattr(self, "net_")
        if continued and not np.array_equal(self.classes_, table.classes):
            raise ValueError(
                f"warm_start=True continues with the classes {self.classes_.tolist()}; "
                f"y holds {table.classes.tolist()}."
            )
        training, noise = training_and_noise_streams(self.random_state)
        if continued:
            training, noise = self._training_stream, self._stream
        n_outputs = int(self.n_components)
        if self.channel == "codes":
            n_outputs = len(table.classes) if self.n_codes is None else int(self.n_codes)
        mechanism = self._make_mechanism(epsilon, n_outputs)
        if getattr(mechanism, "published_epsilon", None) is not None:
            warnings.warn(
                f"calibration='published' adds the noise of L1 rows to L2 rows: epsilon={epsilon:g} was asked for, the "
                f"exact epsilon is {mechanism.event.epsilon:g} (sqrt({n_outputs}) times as much).",
                OverclaimedPrivacyWarning,
                stacklevel=4,
            )
        previous = self.net_ if continued else None
        net = train_net(
            make_settings(self, mechanism, n_outputs, table),
            table.x,
            table.y,
            table.groups,
            table.weight,
            training.seed(),
            previous,
        )
        if math.isfinite(epsilon):
            text_encoder = self.text_encoder_ if self._reads_text else None
            check_records_stay_apart(net.module_.encoder, rows.shape[1], text_encoder, training.seed())
        self.net_ = net
        self.classes_ = table.classes
        self.sensitive_groups_ = {}
        if table.sensitive is not None:
            self.sensitive_groups_ = dict(zip(table.sensitive.names, table.sensitive.labels))
        self.history_ = history_table(list(net.history), table.chance_loss())
        self.n_iter_ = len(self.history_)
        self.stopped_early_ = net.stopped_early_
        self._training_stream = training
        self._seal(mechanism, noise, covers=COVERS, does_not_cover=not_covered(self._reads_text))
        return self

    def _make_mechanism(self, epsilon: float, n_outputs: int) -> Mechanism:
        if math.isinf(epsilon):
            return OpenMechanism(n_outputs)
        if self.channel == "codes":
            return code_mechanism(n_outputs, epsilon)
        return laplace_mechanism(epsilon, self.norm, n_outputs, calibration=self.calibration)

    @property
    def _n_features_out(self) -> int:
        return self.net_.module_.head[0].in_features

    def _training_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        if self._reads_text:
            if y is None:
                raise ValueError("requires y to be passed, but the target y is None.")
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            if not (self.warm_start and hasattr(self, "text_encoder_")):  # a warm start keeps its vocabulary
                self.text_encoder_ = clone(self.encoder).fit(X)
            rows = self.text_encoder_.transform(X)
        else:
            rows, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        return rows, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        if self._reads_text:
            tags.input_tags.two_d_array = False
            tags.input_tags.string = True
        return tags
