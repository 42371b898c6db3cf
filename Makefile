# One set of verbs for people and CI. Everything is installed into .venv under constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
# Nothing of the user's own packages may leak into the environment.
export PYTHONNOUSERSITE := 1

KILLS ?= 150
FAULTS ?= 3

.PHONY: train bench results docs cards gif torture test test-slow check format lint types contracts install clean

install: .venv/.installed

# torch comes first and pinned: any looser request would fetch gigabytes of CUDA libraries.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[all,dev]'
	touch $@

train: install
	$(BIN)/amago train dark-key-to-door

# Minutes, on an otherwise idle machine; shows what has changed since the last comparable run.
bench: install
	$(BIN)/amago bench all --record

# Pages, tables and pictures of results/ from its data.
results: install
	$(BIN)/python -m amago.reproduce results

# The site, in build/site; a broken link ends the build.
docs: install
	$(BIN)/python docs/site/build.py

# What README and docs/zoo.md say of the trained agents, from their files.
cards: install
	$(BIN)/python docs/site/cards.py

# The film at the top of the README.
gif: install
	$(BIN)/amago eval zoo:dark-key-to-door --episodes 1 --seed 5 --video-ends \
	    --video docs/images/dark-key-to-door.gif

# About 20 minutes: kills and damages runs at random; writes the table of docs/reliability.md.
torture: install
	cd tests && ../$(BIN)/python -m torture --kills $(KILLS) --faults $(FAULTS) \
	    --write ../docs/reliability.md

test: check

# Each worker has a half of the files in order, so that what tests of a file share is made once.
PYTEST := $(BIN)/pytest -n 2 --dist worksteal

check: lint types contracts chromium
	$(PYTEST)

test-slow: install chromium
	$(PYTEST) -m slow

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

contracts: install
	$(BIN)/lint-imports

# The playground is tested in a real browser. Whoever cannot install one skips those tests.
chromium:
	@command -v chromium >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get update -qq && apt-get install -qqy --no-install-recommends chromium >/dev/null; \
	else echo "no chromium: tests in the browser are skipped; install it as root (apt-get)"; fi

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache *.egg-info
