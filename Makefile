PYTHON ?= python3
BIN := .venv/bin
# uv installs in a tenth of the time; where only pip is told of an index, pip does it.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
SOURCES := $(wildcard blastdoor orchestrator sandbox scripts tests benchmarks examples docs/conf.py)
ENGINE := scripts/with-engine
# Where the demo runs: docker, or runc, crun and runsc, which need no engine.
BACKEND ?= docker
DEMO_ENGINE := $(if $(filter docker,$(BACKEND)),$(ENGINE))
# All that tests start chambers from.
IMAGES := trial attack busybox judge cuda agent orchestrator
# Images wait for packages while types are checked.
CHECKED := $(MAKE) --no-print-directory --jobs 3 --output-sync=line types rules images
# Tests and benchmarks start thousands of Pythons, and each would compile all of our code again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup programs prepared images demo test thorough slurm unit check types rules format docs attack bench lock clean

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup: .venv/.stamp ## make the virtual environment

.venv/.stamp: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > .venv/uv.txt
	$(PIP) install --require-hashes -r .venv/uv.txt
	$(BIN)/uv pip install --quiet --require-hashes -r requirements.txt || $(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

programs:
	@$(PYTHON) scripts/distribution.py test

demo: setup ## set everything up and run a real campaign
	rm -rf .demo && cp -R examples/circle_packing .demo
	$(DEMO_ENGINE) sh -c '$(BIN)/blastdoor images build --backend $(BACKEND) \
		&& $(BIN)/blastdoor run .demo --backend $(BACKEND) --proposer mixed --attempts 60 --control random --seed 1'
	@echo "The campaign is kept in .demo: try $(BIN)/blastdoor status .demo, show best .demo, report .demo"

test: prepared ## set everything up and run all checks and tests but the longest
	$(ENGINE) sh -c '$(CHECKED) && exec scripts/run-tests $(ARGS)'

thorough: prepared ## the same, with long random runs and every hardening flag switched off in turn
	$(ENGINE) sh -c '$(CHECKED) && exec scripts/run-tests --thorough $(ARGS)'

prepared:
	@$(MAKE) --no-print-directory --jobs 2 setup programs

images:
	@scripts/build-images $(IMAGES)

slurm: setup ## run the tests that rent from a real Slurm cluster
	$(ENGINE) sh -c 'scripts/build-images && exec scripts/run-tests --slurm $(ARGS)'

unit: setup ## run the fast tests; they need no engine
	@$(PYTHON) scripts/distribution.py unit
	$(BIN)/pytest --unit --numprocesses 2 --dist worksteal -m 'not (docker or modal or slurm or postgres or crash or attack or e2e or slow or fuzz or alone or long)' $(ARGS)

check: setup ## format, lint, types, import contracts
	@$(MAKE) --no-print-directory --jobs 2 --output-sync types rules

types:
	$(BIN)/mypy $(SOURCES)

rules:
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/lint-imports
	PYTHONPATH=scripts $(BIN)/python -m rules

format: setup ## put the code into form
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: setup ## write the reference pages, and build the site in build/docs
	$(BIN)/python scripts/reference.py
	$(BIN)/sphinx-build --conf-dir docs --fail-on-warning --quiet --jobs auto . build/docs
	@echo "Open build/docs/index.html; search works without a server"

attack: setup ## run the attack suite, with ARGS
	$(ENGINE) sh -c 'scripts/build-images && exec $(BIN)/blastdoor attack $(ARGS)'

bench: setup ## run the benchmarks, with ARGS
	$(ENGINE) sh -c 'scripts/build-images && exec $(BIN)/python -m benchmarks $(ARGS)'

# uv, because it takes the hashes of every platform's files from the index.
lock: setup ## pin requirements.txt again
	printf 'setuptools\nwheel\n' | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --extra dev \
		--custom-compile-command 'make lock' --output-file requirements.txt pyproject.toml -
	printf 'pip\nsetuptools\nwheel\n' | $(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --python-platform linux \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --extra modal --constraint requirements.txt \
		--custom-compile-command 'make lock' --output-file deploy/orchestrator/requirements.txt pyproject.toml -
	for pair in 'inspect inspect-ai' 'swerex swe-rex aiohttp'; do set -- $$pair; name=$$1; shift; printf '%s\n' "$$@" \
		| $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make lock' \
		--output-file benchmarks/their_requirements/$$name.txt - || exit 1; done
	@echo "Then: make setup && .venv/bin/python scripts/box_requirements.py, for what rented machines install"

clean: ## remove all that make made, the private engine included
	$(ENGINE) --clean
	rm -rf .venv .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .rules_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
