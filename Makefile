# Two commands set up a fresh machine: `make demo` and `make test`. Needs Python 3.11 or later, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# to the version, for Syndic and for what builds it: the same commit passes next month
LOCK := $(CURDIR)/constraints.txt
# modules are compiled when they are first imported, and most never are
PIP = PIP_CONSTRAINT=$(LOCK) PIP_BUILD_CONSTRAINT=$(LOCK) $(BIN)/python -m pip install --quiet --no-compile
# two workers on two cores: threads of linear algebra on small matrices only wait for each other
ONE_THREAD = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# empty, whatever it was: tests start many processes, and none should compile the package again
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup lock demo imports test test-bare test-slow test-bench test-deploy test-lowest fuzz coverage mutation bench peers pages docs publish dist lint format clean

# The core alone: what `make demo` and a plain installation need.
$(VENV)/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

# Everything the tests, the checks and the docs need.
$(VENV)/dev: pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]' --editable ./lab
	touch $(VENV)/core $@

setup: $(VENV)/dev

# The newest versions that pyproject.toml allows, into the lock; then run the tests, and look at the difference.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --editable '.[dev]' --editable './lab[bench]' hatchling editables
	head -1 constraints.txt > .venv-lock/constraints.txt
	.venv-lock/bin/python -m pip freeze --exclude-editable >> .venv-lock/constraints.txt
	cp .venv-lock/constraints.txt constraints.txt

demo: $(VENV)/core
	$(BIN)/syndic demo

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Import all that tests import: in a new environment every worker would compile it at the same time.
$(VENV)/compiled: $(VENV)/dev
	$(BIN)/pytest --collect-only -qq > /dev/null
	touch $@

# checks and pages beside each other, then the tests; conftest.py orders the files. A worker more than two cores: some wait
test: $(VENV)/dev
	$(MAKE) --jobs 2 lint docs $(VENV)/compiled
	$(ONE_THREAD) $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not deploy and not bench and not slow"

# Tests that look at which libraries are there: before `.ci/run` installs them, none may fail for want of one.
test-bare: $(VENV)/dev
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist loadfile -m "not slow" tests/fuzz/test_liars.py tests/fuzz/test_steps.py \
		tests/contract/test_pushdown.py tests/unit/methods/test_vertigan.py tests/unit/model/test_gan.py \
		lab/tests/audit/test_rehearsal.py lab/tests/bench/vertical

# More of what `make test` does once: the other audits, attacks with many runs, runs in processes of every kind. Some minutes.
test-slow: $(VENV)/dev
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist load -m slow

# Benchmarks that check their own figures, published ones among them: some minutes.
test-bench: $(VENV)/dev
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist loadfile lab/tests tests/unit -m bench

imports: $(VENV)/core
	$(BIN)/python tests/import_everything.py

# The lowest versions that pyproject.toml allows, and the unit tests of the core.
test-lowest:
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/lowest_versions.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --no-compile --editable . -r .venv-lowest/lowest.txt pytest hypothesis
	.venv-lowest/bin/python -m pip install --quiet --no-deps --editable ./lab
	$(ONE_THREAD) .venv-lowest/bin/pytest -p no:cacheprovider -m "not slow" tests/unit/data tests/unit/privacy tests/unit/noise \
		tests/unit/kernel tests/unit/study

# Apart from the other tests for its cost: a server and parties as processes of their own, for some minutes. Two
# federations side by side, since most of the time is waiting; tests of a file share what they have started.
test-deploy: $(VENV)/dev
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist loadfile tests/deploy -m deploy

# Spoiled input, lies and kills, many cases; `make test` runs the same tests with few. Random lies are counted in
# .liars.json, for an hour or more; an interrupted count goes on.
SYNDIC_FUZZ ?= 2000
SYNDIC_LIES ?= 10000
fuzz: $(VENV)/dev
	SYNDIC_FUZZ=$(SYNDIC_FUZZ) SYNDIC_LIES=100 $(BIN)/pytest -n 2 tests/fuzz -m fuzz
	$(ONE_THREAD) PYTHONPATH=tests $(BIN)/python -m liars run --deviations $(SYNDIC_LIES)
	SYNDIC_FUZZ=$(SYNDIC_FUZZ) $(BIN)/pytest tests/e2e/test_ledger_kill.py
	SYNDIC_FAULTS=many $(BIN)/pytest -n 2 tests/contract

# Branches of the packages that protect people; below 95 % of any it fails.
coverage: $(VENV)/dev
	rm -rf .coverage-data && mkdir .coverage-data
	CI=1 $(BIN)/coverage run --rcfile=tests/mutation/coverage.toml -m pytest -p no:cacheprovider \
		tests/unit/privacy tests/unit/noise tests/unit/kernel tests/unit/mpc tests/unit/study \
		tests/unit/methods/test_align.py tests/unit/runtime/test_faults.py \
		tests/property/test_privacy.py tests/property/test_codec.py
	$(BIN)/coverage combine -q --rcfile=tests/mutation/coverage.toml
	$(BIN)/coverage json -q --rcfile=tests/mutation/coverage.toml -o .coverage-data/branches.json
	PYTHONPATH=tests $(BIN)/python -m mutation.branches .coverage-data/branches.json

# The code that protects people is changed, one place at a time, in a copy: do its tests notice? Half an hour or more on two
# cores; it goes on where it was interrupted.
mutation: $(VENV)/dev
	PYTHONPATH=tests $(BIN)/python -m mutation run --jobs 2

# Parts of pages that repeat the code: messages, roles, costs, limits, the help of every verb. A test says if they are stale.
pages: $(VENV)/dev
	PYTHONPATH=tests $(BIN)/python -m pages

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file lab/mkdocs.yml

# Both sites, the lab's under /lab, as one commit on the branch gh-pages of the remote REMOTE.
REMOTE ?= origin
publish: docs
	$(BIN)/ghp-import --no-jekyll --push --remote $(REMOTE) --message "Documentation of $$(git describe --always --dirty)" site

# Slower than the tests: measurements beside a baseline in the same run.
bench: $(VENV)/dev
	$(PIP) --editable './lab[bench]'
	for name in guard noise secure sources; do $(BIN)/syndic bench $$name || exit 1; done

# Other libraries, to compare with: their pins clash with ours, so each has an environment of its own. dpmm needs
# Python 3.11; one that cannot be installed is left out.
PEERS ?= .peers
peers:
	make_peer() { \
		name=$$1; shift; $(PYTHON) -m venv $(PEERS)/$$name; \
		$(PEERS)/$$name/bin/pip install --quiet "$$@" || rm -r $(PEERS)/$$name; }; \
	make_peer diffprivlib diffprivlib==0.6.6 scikit-learn==1.7.2; \
	make_peer mbi mbi==2.0.0; \
	make_peer dpmm dpmm==0.1.9; \
	make_peer flower "flwr[simulation]==1.41.0"

# Wheels and sdists of both distributions in dist/, wheels built from the sdists, then installed into a clean environment
# whose demo runs outside the checkout. Beside them a CycloneDX SBOM of what a site or coordinator installs, one of the
# lab, and checksums. cyclonedx-py validates what it writes. The steps of the container image are run in a folder.
DIST := $(CURDIR)/.venv-dist
CLEAN = PIP_CONSTRAINT=$(LOCK) $(DIST)/clean/bin/python -m pip install --quiet --find-links dist
SBOM = $(DIST)/tools/bin/cyclonedx-py environment --output-reproducible --validate $(DIST)/clean/bin/python
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist:
	rm -rf dist $(DIST)
	$(PYTHON) -m venv $(DIST)/tools && $(PYTHON) -m venv $(DIST)/clean
	PIP_CONSTRAINT=$(LOCK) $(DIST)/tools/bin/python -m pip install --quiet hatchling cyclonedx-bom==7.5.0
	for each in . lab; do (cd $$each && $(DIST)/tools/bin/hatchling build --target sdist --directory $(CURDIR)/dist) || exit 1; done
	PATH=$(DIST)/tools/bin:$$PATH $(DIST)/tools/bin/python -m pip wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir dist dist/*.tar.gz
	$(CLEAN) dist/syndic-*.whl
	cd $(DIST) && clean/bin/syndic demo --out demo
	$(CLEAN) "$$(echo dist/syndic-*.whl)[flare,console]"
	$(SBOM) --pyproject pyproject.toml --output-file dist/syndic.cdx.json
	$(CLEAN) dist/syndic_lab-*.whl
	cd $(DIST) && clean/bin/syndic audit --help > audit.txt && clean/bin/syndic bench --help > bench.txt
	$(SBOM) --pyproject lab/pyproject.toml --output-file dist/syndic-lab.cdx.json
	$(PYTHON) tests/image_steps.py $(DIST)/image
	cd dist && sha256sum -- *.whl *.tar.gz *.cdx.json > SHA256SUMS && cat SHA256SUMS

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-dist dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis syndic-demo
