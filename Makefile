# All that is needed is Python 3.11 or newer with its venv module; PYTHON=... chooses which one makes .venv.
# Packages come from the lock files, by hash, from wherever pip is set up to look (PIP_INDEX_URL for a mirror).

VENV := .venv
PY := $(VENV)/bin/python
PIP_INSTALL := $(PY) -m pip install --progress-bar off --disable-pip-version-check
PIP_LOG := $(VENV)/pip.log
TYPES_LOG := $(VENV)/mypy.log
PYTEST := -m pytest --quiet --numprocesses auto --dist loadfile --no-loadscope-reorder
SUITE := $(PY) $(PYTEST)
CANDIDATES := python3.13 python3.12 python3.11 python3.14 python3 python
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
UV := $(VENV)/bin/uv
UV_VERSION := 0.13.8
INDEX = $${PIP_INDEX_URL:+--default-index "$$PIP_INDEX_URL"}
NPM_QUIET := --ignore-scripts --no-audit --no-fund --loglevel error
RESOLVE = $(UV) pip compile --quiet --universal --python-version 3.11 $(INDEX)
COMPILE = $(RESOLVE) --generate-hashes pyproject.toml --custom-compile-command "make lock"
PEERS := bench/.venv
SPRING := bench/services/spring/target
AUDIT := .venv-audit
NEWEST := .venv-newest
LOWEST := .venv-lowest
SITE := docs/site/build
HOOK = $$(git rev-parse --git-path hooks)/pre-commit

# $(call installed,WHAT,ARGUMENTS): what pip is at every few seconds, and its whole output only when it fails.
define installed
	@echo "Installing $(1) into $(VENV) ..."
	@began=$$(date +%s); seconds() { echo "$$(($$(date +%s) - began)) s"; }; \
		while sleep 3 >/dev/null 2>&1; do echo "  $$(seconds): $$(tail -n 1 $(PIP_LOG) | cut -c 1-90)"; done & ticker=$$!; \
		trap "kill $$ticker" EXIT; \
		$(PIP_INSTALL) $(2) >$(PIP_LOG) 2>&1 || { code=$$?; cat $(PIP_LOG) >&2; exit $$code; }; \
		echo "Installed in $$(seconds)."
endef

define check_style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
endef
CLIENTS := wire_clients/.venv
MODEL := real_model/.venv
PROXY := wire_clients/litellm_proxy/.venv
PACKAGES := wire_clients/npm/node_modules

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run demo test test-pages test-fast test-package test-newest test-lowest test-clients test-model nightly lint lock wheel bench bench-quick bench-guard bench-lock site-lock lab lab-fast lab-long lab-sabotage clients-lock env-example alerts answers pictures architecture reference site audit hooks clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.runtime ## Serve on http://127.0.0.1:8083 (.env and the environment change that)
	@$(PY) -m app

demo: $(VENV)/.runtime ## Serve with invented weather and translations, so that every tool works without a key
	@$(PY) -m app demo

test: $(VENV)/.dev ## Check the code and run every test but those of the pages and the package (COVERAGE=1: measure the coverage as well)
	$(check_style)
	@$(PY) -m mypy >$(TYPES_LOG) 2>&1 & types=$$!; \
		$(SUITE) -m "not page and not package" $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0); code=$$?; \
		wait $$types || code=1; cat $(TYPES_LOG); exit $$code
ifdef COVERAGE
	@table=$$($(PY) -m coverage report) || { echo "$$table"; exit 1; }; echo "$$table" | grep ^TOTAL
endif

test-pages: $(VENV)/.dev ## Run the tests that look at the pages in a browser
	$(SUITE) -m page

test-fast: $(VENV)/.dev ## Run the tests that need no browser, no other process and no second, in under a minute
	$(SUITE) -m "not slow"

test-package: $(VENV)/.dev ## Install the wheel as users do, and build what the image holds; needs a package index
	$(SUITE) -m package

test-newest: $(UV) ## Run every test with the newest versions that pyproject.toml allows, in an environment of their own
	$(PY) -m venv --clear $(NEWEST)
	$(UV) pip install --quiet --python $(NEWEST)/bin/python $(INDEX) -r pyproject.toml --extra dev
	$(NEWEST)/bin/python $(PYTEST)

test-lowest: $(UV) ## Run the fast tests with the oldest versions that pyproject.toml allows, in an environment of their own
	$(PY) -m venv --clear $(LOWEST)
	$(UV) pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct $(INDEX) pyproject.toml \
		$(addprefix --extra ,service dashscope redis jwt otel reload) --output-file $(LOWEST)/constraints.txt
	$(UV) pip install --quiet --python $(LOWEST)/bin/python $(INDEX) -r pyproject.toml --extra dev --constraint $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(PYTEST) -m "not slow"

test-clients: $(VENV)/.dev $(CLIENTS)/.clients $(PROXY)/.clients $(PACKAGES)/.packages ## Ask the service by the clients that speak its other wires, in an environment of their own
	$(CLIENTS)/bin/python -m pytest --quiet -c wire_clients/pytest.ini --rootdir . wire_clients

test-model: $(VENV)/.dev $(MODEL)/.clients ## Ask a real small model through the service (1.2 GB once; WRITE=--write: its table into docs/evaluation.md)
	$(PY) -m real_model $(WRITE)

nightly: $(VENV)/.dev ## Try 20,000 hostile tool calls of each kind (make test tries 50)
	HYPOTHESIS_PROFILE=nightly $(PY) -m pytest -o faulthandler_timeout=3600 tests/tool_calling/test_hostile_calls.py

lint: $(VENV)/.dev ## Check the code: ruff, its formatting, mypy
	$(check_style)
	$(PY) -m mypy

lock: $(UV) ## Write the lock files after a change in pyproject.toml (LOCK=--upgrade: newest versions)
	$(COMPILE) $(LOCK) --extra service --extra dashscope --extra redis --extra jwt --extra otel --output-file requirements.lock
	$(COMPILE) $(LOCK) --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(RESOLVE) --generate-hashes --group build --custom-compile-command "make lock" $(LOCK) --output-file requirements-build.lock
	$(RESOLVE) --group audit --custom-compile-command "make lock" $(LOCK) --output-file requirements-audit.lock

bench: $(VENV)/.dev $(PEERS)/.peers ## Measure what a question costs beside agent frameworks and Spring AI; writes tables and charts
	$(PY) -m bench --write

bench-quick: $(VENV)/.dev $(PEERS)/.peers ## The same with fewer services and rounds, in under three minutes; writes nothing
	$(PY) -m bench --quick

bench-guard: $(VENV)/.dev ## Fail when a question costs 4 % more instructions, beside the limit, than bench/baseline.json says
	$(PY) -m bench --guard

lab: $(VENV)/.dev $(PEERS)/.peers ## Do every fault to real processes, in about ten minutes (needs redis-server, Chromium, nginx, tinyproxy)
	$(PY) -m lab

lab-fast: $(VENV)/.dev ## The same with the rows of a second
	$(PY) -m lab --fast

lab-long: $(VENV)/.dev $(PEERS)/.peers ## The same with three quarters of an hour of chaos
	$(PY) -m lab --long

lab-sabotage: $(VENV)/.dev ## Take mechanisms out of a copy of the code, and fail if its rows of the lab do not
	$(PY) -m lab --sabotage

bench-lock: $(UV) ## Write bench/requirements.lock after a change in bench/requirements.txt
	$(RESOLVE) bench/requirements.txt --constraint requirements.lock --custom-compile-command "make bench-lock" \
		$(LOCK) --output-file bench/requirements.lock

clients-lock: $(UV) ## Write the locks of wire_clients/ and real_model/ after a change in a requirements.txt or npm/package.json
	for folder in wire_clients wire_clients/litellm_proxy real_model; do \
		$(RESOLVE) $$folder/requirements.txt --custom-compile-command "make clients-lock" $(LOCK) \
			--output-file $$folder/requirements.lock || exit 1; \
	done
	npm install --prefix wire_clients/npm --package-lock-only --omit-lockfile-registry-resolved $(NPM_QUIET)

site-lock: $(UV) ## Write docs/site/requirements.lock after a change in its requirements.txt
	$(RESOLVE) docs/site/requirements.txt --custom-compile-command "make site-lock" $(LOCK) --output-file docs/site/requirements.lock

env-example: $(VENV)/.dev ## Write .env.example and docs/configuration.md from the settings classes
	$(PY) -m tests.deploy.env_example
	$(PY) -m tests.deploy.configuration_page

alerts: $(VENV)/.dev ## Write the alerts for the Prometheus operator from deploy/grafana/alerts.yaml
	$(PY) -m tests.deploy.prometheus_rule

answers: $(VENV)/.dev ## Fill in anew what the commands of the READMEs and of docs/ answer
	$(PY) -m tests.docs.readme

pictures: $(VENV)/.dev ## Take the pictures of the page and of Swagger UI in docs/ anew (needs chromium)
	$(PY) -m tests.pages.pictures

audit: $(VENV)/.runtime $(AUDIT)/.tools ## Look for known vulnerabilities and licences, and list all parts (SBOM) in dist/ (OFFLINE=1: without vulnerabilities)
	$(PY) -m tests.deploy.audit $(if $(OFFLINE),--offline)

wheel: $(VENV)/.dev ## Build the wheel in dist/
	$(PY) -m pip wheel --disable-pip-version-check --quiet --no-build-isolation --no-deps --wheel-dir dist .

reference: $(VENV)/.dev ## Write docs/reference.md from the docstrings
	$(PY) -m tests.reference

architecture: $(VENV)/.dev ## Draw docs/architecture.svg from the code
	$(PY) -m tests.architecture

site: $(SITE)/.mkdocs ## Build the documentation of the last commit as a site in docs/site/build/html
	@rm -rf $(SITE)/source $(SITE)/html && mkdir $(SITE)/source
	git archive HEAD docs deploy .github .env.example LICENSE app/tools ':(glob)**/*.md' | tar -x -C $(SITE)/source
	NO_MKDOCS_2_WARNING=1 $(SITE)/venv/bin/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml

hooks: $(VENV)/.dev ## Have git format and check the Python files of each commit
	@if [ -e "$(HOOK)" ] && ! cmp -s .githooks/pre-commit "$(HOOK)"; then \
		echo "There is another hook already: $(HOOK)" >&2; exit 1; \
	fi
	@mkdir -p "$$(dirname "$(HOOK)")" && cp .githooks/pre-commit "$(HOOK)" && echo "Installed $(HOOK)"

clean: ## Remove .venv and everything else that can be made again
	rm -rf $(VENV) $(PEERS) $(SPRING) $(CLIENTS) $(PACKAGES) $(AUDIT) $(NEWEST) $(LOWEST) $(SITE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov build dist *.egg-info
	find app toolchat bench lab tests wire_clients -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps hold what was installed: pip runs again only when a lock file is newer.
# --no-deps: a lock names every package, and pip may find a newer release for a requirement with an extra and refuse it.
$(VENV)/.runtime: requirements.lock | $(PY)
	$(call installed,the packages of requirements.lock,--no-deps --require-hashes -r requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(PY)
	$(call installed,the packages of requirements-dev.lock,--no-deps --require-hashes -r requirements-dev.lock)
	@touch $(VENV)/.runtime $@

$(PEERS)/.peers: bench/requirements.lock | $(UV)
	$(PY) -m venv --clear $(PEERS)
	$(UV) pip install --quiet --python $(PEERS)/bin/python $(INDEX) -r bench/requirements.lock
	@touch $@

$(SITE)/.mkdocs: docs/site/requirements.lock | $(UV)
	$(PY) -m venv --clear $(SITE)/venv
	$(UV) pip install --quiet --python $(SITE)/venv/bin/python $(INDEX) -r docs/site/requirements.lock
	@touch $@

$(AUDIT)/.tools: requirements-audit.lock | $(UV)
	$(PY) -m venv --clear $(AUDIT)
	$(UV) pip install --quiet --python $(AUDIT)/bin/python $(INDEX) -r requirements-audit.lock
	@touch $@

$(CLIENTS)/.clients $(PROXY)/.clients $(MODEL)/.clients: %/.venv/.clients: %/requirements.lock | $(UV)
	$(PY) -m venv --clear $*/.venv
	$(UV) pip install --quiet --python $*/.venv/bin/python $(INDEX) -r $<
	@touch $@

# Without their scripts: nothing that comes from the registry runs but what a test calls.
$(PACKAGES)/.packages: wire_clients/npm/package-lock.json
	npm ci --prefix wire_clients/npm $(NPM_QUIET)
	@touch $@

$(UV): | $(PY)
	$(call installed,uv,uv==$(UV_VERSION))

$(PY):
	@for python in $(or $(PYTHON),$(CANDIDATES)); do \
		if "$$python" -c '$(USABLE)' 2>/dev/null; then \
			echo "Making $(VENV) with $$python ..."; exec "$$python" -m venv --clear $(VENV); \
		fi; \
	done; \
	echo "toolchat needs Python 3.11 or newer with venv (Debian, Ubuntu: apt-get install python3-venv)." \
		"Another interpreter: make PYTHON=/path/to/python" >&2; exit 1
