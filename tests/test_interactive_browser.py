"""A real browser points at figures: what lights up is what the spec's own tables say, by mouse, touch and keyboard."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import texgen
from texgen.api import Drawing, FigureOptions
from texgen.spec_json import from_dict
from texgen.specs import LayoutSpec, TVMap, TVSpec

playwright = pytest.importorskip("playwright.sync_api")

from test_site_browser import ARGUMENTS, axe  # noqa: E402

pytestmark = [pytest.mark.chromium, pytest.mark.xdist_group("browser")]
F16 = "SM80_16x8x16_F32F16F16F32_TN"
Cell = tuple[int, int]
HEIGHT = 1000


def explicit_table() -> TVSpec:
    """Owners drawn at random: cells with none, with one and with several."""
    tv = np.random.default_rng(7).integers(0, 24 * 20, (48, 9))
    return TVSpec("random", TVMap((24, 20), tv.astype(np.int64)))


FIGURES: dict[str, Any] = {
    "atom": lambda: texgen.figure(F16),
    "tiled": lambda: texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16"),
    "wgmma": lambda: texgen.figure("SM90_64x16x16_F32F16F16_SS"),
    "ldmatrix": lambda: texgen.figure("SM75_U32x4_LDSM_N", theme="auto"),
    "swizzle": lambda: texgen.figure("S<3,4,3> o 0 o (8,64):(64,1)", bits=16, theme="auto"),
    "table": lambda: Drawing(explicit_table(), FigureOptions(theme="dark")),
    "aliases": lambda: texgen.figure("(8,(4,2)):(4,(1,0))"),
    "chain": lambda: texgen.chain("SM75_U32x4_LDSM_N", F16, smem="S<3,4,3> o 0 o (32,64):(64,1)", at=(16, 32)),
    "cropped": lambda: texgen.figure(F16, atom_layout="2,2,1", tile="64,64,16", rows="4:20,40:44", cols="8:24"),
}  # fmt: skip
CELLS = 17
"""Cells that are pointed at in each figure in the light, more than a hundred in six of them; in the dark five."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def drawings() -> dict[str, Any]:
    return {name: make() for name, make in FIGURES.items()}


class Tab:
    """A page that remembers what it said and asked for."""

    def __init__(self, browser: Any, scheme: str = "light", width: int = 1300, touch: bool = False, script: bool = True, mobile: bool = False) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, has_touch=touch, java_script_enabled=script, is_mobile=mobile
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Any:
        self.page.goto("about:blank")
        self.page.goto(path.as_uri() + fragment)
        self.page.wait_for_selector(".txg-live")
        return self.page

    def close(self) -> None:
        """Nothing but the file itself was asked for, and nothing was said."""
        assert not self.said, self.said
        assert all(url.startswith(("file:", "about:blank")) for url in self.asked), self.asked
        self.context.close()


@pytest.fixture
def saved(tmp_path: Path, drawings: dict[str, Any]) -> Any:
    return lambda name: drawings[name].save(tmp_path / f"{name}.html")


def line(page: Any) -> str:
    return str(page.text_content(".txg-line"))


def middle(page: Any, panel: Any, place: Cell) -> Cell:
    """The middle of a picture's cell on the screen, by the static figure's own frame."""
    frame = page.locator(f"svg.texgen [data-panel={panel.key}] .txg-frame")

    def height() -> float:
        box = frame.bounding_box()
        return float(box["y"] + box["height"] * (place[0] + 0.5) / panel.height)

    if not 150 < height() < HEIGHT - 20:  # below the line, above the window's end
        page.evaluate(f"window.scrollBy(0, {height() - HEIGHT / 2})")
    def across() -> float:
        box = frame.bounding_box()
        return float(box["x"] + box["width"] * (place[1] + 0.5) / panel.width)

    wide = page.viewport_size["width"]
    if not 30 < across() < wide - 30:  # an enlarged figure scrolls in its own box
        page.evaluate(f"document.querySelector('.txg-view').scrollBy(({across()}) - {wide / 2}, 0)")
    return across(), height()


def lit(page: Any, panel: Any) -> set[Cell]:
    """The places of a panel that are not veiled, read out of the veil's path."""
    path = page.get_attribute(f".txg-over [data-panel={panel.key}] .txg-veil", "d") or ""
    everything = set(itertools.product(range(panel.height), range(panel.width)))
    if not path:
        return everything
    whole, *holes = path.rstrip("z").split("z")
    assert whole == f"M0 0H{panel.width}V{panel.height}H0"
    out: set[Cell] = set()
    for hole in holes:
        x0, y0, x1, y1 = map(int, re.fullmatch(r"M(\d+) (\d+)H(\d+)V(\d+)H\d+", hole).groups())
        out |= set(itertools.product(range(y0, y1), range(x0, x1)))
    return out


def shown_cells(panel: Any) -> dict[Cell, Cell]:
    """Place in the picture → (row, column) in the operand's tile."""
    places = itertools.product(range(panel.height), range(panel.width))
    rows, columns = panel.rows.tolist(), panel.columns.tolist()
    return {(y, x): (columns[x], rows[y]) if panel.transposed else (rows[y], columns[x]) for y, x in places}


def owned(operand: TVMap, threads: set[int]) -> set[Cell]:
    """The cells of those threads, straight from the table."""
    height = operand.tile[0]
    return {(int(i) % height, int(i) // height) for t in threads if t < operand.threads for i in operand.tv[t]}


def expected(drawing: Any, key: str, place: Cell) -> tuple[dict[str, set[Cell]], list[str], str]:
    """(places that light up in each panel, the owners in words, the cell's name) for one that is pointed at."""
    panels = {p.key: p for p in drawing.figure.panels}
    row, column = shown_cells(panels[key])[place]
    spec = drawing.spec
    if isinstance(spec, LayoutSpec):
        table = spec.plain if key == "before" else spec.offsets
        same = {(int(r), int(c)) for r, c in np.argwhere(table == table[row, column])}
        lights, owners, name = {k: same for k in panels}, [], f"({row}, {column})"
    else:
        operands = spec.operands()
        owners = operands[key].owners(row, column)
        threads = {o.thread for o in owners}
        lights = {k: owned(operands[k], threads) if threads else ({(row, column)} if k == key else set()) for k in panels}
        name = f"{'' if key == 'TV' else key}({row}, {column})"
        in_memory = operands[key].memory == "smem" and spec.kind == "mma"
        owners = [] if in_memory else [f"T{o.thread} V{o.value}" for o in owners]
    return {k: {place for place, cell in shown_cells(p).items() if cell in lights[k]} for k, p in panels.items()}, owners, name


def some_cells(drawing: Any, count: int, seed: int) -> list[tuple[str, Cell]]:
    """Random cells, a third of the panels each."""
    dice = random.Random(seed)
    panels = drawing.figure.panels
    return [(p.key, (dice.randrange(p.height), dice.randrange(p.width))) for p in itertools.islice(itertools.cycle(panels), count)]


def check(page: Any, drawing: Any, key: str, place: Cell) -> None:
    lights, owners, name = expected(drawing, key, place)
    for panel in drawing.figure.panels:
        assert lit(page, panel) == lights[panel.key], (key, place, panel.key)
    said = line(page)
    assert name in said and ", ".join(owners[:6]) in said, (said, owners)
    if len(owners) > 6:
        assert f"and {len(owners) - 6} more" in said


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [name for name in FIGURES if name != "chain"])
def test_what_lights_up_is_what_the_table_says(browser: Any, drawings: dict[str, Any], saved: Any, name: str, scheme: str) -> None:
    tab, drawing = Tab(browser, scheme), drawings[name]
    page = tab.open(saved(name))
    panels = {p.key: p for p in drawing.figure.panels}
    for key, place in some_cells(drawing, CELLS if scheme == "light" else 5, 11 + len(scheme)):
        page.mouse.move(*middle(page, panels[key], place))
        check(page, drawing, key, place)
    page.mouse.move(2, 2)
    assert all(lit(page, p) == set(shown_cells(p)) for p in panels.values()) and line(page).startswith("Point at")
    assert page.evaluate("location.hash") == "", "pointing alone leaves the address as it is"
    tab.close()


@pytest.mark.parametrize("name", ["atom", "tiled", "table"])
def test_touch_keeps_what_is_tapped(browser: Any, drawings: dict[str, Any], saved: Any, name: str) -> None:
    tab, drawing = Tab(browser, width=800, touch=True), drawings[name]
    page = tab.open(saved(name))
    panels = {p.key: p for p in drawing.figure.panels}
    for key, place in some_cells(drawing, 6, 5):
        page.touchscreen.tap(*middle(page, panels[key], place))
        check(page, drawing, key, place)
        assert "kept" in line(page) and "#txg=" in page.url
    page.get_by_role("button", name="Clear").tap()
    assert "#" not in page.url and all(lit(page, p) == set(shown_cells(p)) for p in panels.values())
    tab.close()


@pytest.mark.parametrize("name", ["atom", "wgmma", "ldmatrix", "swizzle"])
def test_keyboard(browser: Any, drawings: dict[str, Any], saved: Any, name: str) -> None:
    """Tab goes from panel to panel, arrows from cell to cell, Enter keeps, Escape lets go."""
    tab, drawing = Tab(browser), drawings[name]
    page = tab.open(saved(name))
    dice = random.Random(3)
    stops = []
    for _ in range(20):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.dataset.panel ?? document.activeElement.tagName"))
        if stops[-1] != "BODY" and stops[-1] not in ("INPUT", "BUTTON"):
            panel = next(p for p in drawing.figure.panels if p.key == stops[-1])
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            place = (0, 0)
            check(page, drawing, panel.key, place)
            for _ in range(5):
                press, dy, dx = dice.choice([("ArrowDown", 1, 0), ("ArrowRight", 0, 1), ("ArrowUp", -1, 0), ("ArrowLeft", 0, -1), ("End", 0, panel.width), ("PageDown", 8, 0)])
                page.keyboard.press(press)
                place = (min(max(place[0] + dy, 0), panel.height - 1), min(max(place[1] + dx, 0), panel.width - 1))
                check(page, drawing, panel.key, place)
        if len([s for s in stops if s in {p.key for p in drawing.figure.panels}]) == len(drawing.figure.panels):
            break
    assert [s for s in stops if s not in ("INPUT", "BUTTON")] == [p.key for p in drawing.figure.panels]
    page.keyboard.press("Enter")
    kept = line(page)
    assert "kept" in kept
    page.mouse.move(*middle(page, drawing.figure.panels[0], (1, 1)))
    assert line(page) == kept, "what is kept stays while the pointer moves"
    page.keyboard.press("Escape")
    assert "kept" not in line(page)
    tab.close()


def test_the_thread_slider(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    tab, drawing = Tab(browser), drawings["tiled"]
    page = tab.open(saved("tiled"))
    slider = page.get_by_role("slider", name="Thread")
    slider.focus()
    for thread in range(3):
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == f"T{thread}"
        for panel in drawing.figure.panels:
            cells = owned(drawing.spec.operands()[panel.key], {thread})
            assert lit(page, panel) == {p for p, cell in shown_cells(panel).items() if cell in cells}
        assert line(page).startswith(f"T{thread} holds")
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == f"T{drawing.spec.threads - 1}"
    page.wait_for_function("location.hash === '#txg=T127'")
    tab.close()


def test_the_offset_slider_walks_memory(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    tab, spec = Tab(browser), drawings["swizzle"].spec
    page = tab.open(saved("swizzle"))
    slider = page.get_by_role("slider", name="Offset")
    for offset in (0, 70, 511):
        slider.fill(str(offset))
        (cell,) = np.argwhere(spec.offsets == offset).tolist()
        for panel in drawings["swizzle"].figure.panels:
            assert lit(page, panel) == {tuple(cell)}
        row, column = cell
        assert f"offset {spec.plain[row, column]}, byte {2 * spec.plain[row, column]}" in line(page)
        assert f"offset {offset}, byte {2 * offset}, bank {2 * offset // 4 % 32} after the swizzle" in line(page)
    tab.close()


def test_the_k_slider_shows_the_products_of_a_cell(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    tab, drawing = Tab(browser), drawings["tiled"]
    page = tab.open(saved("tiled"))
    panels = {p.key: p for p in drawing.figure.panels}
    spec, dice = drawing.spec, random.Random(1)
    for _ in range(5):
        m, n, k = dice.randrange(32), dice.randrange(32), dice.randrange(16)
        page.get_by_label("Find", exact=True).fill(f"C({m},{n})")
        page.keyboard.press("Enter")
        page.get_by_role("slider", name="k", exact=True).fill(str(k))
        marked = {}
        for key, panel in panels.items():
            box = re.match(r"M(\S+) (\S+?)h([\d.]+)", page.get_attribute(f".txg-over [data-panel={key}] .txg-mate", "d"))
            x, y = (round(float(box[i]) + (float(box[3]) - 1) / 2) for i in (1, 2))
            marked[key] = shown_cells(panel)[min(y, panel.height - 1), x]
        assert marked == {"A": (m, k), "B": (n, k), "C": (m, n)}
        owner = spec.A.owners(m, k)[0]
        assert f"k = {k}: A({m}, {k}) of T{owner.thread} V{owner.value}" in line(page) and f"B({n}, {k}) of T" in line(page)
        assert (m, k) in {shown_cells(panels["A"])[p] for p in lit(page, panels["A"])}
    page.wait_for_function(f"location.hash === '#txg=C({m},{n});k={k}'")
    tab.close()


@pytest.mark.parametrize(("name", "text", "said"), [
    ("atom", "T999", "T999 does not exist: there are T0 to T31."), ("atom", "C(16,0)", "C(16, 0) is outside: m runs from 0 to 15 and n runs from 0 to 7."),
    ("atom", "V9", "V9 does not exist: there are V0 to V7."), ("atom", "D(1,1)", "There is no D: here are A, B, C;"), ("atom", "W1", "W1 does not exist: there is only W0."),
    ("atom", "T3-T1", "T3-T1 runs backwards: write T1-T3."), ("atom", "T5,T32", "T32 does not exist"), ("atom", "M0", "Here are no matrices"),
    ("chain", "M9", "M9 does not exist: there are M0 to M3."), ("chain", "W1", "W1 does not exist: there is only W0."),
    ("chain", "smem(3,5)", "shared memory (a 3, b 5) is not in the picture: a runs from 2048 to 3968 in steps of 128 and b runs from 0 to 28 in steps of 4."),
    ("chain", "register(32,0)", "register (T 32, r 0) is not in the picture: T runs from 0 to 31 and r runs from 0 to 3."),
    ("chain", "shared memory (b 2048, a 0)", "The axes of shared memory are a and b"), ("chain", "D(1,1)", "There is no D: here are smem, registers, A;"),
    ("atom", "<img src=x onerror=alert(1)>", "“<img src=x onerror=alert(1)>” is not understood: write T5 or C(3,5)."),
    ("swizzle", "512", "No cell has offset 512: they run from 0 to 511."), ("swizzle", "T3", "Here no thread holds a cell"),
    ("table", "(24,0)", "(24, 0) is outside"),
])  # fmt: skip
def test_a_search_that_fails_says_why(browser: Any, saved: Any, name: str, text: str, said: str) -> None:
    tab = Tab(browser)
    page = tab.open(saved(name))
    field = page.get_by_label("Find", exact=True)
    field.fill(text)
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").text_content().startswith(said)
    assert field.get_attribute("aria-invalid") == "true" and "#" not in page.url
    field.fill("")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").text_content() == ""
    tab.close()


def test_search(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    tab, drawing = Tab(browser), drawings["tiled"]
    page = tab.open(saved("tiled"))
    operands = drawing.spec.operands()
    for text, threads, value in (("T37", {37}, None), ("w1", set(range(32, 64)), None), ("t5 v2", {5}, 2), ("Q3", {12, 13, 14, 15}, None),
                                 ("T5,T60", {5, 60}, None), ("t0-t3", {0, 1, 2, 3}, None), ("W0 - 1, Q31", {*range(64), *range(124, 128)}, None)):  # fmt: skip
        page.get_by_label("Find", exact=True).fill(text)
        page.keyboard.press("Enter")
        for panel in drawing.figure.panels:
            operand = operands[panel.key]
            cells = owned(operand, threads) if value is None else {divmod(int(operand.tv[5, value]), operand.tile[0])[::-1]}
            assert lit(page, panel) == {p for p, cell in shown_cells(panel).items() if cell in cells}, (text, panel.key)
    tab.close()


def test_the_address_keeps_the_state(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    tab, drawing = Tab(browser), drawings["atom"]
    page = tab.open(saved("atom"))
    page.mouse.click(*middle(page, drawing.figure.panels[2], (3, 5)))
    page.get_by_role("slider", name="k", exact=True).fill("7")
    page.wait_for_function("location.hash === '#txg=C(3,5);k=7'")
    before = line(page)
    page.reload()
    page.wait_for_selector(".txg-live")
    assert line(page) == before and "k = 7" in before and page.get_by_role("slider", name="k", exact=True).input_value() == "7"
    for bad, said in (
        ("#txg=C(99,5)", "C(99, 5) is outside"), ("#txg=T99", "T99 does not exist: there are T0 to T31."), ("#txg=nonsense", "“nonsense” is not understood"),
        ("#txg=T1e9;k=99", "“T1E9”"), ("#txg=k=99", "There is no k = 99: k runs from 0 to 15."), ("#txg=;;k=-1", "There is no k = -1"), ("#txg=<script>", "“<script>”"),
        ("#txg=%E0%A4%A", ""), ("#txg=other:T3", ""), ("#txg=", ""), ("#elsewhere", ""),
    ):  # fmt: skip
        tab.open(saved("atom"), bad)
        assert line(page).startswith("Point at"), bad
        alert = page.get_by_role("alert").text_content()
        assert alert.lower().startswith(said.lower()) and bool(alert) == bool(said), (bad, alert)
    tab.open(saved("atom"), "#txg=T5,T6;k=2")
    assert line(page).startswith("T5, T6 hold A(1, 2)") and "k = 2" in line(page)
    tab.close()


def test_two_figures_in_a_page_keep_apart(browser: Any, drawings: dict[str, Any], tmp_path: Path) -> None:
    """Three elements, two of them the same, in a page with anchors of its own."""
    one, two = (drawings[n].html(element=True) for n in ("atom", "ldmatrix"))
    path = tmp_path / "post.html"
    path.write_text(f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Post</title><h2 id=part>Part</h2><a href='#part'>to it</a>{one}{two}{one}", encoding="utf-8")
    tab = Tab(browser)
    page = tab.open(path, "#part")
    page.wait_for_function("document.querySelectorAll('.txg-live').length === 3")
    figures = page.locator(".txg-figure")
    names = [figures.nth(i).get_attribute("data-txg-figure") for i in range(2)]
    assert names[0] != names[1] and all(names)
    figures.nth(1).get_by_label("Find", exact=True).fill("T5")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == f"#txg={names[1]}:T5"
    assert figures.nth(0).locator(".txg-line").text_content().startswith("Point at")
    figures.nth(0).get_by_label("Find", exact=True).fill("T7")
    page.keyboard.press("Enter")
    assert set(page.evaluate("location.hash.slice(1).split('&')")) == {f"txg={names[0]}:T7", f"txg={names[1]}:T5"}
    kept = [figures.nth(i).locator(".txg-line").text_content() for i in range(2)]
    page.reload()
    page.wait_for_function("document.querySelectorAll('.txg-live').length === 3")
    assert [figures.nth(i).locator(".txg-line").text_content() for i in range(2)] == kept
    page.get_by_role("link", name="to it").click()
    assert page.evaluate("location.hash") == "#part"
    figures.nth(0).get_by_role("button", name="Clear").click()
    figures.nth(1).get_by_role("button", name="Clear").click()
    assert page.evaluate("location.hash") == "#part", "the page's own anchor is put back"
    ids = page.evaluate("[...document.querySelectorAll('.txg-error')].map(e => e.id)")
    assert len(set(ids)) == 3
    tab.close()


HOSTILE = '</script><script>window.hit=1</script><img src=x onerror="window.hit=2">&lt;b&gt; {{7*7}} ${7*7} \u202eRTL\u202c \u2028 \x07 \x00 <!-- ]]> \' "onload=window.hit=3'


@pytest.mark.parametrize("element", [False, True])
def test_hostile_names_are_text(browser: Any, tmp_path: Path, element: bool) -> None:
    table = {"tile": [2, 2], "tv": [[0, 1], [2, 3]], "name": HOSTILE, "dtype": HOSTILE, "layout": HOSTILE, "notes": [HOSTILE]}
    drawing = Drawing(from_dict(table), FigureOptions(title=HOSTILE))
    path = tmp_path / "hostile.html"
    path.write_text(drawing.html(element=element), encoding="utf-8")
    tab = Tab(browser)
    page = tab.open(path)
    page.mouse.move(*middle(page, drawing.figure.panels[0], (1, 0)))
    assert line(page).startswith("T0 V1 → (1, 0)")
    assert page.evaluate("window.hit") is None and page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    shown = page.text_content("svg.texgen .txg-title")
    assert "</script><script>window.hit=1</script>" in shown and "&lt;b&gt; {{7*7}} ${7*7}" in shown
    tab.close()


def test_without_scripts_it_is_the_static_figure(browser: Any, saved: Any) -> None:
    tab = Tab(browser, script=False)
    tab.page.goto(saved("atom").as_uri())
    assert tab.page.locator("input, button, .txg-line").count() == 0
    assert tab.page.locator("svg.texgen").bounding_box()["width"] > 300
    assert tab.page.locator("svg").count() == 1
    tab.close()


def test_thousands_of_labels_come_where_they_can_be_read(browser: Any, tmp_path: Path) -> None:
    """Too small or out of the window they are not laid out; enlarged they are the static figure's; a printer gets them all."""
    path = texgen.figure("(72,72):(72,1)").save(tmp_path / "large.html")
    labels = "() => [...document.querySelectorAll('.txg-labels text')].map((t) => [t.textContent, t.getAttribute('x'), t.getAttribute('y')].join(' '))"
    bare = Tab(browser, script=False)
    bare.page.goto(path.as_uri())
    assert bare.page.locator(".txg-labels text").first.is_visible()
    bare.close()
    drawn = path.read_text(encoding="utf-8").partition('<g class="txg-labels"')[2].partition("</g>")[0]
    everything = {f"{text} {x} {y}" for x, y, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)">(\d+)</text>', drawn)}
    assert len(everything) == 72 * 72
    tab = Tab(browser, width=700)
    page = tab.open(path)
    assert page.evaluate(labels) == [] and "enlarged" in line(page)
    for _ in range(3):
        page.get_by_label("Larger").click()
    page.wait_for_function("document.querySelector('.txg-labels text')")
    assert "enlarged" not in line(page)
    first = set(page.evaluate(labels))
    assert any(label.startswith("0 ") for label in first) and first < everything
    page.evaluate("window.scrollTo(0, 1e6); document.querySelector('.txg-view').scrollLeft = 1e6")
    page.wait_for_function("[...document.querySelectorAll('.txg-labels text')].some((t) => t.textContent === '5183')")
    last = set(page.evaluate(labels))
    assert last < everything and not any(label.startswith("0 ") for label in last)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert sorted(page.evaluate(labels)) == sorted(everything)
    tab.close()


def test_labels_come_however_a_figure_comes_into_sight(browser: Any, tmp_path: Path) -> None:
    """What stands above it folds, and no scroll says so; or it was not shown when the page opened."""
    path, figure = tmp_path / "folded.html", texgen.figure("(56,56):(56,1)").html(element=True)
    count = "document.querySelectorAll('.txg-labels text').length"
    for before, after, come in (
        ("<p style='height:5000px'></p>", "", "document.querySelector('p').remove()"),
        ("<div style='display:none'>", "</div>", "document.querySelector('div').style.display = ''"),
    ):
        path.write_text(f"<!DOCTYPE html><title>folded</title><body>{before}{figure}{after}", encoding="utf-8")
        tab = Tab(browser)
        page = tab.page
        page.goto(path.as_uri())
        page.wait_for_selector(".txg-live", state="attached")
        page.evaluate("new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))")
        assert page.evaluate(count) == 0, before
        page.evaluate(come)
        page.wait_for_function(f"{count} > 2000")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1300
        tab.close()


@pytest.mark.parametrize("around", ["<div style='overflow:auto'>", "<div><nav style='position:sticky;top:0;height:60px;z-index:9;background:#fff'>header</nav>"])
def test_the_line_is_read_wherever_a_theme_keeps_it(browser: Any, drawings: dict[str, Any], tmp_path: Path, around: str) -> None:
    """A box that scrolls takes a sticky line along, a header covers it: its words stand at the window's other edge than the cell."""
    drawing, path = drawings["tiled"], tmp_path / "theme.html"
    path.write_text(f"<!DOCTYPE html><title>theme</title><body style='height:9000px'>{around}{drawing.html(element=True)}</div>", encoding="utf-8")
    tab = Tab(browser)
    page, echo = tab.open(path), tab.page.locator(".txg-echo")
    panel = next(p for p in drawing.figure.panels if p.key == "C")
    page.get_by_label("Find", exact=True).fill("C(4,5)")
    page.keyboard.press("Enter")
    assert line(page).startswith("T") and echo.is_hidden()
    top = page.locator(".txg-target[data-panel=C]").evaluate("e => e.getBoundingClientRect().top + scrollY")
    for place, edge in (((3, 5), "bottom"), ((30, 5), "top")):
        page.evaluate(f"window.scrollTo(0, {top} - 200)")
        page.mouse.click(*middle(page, panel, place))
        echo.wait_for()
        assert echo.text_content() == line(page) and f"C{place}" in line(page)
        box = echo.bounding_box()
        assert box["y"] == 0 if edge == "top" else abs(box["y"] + box["height"] - HEIGHT) < 1
    page.evaluate("window.scrollTo(0, 1e6)")
    echo.wait_for(state="hidden")
    tab.close()


def test_a_strict_policy_lets_it_run(browser: Any, drawings: dict[str, Any], tmp_path: Path) -> None:
    """One inline script: its hash is all that a content security policy has to name; the tables of a large random one unfold too."""
    import base64
    import hashlib

    text = Drawing(TVSpec("large", TVMap((40, 40), np.random.default_rng(0).permutation(1600).reshape(32, 50))), FigureOptions()).html()
    assert '"deflate"' in text
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    path = tmp_path / "policy.html"
    path.write_text(text.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'), encoding="utf-8")
    tab = Tab(browser)
    page = tab.open(path)
    page.get_by_role("slider", name="Thread").focus()
    page.keyboard.press("ArrowRight")
    assert line(page).startswith("T0 holds")
    tab.close()


@pytest.mark.skipif(not axe(), reason="axe-core is not installed: npm install axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["atom", "swizzle", "table", "chain"])
def test_axe_finds_nothing_serious(browser: Any, saved: Any, name: str, scheme: str) -> None:
    tab = Tab(browser, scheme, width=390 if name == "chain" else 1300, touch=name == "chain")
    page = tab.open(saved(name))
    page.add_script_tag(path=axe())
    for text in ("", "nothing like it", "(1,1)"):
        page.get_by_label("Find", exact=True).fill(text)
        page.keyboard.press("Enter")
        result = page.evaluate("axe.run(document, {resultTypes: ['violations'], exclude: [['svg.texgen text']]})")
        assert [v["id"] for v in result["violations"] if v["impact"] in ("serious", "critical")] == [], text
    tab.context.close()


@pytest.mark.parametrize("name", ["atom", "swizzle", "tiled", "chain"])
def test_on_a_phone(browser: Any, drawings: dict[str, Any], saved: Any, name: str) -> None:
    """A finger hits every cell; the figure scrolls sideways in its own box, the page does not."""
    tab, drawing = Tab(browser, width=390, touch=True, mobile=True), drawings[name]
    page = tab.open(saved(name))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for box in page.locator(".txg-controls *:visible").all():
        assert box.evaluate("e => e.tagName === 'OPTION'") or box.bounding_box()["x"] + box.bounding_box()["width"] <= 390
    for panel in drawing.figure.panels:
        box = page.locator(f".txg-target[data-panel={panel.key}]").bounding_box()
        assert box["width"] / panel.width > 23.9 and box["height"] / panel.height > 23.9
    last = drawing.figure.panels[-1]
    page.get_by_label("Go to panel").select_option(label=last.title)
    box = page.locator(f".txg-target[data-panel={last.key}]").bounding_box()
    assert box["x"] < 390 and box["x"] + box["width"] > 0 and box["y"] < HEIGHT
    while page.get_by_role("button", name="Smaller").get_attribute("aria-disabled") == "false":
        page.get_by_role("button", name="Smaller").tap()
    assert page.locator("svg.texgen").bounding_box()["width"] <= 390
    tab.close()


def test_a_turned_phone_stays_where_it_was(browser: Any, saved: Any) -> None:
    tab = Tab(browser, width=390, touch=True, mobile=True)
    page = tab.open(saved("tiled"))
    page.evaluate("window.scrollTo(0, 400); document.querySelector('.txg-view').scrollLeft = 300")
    page.set_viewport_size({"width": 844, "height": 390})
    page.wait_for_function("document.querySelector('.txg-view').clientWidth > 500")
    page.evaluate("new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))")
    assert page.evaluate("document.querySelector('.txg-view').scrollLeft") == 300
    assert page.evaluate("window.scrollY") > 200
    tab.close()


def test_zoom_by_keys(browser: Any, drawings: dict[str, Any], tmp_path: Path) -> None:
    """A figure that the window shrinks can be enlarged; the cell that the keys reach comes into sight."""
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="64,64,16")
    tab = Tab(browser, width=1000)
    page = tab.open(drawing.save(tmp_path / "large.html"))
    before = page.locator("svg.texgen").bounding_box()["width"]
    page.get_by_role("button", name="Larger").focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert page.locator("svg.texgen").bounding_box()["width"] > 2 * before
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    page.locator(".txg-target[data-panel=C]").focus()
    page.keyboard.press("Control+End")
    ring = page.locator(".txg-over [data-panel=C] .txg-ring").bounding_box()
    assert ring["x"] >= 0 and ring["x"] + ring["width"] <= 1000 and ring["y"] >= 0 and ring["y"] + ring["height"] <= HEIGHT
    over, static = (page.locator(s).bounding_box() for s in ("svg.txg-over", "svg.texgen"))
    assert all(abs(over[k] - static[k]) < 1 for k in over), "the overlay lies on the figure"
    tab.close()


@pytest.mark.parametrize(("theme", "scheme", "dark"), [("", "light", False), ("", "dark", True), ("light", "dark", False), ("dark", "light", True), ("auto", "dark", True)])
def test_a_page_follows_its_reader(browser: Any, tmp_path: Path, theme: str, scheme: str, dark: bool) -> None:
    """The card and the ground behind it; an element is light unless it is told otherwise."""
    drawing = texgen.figure("(4,8):(8,1)", theme=theme)
    tab = Tab(browser, scheme)
    page = tab.open(drawing.save(tmp_path / "page.html"))
    card, ground = page.evaluate("[getComputedStyle(document.querySelector('.txg-page')).fill, getComputedStyle(document.documentElement).backgroundColor]")
    assert card == ground == ("rgb(21, 24, 29)" if dark else "rgb(255, 255, 255)")
    if not theme:
        assert "prefers-color-scheme" not in drawing.svg() + drawing.html(element=True).split("<script")[0]
    tab.close()


def test_a_chain_by_the_names_that_it_says(browser: Any, drawings: dict[str, Any], saved: Any) -> None:
    """Places have the numbers of the axes, asked for and said; a lane names an address, and who gets what lies there is another matter."""
    tab, drawing = Tab(browser), drawings["chain"]
    page, panels = tab.open(saved("chain")), {p.key: p for p in drawing.figure.panels}

    def find(text: str) -> str:
        page.get_by_label("Find", exact=True).fill(text)
        page.keyboard.press("Enter")
        assert page.get_by_role("alert").text_content() == "", text
        return line(page).removesuffix(" (kept: Escape or Clear lets go)")

    who, what = panels["smem"].lines
    for r, c in ((0, 4), (3, 6), (4, 0), (15, 3)):  # cells that the static figure labels T7→ over 1,8
        a, b = int(panels["smem"].rows[r]), int(panels["smem"].columns[c])
        m, k = map(int, what[r][c].split(","))
        said = find(f"smem({a},{b})")
        names = f"shared memory (a {a}, b {b})"
        assert said.startswith(f"{names}: {who[r][c].removesuffix('→') or 'no thread'} names its address; A({m}, {k}) to A({m}, {k + 7}) lie there") or not who[r][c]
        assert find(names) == said and page.evaluate("location.hash") == f"#txg=smem({a},{b})"
    assert find("smem(2432,20)") == "shared memory (a 2432, b 20): A(3, 16) to A(3, 23) lie there, outside the tile of A, 16×16; no thread gets it"
    assert "before the tile of A" in find("smem(2048,0)")
    assert find("register(2,3)") == find("registers(2,3)") == find("register (T 2, r 3)") == "register (T 2, r 3): A(8, 12), A(8, 13); T2 V6, T2 V7 hold it"
    row, column = next((r, c) for r in range(16) for c in range(8) if who[r][c] == "T5→")
    assert find("T5").startswith(f"T5 names the address of shared memory (a {panels['smem'].rows[row]}, b {panels['smem'].columns[column]}); gets shared memory (a ")
    strip = page.get_attribute(".txg-over [data-panel=smem] .txg-strip", "d")
    assert strip == f"M{column} {row}h1v1h-1z"
    find("M2")
    assert lit(page, panels["A"]) == {(m, k) for m in range(8) for k in range(8, 16)}, "the matrix of A's first rows and last columns"
    assert lit(page, panels["registers"]) == {(t, 2) for t in range(32)}
    tab.close()


def test_numbers_alone_are_of_the_result(browser: Any, saved: Any) -> None:
    tab = Tab(browser)
    page = tab.open(saved("atom"))
    page.get_by_label("Find", exact=True).fill("3,5")
    page.keyboard.press("Enter")
    assert "→ C(3, 5)" in line(page) and page.evaluate("location.hash") == "#txg=C(3,5)"
    tab.close()


PAGE = f"""
.. texgen:mma:: {F16}
   :interactive:
   :name: one

.. texgen:layout:: (4,8):(8,1)
   :interactive:
   :width: 60%
"""


def test_in_a_page_of_a_site(browser: Any, tmp_path: Path) -> None:
    """Two figures of a page of furo share one script, and the theme's switch takes the veil with it."""
    pytest.importorskip("furo")
    from sphinx_site import Site

    site = Site(tmp_path / "site", 'html_theme = "furo"')
    site.page(PAGE)
    tab = Tab(browser, "dark")
    page = tab.open(site.build().out / "index.html", "#txg=one:T5")
    page.wait_for_function("document.querySelectorAll('.txg-live').length === 2")
    first = page.locator(".txg-figure").first
    assert first.locator(".txg-line").text_content().startswith("T5 holds")
    paper = "e => getComputedStyle(e.querySelector('.txg-veil')).fill"
    dark = first.evaluate(paper)
    page.evaluate("document.body.dataset.theme = 'light'")
    page.wait_for_function("getComputedStyle(document.querySelector('.txg-veil')).fill === 'rgb(255, 255, 255)'")
    assert dark != "rgb(255, 255, 255)"
    over, static = (first.locator(s).bounding_box() for s in ("svg.txg-over", "svg.texgen"))
    assert all(abs(over[k] - static[k]) < 1 for k in over), "the overlay lies on the figure"
    second = page.locator(".txg-figure").nth(1)
    over, static = (second.locator(s).bounding_box() for s in ("svg.txg-over", "svg.texgen"))
    assert all(abs(over[k] - static[k]) < 1 for k in over)
    assert sum("texgen.js" in url for url in tab.asked) == 1
    tab.close()
