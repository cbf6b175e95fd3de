"""The words of a figure, made from the spec alone: caption lines, legend, alternative text. Nothing here is typed in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from texgen.closed_form import sum_of
from texgen.figures.labels import color_key
from texgen.figures.model import HOLE, Figure, LegendItem, Line
from texgen.figures.options import QUAD
from texgen.figures.palette import palette
from texgen.figures.panels import Style, in_memory, memory_note
from texgen.specs import MEMORIES, Spec, TVMap
from texgen.words import ADDRESSES, HOLDS, by_rows, index_formula, terms_of, verb_of

AXES = {"A": ("m", "k"), "B": ("n", "k"), "C": ("m", "n"), "S": ("m", "n"), "D": ("m", "n"), "TV": ("m", "n")}


def plural(n: int, word: str) -> str:
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def less(figure: Figure) -> str:
    """What to ask for where a figure has more cells than can be read; nothing that it is already."""
    own = {
        "layout": "fewer --rows and --cols", "timeline": "fewer --cols, or fewer --k-tiles",
        "chain": "fewer --rows and --cols, or --label none",
    }  # fmt: skip
    if figure.kind in own:
        return own[figure.kind]
    overview = any(p.key.endswith("detail") for p in figure.panels)
    ways = [
        *["one --operand"] * (len(figure.panels) - overview > 1),
        "fewer --rows and --cols",
        *["--label thread"] * any(len(p.lines) > 1 for p in figure.panels),
        *["an --overview"] * (not overview),
    ]
    return ", or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))


def owners_text(operand: TVMap) -> str:
    """``each cell in 2 threads``, from the counts themselves."""
    counts = operand.owner_counts
    low, high = int(counts.min()), int(counts.max())
    if held_twice(operand):
        return f"each cell held {low} times" if low == high else f"cells held {low} to {high} times"
    if low == high:
        return f"each cell in {plural(low, 'thread')}"
    return f"cells in {low} to {high} threads"


def held_twice(operand: TVMap) -> bool:
    """True where a thread holds a cell as several of its values."""
    return bool((operand.thread_counts != operand.owner_counts).any())


def operand_lines(name: str, operand: TVMap) -> list[Line]:
    """Count of values and cells, the layout and its closed form."""
    axes = AXES[name]
    where = f"{name} ({axes[0]},{axes[1]})" if name != "TV" else "(thread, value)"
    if in_memory(operand):
        count = f"{operand.tile[0]} × {operand.tile[1]} = {plural(operand.cells, 'element')}"
        return [Line(f"{where}: {memory_note(operand)}, {count}"), *_code(name, operand)]
    copies = int(operand.owner_counts.max())
    total = operand.threads * operand.values
    text = f"{where}: {plural(operand.threads, 'thread')} × {plural(operand.values, 'value')} = "
    text += f"{operand.cells:,} cells" if total == operand.cells and copies == 1 else f"{total:,} for {operand.cells:,} cells"
    if copies > 1:
        text += f", {owners_text(operand)}"
    if holes := int((operand.owner_counts == 0).sum()):
        text += f", {plural(holes, 'cell')} without an owner"
    if first := value_order(operand):
        text += f", values along {axes[first - 1]} first"
    lines = [Line(text), *_code(name, operand)]
    rule = rule_of(operand)
    index = f"index {index_formula(operand, axes)} (row by row)" if by_rows(operand) else ""
    if rule:
        lines.append(Line(f"T, V → {index + ':  ' if index else ''}{axes[0]} = {rule[0]},  {axes[1]} = {rule[1]}"))
    elif index:
        lines.append(Line(f"T, V → {index}"))
    return lines


def value_order(operand: TVMap) -> int:
    """The mode, 1 or 2, along which every thread's values 0 and 1 lie; 0 where there is none."""
    if operand.values < 2:
        return 0
    rows, columns = operand.coordinates()
    moves = [bool((x[:, 1] != x[:, 0]).any()) for x in (rows, columns)]
    return {(True, False): 1, (False, True): 2}.get((moves[0], moves[1]), 0)


def _code(name: str, operand: TVMap) -> list[Line]:
    return [Line(f"{name} {operand.layout}", code=True)] if operand.layout else []


def rule_of(operand: TVMap) -> tuple[str, str] | None:
    """The closed form of an operand's layout text, where it has one that gives this very table."""
    found = terms_of(operand)
    return None if found is None else (sum_of(found[0]), sum_of(found[1]))


def origin_line(spec: Spec) -> list[Line]:
    """Architecture and where the layout comes from."""
    parts = [p for p in (spec.arch, spec.source) if p]
    return [Line(" · ".join(parts))] if parts else []


def note_lines(spec: Spec) -> list[Line]:
    return [Line(note) for note in spec.notes] + [Line(f"Warning: {w}") for w in spec.warnings]


def legend(operands: list[TVMap], style: Style) -> tuple[list[LegendItem], str]:
    """(swatches, what they mean): colours by thread, value, warp or quad, and the mark of shared cells."""
    held = [o for o in operands if not in_memory(o)]
    if not held or not style.options.legend:
        return [], ""
    letter = {"thread": "T", "value": "V", "warp": "W", "quad": "Q"}[style.color_by]
    size = {"warp": held[0].warp, "quad": QUAD}.get(style.color_by, 1)
    count = max(o.values if style.color_by == "value" else -(-o.threads // size) for o in held)
    colors = len(palette(style.options.palette))
    keys = np.unique(np.concatenate([color_key(o, style.color_by).reshape(-1) for o in held]))
    shown = sorted({int(k) % colors for k in keys if k >= 0})
    items = [LegendItem(i, f"{letter}{i}") for i in shown] if colors > 1 else []
    if (keys == HOLE).any():
        items.append(LegendItem(HOLE, "no owner"))
    if style.label == "full" and any((o.owner_counts > 1).any() for o in held):
        twice = any(held_twice(o) for o in held)
        items.append(LegendItem(None, "held several times" if twice else "held by several threads"))
    again = f" modulo {colors}" if count > colors else ""
    return items, f"Colour: {style.color_by}{again}" if colors > 1 else ""


def key_line(style: Style, operands: Mapping[str, TVMap], roles: Mapping[str, str] | None = None) -> list[Line]:
    """How to read a label, by an example out of the figure itself. ``roles``: what a thread does with each operand (``words.role``)."""
    held = [(name, o) for name, o in operands.items() if not in_memory(o)]
    if not held:
        return []
    if style.label == "full":
        said = []
        for name, operand in held if roles else held[:1]:
            t, v = min(5, operand.threads - 1), min(2, operand.values - 1)
            row, column = (int(x[t, v]) for x in operand.coordinates())
            element = f"{name if name != 'TV' else ''}({row},{column})"
            verb = (roles or {}).get(name, HOLDS)
            does = f"names the address of the row with {element}" if verb == ADDRESSES else f"{verb} {element} as its value {v}"
            said.append(f"thread {t} {does}")
        first, *rest = said
        t, v = min(5, held[0][1].threads - 1), min(2, held[0][1].values - 1)
        return [Line(f"T{t} V{v}: " + ", ".join([first, *(x.removeprefix(f"thread {t} ") for x in rest)]))]
    if style.grouped:
        unit, size = ("warp", held[0][1].warp) if style.label == "warp" else ("quad", QUAD)
        letter = unit[0].upper()
        text = f"{letter}1: {unit} 1, threads {size} to {2 * size - 1}"
        if any((o.owner_counts > 1).any() for _, o in held):
            text += f"; {letter}0 {letter}2: held by both, coloured by the first; +3: and by three more"
        return [Line(text)]
    return []


def alternative_text(operands: Mapping[str, TVMap], what: str, roles: Mapping[str, str] | None = None) -> str:
    """Two sentences for those who cannot see the figure: what it is, and which thread holds what."""
    parts = []
    for name, operand in operands.items():
        if in_memory(operand):
            parts.append(f"{name} is {memory_note(operand)}")
            continue
        verb = (roles or {}).get(name, HOLDS)
        parts.append(f"thread 0 {verb_of(verb)} {held_cells(name, operand, 0)}{_spread(operand, verb)}")
    return f"{what}. " + _sentence("; ".join(parts))


def held_cells(name: str, operand: TVMap, thread: int, most: int = 4) -> str:
    """``C(0,0), C(0,1), C(8,0), C(8,1)``, the first few cells of a thread by value."""
    rows, columns = operand.coordinates()
    cells = [
        f"{name}({r},{c})" for r, c in zip(rows[thread, :most].tolist(), columns[thread, :most].tolist(), strict=True)
    ]
    rest = operand.values - len(cells)
    return ", ".join(cells) + (f" and {rest} more" if rest > 0 else "")


def _spread(operand: TVMap, verb: str) -> str:
    most = int(operand.owner_counts.max())
    if most <= 1:
        return ""
    if held_twice(operand):
        return f", {owners_text(operand)}"
    return f", each element {'held by' if verb == HOLDS else 'of'} {most} threads"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def where_text(operand: TVMap) -> str:
    """``f16`` or ``f16, shared memory``, for a panel's title."""
    parts = [operand.dtype] if operand.dtype else []
    if operand.memory != "rmem":
        parts.append(MEMORIES[operand.memory])
    return ", ".join(parts)


def offsets_text(offsets: np.ndarray) -> str:  # type: ignore[type-arg]
    """``offsets 0 to 63, each once`` or how far from it."""
    flat = offsets.reshape(-1)
    ordered = np.sort(flat)
    distinct = int((ordered[1:] != ordered[:-1]).sum()) + 1  # np.unique hashes, 20 s for four million
    text = f"offsets {int(flat.min())} to {int(flat.max())}"
    if distinct == flat.size:
        return text + (", each once" if int(flat.max()) - int(flat.min()) + 1 == distinct else ", none twice")
    return text + f", {distinct:,} different ones in {flat.size:,} cells"
