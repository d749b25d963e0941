# Everything that is needed is installed into .venv; the only thing assumed is Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Three workers a processor, at most six: tests on a control plane mostly wait, and one worker of four computes meanwhile.
# Eight take longer on two processors: each collects all tests and keeps a control plane.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 2 ? 4 : 6 )))

# Format, lint, types and import layers.
CHECKS := $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && \
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks && $(BIN)/lint-imports

# A test that takes ten minutes hangs: it is ended with the place where it stood, so that it does not take the others along.
LONGEST ?= 600

# The tests of the matrix: what asks most of Kubernetes, and what asks most of Python.
EARLIER_TESTS := $(addprefix tests/kubernetes/test_,crds.py install.py rights.py scheduler.py plugin.py observe.py)
PYTHON_TESTS := tests/model tests/engine tests/fairness tests/cases tests/ledger tests/nominators tests/docs/test_import_circles.py

.PHONY: install demo demo-kubernetes docs tutorial test test-release test-matrix check bench browser controlplane helm kueue \
  deploy image krew crun postgresql prometheus accasim clean

install: $(STAMP)

$(STAMP): pyproject.toml requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tenure needs Python 3.11 or later; say which one with: make PYTHON=/path/to/python3.11 install" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement requirements.txt --editable '.[dev]'
	@touch $@

# What Tenure is for, in a minute: a plan and its reasons, a quota what-if, a move, evictions that pay.
demo: install
	@$(BIN)/python examples/demo.py

# Tenure on a real control plane on this machine, live: a minimum runtime, a requeue, room made by a move.
demo-kubernetes: install
	@$(BIN)/python tools/controlplane/build.py >/dev/null
	@$(BIN)/python examples/demo_kubernetes.py

# The documentation as a site, in build/site; it needs no network, and every link is checked.
docs: install
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "written: build/site/index.html; its search needs a server, such as: python -m http.server -d build/site"

# The first tutorial, word by word in a clean checkout, with the time that it takes.
tutorial:
	$(PYTHON) tools/follow.py docs/tutorials/ten-minutes.md

# Hundreds of interpreters start in the tests: where nothing compiled is kept, each compiles again all that it imports.
# What is checked is checked beside the first tests, which mostly wait. Tests are collected once before: else each worker
# compiles all of them in a new clone.
test: export PYTHONDONTWRITEBYTECODE :=
test: install browser controlplane helm postgresql prometheus
	@{ $(CHECKS); } & checked=$$!; $(BIN)/pytest --collect-only -qq >/dev/null; \
	$(BIN)/pytest --numprocesses $(WORKERS) --instafail --timeout $(LONGEST) --durations 20 -rfEs; \
	tested=$$?; wait $$checked || { echo "format, lint, types or import layers: see the beginning" >&2; exit 1; }; exit $$tested

check: install
	$(CHECKS)

# Debian's Chromium, for the tests that look at pages: without windows, which take most of what it asks of the processor,
# or else as a whole. Where neither can be installed they are skipped, visibly.
browser:
	@command -v chromium-headless-shell >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null || \
	  apt-get install -y -qq chromium >/dev/null; }; } || command -v chromium >/dev/null || \
	  echo "no chromium here, and none could be installed: the browser tests will be skipped"

# Debian's PostgreSQL server, for the tests of the history; they start one of their own. Where it cannot be installed they
# are skipped, visibly.
postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } || \
	  echo "no PostgreSQL server here, and none could be installed: its tests will be skipped"

# Debian's Prometheus with promtool, for the tests of the dashboard and the rules.
prometheus:
	@command -v promtool >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null; } || \
	  echo "no Prometheus here, and none could be installed: its tests will be skipped"

# A real Kubernetes control plane from Go modules, once a machine (eight minutes on two cores), and the definitions of
# frameworks' kinds. Where there is no Go, the tests that need them are skipped, visibly.
controlplane: install
	@$(BIN)/python tools/controlplane/build.py --if-go --frameworks

# Helm, for the tests of the chart; a minute on two cores.
helm: install
	@$(BIN)/python tools/controlplane/build.py --if-go --helm

# Kueue's controllers, for the test of both together before a release; five minutes on two cores.
kueue: install
	@$(BIN)/python tools/controlplane/build.py --if-go --kueue

# Writes the Helm chart and the kustomize base anew, of what `tenure install` is made of.
deploy: install
	$(BIN)/python -m tools.deploy

# The image as an OCI layout under dist/image, and what krew installs the plugin from. They need Debian and root.
image: install
	$(BIN)/python -m tools.image build dist/image

krew: install
	$(BIN)/python -m tools.deploy.krew dist/krew --url $(or $(URL),https://example.org/v0.1.0/kubectl-tenure.tar.gz)

# Debian's crun, which runs the image as a container; without it that is skipped, visibly.
crun:
	@command -v crun >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends crun >/dev/null; } || \
	  echo "no crun here, and none could be installed: the image will not be run"

# What is tried before a release: the image, the chart on a real control plane, the upgrade from the version before, the
# wheel on a clean machine, krew, Kueue beside Tenure, the tutorial with a cluster.
test-release: install controlplane helm kueue crun
	$(BIN)/python tools/controlplane/build.py --if-go --krew
	TENURE_RELEASE=yes $(BIN)/pytest tests/release -rsR

# The tests of what meets Kubernetes on one two minors back, and those of the rest on each Python that is to be had.
test-matrix: install
	$(BIN)/python tools/controlplane/build.py --if-go --earlier
	TENURE_KUBERNETES=earlier $(BIN)/pytest -rsR $(EARLIER_TESTS)
	$(BIN)/python tools/pythons.py $(PYTHON_TESTS)

# AccaSim, a simulator in Python that B5 runs beside Tenure; it needs an environment of its own, for it is old.
accasim: install
	@test -x .accasim/bin/python || $(BIN)/uv venv --quiet .accasim
	@$(BIN)/uv pip install --quiet --python .accasim/bin/python accasim==1.1.3 setuptools

# All benchmarks, one after the other: more than an hour on two cores.
bench: install accasim
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .accasim .mypy_cache .ruff_cache .pytest_cache .hypothesis
