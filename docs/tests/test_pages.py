"""The documentation: every public name and method has its place, numbers are those of the tables, built pages work."""

import csv
import html
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from numpydoc.docscrape import FunctionDoc

import skfairdp

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TABLES = ROOT / "benchmarks" / "papers" / "tables"
BUILT = DOCS / "_build" / "html"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
NAMES = [(folder, name) for folder in skfairdp._FOLDERS for name in getattr(skfairdp, folder).__all__]


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api_pages = module_of(DOCS / "_extensions" / "api_pages.py")
draw_tradeoff = module_of(DOCS / "draw_tradeoff.py")


def code_of(path):
    (block,) = re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return block


def methods_of(cls):
    """Public methods by our own count: what a user can call on it and neither torch nor skorch nor Python wrote."""
    foreign = [c for c in cls.__mro__ if c.__module__.split(".")[0] not in ("skfairdp", "sklearn")]
    methods = {name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")}
    for name in list(methods):
        owner = next((c for c in cls.__mro__ if name in vars(c)), object)
        if owner in foreign or inspect.isclass(getattr(cls, name)):
            methods.remove(name)
    return methods


# The API reference


@cache
def sources():
    return api_pages.page_sources()


def test_every_folder_has_a_page_and_a_title():
    assert set(api_pages.TITLES) == set(skfairdp._FOLDERS)
    assert set(api_pages.GUIDE) >= set(skfairdp._FOLDERS)


def test_every_public_name_is_listed_and_has_a_page():
    for folder, name in NAMES:
        assert name in sources()[f"skfairdp.{folder}"].split()
        assert f":: {name}\n" in sources()[f"skfairdp.{folder}.{name}"]


def test_pages_of_classes_hold_all_methods():
    for folder, name in NAMES:
        thing = getattr(getattr(skfairdp, folder), name)
        if inspect.isclass(thing):
            text = sources()[f"skfairdp.{folder}.{name}"]
            shown = set(re.findall(rf"automethod:: {name}\.(\w+)", text))
            assert methods_of(thing) <= shown, f"{name} lacks {methods_of(thing) - shown}"


def test_well_known_methods_are_among_them():
    text = sources()["skfairdp.adversarial.FederateClassifier"]
    for method in ("fit", "predict", "predict_proba", "transform", "split", "set_output", "set_fit_request"):
        assert f"automethod:: FederateClassifier.{method}\n" in text
    assert "automethod:: RelaxationThreshold.explain" in sources()["skfairdp.model_selection.RelaxationThreshold"]


def test_the_guide_has_the_pages_that_the_reference_links_to():
    known = {name for _, name in NAMES} | set(skfairdp._FOLDERS)
    assert set(api_pages.GUIDE) <= known, "a name has gone"
    for folder, name in NAMES:
        assert (DOCS / "guide" / f"{api_pages.guide_page(folder, name)}.md").exists()


def described_by(function):
    return [n.strip().lstrip("*") for p in FunctionDoc(function)["Parameters"] for n in p.name.split(",")]


def test_functions_of_neural_describe_their_parameters():  # test_docstrings.py reads the other folders
    for name in skfairdp.neural.__all__:
        thing = getattr(skfairdp.neural, name)
        if inspect.isfunction(thing):
            assert described_by(thing) == list(inspect.signature(thing).parameters), name


def test_every_public_name_has_an_example():
    public = {f"{folder}.{name}": getattr(getattr(skfairdp, folder), name) for folder, name in NAMES}
    assert [name for name, thing in public.items() if callable(thing) and ">>>" not in inspect.getdoc(thing)] == []


CLASSES = {name: thing for folder, name in NAMES if inspect.isclass(thing := getattr(getattr(skfairdp, folder), name))}


def test_methods_describe_their_parameters():
    wrong = {}
    for name, thing in CLASSES.items():
        for method in methods_of(thing):
            function = inspect.unwrap(getattr(thing, method))
            if not getattr(function, "__module__", "").startswith("skfairdp"):
                continue
            wanted = [
                p for p in inspect.signature(function).parameters if p not in ("self", "cls") and not p.startswith("_")
            ]
            described = described_by(function)
            if described != wanted:
                wrong[f"{name}.{method}"] = (described, wanted)
    assert wrong == {}


# README and landing page


def number_after(text, before):
    found = re.search(re.escape(before) + r"\s+([\d.]+\d)", text)
    assert found, f"no number after {before!r}"
    return float(found[1])


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda p: p.stem)
def test_the_caption_says_what_the_picture_shows(page):
    text = " ".join(page.read_text().split())
    accuracy = {key: point[1] for key, point in draw_tradeoff.points().items()}
    lost = {e: accuracy["trees", "∞"] - accuracy["fair private trees", e] for e in ("8", "4", "2")}
    assert lost["8"] < number_after(text, "At 8 the fair trees lose less than")
    assert number_after(text, "at 4 they lose") == round(lost["4"], 1)
    assert number_after(text, "at 2 they lose") == round(lost["2"], 1)


@pytest.mark.parametrize("page", draw_tradeoff.PAGES)
def test_the_picture_is_of_the_table(page):
    text = html.unescape((DOCS / "_static" / f"tradeoff-{page}.svg").read_text())
    assert draw_tradeoff.description() in text
    assert draw_tradeoff.description().replace("86", "87") not in text


def test_the_picture_can_be_drawn(tmp_path):
    for page in draw_tradeoff.PAGES:
        draw_tradeoff.draw(tmp_path / f"{page}.svg", page)
        assert draw_tradeoff.description() in html.unescape((tmp_path / f"{page}.svg").read_text())


def test_how_often_others_are_more_accurate_than_our_pate():
    with (TABLES / "private-training-full-accuracy.csv").open(encoding="utf-8") as table:
        rows = {(row.pop("method"), row.pop("epsilon")): row for row in csv.DictReader(table)}
    epsilons = [e for method, e in rows if method == "PATE"]
    text = " ".join((ROOT / "README.md").read_text().split())
    assert len(rows["PATE", epsilons[0]]) == 5
    assert len(epsilons) == 4
    for method, words in (
        ("DP-SGD logistic", "more accurate than our PATE in"),
        ("diffprivlib logistic", "diffprivlib's in"),
    ):
        cells = [(rows[method, e][d], rows["PATE", e][d]) for e in epsilons for d in rows["PATE", e]]
        better = sum(float(theirs.split()[0]) > float(ours.split()[0]) for theirs, ours in cells)
        assert f"{words} {better} of {len(cells)}" in text


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda p: p.stem)
def test_ten_lines_are_ten(page):
    assert len([line for line in code_of(page).splitlines() if line]) == 10


def test_the_whole_pipeline_of_the_readme_has_an_exact_price(monkeypatch, capsys):
    monkeypatch.setattr(skfairdp, "leakage_score", lambda X, z: 0.5)  # test_documents.py runs it as it is
    names: dict = {}
    exec(code_of(ROOT / "README.md"), names)
    guarantee = skfairdp.pipeline_guarantee(names["model"])
    assert guarantee.epsilon == 8.0
    assert guarantee.delta == 0.0
    said = code_of(ROOT / "README.md").rpartition("# ")[2].strip()
    assert said in capsys.readouterr().out


def test_the_ten_lines_of_the_landing_page_run(capsys):
    names: dict = {}
    exec(code_of(DOCS / "index.md"), names)
    plain, fair, receipt = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [float(n) for n in plain] == pytest.approx([0.84, 0.08], abs=0.02)  # trees differ between versions
    assert abs(float(fair[0]) - 0.82) < 0.03
    assert float(fair[1]) < 0.08
    assert " ".join(receipt) in code_of(DOCS / "index.md")


# What `make docs` has built


@pytest.fixture(scope="module")
def built():
    if not (BUILT / "index.html").exists():
        pytest.skip("make docs builds the pages and runs this test")
    return BUILT


exists = cache(os.path.exists)  # every page links to the same ones


class Page:
    """Where a page points to, what it loads, and where it can be pointed at."""

    def __init__(self, text):
        self.anchors = {html.unescape(name) for name in re.findall(r'\s(?:id|name)="([^"]+)"', text)}
        self.targets = [html.unescape(target) for target in re.findall(r'\s(?:href|src)="([^"]+)"', text)]
        self.loaded = re.findall(r'<(?:script|img|iframe)\s[^>]*src="([^"]+)"', text)
        sheets = [tag for tag in re.findall(r"<link\s[^>]*>", text) if 'rel="stylesheet"' in tag]
        self.loaded += re.findall(r'href="([^"]+)"', "".join(sheets))


def dead_links(path, pages):
    """Return the links of a page that lead to no file, or to no place in it."""
    for target in dict.fromkeys(pages[path].targets):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
        anchor = unquote(parts.fragment)
        if not exists(file) or (anchor and file in pages and anchor not in pages[file].anchors):
            yield target


@pytest.fixture(scope="module")
def pages(built):
    skipped = {built / name for name in ("genindex.html", "py-modindex.html", "search.html")}
    found = {path for path in built.rglob("*.html") if "_static" not in path.parts} - skipped
    return {path: Page(path.read_text(encoding="utf-8")) for path in found}


def test_links_lead_somewhere(pages):
    assert {str(path): dead for path in pages if (dead := [*dead_links(path, pages)])} == {}


def test_a_dead_link_is_found(pages, built):
    spoilt = pages | {
        built / "index.html": Page('<a href="guide/index.html#nowhere">x</a><a href="nowhere.html">y</a>')
    }
    assert [*dead_links(built / "index.html", spoilt)] == ["guide/index.html#nowhere", "nowhere.html"]


def test_nothing_is_loaded_from_elsewhere(pages):
    assert Page('<link rel="stylesheet" type="text/css" href="//x/y.css">').loaded == ["//x/y.css"]
    for path, page in pages.items():
        assert [address for address in page.loaded if re.match(r"(\w+:)?//", address)] == [], path


def test_formulas_are_mathml(built):
    formulas = 0
    for path in built.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        formulas += text.count("<math ")
        assert "\\(" not in text.partition("<article")[2].partition("</article")[0], path
        assert "<merror" not in text, path
    assert formulas > 200


def test_built_pages_hold_every_name_method_and_parameter(built):
    for folder, name in NAMES:
        thing = getattr(getattr(skfairdp, folder), name)
        text = (built / "generated" / f"skfairdp.{folder}.{name}.html").read_text(encoding="utf-8")
        full = f"skfairdp.{folder}.{name}"
        assert f'id="{full}"' in text, full
        assert "Read more in the user guide" in text
        assert "Added in version" in text
        if inspect.isclass(thing):
            for method in methods_of(thing):
                part = text.partition(f'id="{full}.{method}"')[2].partition('<dt class="sig')[0]
                assert part, f"{full}.{method} is missing"
                documented = FunctionDoc(inspect.unwrap(getattr(thing, method)))["Parameters"]
                for parameter in documented:
                    assert f"<strong>{html.escape(parameter.name)}" in part.replace("\\_", "_"), (
                        method,
                        parameter.name,
                    )


def test_the_search_knows_the_names(built):
    index = (built / "searchindex.js").read_text(encoding="utf-8").lower()
    for folder, name in NAMES:
        assert f"skfairdp.{folder}.{name}".lower() in index


MEASURE = """
<script>
setTimeout(() => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, root = page.documentElement;
  const boxes = (selector) => [...page.querySelectorAll(selector)].map((element) => element.getBoundingClientRect());
  const scrolls = (element) => element.tagName !== "ARTICLE" && (
    ["auto", "scroll"].includes(frame.contentWindow.getComputedStyle(element.parentElement).overflowX)
    || scrolls(element.parentElement));
  document.getElementById("found").textContent = JSON.stringify({
    title: page.title, width: root.clientWidth, scrollWidth: root.scrollWidth,
    heading: page.querySelector("h1")?.textContent,
    cut: [...page.querySelectorAll("article *")]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(element))
      .map((element) => element.outerHTML.slice(0, 80)),
    flat: boxes("math").filter((box) => box.height < 5 || box.width < 3).length,
    formulas: boxes("math").length,
    methods: boxes("dl.method").length,
    cards: boxes(".sd-card").length,
    images: [...page.querySelectorAll("article img")].map((image) => image.complete && image.naturalWidth > 0),
    results: page.querySelectorAll("#search-results li").length,
    font: [...page.fonts].some((font) => font.family.includes("STIX") && font.status === "loaded"),
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  });
}, 4000);
</script>
"""


@pytest.fixture(scope="module")
def opened(built, tmp_path_factory):
    """Open a page at a width, light or dark, in a Chromium that cannot reach any network; tell what it shows."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    folder = tmp_path_factory.mktemp("browser")

    def open_page(address, width, mode):
        path, question_mark, query = str(address).partition("?")
        frame = folder / "frame.html"
        frame.write_text(
            f"<!DOCTYPE html><meta charset='utf-8'><link rel='icon' href='data:,'><style>body{{margin:0}}</style>"
            f"<script>localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}');</script>"
            f"<iframe width='{width}' height='3000' style='border:0' "
            f"src='{built.joinpath(path).as_uri()}{question_mark}{query}'></iframe><pre id='found'></pre>{MEASURE}",
            encoding="utf-8",
        )
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=9000", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr",
            "--window-size=1400,3100", "--dump-dom", frame.as_uri(),
        ]  # fmt: skip
        result = subprocess.run(command, capture_output=True, timeout=180, check=True)
        log = result.stderr.decode(errors="replace")
        found = re.search(r'<pre id="found">(.+?)</pre>', result.stdout.decode(), re.S)
        assert found is not None, log
        return json.loads(html.unescape(found[1])), [
            line for line in log.splitlines() if ":CONSOLE" in line and "[PST]" not in line
        ]

    return open_page


SHOWN = {
    "index.html": lambda found: found["cards"] == 6 and len(found["images"]) == 2,
    "guide/fair_private.html": lambda found: found["formulas"] > 20 and found["font"],
    "generated/skfairdp.preprocessing.LaplacePrivatizer.html": lambda found: (
        found["methods"] >= 8 and found["formulas"] > 3
    ),
    "auto_examples/plot_fair_private_trees.html": lambda found: len(found["images"]) >= 1,
}


@pytest.mark.browser
@pytest.mark.parametrize("address", SHOWN)
@pytest.mark.parametrize(("width", "mode"), [(1280, "light"), (390, "dark")])
def test_pages_render_without_network(opened, address, width, mode):
    found, console = opened(address, width, mode)
    assert console == []
    assert found["heading"]
    assert SHOWN[address](found), found
    assert found["flat"] == 0
    assert all(found["images"])
    assert found["scrollWidth"] <= width, "wider than the page"
    assert found["cut"] == []
    brightness = sum(map(int, re.findall(r"\d+", found["background"])[:3])) / 3
    assert brightness > 200 if mode == "light" else brightness < 60


@pytest.mark.browser
def test_the_browser_sees_what_is_broken(opened, tmp_path):
    page = tmp_path / "broken.html"
    page.write_text(
        "<!DOCTYPE html><body style='background: white'><article><h1>x</h1><p style='width: 2000px'>wide</p>"
        "<img src='nowhere.png'><math></math><script>undefinedFunction()</script></article>"
    )
    found, console = opened(page, 390, "dark")
    assert any("undefinedFunction" in line for line in console)
    assert found["scrollWidth"] > 390
    assert found["cut"]
    assert found["images"] == [False]
    assert found["flat"] == 1


@pytest.mark.browser
def test_the_search_finds_without_network(opened):
    found, _ = opened("search.html?q=leakage", 1280, "light")
    assert found["results"] > 5
    nothing, _ = opened("search.html?q=zzzqqq", 1280, "light")
    assert nothing["results"] == 0
