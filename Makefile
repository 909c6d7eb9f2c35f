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
RESOLVE = $(UV) pip compile --quiet --universal --python-version 3.11 --custom-compile-command "make lock" --no-annotate $(INDEX)
COMPILE = $(RESOLVE) --generate-hashes pyproject.toml
PEERS := benchmarks/.venv
SPRING := benchmarks/services/spring/target
AUDIT := .venv-audit
SITE := docs/site/build

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
CLIENTS := tests/clients/.venv
MODEL := benchmarks/real_model/.venv
PROXY := tests/clients/litellm_proxy/.venv
PACKAGES := tests/clients/npm/node_modules

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run demo test test-fast test-pages test-package test-clients lint lock docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.runtime ## Serve on http://127.0.0.1:8083 (.env and the environment change that)
	@$(PY) -m app

demo: $(VENV)/.runtime ## Serve with invented weather and translations: every tool works without a key
	@$(PY) -m app demo

test: $(VENV)/.dev ## Lint, check types, run all tests but those of pages and package (COVERAGE=1: with coverage)
	$(check_style)
	@$(PY) -m mypy >$(TYPES_LOG) 2>&1 & types=$$!; \
		$(SUITE) -m "not page and not package" $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0); code=$$?; \
		wait $$types || code=1; cat $(TYPES_LOG); exit $$code
ifdef COVERAGE
	@table=$$($(PY) -m coverage report) || { echo "$$table"; exit 1; }; echo "$$table" | grep ^TOTAL
endif

test-fast: $(VENV)/.dev ## Run the tests that take less than a second and start no process
	$(SUITE) -m "not slow"

test-pages: $(VENV)/.dev ## Test the pages in a browser
	$(SUITE) -m page

test-package: $(VENV)/.dev ## Test the wheel and the image's contents; needs a package index
	$(SUITE) -m package

test-clients: $(VENV)/.dev $(CLIENTS)/.clients $(PROXY)/.clients $(PACKAGES)/.packages ## Test the service with real SDKs and agents; needs npm and a package index
	$(CLIENTS)/bin/python -m pytest --quiet -c tests/clients/pytest.ini --rootdir . tests/clients

lint: $(VENV)/.dev ## Run ruff and mypy
	$(check_style)
	$(PY) -m mypy

lock: $(UV) ## Update the lock files (LOCK=--upgrade: newest versions)
	$(COMPILE) $(LOCK) --extra service --extra dashscope --extra redis --extra jwt --extra otel --output-file requirements.lock
	$(COMPILE) $(LOCK) --extra dev --constraint requirements.lock --output-file requirements-dev.lock \
		$$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements.lock)
	$(RESOLVE) --generate-hashes --group build $(LOCK) --output-file requirements-build.lock
	$(RESOLVE) --group audit $(LOCK) --output-file requirements-audit.lock
	for folder in benchmarks tests/clients benchmarks/real_model docs/site; do \
		$(RESOLVE) $$folder/requirements.txt $(LOCK) --output-file $$folder/requirements.lock || exit 1; \
	done
	npm install --prefix tests/clients/npm --package-lock-only --omit-lockfile-registry-resolved $(NPM_QUIET)

docs: $(VENV)/.dev ## Regenerate .env.example and generated pages
	$(PY) -m scripts.env_example
	$(PY) -m scripts.configuration_page
	$(PY) -m scripts.prometheus_rule
	$(PY) -m scripts.reference
	$(PY) -m scripts.readme

clean: ## Remove .venv and everything generated
	rm -rf $(VENV) $(PEERS) $(SPRING) $(CLIENTS) $(PACKAGES) $(AUDIT) $(SITE) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov build dist *.egg-info
	find app toolchat benchmarks examples tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments of their own, made by their stamp: `make benchmarks/.venv/.peers`.
# The stamps hold what was installed: pip runs again only when a lock file is newer.
# --no-deps: a lock names every package, and pip may find a newer release for a requirement with an extra and refuse it.
$(VENV)/.runtime: requirements.lock | $(PY)
	$(call installed,the packages of requirements.lock,--no-deps --require-hashes -r requirements.lock)
	@touch $@

# requirements-dev.lock holds only what requirements.lock does not.
$(VENV)/.dev: requirements.lock requirements-dev.lock | $(PY)
	$(call installed,the packages of both lock files,--no-deps --require-hashes -r requirements.lock -r requirements-dev.lock)
	@touch $(VENV)/.runtime $@

$(PEERS)/.peers: benchmarks/requirements.lock | $(UV)
	$(PY) -m venv --clear $(PEERS)
	$(UV) pip install --quiet --python $(PEERS)/bin/python $(INDEX) -r benchmarks/requirements.lock
	@touch $@

$(SITE)/.mkdocs: docs/site/requirements.lock | $(UV)
	$(PY) -m venv --clear $(SITE)/venv
	$(UV) pip install --quiet --python $(SITE)/venv/bin/python $(INDEX) -r docs/site/requirements.lock
	@touch $@

$(AUDIT)/.tools: requirements-audit.lock | $(UV)
	$(PY) -m venv --clear $(AUDIT)
	$(UV) pip install --quiet --python $(AUDIT)/bin/python $(INDEX) -r requirements-audit.lock
	@touch $@

# LiteLLM's proxy in its newest version: its lock would be longer than that of all clients.
$(PROXY)/.clients: tests/clients/litellm_proxy/requirements.txt | $(UV)
	$(PY) -m venv --clear $(PROXY)
	$(UV) pip install --quiet --python $(PROXY)/bin/python $(INDEX) -r $<
	@touch $@

$(CLIENTS)/.clients $(MODEL)/.clients: %/.venv/.clients: %/requirements.lock | $(UV)
	$(PY) -m venv --clear $*/.venv
	$(UV) pip install --quiet --python $*/.venv/bin/python $(INDEX) -r $<
	@touch $@

# Without their scripts: nothing that comes from the registry runs but what a test calls.
$(PACKAGES)/.packages: tests/clients/npm/package-lock.json
	npm ci --prefix tests/clients/npm $(NPM_QUIET)
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
