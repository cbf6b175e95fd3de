# make figures: the eight reference figures into build/figures; make test: the tests. Both make .venv first.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin
PIP    := $(RUN)/python -m pip --disable-pip-version-check install -q
PYTEST_ARGS ?=

.PHONY: figures test lint bench wheel clean

figures: $(VENV)/.installed
	$(RUN)/python docs/reference_figures.py build/figures
	@echo "texgen is in $(RUN): . $(RUN)/activate puts it on the PATH"

test: $(VENV)/.tested
	$(RUN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(VENV)/.tested
	$(RUN)/ruff check .
	$(RUN)/mypy

bench: $(VENV)/.tested
	$(RUN)/python -m benchmarks

wheel: $(VENV)/.tested
	$(PIP) build
	$(RUN)/python -m build --wheel --outdir dist .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(PIP) -e .
	touch $@

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	$(PIP) -e ".[test]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf build dist $(VENV)
