"""Attributes of celebrities' pictures."""

import io
import os
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.datasets import _descriptions, _files
from skfairdp.datasets._bunch import check_choice, pack
from skfairdp.datasets._fetch import read

_SUBSETS = np.array(["train", "valid", "test"], dtype=object)


def fetch_celeba_attributes(
    *,
    target: str = "Smiling",
    sensitive: str | list[str] = "Male",
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the attributes of CelebA: 40 yes/no statements about each of 202,599 pictures.

    The defaults are those of [1]_: "Smiling" is predicted from 38 attributes and "Male" is sensitive.

    Parameters
    ----------
    target : str, default="Smiling"
        The attribute to predict.
    sensitive : str or list of str, default="Male"
        The sensitive attribute, or several. Neither these nor the target are among the features.
    subset : {"all", "train", "valid", "test"}, default="all"
        The part of the published split, which keeps persons apart.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the sensitive attribute, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (int8, 1 for yes and -1 for no), `target` (1 for yes, 0 for no), `sensitive_features`
        (such as "Male" and "not Male"), `feature_names`, `feature_types`, `target_names`, `subset` (the part of
        each row), `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller and A. Bellet. Fair NLP models with differentially private text
       encoders. Findings of EMNLP 2022.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_celeba_attributes
    >>> celeba = fetch_celeba_attributes(as_frame=True)  # doctest: +SKIP
    >>> celeba.target.groupby(celeba.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'Male': 0.4, 'not Male': 0.541}
    """
    check_choice(subset, "subset", ("all", *_SUBSETS))
    several = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    content = read(_files.CELEBA_ATTRIBUTES, data_home, download_if_missing)
    names = content[: content.index(b"\n", 10)].split(b"\n")[1].decode().split()  # line 1 is the number of rows
    for name, chosen in (("target", [target]), ("sensitive", several)):
        unknown = [value for value in chosen if value not in names]
        if unknown or not chosen:
            raise ValueError(f"{name} must name attributes of CelebA; got {unknown}. Allowed are {', '.join(names)}.")
    if target in several or len(set(several)) < len(several):
        raise ValueError(f"target={target!r} and sensitive={sensitive!r} must be different attributes.")

    rows = pd.read_csv(
        io.BytesIO(content),
        sep=r"\s+",
        skiprows=2,
        header=None,
        names=["picture", *names],
        usecols=names,
        dtype=dict.fromkeys(names, np.int8),
    )
    partition = read(_files.CELEBA_PARTITION, data_home, download_if_missing)
    parts = _SUBSETS[[int(line.split()[1]) for line in partition.decode().split("\n") if line]]
    if subset != "all":
        rows, parts = rows[parts == subset].reset_index(drop=True), parts[parts == subset]
    groups = pd.DataFrame({name: np.where(rows[name] == 1, name, f"not {name}") for name in several})
    data = rows.drop(columns=[target, *several])
    return pack(
        data,
        rows[target].eq(1).astype(np.int64),
        groups[sensitive] if isinstance(sensitive, str) else groups,
        as_frame=as_frame,
        return_X_y=return_X_y,
        feature_names=list(data.columns),
        feature_types=dict.fromkeys(data.columns, "binary"),
        target_names=[f"not {target}", target],
        subset=parts,
        DESCR=_descriptions.CELEBA,
    )
