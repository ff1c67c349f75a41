"""The report of the demo in a real browser: it loads, says nothing on the console, and fits a phone."""

import html
import json
import re
import shutil
import subprocess

import pytest

from skfairdp.cli import main

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
    pictures: [...page.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().height > 100).length,
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
    smallest: Math.min(...[...page.querySelectorAll("svg text")].map((text) => text.getBoundingClientRect().height)
      .filter((height) => height > 0)),
  });
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


@pytest.fixture(scope="module")
def report(folder):
    """The report of the demo, on fewer rows."""
    path = folder / "report.html"
    assert main(["demo", "--rows", "400", "--quiet", "--out", str(path)]) == 0
    return path


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


@pytest.mark.parametrize("width", [360, 1280])
def test_the_report_fits_and_is_whole(folder, report, width):
    found, log = measured(folder, framed(folder, report, width))
    assert console_lines(log) == []
    assert found["width"] == width
    assert found["scrollWidth"] == width, f"wider than the page: {found['wide']}"
    assert found["wide"] == []
    assert found["title"] == found["headings"][0] == "Demonstration: a made-up table"
    assert found["headings"][1:] == [
        "Verdict", "What each group gets", "What an attacker can read", "What is guaranteed, and what is not",
        "How it was measured",
    ]  # fmt: skip
    assert found["rows"] == 10
    assert found["headers"][:5] == ["Method", "Accuracy", "Balanced", "TPR gap", "Leakage"]
    assert all(found["images"])
    assert found["pictures"] == 3  # trade-off, groups, leakage: each once, for this width
    assert found["smallest"] >= 11  # text in pictures can be read


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
