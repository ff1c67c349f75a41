"""PATEClassifier: teachers on private parts, noisy votes on public rows, a student that may be published."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from skfairdp._base import SkfairdpEstimator, dense, dense_blocks, restored_on_failure
from skfairdp._sklearn import HasMethods, Interval, StrOptions, check_sample_weight, fit_context
from skfairdp._validation import check_count, check_delta, check_epsilon, check_public_rows
from skfairdp.dp import (
    ReleaseMixin,
    confident_gnmax_data_dependent_rdp,
    gaussian_mu,
    gnmax_data_dependent_epsilon,
    gnmax_mu,
    renyi_epsilon,
)
from skfairdp.ensemble._budget_rule import (
    FEW_QUERIES,
    choose_labels,
    choose_n_queries,
    choose_n_teachers,
    choose_penalty,
)
from skfairdp.ensemble._students import (
    ClippedScaler,
    fit_student,
    rehearse_student,
    student_targets,
    warn_if_nothing_was_learned,
)
from skfairdp.ensemble._teachers import (
    Teachers,
    check_weighable,
    is_weighable,
    partition_rows,
    read_rows,
    rehearse_teacher,
    set_aside,
    takes_sparse,
    train_teachers,
    weigh_rows,
    with_names,
)
from skfairdp.mechanisms import POSTPROCESSES, VoteMechanism, vote_mechanism
from skfairdp.random import training_and_noise_streams

#: Standard deviations from the mean beyond which ``scale="clipped"`` does not tell values apart.
CLIPPED_AT = 3.0

_LABEL_SET = "which class labels occur (classes_ was read from y; give classes to fix them beforehand)"


@dataclass(frozen=True)
class DataDependentPrivacy:
    """What the votes at hand cost: a diagnostic that is private itself.

    Attributes
    ----------
    epsilon, delta : float
        The bound on these votes.
    data_independent_epsilon : float
        The guarantee, which holds for any votes and may be published.
    publishable : bool
        Always False: the number was computed from private votes without noise.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y = make_biased_classification(1200, random_state=0, return_X_y=True)
    >>> settings = {"n_teachers": 40, "n_queries": 50, "labels": "hard", "epsilon": 8.0, "random_state": 0}
    >>> pate = PATEClassifier(DecisionTreeClassifier(max_depth=3), **settings)
    >>> found = pate.fit(X[:1000], y[:1000], public=X[1000:]).data_dependent_privacy()
    >>> found.publishable, found.epsilon <= found.data_independent_epsilon
    (False, True)
    """

    epsilon: float
    delta: float
    data_independent_epsilon: float
    publishable: bool = False


@dataclass(frozen=True)
class PrivatePart:
    """Teachers and votes without noise: kept in memory for the analysis, never pickled.

    Attributes
    ----------
    teachers : Teachers
        The teachers.
    mechanism : VoteMechanism
        How the votes were released.
    queries : ndarray or sparse matrix of shape (n_asked, n_features)
        Rows that were asked about, as they came, in the order of asking.
    votes : ndarray of shape (n_asked, n_classes)
        What the teachers voted on them.
    answered : ndarray of int
        Which of them were answered.
    """

    teachers: Teachers
    mechanism: VoteMechanism
    queries: Any
    votes: np.ndarray
    answered: np.ndarray


@dataclass(frozen=True)
class _Chosen:
    """Parameters with nothing left to be chosen."""

    n_teachers: int
    n_queries: int
    labels: str
    regularization: float


class PATEClassifier(ReleaseMixin, ClassifierMixin, SkfairdpEstimator):
    r"""Private aggregation of teacher ensembles: a student that learns from noisy votes.

    Teachers are trained on disjoint parts of the private rows and vote on public ones. Noise is added to the
    votes, and a student learns from the noisy votes alone. Whoever gets the student sees of each private row
    no more than ``privacy_`` says.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What each teacher is a clone of. ``None`` trains small networks, all at once as one tensor program.
    n_teachers : int or "auto", default="auto"
        Number of parts. More teachers make noise matter less, and know less each. ``"auto"`` is where both together
        cost least by a rule that knows the number of private rows, the number of classes and the budget, and no row;
        see Notes.
    labels : {"auto", "soft", "hard", "confident"}, default="auto"
        What is released of the votes: noisy shares of each class, the class with the largest noisy count (GNMax), or
        that class only for rows whose noisy largest count reaches ``threshold`` (Confident-GNMax). ``"auto"`` is soft,
        whose noise averages out and harms groups less unequally, or hard for a student that cannot weigh rows.
    epsilon : float, default=1.0
        Privacy loss of everything that is released. ``inf`` adds no noise.
    delta : float, default=1e-5
        The probability, in (0, 1), with which the loss may exceed epsilon.
    noise_scale : float or None, default=None
        Standard deviation of the noise on each vote count. Given, it replaces ``epsilon``, which must be left at its
        default, and ``privacy_`` tells the epsilon that it buys.
    n_queries : int or "auto", default="auto"
        How many public rows are answered at most, chosen at random. Noise grows with their square root, and a logistic
        student averages over them, so that more cost it nothing: ``"auto"`` is all public rows, or as many as still
        tell it something. A student that is not logistic gets fewer, because it learns the noise of single rows. It is
        200 for confident labels and where ``noise_scale`` makes every query add to the price.
    threshold : float or None, default=None
        Votes that confident labels need, and no others; ``None`` is two thirds of the teachers.
    threshold_noise_scale : float or None, default=None
        Noise on the largest count when it is compared with the threshold. Every public row is asked, until
        ``n_queries`` are answered. ``None`` spends as much on these questions as on the answers.
    postprocess : {"auto", "affine", "simplex", "clip", "none"}, default="auto"
        How noisy shares become soft labels, and no others; costs nothing. ``"affine"`` moves them to sum to one, which
        keeps the noise centred and the loss convex; ``"clip"`` also cuts them to [-0.25, 1.25]; ``"simplex"`` takes the
        nearest probabilities. ``"auto"`` is affine for the logistic student and simplex for others. See
        :func:`~skfairdp.mechanisms.soft_labels`.
    student : {"logistic", "network"} or classifier, default="logistic"
        ``"logistic"`` is solved exactly; ``"network"`` has the layers of the teachers. Another classifier learns
        soft labels as weighted copies of each row.
    student_regularization : float or None, default=None
        Strength lambda of the penalty :math:`\lambda\lVert\theta\rVert^2` beside the mean loss of the logistic
        or network student; ``None`` is as much as the noise asks for in the former (see Notes), 0.001 for the latter.
    classes : array-like or None, default=None
        The class labels, if they are known beforehand. ``None`` reads them from ``y``, which tells which ones occur.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in what each teacher learns. ``"balanced"`` is taken by each teacher from its own rows:
        frequencies over all private rows would let one label change every vote. Clones of ``estimator`` must take
        ``sample_weight``.
    scale : {"clipped", "public"} or None, default="clipped"
        Standardise features by the public rows, for teachers and student; sparse rows become dense for it, some at a
        time. ``"clipped"`` also moves values that are more than three standard deviations from the mean there, so that
        few rows with a rare value do not bear the noise on each other's labels alone. ``None`` leaves them sparse for
        teachers and students that take them so. Nothing is ever fitted on private rows of several teachers.
    public_fraction : float, default=0.25
        Share of X to set aside as public rows when ``fit`` gets none. They are not protected.
    hidden_sizes : tuple of int, default=(32, 16)
        Hidden layers of networks. This and the three that follow are refused where neither teachers nor student are
        networks.
    max_epochs : int, default=30
        Passes of networks over their rows.
    batch_size : int, default=32
        Rows per step of networks.
    learning_rate : float, default=0.005
        Of Adam, for networks.
    n_jobs : int or None, default=None
        Of joblib, for teachers that are clones of ``estimator``; its backends (loky, Dask, Ray) apply.
    verbose : int, default=0
        Of joblib, while teachers are trained.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy. A seed is for experiments: it makes the guarantee
        worthless against whoever knows it or sees two fits that start from it, which ``privacy_`` then says. A
        Generator or RandomState decides partition and training, while the noise still comes from the operating system.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    mechanism_ : Mechanism
        What drew the noise, frozen.
    privacy_ : PrivacyGuarantee
        Cost of all that was released: exact for soft labels, an upper bound for hard and confident ones. Predictions
        cost nothing further.
    noise_scale_ : float
        Standard deviation of the noise on each vote count.
    n_teachers_, n_queries_ : int
        Parts that the private rows were divided into, and public rows that could be answered.
    labels_ : {"soft", "hard", "confident"}
        What was released of the votes.
    student_regularization_ : float or None
        Strength of the student's penalty; ``None`` for a classifier of its own.
    threshold_, threshold_noise_scale_ : float or None
        Of confident labels.
    n_voting_ : int
        Teachers that have at least one row.
    student_ : Pipeline
        The student with its scaler. It works alone, and is all that needs to be shipped.
    query_indices_ : ndarray
        Which public rows were answered (rows of X where no public rows were given).
    student_targets_ : ndarray of shape (n_answered, n_classes)
        The released labels as the student learned them.
    n_features_in_, feature_names_in_
        Of the private rows.

    See Also
    --------
    pate_fairness : What the noise does to whom.

    Notes
    -----
    **Privacy.** Neighbours are data sets of the same size that differ in one record. Rows are given to teachers by
    their index and a random permutation, so that replacing one changes one teacher and hence two counts by one:
    :math:`\sqrt 2` in L2. m noisy vote vectors are therefore one Gaussian mechanism with
    :math:`\mu = \sqrt{2m}/\sigma`, whose (epsilon, delta) is exact for soft labels and an upper bound for labels that
    are computed from them; hard labels of two classes are priced by a smaller upper bound that holds for them alone.
    The guarantee covers private rows with their labels. It does not cover public rows, adding or removing a record
    (which would move others between parts), a person with rows in several parts, what was done to the rows before
    (:func:`~skfairdp.pipeline.pipeline_guarantee` says what a whole pipeline costs), or a choice of parameters that
    looked at them. Fitting again spends again. Teachers and votes without noise stay in memory for
    :func:`pate_fairness`; pickles and copies of this object do not contain them.

    **Weights** leave the proof as it is. A weight belongs to its record, goes to the one teacher that holds it, and
    moves no row between teachers: replacing a record, weight included, still changes one vote. A row of weight 0 keeps
    its place, and its teacher ignores it. So weights are not the same as copies of rows, which go to several teachers.

    A :class:`~sklearn.exceptions.ConvergenceWarning` says that the student is no better than a constant answer on the
    noisy labels that it has learned from. It looks at nothing else, and so costs nothing.

    **What "auto" chooses** depends on the numbers of private and public rows, features and classes, on epsilon and
    delta, and on the kind of student: never on a row, so it costs nothing. With :math:`\mu` of the Gaussian mechanism
    that epsilon and delta allow, n private rows, p features, c classes, k teachers and m queries, noise costs the
    logistic student about :math:`c(c-1)p/(\mu k)^2` nats, whatever m is, and teachers with few rows cost
    :math:`pk/(20n)`: together least at :math:`k = (40c(c-1)n/\mu^2)^{1/3}`, but at least 20 and at most a third of the
    rows. More queries than :math:`1.25(\mu k)^2/c` (and 20 for each feature) tell it nothing more. Its penalty is
    :math:`\lambda = 2p\,(c/(\mu k)^2 + 1/(8m))`, twice that for more than two classes. The user guide derives this.

    There is no stratification: a partition that looks at labels or groups lets one record move many others, and
    all teachers could change with it.

    **Fairness.** Noise costs groups differently. See :func:`pate_fairness` for measuring it.

    References
    ----------
    .. [1] N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar and U. Erlingsson, "Scalable private
       learning with PATE", ICLR 2018.
    .. [2] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import PATEClassifier
    >>> X, y = make_classification(3000, n_features=5, class_sep=2.0, random_state=0)
    >>> pate = PATEClassifier(LogisticRegression(), n_teachers=50, epsilon=2.0, n_queries=100, random_state=0)
    >>> pate = pate.fit(X[:2000], y[:2000], public=X[2000:2500])
    >>> bool(pate.score(X[2500:], y[2500:]) > 0.9)
    True
    >>> pate.privacy_.epsilon, round(pate.noise_scale_, 2)
    (2.0, 28.2)
    """

    _row_wise_methods: ClassVar[dict] = {"predict": ("student", "student_"), "predict_proba": ("student", "student_")}

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_teachers": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "labels": [StrOptions({"auto", "soft", "hard", "confident"})],
        "epsilon": [Real],
        "delta": [Real],
        "noise_scale": [Interval(Real, 0, None, closed="left"), None],
        "n_queries": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "threshold": [Real, None],
        "threshold_noise_scale": [Interval(Real, 0, None, closed="left"), None],
        "postprocess": [StrOptions({"auto", *POSTPROCESSES})],
        "student": [StrOptions({"logistic", "network"}), HasMethods(["fit", "predict"])],
        "student_regularization": [Interval(Real, 0, None, closed="neither"), None],
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "scale": [StrOptions({"clipped", "public"}), None],
        "public_fraction": [Interval(Real, 0, 1, closed="neither")],
        "hidden_sizes": [tuple, list],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_teachers: int | str = "auto",
        labels: str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        noise_scale: float | None = None,
        n_queries: int | str = "auto",
        threshold: float | None = None,
        threshold_noise_scale: float | None = None,
        postprocess: str = "auto",
        student: Any = "logistic",
        student_regularization: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        scale: str | None = "clipped",
        public_fraction: float = 0.25,
        hidden_sizes: tuple[int, ...] = (32, 16),
        max_epochs: int = 30,
        batch_size: int = 32,
        learning_rate: float = 0.005,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_teachers = n_teachers
        self.labels = labels
        self.epsilon = epsilon
        self.delta = delta
        self.noise_scale = noise_scale
        self.n_queries = n_queries
        self.threshold = threshold
        self.threshold_noise_scale = threshold_noise_scale
        self.postprocess = postprocess
        self.student = student
        self.student_regularization = student_regularization
        self.classes = classes
        self.class_weight = class_weight
        self.scale = scale
        self.public_fraction = public_fraction
        self.hidden_sizes = hidden_sizes
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    #: Whose rows ``privacy_`` is about: those of ``fit``, not those that are predicted.
    _protects_fitted_rows = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, public: Any = None, sample_weight: Any = None) -> "PATEClassifier":
        """Train teachers, release noisy votes on public rows, and train the student on them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Their labels, private as well.
        public : array-like or sparse matrix of shape (n_public, n_features), default=None
            Rows without labels that the student may see. In a pipeline they must pass the same steps as X
            (``Pipeline(steps, transform_input=["public"])``). Without them, ``public_fraction`` of X
            is set aside and left unprotected, with a :class:`~skfairdp.exceptions.PrivacyLeakWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the private rows, private as well: each reaches the one teacher that holds the row, whatever the
            weights are. Clones of ``estimator`` must take them in ``fit``.

        Returns
        -------
        PATEClassifier
            This object.
        """
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        self._check_combination(public, sample_weight)
        networks = self._networks()
        if public is not None:
            check_public_rows(X, public)
        with restored_on_failure(self):
            training, noise = training_and_noise_streams(self.random_state)
            rows, y = validate_data(
                self, X, y, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2 if public is None else 1
            )
            weight = _read_weights(sample_weight, rows)
            classes, indices = encode_labels(y, self.classes, weight)
            class_weight = self.class_weight
            if isinstance(class_weight, dict):
                class_weight = compute_class_weight(class_weight, classes=classes, y=classes)
            aside, parting, asking, teaching, noising, learning = training.spawn(6)
            # Clones copy a Generator and would repeat its noise. It seeds training only; noise comes from the system.
            if noise is not training:
                noising = noise
            n_rows = rows.shape[0]
            taken, private = np.arange(0), np.arange(n_rows)
            if public is None:
                taken, private = set_aside(n_rows, self.public_fraction, aside)
            public_rows = rows[taken] if public is None else self._read_public(public)

            is_sparse = sparse.issparse(rows) or sparse.issparse(public_rows)
            names = None if is_sparse else getattr(self, "feature_names_in_", None)
            scaler = None
            if self.scale is not None:
                limit = CLIPPED_AT if self.scale == "clipped" else math.inf
                scaler = ClippedScaler(limit).fit(with_names(public_rows, names))
            # Neighbouring data sets have the same size, so sizes chosen from counts cost no privacy. Never pass rows.
            chosen = self._choose(len(private), public_rows.shape[0], rows.shape[1], len(classes))
            order = asking.generator.permutation(public_rows.shape[0])
            if chosen.labels != "confident":
                order = np.sort(order[: chosen.n_queries])
            queries = public_rows[order]
            parts = partition_rows(len(private), chosen.n_teachers, parting)
            mechanism = vote_mechanism(
                chosen.labels,
                epsilon=self.epsilon,
                delta=self.delta,
                noise_scale=self.noise_scale,
                n_asked=len(order),
                n_answered=min(chosen.n_queries, len(order)),
                n_classes=len(classes),
                n_voting=min(len(private), chosen.n_teachers),
                threshold=self.threshold,
                threshold_noise_scale=self.threshold_noise_scale,
            )
            teach = {
                "student": self.student,
                "regularization": chosen.regularization,
                "networks": networks,
                "scaler": scaler,
            }
            rehearse_student(with_names(queries, names), classes, chosen.labels, **teach)
            keeps_sparse = self.estimator is not None and takes_sparse(self.estimator)
            read = partial(read_rows, scaler=scaler, names=names, keeps_sparse=keeps_sparse)
            row_weight = weigh_rows(indices[private], parts, None if weight is None else weight[private], class_weight)
            if self.estimator is not None and len(classes) > 1:
                n_part = max(len(classes), min(map(len, filter(len, parts))))
                weighted = row_weight is not None
                rehearse_teacher(queries, n_part, len(classes), estimator=self.estimator, read=read, weighted=weighted)
            teachers = train_teachers(
                rows[private],
                indices[private],
                parts,
                len(classes),
                estimator=self.estimator,
                networks=networks,
                stream=teaching,
                read=read,
                weight=row_weight,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            votes = teachers.votes(queries)

            not_covered = [] if self.classes is not None else [_LABEL_SET]
            if len(taken):
                not_covered.append(f"the features of {len(taken)} of the {n_rows} rows, which were set aside as public")
            self._freeze(mechanism, noising, does_not_cover=tuple(not_covered))
            answered, released = self._release(votes)
            if not len(answered):
                raise ValueError(
                    f"no query passed threshold={mechanism.threshold:g} of {teachers.n_voting} votes with "
                    f"threshold_noise_scale={mechanism.threshold_noise_scale:g}, so there is nothing to learn from; "
                    "lower threshold, or give more public rows. The budget is spent."
                )
            targets = student_targets(
                released, chosen.labels, len(classes), teachers.n_voting, self._choose_postprocess()
            )
            learned_from = with_names(queries[answered], names)
            student = fit_student(learned_from, targets, classes, stream=learning, **teach)
            warn_if_nothing_was_learned(student.predict(learned_from), targets, classes, mechanism)
            self.classes_ = classes
            self.noise_scale_ = mechanism.noise_scale
            self.n_teachers_, self.n_queries_, self.labels_ = chosen.n_teachers, mechanism.n_answered, chosen.labels
            self.student_regularization_ = chosen.regularization if isinstance(self.student, str) else None
            confident = chosen.labels == "confident"
            self.threshold_ = mechanism.threshold if confident else None
            self.threshold_noise_scale_ = mechanism.threshold_noise_scale if confident else None
            self.n_voting_ = teachers.n_voting
            self.student_, self._names = student, names
            asked = order[answered]
            self.query_indices_ = taken[asked] if public is None else asked
            self.student_targets_ = targets
            self._private = PrivatePart(teachers, mechanism, queries, votes, answered)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict by the student; no further privacy cost.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.concatenate([self.student_.predict(rows) for rows in self._blocks(X)])

    def _student_has_probabilities(self) -> bool:
        return isinstance(self.student, str) or hasattr(self.student, "predict_proba")

    @available_if(_student_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities by the student; no further privacy cost.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        found = np.concatenate([self.student_.predict_proba(rows) for rows in self._blocks(X)])
        proba = np.zeros((len(found), len(self.classes_)))
        proba[:, np.searchsorted(self.classes_, self.student_.classes_)] = found
        return proba

    def teacher_votes(self, X: Any) -> np.ndarray:
        """Count the teachers' votes without noise: private, for analysis only, and covered by no guarantee.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), int
        """
        return self._private_part().teachers.votes(self._read_rows(X))

    def data_dependent_privacy(self) -> DataDependentPrivacy:
        """Bound what hard or confident labels cost on the votes at hand, which is private and not to be published.

        Returns
        -------
        DataDependentPrivacy
            Where teachers agree, its epsilon is far below the guarantee's.

        Notes
        -----
        **Privacy.** The number depends on votes without noise. To publish it, it would have to be smoothed and
        noised itself; use ``privacy_``. Soft labels have no such bound: their noise always shows.
        """
        part = self._private_part()
        mechanism = part.mechanism
        if mechanism.labels == "soft":
            raise ValueError("a data-dependent bound exists for labels='hard' and labels='confident' only; got 'soft'.")
        if mechanism.mu is None and mechanism.delta == 0:  # no noise, or nothing to tell
            return DataDependentPrivacy(mechanism.epsilon, 0.0, mechanism.epsilon)
        if mechanism.labels == "hard":
            epsilon = gnmax_data_dependent_epsilon(part.votes, mechanism.noise_scale, mechanism.delta)
        else:
            # Nothing was asked once the last answer was given.
            stopped = len(part.answered) == mechanism.n_answered
            asked = int(part.answered[-1]) + 1 if stopped else len(part.votes)
            passed = np.isin(np.arange(asked), part.answered)
            rdp = confident_gnmax_data_dependent_rdp(
                part.votes[:asked], passed, mechanism.threshold, mechanism.threshold_noise_scale, mechanism.noise_scale
            )
            epsilon = renyi_epsilon(rdp, mechanism.delta)
        return DataDependentPrivacy(min(epsilon, mechanism.epsilon), mechanism.delta, mechanism.epsilon)

    def _check_combination(self, public: Any, sample_weight: Any) -> None:
        """Refuse parameters that nothing reads in the chosen setting, and those that do not go together."""
        kind = self._labels()
        labels = f"labels={kind!r}"
        if kind != "confident":
            self._refuse_unused(labels, "threshold", "threshold_noise_scale")
        if kind != "soft":
            self._refuse_unused(labels, "postprocess")
        self._check_postprocess(kind)
        if self.noise_scale is not None:
            self._refuse_unused(f"noise_scale={self.noise_scale!r}", "epsilon")
        if public is not None:
            self._refuse_unused("public rows given to fit (public)", "public_fraction")
        student = self.student if isinstance(self.student, str) else f"{type(self.student).__name__}"
        if not isinstance(self.student, str):
            self._refuse_unused(f"student={student}", "student_regularization")
        if self.estimator is None:
            return
        if student != "network":
            setting = f"estimator={type(self.estimator).__name__} and student={student}, of which none is our network"
            self._refuse_unused(setting, "hidden_sizes", "max_epochs", "batch_size", "learning_rate")
        if sample_weight is not None or self.class_weight is not None:
            check_weighable(self.estimator, "estimator", "weigh rows by sample_weight or class_weight")

    def _check_postprocess(self, labels: str) -> None:
        """Refuse negative weights where they cannot be learned from."""
        if not isinstance(self.student, str) and labels == "soft" and self.postprocess not in ("auto", "simplex"):
            raise ValueError(
                f"postprocess={self.postprocess!r} gives negative weights, which a classifier as student cannot take; "
                "use 'simplex' (or 'auto'), or student='logistic'."
            )

    def _choose_postprocess(self) -> str:
        """Choose how noisy shares become soft labels, by the kind of student."""
        if self.postprocess != "auto":
            return self.postprocess
        return "affine" if self._is_logistic() else "simplex"

    def _is_logistic(self) -> bool:
        return isinstance(self.student, str) and self.student == "logistic"

    def _labels(self) -> str:
        """Choose what is released of the votes, by the kind of student."""
        if self.labels != "auto":
            return self.labels
        return choose_labels(isinstance(self.student, str) or is_weighable(self.student))

    def _choose(self, n_private: int, n_public: int, n_features: int, n_classes: int) -> "_Chosen":
        """Fill in what was left to be chosen, from numbers alone: no row, label or vote may come in here."""
        labels, n_queries = self._labels(), self.n_queries
        if n_queries == "auto" and (labels == "confident" or self.noise_scale is not None):
            n_queries = FEW_QUERIES
        if self.noise_scale is None:
            mu = gaussian_mu(self.epsilon, self.delta)
        else:
            mu = gnmax_mu(min(int(n_queries), n_public), self.noise_scale) if self.noise_scale else math.inf
        n_teachers = self.n_teachers
        if n_teachers == "auto":
            n_teachers = choose_n_teachers(n_private, n_classes, mu)
        n_voting = min(n_private, int(n_teachers))
        if n_queries == "auto":
            averages = self._is_logistic()
            n_queries = choose_n_queries(n_public, n_features, n_classes, n_voting, mu, averages=averages)
        regularization = self.student_regularization
        if regularization is None and self._is_logistic():
            regularization = choose_penalty(n_features, n_classes, n_voting, min(int(n_queries), n_public), mu)
        return _Chosen(
            int(n_teachers), int(n_queries), labels, 0.001 if regularization is None else float(regularization)
        )

    def _networks(self) -> dict[str, Any]:
        """Read how networks are trained, teachers and students alike."""
        return {
            "hidden_sizes": tuple(check_count(size, f"hidden_sizes[{i}]") for i, size in enumerate(self.hidden_sizes)),
            "max_epochs": int(self.max_epochs),
            "batch_size": int(self.batch_size),
            "learning_rate": float(self.learning_rate),
        }

    def _read_rows(self, X: Any) -> Any:
        return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)

    def _blocks(self, X: Any) -> Iterator[Any]:
        """Check rows, and cut sparse ones into dense blocks; each has the column names that the student knows."""
        check_is_fitted(self, "student_")
        return (with_names(rows, self._names) for _, rows in dense_blocks(self._read_rows(X)))

    def _scaled(self, X: Any) -> np.ndarray:
        """Return rows as teachers and student see them, dense."""
        return dense(self._private_part().teachers.read(X))

    def _private_part(self) -> PrivatePart:
        check_is_fitted(self, "student_")
        if "_private" not in self.__dict__:
            raise ValueError(
                "the teachers are gone: they hold private data, and pickles and copies of a fitted PATEClassifier "
                "leave them out. Ask the object that was fitted."
            )
        return self._private

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        state.pop("_private", None)
        return state

    def _read_public(self, public: Any) -> Any:
        try:
            return self._read_rows(public)
        except ValueError as error:
            raise ValueError(f"public must be rows with the features of X: {error}") from error

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "student_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.scale is not None or isinstance(self.student, str) or takes_sparse(self.student)
        # At epsilon 1 the votes on a hundred rows bear noise of about half of their number, whatever the teachers
        # know: on tables as small as those of scikit-learn's checks no score can be promised.
        tags.classifier_tags.poor_score = True
        return tags


def encode_labels(y: Any, classes: Any, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return class labels, and each row's class as 0, 1, ...; labels of rows of weight 0 do not count as classes."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    counted = y if weight is None else y[weight > 0]
    allowed = np.unique(counted if classes is None else np.asarray(classes))
    known = np.isin(counted, allowed)
    if not known.all():
        strangers = np.unique(counted[~known])[:5].tolist()
        raise ValueError(f"y must hold the labels named in classes, {allowed.tolist()}; it also holds {strangers}.")
    return allowed, np.minimum(np.searchsorted(allowed, y), len(allowed) - 1)


def _read_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must hold a weight above zero; all of them are zero.")
    return weight
