"""The doctor on machines that are made up, one trap each, and on this one."""

import pytest

from texgen.doctor import DSL, LIBS, Check, Installed, Machine, diagnose, examine, explain_import, installed

SITE = "/venv/lib/python3.12/site-packages/"
MODULES = SITE + "nvidia_cutlass_dsl/dsl_packages"
BUILT = {"sm_80": "", "sm_90a": "", "sm_100a": ""}
PROBE = {"built": BUILT, "viz": True, "hooks": True, "archs": ["sm_80", "sm_90a"]}


def dists(version="4.8.1", *more, **others):
    names = {DSL: version, LIBS + "base": version, LIBS + "core": version, LIBS + "cu12": version}
    return names | dict(more) | {k.replace("_", "-"): v for k, v in others.items()}


def whole(distributions=None, **changes):
    usual = {"folder": SITE + "nvidia_cutlass_dsl", "modules": MODULES, "cutlass": MODULES + "/cutlass/__init__.py",
             "flavours": ("cu12",)}  # fmt: skip
    return Installed(distributions or dists(), **(usual | changes))


def machine(found=None, **changes):
    usual = {"python": (3, 12), "driver": "580.65", "gpus": ("NVIDIA H200",), "probe": PROBE, "vl_convert": "1.9",
             "programs": {"pdflatex": "pdfTeX 3.14", "pdftocairo": "22.12"}}  # fmt: skip
    return Machine(found or whole(), **(usual | changes))


def found(checks, name):
    return next(c for c in checks if c.name == name)


def troubles(m):
    return {c.name: c for c in diagnose(m) if c.status != "ok"}


def test_a_good_machine_has_no_trouble():
    checks = diagnose(machine())
    assert not troubles(machine())
    assert "4.8.1" in found(checks, "CuTe DSL").text and MODULES in found(checks, "CuTe DSL").text
    assert [c.name for c in checks if c.name.startswith("MMA for")] == [f"MMA for {arch}" for arch in BUILT]
    assert all(not c.command for c in checks)


TRAPS = {
    "nothing installed": (
        Installed(), "CuTe DSL", "gap", "not installed", f"pip install {DSL}",
    ),
    "D03: the older package alone": (
        Installed({"nvidia-cutlass": "4.2.0.0"}, cutlass=SITE + "cutlass/__init__.py"),
        "CuTe DSL", "fault", "without the CuTe DSL", f"pip uninstall nvidia-cutlass && pip install {DSL}",
    ),
    "D04, 2-E12: metadata alone": (
        Installed({DSL: "4.4.0"}), "CuTe DSL", "fault", f"{LIBS}base", "pip install --force-reinstall",
    ),
    "2-E13: both": (
        whole(dists(nvidia_cutlass="4.2.0.0")), "nvidia-cutlass", "gap", "both have a package called cutlass",
        "pip uninstall nvidia-cutlass",
    ),
    "2-E13: both, and the wrong one wins": (
        whole(dists(nvidia_cutlass="4.2.0.0"), cutlass=SITE + "cutlass/__init__.py"), "nvidia-cutlass", "fault",
        "nvidia-cutlass 4.2.0.0", "pip uninstall nvidia-cutlass",
    ),
    "another cutlass on the path": (
        whole(cutlass="/home/me/cutlass/__init__.py"), "cutlass", "fault", "/home/me/cutlass", "remove it",
    ),
    "2-E21: no .pth": (
        whole(cutlass=""), "CuTe DSL", "fault", ".pth", "--force-reinstall 'nvidia-cutlass-dsl==4.8.1'",
    ),
    "wheels of different versions": (
        whole(dists("4.8.1", (LIBS + "core", "4.7.1"))), "DSL wheels", "fault", f"{LIBS}core 4.7.1", "==4.8.1",
    ),
    "no CUDA flavour": (
        whole(flavours=()), "CUDA libraries", "fault", "neither the CUDA 12 nor the CUDA 13", "pip install",
    ),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_installing(trap):
    state, name, status, text, command = TRAPS[trap]
    check = troubles(machine(state, probe={}))[name]
    assert check.status == status
    assert text in check.text and command in check.command and check.cost


def test_older_releases_have_no_separate_libraries():
    old = Installed({DSL: "4.3.5"}, SITE, MODULES, MODULES + "/cutlass/__init__.py")
    assert not troubles(machine(old))
    aside = troubles(machine(Installed({}, "", "/opt/dsl_packages")))["CuTe DSL"]
    assert aside.command == "export PYTHONPATH=/opt/dsl_packages"
    by_hand = Installed({}, "", "/opt/dsl_packages", "/opt/dsl_packages/cutlass/__init__.py", ())
    assert "no metadata" in found(diagnose(machine(by_hand)), "CuTe DSL").text


@pytest.mark.parametrize(
    ("value", "status"), [("sm_90a", "ok"), ("sm_99", "fault"), ("", "fault"), (None, "ok")]
)  # fmt: skip
def test_architecture_variable(value, status):
    checks = diagnose(machine(environ={} if value is None else {"CUTE_DSL_ARCH": value}))
    check = found(checks, "CUTE_DSL_ARCH")
    assert check.status == status
    if status == "fault":
        assert "sm_80, sm_90a" in check.text and "KeyError" in check.cost and check.command == "unset CUTE_DSL_ARCH"
    unknown = found(diagnose(machine(probe={}, environ={"CUTE_DSL_ARCH": "90a"})), "CUTE_DSL_ARCH")
    assert unknown.status == "fault"


def test_driver_too_old():  # D01, D07
    check = troubles(machine(whole(dists(cuda_python="13.1.0")), driver="570.86"))["NVIDIA driver"]
    assert check.status == "fault"
    assert "570.86" in check.text and "580" in check.text and "35" in check.cost
    assert check.command == 'pip install "cuda-python==12.9.*"'
    assert not troubles(machine(whole(dists(cuda_python="12.9.4")), driver="570.86"))
    libraries = troubles(machine(whole(flavours=("cu12", "cu13")), driver="570.86"))["NVIDIA driver"]
    assert "CUDA 13 libraries" in libraries.text


def test_context_crash_of_old_releases():  # D02
    old = Installed({DSL: "4.2.1", "cuda-python": "13.0.0"}, SITE, MODULES, MODULES + "/cutlass/__init__.py")
    assert "crashes" in troubles(machine(old))["cuda-python"].text


def test_no_driver_is_no_fault():
    check = troubles(machine(driver="", gpus=()))["NVIDIA driver"]
    assert check.status == "gap" and "figures need none" in check.text


def test_probe():
    broken = troubles(machine(probe=PROBE | {"built": BUILT | {"sm_100a": "ValueError: no"}, "hooks": False}))
    assert broken["MMA for sm_100a"].status == "gap" and "ValueError: no" in broken["MMA for sm_100a"].text
    assert "hooks absent" in broken["DSL features"].text
    dead = troubles(machine(probe={"error": "Importing the CuTe DSL ended its process with SIGSEGV."}))
    assert "SIGSEGV" in dead["DSL in a child process"].text


def test_tex():
    assert "PDF is made from the SVG" in troubles(machine(programs={}))["TeX"].cost
    assert "apt-get" in troubles(machine(programs={}))["pdftocairo"].command
    assert "tikz.sty" in troubles(machine(tikz=False))["TeX"].text
    assert "TeX" not in troubles(machine(programs={"tectonic": "0.15", "pdftocairo": "22"}, tikz=False))
    assert troubles(machine(vl_convert=""))["vl-convert"].command == "pip install vl-convert-python"


@pytest.mark.parametrize(("version", "status"), [((3, 9), "fault"), ((3, 10), "ok"), ((3, 15), "gap")])
def test_python(version, status):
    assert found(diagnose(machine(python=version)), "Python").status == status


def test_explains_a_failed_import():
    missing = ModuleNotFoundError("No module named 'cutlass'", name="cutlass")
    assert explain_import(missing, Installed()).endswith(f"is not installed: pip install {DSL}.")
    assert DSL in explain_import(missing, Installed({"nvidia-cutlass": "4.2"}))
    assert f"{LIBS}base" in explain_import(missing, Installed({DSL: "4.4.0"}))
    assert ".pth" in explain_import(missing, whole(cutlass=""))
    wrong = explain_import(ImportError("no cute"), whole(dists(nvidia_cutlass="4.2"), cutlass=SITE + "cutlass.py"))
    assert "uninstall nvidia-cutlass" in wrong
    assert "driver" in explain_import(ImportError("libcuda.so.1: cannot open"), whole())
    bare = explain_import(RuntimeError(""), whole())
    assert bare == "Importing the CuTe DSL failed (RuntimeError): see texgen doctor."


def test_this_machine():
    checks = examine()
    assert all(isinstance(c, Check) and c.status in ("ok", "gap", "fault") and c.text for c in checks)
    assert {"Python", "NVIDIA driver", "TeX", "pdftocairo", "vl-convert", "CuTe DSL"} <= {c.name for c in checks}


@pytest.mark.dsl
def test_this_installation():
    pytest.importorskip("nvidia_cutlass_dsl", reason="needs nvidia-cutlass-dsl")
    state = installed()
    assert state.distributions[DSL] and state.modules and state.cutlass.startswith(state.modules)
    assert all(c.status == "ok" for c in examine() if c.name.startswith("MMA for"))


def test_looking_never_raises(monkeypatch):
    import texgen.doctor as doctor

    def breaks(*_):
        raise RuntimeError("broken")

    for name in ("installed", "_ask_child", "_driver", "_has_tikz", "_version", "_vl_version"):
        monkeypatch.setattr(doctor, name, breaks)
    assert doctor.examine()
