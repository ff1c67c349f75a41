"""PATEClassifier: teachers on private parts, noisy votes on public rows, a student that may be published."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import HasMethods, Interval, StrOptions, fit_context
from skfairdp._validation import check_delta, check_epsilon
from skfairdp.ensemble._prepare import (
    check_postprocess,
    choose_postprocess,
    encode_labels,
    not_covered,
    read_networks,
    read_regularization,
    set_aside,
)
from skfairdp.ensemble._private_part import PrivatePart, PrivatePartMixin
from skfairdp.ensemble._students import fit_student, rehearse_student, student_targets
from skfairdp.ensemble._teachers import partition, train_teachers
from skfairdp.mechanisms import POSTPROCESSES, vote_mechanism
from skfairdp.random import training_and_noise_streams
from skfairdp.release import ReleaseMixin, check_public_rows


class PATEClassifier(PrivatePartMixin, ReleaseMixin, ClassifierMixin, SkfairdpEstimator):
    r"""Private aggregation of teacher ensembles: a student that learns from noisy votes.

    Teachers are trained on disjoint parts of the private rows and vote on public ones. Noise is added to the
    votes, and a student learns from the noisy votes alone. Whoever gets the student sees of each private row
    no more than ``privacy_`` says.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What each teacher is a clone of. ``None`` trains small networks, all at once as one tensor program.
    n_teachers : int, default=150
        Number of parts. More teachers make noise matter less, and know less each.
    labels : {"soft", "hard", "confident"}, default="soft"
        What is released of the votes: noisy shares of each class, the class with the largest noisy count (GNMax), or
        that class only for rows whose noisy largest count reaches ``threshold`` (Confident-GNMax). Soft labels
        move the student less, and so harm groups less unequally, where ``noise_scale_ / n_teachers`` is below
        about 0.5.
    epsilon : float, default=1.0
        Privacy loss of everything that is released. ``inf`` adds no noise.
    delta : float, default=1e-5
        The probability, in (0, 1), with which the loss may exceed epsilon.
    noise_scale : float or None, default=None
        Standard deviation of the noise on each vote count. Given, it replaces ``epsilon``, and ``privacy_`` tells the
        epsilon that it buys.
    n_queries : int, default=200
        How many public rows are answered at most, chosen at random. Noise grows with their square root.
    threshold : float or None, default=None
        Votes that confident labels need; ``None`` is two thirds of the teachers.
    threshold_noise_scale : float or None, default=None
        Noise on the largest count when it is compared with the threshold. Every public row is asked, until
        ``n_queries`` are answered. ``None`` spends as much on these questions as on the answers.
    postprocess : {"auto", "affine", "simplex", "clip", "none"}, default="auto"
        How noisy shares become soft labels; costs nothing. ``"affine"`` moves them to sum to one, which keeps the
        noise centred and the loss convex; ``"clip"`` also cuts them to [-0.25, 1.25]; ``"simplex"`` takes the nearest
        probabilities. ``"auto"`` is affine for the logistic student, clip where noise exceeds half of the votes, and
        simplex for other students. See :func:`~skfairdp.mechanisms.soft_labels`.
    student : {"logistic", "network"} or classifier, default="logistic"
        ``"logistic"`` is solved exactly; ``"network"`` has the layers of the teachers. Another classifier learns
        soft labels as weighted copies of each row.
    student_regularization : float or None, default=None
        Strength lambda of the penalty :math:`\lambda\lVert\theta\rVert^2` beside the mean loss of the logistic
        or network student; ``None`` is 0.1 for the former, 0.001 for the latter.
    classes : array-like or None, default=None
        The class labels, if they are known beforehand. ``None`` reads them from ``y``, which tells which ones occur.
    scale : {"public"} or None, default="public"
        Standardise features by the public rows, for teachers and student. Nothing is ever fitted on private
        rows of several teachers.
    public_fraction : float, default=0.25
        Share of X to set aside as public rows when ``fit`` gets none. They are not protected.
    hidden_sizes : tuple of int, default=(32, 16)
        Hidden layers of networks.
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
    (:func:`~skfairdp.release.pipeline_guarantee` says what a whole pipeline costs), or a choice of parameters that
    looked at them. Fitting again spends again. Teachers and votes without noise stay in memory for
    :func:`pate_fairness`; pickles and copies of this object do not contain them.

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

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_teachers": [Interval(Integral, 1, None, closed="left")],
        "labels": [StrOptions({"soft", "hard", "confident"})],
        "epsilon": [Real],
        "delta": [Real],
        "noise_scale": [Interval(Real, 0, None, closed="left"), None],
        "n_queries": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Real, None],
        "threshold_noise_scale": [Interval(Real, 0, None, closed="left"), None],
        "postprocess": [StrOptions({"auto", *POSTPROCESSES})],
        "student": [StrOptions({"logistic", "network"}), HasMethods(["fit", "predict"])],
        "student_regularization": [Interval(Real, 0, None, closed="neither"), None],
        "classes": ["array-like", None],
        "scale": [StrOptions({"public"}), None],
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
        n_teachers: int = 150,
        labels: str = "soft",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        noise_scale: float | None = None,
        n_queries: int = 200,
        threshold: float | None = None,
        threshold_noise_scale: float | None = None,
        postprocess: str = "auto",
        student: Any = "logistic",
        student_regularization: float | None = None,
        classes: Any = None,
        scale: str | None = "public",
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
    def fit(self, X: Any, y: Any, *, public: Any = None) -> "PATEClassifier":
        """Train teachers, release noisy votes on public rows, and train the student on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Their labels, private as well.
        public : array-like of shape (n_public, n_features), default=None
            Rows without labels that the student may see. In a pipeline they must pass the same steps as X
            (``Pipeline(steps, transform_input=["public"])``), or are refused. Without them, ``public_fraction`` of X
            is set aside and left unprotected, with a :class:`~skfairdp.exceptions.PrivacyLeakWarning`.

        Returns
        -------
        PATEClassifier
            This object.
        """
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        networks = read_networks(self.hidden_sizes, self.max_epochs, self.batch_size, self.learning_rate)
        check_postprocess(self.postprocess, self.student, self.labels)
        if public is not None:
            check_public_rows(self, X, public)
        training, noise = training_and_noise_streams(self.random_state)
        rows, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2 if public is None else 1)
        classes, codes = encode_labels(y, self.classes)
        aside, parting, asking, teaching, noising, learning = training.spawn(6)
        if noise is not training:
            noising = noise
        taken, private = np.arange(0), np.arange(len(rows))
        if public is None:
            taken, private = set_aside(len(rows), self.public_fraction, aside)
        public_rows = rows[taken] if public is None else self._read_public(public)

        scaler = StandardScaler().fit(self._named(public_rows)) if self.scale == "public" else None
        scaled = (lambda part: part) if scaler is None else (lambda part: scaler.transform(self._named(part)))
        order = asking.generator.permutation(len(public_rows))
        if self.labels != "confident":
            order = np.sort(order[: self.n_queries])
        parts = partition(len(private), self.n_teachers, parting)
        mechanism = vote_mechanism(
            self.labels,
            epsilon=self.epsilon,
            delta=self.delta,
            noise_scale=self.noise_scale,
            n_asked=len(order),
            n_answered=min(self.n_queries, len(order)),
            n_classes=len(classes),
            n_voting=min(len(private), self.n_teachers),
            threshold=self.threshold,
            threshold_noise_scale=self.threshold_noise_scale,
        )
        teach = {
            "student": self.student,
            "regularization": read_regularization(self.student_regularization, self.student),
            "networks": networks,
            "scaler": scaler,
        }
        rehearse_student(self._named(public_rows[order]), classes, self.labels, **teach)
        teachers = train_teachers(
            np.asarray(scaled(rows[private])),
            codes[private],
            parts,
            len(classes),
            estimator=self.estimator,
            networks=networks,
            stream=teaching,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        queries = np.asarray(scaled(public_rows[order]))
        votes = teachers.votes(queries)

        guarantee = mechanism.guarantee(
            seed=noising.identity, does_not_cover=not_covered(self.classes, len(taken), len(rows))
        )
        answered, released = self._let_out(votes, mechanism, noising, guarantee)
        if not len(answered):
            raise ValueError(
                f"no query passed threshold={mechanism.threshold:g} of {teachers.n_voting} votes with "
                f"threshold_noise_scale={mechanism.threshold_noise_scale:g}, so there is nothing to learn from; lower "
                "threshold, or give more public rows. The budget is spent."
            )
        postprocess = choose_postprocess(self.postprocess, self.student, mechanism.noise_scale / teachers.n_voting)
        targets = student_targets(released, self.labels, len(classes), teachers.n_voting, postprocess)
        chosen = order[answered]
        student = fit_student(self._named(public_rows[chosen]), targets, classes, stream=learning, **teach)
        self.classes_ = classes
        self.mechanism_, self.privacy_ = mechanism, guarantee
        self.noise_scale_ = mechanism.noise_scale
        confident = self.labels == "confident"
        self.threshold_ = mechanism.threshold if confident else None
        self.threshold_noise_scale_ = mechanism.threshold_noise_scale if confident else None
        self.n_voting_ = teachers.n_voting
        self.student_ = student
        self.query_indices_ = taken[chosen] if public is None else chosen
        self.student_targets_ = targets
        self._private = PrivatePart(teachers, mechanism, queries, votes, answered)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict by the student; no further privacy cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "student_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.student_.predict(self._named(X))

    def _student_has_probabilities(self) -> bool:
        return isinstance(self.student, str) or hasattr(self.student, "predict_proba")

    @available_if(_student_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities by the student; no further privacy cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self, "student_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        proba = np.zeros((len(X), len(self.classes_)))
        proba[:, np.searchsorted(self.classes_, self.student_.classes_)] = self.student_.predict_proba(self._named(X))
        return proba

    def _read_public(self, public: Any) -> np.ndarray:
        try:
            return validate_data(self, public, dtype=np.float64, reset=False)
        except ValueError as error:
            raise ValueError(f"public must be rows with the features of X: {error}") from error

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "student_")
