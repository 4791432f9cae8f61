# Every target makes the environment it needs, one for each version of Python:
#     make test                      with python3
#     make test PYTHON=python3.13    with another interpreter

PYTHON ?= python3
ARGS ?=

VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VENV := .venv-$(VERSION)
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
PEERS_READY := $(VENV)/.ready-peers

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-all coverage wheel-test lint format docs notebooks linkcheck bench bench-rows bench-peers bench-pymhss bench-crossed austerity2014 hard-models families size clean

help:
	@echo "make demo    sample a real data set with AusterityMH and with NUTS; pictures in examples/output"
	@echo "make quick   run the tests that set up no step method, in two minutes"
	@echo "make test    run the tests; ARGS='-k rows' is passed on to pytest"
	@echo "make test-all run all of them, on every shape of model (an hour or more)"
	@echo "make coverage  run the tests and count the lines that they reach; below 95 % it fails"
	@echo "make wheel-test  build the package, install it elsewhere and test it there"
	@echo "make lint    check style, types and spelling"
	@echo "make format  format the code, and correct what ruff can"
	@echo "make docs    build the site into docs/_build/html"
	@echo "make notebooks  execute the notebooks of the gallery and keep their outputs; ARGS names some"
	@echo "make linkcheck  check the links of the site to other sites"
	@echo "make bench   measure the time of set-up, and the time and memory of a draw"
	@echo "make bench-rows  memory, passes and time of rows on disk, resumes if interrupted; ARGS='--rows 1000000' for a small run"
	@echo "make bench-peers  compare with other samplers; hours, resumes if interrupted"
	@echo "make bench-pymhss  compare exact decisions with the program of Prado, Nemeth and Sherlock"
	@echo "make bench-crossed  compare on crossed factors with crossed-effects and GPBoost"
	@echo "make austerity2014  run the paper's experiments, resumes if interrupted; ARGS=--quick for seconds of each"
	@echo "make hard-models  models that are easy to get wrong; resumes if interrupted"
	@echo "make families  models of many kinds, beside NUTS; resumes if interrupted"
	@echo "make size    count lines and words, and list what may exist twice"
	@echo "make clean   remove environments, caches and everything that was built"
	@echo
	@echo "PYTHON=python3.13 picks another interpreter (3.11 gives PyMC 5.28, later ones PyMC 6)."

demo: $(READY)
	$(RUN) examples/quickstart.py $(ARGS)

# Two workers with all the threads of a linear algebra library get in each other's way. A worker that
# has nothing left takes tests from the other: those of a folder are given to one, long or short.
quick test test-all coverage wheel-test: export OMP_NUM_THREADS ?= 1
quick test test-all coverage wheel-test: export OPENBLAS_NUM_THREADS ?= 1
quick test test-all coverage wheel-test: export MPLBACKEND ?= agg
test: $(READY)
	$(RUN) -m pytest -n 2 --dist worksteal $(ARGS)

# Parts that do not set up step methods, which is what takes time.
QUICK_TESTS := $(wildcard tests/test_*.py) $(addprefix tests/,control_variates deciding plots proposals \
	rows sequential sources model/bounds model/kernel model/predictors)
quick: $(READY)
	$(RUN) -m pytest -n 2 --dist worksteal \
		$(filter-out tests/test_bambi.py tests/test_project.py,$(QUICK_TESTS)) $(ARGS)

test-all: $(READY)
	$(RUN) -m pytest -n 2 --dist worksteal -m "exhaustive or not exhaustive" $(ARGS)

# pytest imports the package, for its warnings, before a plugin could count lines.
coverage: $(READY)
	$(RUN) -m coverage erase
	$(RUN) -m coverage run -m pytest -n 2 --dist worksteal $(ARGS)
	$(RUN) -m coverage combine --quiet
	$(RUN) -m coverage report

# README's example runs beside the wheel and what it requires. The tests run in the unpacked source
# distribution, beside which the package lies installed only. They are those of parts that compile
# little: whether the wheel is whole does not take all of them.
WHEEL_VENV := $(CURDIR)/.venv-wheel-$(VERSION)
WHEEL_INSTALL := $(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WHEEL_TESTS ?= tests/test_project.py tests/rows tests/deciding tests/plots tests/step_methods/test_contract.py
wheel-test: $(READY)
	@rm -rf dist $(WHEEL_VENV)
	$(INSTALL) build
	$(RUN) -m build --outdir dist
	@echo "Installing the wheel into $(WHEEL_VENV) ..."
	@$(PYTHON) -m venv $(WHEEL_VENV)
	@$(WHEEL_INSTALL) dist/*.whl
	@cd $$(mktemp -d) && sed -n '/^```python/,/^```/{/^```/!p;}' $(CURDIR)/README.md > usage.py && \
		$(WHEEL_VENV)/bin/python usage.py
	@$(WHEEL_INSTALL) "$$(echo dist/*.whl)[test]"
	@cd $$(mktemp -d) && tar -xzf $(CURDIR)/dist/*.tar.gz --strip-components=1 && \
		rm -r pymc_austerity && $(WHEEL_VENV)/bin/python -m pytest $(WHEEL_TESTS) $(ARGS)

size:
	@$(PYTHON) .ci/size.py

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m codespell_lib

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: $(DOCS_READY)
	$(RUN) -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	@echo "The site is in docs/_build/html/index.html"

notebooks: $(DOCS_READY)
	$(RUN) docs/gallery/execute.py $(ARGS)

linkcheck: $(DOCS_READY)
	$(RUN) -m sphinx -q -b linkcheck docs docs/_build/linkcheck

bench: $(PEERS_READY)
	$(RUN) -m examples.benchmarks $(ARGS)

bench-rows: $(READY)
	$(RUN) -m examples.benchmarks.rows $(ARGS)

bench-peers: $(PEERS_READY) .venv-pymhss/.ready
	$(RUN) -m examples.benchmarks.peers $(ARGS)

bench-pymhss: $(READY) .venv-pymhss/.ready
	$(RUN) -m examples.benchmarks.pymhss --python .venv-pymhss/bin/python $(ARGS)

bench-crossed: $(PEERS_READY) .venv-crossed/.ready
	$(RUN) -m examples.benchmarks.crossed $(ARGS)

austerity2014: $(READY)
	$(RUN) -m examples.austerity2014 $(ARGS)

hard-models: $(READY)
	$(RUN) -m examples.hard_models $(ARGS)

families: $(PEERS_READY)
	$(INSTALL) pymc-bart
	$(RUN) -m examples.families $(ARGS)

clean:
	rm -rf .venv-* .mypy_cache .pytest_cache .ruff_cache build dist docs/_build docs/api/generated examples/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are as old as the last installation; a change of either file installs again.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or later is needed, and '$(PYTHON)' is not one: name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "'$(PYTHON)' cannot make virtual environments: install its venv module (python3-venv)." >&2; exit 1; }
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || \
		echo "No C++ compiler (g++) was found: PyMC will be slow where it uses its C backend." >&2
	@test -x $(RUN) || { echo "Making $(VENV), once ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing into $(VENV) ..."
	@$(INSTALL) --editable '.[dev]'
	@touch $@

$(DOCS_READY): $(READY)
	@echo "Installing what the site needs into $(VENV) ..."
	@$(INSTALL) --editable '.[docs]'
	@touch $@

$(PEERS_READY): $(READY)
	@echo "Installing the other samplers into $(VENV) ..."
	@$(INSTALL) --editable '.[peers]'
	@touch $@

# Programs whose requirements (TensorFlow) go with no others, or that are on no package index.
.venv-%/.ready: examples/benchmarks/%/requirements.txt
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
