"""Fragmentation against the definition of Weng et al. (USENIX ATC 2023), written down word for word."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.room.score import GROWTH_STEP
from tenure.engine.state.session import Session
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MILLI
from tenure.model.workload import GpuShare, TaskSpec


@dataclass(frozen=True)
class Ask:
    """CPUs in millicores, and ``milli`` of each of ``gpus`` devices."""

    cpu: int
    gpus: int
    milli: int = MILLI

    def spec(self) -> TaskSpec:
        """Give the same as the engine knows it."""
        whole = ((GPU, self.gpus),) if self.gpus and self.milli == MILLI else ()
        share = GpuShare(milli=self.milli, devices=self.gpus) if self.gpus and not whole else None
        return TaskSpec(requests=((CPU, self.cpu), *whole), gpu_share=share)


@dataclass(frozen=True)
class State:
    """What one node has free: millicores, and milli-GPU of each device."""

    cpu: int
    devices: tuple[int, ...]


def fragment(node: State, ask: Ask) -> int:
    """Free milli-GPU of a node that one task cannot use: all if it does not fit, else that on devices too full."""
    if ask.gpus == 0 or node.cpu < ask.cpu or sum(have >= ask.milli for have in node.devices) < ask.gpus:
        return sum(node.devices)
    return sum(have for have in node.devices if have < ask.milli)


def expected(node: State, mix: list[tuple[Ask, int]]) -> float:
    """Expectation of `fragment` over the mix."""
    return sum(fragment(node, ask) * count for ask, count in mix) / sum(count for _, count in mix)


def placements(node: State, ask: Ask) -> list[State]:
    """All states after one task was placed: a part of one device on any that has room, else the fullest ones."""
    fits = sorted((have, i) for i, have in enumerate(node.devices) if ask.gpus and have >= ask.milli)
    if node.cpu < ask.cpu or len(fits) < ask.gpus:
        return []
    choices = [[i] for _, i in fits] if ask.gpus == 1 else [[i for _, i in fits[: ask.gpus]]]
    return [
        State(node.cpu - ask.cpu, tuple(have - ask.milli * (i in taken) for i, have in enumerate(node.devices)))
        for taken in choices
    ]


def least_growth(node: State, ask: Ask, mix: list[tuple[Ask, int]]) -> float | None:
    """Growth of the expected fragmentation where it is least; None where the task does not fit."""
    after = placements(node, ask)
    return min(expected(s, mix) for s in after) - expected(node, mix) if after else None


sizes = st.sampled_from([100, 250, 400, 500, 600, 810, 1000])
with_gpu = st.builds(Ask, st.integers(0, 5).map(lambda n: n * 1000), st.integers(1, 3), sizes)
without_gpu = st.builds(Ask, st.integers(1, 5).map(lambda n: n * 1000), st.just(0))
mixes = st.lists(
    st.tuples(st.one_of(with_gpu, with_gpu, without_gpu), st.integers(1, 20)),
    min_size=1,
    max_size=8,
    unique_by=lambda p: p[0],
)
states = st.builds(
    State,
    st.integers(0, 8).map(lambda n: n * 1000),
    st.lists(st.sampled_from([0, 190, 500, 530, 840, 1000]), min_size=1, max_size=4).map(tuple),
)


def session_of(nodes: list[State]) -> Session:
    """Give a session with these states, each made of an empty node by taking from it."""
    names = [f"n{i}" for i in range(len(nodes))]
    models = [
        Node(name=name, allocatable={CPU: 8000, GPU: len(state.devices)})
        for name, state in zip(names, nodes, strict=True)
    ]
    session = Session(models, [Queue(name="default")], Settings(placement="fragmentation"))
    for number, state in enumerate(nodes):
        take(session, number, cpu=8000 - state.cpu, taken=[(i, MILLI - have) for i, have in enumerate(state.devices)])
    return session


def take(session: Session, node: int, *, cpu: int, taken: list[tuple[int, int]]) -> None:
    """Take millicores, and milli-GPU of numbered devices, from a node."""
    table = session.nodes
    ask = table.room[: table.rows, node] * 0
    ask[table.cpu_row] = cpu
    ask[table.gpu_row] = sum(milli for _, milli in taken)
    table.occupy(node, ask, (), 0, now=True, then=True, sign=1)
    for device, milli in taken:
        table.occupy_devices(node, (device,), milli, now=True, then=True)


def use(session: Session, mix: list[tuple[Ask, int]]) -> None:
    """Let fragmentation be measured for this mix."""
    classes = [(session.classes.of(ask.spec()), count) for ask, count in mix]
    session.mix.fix({cls.id: (cls, count) for cls, count in classes})
    session.fragmentation.refresh()


def share_with_gpu(mix: list[tuple[Ask, int]]) -> float:
    """Give the share of the mix's tasks that ask for GPUs."""
    return sum(count for ask, count in mix if ask.gpus) / sum(count for _, count in mix)


@given(nodes=st.lists(states, min_size=1, max_size=4), mix=mixes, ask=st.one_of(with_gpu, without_gpu))
def test_growth_is_that_of_the_definition(nodes: list[State], mix: list[tuple[Ask, int]], ask: Ask) -> None:
    """Classes without GPU, which the engine leaves out, add the same growth on every node: minus what is taken."""
    session = session_of(nodes)
    use(session, mix)
    growth = session.fragmentation.growth(session.classes.of(ask.spec()), slice(None))
    share = share_with_gpu(mix)
    for number, state in enumerate(nodes):
        naive = least_growth(state, ask, mix)
        if naive is not None:
            assert growth[number] * share - (1 - share) * ask.gpus * ask.milli == pytest.approx(naive, abs=1e-6)


@given(nodes=st.lists(states, min_size=1, max_size=4), mix=mixes, data=st.data())
def test_growth_and_total_follow_what_changes(
    nodes: list[State], mix: list[tuple[Ask, int]], data: st.DataObject
) -> None:
    """What was worked out before a node changed is not used after it."""
    session = session_of(nodes)
    use(session, mix)
    ask = data.draw(st.sampled_from([ask for ask, _ in mix]))
    cls = session.classes.of(ask.spec())
    session.fragmentation.growth(cls, slice(None))
    number = data.draw(st.integers(0, len(nodes) - 1))
    freer = State(nodes[number].cpu // 2, tuple(have // 2 for have in nodes[number].devices))
    parts = [(i, have - left) for i, (have, left) in enumerate(zip(nodes[number].devices, freer.devices, strict=True))]
    take(session, number, cpu=nodes[number].cpu - freer.cpu, taken=parts)
    after = [freer if i == number else state for i, state in enumerate(nodes)]
    fresh = session_of(after)
    use(fresh, mix)
    assert session.fragmentation.total() == pytest.approx(fresh.fragmentation.total(), abs=1e-6)
    known = share_with_gpu(mix)
    total = sum(expected(s, mix) - (1 - known) * sum(s.devices) for s in after)
    assert session.fragmentation.total() * known == pytest.approx(total, abs=1e-6)


@given(state=states, mix=mixes, ask=with_gpu.filter(lambda a: a.gpus == 1 and a.milli < MILLI))
def test_a_part_of_a_device_goes_where_it_adds_least(state: State, mix: list[tuple[Ask, int]], ask: Ask) -> None:
    """Of the devices of one node, one is chosen on which the growth is least."""
    session = session_of([state])
    use(session, mix)
    chosen = session.fragmentation.devices(session.classes.of(ask.spec()), 0, list(state.devices))
    after = placements(state, ask)
    if not after:
        assert state.cpu < ask.cpu or chosen == ()
        return
    (device,) = chosen
    taken = tuple(have - ask.milli * (i == device) for i, have in enumerate(state.devices))
    least = min(expected(s, mix) for s in after)
    assert expected(State(state.cpu - ask.cpu, taken), mix) == pytest.approx(least, abs=2e-3)


@given(nodes=st.lists(states, min_size=1, max_size=5), mix=mixes, ask=st.one_of(with_gpu, without_gpu))
def test_the_node_taken_is_within_a_step_of_the_least_growth(
    nodes: list[State], mix: list[tuple[Ask, int]], ask: Ask
) -> None:
    """No node that fits has a growth that is less by more than one step."""
    session = session_of(nodes)
    use(session, mix)
    growth = [least_growth(state, ask, mix) for state in nodes]
    fitting = [g for g in growth if g is not None]
    best = session.scorer.best(session.classes.of(ask.spec()))
    if not fitting:
        assert best == -1
        return
    found = growth[best]
    assert found is not None
    share = share_with_gpu(mix)
    assert share == 0 or found - min(fitting) <= GROWTH_STEP * share + 1e-6


def test_a_tie_goes_to_the_least_free_gpu_then_cpu_then_name() -> None:
    """A mix that cannot use any of the nodes leaves them equal."""
    mix = [(Ask(8000, 3), 1)]
    ask = Ask(1000, 1, 100)
    fuller, emptier = State(4000, (500, 0)), State(4000, (500, 500))
    for nodes, expected_node in (
        ([emptier, fuller], 1),
        ([fuller, emptier], 0),
        ([State(5000, (500, 0)), fuller], 1),
        ([fuller, fuller], 0),
    ):
        session = session_of(nodes)
        use(session, mix)
        assert session.scorer.best(session.classes.of(ask.spec())) == expected_node
