"""The kept child process: what it reads, what it survives, and what it says."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from texgen.errors import TexgenError
from texgen.layouts import Layout
from texgen.sources import child
from texgen.sources.child import read_callable, read_live_atom
from texgen.specs import CopySpec, LayoutSpec, MmaSpec

pytest.importorskip("nvidia_cutlass_dsl", reason="needs nvidia-cutlass-dsl")
pytestmark = pytest.mark.dsl

PROGRAMS = Path(__file__).parent / "programs"
GOOD, BAD = str(PROGRAMS / "good.py"), str(PROGRAMS / "bad.py")


def fails(target, **options):
    with pytest.raises(TexgenError) as caught:
        read_callable(target, **options)
    return caught.value


def pid():
    return child._child.process.pid


def test_reads_a_function():
    spec = read_callable(f"{GOOD}:ampere")
    assert isinstance(spec, MmaSpec)
    assert (spec.name, spec.arch, spec.tile_mnk) == ("SM80_16x8x16_F32F16F16F32_TN", "sm_80", (32, 32, 16))
    assert spec.source.endswith("target sm_80")
    assert [o.thread for o in spec.A.owners(0, 0)] == [0, 64]


@pytest.mark.parametrize("name", ["jitted", "LAYOUT_MAKER", "Kernel.tiled_mma", "loud"])
def test_other_ways_to_say_it(name):
    assert read_callable(f"{GOOD}:{name}") == read_callable(f"{GOOD}:ampere")


def test_relative_to_the_working_folder(monkeypatch):
    monkeypatch.chdir(PROGRAMS)
    expected = read_callable(f"{GOOD}:ampere")
    assert read_callable("good.py:ampere") == expected
    assert read_callable("good:ampere") == expected
    assert fails("helper.py:f").message == "helper.py:f: there is no 'f' in helper.py: it has no functions."


def test_modules_on_the_parents_path(monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    assert read_callable("good:ampere").tile_mnk == (32, 32, 16)


def test_dicts_and_lists_keep_their_form():
    specs = read_callable(f"{GOOD}:several")
    assert list(specs) == ["mma", "copies", "layout"]
    assert [type(x) for x in specs["copies"]] == [CopySpec, CopySpec]
    assert isinstance(specs["layout"], LayoutSpec)
    assert specs["mma"].name == "mma"


def test_width_and_unit_go_along():
    assert read_callable(f"{GOOD}:smem", bits=16).offsets[1, 0] == 72
    assert read_callable(f"{GOOD}:smem", bits=16, swizzle_unit="elements").offsets[1, 0] == 64


# Architecture (2-E23)


CHOSEN = [("hopper", "sm_90a"), ("blackwell", "sm_100a"), ("block_scaled", "sm_120a")]


@pytest.mark.parametrize(("name", "arch"), CHOSEN)
def test_architecture_is_chosen(name, arch):
    spec = read_callable(f"{GOOD}:{name}")
    assert spec.arch == arch and spec.source.endswith(f"target {arch}")


def test_architecture_can_be_said():
    assert read_callable(f"{GOOD}:ampere", arch="sm_90a").source.endswith("target sm_90a")
    assert read_callable(f"{GOOD}:hopper", arch="90a").arch == "sm_90a"
    assert fails(f"{GOOD}:hopper", arch="sm_80").message.endswith(
        ":hopper needs sm_90a and --arch says sm_80: leave --arch out, or give sm_90a."
    )
    wrong = fails(f"{GOOD}:ampere", arch="sm_99").message
    assert "'sm_99'" in wrong and "sm_80, sm_86" in wrong and "sm_120a" in wrong
    assert "several architectures" in fails(f"{GOOD}:both").message


def test_architecture_of_the_environment(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    assert read_callable(f"{GOOD}:ampere").source.endswith("target sm_90a")
    assert read_callable(f"{GOOD}:blackwell").arch == "sm_100a"
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_99")
    assert "CUTE_DSL_ARCH says 'sm_99'" in fails(f"{GOOD}:ampere").message


# Mistakes


def test_kernels_get_a_hint():  # 2-E17
    assert "@cute.jit" in fails(f"{GOOD}:kernel").message
    assert "@cute.jit" in fails(f"{GOOD}:launches").message


def test_own_traceback_is_shown_and_ours_not():
    error = fails(f"{BAD}:raises")
    assert error.message == f"{BAD}:raises raised ValueError: the tile is odd"
    assert error.detail.startswith("Traceback") and error.detail.count('File "') == 2
    assert "in raises" in error.detail and "in deeper" in error.detail
    assert "texgen/sources" not in error.detail
    chained = fails(f"{BAD}:chained")
    assert "direct cause" in chained.detail and "texgen/sources" not in chained.detail


def test_the_dsls_own_errors_have_no_colours():
    error = fails(f"{BAD}:wrong_tile")
    assert "raised DSLUserCodeError: expects the 'shape_mnk'" in error.message or "OpError" in error.message
    assert "\x1b" not in str(error) and "nvidia_cutlass_dsl" not in error.detail


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "returned None"), ("text", "returned a str"), ("empty", "returned an empty dict"),
        ("mixed", "number: texgen cannot draw an int"), ("rank3", "deep: .*rank 3"),
        ("needs", r"takes arguments \(m\)"), ("exits", "raised SystemExit: 3"),
        ("interrupted", "raised KeyboardInterrupt"), ("reads_input", "raised EOFError"),
        ("missing", "it has deeper, raises"),
    ],
)  # fmt: skip
def test_wrong_functions_get_a_sentence(name, said):
    before = read_callable(f"{GOOD}:ampere") and pid()
    with pytest.raises(TexgenError, match=said):
        read_callable(f"{BAD}:{name}")
    assert pid() == before


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nosuchfile.py:f", "There is no file nosuchfile.py"), ("nosuchmodule:f", "there is no module 'nosuchmodule'"),
        ("json.nosuch:f", "there is no module 'json.nosuch'"), ("just_a_word", "names no function"),
        ("x.py:a b", "names no function"),
    ],
)  # fmt: skip
def test_targets_that_are_not_there(target, said):
    assert said in fails(target).message


def test_syntax_error(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n    pass\n")
    error = fails(f"{broken}:f")
    assert "cannot be loaded: SyntaxError" in error.message and "(line 1)" in error.message
    assert "def f(:" in error.detail
    broken.write_text("import no_such_module_at_all\n")
    error = fails(f"{broken}:f")
    assert "ModuleNotFoundError" in error.message and "no_such_module_at_all" in error.detail


# Death


def test_an_abort_costs_one_figure():  # 2-B36
    error = fails(f"{BAD}:aborts")
    assert error.message.startswith("The DSL ended the process with SIGABRT while reading")
    assert "in aborts" in error.detail and "nvidia_cutlass_dsl" not in error.detail
    assert read_callable(f"{GOOD}:ampere").tile_mnk == (32, 32, 16)


def test_a_hard_exit():
    assert "with exit code 7" in fails(f"{BAD}:hard_exit").message


def test_time_out_ends_the_process():
    read_callable(f"{GOOD}:ampere")
    old, started = pid(), time.monotonic()
    assert "took more than 0.5 s" in fails(f"{BAD}:hangs", timeout=0.5).message
    assert time.monotonic() - started < 10
    with pytest.raises(ProcessLookupError):
        os.kill(old, 0)


def test_it_is_kept_and_survives_rough_guests(tmp_path):
    read_callable(f"{GOOD}:ampere")
    first = pid()
    for name in ("closes", "wanders", "closes"):
        assert read_callable(f"{BAD}:{name}").shape == (4, 8)
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import os, sys\ndef f():\n"
        "    left = os.environ.get('TEXGEN_TEST_LEFT_BEHIND')\n"
        "    raise ValueError(f\"{os.getcwd()} {left} {'/nowhere' in sys.path}\")\n"
    )
    assert f"{os.getcwd()} None False" in fails(f"{probe}:f").message
    assert pid() == first


def test_prints_are_seen(capsys):
    read_callable(f"{GOOD}:loud")
    seen = capsys.readouterr()
    assert "printed by the program" in seen.err and "and on stderr" in seen.err and not seen.out


def test_changed_files_are_read_again(tmp_path):
    program, neighbour = tmp_path / "program.py", tmp_path / "neighbour.py"
    build = "import cutlass.cute as cute\ndef f():\n    return cute.make_layout((N, 8))\n"
    program.write_text("from neighbour import N\n" + build)
    for n in (4, 5, 6):
        neighbour.write_text(f"N = {n}\n")
        assert read_callable(f"{program}:f").shape == (n, 8)
    assert not list(tmp_path.glob("__pycache__"))
    program.write_text("N = 3\n" + build)
    assert read_callable(f"{program}:f").shape == (3, 8)


def test_a_file_may_be_named_like_a_module(tmp_path):
    program = tmp_path / "json.py"
    program.write_text("import cutlass.cute as cute\ndef f():\n    return cute.make_layout((4, 8))\n")
    assert read_callable(f"{program}:f").shape == (4, 8)


def test_threads_take_turns():
    out = []
    threads = [
        threading.Thread(target=lambda n=n: out.append(read_callable(f"{GOOD}:{n}").name))
        for n in ("ampere", "hopper", "jitted", "ampere")
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(out) == ["SM80_16x8x16_F32F16F16F32_TN"] * 3 + ["SM90_64x64x16_F32F16F16_SS"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_gets_a_child_of_its_own():
    read_callable(f"{GOOD}:ampere")
    mine = pid()
    forked = os.fork()
    if forked == 0:
        code = 1
        try:
            code = 0 if read_callable(f"{GOOD}:ampere").threads == 128 and pid() != mine else 2
            child.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert read_callable(f"{GOOD}:ampere").threads == 128
    assert pid() == mine


# The DSL itself missing or broken


def starting_with(monkeypatch, code):
    child.close()
    monkeypatch.setattr(child, "START", code + "; " + child.START)


def test_no_dsl(monkeypatch):  # 2-E10
    starting_with(monkeypatch, "import sys; sys.modules['cutlass'] = None")
    error = fails(f"{GOOD}:ampere")
    assert error.message.startswith("Importing the CuTe DSL failed (ModuleNotFoundError")
    child.close()


def test_an_import_that_dies(monkeypatch):  # 2-E10, 2-E11
    finder = "types.SimpleNamespace(find_spec=lambda name, *rest: os.abort() if name == 'cutlass' else None)"
    starting_with(monkeypatch, f"import sys, os, types; sys.meta_path.insert(0, {finder})")
    error = fails(f"{GOOD}:ampere")
    assert error.message.startswith("Importing the CuTe DSL ended its process with SIGABRT")
    monkeypatch.undo()
    assert read_callable(f"{GOOD}:ampere").threads == 128


def test_no_python_side_import():
    code = f"from texgen.sources.child import read_callable; import sys; read_callable({GOOD + ':ampere'!r}); " \
           f"sys.exit(any(m.split('.')[0] == 'cutlass' for m in sys.modules))"  # fmt: skip
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


# Atoms by name


def test_live_atom():
    from texgen.sources import catalog

    name, atoms, tile = "SM80_16x8x16_F32F16F16F32_TN", Layout.of((2, 2, 1)), (32, Layout((8, 2, 2), (1, 16, 8)), 16)
    live, saved = read_live_atom(name, atom_layout=atoms, tile=tile), catalog.read(name, atoms, tile, None)
    for x, operand in live.operands().items():
        assert operand.tv.tolist() == saved.operands()[x].tv.tolist()
    assert read_live_atom("SM90_64x64x16_F32F16F16_SS").arch == "sm_90a"
    with pytest.raises(TexgenError, match="needs sm_90a and --arch says sm_80"):
        read_live_atom("SM90_64x64x16_F32F16F16_SS", arch="sm_80")
    with pytest.raises(TexgenError, match="M=31 is not a multiple of the atom's 16"):
        read_live_atom(name, atom_layout=atoms, tile=(31, 32, 16))
