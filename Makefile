# make run and make test set up everything they need: Python 3.11 and make are enough to begin with.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
DEBIAN_PACKAGES := chromium docker-compose prometheus

.PHONY: run test lint types check packages lock bench e2e-vllm clean

run: $(VENV)/ready ## the service on 127.0.0.1:8400 with its emulated fleet
	$(BIN)/draftgauge demo

test: packages $(VENV)/ready ## every test that needs no real engine
	$(BIN)/pytest -n auto --dist loadgroup

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/ready
	$(BIN)/pyright

check: lint types test

packages: ## Debian packages that tests and benchmarks start
	@PACKAGES="$(DEBIAN_PACKAGES)" sh tests/packages.sh

bench: packages $(VENV)/ready ## ratios against peers, printed
	$(BIN)/python -m benchmarks

e2e-vllm: $(VENV)/ready ## against a real vLLM on the CPU (2.5 GB, about 8 minutes)
	sh tests/e2e/run-vllm.sh

lock: ## renew the lock files from pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --generate-hashes pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --generate-hashes pyproject.toml --group dev -o requirements-dev.lock

$(VENV)/ready: requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check uv
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements-dev.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) draftgauge-data
