# Two commands for newcomers: make demo, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# numba does not notice a change in an imported kernel, so the cache is named after the sources.
SOURCE_HASH = $(shell find src -name '*.py' | LC_ALL=C sort | xargs cat | cksum | cut -d' ' -f1)
export NUMBA_CACHE_DIR = $(CURDIR)/.cache/numba-$(SOURCE_HASH)
# The estimators run small problems side by side: one BLAS thread per process is faster and repeatable.
TEST_THREADS = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
WORKERS ?= 2
# The tests start many processes, which all would compile the sources of Python anew.
unexport PYTHONDONTWRITEBYTECODE
# The lowest versions that pyproject.toml promises; a test compares.
OLDEST = 'highspy==1.7.*' 'joblib==1.3.*' 'numba==0.60.*' 'numpy==1.26.*' 'scikit-learn==1.7.*' 'scipy==1.12.*' 'threadpoolctl==3.1.*'

# Where the tests on a GPU run: an interpreter with torch for CUDA or CuPy.
GPU_PYTHON ?= $(BIN)/python

.PHONY: demo test test-oldest test-slow test-gpu mutation house bench docs docs-quick release-check lint format index warmup browser clean

$(VENV)/.dev: pyproject.toml studies/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e ./studies
	touch $@

# Only what the commands and the report need, with the pip that is there, where there is one: that of venv takes five
# seconds to install, a downloaded one less than one. Modules are compiled when they are first used, not all before.
$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	if $(PYTHON) -m pip --python $(BIN)/python --version > /dev/null 2>&1; \
	then pip="$(PYTHON) -m pip --python $(BIN)/python"; \
	else $(BIN)/python -m ensurepip > /dev/null; pip="$(BIN)/python -m pip"; fi; \
	$$pip install --quiet --disable-pip-version-check --no-compile pip -e '.[demo]'
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

demo: $(VENV)/.demo  ## run the main job on bundled data and end with the path of a report
	$(BIN)/zeronorm demo --out demo-report --force

# Plain assertions: to rewrite those of all files takes longer than any test. What fails is run again with all details.
test: $(VENV)/.dev  ## all tests but the slow ones
	$(TEST_THREADS) $(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist worksteal -q --assert=plain || \
		{ $(TEST_THREADS) $(BIN)/python -m pytest -m "not slow" --last-failed --last-failed-no-failures none -q; exit 1; }

test-oldest:  ## the contract of every method on the oldest supported dependencies
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e '.[demo]' $(OLDEST) \
		'pytest>=8.0' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'pandas>=2.0'
	$(TEST_THREADS) $(VENV)-oldest/bin/python -m pytest -n $(WORKERS) --dist worksteal -q tests/test_contract.py

test-slow: $(VENV)/.dev  ## the full Monte Carlo and large-data checks
	$(BIN)/python -m pytest -m slow -q -s

test-gpu: $(VENV)/.dev  ## the operations and methods on a CUDA device; skipped, with the reason, where there is none
	$(GPU_PYTHON) -m pytest -q -rs tests/design/test_gpu.py tests/design/test_device_kernels.py

mutation: $(VENV)/.dev  ## faults put in one at a time, each of which a test should notice
	$(TEST_THREADS) $(BIN)/python tests/mutation/run.py

house: $(VENV)/.dev  ## how simple the package is: files, functions and depth of a fit, classes, constants, lines
	$(BIN)/python tools/house.py

bench: $(VENV)/.bench  ## speed against peers, ratios measured in one run
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs  ## the site, offline, with all examples; warnings are errors
	MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

docs-quick: $(VENV)/.docs  ## the site with one example run, for the weekly workflow
	MPLBACKEND=Agg ZERONORM_GALLERY=plot_stability $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

release-check: $(VENV)/.dev  ## build, check contents and README, install in a clean environment, run a command
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	rm -rf dist build/release
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist/studies studies
	$(BIN)/python -m twine check --strict dist/*.* dist/studies/*
	$(BIN)/python docs/check_wheel.py dist src
	$(BIN)/python docs/check_wheel.py dist/studies studies/src
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[app]"
	cd build && release/bin/zeronorm --version && release/bin/zeronorm methods --task regression
	cd build && ! release/bin/zeronorm study --list
	build/release/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dist/studies/*.whl
	cd build && release/bin/zeronorm study --list

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

index: $(VENV)/.dev  ## rewrite the lazy top-level index after adding a method
	$(BIN)/python -m zeronorm.registry

warmup: $(VENV)/.dev
	$(BIN)/zeronorm warmup

browser:  ## Chromium for the tests of the report (Debian, Ubuntu)
	apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium chromium-driver

clean:
	rm -rf $(VENV) .cache build dist docs/_build demo-report
