"""``texgen:results`` and the role ``texgen:result``: what was measured on a GPU, read from the result files of
``texgen verify``, ``texgen bench`` and the count of bank conflicts. No number on a page is typed in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from texgen.sphinxext.charts import Bar, chart
from texgen.sphinxext.stamps import results_folder

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

    from texgen.sphinxext.domain import TexgenDomain

KINDS = ("bench", "verify", "conflicts")
MAKE = {"bench": "texgen bench", "verify": "texgen verify", "conflicts": "python -m texgen.measure.conflicts"}
OLDER = "measured with an older version"
CUBED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
logger = logging.getLogger(__name__)

Cell = Sequence[nodes.Node] | str


@dataclass(frozen=True)
class File:
    """A result file: where it is, and what it holds; None where it is missing or no result."""

    path: Path
    shown: str
    data: dict[str, Any] | None
    fault: str = ""

    @property
    def absence(self) -> str:
        """What a page says in place of the numbers."""
        return self.fault or f"Not measured yet: there is no {self.shown}."


def load(env: BuildEnvironment, kind: str, gpu: str = "") -> File:
    """The result file of a GPU, of the first that has one if none is named. A page that asks depends on it."""
    folder = results_folder(env)
    if gpu:
        path = folder / gpu / f"{kind}.json"
    else:
        path = next(iter(sorted(folder.glob(f"*/{kind}.json"))), folder / "GPU" / f"{kind}.json")
    shown = f"{env.config.texgen_results}/{path.parent.name}/{path.name}".replace("GPU/", "<gpu>/")
    if path.parent.name != "GPU":
        env.note_dependency(str(path))
    if not path.is_file():
        return File(path, shown, None)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != 1 or not isinstance(data.get("entries"), list):
            raise ValueError('no "schema": 1 with "entries"')
    except (OSError, ValueError) as error:
        return File(path, shown, None, f"{shown} is no result file: {error}.")
    return File(path, shown, data)


def is_older(env: BuildEnvironment, entry: dict[str, Any]) -> bool:
    """True if a kernel of texgen's has changed since the measurement."""
    from texgen.kernels import KERNELS
    from texgen.measure.provenance import source_files, source_hash

    name = str(entry.get("kernel"))
    if name not in KERNELS:
        return False
    for path in source_files(name):
        env.note_dependency(str(path))
    return source_hash(name) != entry.get("source_hash")


# Words -------------------------------------------------------------------------------------------------------------------


def size(entry: dict[str, Any]) -> str:
    """``4096³``, ``1000×7×129``, or the length of a vector."""
    m, n, k = (int(entry[x]) for x in "mnk")
    if m == n == k:
        return f"{m}³"
    if n == k == 1:
        return f"2{str(m.bit_length() - 1).translate(CUBED)}" if m & (m - 1) == 0 else f"{m:,}"
    return f"{m}×{n}×{k}"


def duration(seconds: float) -> str:
    """A time with three or four digits."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def rate(entry: dict[str, Any]) -> str:
    """What was done in a second."""
    if "flop_per_s" in entry:
        return f"{entry['flop_per_s'] / 1e12:.1f} TFLOP/s"
    return f"{entry['bytes_per_s'] / 1e12:.2f} TB/s" if "bytes_per_s" in entry else "—"


def ratios(entry: dict[str, Any]) -> list[tuple[float, str]]:
    """(another's median time over ours, the other with its precision)."""
    out = [(entry["ratio_to_torch"], f"torch {entry['torch_precision']}")]
    if "ratio_to_torch_tf32" in entry:
        out.append((entry["ratio_to_torch_tf32"], "torch float32 (TF32 on)"))
    if "ratio_to_copy" in entry:
        out.append((entry["ratio_to_copy"], "a copy on the device, by bytes a second"))
    return out


def machine(data: dict[str, Any]) -> str:
    """GPU, driver, clocks, versions, day."""
    clocks = data.get("clocks", {}).get("before", {})
    parts = [f"{data['gpu']} (driver {data['driver']}"]
    parts[0] += f", SM clock up to {clocks['sm_max_mhz']:.0f} MHz" if clocks.get("sm_max_mhz") else ""
    parts[0] += f", power limit {clocks['power_limit_w']:.0f} W)" if clocks.get("power_limit_w") else ")"
    parts.append(f"CuTe DSL {data['dsl']}")
    parts.append(f"torch {data['torch']}")
    return f"{', '.join(parts)}, {str(data['date'])[:10]}"


# Nodes -------------------------------------------------------------------------------------------------------------------


def lines(texts: Iterable[str]) -> list[nodes.Node]:
    """Texts one under another; semicolons between them where a writer has no lines in a paragraph."""
    out: list[nodes.Node] = []
    for text in texts:
        out += [*([between("; ")] if out else []), nodes.inline("", text, classes=["texgen-line"])]
    return out


def between(text: str) -> nodes.Node:
    """What parts two lines in a writer that has none; HTML hides it."""
    return nodes.inline("", text, classes=["texgen-between"])


def code(text: str) -> list[nodes.Node]:
    """Text as code."""
    return [nodes.literal(text, text)]


def table(titles: Sequence[str], widths: Sequence[int], rows: Iterable[tuple[str, Sequence[Cell]]], name: str) -> nodes.table:
    """A table; each row is (its id, may be empty, and its cells)."""

    def cell(inside: Cell) -> nodes.entry:
        return nodes.entry("", nodes.paragraph("", "", *([nodes.Text(inside)] if isinstance(inside, str) else inside)))

    group = nodes.tgroup("", *(nodes.colspec("", colwidth=w) for w in widths), cols=len(widths))
    group += nodes.thead("", nodes.row("", *map(cell, titles)))
    body = nodes.tbody("")
    for anchor, cells in rows:
        made = [cell(c) for c in cells]
        if anchor:
            made[0][0]["ids"].append(anchor)  # type: ignore[index]
        body += nodes.row("", *made)
    group += body
    long = ["longtable"] if len(body) > 8 else []
    return nodes.table("", group, classes=["texgen-results", name, "colwidths-given", *long])


def said(text: str, *classes: str) -> nodes.paragraph:
    """A paragraph."""
    return nodes.paragraph(text, text, classes=list(classes))


class ResultsDirective(SphinxDirective):
    """``.. texgen:results:: bench|verify|conflicts``: a table of measurements; of ``bench`` a chart too."""

    required_arguments = 1
    option_spec: ClassVar[Any] = {
        "gpu": directives.unchanged, "kernel": directives.unchanged, "caption": directives.unchanged,
        "name": directives.unchanged, "no-chart": directives.flag, "no-table": directives.flag,
    }  # fmt: skip

    def run(self) -> list[nodes.Node]:
        kind = self.arguments[0].strip()
        if kind not in KINDS:
            raise self.error(f"texgen:results takes {', '.join(KINDS)}, not {kind}")
        file = load(self.env, kind, self.options.get("gpu", ""))
        if file.fault:
            logger.warning("%s", file.fault, type="texgen", subtype="results", location=self.get_location())
        if file.data is None:
            return self._missing(file.absence, kind)
        try:
            made = cast("list[nodes.Node]", getattr(self, f"_{kind}")(file.data))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            fault = f"{file.shown} is no result of {MAKE[kind]}: {type(error).__name__} {error}."
            logger.warning("%s", fault, type="texgen", subtype="results", location=self.get_location())
            return self._missing(fault, kind)
        return made or self._missing(f"Not measured: {file.shown} has no entry of {self.options.get('kernel')}.", kind)

    def _missing(self, sentence: str, kind: str) -> list[nodes.Node]:
        paragraph = nodes.paragraph("", "", nodes.Text(f"{sentence} "), *code(MAKE[kind]), nodes.Text(" on a GPU writes it."))
        note = nodes.note("", paragraph, classes=["texgen-missing"])
        self.set_source_info(note)
        self.add_name(note)
        return [note]

    def _titled(self, made: nodes.table) -> nodes.table:
        if text := self.options.get("caption"):
            inline, _ = self.parse_inline(text)
            made.insert(0, nodes.title(text, "", *inline))
        self.set_source_info(made)
        self.add_name(made)
        return made

    # bench

    def _bench(self, data: dict[str, Any]) -> list[nodes.Node]:
        wanted = self.options.get("kernel", "").replace(",", " ").split()
        entries = [e for e in data["entries"] if not wanted or any(str(e["kernel"]).startswith(w) for w in wanted)]
        skipped = [s for s in data.get("skipped", ()) if not wanted or any(str(s["kernel"]).startswith(w) for w in wanted)]
        if not entries and not skipped:
            return []
        many = len({e["kernel"] for e in entries}) > 1
        out: list[nodes.Node] = []
        old = False
        rows: list[tuple[str, list[Cell]]] = []
        bars: list[Bar] = []
        for e in entries:
            found, older = ratios(e), is_older(self.env, e)
            old = old or older
            name = [*code(e["kernel"]), between(", ")] if many else []
            what = [*name, *lines([size(e), f"{e['dtype']}, {e['layout']}"])]
            if older:
                what += [nodes.Text(" "), nodes.emphasis("", OLDER, classes=["texgen-older"])]
            mhz = {k: v.get("sm_mhz") for k, v in e.get("clocks", {}).items()}
            times = [duration(e["median_s"]), f"±{e['spread'] * 50:.1f} %", *([f"{mhz['ours']:.0f} MHz"] if mhz.get("ours") else [])]
            other = [duration(e["torch_median_s"]), *([f"{mhz['torch']:.0f} MHz"] if mhz.get("torch") else [])]
            if "torch_tf32_median_s" in e:
                other.append(f"{duration(e['torch_tf32_median_s'])} with TF32 on")
            error = [f"{e['error']:.1e} of {e['tolerance']:.1e} allowed"] if e["correct"] else [f"WRONG: {e['error']:.1e}"]
            rows.append(("", [what, lines(f"{r:.2f} to {n}" for r, n in found), lines(times), lines(other), rate(e), lines(error)]))
            short = str(e["layout"]).removesuffix(", C N-major")
            label = f"{e['kernel'] + ' ' if many else ''}{size(e)}, {short}{' (older version)' if older else ''}"
            bars += [Bar(label, n, r) for r, n in found]
        alt = "Bar chart. " + "; ".join(f"{b.label} {b.value:.2f} to {b.series}" for b in bars)
        if entries and "no-chart" not in self.options:
            self._note_chart()
            out.append(chart(bars=tuple(bars), axis="the other's time over ours", mark=1.0, alt=alt))
        if entries and "no-table" not in self.options:
            titles = ("Kernel and operands" if many else "Operands", "Ratio", "Ours", "torch", "Rate", "Error")
            out.append(self._titled(table(titles, (27, 25, 12, 14, 10, 12), rows, "texgen-bench")))
        text = (
            f"Measured on {machine(data)}. A ratio is the other's median time over ours, in the same run on the same normal random "
            "data; above 1 ours is faster. ± is half the spread of all samples; MHz is the SM clock meanwhile."
        )
        out.append(said(text, "texgen-machine"))
        if old:
            out.append(said(f"A kernel marked “{OLDER}” has changed since."))
        out += [said(f"{s['kernel']} was not measured: {s['reason']}.") for s in skipped]
        return out

    def _note_chart(self) -> None:
        cast("TexgenDomain", self.env.get_domain("texgen")).data["charts"][self.env.docname] = True

    # verify

    def _verify(self, data: dict[str, Any]) -> list[nodes.Node]:
        domain = cast("TexgenDomain", self.env.get_domain("texgen"))
        entries = data["entries"]
        counts = Counter(e["status"] for e in entries)
        ran = [e for e in entries if e["status"] != "skip"]
        caught = sum(bool(e["mutation_caught"]) for e in ran)
        text = (
            f"{len(ran)} figures were executed on {machine(data)}: {counts['pass']} gave the exact result, {counts['fail']} did not. "
            f"With two entries of a table swapped the result was wrong, as it must be, in {caught}."
        )
        out: list[nodes.Node] = [said(text, "texgen-machine")]
        rows: list[tuple[str, list[Cell]]] = []
        for e in ran:
            anchor = f"executed-{e['spec_hash'][:16]}" if e["spec_hash"] else ""
            if anchor and not domain.note_result(e["spec_hash"], anchor):
                anchor = ""
            found = "exact; every swap caught" if e["mutation_caught"] else "exact; a swap was not caught"
            if e["status"] == "pass" and e["mutation_caught"] is None:
                found = "exact"
            rows.append((anchor, [self._target(e["target"]), found if e["status"] == "pass" else f"wrong: {e['reason']}"]))
        if rows:
            out.append(self._titled(table(("Figure", "Result"), (68, 32), rows, "texgen-verify")))
        skips: dict[str, list[str]] = {}
        for e in entries:
            if e["status"] == "skip":
                skips.setdefault(e["reason"], []).append(e["target"])
        if skips:
            out.append(said("What could not be run:"))
            listed: list[tuple[str, list[Cell]]] = []
            for reason, targets in skips.items():
                cell: list[nodes.Node] = []
                for target in targets:
                    cell += [*([nodes.Text(", ")] if cell else []), *self._target(target)]
                listed.append(("", [reason, cell]))
            out.append(table(("Reason", "Figures"), (40, 60), listed, "texgen-skipped"))
        return out

    def _target(self, target: str) -> list[nodes.Node]:
        """A target; the atom that it begins with links to its page, where there is one."""
        name, _, rest = target.partition(" ")
        literal = nodes.literal(name, name)
        if ":" in name or name.endswith(".json"):
            return code(target)
        link = addnodes.pending_xref(
            "", literal, refdomain="texgen", reftype="quiet-atom", reftarget=name, refdoc=self.env.docname, refexplicit=True
        )
        return [link, *([nodes.Text(" "), *code(rest)] if rest else [])]

    # conflicts

    def _conflicts(self, data: dict[str, Any]) -> list[nodes.Node]:
        entries, requests = data["entries"], data.get("global", [])
        agree = sum(bool(e["agree"]) for e in entries)
        text = (
            f"Counted by Nsight Compute on {machine(data)}. Prediction and count agree for {agree} of {len(entries)} pairs of access "
            f"and shared-memory layout, and for {sum(bool(e['agree']) for e in requests)} of {len(requests)} global accesses."
        )
        out: list[nodes.Node] = [said(text, "texgen-machine")]
        ways = [w for w in ("plain", "padded", "swizzled") if any(e["way"] == w for e in entries)]
        ways += sorted({e["way"] for e in entries} - set(ways))
        groups: dict[tuple[str, int, str], dict[str, list[dict[str, Any]]]] = {}
        for e in entries:
            groups.setdefault((e["op"], e["bits"], e["lanes"]), {}).setdefault(e["way"], []).append(e)
        rows: list[tuple[str, list[Cell]]] = []
        for (op, bits, lanes), by_way in sorted(groups.items(), key=lambda g: -len(g[1])):
            first = next(iter(by_way.values()))[0]
            access = [nodes.Text(f"{op}, {first['width'] * 8} bits a lane of {bits}-bit elements: "), *code(lanes)]
            cells: list[Cell] = [access]
            for way in ways:
                inside: list[nodes.Node] = []
                for e in by_way.get(way, ()):
                    inside += [
                        *([between("; ")] if inside else []), nodes.inline("", "", *code(e["layout"]), classes=["texgen-line"]),
                        between(": "), *lines([f"{e['predicted']} predicted, {_counted(e)}"]),
                    ]  # fmt: skip
                cells.append(inside or "—")
            rows.append(("", cells))
        titles = ("Access of a warp", *(f"{w.capitalize()}, wavefronts" for w in ways))
        odd = dict.fromkeys(str(e["reason"]) for e in [*entries, *requests] if not e["agree"] and e.get("reason"))
        out.append(self._titled(table(titles, (28, *[72 // max(1, len(ways))] * len(ways)), rows, "texgen-conflicts")))
        out += [said(f"Where they differ: {reason}") for reason in odd]
        if requests:
            listed: list[tuple[str, list[Cell]]] = [
                ("", [e["name"], code(e["lanes"]), f"{e['width']} bytes", str(e["predicted"]), _counted(e)]) for e in requests
            ]
            out.append(said("Global memory: 32-byte sectors of one request of a warp."))
            titles = ("Access", "Lane to element", "A lane takes", "Predicted", "Counted")
            out.append(table(titles, (36, 20, 14, 12, 18), listed, "texgen-sectors"))
        return out


def _counted(entry: dict[str, Any]) -> str:
    found = entry["counted"]
    text = "not counted" if found is None else f"{found} counted"
    return text if entry["agree"] else f"{text} (they differ)"


class ResultRole(SphinxRole):
    """``:texgen:result:`sgemm_tiled 4096 ratio_to_torch```: one number of ``bench.json``.

    The kernel, M, in brackets how the operands lie if that is not the file's first (``[mn,mn]``), and a key of the entry.
    """

    FORM = re.compile(r"(?P<kernel>\w+) (?P<m>\d+)(?: \[(?P<majors>\w+,\w+)\])?(?: (?P<key>\w+))?")

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        parts = self.FORM.fullmatch(" ".join(self.text.split()))
        if parts is None:
            logger.warning(
                "texgen:result takes KERNEL M [MAJORS] KEY, not %s", self.text, type="texgen", subtype="results",
                location=self.get_location(),
            )  # fmt: skip
            return [nodes.literal(self.rawtext, self.text)], []
        file, key = load(self.env, "bench"), parts["key"] or "ratio_to_torch"
        entry = next((e for e in (file.data or {"entries": []})["entries"] if _is_of(e, parts)), None)
        if entry is None or not isinstance(entry.get(key), int | float):
            return [nodes.emphasis("", "not measured", classes=["texgen-missing"])], []
        text = value(key, entry[key])
        if is_older(self.env, entry):
            return [nodes.inline("", text), nodes.emphasis("", f" ({OLDER})", classes=["texgen-older"])], []
        return [nodes.inline("", text)], []


def _is_of(entry: dict[str, Any], parts: re.Match[str]) -> bool:
    if entry.get("kernel") != parts["kernel"] or entry.get("m") != int(parts["m"]):
        return False
    if not parts["majors"]:
        return True
    left, right = parts["majors"].split(",")
    names = {"k": "K"}
    return f"A {names.get(left, 'M')}-major, B {names.get(right, 'N')}-major" in str(entry.get("layout"))


def value(key: str, number: float) -> str:
    """A number of an entry with its unit."""
    if key.endswith("_s") and "per" not in key:
        return duration(number)
    if key == "flop_per_s":
        return f"{number / 1e12:.1f} TFLOP/s"
    if key.endswith("bytes_per_s"):
        return f"{number / 1e12:.2f} TB/s"
    return f"{number:.2f}" if key.startswith("ratio") else f"{number:.1e}"
