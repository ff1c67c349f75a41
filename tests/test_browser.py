"""Reports in a real browser: they load, say nothing on the console, fit a phone, and their tables can be sorted."""

import html
import json
import re
import shutil
import subprocess

import pytest

from skfairdp.cli import main
from tests.table_audit._made_audits import LEAKY, TWINS, made_audit, strata_of

pytestmark = pytest.mark.browser

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

MEASURE = """
<script>
function measure(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const inside = (element) => element.closest(".scroll, nav ul");
  const wide = [...page.querySelectorAll("body *")].filter(
    (element) => !inside(element) && element.getBoundingClientRect().right > root.clientWidth + 1
      && !element.classList.contains("skip"));
  document.getElementById("found").textContent = JSON.stringify({
    title: page.title,
    width: root.clientWidth,
    scrollWidth: root.scrollWidth,
    wide: wide.map((element) => element.outerHTML.slice(0, 80)),
    headings: [...page.querySelectorAll("h1, h2")].map((element) => element.textContent),
    rows: page.querySelectorAll(".methods tbody tr").length,
    headers: [...page.querySelectorAll(".methods thead th")].map((element) => element.textContent),
    images: [...page.images].map((image) => image.complete && image.naturalWidth > 0),
    pictures: [...page.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().height > 50).length,
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
    smallest: Math.min(...[...page.querySelectorAll("svg text")].map((text) => text.getBoundingClientRect().height)
      .filter((height) => height > 0)),
    tables: sorted(page),
    hints: [...page.querySelectorAll(".scroll")].filter((box) => box.getBoundingClientRect().height > 0).map((box) =>
      [box.scrollWidth > box.clientWidth + 1,
       frame.contentWindow.getComputedStyle(box, "::before").content.includes("scroll sideways")]),
    nextStep: page.querySelector(".next")?.getBoundingClientRect().bottom,
  });
}
// Presses the header of every column of every table twice; notes what a screen reader hears, and the order of rows.
function sorted(page) {
  return [...page.querySelectorAll("table.sortable")].flatMap((table) =>
    [...table.tHead.rows[0].cells].map((header, column) => {
      const rows = table.tBodies[0].rows.length, heard = [], ordered = [];
      for (const sign of [1, -1]) {
        header.querySelector("button").click();
        heard.push(header.getAttribute("aria-sort"));
        const keys = [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.sort)
          .filter((key) => key !== undefined && key !== "").map(Number);
        ordered.push(keys.every((key, k) => k === 0 || sign * (key - keys[k - 1]) >= 0));
      }
      const headers = [...table.tHead.rows[0].cells];
      const others = headers.filter((other) => other.getAttribute("aria-sort") !== "none").length;
      return [heard.join(), ordered.every(Boolean), others, table.tBodies[0].rows.length === rows];
    }));
}
</script>
"""


def browse(folder, address, *options):
    """Run Chromium without a window, in a profile of its own."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
        "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--v=0",
        *options, address,
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, timeout=180, check=True)
    return result.stdout.decode(), result.stderr.decode(errors="replace")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    return tmp_path_factory.mktemp("browser")


SHAPES = {
    "two groups": {},
    "existing system": {"systems": ("decision",), "scores": True, "checks": (LEAKY, TWINS), "assumed": True},
    "only a system": {"systems": ("decision",), "methods": (), "n_groups": 8, "tiny": True},
    "many classes": {"n_classes": 6, "fairness": "grms", "n_groups": 4},
    "long names": {"groups": ("a group with quite a long name", "averyveryverylongnamewithoutanyspacewhatsoever"),
                   "systems": ("a system whose name is rather long, too",)},
}  # fmt: skip
SECTIONS = [
    "Verdict", "Before you trust this", "What exists already", "What each group gets", "What an attacker can read",
    "What is guaranteed, and what is not", "How it was measured",
]  # fmt: skip


@pytest.fixture(scope="module")
def reports(folder):
    """Reports of audits of several shapes, made by hand."""
    paths = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        paths[name] = folder / f"report{number}.html"
        strata_of(made_audit(**shape)).to_html(paths[name])
    return paths


@pytest.fixture(scope="module")
def report(reports):
    return reports["existing system"]


def framed(folder, report, width, extra=""):
    """Show the report in a frame, which may be narrower than Chromium's narrowest window, and measure it."""
    text = report.read_text(encoding="utf-8").replace("</main>", f"{extra}</main>")
    path = folder / f"frame{width}.html"
    path.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><link rel='icon' href='data:,'><style>body{{margin:0}}</style>{MEASURE}"
        f"<iframe width='{width}' height='4000' style='border:0' srcdoc='{html.escape(text)}' onload='measure(this)'>"
        "</iframe><pre id='found'></pre>",
        encoding="utf-8",
    )
    return path


def measured(folder, page, dark=False):
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    dom, log = browse(folder, page.as_uri(), scheme, "--window-size=1400,4200", "--dump-dom")
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, re.S)
    assert found is not None, log
    return json.loads(html.unescape(found[1])), log


def console_lines(log):
    return [line for line in log.splitlines() if "CONSOLE" in line]


def check_page(found, log, width):
    assert console_lines(log) == []
    assert found["width"] == width
    assert found["scrollWidth"] == width, f"wider than the page: {found['wide']}"
    assert found["wide"] == []
    assert all(found["images"])
    assert found["smallest"] >= 11  # text in pictures can be read
    for scrolls, hint in found["hints"]:
        assert scrolls == hint  # what is cut says so, and nothing else does
    for heard, ordered, others, whole in found["tables"]:
        assert heard == "ascending,descending"
        assert ordered
        assert others == 1  # one column at a time
        assert whole


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("shape", SHAPES)
def test_reports_fit_and_are_whole(folder, reports, shape, width):
    found, log = measured(folder, framed(folder, reports[shape], width))
    check_page(found, log, width)
    wanted = list(SECTIONS)
    if "checks" not in SHAPES[shape]:
        wanted.remove("Before you trust this")
    if "systems" not in SHAPES[shape]:
        wanted.remove("What exists already")
    assert found["headings"][1:] == wanted
    assert found["title"] == found["headings"][0] == "Audit of people.csv"
    # Trade-off (or rates), groups and leakage, and calibration where there are scores: each once, for this width.
    assert found["pictures"] == 3 + ("scores" in SHAPES[shape])
    if shape == "many classes":
        assert any(scrolls for scrolls, _ in found["hints"])


def test_first_screen_has_verdict_picture_and_steps(folder, reports):
    found, _ = measured(folder, framed(folder, reports["only a system"], 1280))
    assert found["nextStep"] < 800
    found, _ = measured(folder, framed(folder, reports["existing system"], 1280))
    assert found["nextStep"] < 900


@pytest.mark.parametrize("width", [360, 1280])
def test_the_demo_fits_and_is_whole(folder, width):
    path = folder / "demo.html"
    if not path.exists():
        assert main(["demo", "--rows", "2000", "--quiet", "--out", str(path)]) == 0
    found, log = measured(folder, framed(folder, path, width))
    check_page(found, log, width)
    assert found["title"] == "Demonstration: a made-up table"
    assert found["rows"] >= 7
    assert found["headers"][:3] == ["Method", "Accuracy", "TPR gap"]


def test_tables_can_be_read_without_the_script(folder, report):
    path = folder / "noscript.html"
    path.write_text(
        re.sub("<script>.*?</script>", "", report.read_text(encoding="utf-8"), flags=re.S), encoding="utf-8"
    )
    dom, log = browse(folder, path.as_uri(), "--dump-dom")
    assert console_lines(log) == []
    assert "<button" not in dom
    assert not re.search("<th[^>]* aria-sort", dom)
    assert dom.count("<tr") == report.read_text(encoding="utf-8").count("<tr")


def test_a_foreign_script_does_not_run(folder, report):
    planted = "<script>document.title = 'taken over'</script><p onclick='x()'>planted</p>"
    found, log = measured(folder, framed(folder, report, 1280, planted))
    assert found["title"] == "Audit of people.csv"
    assert any("Content Security Policy" in line for line in console_lines(log))


def test_the_measurement_sees_what_is_too_wide(folder, report):
    found, _ = measured(folder, framed(folder, report, 360, "<div style='width:500px'>wide</div>"))
    assert found["scrollWidth"] > 360
    assert len(found["wide"]) == 1


def test_console_errors_are_found(folder):
    path = folder / "loud.html"
    path.write_text("<!DOCTYPE html><script>console.error('planted'); nothing()</script>")
    _, log = browse(folder, path.as_uri(), "--dump-dom")
    assert len(console_lines(log)) == 2


def test_dark_is_dark_and_light_is_light(folder, report):
    page = framed(folder, report, 1280)
    assert measured(folder, page)[0]["background"] == "rgb(255, 255, 255)"
    assert measured(folder, page, dark=True)[0]["background"] == "rgb(15, 19, 24)"


@pytest.mark.parametrize("width", [360, 1280])
def test_pictures_can_be_taken_and_are_not_blank(folder, report, width):
    from matplotlib.image import imread

    path = folder / f"shot{width}.png"
    browse(
        folder, framed(folder, report, width).as_uri(), f"--window-size={max(width, 500)},1600", f"--screenshot={path}"
    )
    pixels = imread(path)
    assert pixels.shape[0] == 1600
    assert len({tuple(pixel) for pixel in pixels[::7, ::7].reshape(-1, pixels.shape[2]).tolist()}) > 20


def test_it_prints(folder, report):
    path = folder / "report.pdf"
    browse(folder, report.as_uri(), f"--print-to-pdf={path}", "--no-pdf-header-footer")
    assert path.read_bytes().startswith(b"%PDF")
    assert path.stat().st_size > 20_000
