# On a machine with Python 3.11 or newer and make, each command makes .venv and installs what it needs by itself.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
# Where it is set, as in containers, each process that imports torch and Ray would start 12 seconds later.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo audit docs picture test check test-ray test-slow test-browser test-cluster test-faults fuzz \
  bench-losses bench-report bench-scale bench-tpe bench-partly bench-uncertainty count tree

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' Makefile

demo: $(INSTALLED) ## Run a search, a comparison of the losses and its report, on generated data
	$(BIN)/dice-ray tune synthetic_rare --space loss_tuning --trials 4
	$(BIN)/dice-ray ablate rare_positives --care 1
	$(BIN)/dice-ray report rare_positives --open

picture: $(INSTALLED) ## Take README's picture of the report of `make demo`, with Chromium
	$(BIN)/python -m docs.picture dice_ray_runs/rare_positives/report/report.html

test: $(READY) ## Run the tests, except the slow ones, those of `make check`, and those that need a browser
	$(BIN)/pytest -n 2 -m "not (browser or slow)" --ignore tests/house

check: $(READY) ## Check format, lint, types, import rules and the structure of the repository
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -n 2 -m "not slow" tests/house

audit: $(INSTALLED) ## Search the code with bandit, and the installed packages for known vulnerabilities; needs the network
	$(BIN)/pip install --quiet --constraint constraints.txt -e ".[audit]"
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml dice_ray search_spaces analysis
	$(BIN)/pip-audit --skip-editable

docs: $(INSTALLED) ## Build the documentation as HTML in docs/_build; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build
	@echo "Written: docs/_build/index.html"

test-slow: $(READY) ## Run the tests that take long and test what is rare, or kill processes
	$(BIN)/pytest -m slow

# In an environment of its own, which has the packages of .venv behind its Ray.
WITH_RAY := .venv/ray-$(VERSION)
test-ray: $(READY) ## Run the tests that start Ray with another version of it: make test-ray VERSION=2.59
	@test "$(VERSION)" || { echo "name a version of Ray: make test-ray VERSION=2.59"; exit 1; }
	@$(BIN)/python -m venv --without-pip $(WITH_RAY)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir({purelib!r})".format(**sysconfig.get_paths()))' \
	  > $$($(WITH_RAY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth
	@$(BIN)/python -m pip --python $(WITH_RAY)/bin/python install --quiet --no-compile --no-deps 'ray==$(VERSION).*' --editable .
	$(WITH_RAY)/bin/python -m pytest -m "ray and not slow"

test-browser: $(READY) ## Test the report page in Chromium (Debian's package chromium)
	$(BIN)/pytest -m browser

test-cluster: $(READY) ## Follow docs/clusters.md on three machines, which are namespaces of this one; needs root
	$(BIN)/pytest -m slow tests/cluster

test-faults: $(READY) ## Try 53 kinds of faults 20 times each, about two hours, resumable; prints JSON last
	$(BIN)/python -m tests.faults

fuzz: $(READY) ## Alter input of everything that is read, over 100,000 times, about half an hour on two cores
	DICE_RAY_FUZZ=1 $(BIN)/pytest -n 2 -m fuzz --timeout 3600

bench-losses: $(READY) ## Time the losses against torch's cross-entropy, about a minute; prints JSON last
	$(BIN)/python -m tests.benchmarks.losses

bench-report: $(READY) ## Time reading 10,000 runs against MLflow's own search; prints JSON last
	$(BIN)/python -m tests.benchmarks.report

bench-partly: $(READY) ## Time adapters and frozen layers against training all of MiniLM, on $DICE_RAY_DATA; prints JSON last
	$(BIN)/python -m tests.benchmarks.partly

bench-scale: $(READY) ## Time 1000 empty trials, and measure the driver's memory; prints JSON last
	$(BIN)/python -m tests.benchmarks.scale

bench-tpe: $(READY) ## Compare TPE on a part of the trials with TPE on all, about a quarter of an hour; prints JSON last
	$(BIN)/python -m tests.benchmarks.tpe

bench-uncertainty: $(READY) ## Simulate how far intervals, verdicts and decisions hold, some minutes; prints JSON last
	$(BIN)/python -m tests.benchmarks.uncertainty

count: $(INSTALLED) ## Count lines, files, names, forks, rooms and arrows; of another revision with REV=REVISION
	$(BIN)/python -m tests.house.count $(REV)

tree: $(INSTALLED) ## Print every file with the first sentence of its docstring
	@$(BIN)/python -m tests.house.tree

# pip fetches and unpacks one package after the other, and compiles files that are never imported. All versions are known,
# so four processes unpack them first; the last one decides what is needed, and installs what a platform has in other versions.
PIP_INSTALL = PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-compile

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dice_ray needs Python 3.11 or newer, got $$($(PYTHON) --version 2>&1); name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing dice_ray, and what its tests and documentation need, into .venv; the first time takes about a minute."
	@grep -v '^#' constraints.txt | xargs -P 4 -n 60 env $(PIP_INSTALL) --no-deps || true
	@$(PIP_INSTALL) --editable '.[dev,docs]'
	@touch $@

# The first processes of a test would all compile the same files, so it is done before, on all cores. It fails for files of
# packages that are templates and no Python.
$(READY): $(INSTALLED)
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|rllib)/' .venv/lib || true
	@touch $@
