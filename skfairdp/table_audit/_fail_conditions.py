"""Conditions under which an audit fails (``--fail-if``): ``tpr_gap > 0.05``, ``fair trees: leakage >= 0.7``."""

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skfairdp._validation import check_choice

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_COMPARISONS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def _with_interval(name: str) -> list[str]:
    return [name, f"{name}_lower", f"{name}_upper"]


def _of_gap(name: str) -> list[str]:
    return [*_with_interval(name), f"{name}_measured", f"{name}_p_value"]


#: Columns of ``TableAudit.table`` that a condition may be about.
METRICS = [
    *_with_interval("accuracy"),
    "balanced_accuracy",
    *_of_gap("tpr_gap"),
    *_of_gap("grms"),
    *_of_gap("equalized_odds_gap"),
    *_of_gap("demographic_parity_gap"),
    *_of_gap("calibration_gap"),
    *_of_gap("accuracy_gap"),
    *_with_interval("within_strata_gap"),
    *_with_interval("selection_ratio"),
    "worst_group_accuracy",
    *_with_interval("leakage"),
    *_with_interval("leakage_auc"),
    *_with_interval("advantage"),
    "majority",
    "code_bits",
    "epsilon",
    "delta",
    "n_rows",
    "seconds",
    "search_seconds",
]
_FORM = re.compile(r"\s*(?:(?P<method>[^:]+?)\s*:)?\s*(?P<metric>\w+)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<number>\S+)\s*")


@dataclass(frozen=True)
class FailCondition:
    """A condition on one figure of one method, under which an audit fails.

    Attributes
    ----------
    metric : str
        A numeric column of ``TableAudit.table``.
    sign : str
        One of ``> >= < <= == !=``.
    number : float
        What it is compared with.
    method : str or None
        The row; None is the reference: the system that exists, the user's own model, or the best plain model.

    Examples
    --------
    >>> from skfairdp.table_audit import FailCondition
    >>> FailCondition.parse("fair trees: leakage > 0.7")
    FailCondition(metric='leakage', sign='>', number=0.7, method='fair trees')
    """

    metric: str
    sign: str
    number: float
    method: str | None = None

    @classmethod
    def parse(cls, text: str) -> "FailCondition":
        """Read a condition as it is written on the command line.

        Parameters
        ----------
        text : str
            Such as ``tpr_gap > 0.05``.
        """
        match = _FORM.fullmatch(text)
        try:
            number = float(match["number"]) if match else math.nan
        except ValueError:
            number = math.nan
        if match is None or math.isnan(number):
            raise ValueError(
                f"{text!r} is no condition; write a metric, a comparison and a number, as in 'tpr_gap > 0.05' or "
                "'fair trees: leakage > 0.7'."
            )
        return cls(check_choice(match["metric"], METRICS, "metric"), match["sign"], number, match["method"])

    def check_before(self, methods: Sequence[str], fairness: str, within_strata: bool) -> None:
        """Refuse a condition about what the audit will not have, before any time is spent on it.

        Parameters
        ----------
        methods : sequence of str
            Systems and methods that will be judged.
        fairness : str
            The definition that they are judged by.
        within_strata : bool
            Whether groups are compared within strata.
        """
        if self.method is not None:
            check_choice(self.method, methods, "method")
        if self.metric.startswith("calibration_gap") and fairness != "calibration":
            raise ValueError(f"{self.metric} is there with --fairness calibration alone.")
        if self.metric.startswith("within_strata_gap") and not within_strata:
            raise ValueError(f"{self.metric} is there with --control alone.")

    def reason_to_fail(self, result: "TableAudit") -> str | None:
        """Return the reason why the audit fails, or None if the condition does not hold.

        A figure that is undefined fails too: what cannot be checked must not pass.

        Parameters
        ----------
        result : TableAudit
            The audit.
        """
        table = result.table
        metric = check_choice(self.metric, [name for name in METRICS if name in table], "metric")
        method = result.reference if self.method is None else check_choice(self.method, list(table.index), "method")
        value = float(table.loc[method, metric])
        if math.isnan(value):
            return f"{metric} of {method} is undefined"
        if _COMPARISONS[self.sign](value, self.number):
            return f"{metric} of {method} is {value:.4g}, and {self.sign} {self.number:g} was forbidden"
        return None
