"""The report says what was found, to everybody, and nothing that a label says is obeyed."""

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from skfairdp.table_audit._plain_words import fairness_words
from skfairdp.table_audit._table_checks import TableCheck
from tests.table_audit._made_audits import FAIRNESS, LEAKY, TWINS, made_audit, strata_of, with_figures

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


_WRITTEN = {}


def page_of(result):
    """The page of an audit, written once for all tests of one audit."""
    if id(result) not in _WRITTEN:
        _WRITTEN[id(result)] = (result, result.to_html())  # with the audit itself: its id stays its own
    return _WRITTEN[id(result)][1]


@pytest.fixture(scope="module")
def result():
    return replace(made_audit(methods=("trees", "leace", "noise")), command="skfairdp audit table.csv", best="leace")


@pytest.fixture(scope="module")
def hostile():
    check = TableCheck("proxy", (f"x{HOSTILE}",), True, f"Column {HOSTILE} is a copy.", f"Drop {HOSTILE}.")
    found = made_audit(
        groups=(f"A{HOSTILE}", f"B{HOSTILE}"),
        attribute=f"group{HOSTILE}",
        pos_label=f"yes{HOSTILE}",
        systems=(f"decision{HOSTILE}",),
        methods=("leace", f"mine{HOSTILE}"),
        scores=True,
        checks=(check,),
        assumed=True,
    )
    settings = found.settings | {"target": f"target{HOSTILE}", "features": [f"x{HOSTILE}"]}
    return strata_of(
        replace(
            found,
            settings=settings,
            too_few={f"group{HOSTILE}": (f"tiny{HOSTILE}",)},
            command=f"skfairdp {HOSTILE}",
            title=f"Audit of {HOSTILE}",
        )
    )


def test_hostile_labels_are_escaped(hostile):
    text = page_of(hostile)
    page = Page(text)
    assert len(page.named("script")) == 1  # ours
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


def test_only_our_script_may_run(hostile):
    """The policy names the hash of the one script, so that a browser runs no other."""
    text = page_of(hostile)
    (script,) = re.findall("<script>(.*?)</script>", text, re.S)
    assert script == (files("skfairdp.table_audit") / "templates" / "sort_tables.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] for a in Page(text).named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_page_needs_nothing_from_elsewhere(result):
    page = Page(page_of(result))
    links = [attributes.get("href") or attributes.get("src") for _, attributes in page.elements]
    assert all(link is None or link.startswith(("#", "data:")) for link in links)
    assert set(re.findall(r"url\(.", page_of(result))) == {"url(#"}  # parts of the same picture
    assert "@import" not in page_of(result)


def test_page_is_accessible(result):
    page = Page(page_of(result))
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
    text = " ".join("".join(Page(page_of(result)).text).split())
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
    pictures = re.findall(r"<svg.*?</svg>", page_of(result), re.S)
    assert len(pictures) == 2 * 3  # trade-off, groups and leakage, each for a screen and for a phone
    for picture in pictures:
        styles = " ".join(re.findall('style="([^"]*)"', picture))
        assert not re.search("#[0-9a-f]{3}", styles), "a colour of its own is lost on a dark page"
        assert {*re.findall(r"var\(--(\w+)\)", styles)} <= set(themes()[0])
        assert "font-size" in styles
        assert "DejaVu" not in picture


def test_page_repeats_byte_for_byte(result):
    assert result.to_html() == page_of(result)


def test_labels_of_any_script_are_drawn():
    """Neither mathematics between dollar signs, nor a script that matplotlib's font lacks, stops the report."""
    found = made_audit(groups=("$\\frac{$ 5", "女性 مرأة"))
    (picture,) = re.findall(r'<svg class="wide"[^>]*aria-label="Rates.*?</svg>', page_of(found), re.S)
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
    text = text_of(made_audit(undefined=True))
    assert "No gap between groups can be computed" in text
    assert "nan" not in re.findall(r"[a-z]+", text)


def text_of(result):
    return " ".join("".join(Page(page_of(result)).text).split())


def tables_of(result):
    """Every table of the page as rows of texts, by its caption or the label of what it scrolls in."""
    found = {}
    for name, body in re.findall(
        r'aria-label(?:ledby)?="([^"]*)" tabindex="0">\s*<table(.*?)</table>', page_of(result), re.S
    ):
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
        found[name] = [
            [
                " ".join(re.sub("<[^>]*>", "", cell).split())
                for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
            ]
            for row in rows
        ]
    return found


def test_existing_systems_have_a_section(result):
    without, result = result, made_audit(systems=("decision",), scores=True)
    tables = tables_of(result)
    header, *rows = tables["What decision gives each sex"]
    assert header == [
        "Group",
        "Rows",
        "selected",
        "true positive rate",
        "false positive rate",
        "precision (PPV)",
        "accuracy",
    ]
    rates = result.group_rates.query("method == 'decision' and group == 'g1'")
    selected = rates[(rates["rate"] == "selection_rate") & (rates["class"] == "yes")].iloc[0]
    cell = f"{100 * selected['value']:.1f}% ({100 * selected['lower']:.0f}–{100 * selected['upper']:.0f}, of "
    assert rows[1][2] == f"{cell}{selected['trials']:,})"
    assert len(tables["Calibration of decision by sex"]) == 1 + 2 * 11
    text = text_of(result)
    assert "Four-fifths ratio 0.79 (0.74 to 0.84): the rule asks for 0.80" in text
    assert "What exists already" in text
    assert "What exists already" not in text_of(without)
    pictures = re.findall(r'<svg class="wide"[^>]*aria-label="Calibration of decision by sex', page_of(result))
    assert len(pictures) == 1


def test_only_a_system_shows_its_rates_first():
    result = made_audit(systems=("decision",), methods=(), n_groups=8)
    page = page_of(result)
    first = page.index('aria-label="Rates by sex')
    assert first < page.index("What to do next") < page.index("All systems")
    assert not re.search(r">chosen<|Chosen method|\(chosen\)", page)
    assert "were held out" not in page


def test_strata_and_checks_are_shown():
    result = strata_of(made_audit(checks=(TWINS, LEAKY)))
    text = text_of(result)
    assert text.index("Serious. The column") < text.index("12 rows occur twice. Name")
    assert "Among people who are alike in education" in text
    header, first, *_ = tables_of(result)["strata-title"]
    assert header == ["Method", "Gap within strata", "p-value", "Highest", "Lowest"]
    assert first[0] == "trees"
    assert "What to do next" in text


def test_groups_without_rows_are_named(result):
    assert "because no row of theirs" not in text_of(result)
    result = made_audit(n_groups=3)
    rates = result.group_rates.copy()
    rates.loc[rates["group"] == "g1", ["value", "trials"]] = [np.nan, 0]
    gone = replace(result, group_rates=rates, too_few={"sex": ("g1", "elsewhere")})
    text = text_of(gone)
    assert "because no row of theirs can be shown: g1 and elsewhere." in text
    assert "Too few rows to say anything; no gap is about them: g1 and elsewhere." in text
    (picture,) = re.findall(r'<svg class="wide"[^>]*aria-label="Rates by sex.*?</svg>', page_of(gone), re.S)
    assert ">g0<" in picture
    assert ">g1<" not in picture


def test_every_figure_has_interval_and_rows():
    tables = tables_of(made_audit(systems=("decision",), scores=True))
    header, *rows = tables["methods-title"]
    for name in ("Accuracy", "TPR gap", "Leakage", "AUC", "Four fifths"):
        for row in rows:
            assert re.search(r"\(-?[\d.]+–[\d.]+\)$", row[header.index(name)]), (name, row)
    assert {row[header.index("Rows")] for row in rows} == {"3,000 all rows", "900 test rows"}
    for row in tables["Rates by sex"][1:]:
        assert all(re.search(r"\(\d+–\d+, of [\d,]+\)$", cell) for cell in row[3:])


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_axes_name_the_definition(fairness):
    result = made_audit(fairness=fairness, scores=True, n_classes=3 if fairness == "grms" else 2)
    name = fairness_words(fairness).name
    assert f"{name} in points" in page_of(result)
    assert f"The {name} is the " in text_of(result)


def test_marks_of_methods():
    result = with_figures(made_audit(systems=("decision",)), "noise", constant=True, needs_groups=True)
    rows = {row[0].split()[0]: row[0] for row in tables_of(result)["methods-title"][1:]}
    assert rows["noise"] == "noise constant needs the group"
    assert rows["decision"] == "decision exists"


def test_many_groups_and_methods_stay_small():
    methods = ("trees", "logistic", "fair trees", "fair private trees", *(f"method {k}" for k in range(7)))
    page = made_audit(n_groups=20, n=20_000, systems=("decision",), methods=methods, scores=True).to_html()
    assert len(page) < 400_000


def test_notebooks_show_verdict_and_table(result):
    page = Page(result._repr_html_())
    text = "".join(page.text)
    assert result.verdict.headline in text
    assert all(step in text for step in result.verdict.next_steps)
    assert {attributes["scope"] for attributes in page.named("th")} == {"row", "col"}
    assert len(page.named("tr")) == 1 + len(result.table)


def test_markdown_says_the_same(hostile, result, tmp_path):
    text = result.to_markdown(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == text
    unescaped = re.sub(r"\\(.)", r"\1", text)
    assert all(sentence in unescaped for sentence in result.verdict.sentences)
    assert "## Model card: leace" in text
    for part in ("Intended use", "Data", "Figures", "Guarantees", "Caveats"):
        assert f"### {part}" in text
    outside = hostile.to_markdown().split("```")[::2]  # the command is code
    assert not re.search(r"(?<!\\)[<>|]script|(?<!\\)<img", "".join(outside))
    for line in hostile.to_markdown().splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in (8, 9)  # no label opens a further cell


def test_model_cards_are_of_any_method(result):
    card = result.to_model_card("noise")
    assert card.startswith("## Model card: noise")
    assert "epsilon = 8 for any two records, by laplace" in card
    assert "| sex | g0 |" in card
    assert "whoever gets its output may learn anything" in result.to_model_card("trees")
    assert result.to_model_card() == result.to_model_card(result.best)
    with pytest.raises(ValueError, match="'noise'"):
        result.to_model_card("nois")


def test_writing_is_whole(result, tmp_path):
    text = result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
