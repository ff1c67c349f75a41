"""Conditions under which an audit fails (``--fail-if``): ``tpr_gap > 0.05``, ``unconstrained: leakage >= 0.7``."""

import math
import operator
import re
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


#: Columns of ``TableAudit.table`` that a condition may be about.
METRICS = [
    "accuracy",
    "balanced_accuracy",
    *_with_interval("tpr_gap"),
    *_with_interval("grms"),
    "equalized_odds_gap",
    "demographic_parity_gap",
    "accuracy_gap",
    "worst_group_accuracy",
    *_with_interval("leakage"),
    "leakage_auc",
    "majority",
    "advantage",
    "code_bits",
    "epsilon",
    "delta",
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
        The row; None is the chosen method.
    """

    metric: str
    sign: str
    number: float
    method: str | None = None

    @classmethod
    def parse(cls, text: str) -> "FailCondition":
        """Read a condition as it is written on the command line."""
        match = _FORM.fullmatch(text)
        try:
            number = float(match["number"]) if match else math.nan
        except ValueError:
            number = math.nan
        if match is None or math.isnan(number):
            raise ValueError(
                f"{text!r} is no condition; write a metric, a comparison and a number, as in 'tpr_gap > 0.05' or "
                "'unconstrained: leakage > 0.7'."
            )
        return cls(check_choice(match["metric"], METRICS, "metric"), match["sign"], number, match["method"])

    def reason_to_fail(self, result: "TableAudit") -> str | None:
        """Return the reason why the audit fails, or None if the condition does not hold.

        A figure that is undefined fails too: what cannot be checked must not pass.
        """
        table = result.table
        metric = check_choice(self.metric, [name for name in METRICS if name in table], "metric")
        method = result.best if self.method is None else check_choice(self.method, list(table.index), "method")
        value = float(table.loc[method, metric])
        if math.isnan(value):
            return f"{metric} of {method} is undefined"
        if _COMPARISONS[self.sign](value, self.number):
            return f"{metric} of {method} is {value:.4g}, and {self.sign} {self.number:g} was forbidden"
        return None
