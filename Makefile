# On a machine with Python 3.11 or newer and make, each command makes .venv and installs what it needs by itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test check test-slow test-browser test-faults bench-losses bench-data bench-report bench-train \
  bench-sweep bench-scale bench-search bench-tracking tree

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## Search the loss, compare the losses, and write the report page, on generated data
	$(BIN)/dice-ray tune synthetic_pairs --space loss_tuning --trials 4
	$(BIN)/dice-ray ablate loss_comparison --seeds 3
	$(BIN)/dice-ray report loss_comparison
	@printf '\nHow often does that hold? The two best losses over ten seeds more:\n\n'
	$(BIN)/dice-ray ablate loss_comparison --arm cross_entropy --arm self_adjusting_dice --seeds 13
	$(BIN)/dice-ray report loss_comparison

test: $(READY) ## All tests but those that need a browser, a GPU, the network or over 90 s
	$(BIN)/pytest -n 2 -m "not (browser or gpu or network or slow)"

check: $(READY) ## Format, lint, types, the arrows between the rooms, and the tests that hold the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest tests/house

test-slow: $(READY) ## The tests that take over 90 s each, or need a GPU or the network
	$(BIN)/pytest -m "slow or gpu or network" || [ $$? -eq 5 ]  # 5: there are none

test-browser: $(READY) ## Open the report page in Chromium, which Debian has as the package chromium
	$(BIN)/pytest -m browser

test-faults: $(READY) ## Kill drivers, trials and machines of sweeps at random moments; the last line is JSON
	$(BIN)/python -m tests.faults

bench-losses: $(READY) ## Time the losses beside cross-entropy; the last line is JSON
	$(BIN)/python -m tests.benchmarks.losses

bench-data: $(READY) ## Time reading and encoding beside `datasets`, on $$DICE_RAY_DATA; the last line is JSON
	$(BIN)/python -m tests.benchmarks.data

bench-report: $(READY) ## Time reading 10,000 runs beside MLflow's own search; the last line is JSON
	$(BIN)/python -m tests.benchmarks.report

bench-train: $(READY) ## Time training beside Hugging Face's Trainer, some 20 minutes; the last line is JSON
	$(BIN)/python -m tests.benchmarks.training

bench-sweep: $(READY) ## Time short trials beside Hugging Face's search on Ray and nested Ray Train; the last line is JSON
	$(BIN)/python -m tests.benchmarks.sweep

bench-scale: $(READY) ## Time 1000 trials of no work, and the driver's memory; the last line is JSON
	$(BIN)/python -m tests.benchmarks.scale

bench-search: $(READY) ## Compare samplers on $$DICE_RAY_DATA, half an hour, goes on where it was; the last line is JSON
	$(BIN)/python -m tests.benchmarks.search

bench-tracking: $(READY) ## The share of a sweep's wall time that tracking takes; the last line is JSON
	$(BIN)/python -m tests.benchmarks.tracking

tree: $(READY) ## Write the tree in README from the files' first sentences
	$(BIN)/python -m tests.house.tree

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dice_ray needs Python 3.11 or newer, got $$($(PYTHON) --version 2>&1); name one: make PYTHON=python3.12"; exit 1; }
	@echo "Installing into .venv; the first time takes some minutes."
	@$(PYTHON) -m venv .venv
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
