"""Loaders: the traps of the published files in miniature, and the real files where they are."""

import doctest
import gzip
import hashlib
import inspect
import io
import zipfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp import datasets
from skfairdp._validation import check_sensitive_features
from skfairdp.datasets import _fetch
from skfairdp.datasets._fetch import RemoteFile

FETCHERS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("fetch_")]
TABULAR = [
    datasets.fetch_adult,
    datasets.fetch_bank_marketing,
    datasets.fetch_credit_default,
    datasets.fetch_parkinsons,
]


@pytest.fixture
def plant(monkeypatch, tmp_path):
    """Put a small file where a loader looks for a published one."""

    def plant(name, content, key=None, part=None):
        published = getattr(_fetch, name)
        registry, entry = published, key
        file = published if key is None else published[key]
        if part is not None:
            file = file[part]
        small = RemoteFile(file.path, hashlib.sha256(content).hexdigest(), len(content), ())
        place = tmp_path / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        if key is None:
            monkeypatch.setattr(_fetch, name, small)
        elif part is None:
            monkeypatch.setitem(registry, entry, small)
        else:
            both = list(registry[entry])
            both[part] = small
            monkeypatch.setitem(registry, entry, tuple(both))
        return tmp_path

    return plant


# Traps

PERSON = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "


def test_adult_comment_dots_and_question_marks(plant):
    plant("ADULT", (PERSON + "United-States, >50K\n" + PERSON + "?, <=50K\n\n").encode(), key="train")
    home = plant(
        "ADULT",
        ("|1x3 Cross validator\n" + PERSON + "Cuba, >50K.\n" + PERSON + "Cuba, <=50K.\n\n").encode(),
        key="test",
    )
    adult = datasets.fetch_adult(data_home=home, as_frame=True)
    assert adult.target.tolist() == [1, 0, 1, 0]
    assert adult.subset.tolist() == ["train", "train", "test", "test"]
    assert adult.data["native-country"].isna().tolist() == [False, True, False, False]
    assert adult.data["workclass"].tolist() == ["State-gov"] * 4
    assert datasets.fetch_adult(data_home=home, preset="federate").target.tolist() == [1, 1, 0]
    assert datasets.fetch_adult(data_home=home, subset="test").target.tolist() == [1, 0]


def test_adult_of_pate_calls_everybody_by_the_right_name(plant):
    races = ["White", "Black", "Asian-Pac-Islander", "White", "Other"]
    lines = [PERSON.replace("White", race) + "Cuba, <=50K\n" for race in races]
    plant("ADULT", "".join(lines).encode(), key="train")
    home = plant("ADULT", b"|1x3 Cross validator\n" + lines[0].replace("K\n", "K.\n").encode(), key="test")
    adult = datasets.fetch_adult(data_home=home, preset="pate", as_frame=True)
    assert adult.sensitive_features.tolist() == ["White", "Non-White", "Non-White", "White", "Non-White", "White"]
    assert "race" not in adult.data
    whole = datasets.fetch_adult(data_home=home, as_frame=True)
    assert whole.sensitive_features["race"].tolist() == [*races, "White"]


def test_lines_are_split_at_line_feeds_only(plant):
    text = "A slow\x85moving film.  \t0\nA joy\twith a tab\t1\n"
    home = plant("SENTIMENT", text.encode(), key="imdb")
    reviews = datasets.fetch_sentiment_sentences(source="imdb", data_home=home)
    assert reviews.data.tolist() == ["A slow\x85moving film.", "A joy\twith a tab"]
    assert reviews.target.tolist() == [0, 1]


def test_mrpc_line_ends_and_quotes(plant):
    lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t1\t2\tHe said "yes\tHe agreed', "0\t3\t4\tA\tB", ""]
    home = plant("MRPC", b"\xef\xbb\xbf" + "\r\n".join(lines).encode(), key="train")
    pairs = datasets.fetch_mrpc(subset="train", data_home=home)
    assert pairs.data.tolist() == [['He said "yes', "He agreed"], ["A", "B"]]
    assert pairs.target.tolist() == [1, 0]


def test_ag_parts_end_at_equals_signs(plant):
    text = "0\tone\t0 4\n====\n1\ttwo\t1\n2\tthree \t2 3\n====\n3\tfour\t3\n====\n"
    home = plant("AG_ENTITIES", text.encode())
    news = datasets.fetch_ag_entities(data_home=home)
    assert news.data.tolist() == ["one", "two", "three", "four"]
    assert news.subset.tolist() == ["train", "valid", "valid", "test"]
    assert news.sensitive_features.tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0]]
    assert datasets.fetch_ag_entities(data_home=home, subset="valid").target.tolist() == [1, 2]


def test_celeba_header_and_both_kinds_of_line_ends(plant):
    plant("CELEBA_PARTITION", b"000001.jpg 0\r\n000002.jpg 1\n000003.jpg 2")
    home = plant(
        "CELEBA_ATTRIBUTES",
        b"3\r\nMale Smiling Young Bald \r\n"
        b"000001.jpg -1  1  1 -1\r\n000002.jpg  1 -1 -1  1\r\n000003.jpg  1  1 -1 -1\r\n",
    )
    celeba = datasets.fetch_celeba_attributes(data_home=home)
    assert celeba.data.tolist() == [[1, -1], [-1, 1], [-1, -1]]
    assert celeba.feature_names == ["Young", "Bald"]
    assert celeba.target.tolist() == [1, 0, 1]
    assert celeba.sensitive_features.tolist() == ["not Male", "Male", "Male"]
    assert celeba.subset.tolist() == ["train", "valid", "test"]
    both = datasets.fetch_celeba_attributes(data_home=home, sensitive=["Male", "Young"], subset="test", as_frame=True)
    assert both.sensitive_features.to_numpy().tolist() == [["Male", "not Young"]]
    for bad, name in [({"target": "Happy"}, "target"), ({"sensitive": ["Male", "Tall"]}, "sensitive")]:
        with pytest.raises(ValueError, match=name):
            datasets.fetch_celeba_attributes(data_home=home, **bad)
    with pytest.raises(ValueError, match="attributes"):
        datasets.fetch_celeba_attributes(data_home=home, target="Male")


def test_snips_ome_preset_joins_validation_rows(plant):
    for name, intent in [("train", "B"), ("valid", "A"), ("test", "B")]:
        plant("SNIPS", f"play {name} \n".encode(), key=name, part=0)
        home = plant("SNIPS", f"{intent}\n".encode(), key=name, part=1)
    assert datasets.fetch_snips(data_home=home).subset.tolist() == ["train", "valid", "test"]
    ome = datasets.fetch_snips(data_home=home, preset="ome")
    assert ome.subset.tolist() == ["train", "train", "test"]
    assert ome.data.tolist() == ["play train", "play valid", "play test"]
    assert [ome.target_names[k] for k in ome.target] == ["B", "A", "B"]
    with pytest.raises(ValueError, match="subset"):
        datasets.fetch_snips(data_home=home, preset="ome", subset="valid")


def test_bank_is_read_packed_and_leaves_the_duration_out(plant):
    text = '"age";"job";"duration";"y"\n59;"maid";261;"no"\n60;"maid";9;"yes"\n'
    home = plant("BANK", text.encode())
    place = home / "bank/bank-full.csv"
    place.with_name("bank-full.csv.gz").write_bytes(gzip.compress(place.read_bytes()))
    place.unlink()
    bank = datasets.fetch_bank_marketing(data_home=home)
    assert bank.feature_names == ["age", "job"]
    assert bank.sensitive_features.tolist() == ["under 60", "60 or older"]
    assert "duration" in datasets.fetch_bank_marketing(data_home=home, preset="pate").feature_names


def test_glove_words_are_read_as_text(plant):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        rows = [f"{word} " + " ".join([str(k)] * 50) for k, word in enumerate(["null", '"', "nan", "a"])]
        stream.writestr("glove.6B.50d.txt", "\n".join(rows) + "\n")
    home = plant("GLOVE", archive.getvalue())
    glove = datasets.load_glove(50, data_home=home)
    assert glove.words.tolist() == ["null", '"', "nan", "a"]
    assert glove.vectors.dtype == np.float32
    np.testing.assert_array_equal(glove.vectors[:, 0], [0, 1, 2, 3])
    some = datasets.load_glove(50, words=["a", "null", "zebra"], data_home=home, as_frame=True)
    assert some.vectors.loc["a"].tolist() == [3] * 50
    assert some.index == {"null": 0, "a": 1}
    for bad, name in [({"n_components": 64}, "n_components"), ({"words": "a"}, "words")]:
        with pytest.raises((ValueError, TypeError), match=name):
            datasets.load_glove(**bad, data_home=home)


# All of them


@pytest.mark.parametrize("fetch", [*FETCHERS, datasets.load_glove])
def test_a_missing_set_says_what_to_put_where(fetch, tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        fetch(data_home=tmp_path, download_if_missing=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fetch", FETCHERS)
def test_wrong_choices_are_named(fetch, tmp_path):
    for name in ("preset", "subset", "source"):
        if name in inspect.signature(fetch).parameters:
            with pytest.raises(ValueError, match=f"{name} must be one of .* got 'nonsense'"):
                fetch(**{name: "nonsense"}, data_home=tmp_path)


def test_published_files_have_checksum_size_and_https():
    def files(value):
        if isinstance(value, RemoteFile):
            return [value]
        values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else []
        return [file for entry in values for file in files(entry)]

    everything = [file for name, value in vars(_fetch).items() if name.isupper() for file in files(value)]
    assert len(everything) == 21
    for file in everything:
        assert len(file.sha256) == 64
        assert file.size > 0
        assert all(source.startswith("https://") for source in file.sources)
        assert file.sources or file is _fetch.GLOVE_SUBSET


# The real files


#: 200,000 rows take seconds, and its traps are tested in miniature.
LARGE = {datasets.fetch_celeba_attributes}


def large_ones_slow(loaders):
    return [pytest.param(loader, marks=[pytest.mark.slow] * (loader in LARGE)) for loader in loaders]


@pytest.mark.data
@pytest.mark.parametrize("fetch", large_ones_slow(FETCHERS))
def test_real_sets_as_frames_and_arrays(fetch, data_home):
    plain, frame = fetch(data_home=data_home), fetch(data_home=data_home, as_frame=True)
    X, y = fetch(data_home=data_home, return_X_y=True)
    n_rows = len(plain.target)
    for key in ("data", "target", "sensitive_features"):
        if plain[key] is None:
            continue
        assert isinstance(plain[key], np.ndarray)
        assert isinstance(frame[key], pd.DataFrame | pd.Series)
        assert len(plain[key]) == len(frame[key]) == n_rows
        pd.testing.assert_frame_equal(
            pd.DataFrame(frame[key].to_numpy(dtype=object)), pd.DataFrame(plain[key].astype(object))
        )
    assert X.shape == plain.data.shape
    np.testing.assert_array_equal(y, plain.target)
    assert plain.frame is None
    assert len(frame.frame) == n_rows
    assert list(frame.feature_types) == frame.feature_names
    if isinstance(frame.data, pd.DataFrame):
        assert list(frame.data.columns) == frame.feature_names
    if plain.sensitive_features is not None:
        assert min(check_sensitive_features(frame.sensitive_features, n_rows).n_groups) >= 2
    for word in ("Origin:", "Licence:", "Known harms and misuse:"):
        assert word in plain.DESCR


@pytest.mark.data
@pytest.mark.parametrize(
    ("fetch", "options", "shape", "positive"),
    [
        (datasets.fetch_adult, {}, (48_842, 12), 11_687),
        (datasets.fetch_adult, {"subset": "train"}, (32_561, 12), 7_841),
        (datasets.fetch_adult, {"preset": "federate"}, (45_222, 12), 11_208),
        (datasets.fetch_adult, {"preset": "wu"}, (48_842, 9), 11_687),
        (datasets.fetch_adult, {"preset": "pate"}, (45_222, 13), 11_208),
        (datasets.fetch_credit_default, {}, (30_000, 22), 6_636),
        (datasets.fetch_bank_marketing, {}, (45_211, 15), 5_289),
        (datasets.fetch_bank_marketing, {"preset": "pate"}, (45_211, 16), 5_289),
        (datasets.fetch_parkinsons, {"preset": "pate"}, (5_875, 18), 2_934),
        (datasets.fetch_celeba_attributes, {}, (202_599, 38), 97_669),
        (datasets.fetch_celeba_attributes, {"subset": "test"}, (19_962, 38), 9_987),
        (datasets.fetch_sentiment_sentences, {}, (3_000,), 1_500),
        (datasets.fetch_sentiment_sentences, {"source": "imdb"}, (1_000,), 500),
        (datasets.fetch_mrpc, {"subset": "train"}, (4_076, 2), 2_753),
        (datasets.fetch_mrpc, {"subset": "test"}, (1_725, 2), 1_147),
    ],
)
def test_real_counts(fetch, options, shape, positive, data_home):
    found = fetch(**options, data_home=data_home)
    assert found.data.shape == shape
    assert found.target.sum() == positive


@pytest.mark.data
def test_real_splits(data_home):
    def sizes(fetch, **options):
        return pd.Series(fetch(**options, data_home=data_home).subset).value_counts().to_dict()

    assert sizes(datasets.fetch_celeba_attributes) == {"train": 162_770, "valid": 19_867, "test": 19_962}
    assert sizes(datasets.fetch_snips) == {"train": 13_084, "valid": 700, "test": 700}
    assert sizes(datasets.fetch_snips, preset="ome") == {"train": 13_784, "test": 700}
    assert sizes(datasets.fetch_ag_entities) == {"train": 11_657, "valid": 1_457, "test": 1_457}


@pytest.mark.data
def test_real_snips_has_seven_intents_and_texts_without_loss(data_home):
    snips = datasets.fetch_snips(data_home=data_home)
    assert len(snips.target_names) == 7
    assert set(snips.target) == set(range(7))
    imdb = datasets.fetch_sentiment_sentences(source="imdb", data_home=data_home)
    assert sum("\x85" in text for text in imdb.data) == 2


@pytest.mark.data
def test_adult_federate_preset_has_52_features(data_home):
    adult = datasets.fetch_adult(preset="federate", data_home=data_home, as_frame=True)
    X = adult.preprocessor.fit_transform(adult.data)
    assert X.shape == (45_222, 52)
    assert X.min() == -1
    assert X.max() == 1
    assert set(adult.sensitive_features) == {"Female", "Male"}
    assert "race" not in adult.data


@pytest.mark.data
@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("fetch", TABULAR)
def test_preprocessors_are_unfitted_and_fit_their_data(fetch, as_frame, data_home):
    preset = {} if fetch is datasets.fetch_adult else {"preset": "pate"}
    table = fetch(**preset, data_home=data_home, as_frame=as_frame)
    assert isinstance(table.preprocessor, ColumnTransformer)
    with pytest.raises(NotFittedError):
        check_is_fitted(table.preprocessor)
    first = slice(0, len(table.target), 10)
    data = table.data.iloc[first] if as_frame else table.data[first]
    target = np.asarray(table.target)[first]
    model = make_pipeline(table.preprocessor, LogisticRegression(max_iter=1000)).fit(data, target)
    assert model.score(data, target) > max(target.mean(), 1 - target.mean())
    model.predict(table.data)  # a category or number that the first rows lack is no error


@pytest.mark.data
def test_parkinsons_can_be_split_by_person(data_home):
    voices = datasets.fetch_parkinsons(preset="pate", data_home=data_home)
    assert len(np.unique(voices.subject)) == 42
    train, test = next(GroupShuffleSplit(random_state=0).split(voices.data, groups=voices.subject))
    assert not set(voices.subject[train]) & set(voices.subject[test])
    assert {"motor_UPDRS", "total_UPDRS", "subject#", "sex"}.isdisjoint(voices.feature_names)
    score = datasets.fetch_parkinsons(data_home=data_home).target
    assert np.median(score) == 27.576
    np.testing.assert_array_equal(voices.target, score > np.median(score))


@pytest.mark.data
def test_real_vectors_know_most_words_of_the_corpora(data_home):
    glove = datasets.load_glove(data_home=data_home)
    assert glove.vectors.shape == (29_735, 100)
    assert all(a != b for a, b in pairwise(sorted(glove.words)))
    words = [
        word.strip(".,!").lower() for text in datasets.fetch_snips(data_home=data_home).data for word in text.split()
    ]
    assert np.mean([word in glove.index for word in words]) > 0.95
    with pytest.raises(FileNotFoundError, match=r"glove\.6B\.zip"):
        datasets.load_glove(50, data_home=data_home, download_if_missing=False)


@pytest.mark.data
@pytest.mark.parametrize("fetch", large_ones_slow([*FETCHERS, datasets.load_glove]))
def test_examples_in_docstrings_run_where_the_data_are(fetch, data_home):
    source = inspect.getdoc(fetch).replace("  # doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(source, {}, fetch.__name__, None, 0)
    assert len(test.examples) >= 3
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0
