"""Students on repeated noise, trained together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from skfairdp.ensemble._logistic_students import solve_students, student_logits
from skfairdp.ensemble._students import fit_weighted, student_targets, train_network_students
from skfairdp.ensemble._teachers import NetworkSettings
from skfairdp.mechanisms import VoteMechanism
from skfairdp.random import RandomStream, clone_with_seed, random_stream

_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class RepeatedStudents:
    """What students think of some rows.

    Attributes
    ----------
    private : ndarray of shape (n_repeats, n_samples, n_classes)
        Log probabilities of students trained with noise.
    clean : ndarray of shape (1 or n_repeats, n_samples, n_classes)
        Those of students trained without it. Networks have a clean twin for each repetition, with the same
        initial weights and the same order of rows, so that the noise is all that differs.
    private_parameters, clean_parameters : ndarray or None
        Parameters, flattened; ``None`` for classifiers that have none to compare.
    """

    private: np.ndarray
    clean: np.ndarray
    private_parameters: np.ndarray | None
    clean_parameters: np.ndarray | None


def draw_targets(
    votes: np.ndarray, mechanism: VoteMechanism, n_repeats: int, n_voting: int, postprocess: str, stream: RandomStream
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the student's class weights again and again, as an analysis and not as a release.

    Parameters
    ----------
    votes : ndarray of shape (n_queries, n_classes)
        Without noise.
    mechanism : VoteMechanism
        How they are released.
    n_repeats, n_voting : int
        Repetitions, and teachers that vote.
    postprocess : str
        Of soft labels.
    stream : RandomStream
        Where the noise comes from.

    Returns
    -------
    clean : ndarray of shape (n_queries, n_classes)
        Class weights without noise.
    private : ndarray of shape (n_repeats, n_queries, n_classes)
        With it. Confident labels leave rows out: their weights are 0, those of the others add up to ``n_queries``.
    """
    n_classes = votes.shape[1]
    rng = stream.generator
    noisy = votes + mechanism.noise_scale * rng.standard_normal((n_repeats, *votes.shape))
    released = noisy if mechanism.labels == "soft" else noisy.argmax(axis=2)
    private = student_targets(released, mechanism.labels, n_classes, n_voting, postprocess)
    unperturbed = votes if mechanism.labels == "soft" else votes.argmax(axis=1)
    clean = student_targets(unperturbed, mechanism.labels, n_classes, n_voting, postprocess)
    if mechanism.labels == "confident":
        largest = votes.max(axis=1)
        asked = largest + mechanism.threshold_noise_scale * rng.standard_normal((n_repeats, len(votes)))
        private = private * _answered(asked >= mechanism.threshold, mechanism.n_answered)[..., None]
        clean = clean * _answered((largest >= mechanism.threshold)[None], mechanism.n_answered)[0][:, None]
    return clean, private


def _answered(passed: np.ndarray, most: int) -> np.ndarray:
    """Weights of the rows that are answered: the first ones that pass, of total weight n_queries."""
    kept = passed & (passed.cumsum(axis=1) <= most)
    return kept * (kept.shape[1] / np.maximum(kept.sum(axis=1, keepdims=True), 1))


def train_repeats(
    queries: np.ndarray,
    rows: np.ndarray,
    clean: np.ndarray,
    private: np.ndarray,
    *,
    student: Any,
    regularization: float,
    networks: NetworkSettings,
    stream: RandomStream,
) -> RepeatedStudents:
    """Train a student on each set of targets, and ask all of them about some rows.

    Parameters
    ----------
    queries : ndarray of shape (n_queries, n_features)
        Rows that students are trained on.
    rows : ndarray of shape (n_samples, n_features)
        Rows that they are asked about.
    clean, private : ndarray
        Of :func:`draw_targets`.
    student, regularization, networks
        As in :class:`PATEClassifier`, resolved.
    stream : RandomStream
        For networks and classifiers.

    Returns
    -------
    RepeatedStudents
    """
    if isinstance(student, str) and student == "logistic":
        theta = solve_students(queries, np.concatenate([clean[None], private]), regularization)
        logs = _log_probabilities(student_logits(theta, rows))
        return RepeatedStudents(logs[1:], logs[:1], theta[1:].reshape(len(private), -1), theta[0].ravel())
    if isinstance(student, str):
        return _train_networks(queries, rows, clean, private, regularization, networks, stream)
    classes = np.arange(clean.shape[1])
    seed = stream.seed()
    logs = np.stack(
        [
            _ask(
                fit_weighted(clone_with_seed(student, seed, overwrite=True), queries, one, classes), rows, len(classes)
            )
            for one in (clean, *private)
        ]
    )
    return RepeatedStudents(logs[1:], logs[:1], None, None)


def _log_probabilities(logits: np.ndarray) -> np.ndarray:
    if logits.shape[2] == 1:
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=2)
    return log_softmax(logits, axis=2)


def _train_networks(
    queries: np.ndarray,
    rows: np.ndarray,
    clean: np.ndarray,
    private: np.ndarray,
    regularization: float,
    networks: NetworkSettings,
    stream: RandomStream,
) -> RepeatedStudents:
    seed = stream.seed()
    logs, parameters = [], []
    for targets in (private, np.broadcast_to(clean, private.shape)):
        found = train_network_students(queries, targets, networks, regularization, random_stream(seed))
        logs.append(log_softmax(found.logits(rows).astype(np.float64), axis=2))
        flat = [tensor.reshape(len(private), -1) for tensor in (*found.weights, *found.biases)]
        parameters.append(np.concatenate(flat, axis=1).astype(np.float64))
    return RepeatedStudents(logs[0], logs[1], parameters[0], parameters[1])


def _ask(model: Any, rows: np.ndarray, n_classes: int) -> np.ndarray:
    proba = np.full((len(rows), n_classes), _LEAST_PROBABILITY)
    proba[:, model.classes_] = np.maximum(model.predict_proba(rows), _LEAST_PROBABILITY)
    return np.log(proba)
