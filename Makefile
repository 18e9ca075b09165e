# Everything runs in .venv, which `make env` builds. An active virtual environment or PYTHONPATH has
# no influence. Bytecode is always written, because the tests start the program hundreds of times.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1
# With more threads in each test process, small matrix products wait for each other.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
# Published data sets that some tests read; by default a folder `data` in a folder beside the clone.
# Without them these tests are skipped.
LEASTNOISE_DATA ?= $(patsubst %/manifest.json,%,$(firstword $(wildcard $(CURDIR)/../*/data/manifest.json)))
export LEASTNOISE_DATA
ifndef STEPS_IN_PARALLEL
.NOTPARALLEL:
endif
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python on the path that is new enough; `make PYTHON=/some/python3 ...` chooses another.
PYTHON ?= $(shell for p in python3 python python3.14 python3.13 python3.12 python3.11; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
# The first version that installs dependency groups.
PIP := pip>=25.1
# One process more than CI has cores: many tests wait for a browser, a server or another process.
WORKERS ?= 3
# Steps that need one core each, the longest first. They run in parallel before the tests, which use
# all cores.
STEPS := types wheel docs lint

.PHONY: help env test steps $(STEPS:%=step-%) demo bench docs experiments messy mutants neighbours lint format types imports wheel oldest pytest clean faults

help:  ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/.stamp-venv: pyproject.toml
	@test -n "$(PYTHON)" || { echo "leastnoise needs Python 3.11 or newer; none was found on the path (try: make PYTHON=/path/to/python3)" >&2; exit 1; }
	@echo "== env: $(PYTHON) -m venv $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "could not make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.stamp-core: $(VENV)/.stamp-venv
	@echo "== env: pip install -e ."
	@$(BIN)/python -m pip install -qq -e .
	@touch $@

# pip would compile 10,000 files one after the other; compileall uses all cores, and leaves out the
# tests of libraries. It fails for their few files that are no Python, such as templates.
$(VENV)/.stamp-dev: $(VENV)/.stamp-venv
	@echo "== env: pip install -e .[all] --group dev"
	@$(BIN)/python -m pip install -qq --no-compile '$(PIP)'
	@$(BIN)/python -m pip install -qq --no-compile -e '.[all]' --group dev
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib src || true
	@git config core.hooksPath >/dev/null 2>&1 || git config core.hooksPath .githooks 2>/dev/null || true
	@touch $(VENV)/.stamp-core $@

env: $(VENV)/.stamp-dev  ## build .venv with everything that tests, docs and benchmarks need; set the commit hook

test: env  ## all checks, then the tests; installs what it needs; ALL=1 also runs the slow tests, as CI does
	@failed=; rm -rf build/steps; mkdir -p build/steps; \
	$(MAKE) -k -j$(WORKERS) STEPS_IN_PARALLEL=1 steps || failed=" $$(cd build/steps && ls -d *.failed)"; \
	site=; test -e build/steps/docs.failed || site=$(CURDIR)/site; \
	echo "== pytest"; LEASTNOISE_BUILT=$$site $(MAKE) pytest || failed="$$failed pytest"; \
	if [ -n "$$failed" ]; then echo "FAILED steps:$$failed" | tr '\n' ' ' >&2; echo >&2; exit 1; fi

steps: $(STEPS:%=step-%)

# The output of a step is shown when the step has ended, so that lines of two steps do not mix.
$(STEPS:%=step-%): step-%:
	@start=$$(date +%s); $(MAKE) STEPS_IN_PARALLEL= $* >build/steps/$*.log 2>&1 || touch build/steps/$*.failed; \
	echo "== $*: $$(( $$(date +%s) - start )) s" | cat - build/steps/$*.log; test ! -e build/steps/$*.failed

lint: env  ## ruff: rules and format
	@$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check .

format: env  ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

types: env  ## mypy, strict on the trusted packages; bench, baselines, contracts, docs and experiments too
	@$(BIN)/mypy --no-error-summary

imports: env  ## the import contracts; the tests check them too
	@$(BIN)/lint-imports --no-logo

.PHONY: golden
golden: env  ## compare promises, a seeded release and payments with their records (contracts/golden.py); some minutes
	@$(BIN)/python -m contracts.golden

docs: env  ## build the documentation into site/, any warning is an error
	@mkdir -p build; $(BIN)/mkdocs build --strict >build/docs.log 2>&1 || { cat build/docs.log; exit 1; }

.PHONY: pictures
pictures: env  ## the picture and the table of docs/architecture.md, from the code
	@$(BIN)/python -m docs.scripts.architecture

wheel: env  ## build and check the source archive and the wheel; install the wheel in a fresh environment and run it
	@rm -rf build/wheel
	@$(BIN)/python -m hatchling build -t sdist -d build/wheel >/dev/null
	@$(BIN)/python -m pip wheel -qq --no-deps -w build/wheel build/wheel/*.tar.gz
	@$(BIN)/python -m twine --no-color check --strict build/wheel/*.tar.gz build/wheel/*.whl >build/twine.log || { cat build/twine.log; exit 1; }
	@$(BIN)/python -m check_wheel_contents build/wheel/*.whl >/dev/null
	@$(PYTHON) -m venv --without-pip build/wheel/env
	@$(BIN)/python -m pip --python build/wheel/env/bin/python install -qq --no-compile build/wheel/*.whl
	@cd build/wheel && env/bin/python -I -c 'import leastnoise, pathlib; p = pathlib.Path(leastnoise.__file__); print("  ", p); assert "site-packages" in p.parts and (p.parent / "py.typed").exists()'
	@cd build/wheel && env/bin/leastnoise --help >/dev/null
	@cd build/wheel && { env/bin/leastnoise demo --out demo >demo.log 2>&1 || { cat demo.log; exit 1; }; }

# Each worker begins with its share of the files in order, so that fixtures of a file are made once.
pytest: env  ## tests and doctests only; ALL=1 also runs the slow tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(if $(ALL),,-m 'not slow')

# Every `name>=x.y` of the dependencies becomes the constraint `name==x.y.*`. Linters are left out,
# since they ask for newer versions; their checks do not depend on versions of dependencies.
oldest: env  ## the tests with the oldest dependencies that pyproject.toml allows
	@mkdir -p build
	@$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print("\n".join(d.replace(">=", "==") + ".*" for d in p["dependencies"] + p["optional-dependencies"]["charts"] + p["optional-dependencies"]["frames"]))' >build/oldest.txt
	@$(PYTHON) -m venv --clear build/oldest
	@build/oldest/bin/python -m pip install -qq '$(PIP)'
	@build/oldest/bin/python -m pip install -qq -c build/oldest.txt -e '.[all]' --group test
	@build/oldest/bin/python -m pytest -q -n $(WORKERS)

# What has to pass before a release. The pages of strategies and of losses may lag until then.
.PHONY: release-check
release-check: env  ## all that a release needs: make test ALL=1, make oldest, and complete pages of strategies and losses
	@$(MAKE) test ALL=1
	@$(MAKE) oldest
	@$(BIN)/python -m contracts.strategies
	@PYTHONPATH=tests:. $(BIN)/python -m privacy.losses --check

# make neighbours PAIRS=10000 SEED=1
PAIRS ?= 10000
SEED ?= 1
neighbours: env  ## pairs of neighbouring inputs over all sources and column types; takes minutes
	@LEASTNOISE_PAIRS=$$(($(PAIRS) / 9)) LEASTNOISE_FIRST=$(SEED)000000 \
	  $(BIN)/python -m pytest -q -s -n 0 tests/trusted/reading/test_neighbours.py -k added_unit

# make messy ROWS=300000
ROWS ?= 300000
messy: env  ## three messy files from a draft to a correct release, and mistakes in their specs; takes minutes
	@ROWS=$(ROWS) $(BIN)/python -m pytest -q tests/cli/test_messy.py

.PHONY: machine
machine:  ## install what tests of servers and browsers need from Debian; as root. Without it these tests are skipped
	@missing=; for program in chromium firefox-esr psql strace npm Rscript; do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	missing=$$(echo "$$missing" | sed 's/psql/postgresql/; s/Rscript/r-base-core r-cran-jsonlite r-cran-ggplot2/'); test -z "$$missing" || { echo "== machine: apt-get install$$missing"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$missing; } >/dev/null; }

.PHONY: browsers
browsers: env  ## the report, the studio and all pages of the documentation in real browsers; `make test ALL=1` opens fewer pages
	@LEASTNOISE_SITE=whole $(BIN)/python -m pytest -q -n 0 -p no:cacheprovider tests/browser

.PHONY: images
images: env  ## make the pictures of the documentation again; needs chromium
	@$(BIN)/python docs/images/make.py
	@$(BIN)/python docs/images/gallery.py
	@$(BIN)/python docs/images/budget.py

# make charts NAME=bars
.PHONY: charts
charts: env  ## the pictures of one chart's tests, as SVG files in build/charts: NAME=...
	@test -n "$(NAME)" || { echo "say which: make charts NAME=bars" >&2; exit 2; }
	@PYTHONPATH=tests:. $(BIN)/python -m charts.draw "$(NAME)"

demo: $(VENV)/.stamp-core  ## a full release of a generated survey; needs no data
	@$(BIN)/leastnoise demo

bench: env  ## every measurement of bench/, one after the other, on one thread
	@for file in bench/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

.PHONY: peers
peers: env  ## the task of docs/coming-from.md with other libraries, in build/peers (1 GB); Tumult needs Java
	@$(BIN)/python bench/peers/run.py

# make mutants MUTANTS=400 SEED=1; continues where it was stopped, starts anew after `rm -r build/mutants`
mutants: env  ## mutation testing of the trusted packages; writes docs/results/mutation.md; about two hours
	@PYTHONPATH=tests:. $(BIN)/python -m mutants --mutants $(or $(MUTANTS),400) --seed $(or $(SEED),1)

.PHONY: differential
# make differential STATEMENTS=3000 SEED=1
differential: env  ## random SQL statements through DuckDB and through leastnoise; takes minutes
	@PYTHONPATH=tests LEASTNOISE_CACHE=off $(BIN)/python -m differential.compare --statements $(or $(STATEMENTS),3000) --seed $(or $(SEED),1)

.PHONY: fuzz
# make fuzz FUZZ=5000; tests with slow cases run fewer, in the same proportion as in make test ALL=1
fuzz: env  ## random specs, CSV files, plans, manifests, measurements and ledgers; new ones every time; about 20 minutes
	@LEASTNOISE_FUZZ=$(or $(FUZZ),600) $(BIN)/python -m pytest -q -n 0 -p no:cacheprovider tests/fuzz

# make experiments NAME=datacubes DATA=DIR
experiments: env  ## a paper's figures and tables: NAME=..., DATA=folder with the real data
	@test -n "$(NAME)" || { echo "say which: make experiments NAME=... DATA=folder" >&2; exit 2; }
	@$(BIN)/leastnoise experiments "$(NAME)" --data "$(DATA)"

.PHONY: losses
losses: env  ## the table of exact privacy losses in docs/results, some minutes
	@PYTHONPATH=tests:. $(BIN)/python -m privacy.losses

faults: env  ## every fault in every writing call of a release and in every byte of a ledger; about an hour; `rm -r build/faults` starts anew
	@$(BIN)/python tests/faults/run.py --out docs/results/faults.md

clean:  ## remove what the targets above made
	rm -rf $(VENV) build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
