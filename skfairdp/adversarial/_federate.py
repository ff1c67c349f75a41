"""FederateClassifier: a private encoder, a classifier, and an adversary that is meant to fail."""

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from skfairdp._base import SkfairdpEstimator, restored_on_failure
from skfairdp._sklearn import HasMethods, Interval, StrOptions, fit_context
from skfairdp._validation import check_epsilon, warn_user
from skfairdp.adversarial._federate_halves import (
    COVERS,
    EncodedReleases,
    Encoding,
    FederateEncoder,
    FederateHead,
    not_covered,
    rows_of_documents,
)
from skfairdp.adversarial._training_choices import (
    choose_batch_and_epochs,
    choose_fairness_weights,
    choose_hidden_sizes,
    refuse_idle_parameters,
    refuse_without_groups,
    resolve_channel,
    stops_early,
    validation_share,
    warn_of_poor_training,
)
from skfairdp.adversarial._training_table import TrainingTable, make_training_table
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import Mechanism, OpenMechanism, code_mechanism, laplace_mechanism
from skfairdp.random import RandomState, training_and_noise_streams

# What may stand before the double underscore in parameters that are passed on.
_PREFIXES = (
    "module",
    "criterion",
    "optimizer",
    "callbacks",
    "iterator_train",
    "iterator_valid",
    "encoder",
    "classifier",
    "adversary",
)
# Arguments of the module that follow from the data and from other parameters: whoever set them would train a network
# for another release than the one that is made.
_DECIDED_BY_FIT = ("mechanism", "n_features", "n_outputs", "n_classes", "n_groups", "n_adversaries")
# Columns of skorch's history that tell nothing about a training.
_NOT_IN_HISTORY = ("batches", "train_batch_count", "valid_batch_count", "train_loss_best", "valid_loss_best")


def _is_passed_on(name: str) -> bool:
    prefix, _, rest = name.partition("__")
    return bool(rest) and prefix in _PREFIXES


class FederateClassifier(EncodedReleases, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, SkfairdpEstimator):
    """Classifier on a private representation that an adversary cannot read groups from (FEDERATE).

    An encoder turns a record into a vector, a channel makes it private, and a head predicts from what
    the channel releases. In training, adversaries try to tell the sensitive groups from the released
    values, behind a layer that reverses their gradient; a fairness definition can also be penalised
    directly. FEDERATE is the name of a method; nothing here is federated learning.

    Parameters
    ----------
    epsilon : float, default=8.0
        Exact privacy loss of one release of one record. Infinity switches the channel off.
    channel : {"auto", "codes", "laplace"}, default="auto"
        ``"codes"``: one of ``n_codes`` learned codes by randomised response. ``"laplace"``: rows of norm 1 plus Laplace
        noise, as published; usually far less accurate at the same epsilon. ``"auto"`` takes codes, or no channel when
        epsilon is infinite; ``channel_`` says which.
    n_components : int or None, default=None
        Width of the representation without codes; None takes as many as there are classes. Laplace noise of scale
        ``2 / epsilon`` is added to every coordinate of a row of norm 1: a few suffice, and among many of them the
        signal is no longer found.
    n_codes : int or None, default=None
        Number of codes; None takes as many as there are classes, which is enough for predicting. With fewer, classes
        share codes; with more, the named code is released less often, but tells how sure the encoder was.
    norm : {"l1", "l2"}, default="l1"
        Norm of the rows before Laplace noise.
    calibration : {"exact", "published"}, default="exact"
        ``"published"`` adds noise of scale ``2 / epsilon`` to L2 rows too, which costs
        ``sqrt(n_components) * epsilon``; it warns and says so in ``privacy_``.
    encoder : {"tabular", "mlp"}, torch module, callable or text encoder, default="tabular"
        ``"tabular"`` takes columns of any scale: it standardises them and cuts them into pieces, by means, spreads and
        quantiles of the training rows, and by where a small forest splits them, which the receipt names; a linear layer
        runs beside the hidden ones, so that logistic regression is a part of it; the hidden ones see a column the
        larger the more the forest gained from it, so that noise is not learned by heart. ``"mlp"`` is hidden layers on
        the rows as they are. A callable, such as a module class, gets the number of features and returns a module. A
        linear layer is appended when the module's output has another width than the channel. A module is copied, never
        trained in place. A module that is not known to treat each record alone encodes one record at a time in
        releases (see ``row_wise``).
    classifier : "mlp", torch module or callable, default="mlp"
        The head, from what is released to class scores. A callable gets the widths of input and output.
    adversary : "mlp", torch module or callable, default="mlp"
        Each adversary, from what is released to group scores. A callable gets the widths of input and output.
    encoder_hidden_sizes : sequence of int or "auto", default="auto"
        Hidden layers of ``encoder="tabular"`` and ``"mlp"``. ``"auto"`` is (100, 50), and (256, 128) for
        ``"tabular"`` and more than ten classes.
    classifier_hidden_sizes : sequence of int, default=()
        Hidden layers of ``classifier="mlp"``; none means linear.
    adversary_hidden_sizes : sequence of int, default=(100, 50)
        Hidden layers of ``adversary="mlp"``.
    dropout : float, default=0.3
        Share of hidden units of every network named by a string that are dropped in training.
    alpha : float, default=3.0
        Strength of the L2 penalty on the encoder's layers, divided by the number of records, as in scikit-learn's
        ``MLPClassifier``; ``LogisticRegression(C=1)`` has a penalty of 1. For ``encoder="tabular"`` and ``"mlp"``; an
        ``optimizer__weight_decay`` replaces it.
    adversary_weight : float or None, default=None
        The lambda of ``L_class - lambda L_adv``; 0 trains no adversary. ``None`` is 0 for one adversary and no more
        codes than classes, which tell nothing but the answer: the penalty looks after that, and an adversary would
        only push towards equal answers for all groups, whatever the truth. Otherwise ``None`` is 1. A number above 0
        without sensitive features is an error.
    adversary_schedule : {"sigmoid", "linear", "constant"}, default="sigmoid"
        How lambda rises over the epochs; sigmoid is ``2 / (1 + exp(-p)) - 1`` with p from 0 to 10.
    n_adversaries : int, default=1
        Adversaries for each sensitive column.
    orthogonality : float, default=0.0
        Weight of the overlap between the hidden layers of adversaries of one column.
    fairness_penalty : float or None, default=None
        Weight of the expected gap between groups; exact for codes, of the noisy batch for Laplace. ``None`` is 0.2, and
        0 where an ``adversary_weight`` was given or, with a warning, where a batch holds too few rows of a group. A
        number above 0 without sensitive features is an error; where both are ``None``, training then goes without a
        fairness term, with a warning.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"}, default="equal_opportunity"
        Whose gap is penalised: the largest difference of two groups' rates, averaged over rates and columns.
        With two classes the rates are those of ``classes_[1]``.
    max_epochs : int or "auto", default="auto"
        Passes through the training data. ``"auto"`` gives about two thousand steps, within 20 and 200 passes.
    batch_size : int or "auto", default="auto"
        Rows of a step. ``"auto"`` is the power of two next to a tenth of the rows, within 16 and 256.
    learning_rate : float, default=0.002
        Step size of the optimiser.
    optimizer : {"adam", "adamw", "sgd"} or torch optimiser class, default="adam"
        The optimiser of all networks.
    criterion : "cross_entropy", torch loss class or instance, default="cross_entropy"
        Loss of the classification. It gets log-probabilities of shape (n, n_classes) and class indices, and must give
        one loss per row (``reduction="none"``, which is set for you), so that rows can be weighted.
    early_stopping : bool or "auto", default="auto"
        Keep ``validation_fraction`` of the rows of each class out, stop when ``n_iter_no_change`` epochs have brought
        no better loss on them, and take the best weights. ``"auto"`` does so from 100 different rows on: fewer are all
        needed to learn from.
    validation_fraction : float or "auto", default="auto"
        Share of the rows to stop by. ``"auto"`` is 0.1, and up to 0.2 where that is fewer than 200 rows.
    n_iter_no_change : int, default=10
        Patience of the early stopping, in epochs.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    device : str or torch.device, default="cpu"
        "cpu", "cuda", "auto" (a GPU if there is one), or what else torch knows.
    callbacks : list or None, default=None
        Further skorch callbacks; each fit works on copies of them. Where one of them looks at validation rows
        (``EpochScoring``, ``EarlyStopping()``, ``Checkpoint()``), ``validation_fraction`` of the rows are kept out.
    row_wise : bool, default=False
        State that the encoder treats each record alone. Otherwise an encoder that is not known to do so, such as a
        module with a ``forward`` of your own, encodes one record at a time, which is slow.
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
    net_ : skorch.NeuralNetClassifier
        The trained net, whose classes are indices into ``classes_``. Its own ``predict`` and ``forward`` add torch's
        noise of training, which has no receipt: releases go through the methods of this estimator.
    channel_ : {"codes", "laplace", "none"}
        What stands between encoder and head; none when epsilon is infinite.
    adversary_weight_, fairness_penalty_ : float
        Weights that were taken; 0 without sensitive features.
    batch_size_, max_epochs_ : int
        What was taken, also where the parameters say "auto".
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

    Other Parameters
    ----------------
    **net_params
        Parameters with a double underscore, as in skorch: ``optimizer__weight_decay=0.01``,
        ``callbacks__early_stopping__threshold=1e-3``, ``iterator_train__drop_last=True``,
        ``criterion__label_smoothing=0.1``, ``module__sharpness=5.0``, and ``encoder__n_hidden=20`` for an argument of
        an encoder class (so too ``classifier__*`` and ``adversary__*``). They can be searched over.

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

    **Defaults.** They are meant to come within a point of logistic regression or boosted trees on tables as they come,
    unscaled and of 100 rows or 50,000 (the user guide has the measurements). After ten epochs or more, a
    ``ConvergenceWarning`` tells that the loss was still falling at the last one, or that the model is no better on its
    training rows than answering the most frequent class.

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
    >>> z = rng.integers(2, size=200)
    >>> y = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 5)) + 2.0 * y[:, None] + 0.5 * z[:, None]
    >>> clf = FederateClassifier(epsilon=4.0, random_state=0).fit(X, y, sensitive_features=z)
    >>> clf.channel_
    'codes'
    >>> clf.privacy_.epsilon
    4.0
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _row_wise_methods: ClassVar[dict] = {
        "transform": ("encoder", "text_encoder_", "net_.module_.encoder"),
        "predict": ("encoder", "text_encoder_", "net_.module_.encoder", "net_.module_.head"),
        "predict_proba": ("encoder", "text_encoder_", "net_.module_.encoder", "net_.module_.head"),
    }

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "channel": [StrOptions({"auto", "laplace", "codes"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_codes": [Interval(Integral, 2, None, closed="left"), None],
        "norm": [StrOptions({"l1", "l2"})],
        "calibration": [StrOptions({"exact", "published"})],
        "encoder": [StrOptions({"tabular", "mlp"}), callable, HasMethods(["fit", "transform", "make_module"])],
        "classifier": [StrOptions({"mlp"}), callable],
        "adversary": [StrOptions({"mlp"}), callable],
        "encoder_hidden_sizes": ["array-like", StrOptions({"auto"})],
        "classifier_hidden_sizes": ["array-like"],
        "adversary_hidden_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "adversary_weight": [Interval(Real, 0, None, closed="left"), None],
        "adversary_schedule": [StrOptions({"sigmoid", "linear", "constant"})],
        "n_adversaries": [Interval(Integral, 1, None, closed="left")],
        "orthogonality": [Interval(Real, 0, None, closed="left")],
        "fairness_penalty": [Interval(Real, 0, None, closed="left"), None],
        "fairness": [StrOptions({"equal_opportunity", "equalized_odds", "demographic_parity"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "optimizer": [StrOptions({"adam", "adamw", "sgd"}), callable],
        "criterion": [StrOptions({"cross_entropy"}), callable],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "device": "no_validation",  # read by torch, which alone knows its devices
        "callbacks": [list, None],
        "row_wise": ["boolean"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        channel: str = "auto",
        n_components: int | None = None,
        n_codes: int | None = None,
        norm: str = "l1",
        calibration: str = "exact",
        encoder: Any = "tabular",
        classifier: Any = "mlp",
        adversary: Any = "mlp",
        encoder_hidden_sizes: Sequence[int] | str = "auto",
        classifier_hidden_sizes: Sequence[int] = (),
        adversary_hidden_sizes: Sequence[int] = (100, 50),
        dropout: float = 0.3,
        alpha: float = 3.0,
        adversary_weight: float | None = None,
        adversary_schedule: str = "sigmoid",
        n_adversaries: int = 1,
        orthogonality: float = 0.0,
        fairness_penalty: float | None = None,
        fairness: str = "equal_opportunity",
        max_epochs: int | str = "auto",
        batch_size: int | str = "auto",
        learning_rate: float = 0.002,
        optimizer: Any = "adam",
        criterion: Any = "cross_entropy",
        early_stopping: bool | str = "auto",
        validation_fraction: float | str = "auto",
        n_iter_no_change: int = 10,
        class_weight: Mapping[Any, float] | str | None = None,
        device: Any = "cpu",
        callbacks: list | None = None,
        row_wise: bool = False,
        verbose: int = 0,
        warm_start: bool = False,
        random_state: RandomState = None,
        **net_params: Any,
    ):
        for name in net_params:
            if not _is_passed_on(name):
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}. Parameters that are passed on start with "
                    f"{', '.join(prefix + '__' for prefix in _PREFIXES)}."
                )
        self.epsilon = epsilon
        self.channel = channel
        self.n_components = n_components
        self.n_codes = n_codes
        self.norm = norm
        self.calibration = calibration
        self.encoder = encoder
        self.classifier = classifier
        self.adversary = adversary
        self.encoder_hidden_sizes = encoder_hidden_sizes
        self.classifier_hidden_sizes = classifier_hidden_sizes
        self.adversary_hidden_sizes = adversary_hidden_sizes
        self.dropout = dropout
        self.alpha = alpha
        self.adversary_weight = adversary_weight
        self.adversary_schedule = adversary_schedule
        self.n_adversaries = n_adversaries
        self.orthogonality = orthogonality
        self.fairness_penalty = fairness_penalty
        self.fairness = fairness
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.criterion = criterion
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.device = device
        self.callbacks = callbacks
        self.row_wise = row_wise
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state
        vars(self).update(net_params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, with those that are passed on to the net.

        Parameters
        ----------
        deep : bool, default=True
            Also return parameters of an encoder that is an estimator.

        Returns
        -------
        dict
        """
        passed_on = {name: value for name, value in vars(self).items() if _is_passed_on(name)}
        return {**super().get_params(deep=deep), **passed_on}

    def set_params(self, **params: Any) -> "FederateClassifier":
        """Set parameters, also those that are passed on to the net.

        Parameters
        ----------
        **params
            As in the constructor.

        Returns
        -------
        self : FederateClassifier
        """

        def is_of_an_estimator(name: str) -> bool:
            prefix = name.partition("__")[0]
            return hasattr(params.get(prefix, getattr(self, prefix, None)), "set_params")

        passed_on = {n: value for n, value in params.items() if _is_passed_on(n) and not is_of_an_estimator(n)}
        super().set_params(**{name: value for name, value in params.items() if name not in passed_on})
        vars(self).update(passed_on)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> "FederateClassifier":
        """Train encoder, head and adversaries; releases nothing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or documents for a text encoder
            Training rows; the guarantee does not cover them. Sparse rows are made dense batch by batch.
        y : array-like of shape (n_samples,)
            Labels of any type; two classes or more.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups; several columns get an adversary each. None trains without a fairness term, and is refused
            if one was asked for (``adversary_weight`` or ``fairness_penalty`` above 0, several adversaries).
        sample_weight : array-like of shape (n_samples,), optional
            Row weights. A row of weight 2 is a row given twice: it is drawn twice in an epoch.

        Returns
        -------
        self : FederateClassifier
        """
        with restored_on_failure(self):
            return self._fit(X, y, sensitive_features, sample_weight)

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> "FederateClassifier":
        from skfairdp.neural import column_statistics, train_net

        epsilon = check_epsilon(self.epsilon)
        refuse_idle_parameters(self)
        rows, y = self._training_rows(X, y)
        table = make_training_table(rows, y, sensitive_features, sample_weight, self.class_weight)
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
            training, noise = self._training_stream, self._frozen.stream
        width = self.n_codes if "codes" in (self.channel, resolve_channel(self)) else self.n_components
        n_outputs = len(table.classes) if width is None else int(width)
        mechanism = self._make_mechanism(epsilon, n_outputs)
        if getattr(mechanism, "published_epsilon", None) is not None:
            warn_user(
                f"calibration='published' adds the noise of L1 rows to L2 rows: epsilon={epsilon:g} was asked for, the "
                f"exact epsilon is {mechanism.event.epsilon:g} (sqrt({n_outputs}) times as much).",
                OverclaimedPrivacyWarning,
            )
        previous = self.net_ if continued else None
        self.batch_size_, self.max_epochs_ = choose_batch_and_epochs(self, table.n_draws)
        self.adversary_weight_, self.fairness_penalty_ = choose_fairness_weights(self, table, n_outputs)
        if self._is_tabular and not (continued and hasattr(self, "_column_statistics")):  # a warm start keeps its own
            self._column_statistics = column_statistics(table.x, table.y, table.weight)
        net = train_net(
            self._net_params(mechanism, n_outputs, table),
            table.x,
            table.y,
            table.groups,
            table.weight,
            table.copies,
            seed=training.seed(),
            n_iter_no_change=int(self.n_iter_no_change) if stops_early(self, len(table.y)) else None,
            validation_fraction=validation_share(self, len(table.y)),
            previous=previous,
        )
        text_encoder = self.text_encoder_ if self._reads_text else None
        self.net_ = net
        self._row_wise = bool(self.row_wise)
        encoding = Encoding(net.module_.encoder, net.module_.channel, text_encoder)
        by_row = math.isfinite(epsilon) and not self._row_wise and encoding.why_rows_mix() is not None
        if by_row and text_encoder is None:
            encoding.check_single_records(rows.shape[1])
        self.classes_ = table.classes
        self.sensitive_groups_ = {}
        if table.sensitive is not None:
            self.sensitive_groups_ = dict(zip(table.sensitive.names, table.sensitive.labels))
        self.history_ = _history_table(list(net.history), table.chance_loss())
        self.n_iter_ = len(self.history_)
        n_before = 0 if previous is None else len(previous.history)
        self.stopped_early_ = self.n_iter_ - n_before < self.max_epochs_
        self.channel_ = resolve_channel(self)
        self._n_features_out = n_outputs
        self._training_stream = training
        self._freeze(mechanism, noise, covers=COVERS, does_not_cover=not_covered(text_encoder, self._is_tabular))
        warn_of_poor_training(self, table)
        return self

    def _make_mechanism(self, epsilon: float, n_outputs: int) -> Mechanism:
        if math.isinf(epsilon):
            return OpenMechanism(n_outputs)
        if resolve_channel(self) == "codes":
            return code_mechanism(n_outputs, epsilon)
        return laplace_mechanism(epsilon, self.norm, n_outputs, calibration=self.calibration)

    def _net_params(self, mechanism: Mechanism, n_outputs: int, table: TrainingTable) -> dict[str, Any]:
        """Collect the parameters of the skorch net; without groups there is no fairness term."""
        from skfairdp.neural import adversary_columns, make_classification_loss

        weight, penalty = self.adversary_weight_, self.fairness_penalty_
        n_adversaries = int(self.n_adversaries) if weight > 0 else 0
        params = {
            "module__mechanism": mechanism,
            "module__n_features": table.x.shape[1],
            "module__n_outputs": n_outputs,
            "module__n_classes": len(table.classes),
            "module__n_groups": table.n_groups,
            "module__n_adversaries": n_adversaries,
            "module__statistics": self._column_statistics if self._is_tabular else None,
            "module__dropout": self.dropout,
            "module__reads_tokens": table.x.dtype.kind == "i",
            "module__wants_decisions": penalty > 0,
            "criterion__n_groups": table.n_groups,
            "criterion__columns": adversary_columns(table.n_groups, n_adversaries),
            "criterion__orthogonality": self.orthogonality,
            "criterion__fairness_penalty": penalty,
            "criterion__fairness": self.fairness,
            "criterion__selects_by_head": self.classifier != "mlp" or len(self.classifier_hidden_sizes) > 0,
            "criterion__classification": make_classification_loss(self.criterion, self._passed_on_to("criterion")),
            "adversary_weight": weight,
            "max_epochs": self.max_epochs_,
            "batch_size": self.batch_size_,
            "lr": self.learning_rate,
            "verbose": int(self.verbose),
        }
        for name in ("adversary_schedule", "optimizer", "device", "callbacks"):
            params[name] = getattr(self, name)
        if isinstance(self.encoder, str) and self.alpha > 0 and not hasattr(self, "optimizer__weight_decay"):
            # The weights of all its layers; biases are free, as in logistic regression.
            penalty_per_record = {"weight_decay": self.alpha / table.n_records}
            params["optimizer__param_groups"] = [("encoder.*weight", penalty_per_record)]
        for name, sizes in choose_hidden_sizes(self, len(table.classes)).items():
            params[f"module__{name}"] = getattr(self, name)
            params[f"module__{name}_hidden_sizes"] = sizes
            params[f"module__{name}_params"] = self._passed_on_to(name)
        if self._reads_text:
            params |= {"module__encoder": self.text_encoder_.make_module, "module__encoder_params": {}}
            if hasattr(self.text_encoder_, "_parameter_groups"):
                params["optimizer__param_groups"] = self.text_encoder_._parameter_groups()
        decided = [name for name in self._passed_on_to("module") if name in _DECIDED_BY_FIT]
        if decided:
            raise ValueError(
                f"module__{decided[0]} is decided by fit, from the data and the other parameters; leave it out."
            )
        for prefix in ("module", "optimizer", "callbacks", "iterator_train", "iterator_valid"):
            params |= {f"{prefix}__{name}": value for name, value in self._passed_on_to(prefix).items()}
        return params

    def _passed_on_to(self, prefix: str) -> dict[str, Any]:
        start = f"{prefix}__"
        return {n.removeprefix(start): value for n, value in vars(self).items() if n.startswith(start)}

    def _training_rows(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        if self._reads_text:
            if y is None:
                raise ValueError("requires y to be passed, but the target y is None.")
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            if not (self.warm_start and hasattr(self, "text_encoder_")):  # a warm start keeps its vocabulary
                self.text_encoder_ = clone(self.encoder).set_params(**self._passed_on_to("encoder")).fit(X)
            rows = rows_of_documents(self.text_encoder_, X)
        else:
            rows, y = validate_data(self, X, y, dtype=np.float32, accept_sparse="csr")
        check_classification_targets(y)
        return rows, y

    @property
    def _is_tabular(self) -> bool:
        return isinstance(self.encoder, str) and self.encoder == "tabular"

    def _learned_without_noise(self) -> str | None:
        return "the weights of its networks" + (" and statistics of its columns" if self._is_tabular else "")

    @property
    def _reads_text(self) -> bool:
        return hasattr(self.encoder, "make_module")

    @property
    def _networks(self) -> tuple[Any, Any]:
        return self.net_.module_.encoder, self.net_.module_.channel

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Fit, then release the representation of the same rows, at the price of rows that ``fit`` was given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or documents
            Records.
        y : array-like of shape (n_samples,)
            Labels.
        **params : dict
            Further arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components) or (n_samples, n_codes)
        """
        self.fit(X, y, **params)
        return self._release_encoded(X, self.training_privacy_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities from what the channel releases. One release of each record.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        from skfairdp.neural import class_probabilities

        released = self._release_encoded(X)
        return class_probabilities(self.net_.module_.head, released)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class from what the channel releases. One release of each record.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def split(self) -> tuple[Any, Any]:
        """Cut the model in two: an encoder for the device of a person, and a head for the server.

        The encoder adds the noise and alone carries the guarantee. The head has never seen, and cannot ask for, a
        clean representation. Both pickle on their own and hold weights, no training rows and no losses.

        Returns
        -------
        encoder : FederateEncoder
            A transformer; ``encoder.privacy_`` is what one ``transform`` costs each record.
        head : FederateHead
            A classifier on what the encoder releases.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from skfairdp import FederateClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> y = np.where(X[:, 0] > 0, "yes", "no")
        >>> clf = FederateClassifier(adversary_weight=0.0, random_state=0).fit(X, y)
        >>> encoder, head = clf.split()
        >>> codes = encoder.transform(X)  # on the device
        >>> bool((head.predict(codes) == y).mean() > 0.9)  # on the server
        True
        """
        check_is_fitted(self)
        return FederateEncoder._of(self), FederateHead._of(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = not self._reads_text
        if self._reads_text:
            tags.input_tags.two_d_array = False
            tags.input_tags.string = True
        return tags


def _without_passed_on(signature: inspect.Signature) -> inspect.Signature:
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=named)


# Parameters that are passed on have names of many kinds, but none is called net_params: what reads the signature to
# learn the names of parameters, as scikit-learn's checks do, must not find that one.
FederateClassifier.__signature__ = _without_passed_on(inspect.signature(FederateClassifier))  # type: ignore[attr-defined]


def _history_table(history: list[dict[str, Any]], chance_loss: float) -> pd.DataFrame:
    """One row per epoch; ``adversary_advantage`` is how much better than chance the adversary is, in nats."""
    rows = [{name: value for name, value in epoch.items() if name not in _NOT_IN_HISTORY} for epoch in history]
    table = pd.DataFrame(rows).rename(columns={"dur": "seconds"})
    table["epoch"] = np.arange(1, len(table) + 1)
    if "adversary_loss" in table:
        table["adversary_advantage"] = chance_loss - table["adversary_loss"]
    return table.set_index("epoch")
