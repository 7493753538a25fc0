# Every task has one name here; `make` alone lists them.

PYTHON ?= python3
LESSONS ?= notebooks
PORT ?= 8000
export SITE_URL
BIN := .venv/bin/python
VNU := vnu-jar@26.9.27
CHECK := OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN) -m pytest -p nbval_numbers --nbval --nbval-current-env \
	-n auto --dist loadfile --no-loadscope-reorder --no-header -q
define NEW_ENOUGH
-c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": $(1)")'
endef

.PHONY: help run render test check browser audit preview lab lesson update export sweep ablate train spread bench mutants clean

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-20s %s\n", $$1, $$2}' Makefile

run: .venv/ready ## execute every lesson on a copy, render the pages into _site/
	@$(BIN) tools/run.py

render: .venv/ready ## render the stored lessons into _site/ without executing them: make render SITE_URL=https://...
	@$(BIN) tools/render.py

test: .venv/ready .venv/$(VNU) ## lint, unit tests, every lesson executed again and its numbers checked
	$(BIN) -m ruff format --check .
	$(BIN) -m ruff check .
	$(CHECK) notebooks tests

check: .venv/ready ## the numbers of one lesson alone: make check LESSONS=notebooks/01_one_digit.ipynb
	@$(CHECK) "$(LESSONS)"

browser: .venv/ready ## install Chromium, in which make test opens the pages
	@$(BIN) tools/chromium.py

audit: .venv/ready ## Lighthouse's four scores of every page, none under 95
	@$(BIN) tools/audit.py

preview: .venv/ready ## author: serve the stored lessons, rendered again when one or its looks change: make preview PORT=8000
	@$(BIN) tools/preview.py $(PORT)

lab: .venv/ready ## open the lessons in JupyterLab
	@$(BIN) -m jupyterlab notebooks

lesson: .venv/ready ## author: a new lesson to write over: make lesson NAME=10_my_question
	@$(BIN) tools/new_lesson.py "$(NAME)"

update: .venv/ready ## author: refresh the stored outputs, and what the README takes from them: make update LESSON=02, or of all
	@$(BIN) tools/update.py "$(LESSON)"

export: .venv/ready ## author: write the modules that lessons hand to each other
	@$(BIN) tools/export.py

sweep: .venv/ready ## author: the many training runs whose results lessons quote, into data/results/
	@PYTHONPATH=notebooks $(BIN) tools/sweep.py

ablate: .venv/ready ## author: the runs behind lesson 04 alone, a part of make sweep
	@PYTHONPATH=notebooks $(BIN) tools/sweep.py ablation

train: .venv/ready ## author: train what lessons load, into data/*.safetensors: make train WHAT=reader
	@PYTHONPATH=.:notebooks $(BIN) tools/train.py $(WHAT) $(if $(DEVICE),--device $(DEVICE)) $(if $(OVERWRITE),--overwrite)

spread: .venv/ready ## author: how far numbers move between conditions, for the tolerances: make spread LESSON=02, or all
	@PYTHONPATH=tests $(BIN) tools/spread.py "$(LESSON)"

bench: .venv/ready ## author: the article's reader against ours, measured on one thread, into data/results/ and the README
	@OMP_NUM_THREADS=1 PYTHONPATH=.:notebooks $(BIN) tools/bench.py

mutants: .venv/ready ## author: plant faults in copies of the project, each of which the tests must find: make mutants FAULT=mask
	@$(BIN) tools/mutants.py $(FAULT)

clean: ## remove what run and test have built; .venv stays
	rm -rf _build _site

.venv/ready: requirements.txt constraints.txt $(BIN)
	@$(BIN) $(call NEW_ENOUGH,remove .venv and make PYTHON=python3.11 ...)
	$(BIN) -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $@

# Not there, or it leads to a Python that the system no longer has.
$(BIN):
	@$(PYTHON) $(call NEW_ENOUGH,make PYTHON=python3.11 ...)
	$(PYTHON) -m venv --clear .venv

# The HTML checker of the W3C, which npm has. Without it, its test is skipped and says so.
.venv/$(VNU): | .venv/ready
	@.venv/bin/npm install --silent --no-fund --no-audit --fetch-retries=1 --prefix .venv $(VNU) \
		&& touch $@ || echo "$(VNU) could not be installed: its test will be skipped"
