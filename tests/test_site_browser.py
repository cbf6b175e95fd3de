"""A real browser opens the site: nothing fails, nothing leaves the machine, and it can be seen, read and steered by keyboard."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("furo")
playwright = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.chromium, pytest.mark.xdist_group("browser")]
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
KINDS = [
    "index", "start/paper", "start/blog", "reading/questions", "reading/tv-layouts", "catalogue/index",
    "catalogue/warp/mma-sm-80-f16-into-f32", "catalogue/tcgen05/tcgen05-sm-100a-f16-into-f32", "catalogue/copy/ldmatrix-8x8-16-bit-sm-75",
    "catalogue/checks", "from-mma-tile-tex", "reference/commands", "reference/python", "reference/sphinx", "tensor-memory", "differences",
]  # fmt: skip
HEAVY = ("reading/questions", "from-mma-tile-tex", "catalogue/copy/ldmatrix-8x8-16-bit-sm-75", "tensor-memory", "reference/python")
"""Pages of a kind that another one stands for, whose thousands of elements take axe-core long."""
SIZES = {"desktop": (1400, 1000), "phone": (390, 844)}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(built_site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(built_site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield opened
        opened.close()


def opened(browser: Any, size: str = "desktop", scheme: str = "light", script: bool = True) -> Any:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script)
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_pages_are_seen(browser: Any, address: str, size: str, scheme: str) -> None:
    """No error, no request that leaves the machine, no page wider than the window, every figure visible."""
    page = opened(browser, size, scheme)
    figures = 0
    for name in KINDS:
        page.goto(f"{address}{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0], (name, "is wider than the window")
        for figure in page.query_selector_all("figure.texgen svg.texgen, figure.texgen img"):
            box = figure.bounding_box()
            assert box and box["width"] > 40 and box["height"] > 30, (name, box)
            figures += 1
        ink = page.query_selector(".texgen-picture .txg-ink")
        if ink is not None:
            light = _brightness(ink.evaluate("e => getComputedStyle(e).fill"))
            ground = _brightness(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert abs(light - ground) > 100, (name, scheme, light, ground)
    assert figures > 30
    assert not page.said, page.said
    assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)
    page.context.close()


def _brightness(color: str) -> float:
    numbers = [float(x) for x in color[color.index("(") + 1 : -1].replace("/", ",").split(",")][:3]
    return sum(numbers) / 3


def test_text_in_svg_is_text(browser: Any, address: str) -> None:
    page = opened(browser)
    page.goto(f"{address}catalogue/warp/mma-sm-80-f16-into-f32.html")
    texts = page.eval_on_selector_all("svg.texgen text", "all => all.map(t => t.textContent)")
    assert texts.count("T5") >= 3 and "V2" in texts
    alternative = page.get_attribute("svg.texgen", "aria-label")
    assert "thread 0 holds" in alternative.lower()
    page.context.close()


def test_the_filter(browser: Any, address: str) -> None:
    page = opened(browser)
    page.goto(f"{address}catalogue/index.html")

    def rows() -> list[str]:
        return page.eval_on_selector_all(
            "table.catalogue-index tbody tr", "rows => rows.filter(r => !r.hidden && r.offsetHeight).map(r => r.cells[0].textContent.trim())"
        )

    total = len(rows())
    assert total > 60
    page.get_by_label("Architecture").select_option("sm_90a")
    assert rows() and all(name.startswith("wgmma") for name in rows())
    page.get_by_label("Type").select_option("tf32")
    assert 0 < len(rows()) <= 3
    page.get_by_label("Architecture").select_option("")
    page.get_by_label("Type").select_option("")
    page.get_by_label("Shape").fill("64x128x16")
    assert any("wgmma sm_90a, f16" in name for name in rows()) and not any("sm_80" in name for name in rows())
    page.get_by_label("Shape").fill("16x8x16")
    assert "mma sm_80, f16 into f32" in rows()
    page.get_by_label("Shape").fill("7x7x7")
    assert rows() == [] and page.get_by_role("status").text_content() == f"0 of {total} pages"
    page.get_by_label("Shape").fill("")
    page.get_by_label("Words").fill("ldmatrix")
    assert rows() and all("ldmatrix" in name for name in rows())
    page.context.close()


def test_keyboard(browser: Any, address: str) -> None:
    """Tab reaches the filter and a row's link; Enter opens it; a picture opens and closes by keyboard."""
    page = opened(browser)
    page.goto(f"{address}catalogue/index.html")
    words = page.get_by_label("Words")
    for _ in range(250):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.catalogue-filter') !== null"):
            break
    else:
        pytest.fail("Tab does not reach the filter")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    while not words.evaluate("e => e === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.type("wgmma tf32 sparse")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for _ in range(3):
        if page.evaluate("document.activeElement.tagName") == "A":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/wgmma-sm-90a-tf32-into-f32-sparse.html")
    page.get_by_role("button", name="Enlarge").first.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog.large")
    assert dialog.is_visible() and dialog.locator("svg, img").first.bounding_box()["width"] > 300
    page.keyboard.press("Escape")
    assert page.locator("dialog.large").count() == 0
    assert not page.said
    page.context.close()


def test_an_anchor_leads_to_its_atom(browser: Any, address: str) -> None:
    page = opened(browser)
    page.goto(f"{address}catalogue/warpgroup/wgmma-sm-90a-f16-into-f32.html#SM90_64x128x16_F32F16F16_RS")
    place = page.locator("[id='SM90_64x128x16_F32F16F16_RS']")
    playwright.expect(place).to_be_in_viewport(timeout=20_000)
    page.context.close()


def test_without_scripts_it_is_whole(browser: Any, address: str) -> None:
    page = opened(browser, script=False)
    page.goto(f"{address}catalogue/index.html")
    assert page.locator("table.catalogue-index tbody tr").count() > 60
    assert page.locator(".catalogue-filter").count() == 0
    page.context.close()


def axe() -> str:
    """axe-core's script, empty where it is not at hand: AXE_CORE names it, or npm has put it into node_modules."""
    places = [os.environ.get("AXE_CORE", ""), *(str(p / "node_modules/axe-core/axe.min.js") for p in Path(__file__).parents)]
    return next((p for p in places if p and Path(p).is_file()), "")


@pytest.mark.skipif(not axe(), reason="axe-core is not installed: npm install axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, address: str, scheme: str) -> None:
    page = opened(browser, scheme=scheme)
    found = []
    for name in (k for k in KINDS if k not in HEAVY):
        page.goto(f"{address}{name}.html")
        page.add_script_tag(path=axe())
        result = page.evaluate("axe.run(document, {resultTypes: ['violations'], exclude: [['.texgen-picture svg text']]})")
        for violation in result["violations"]:
            if violation["impact"] in ("serious", "critical"):
                found.append((name, violation["id"], [n["target"] for n in violation["nodes"]][:3]))
    assert not found, "\n".join(map(str, found[:20]))
    page.context.close()


def test_figures_on_file_pages_work_too(browser: Any, built_site: Path) -> None:
    """Opened from the disk, without a server."""
    page = opened(browser)
    page.goto((built_site / "catalogue" / "index.html").as_uri())
    assert page.locator(".catalogue-filter").count() == 1
    assert not page.said
    page.context.close()


