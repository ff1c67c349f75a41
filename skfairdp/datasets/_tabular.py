"""Tables about persons: income, credit, a bank's calls, voices, and attributes of celebrities' pictures."""

import io
import os
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skfairdp.datasets import _fetch
from skfairdp.datasets._bunch import check_choice, make_bunch

_ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
#: The median of total_UPDRS over all recordings, above which the PATE study calls a patient positive.
_UPDRS_MEDIAN = 27.576


def _read_csv(file: _fetch.RemoteFile, data_home: Any, download_if_missing: bool, **form: Any) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(_fetch.read_published_file(file, data_home, download_if_missing)), **form)


def _finish_features(
    data: pd.DataFrame,
    target: pd.Series,
    sensitive_features: pd.Series | pd.DataFrame,
    *,
    as_frame: bool,
    scaler: Any = None,
    **entries: Any,
) -> Any:
    """Name the types of the features, and add an unfitted transformer with what must be learned from rows."""
    types = {
        name: "numeric" if pd.api.types.is_numeric_dtype(dtype) else "categorical"
        for name, dtype in data.dtypes.items()
    }
    chosen = {
        kind: [name if as_frame else j for j, (name, its) in enumerate(types.items()) if its == kind]
        for kind in ("numeric", "categorical")
    }
    preprocessor = ColumnTransformer(
        [
            ("categorical", OneHotEncoder(handle_unknown="ignore", sparse_output=False), chosen["categorical"]),
            ("numeric", StandardScaler() if scaler is None else scaler, chosen["numeric"]),
        ],
        verbose_feature_names_out=False,
    )
    return make_bunch(
        data,
        target,
        sensitive_features,
        as_frame=as_frame,
        feature_types=types,
        preprocessor=preprocessor,
        **entries,
    )


_ADULT_DESCR = """\
Adult (census income)
---------------------
48,842 persons (45,222 without missing values) from the US census of 1994; predict whether a person earns more than
50,000 dollars a year. Published split: 32,561 training and 16,281 test rows.

Origin: B. Becker and R. Kohavi, UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20.
Licence: CC BY 4.0.

Known harms and misuse: the threshold of 50,000 dollars is the 76th percentile of the whole population but the 88th
of Black and the 89th of women's incomes, so that base rates and any measured unfairness hang on it (Ding et al. 2021,
"Retiring Adult"). Sex is binary and race has five boxes, both as the census asked. `fnlwgt` is a sampling weight and
no property of a person. Missing values are not missing at random. Results on this set say little about today, about
other countries, or about a decision that anybody takes. The rows of the test file carry a dot after the label and the
file begins with a comment; both are removed here.
"""


def fetch_adult(
    *,
    subset: str = "all",
    preset: str | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the Adult data set, to predict whether a person earns more than 50,000 dollars a year.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The published files to take.
    preset : {None, "federate", "wu", "pate"}, default=None
        ``None``: all rows, missing values as nan; sex and race are the sensitive features.
        ``"federate"``: as the public code of [1]_: complete rows (45,222), without race, school years grouped,
        country US or not; sex is sensitive. The preprocessor scales numbers to [-1, 1].
        ``"wu"``: the nine yes/no features of [2]_, which the appendix of [1]_ names; sex is sensitive.
        ``"pate"``: as in [3]_: complete rows; the groups are White and Non-White.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the sensitive attribute, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects. Without it, words and numbers share an array of dtype object.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data`, `target` (1 is more than 50,000), `sensitive_features`, `feature_names`,
        `feature_types`, `target_names`, `subset` (the file of each row), `preprocessor` (an unfitted
        ColumnTransformer with the part of the preset that learns from rows), `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller and A. Bellet. Fair NLP models with differentially private text
       encoders. Findings of EMNLP 2022.
    .. [2] Y. Wu, L. Zhang and X. Wu. On convexity and bounds of fairness-aware classification. WWW 2019.
    .. [3] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto. A fairness analysis on private aggregation of teacher
       ensembles. 2021.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_adult
    >>> adult = fetch_adult(preset="federate", as_frame=True)  # doctest: +SKIP
    >>> adult.target.groupby(adult.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'Female': 0.114, 'Male': 0.312}
    """
    check_choice(subset, "subset", ("all", "train", "test"))
    check_choice(preset, "preset", (None, "federate", "wu", "pate"))
    # The test file begins with a comment, which "|" introduces, and its labels end in a dot.
    form = {"names": list(_ADULT_COLUMNS), "comment": "|", "skipinitialspace": True, "na_values": "?"}
    parts = [
        _read_csv(file, data_home, download_if_missing, **form).assign(subset=name)
        for name, file in _fetch.ADULT.items()
        if subset in ("all", name)
    ]
    rows = pd.concat(parts, ignore_index=True)
    if preset in ("federate", "pate"):
        rows = rows.dropna(ignore_index=True)
    target = rows["income"].str.rstrip(".").eq(">50K").astype(np.int64)
    data = rows.drop(columns=["income", "subset"])
    scaler = None
    sensitive: pd.Series | pd.DataFrame
    if preset == "federate":
        data, sensitive = _adult_federate(data), data["sex"]
        scaler = MinMaxScaler(feature_range=(-1, 1))
    elif preset == "wu":
        data, sensitive = _adult_wu(data), data["sex"]
        scaler = "passthrough"
    elif preset == "pate":
        sensitive = data["race"].where(data["race"] == "White", "Non-White")
        data = data.drop(columns="race")
    else:
        sensitive = data[["sex", "race"]]
        data = data.drop(columns=["sex", "race"])
    return _finish_features(
        data,
        target,
        sensitive,
        as_frame=as_frame,
        return_X_y=return_X_y,
        scaler=scaler,
        target_names=["<=50K", ">50K"],
        subset=rows["subset"].to_numpy(dtype=object),
        DESCR=_ADULT_DESCR,
    )


def _adult_federate(rows: pd.DataFrame) -> pd.DataFrame:
    grades = dict.fromkeys(["Preschool", "1st-4th", "5th-6th", "7th-8th"], "primary-middle-school")
    grades |= dict.fromkeys(["9th", "10th", "11th", "12th"], "high-school")
    country = rows["native-country"]
    return rows.drop(columns=["race", "sex"]).assign(
        **{
            "education": rows["education"].replace(grades),
            "native-country": country.where(country == "United-States", "other"),
        }
    )


def _adult_wu(rows: pd.DataFrame) -> pd.DataFrame:
    """Nine yes/no questions; a missing answer is a no."""
    answers = {
        "age > 37": rows["age"] > 37,
        "private employer": rows["workclass"] == "Private",
        "education-num > 9": rows["education-num"] > 9,
        "married": rows["marital-status"] == "Married-civ-spouse",
        "craft or repair": rows["occupation"] == "Craft-repair",
        "not in family": rows["relationship"] == "Not-in-family",
        "white": rows["race"] == "White",
        "more than 40 hours": rows["hours-per-week"] > 40,
        "born in US": rows["native-country"] == "United-States",
    }
    return pd.DataFrame(answers).astype(np.int64)


_CREDIT_DEFAULT_DESCR = """\
Default of credit card clients
------------------------------
30,000 clients of a bank in Taiwan, 2005; predict whether a client defaults in the next month (22 %).

Origin: I-C. Yeh, UCI Machine Learning Repository, https://doi.org/10.24432/C55S3H.
Licence: CC BY 4.0.

Known harms and misuse: the codes of EDUCATION (0, 5, 6), MARRIAGE (0) and PAY_* (-2, 0) go beyond the published
description, and nobody knows what they mean. The data come from a debt crisis and one bank. In lending, both mistakes
hurt: a refused loan the client, a default the client and the bank; accuracy counts them as equal. `ID` is dropped.
"""


def fetch_credit_default(
    *,
    preset: str | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the credit card clients of a bank, to predict whether a client defaults next month.

    Parameters
    ----------
    preset : {None, "pate"}, default=None
        ``None``: education and marriage are categories. ``"pate"``: every column is a number to be standardised, as
        in [1]_. Sex is the sensitive feature.
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
        With the keys `data`, `target` (1 is a default), `sensitive_features`, `feature_names`, `feature_types`,
        `target_names`, `preprocessor` (an unfitted ColumnTransformer), `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto. A fairness analysis on private aggregation of teacher
       ensembles. 2021.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_credit_default
    >>> credit = fetch_credit_default(as_frame=True)  # doctest: +SKIP
    >>> credit.target.groupby(credit.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'female': 0.208, 'male': 0.242}
    """
    check_choice(preset, "preset", (None, "pate"))
    rows = _read_csv(_fetch.CREDIT_DEFAULT, data_home, download_if_missing)
    data = rows.drop(columns=["ID", "SEX", "class"])
    if preset is None:
        data = data.astype({"EDUCATION": str, "MARRIAGE": str})
    return _finish_features(
        data,
        rows["class"].astype(np.int64).rename("default"),
        rows["SEX"].map({1: "male", 2: "female"}).rename("sex"),
        as_frame=as_frame,
        return_X_y=return_X_y,
        target_names=["paid", "default"],
        DESCR=_CREDIT_DEFAULT_DESCR,
    )


_BANK_DESCR = """\
Bank marketing
--------------
45,211 phone calls of a Portuguese bank, 2008 to 2010; predict whether the client subscribes a term deposit (12 %).

Origin: S. Moro, P. Rita and P. Cortez, UCI Machine Learning Repository, https://doi.org/10.24432/C5K306.
Licence: CC BY 4.0.

Known harms and misuse: `duration` is known only after the call has ended, when the answer is known too: a model that
uses it cannot be used to decide whom to call. It is therefore left out unless a preset asks for it. Rows are ordered
by date; a random split lets a model look into the future. The group is the client's age, which also remains a feature.
"""


def fetch_bank_marketing(
    *,
    preset: str | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the bank marketing data set, to predict whether a client subscribes a term deposit.

    Parameters
    ----------
    preset : {None, "pate"}, default=None
        ``None``: without the duration of the call, which is not known before. ``"pate"``: all columns, as in [1]_. The
        groups are clients under 60, and of 60 or older; [1]_ does not say where clients of exactly 60 belong.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the sensitive attribute, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects. Without it, words and numbers share an array of dtype object.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data`, `target` (1 is a subscription), `sensitive_features`, `feature_names`, `feature_types`,
        `target_names`, `preprocessor` (an unfitted ColumnTransformer), `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto. A fairness analysis on private aggregation of teacher
       ensembles. 2021.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_bank_marketing
    >>> bank = fetch_bank_marketing(as_frame=True)  # doctest: +SKIP
    >>> bank.target.groupby(bank.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'60 or older': 0.336, 'under 60': 0.108}
    """
    check_choice(preset, "preset", (None, "pate"))
    rows = _read_csv(_fetch.BANK, data_home, download_if_missing, sep=";")
    group = np.where(rows["age"] < 60, "under 60", "60 or older")
    return _finish_features(
        rows.drop(columns=["y"] if preset == "pate" else ["y", "duration"]),
        rows["y"].eq("yes").astype(np.int64).rename("subscribed"),
        pd.Series(group, name="age_group"),
        as_frame=as_frame,
        return_X_y=return_X_y,
        target_names=["no", "yes"],
        DESCR=_BANK_DESCR,
    )


_PARKINSONS_DESCR = """\
Parkinsons telemonitoring
-------------------------
5,875 voice recordings of 42 persons with early Parkinson's disease; predict the UPDRS score of symptoms.

Origin: A. Tsanas and M. Little, UCI Machine Learning Repository, https://doi.org/10.24432/C5ZS3N.
Licence: CC BY 4.0.

Known harms and misuse: about 140 recordings come from each person. A random split of the rows puts the same voice
in training and test, and a model then recognises persons instead of symptoms: split by `subject`. With 14 women and
28 men, group differences are differences of a handful of persons. The scores were measured three times a person and
interpolated in between. `motor_UPDRS` is a part of `total_UPDRS` and no feature.
"""


def fetch_parkinsons(
    *,
    preset: str | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the Parkinsons telemonitoring data set, to predict how strong a patient's symptoms are.

    Parameters
    ----------
    preset : {None, "pate"}, default=None
        ``None``: the target is the total UPDRS score, a number. ``"pate"``: as in [1]_, the target says whether the
        score exceeds its median over all recordings, 27.576. Sex is the sensitive feature.
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
        With the keys `data`, `target`, `sensitive_features`, `subject` (the person of each recording: split by it,
        for instance with ``GroupShuffleSplit``), `motor_UPDRS`, `feature_names`, `feature_types`, `target_names`,
        `preprocessor` (an unfitted ColumnTransformer), `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto. A fairness analysis on private aggregation of teacher
       ensembles. 2021.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_parkinsons
    >>> voices = fetch_parkinsons(as_frame=True)  # doctest: +SKIP
    >>> voices.subject.groupby(voices.sensitive_features).nunique().to_dict()  # doctest: +SKIP
    {'female': 14, 'male': 28}
    """
    check_choice(preset, "preset", (None, "pate"))
    rows = _read_csv(_fetch.PARKINSONS, data_home, download_if_missing)
    target = rows["total_UPDRS"]
    if preset == "pate":
        target = target.gt(_UPDRS_MEDIAN).astype(np.int64).rename("above_median")
    subject, motor = rows["subject#"].rename("subject"), rows["motor_UPDRS"]
    return _finish_features(
        rows.drop(columns=["subject#", "sex", "motor_UPDRS", "total_UPDRS"]),
        target,
        rows["sex"].map({0: "male", 1: "female"}),
        as_frame=as_frame,
        return_X_y=return_X_y,
        target_names=["up to median", "above median"] if preset == "pate" else ["total_UPDRS"],
        subject=subject if as_frame else subject.to_numpy(),
        motor_UPDRS=motor if as_frame else motor.to_numpy(),
        DESCR=_PARKINSONS_DESCR,
    )


_SUBSETS = np.array(["train", "valid", "test"], dtype=object)


_CELEBA_DESCR = """\
CelebA attributes
-----------------
40 binary attributes of 202,599 pictures of 10,177 celebrities, without the pictures.

Origin: Z. Liu, P. Luo, X. Wang and X. Tang. Deep learning face attributes in the wild. ICCV 2015.
https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html
Licence: non-commercial research only; no part may be passed on. By downloading you accept the publisher's terms.

Known harms and misuse: the persons did not consent. Attributes are what paid annotators saw, and some of them are
insults ("Chubby", "Big_Nose") or opinions ("Attractive"); "Male" is a guess from looks, not a person's gender. About
20 pictures show each person, and the published split (train, valid, test) keeps persons apart; a random one does not.
"""


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
    # Line 1 is the number of rows; line 2 names the attributes, but not the first column, the names of the pictures.
    rows = _read_csv(_fetch.CELEBA_ATTRIBUTES, data_home, download_if_missing, sep=r"\s+", skiprows=1)
    rows = rows.reset_index(drop=True).astype(np.int8)
    names = list(rows)
    for name, chosen in (("target", [target]), ("sensitive", several)):
        unknown = [value for value in chosen if value not in names]
        if unknown or not chosen:
            raise ValueError(f"{name} must name attributes of CelebA; got {unknown}. Allowed are {', '.join(names)}.")
    if target in several or len(set(several)) < len(several):
        raise ValueError(f"target={target!r} and sensitive={sensitive!r} must be different attributes.")

    partition = _read_csv(_fetch.CELEBA_PARTITION, data_home, download_if_missing, sep=r"\s+", header=None)
    parts = _SUBSETS[partition[1]]
    if subset != "all":
        rows, parts = rows[parts == subset].reset_index(drop=True), parts[parts == subset]
    groups = pd.DataFrame({name: np.where(rows[name] == 1, name, f"not {name}") for name in several})
    data = rows.drop(columns=[target, *several])
    return make_bunch(
        data,
        rows[target].eq(1).astype(np.int64),
        groups[sensitive] if isinstance(sensitive, str) else groups,
        as_frame=as_frame,
        return_X_y=return_X_y,
        feature_types=dict.fromkeys(data.columns, "binary"),
        target_names=[f"not {target}", target],
        subset=parts,
        DESCR=_CELEBA_DESCR,
    )
