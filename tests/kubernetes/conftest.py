"""Control planes for tests: everything real but the nodes. Built once a machine by ``make controlplane``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.history import postgres
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.shared_plane import SharedPlane
from tests.kubernetes.stage import Stage
from tools.controlplane import build
from tools.controlplane.plane import ControlPlane, Options

StartPlane = Callable[..., ControlPlane]

SHARED = pytest.StashKey[SharedPlane]()

RERUNS = 2
"""Tries that a test against real processes has after its first: clocks and other work on the machine are no defects.

Each is listed in the summary with what went wrong, so that its cause can be found.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder that start a control plane further tries; no other test has any."""
    here = Path(__file__).parent
    for item in items:  # thousands, and each worker looks at all of them
        if "programs" in getattr(item, "fixturenames", ()) and here in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=2))


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the address of an empty history, of either kind of store."""
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    server = postgres.started()
    yield server.database()
    server.close()


@pytest.fixture(scope="session")
def programs() -> Path:
    """Give the folder of the control plane's programs; without them tests are skipped, but never where required."""
    if not build.is_built() and os.environ.get("TENURE_CONTROL_PLANE") != "required":
        pytest.skip("no Kubernetes control plane here: run 'make controlplane' (needs Go 1.26) to have these tests run")
    return build.build()


@pytest.fixture(scope="session")
def shared_plane(
    programs: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[SharedPlane]:
    """Give the control plane that modules have one after the other."""
    assert programs.exists()
    shared = pytestconfig.stash[SHARED] = SharedPlane(lambda: tmp_path_factory.mktemp("plane"))
    yield shared
    shared.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """End the shared control plane once none of these tests comes next: it costs the processor something idle too.

    A test that failed may run once more, and is over only then.
    """
    done = yield
    if SHARED in item.config.stash and (nextitem is None or Path(__file__).parent not in nextitem.path.parents):
        item.config.stash[SHARED].close()
    return done


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, shared_plane: SharedPlane) -> Iterator[ControlPlane]:
    """Give a control plane on which Tenure is installed and nothing else, for a module.

    It has the options that the module's ``PLANE`` says, the module's ``INSTALLATION`` instead of the ordinary one, and
    the definitions that its ``kinds`` gives.
    """
    kinds: Callable[[], Iterable[dict[str, Any]]] = getattr(request.module, "kinds", tuple)
    defined = list(kinds())
    asked = getattr(request.module, "PLANE", Options()), getattr(request.module, "INSTALLATION", None)
    started = shared_plane.take(*asked)
    started.define(*defined)
    yield started
    shared_plane.give_back()


@pytest.fixture(autouse=True)
def _running(request: pytest.FixtureRequest) -> None:
    """See that the module's control plane runs before each test; how a program of it has ended is said in a warning."""
    if "plane" in request.fixturenames and (said := request.getfixturevalue("plane").revive()):
        warnings.warn(said, stacklevel=1)


@pytest.fixture(scope="module")
def token(plane: ControlPlane) -> str:
    """Give the token of the service account that was installed."""
    return plane.token_of("tenure", "tenure-system")


@pytest.fixture
def stage(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[Stage]:
    """Give a stage on the module's control plane; what is there in the end goes, the module's ``CLEARED`` as well."""
    made = Stage(plane, also=getattr(request.module, "CLEARED", ()))
    yield made
    made.clear()


@pytest.fixture
def start_plane(programs: Path, tmp_path: Path) -> Iterator[StartPlane]:
    """Give a function that starts a control plane of the test's own; it takes the fields of `Options`."""
    assert programs.exists()
    with ExitStack() as started:
        count = iter(range(1000))

        def start(**options: object) -> ControlPlane:
            plane = ControlPlane(tmp_path / f"control-plane-{next(count)}", Options(**options))
            return started.enter_context(plane)

        yield start


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    """Give a proxy to the module's control plane, in which nothing goes wrong yet."""
    with FaultProxy(plane.server, plane.authority) as made:
        yield made
