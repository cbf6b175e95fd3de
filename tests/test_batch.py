"""``texgen render --batch``: the list, what is skipped, what fails, who does the work; and files that are whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import texgen
from texgen.batch.listing import read_list, shard
from texgen.errors import UsageError

TEXGEN = [sys.executable, "-m", "texgen"]
WORDS = {
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\npallete = 'grey'": ("figure 1", "'pallete'", "did you mean 'palette'"),
    "[[figures]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'": ("'figures'", "did you mean 'figure'"),
    "[[figure]]\noutput = 'a.svg'": ("figure 1", "target is missing"),
    "[[figure]]\ntarget = '(4,4):(4,1)'": ("figure 1", "output is missing"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.gif'": ("figure 1", "no .gif"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = '../a.svg'": ("figure 1", "leaves the folder"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = '/a.svg'": ("figure 1", "leaves the folder"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = '{nmae}.svg'": ("{nmae}", "{name} and {n}"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\nbits = 'x'": ("figure 1", "bits", "whole number"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\nlegend = 1": ("figure 1", "legend", "true or false"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\nengine = 'word'": ("figure 1", "'word'", "pdflatex"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\nlabel = 'nothing'": ("figure 1", "'nothing'"),
    "[[family]]\noutput = '{name}.svg'": ("family 1", "atoms"),
    "[[family]]\natoms = 'NO_SUCH*'\noutput = '{name}.svg'": ("family 1", "'NO_SUCH*'"),
    "[[family]]\natoms = 'SM80_16x8x16*'\noutput = 'a.svg'": ("1 and 2", "a.svg"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\n[[figure]]\ntarget = '(2,2):(2,1)'\noutput = 'A.SVG'": ("1 and 2", "both write"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'x.svg/y.svg'\n[[figure]]\ntarget = '(2,2):(2,1)'\noutput = 'X.svg'": ("figure 2", "figure 1", "folder", "rename"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\noutput = 'a.svg'\nwidht = '8cm'": ("figure 1", "did you mean 'width'"),
    "[[figure]]\nchain = ['SM75_U32x4_LDSM_N']\noutput = 'a.svg'": ("figure 1", "chain", "two texts"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\nchain = ['a', 'b']\noutput = 'a.svg'": ("figure 1", "target and chain"),
    "[[figure]]\ntarget = '(4,4):(4,1)'\nfill = 'SM80_CP_ASYNC'\noutput = 'a.svg'": ("figure 1", "fill goes with chain"),
    "[[figure]]\nchain = ['a', 'b']\nat = [0, -1]\noutput = 'a.svg'": ("figure 1", "at = [0, -1]", "[0, 16]"),
    "[[figure]]\ntimeline = true\nstages = 0\noutput = 'a.svg'": ("figure 1", "stages = 0", "above 0"),
    "[[figure]]\ntimeline = 4\noutput = 'a.svg'": ("figure 1", "must be true"),
    "[[figure]]\ntimeline = true\natom-layout = '2,2,1'\noutput = 'a.svg'": ("figure 1", "atom_layout", "a timeline has none"),
    "[figure]\ntarget = 'x'": ("[[figure]]",),
    "[[figure]\n": ("no TOML",),
    "": ("lists no figure",),
}  # fmt: skip


def batch(folder: Path, *options: str, **kept: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder that has ``list.toml``."""
    return subprocess.run(
        [*TEXGEN, "render", "--batch", "list.toml", "-j", "2", *options],
        cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, **kept}, check=False,
    )  # fmt: skip


def layouts(count: int, first: int = 0) -> str:
    """A list of that many small layouts."""
    return "".join(f'[[figure]]\ntarget = "(4,{4 + i}):({4 + i},1)"\noutput = "f/{i}.svg"\n' for i in range(first, first + count))


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, stamps too."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("text", WORDS, ids=lambda t: " ".join(t.split())[:60])
def test_a_mistake_in_the_list_is_named_before_any_work(text, tmp_path):
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_list(path)
    assert all(word in str(caught.value) for word in ("list.toml", *WORDS[text])), str(caught.value)


def test_defaults_entries_and_the_command_line_in_that_order(tmp_path):
    path = tmp_path / "list.toml"
    path.write_text(
        '[defaults]\noutput = "d/{name}-{n}.svg"\npalette = "grey"\nlabel = "thread"\nno-legend = true\n'
        '[[figure]]\ntarget = "(4,4):(4,1)"\nlabel = "none"\nwidth = "84mm"\n[[family]]\ntargets = ["(2,2):(2,1)", "(2,3):(3,1)"]\n'
        'atom-layout = "2,2,1"\ntile = [32, 32, 16]\n'
    )
    one, two, three = read_list(path, {"palette": "white"})
    assert (one.look.palette, one.look.label, one.look.legend, one.look.print_width) == ("white", "none", False, "84mm")
    assert two.look.label == "thread" and dict(two.reading) == {"atom_layout": "2,2,1", "tile": (32, 32, 16)}
    assert [i.outputs for i in (one, two, three)] == [("d/4_4___4_1-1.svg",), ("d/2_2___2_1-2.svg",), ("d/2_3___3_1-3.svg",)]


def test_the_same_list_as_json(tmp_path):
    data = [{"target": "(4,4):(4,1)", "output": ["a.svg", "b.txt"], "color-by": "thread"}]
    (tmp_path / "list.json").write_text(json.dumps(data))
    (item,) = read_list(tmp_path / "list.json")
    assert item.outputs == ("a.svg", "b.txt") and item.look.color_by == "thread"


def test_shards_part_the_list_and_new_entries_move_no_others(tmp_path):
    path = tmp_path / "list.toml"
    path.write_text(layouts(60))
    before = read_list(path)
    parts = [[i.name for i in shard(before, f"{k}/4")] for k in range(1, 5)]
    assert sorted(name for part in parts for name in part) == sorted(i.name for i in before) and all(4 < len(p) < 30 for p in parts)
    path.write_text(layouts(20, 100) + layouts(60))
    after = read_list(path)
    for k, part in enumerate(parts, 1):
        assert {i.name for i in shard(after, f"{k}/4")} >= set(part)
    for wrong in ("0/4", "5/4", "3", "a/b", "1/0"):
        with pytest.raises(UsageError):
            shard(before, wrong)


def test_the_files_are_those_of_render_and_a_second_run_does_the_rest(tmp_path):
    (tmp_path / "list.toml").write_text(
        '[[figure]]\ntarget = "SM80_16x8x16_F32F16F16F32_TN"\noutput = ["a.svg", "a.tikz", "a.json"]\noperand = "C"\n'
        '[[figure]]\ntarget = "NO_ATOM"\noutput = "b.svg"\n' + layouts(3)
    )
    first = batch(tmp_path, "--report", "report.json")
    assert first.returncode == 1 and first.stdout == "5 figures: 4 drawn, 0 as they were, 1 failed\n"
    assert "failed: b.svg (NO_ATOM): There is no atom named 'NO_ATOM'" in first.stderr and "Traceback" not in first.stderr
    assert [f["output"] for f in json.loads((tmp_path / "report.json").read_text())["failed"]] == ["b.svg"]
    drawing = texgen.figure("SM80_16x8x16_F32F16F16F32_TN", operand="C")
    assert (tmp_path / "a.svg").read_text() == drawing.svg() and (tmp_path / "a.json").read_text() == drawing.json()
    made = files(tmp_path)
    (tmp_path / "f/1.svg").write_bytes(made["f/1.svg"][:100])
    (tmp_path / "a.tikz").unlink()
    second = batch(tmp_path)
    assert second.stdout == "5 figures: 2 drawn, 2 as they were, 1 failed\n"
    assert files(tmp_path) == made
    assert batch(tmp_path, "--palette", "grey").stdout == "5 figures: 4 drawn, 0 as they were, 1 failed\n"


def test_shards_of_two_machines_merge_by_file_name(tmp_path):
    (tmp_path / "list.toml").write_text(layouts(12))
    for k in (1, 2):
        assert batch(tmp_path, "--shard", f"{k}/2", "--out", f"out{k}").returncode == 0
    shutil.copytree(tmp_path / "out1", tmp_path / "merged")
    shutil.copytree(tmp_path / "out2", tmp_path / "merged", dirs_exist_ok=True)
    assert len(files(tmp_path / "out1")) + len(files(tmp_path / "out2")) == len(files(tmp_path / "merged")) == 24
    assert batch(tmp_path, "--out", "merged").stdout == "12 figures: 0 drawn, 12 as they were\n"


def test_a_changed_source_is_drawn_again(tmp_path):
    (tmp_path / "table.json").write_text(json.dumps({"tile": [2, 2], "tv": [[0, 1], [2, 3]]}))
    (tmp_path / "list.toml").write_text('[[figure]]\ntarget = "table.json"\noutput = "t.svg"\n' + layouts(1))
    assert batch(tmp_path).stdout.startswith("2 figures: 2 drawn")
    (tmp_path / "table.json").write_text(json.dumps({"tile": [2, 2], "tv": [[0, 2], [1, 3]]}))
    elsewhere = subprocess.run(  # files are looked for beside the list
        [*TEXGEN, "render", "--batch", str(tmp_path / "list.toml")], cwd="/", capture_output=True, text=True, check=False
    )
    assert elsewhere.stdout == "2 figures: 1 drawn, 1 as they were\n", elsewhere.stderr


@pytest.mark.dsl
def test_a_callable_that_ends_its_process_or_never_ends_costs_one_figure(tmp_path):
    (tmp_path / "k.py").write_text(
        "import os, time\nimport cutlass.cute as cute\n"
        "def good():\n    return cute.make_layout((4, 4), stride=(4, 1))\ndef dies():\n    os._exit(3)\n"
        "def hangs():\n    time.sleep(600)\n"
    )
    names = ("good", "dies", "hangs")
    (tmp_path / "list.toml").write_text(
        "".join(f'[[figure]]\ntarget = "k.py:{n}"\noutput = "{n}.svg"\ntimeout = 15\n' for n in names) + layouts(2)
    )
    made = batch(tmp_path)
    assert made.returncode == 1 and made.stdout == "5 figures: 3 drawn, 0 as they were, 2 failed\n", made.stderr
    assert "exit code 3" in made.stderr and "took more than 15 s" in made.stderr and (tmp_path / "good.svg").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_worker_that_dies_costs_nothing_and_one_that_dies_again_its_own_figure(tmp_path):
    """An item that kills its worker (as the system does when memory runs out), among others."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if 'multiprocessing' in ' '.join(sys.orig_argv):\n"
        "    import texgen.batch.work as work\n"
        "    real = work._drawings\n"
        "    def deadly(item, templates):\n"
        "        if item.name == 'f/5.svg':\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        if item.name == 'f/6.svg' and not os.path.exists('once'):\n"
        "            open('once', 'w').close()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return real(item, templates)\n"
        "    work._drawings = deadly\n"
    )
    (tmp_path / "list.toml").write_text(layouts(24))
    path = os.pathsep.join([str(tmp_path), str(Path(texgen.__file__).parents[1])])
    made = batch(tmp_path, PYTHONPATH=path)
    assert made.returncode == 1 and made.stdout == "24 figures: 23 drawn, 0 as they were, 1 failed\n", made.stderr
    assert "failed: f/5.svg ((4,9):(9,1)): It ended its worker process" in made.stderr


@pytest.mark.pdflatex
@pytest.mark.pdftocairo
def test_figures_that_share_a_run_of_tex_are_the_same_pictures(tmp_path):
    from texgen.batch.pages import shared
    from texgen.render.engine import compile_pdf
    from texgen.render.raster import pdf_to_png

    if not shutil.which("pdfseparate"):
        pytest.skip("pdfseparate is not on the PATH")
    drawings = [
        texgen.figure("SM80_16x8x16_F32F16F16F32_TN"), texgen.figure("(8,8):(8,1)", print_width="84mm", title="100% of #1 & x_y"),
        texgen.figure("(8,8):(8,1)", print_width=r".9\linewidth"), texgen.figure("S<3,4,3> o 0 o (8,64):(64,1)", dtype="f16", theme="dark"),
    ]  # fmt: skip
    sources = {i: d.tex() for i, d in enumerate(drawings)}
    made = shared(sources, "pdflatex")
    assert set(made) == set(sources) and made == shared(sources, "pdflatex")
    for i, source in sources.items():
        alone = compile_pdf(source, "pdflatex")
        assert pdf_to_png(alone, 100) == pdf_to_png(made[i], 100), i
    sources[1] = sources[1].replace("\\begin{tikzpicture}", "\\nosuchmacro\\begin{tikzpicture}")
    assert shared(sources, "pdflatex") == {}  # each is compiled alone, and the mistake is its own


@pytest.mark.pdflatex
def test_a_mistake_in_one_tex_figure_fails_that_one_alone(tmp_path):
    (tmp_path / "own").mkdir()
    home = Path(texgen.__file__).parents[1] / "templates" / "figure.tikz.j2"
    (tmp_path / "own" / "figure.tikz.j2").write_text(
        home.read_text().replace("\\begin{tikzpicture}", "<% if figure.title == 'bad' %>\\nosuchmacro<% endif %>\\begin{tikzpicture}", 1)
    )
    entries = "".join(f'[[figure]]\ntarget = "(2,{2 + i}):({2 + i},1)"\noutput = "{t}.pdf"\ntitle = "{t}"\n' for i, t in enumerate(("a", "bad", "c")))
    (tmp_path / "list.toml").write_text(entries)
    made = batch(tmp_path, "--templates", "own")
    assert made.returncode == 1 and made.stdout == "3 figures: 2 drawn, 0 as they were, 1 failed\n", made.stderr
    assert "failed: bad.pdf" in made.stderr and "Undefined control sequence" in made.stderr
    assert sorted(p.name for p in tmp_path.glob("*.pdf")) == ["a.pdf", "c.pdf"] and (tmp_path / "bad.failed.tex").is_file()


def test_options_of_a_batch_need_a_list(tmp_path):
    for wrong in (["(4,4):(4,1)", "-j", "2"], ["--batch", "list.toml", "(4,4):(4,1)"], ["--batch", "none.toml"], []):
        made = subprocess.run([*TEXGEN, "render", *wrong], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert made.returncode == 2 and "Traceback" not in made.stderr and made.stderr.strip(), wrong


@contextlib.contextmanager
def dask_cluster(folder: Path):
    """(address, worker processes) of a scheduler with two workers, each in a process of its own."""
    pytest.importorskip("distributed")
    place = folder / "scheduler.json"
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place)]
    run = lambda command: subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # noqa: E731
    processes = [run(start)]
    try:
        end = time.monotonic() + 60
        while not place.is_file() and time.monotonic() < end:
            time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
        processes += [run(worker), run(worker)]
        yield address, processes[1:]
    finally:
        for process in processes:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_name_that_the_file_system_refuses_costs_its_own_figure(tmp_path):
    """A name and a target of 300 characters, an output in the place of a folder; not, once for all, a folder that is a file."""
    long = "x" * 300
    (tmp_path / "out" / "taken.svg").mkdir(parents=True)
    (tmp_path / "list.toml").write_text(
        f'[[figure]]\ntarget = "(4,4):(4,1)"\noutput = "{long}.svg"\n[[figure]]\ntarget = "{long}.json"\noutput = "b.svg"\n'
        '[[figure]]\ntarget = "(2,2):(2,1)"\noutput = "taken.svg"\n' + layouts(3)
    )
    made = batch(tmp_path, "--out", "out", "--report", "report.json")
    assert made.returncode == 1 and made.stdout == "6 figures: 3 drawn, 0 as they were, 3 failed\n" and "Traceback" not in made.stderr
    report = {f["output"]: f["error"] for f in json.loads((tmp_path / "report.json").read_text())["failed"]}
    assert set(report) == {f"{long}.svg", "b.svg", "taken.svg"}
    assert "cannot be written" in report[f"{long}.svg"] and "give it another output" in report["taken.svg"]
    assert batch(tmp_path, "--out", "out").stdout == "6 figures: 0 drawn, 3 as they were, 3 failed\n"
    (tmp_path / "file").write_text("")
    made = batch(tmp_path, "--out", "file")
    assert made.returncode == 1 and made.stderr.count("\n") == 1 and "give another with --out" in made.stderr


def test_chains_and_timelines_are_those_of_their_commands(tmp_path):
    copy, mma = "SM75_U32x4_LDSM_N", "SM80_16x8x16_F32F16F16F32_TN"
    smem = "S<3,4,3> o 0 o (16,64):(64,1)"
    (tmp_path / "list.toml").write_text(
        f'[[figure]]\nchain = ["{copy}", "{mma}"]\nsmem = "{smem}"\nat = [0, 16]\noperand = "A"\noutput = "chain.svg"\n'
        f'[[figure]]\nchain = ["{copy}", "{mma}"]\nat = "0,16"\noutput = "plain.svg"\n'
        '[[figure]]\ntimeline = true\nstages = 4\nk-tiles = 6\nfault = "wait"\noutput = "time.svg"\n'
    )
    made = batch(tmp_path)
    assert made.returncode == 0 and made.stdout == "3 figures: 3 drawn, 0 as they were\n", made.stderr
    assert (tmp_path / "chain.svg").read_text() == texgen.chain(copy, mma, smem=smem, at=(0, 16), operand="A").svg()
    assert (tmp_path / "plain.svg").read_text() == texgen.chain(copy, mma, at=(0, 16)).svg()
    assert (tmp_path / "time.svg").read_text() == texgen.timeline(4, 6, fault="wait").svg()
    assert "texgen: time.svg: Step 3: k tile 0 is read" in made.stderr and "hazards more" in made.stderr
    assert batch(tmp_path).stdout == "3 figures: 0 drawn, 3 as they were\n"


def test_options_of_a_chain_do_not_go_with_a_list(tmp_path):
    (tmp_path / "list.toml").write_text(layouts(1))
    for given in (["--chain", "A", "B"], ["--fill", "A"], ["--smem", "(8,8):(8,1)"], ["--at", "0,16"]):
        made = batch(tmp_path, *given)
        assert made.returncode == 2 and given[0] in made.stderr and not (tmp_path / "f").exists(), given


@pytest.mark.skipif(sys.platform == "win32", reason="kills by process group")
def test_dask_with_two_workers_one_of_them_killed_midway(tmp_path):
    """The workers write nothing: they run in a folder of their own, and every file is there and whole at the end."""
    (tmp_path / "list.toml").write_text(layouts(120))
    (tmp_path / "cluster").mkdir()
    with dask_cluster(tmp_path / "cluster") as (address, workers):
        run = subprocess.Popen(
            [*TEXGEN, "render", "--batch", "list.toml", "--dask", address, "--out", "out"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        end = time.monotonic() + 120
        while len(list((tmp_path / "out").glob("f/*.svg"))) < 8 and time.monotonic() < end and run.poll() is None:
            time.sleep(0.02)
        os.kill(workers[0].pid, signal.SIGKILL)
        said, errors = run.communicate(timeout=240)
        assert run.returncode == 0 and said == "120 figures: 120 drawn, 0 as they were\n", errors
        assert workers[0].wait(10) == -signal.SIGKILL and workers[1].poll() is None
    assert batch(tmp_path, "--out", "out").stdout == "120 figures: 0 drawn, 120 as they were\n"


def test_a_dask_scheduler_that_is_not_there_is_a_sentence(tmp_path):
    pytest.importorskip("distributed")
    from texgen.batch.pool import Dask
    from texgen.errors import TexgenError

    for address in ("tcp://127.0.0.1:9", "nowhere"):
        with pytest.raises(TexgenError, match=f"no dask scheduler at {address}"):
            Dask(address, wait=1)


@pytest.mark.parametrize(("text", "said"), [
    ('[{"target": "8:1", "output": "\\ud800.svg"}]', "leaves the folder"),
    ('[{"target": "8:1", "target": "4:1", "output": "a.svg"}]', "the key 'target' stands twice"),
    ('[{"target": "8:1", "output": ".texgen/a.svg"}]', "the batch's own stamps"),
])  # fmt: skip
def test_names_that_no_file_can_have(text, said, tmp_path):
    path = tmp_path / "list.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_list(path)


def test_what_no_terminal_should_get(tmp_path):
    """A failure is listed and reported with its acting characters shown, a lone surrogate as well."""
    entries = [{"target": "(4,4\x1b[31m\u202e", "output": "a.svg"}, {"target": "\ud800", "output": "b.svg"}, {"target": "8:1", "output": "c.svg"}]
    (tmp_path / "list.json").write_text(json.dumps(entries))
    done = batch(tmp_path, "--batch", "list.json", "--report", "report.json")
    assert done.returncode == 1 and "2 failed" in done.stdout and "1 drawn" in done.stdout
    assert "[U+202E]" in done.stderr and not set("\x1b\u202e") & set(done.stderr)
    report = (tmp_path / "report.json").read_text()
    assert "\\u202e" in report and "\u202e" not in report and len(json.loads(report)["failed"]) == 2
