# Everything that a person or a machine runs here. CI runs `make test`, nothing else.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-queries test-sites test-sail test-processes test-plain test-clusters test-slow lint format sparks sim properties metamorphic chaos soak bench mutants fuzz docs lock sbom clean

ARGS ?=
BIN := .venv/bin
# Spark starts the Java that scripts/setup found; without one (Sail only) the variable stays as it is.
JAVA := if [ -f .venv/java-home ]; then export JAVA_HOME="$$(cat .venv/java-home)"; fi;
PYTEST := $(JAVA) $(BIN)/python -m pytest

# Sail needs no Java, so neither does a demo with it.
ifneq (,$(findstring --sail,$(ARGS)))
export SKERRY_NO_JAVA := 1
endif

# The repository's own environment, not the caller's. Containers like to forbid bytecode: every process of every test
# would compile all that it imports again, and pytest rewrite each assertion anew.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PYTHON

NAME ?=
SEEDS ?= 2000
N ?= 300
MINUTES ?= 30
# Not from the shell's environment: bash counts its own SECONDS.
SECONDS_ := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)
export SEEDS

help: ## what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | while IFS='#' read -r target text; do printf '%-16s %s\n' "$$target" "$$text"; done

setup: ## .venv with the locked dependencies, and Java
	@scripts/setup

demo: setup ## three sites on this machine and queries across them (ARGS="…" is passed on)
	@$(JAVA) $(BIN)/skerry demo $(ARGS)

# Spark-free tests first: they are quick and find most mistakes. No tests found is a failure too (pytest's status 5).
test: setup ## every test, and lint
	$(PYTEST) -n auto -m "not spark and not sail and not e2e and not slow" $(filter-out tests/integration/ tests/e2e/,$(wildcard tests/*/)) $(ARGS)
	@$(MAKE) --no-print-directory --jobs=5 --keep-going test-queries test-sites test-sail test-processes test-plain test-clusters test-slow lint

# Five of these at a time, the next as soon as one ends: queries on one Spark; all else on one Spark; Sail's, which get
# on with no Spark in one process; those that start members as processes, on either; what only computes, at the lowest
# priority; slow ones that need none of this. All but the plain ones wait at times, for members that start, stop, or are given up:
# the plain ones take what the others leave, and the last that runs is one of theirs, on every core.
# What all but the first say is shown at their end. Each reads the folders that its tests may be in and no other: to
# collect all tests takes seven seconds more. tests/conftest.py refuses one that is elsewhere (HOMES).
QUERIES := tests/integration/queries
# These have clusters of their own, so they may as well run on the other Spark: the first would end long after it. A third
# Spark for them costs more than it saves, because each has to compile what all of them need.
APART := $(addprefix $(QUERIES)/test_,metamorphic.py topologies.py sail_parts.py partials.py prune.py ranges.py)
test-queries:
	$(PYTEST) -m "spark and not sail and not e2e" $(QUERIES) $(APART:%=--ignore=%) $(ARGS)

test-sail: MARKS := -m sail tests/integration
test-sites: MARKS := -m "spark and not sail and not e2e" $(filter-out $(QUERIES)/,$(wildcard tests/integration/*/)) $(APART)
test-processes: MARKS := -m e2e tests/integration/spark tests/e2e
SLOW := -m "slow and not spark and not sail and not e2e"
test-plain: MARKS := -n auto $(SLOW) tests/plans tests/property/exchange tests/sim
test-plain: PYTEST := $(JAVA) nice -n 19 $(BIN)/python -m pytest
test-slow: MARKS := $(SLOW) tests/integration/member tests/unit/cli tests/unit/member tests/unit/spark tests/unit/tables
# A driver on a standalone cluster, then a client of Spark Connect: a process can be one of them, and has no other Spark.
# They begin when the first of the others ends. `make sparks` has the engine's other tests on them too.
CLUSTERS := $(addprefix tests/integration/spark/test_spark_,contract.py clusters.py standalone.py connect.py)
test-clusters:
	@mkdir -p build; status=0; for kind in standalone connect; do \
		$(PYTEST) -m $$kind $(CLUSTERS) $(ARGS) || status=$$?; done > build/$@.log 2>&1; cat build/$@.log; exit $$status

test-sail test-sites test-processes test-slow test-plain:
	@mkdir -p build; status=0; $(PYTEST) $(MARKS) $(ARGS) > build/$@.log 2>&1 || status=$$?; cat build/$@.log; exit $$status

lint: setup ## ruff, mypy --strict, and that folders import only those below them
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff rewrite what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

sim: setup ## SEEDS simulated clusters (ARGS="--seed 7" replays one)
	@$(BIN)/python -m sim --seeds $(SEEDS) $(ARGS)

properties: setup ## the property tests with SEEDS examples each
	$(PYTEST) tests/property --hypothesis-profile=sim --timeout=3600 $(ARGS)

metamorphic: setup ## N generated queries on four clusters, then TPC-H on six (ARGS="--seed 7" replays one)
	@$(JAVA) $(BIN)/python -m metamorphic --queries $(N) $(ARGS)

chaos: setup ## members killed, stopped and cut off from each other, in network namespaces (root)
	@$(JAVA) $(BIN)/python -m chaos $(ARGS)

soak: setup ## mixed queries for MINUTES, clients that come and go; memory, threads, files must stay flat (ARGS=--sail)
	@$(JAVA) $(BIN)/python -m soak --minutes $(MINUTES) $(ARGS)

bench: setup ## all benchmarks, or one: make bench NAME=overhead
	@$(JAVA) $(BIN)/python -m bench $(NAME) $(ARGS)

sparks: setup ## the engine's contract over releases of PySpark: embedded, standalone, Connect (ARGS="4.1 4.3")
	@$(JAVA) $(BIN)/python -m scripts.sparks $(ARGS)

mutants: setup ## plant known mistakes one by one; every one must make a test fail
	@$(JAVA) $(BIN)/python scripts/mutants.py $(ARGS)

fuzz: setup ## search for bytes that crash the decoders: make fuzz SECONDS=600
	@test -d fuzz/.tools || $(BIN)/python -m pip install --quiet --require-hashes --target fuzz/.tools -r fuzz/requirements.txt
	@$(BIN)/python -m fuzz --seconds $(SECONDS_) $(ARGS)

docs: setup ## print the tables of states into docs/protocol.md, what SQL is admitted into docs/sql.md; check that links, paths and decisions are true to the tree
	$(BIN)/python scripts/transitions.py
	$(BIN)/python scripts/sql_forms.py
	$(PYTEST) tests/unit/test_project.py $(ARGS)

lock: setup ## write requirements/*.txt anew from pyproject.toml
	$(BIN)/uv pip compile $(LOCK) --all-extras pyproject.toml -o requirements/all.txt
	$(BIN)/uv pip compile $(LOCK) --group build -o requirements/build.txt
	$(BIN)/uv pip compile $(LOCK) --group installer -o requirements/installer.txt
	$(BIN)/uv pip compile $(LOCK) --group compat --no-deps -o requirements/compat.txt
	$(BIN)/uv pip compile $(LOCK) --group sbom -o requirements/sbom.txt
LOCK := --quiet --upgrade --generate-hashes --universal --python-version 3.11 --fork-strategy fewest --no-emit-index-url --no-header

sbom: setup ## build/sbom.json: the locked dependencies with their hashes (CycloneDX)
	@test -x build/sbom-tool/bin/cyclonedx-py || { $(BIN)/python -m venv build/sbom-tool && build/sbom-tool/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/sbom.txt; }
	@build/sbom-tool/bin/python -W ignore -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible -o build/sbom.json requirements/all.txt
	@echo "build/sbom.json is written"

clean: ## remove everything that can be made again
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
