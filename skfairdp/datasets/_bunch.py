"""The form in which every data set is returned."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch


def make_bunch(
    data: pd.DataFrame | pd.Series,
    target: pd.Series | None,
    sensitive_features: pd.Series | pd.DataFrame | None,
    *,
    as_frame: bool,
    return_X_y: bool,
    **entries: Any,
) -> Bunch | tuple[Any, Any]:
    """Return a Bunch, or ``(data, target)``, of pandas objects or of arrays.

    The parts come in as pandas objects; ``as_frame=False`` gives their arrays (of dtype object where
    columns hold words), and ``as_frame=True`` adds ``frame``, which has all of them side by side. The columns of
    ``data`` become ``feature_names``.
    """
    for name, value in (("as_frame", as_frame), ("return_X_y", return_X_y)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False; got {value!r}.")
    parts: dict[str, Any] = {"data": data, "target": target, "sensitive_features": sensitive_features}
    frame = pd.concat([part for part in parts.values() if part is not None], axis=1) if as_frame else None
    if not as_frame:
        parts = {name: None if part is None else _as_array(part) for name, part in parts.items()}
    if return_X_y:
        return parts["data"], parts["target"]
    return Bunch(**parts, frame=frame, feature_names=list(pd.DataFrame(data).columns), **entries)


def _as_array(part: pd.DataFrame | pd.Series) -> np.ndarray:
    numeric = all(map(pd.api.types.is_numeric_dtype, pd.DataFrame(part).dtypes))
    return part.to_numpy() if numeric else part.to_numpy(dtype=object)


def check_choice(value: Any, name: str, allowed: Sequence[Any]) -> None:
    """Refuse a value that is not among the allowed ones."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
