PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py') pyproject.toml

.PHONY: demo test lint types clean clean-cache

demo: $(VENV)/installed
	$(BIN)/mh4 demo

test: lint types
	$(BIN)/pytest -n 2 --dist loadfile

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy sees the package as users get it, not the source folders.
types: $(VENV)/installed build/typed
	MYPYPATH=build/typed $(BIN)/mypy -p mh4
	MYPYPATH=build/typed $(BIN)/mypy tests/support/interface_types.py

build/typed: $(SOURCES) $(VENV)/installed
	rm -rf build/lib build/bdist* $@
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --target $@ .
	touch $@

# An editable install: compiled kernels stay in the source folders' __pycache__ from run to run.
# Kernels compiled before may need modules that have moved since.
$(VENV)/installed: pyproject.toml constraints.txt
	find src -name '*.nb[ic]' -delete
	test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt setuptools torch
	$(BIN)/pip install --quiet --no-build-isolation --constraint constraints.txt --editable '.[dev,plots]'
	touch $@

clean: clean-cache
	rm -rf $(VENV) build demo .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Compiled kernels: Numba does not see that a kernel has changed which others, in other files, are built from.
clean-cache:
	find src experiments tests -name __pycache__ -type d -prune -exec rm -rf {} +
