"""Online code length: how many bits the sensitive attribute costs somebody who has the representation."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed

from skfairdp._parallel import parallel_results
from skfairdp._validation import check_count, check_sensitive_features
from skfairdp.metrics._attackers import check_representation, named_attackers
from skfairdp.random import RandomState, clone_with_seed, random_stream

#: Shares of the rows after which the receiver learns anew, as printed in the paper.
FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
#: The same as in the paper's public code.
REFERENCE_FRACTIONS = (*FRACTIONS[:6], 0.064, *FRACTIONS[7:])


@dataclass(frozen=True)
class CodeLength:
    """Length of the online code of a sensitive attribute; ``float()`` of it is ``bits``.

    Parameters
    ----------
    bits : float
        Mean length over the orders. Longer is more private.
    bits_per_order : tuple of float
        The length for each order of the rows.
    uniform_bits : float
        Length for somebody who learns nothing, each label costing :math:`\\log_2 C` bits.
    control_bits : float or None
        Mean length for the control task: the same labels dealt out to the rows at random, so that there is
        nothing to learn but their frequencies. None unless it was asked for.
    n_samples : int
        Number of labels that were coded.
    n_groups : int
        Number of groups, :math:`C`.

    Examples
    --------
    >>> from skfairdp.metrics import CodeLength
    >>> length = CodeLength(512.0, (500.0, 524.0), 1024.0, None, 1024, 2)
    >>> float(length), length.kbits, length.compression
    (512.0, 0.5, 2.0)
    """

    bits: float
    bits_per_order: tuple[float, ...]
    uniform_bits: float
    control_bits: float | None
    n_samples: int
    n_groups: int

    @property
    def kbits(self) -> float:
        """The length in units of 1024 bits, as in the tables of the paper."""
        return self.bits / 1024

    @property
    def compression(self) -> float:
        """Uniform length divided by length: 1 or less means that nothing was learned."""
        return self.uniform_bits / self.bits

    def __float__(self) -> float:
        return self.bits


def online_code_length(
    H: Any,
    sensitive_features: Any,
    *,
    probe: Any = None,
    fractions: Sequence[float] | None = None,
    n_orders: int = 3,
    control: bool = False,
    smoothing: float = 1e-3,
    reference_compatible: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> CodeLength:
    r"""Minimum description length of the sensitive attribute given the representation, by online coding.

    A sender tells the labels to a receiver who has the representation. The first block costs
    :math:`\log_2 C` bits a label; then both train a probe on all labels sent so far and use its probabilities to
    code the next block:

    .. math::  L = t_1 \log_2 C - \sum_{i} \log_2 p_{\theta_i}(y_{t_i + 1 : t_{i+1}} | h_{t_i + 1 : t_{i+1}})

    An attribute that is easy to read is learned from few labels and gives a short code; longer is more private.

    Parameters
    ----------
    H : array-like or sparse matrix of shape (n_samples, n_features)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The labels to send. Several columns are sent as their intersection.
    probe : None, str or classifier, default=None
        What both sides train, see :func:`leakage_score`; only one, with ``predict_proba``.
    fractions : sequence of float, default=None
        Increasing shares of the rows at which blocks end, the last one 1. By default those of the paper:
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50 and 100 percent. Blocks without a row are left out.
    n_orders : int, default=3
        Number of random orders of the rows whose lengths are averaged.
    control : bool, default=False
        Whether to send labels dealt out at random as well, in as many orders, for comparison.
    smoothing : float, default=0.001
        Share of the uniform distribution that is mixed into the probe's, so that a label which the probe rules out,
        or has never seen, has a finite price: at most :math:`\log_2(C / \mathrm{smoothing})` bits.
    reference_compatible : bool, default=False
        Count as the paper's public code does, only to compare with the published numbers: after each step the
        *whole* prefix is priced, although the probe was trained on all but its last block, and the seventh
        fraction is 6.4 percent. The uniform code has 2.002 times its length then.
    n_jobs : int, default=None
        Number of probes trained at once.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the orders and of a probe that has none of its own.

    Returns
    -------
    CodeLength
        ``bits``, ``bits_per_order``, ``uniform_bits``, ``compression``, ``control_bits``.

    Notes
    -----
    While all labels sent are the same there is nothing to train a probe on. The next block is then priced by the rule
    of succession, :math:`p(c) = (n_c + 1) / (t + C)`.

    A length depends on the number of rows; compare representations of the same rows.

    **Privacy.** A measurement with this probe, not a guarantee: a better probe has a shorter code.

    References
    ----------
    Voita and Titov (2020), "Information-theoretic probing with minimum description length".
    Maheshwari, Denis, Keller and Bellet (2022), "Fair NLP models with differentially private text encoders",
    appendix D.1, equation 10.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import online_code_length
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], size=500)
    >>> H = rng.normal(size=(500, 5)) + 2 * (sex == "f")[:, None]
    >>> length = online_code_length(H, sex, random_state=0)
    >>> length.uniform_bits, length.compression > 4
    (500.0, True)
    """
    H = check_representation(H)
    groups = check_sensitive_features(sensitive_features, len(H), min_groups=2, intersection=True)
    attackers = named_attackers(probe)
    (_, attacker), *more = attackers
    if more or not hasattr(attacker, "predict_proba"):
        raise ValueError(
            "probe must be one classifier with predict_proba, because a code needs probabilities; "
            f"got {', '.join(name for name, _ in attackers)}."
        )
    if not 0 < smoothing <= 1:
        raise ValueError(f"smoothing must be greater than 0 and at most 1; got {smoothing!r}.")
    n_orders = check_count(n_orders, "n_orders")
    if fractions is None:
        fractions = REFERENCE_FRACTIONS if reference_compatible else FRACTIONS
    ends = block_ends(fractions, len(H))
    stream = random_stream(random_state)
    indices, n_groups = groups.indices[:, 0], groups.n_groups[0]
    tasks = []
    for kind in ("true", "control")[: 1 + bool(control)]:
        for order in range(n_orders):
            rows = stream.generator.permutation(len(H))
            labels = indices if kind == "true" else stream.generator.permutation(indices)
            for known, end in itertools.pairwise(ends):
                block = rows[0 if reference_compatible else known : end]
                receiver = clone_with_seed(attacker, stream.seed())
                tasks.append((kind, order, (receiver, H, labels, n_groups, rows[:known], block, smoothing)))
    prices = parallel_results(lambda: (delayed(_block_bits)(*arguments) for _, _, arguments in tasks), n_jobs)
    lengths = {kind: [ends[0] * math.log2(n_groups)] * n_orders for kind in ("true", "control")}
    for (kind, order, _), price in zip(tasks, prices):
        lengths[kind][order] += price
    uniform = (ends[0] + sum(ends[1:])) if reference_compatible else len(H)
    return CodeLength(
        bits=float(np.mean(lengths["true"])),
        bits_per_order=tuple(lengths["true"]),
        uniform_bits=uniform * math.log2(n_groups),
        control_bits=float(np.mean(lengths["control"])) if control else None,
        n_samples=len(H),
        n_groups=n_groups,
    )


def block_ends(fractions: Sequence[float], n_samples: int) -> list[int]:
    """Turn fractions into numbers of rows, without empty blocks."""
    shares = [float(fraction) for fraction in fractions]
    if not shares or shares[-1] != 1 or any(not a < b for a, b in zip([0.0, *shares], shares)):
        raise ValueError(f"fractions must increase from above 0 to exactly 1; got {tuple(fractions)!r}.")
    # The nudge undoes rounding: 0.29 * 100 is a little less than 29.
    ends = [math.floor(share * n_samples + 1e-9) for share in shares]
    return sorted({end for end in ends if end > 0})


def _block_bits(
    probe: Any, H: np.ndarray, labels: np.ndarray, n_groups: int, known: np.ndarray, block: np.ndarray, smoothing: float
) -> float:
    """Price the labels of a block for somebody who knows those of the rows before it."""
    counts = np.bincount(labels[known], minlength=n_groups)
    if np.count_nonzero(counts) == 1:
        return float(-np.log2((counts + 1) / (len(known) + n_groups))[labels[block]].sum())
    probe.fit(H[known], labels[known])
    probabilities = np.zeros((len(block), n_groups))
    probabilities[:, np.asarray(probe.classes_).astype(np.intp)] = probe.predict_proba(H[block])
    right = probabilities[np.arange(len(block)), labels[block]]
    return float(-np.log2((1 - smoothing) * right + smoothing / n_groups).sum())
