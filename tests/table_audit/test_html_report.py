"""The report says what was found, to everybody, and nothing that a label says is obeyed."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from skfairdp import audit_table
from skfairdp.datasets import make_biased_classification

HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'{{7*7}}</style></title>"


class Page(HTMLParser):
    """Collects elements with their attributes, and complains about what is not closed."""

    VOID = frozenset({"meta", "link", "img", "br", "hr", "input"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], []
        self.feed(text)
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in self.VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text.append(data)

    def named(self, name):
        return [attributes for found, attributes in self.elements if found == name]


def frame():
    return make_biased_classification(300, 4, as_frame=True, random_state=0).frame


@pytest.fixture(scope="module")
def result():
    found = audit_table(
        frame(),
        target="target",
        sensitive="group",
        methods=["leace", "noise"],
        n_splits=2,
        random_state=0,
        verbose=False,
    )
    return replace(found, command="skfairdp audit table.csv", title="Audit of table.csv")


@pytest.fixture(scope="module")
def hostile():
    table = frame().rename(columns={"target": f"target{HOSTILE}", "group": f"group{HOSTILE}", "x0": f"x{HOSTILE}"})
    table[f"target{HOSTILE}"] = np.where(table[f"target{HOSTILE}"] == 1, f"yes{HOSTILE}", f"no{HOSTILE}")
    table[f"group{HOSTILE}"] = np.where(table[f"group{HOSTILE}"] == 1, f"A{HOSTILE}", f"B{HOSTILE}")
    from sklearn.linear_model import LogisticRegression

    found = audit_table(
        table,
        target=f"target{HOSTILE}",
        sensitive=f"group{HOSTILE}",
        methods=["leace", (f"mine{HOSTILE}", LogisticRegression())],
        n_splits=2,
        random_state=0,
        verbose=False,
    )
    return replace(found, command=f"skfairdp {HOSTILE}", title=f"Audit of {HOSTILE}")


def test_hostile_labels_are_escaped(hostile):
    text = hostile.to_html()
    page = Page(text)
    assert page.named("script") == []
    assert page.named("img") == []
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert text.count("</style>") == text.count("</title>") == 1
    assert "".join(page.text).count(HOSTILE) > 10  # it is shown as it is, and not computed: {{7*7}} is not 49
    notebook = Page(hostile._repr_html_())
    assert notebook.named("script") == notebook.named("img") == []


def test_unescaped_labels_would_be_found(hostile):
    with pytest.raises(AssertionError):
        test_hostile_labels_are_escaped(
            type("Unescaped", (), {"to_html": lambda self: f"<p>{HOSTILE}</p>", "_repr_html_": hostile._repr_html_})()
        )


def test_the_page_needs_nothing_from_elsewhere(result):
    page = Page(result.to_html())
    links = [attributes.get("href") or attributes.get("src") for _, attributes in page.elements]
    assert all(link is None or link.startswith(("#", "data:")) for link in links)
    assert set(re.findall(r"url\(.", result.to_html())) == {"url(#"}  # parts of the same picture
    assert "@import" not in result.to_html()


def test_page_is_accessible(result):
    page = Page(result.to_html())
    assert page.named("html")[0]["lang"] == "en"
    assert [len(page.named(name)) for name in ("h1", "main", "header", "footer", "nav")] == [1, 1, 1, 1, 1]
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels)), "no level of heading is left out"
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in page.named("section"):
        assert attributes["aria-labelledby"] in ids
    for attributes in page.named("a"):
        assert attributes["href"].removeprefix("#") in ids
    for attributes in page.named("svg"):
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"]) > 40
    for attributes in page.named("th"):
        assert attributes["scope"] in ("row", "col")
    for attributes in [a for a in page.named("div") if a.get("class") == "scroll"]:
        assert attributes["tabindex"] == "0"  # what scrolls can be reached with the keyboard
        assert {"aria-label", "aria-labelledby"} & set(attributes)


def test_the_page_tells_what_was_found(result):
    text = " ".join("".join(Page(result.to_html()).text).split())
    assert result.verdict.headline in text
    for sentence in result.verdict.sentences:
        assert " ".join(sentence.split()) in text
    assert "Protects nothing." in text  # LEACE
    assert "ε = 8 for any two records, 1 release" in text  # Noise
    for scope in result.guarantees["noise"][0].does_not_cover:
        assert scope in text
    assert f"Seed {result.settings['random_state']}." in text
    assert "skfairdp audit table.csv" in text
    assert "This report is not private." in text
    for note in result.notes:
        assert " ".join(note.split()) in text


def test_pictures_take_the_colours_of_the_page(result):
    pictures = re.findall(r"<svg.*?</svg>", result.to_html(), re.S)
    assert len(pictures) == 2 * 3  # trade-off, groups and leakage, each for a screen and for a phone
    for picture in pictures:
        styles = " ".join(re.findall('style="([^"]*)"', picture))
        assert not re.search("#[0-9a-f]{3}", styles), "a colour of its own is lost on a dark page"
        assert {*re.findall(r"var\(--(\w+)\)", styles)} <= set(themes()[0])
        assert "font-size" in styles
        assert "DejaVu" not in picture


def test_page_repeats_byte_for_byte(result):
    assert result.to_html() == result.to_html()


def test_labels_of_any_script_are_drawn():
    """Neither mathematics between dollar signs, nor a script that matplotlib's font lacks, stops the report."""
    table = frame()
    table["group"] = np.where(table["group"] == 1, "$\\frac{$ 5", "女性 مرأة")
    found = audit_table(table, target="target", sensitive="group", methods=["leace"], random_state=0, verbose=False)
    (picture,) = re.findall(r'<svg class="wide"[^>]*aria-label="Rates.*?</svg>', found.to_html(), re.S)
    assert "$\\frac{$ 5" in picture
    assert "女性" in picture


def luminance(colour):
    channels = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def themes():
    css = (files("skfairdp.table_audit") / "templates" / "report.css").read_text()
    return [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)
    ]


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark", "print"])
def test_text_and_signs_stand_out(theme):
    for ground in ("page", "panel", "good", "warn"):
        for ink in ("ink", "soft"):
            assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
    for ink in ("accent", "chosen", "private"):
        for ground in ("page", "panel"):
            assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
    assert contrast(theme["page"], theme["private"]) >= 4.5  # the badge


def test_contrast_is_computed_as_the_standard_says():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_a_gap_that_is_undefined_is_said_so():
    from sklearn.linear_model import LogisticRegression

    table = frame()
    table = table[(table["group"] == 0) | (table["target"] == 0)]
    found = audit_table(
        table, target="target", sensitive="group", methods=[LogisticRegression()], random_state=0, verbose=False
    )
    assert "No gap between groups can be computed" in found.to_html()
    assert any("undefined" in note for note in found.notes)


def test_writing_is_whole(result, tmp_path):
    text = result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
