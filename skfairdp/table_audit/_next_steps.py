"""What to do next, from what was found."""

from typing import TYPE_CHECKING

from skfairdp.table_audit._plain_words import listed, points

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_MOST_CHECKS = 3  # further advice stands beside its finding
_LEAK = 0.05  # an attacker this much better than naming the largest group is worth a step


def next_steps(
    result: "TableAudit", state: str, alternative: str | None, private: str | None, narrower: bool
) -> tuple[str, ...]:
    """Say what to do next, the most urgent first.

    Parameters
    ----------
    result : TableAudit
        The findings.
    state : {"there", "unclear", "chance", "undefined"}
        Whether the reference has a gap.
    alternative : str or None
        A method that the test rows show to be fairer, and that was not chosen.
    private : str or None
        The choice among the private methods.
    narrower : bool
        Whether the chosen method's gap is narrower than the reference's beyond chance.
    """
    steps = [check.advice for check in sorted(result.checks, key=lambda check: not check.serious)][:_MOST_CHECKS]
    if result.settings["assumed_positive"]:
        steps.append(
            f"Name the favourable outcome: add --positive LABEL, one of {listed(result.settings['classes'], 5)}."
        )
    if state == "undefined":
        steps.append("Merge small groups, or audit one sensitive column at a time, so that groups can be compared.")
    elif not (result.table["kind"] != "system").any():
        if state != "chance":
            steps.append('See what fairer models would cost: leave out "--methods none".')
    elif narrower:
        steps.append(
            f"Try {result.best} in place of {result.reference}: in Python it is result.models[{result.best!r}]."
        )
    elif alternative is not None:
        cost = max(
            0.0, float(result.table.loc[result.reference, "accuracy"] - result.table.loc[alternative, "accuracy"])
        )
        steps.append(f"Look at {alternative}: on the test rows it is fairer for {points(cost)} of accuracy.")
    elif state != "chance" and not {"fair trees", "fair private trees"} & set(result.table.index):
        steps.append('Try trees that are corrected for fairness: --methods "trees, fair trees".')
    if any(len(names) for names in result.too_few.values()):
        steps.append("Collect more rows of the groups that are too small, or merge them, before you speak of them.")
    if result.table.loc[result.reference, "advantage_lower"] > _LEAK and private not in (None, result.best):
        steps.append(
            f"What {result.reference} gives away tells the group: hand out answers only, or use {private}, which "
            "has an epsilon."
        )
    if state != "undefined":
        steps.append(f'Guard it in CI: add --fail-if "{result.fairness} > 0.05" to the command.')
        steps.append("Audit again later with --json FILE, and compare: skfairdp compare old.json new.json.")
    return tuple(dict.fromkeys(steps))
