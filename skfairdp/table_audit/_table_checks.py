"""What a reader should know of a table before any figure of it is trusted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableCheck:
    """A finding about the table itself.

    Attributes
    ----------
    kind : str
        What was found, as one word: ``"gives_target_away"``, ``"identifier"``, ...
    columns : tuple of str
        Where it was found.
    serious : bool
        Whether the figures cannot be trusted before it is settled.
    sentence : str
        The finding.
    advice : str
        What to do about it.
    """

    kind: str
    columns: tuple[str, ...]
    serious: bool
    sentence: str
    advice: str
