"""The objective of FEDERATE, with a fairness definition optimised directly beside the adversary."""

import copy
from typing import Any, NamedTuple

import torch
from torch import nn

from skfairdp.neural._federate_module import Outputs

# Below this gap the penalty is quadratic: in a batch with few positives, a gap of a few hundredths is mostly chance.
_GAP_OF_CHANCE = 0.1


class Targets(NamedTuple):
    """What a batch is judged by: class indices, group indices (a column per sensitive column), and weights or None."""

    y: torch.Tensor
    groups: torch.Tensor | None
    weight: torch.Tensor | None


def weighted_nll(log_p: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Weighted mean of the negative log-probabilities of ``y``."""
    if weight is None:
        return nn.functional.nll_loss(log_p, y)
    return weighted_mean(nn.functional.nll_loss(log_p, y, reduction="none"), weight)


def weighted_mean(losses: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Mean of one loss per row."""
    return losses.mean() if weight is None else (losses * weight).sum() / weight.sum()


def make_classification_loss(criterion: Any, params: dict[str, Any]) -> nn.Module | None:
    """Make the loss that a user asked for, so that it gives one loss per row.

    Parameters
    ----------
    criterion : "cross_entropy", torch loss class or instance
        Takes log-probabilities of shape (n, n_classes) and class indices.
    params : dict
        Arguments of a class.

    Returns
    -------
    torch.nn.Module or None
        None for plain cross-entropy, which the module's log-probabilities give without another step.

    Examples
    --------
    >>> from torch import nn
    >>> from skfairdp.neural import make_classification_loss
    >>> make_classification_loss(nn.NLLLoss, {}).reduction
    'none'
    """
    if isinstance(criterion, str):
        return nn.CrossEntropyLoss(**{**params, "reduction": "none"}) if params else None
    if not isinstance(criterion, nn.Module):
        made = criterion(**{**params, "reduction": "none"})
    elif params:
        raise TypeError(
            f"criterion__{next(iter(params))} is an argument of a loss class, but criterion is a finished "
            f"{type(criterion).__name__}; give the class instead."
        )
    else:
        made = copy.deepcopy(criterion)
        if "reduction" in vars(made):
            vars(made)["reduction"] = "none"
    if not isinstance(made, nn.Module):
        raise TypeError(f"criterion must be a torch loss; the callable returned {type(made).__name__}.")
    return made


def expected_gap(
    p: torch.Tensor,
    y: torch.Tensor,
    group: torch.Tensor,
    n_groups: int,
    fairness: str,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """Largest difference between two groups' expected rates, averaged over the rates of the definition.

    ``p`` is the probability that each class is answered, so a mean of it is an expected rate: over
    {y = c, z = g} the true positive rate of class c in group g. Two classes have one rate of interest
    (the second class); more have one for each class.

    Parameters
    ----------
    p : Tensor of shape (n, n_classes)
        Probability that each class is answered.
    y, group : Tensor of shape (n,)
        Class and group indices.
    n_groups : int
        Number of groups.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"}
        Which rates: P(pred = y | y, z), P(pred | y, z), or P(pred | z).
    weight : Tensor of shape (n,), optional
        Row weights.

    Returns
    -------
    Tensor
        A scalar in [0, 1]; conditions in which fewer than two groups occur do not count.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import expected_gap
    >>> p = torch.tensor([[0.1, 0.9], [0.6, 0.4]])  # the second class is answered with probability 0.9 and 0.4
    >>> round(float(expected_gap(p, torch.tensor([1, 1]), torch.tensor([0, 1]), 2, "equal_opportunity")), 6)
    0.5
    """
    n_classes = p.shape[1]
    classes = [1] if n_classes == 2 else list(range(n_classes))
    n_conditions = 1 if fairness == "demographic_parity" else n_classes
    condition = torch.zeros_like(y) if n_conditions == 1 else y
    cell = condition * n_groups + group
    w = torch.ones_like(p[:, 0]) if weight is None else weight
    mass = torch.zeros(n_conditions * n_groups, dtype=p.dtype, device=p.device).index_add(0, cell, w)
    total = torch.zeros(n_conditions * n_groups, n_classes, dtype=p.dtype, device=p.device)
    total = total.index_add(0, cell, p * w[:, None])
    rate = (total / mass.clamp_min(1e-12)[:, None]).view(n_conditions, n_groups, n_classes)
    present = (mass > 0).view(n_conditions, n_groups)
    if fairness == "equal_opportunity":
        rate = torch.stack([rate[c, :, c] for c in classes], dim=1)[None]
        present = torch.stack([present[c] for c in classes], dim=1)[None]
    else:
        rate = rate[:, :, classes]
        present = present[:, :, None].expand_as(rate)
    high = rate.masked_fill(~present, -1.0).amax(dim=1)
    low = rate.masked_fill(~present, 2.0).amin(dim=1)
    comparable = present.sum(dim=1) >= 2
    return ((high - low) * comparable).sum() / comparable.sum().clamp_min(1)


def smooth(gap: torch.Tensor) -> torch.Tensor:
    """The gap, but quadratic below 0.1, where its sign is mostly chance; continuous, and with a continuous slope."""
    return torch.where(gap < _GAP_OF_CHANCE, gap.square() / (2 * _GAP_OF_CHANCE), gap - _GAP_OF_CHANCE / 2)


def orthogonality_loss(hidden: list[torch.Tensor], columns: tuple[int, ...]) -> torch.Tensor:
    """Mean overlap ``|| H_i^T H_j ||_F^2`` of adversaries that attack the same column (Han et al. 2021).

    The rows of each hidden layer are scaled to length 1, so that an adversary cannot escape by shrinking.
    """
    units = [nn.functional.normalize(h, dim=1) for h in hidden]
    overlaps = [
        (units[i].T @ units[j]).square().sum() / len(units[i]) ** 2
        for i in range(len(units))
        for j in range(i + 1, len(units))
        if columns[i] == columns[j]
    ]
    return torch.stack(overlaps).mean()


class FederateLoss(nn.Module):
    """``L_class + L_adv + orthogonality + fairness_penalty * gap``; the reversal layer turns L_adv for the encoder.

    Parameters
    ----------
    n_groups : tuple of int
        Groups of each sensitive column; empty without sensitive features.
    columns : tuple of int
        Which column each adversary attacks.
    orthogonality : float
        Weight of the adversaries' overlap.
    fairness_penalty : float
        Weight of the expected gap.
    fairness : str
        The definition that the gap measures.
    selects_by_head : bool
        Whether validation rows of a code channel are also judged by the head's loss; see ``selection_loss``.
    classification : torch.nn.Module or None
        Log-probabilities and class indices to one loss per row; None is cross-entropy.

    Examples
    --------
    >>> from skfairdp.neural import FederateLoss
    >>> FederateLoss(n_groups=(2,), fairness_penalty=1.0).fairness
    'equal_opportunity'
    """

    def __init__(
        self,
        n_groups: tuple[int, ...] = (),
        columns: tuple[int, ...] = (),
        orthogonality: float = 0.0,
        fairness_penalty: float = 0.0,
        fairness: str = "equal_opportunity",
        selects_by_head: bool = False,
        classification: nn.Module | None = None,
    ):
        super().__init__()
        self.n_groups = n_groups
        self.columns = columns
        self.orthogonality = orthogonality
        self.fairness_penalty = fairness_penalty
        self.fairness = fairness
        self.selects_by_head = selects_by_head
        self.classification = classification
        self.parts: dict[str, torch.Tensor] = {}

    def forward(self, outputs: Outputs, targets: Targets) -> torch.Tensor:
        """Return the loss to go down on; ``parts`` keeps its pieces for the history.

        Parameters
        ----------
        outputs : Outputs
            What :class:`FederateModule` returned.
        targets : Targets
            Classes, and groups and weights where there are any.
        """
        loss = self._classifier_loss(outputs, targets)
        self.parts = {"classifier_loss": loss.detach()}
        if outputs.belief_log_p is not None:
            belief_loss = self._classification_loss(outputs.belief_log_p, targets)
            self.parts["belief_loss"] = belief_loss.detach()
            loss = loss + belief_loss
        if outputs.adversary_log_p:
            assert targets.groups is not None
            losses = [
                weighted_nll(log_q, targets.groups[:, column], targets.weight)
                for log_q, column in zip(outputs.adversary_log_p, self.columns)
            ]
            adversary_loss = losses[0] if len(losses) == 1 else torch.stack(losses).mean()
            self.parts["adversary_loss"] = adversary_loss.detach()
            loss = loss + adversary_loss
            if self.orthogonality > 0 and len(losses) > len(set(self.columns)):
                if len(outputs.adversary_hidden) < len(losses):
                    raise ValueError(
                        f"orthogonality={self.orthogonality!r} compares the last hidden layers of adversaries, which "
                        "only a torch.nn.Sequential shows; give such an adversary, or orthogonality=0."
                    )
                loss = loss + self.orthogonality * orthogonality_loss(outputs.adversary_hidden, self.columns)
        if self.fairness_penalty > 0 and targets.groups is not None:
            gaps = [
                expected_gap(outputs.decision, targets.y, targets.groups[:, j], n, self.fairness, targets.weight)
                for j, n in enumerate(self.n_groups)
            ]
            gap = torch.stack(gaps)
            self.parts["fairness_gap"] = gap.detach().mean()
            loss = loss + self.fairness_penalty * smooth(gap).mean()
        return loss

    def selection_loss(self) -> torch.Tensor:
        """What validation rows are judged by: the last batch's loss and gap, without the adversary.

        A code channel is judged by what it believes before it speaks: the head hears one of few codes, so that its
        loss counts hits, and hits among few validation rows are mostly chance. A head that does not start from the
        codebook must have been learned too; then both losses count.
        """
        loss = self.parts["classifier_loss"]
        if "belief_loss" in self.parts:
            loss = self.parts["belief_loss"] + (loss if self.selects_by_head else 0.0)
        return loss + self.fairness_penalty * self.parts["fairness_gap"] if "fairness_gap" in self.parts else loss

    def _classifier_loss(self, outputs: Outputs, targets: Targets) -> torch.Tensor:
        if self.classification is None or outputs.code_probabilities is None or outputs.code_log_p is None:
            return self._classification_loss(outputs.log_p, targets)
        # The expected loss of a code channel is a sum over its codes, whatever the loss.
        n_codes, n_classes = outputs.code_log_p.shape
        classes = torch.arange(n_classes, device=outputs.code_log_p.device)
        losses = self._losses_of_rows(outputs.code_log_p.repeat_interleave(n_classes, 0), classes.repeat(n_codes))
        expected = outputs.code_probabilities @ losses.view(n_codes, n_classes)
        return weighted_mean(expected.gather(1, targets.y[:, None])[:, 0], targets.weight)

    def _classification_loss(self, log_p: torch.Tensor, targets: Targets) -> torch.Tensor:
        if self.classification is None:
            return weighted_nll(log_p, targets.y, targets.weight)
        return weighted_mean(self._losses_of_rows(log_p, targets.y), targets.weight)

    def _losses_of_rows(self, log_p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        assert self.classification is not None
        losses = self.classification(log_p, y)
        if losses.shape != y.shape:
            raise ValueError(
                f"criterion must give one loss for each of {len(y)} rows (reduction='none'), so that rows can be "
                f"weighted; got the shape {tuple(losses.shape)}."
            )
        return losses
