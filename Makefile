# make site: the documentation with its catalogue of atoms; make figures: the eight reference figures into build/figures;
# make test: the tests. Each makes .venv first; none needs TeX or a GPU.
# On a GPU, with the Python that has torch and the DSL (PYTHON=...), no network and no .venv: make test-gpu, make measure.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin
PIP    := $(RUN)/python -m pip --disable-pip-version-check install -q
PYTEST_ARGS ?=

OUT ?= docs/results

# the tests start Python hundreds of times: what it compiles is kept, whatever the shell says
unexport PYTHONDONTWRITEBYTECODE

.PHONY: site figures test coverage versions properties fuzz test-gpu measure lint bench wheel clean

site: $(VENV)/.documented
	$(RUN)/python -m sphinx -q -W -n --keep-going -j auto -b html -d build/doctrees docs build/site
	@echo "The pages are in build/site: open file://$(CURDIR)/build/site/index.html"

figures: $(VENV)/.installed
	$(RUN)/python docs/reference_figures.py build/figures
	@echo "texgen is in $(RUN): . $(RUN)/activate puts it on the PATH"

test: $(VENV)/.tested
	$(RUN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

# every property with ten thousand examples (hours), in place of the few of make test
properties: $(VENV)/.tested
	HYPOTHESIS_PROFILE=full $(RUN)/python -m pytest tests/properties $(PYTEST_ARGS)

# a fuzzer (atheris, Linux) on each parser, the JSON reader and the options: make fuzz SECONDS=60
SECONDS ?= 60
FUZZED  ?= layout_text cpp printout json options
fuzz: $(VENV)/.tested
	$(PIP) -e ".[fuzz]"
	for target in $(FUZZED); do $(RUN)/python tests/fuzz $$target $(SECONDS) || exit 1; done

test-gpu:
	PYTHONPATH=. $(PYTHON) -m pytest -m gpu $(PYTEST_ARGS)

measure:
	PYTHONPATH=. $(PYTHON) -m texgen.measure --out $(OUT)

lint: $(VENV)/.tested
	$(RUN)/ruff check .
	$(RUN)/mypy
	MYPYPATH=docs/_ext:docs $(RUN)/mypy docs/_ext/*.py

# ratios against peers and floors, into benchmarks/results.json and the README's table; wants a quiet machine
bench: $(VENV)/.tested
	$(PIP) -e ".[bench]"
	$(RUN)/python -m benchmarks

# the tests with branches counted, below 90 % of texgen a failure
coverage: $(VENV)/.tested
	$(RUN)/python -m coverage erase
	$(RUN)/python -m coverage run -m pytest -n auto --dist worksteal $(PYTEST_ARGS)
	$(RUN)/python -m coverage combine -q
	$(RUN)/python -m coverage report --skip-covered

# the wheel under the oldest and the newest Python and DSL, and without the DSL
versions: $(VENV)/.tested
	$(RUN)/python -m tests.versions $(VERSIONS_ARGS)

wheel: $(VENV)/.tested
	$(PIP) build
	$(RUN)/python -m build --wheel --outdir dist .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(PIP) -e .
	touch $@

$(VENV)/.documented: $(VENV)/bin/python pyproject.toml
	$(PIP) -e ".[docs]"
	touch $@ $(VENV)/.installed

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	$(PIP) -e ".[test]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf build dist $(VENV)
