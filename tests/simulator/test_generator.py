"""The generator follows the published model, and the same seed gives the same workload."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.simulator.checker import check
from tenure.simulator.generate import GeneratorConfig, TooManyJobsError, cluster_for, generate
from tenure.simulator.generate.config import MAX_JOBS
from tenure.simulator.generate.estimates import ROUND_S, draw_estimates
from tenure.simulator.generate.lublin import (
    BATCH,
    draw_gaps,
    draw_runtimes,
    draw_sizes,
    slot_weights,
    with_daily_cycle,
)
from tenure.simulator.generate.workload import offered_load
from tenure.simulator.log import EventLog
from tenure.simulator.traces.openb import gpu_milli_of

COUNT = 100_000


def stream(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def test_serial_jobs_and_powers_of_two_have_their_published_shares():
    sizes = draw_sizes(stream(), COUNT, 128)
    assert (sizes == 1).mean() == pytest.approx(0.2927, abs=0.006)
    powers = (sizes & (sizes - 1)) == 0
    assert powers.mean() == pytest.approx(0.2927 + 0.6686, abs=0.015)
    assert (sizes.min(), sizes.max()) == (1, 128)


def test_the_upper_stage_has_its_share_of_the_large_jobs():
    """The upper stage reaches from 32 to 128; rounding the logarithm moves a quarter of it down to 32."""
    sizes = draw_sizes(stream(), COUNT, 128)
    parallel = sizes[sizes > 1]
    assert (parallel > 32).mean() == pytest.approx(0.125 * 0.75, abs=0.01)


@pytest.mark.parametrize("machine", [1, 2, 3, 5, 7, 100, 1000])
def test_no_job_is_larger_than_the_machine(machine):
    sizes = draw_sizes(stream(), 5000, machine)
    assert 1 <= sizes.min() <= sizes.max() <= machine


def test_runtimes_have_the_mean_of_the_hyper_gamma():
    """The mean logarithm is p·a1·b1 + (1-p)·a2·b2; cutting at e^12 s only takes a thin tail away."""
    for size in (1, 64):
        logs = np.log(draw_runtimes(stream(), np.full(COUNT, size)))
        p = BATCH.slope * size + BATCH.intercept
        assert logs.mean() == pytest.approx(p * 6.57 * 0.823 + (1 - p) * 639.1 * 0.0156, rel=0.01)
        assert logs.max() <= 12


def test_larger_jobs_run_longer():
    small, large = (np.median(draw_runtimes(stream(), np.full(20_000, size))) for size in (1, 128))
    assert large > 5 * small


def test_gaps_have_the_mean_of_the_gamma():
    logs = np.log(draw_gaps(stream(), COUNT))
    assert logs.mean() == pytest.approx(6.0415 * 1.0519 * 0.8531, rel=0.02)
    assert logs.max() <= 13


def test_slots_weigh_one_on_average_and_the_early_afternoon_most():
    weights = slot_weights()
    assert weights.mean() == pytest.approx(1)
    assert 2 * 12 <= weights.argmax() <= 2 * 15
    assert 2 * 4 <= weights.argmin() <= 2 * 5
    assert weights.max() > 5 * weights.min()


def test_the_daily_cycle_fills_slots_in_proportion_to_their_weights():
    even = (np.arange(480_000) + 0.5) * (10 * 86_400 / 480_000)
    moved = with_daily_cycle(even)
    assert (np.diff(moved) > 0).all()
    assert (moved // 86_400 == even // 86_400).all()
    counts = np.bincount((moved % 86_400 // 1800).astype(int), minlength=48)
    assert counts / 10_000 == pytest.approx(slot_weights(), abs=0.002)


def test_estimates_are_round_values_above_the_run_time():
    runtimes = draw_runtimes(stream(), np.ones(20_000, dtype=np.int64))
    estimates = draw_estimates(stream(2), runtimes)
    assert (estimates >= runtimes).all()
    assert set(estimates.tolist()) <= set(ROUND_S.tolist())
    assert (estimates == ROUND_S[-1]).mean() > 0.1
    accuracy = runtimes / estimates
    assert accuracy.mean() < 0.6


@given(
    st.builds(
        GeneratorConfig,
        jobs=st.integers(1, 60),
        capacity=st.integers(1, 200),
        node_size=st.integers(1, 16),
        queues=st.integers(1, 4),
        unit=st.sampled_from(["gpu", "cpu"]),
        load=st.none() | st.floats(0.1, 3),
    ),
    st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_every_job_fits_the_cluster_that_it_is_made_for(config, seed):
    """Each job alone, its pods on the nodes one after the other, breaks nothing."""
    trace, cluster = generate(config, seed), cluster_for(config)
    assert (len(trace.jobs), trace.nodes) == (config.jobs, cluster.nodes)
    assert {job.workload.queue for job in trace.jobs} <= {queue.name for queue in cluster.queues}
    submits = [job.workload.created_at for job in trace.jobs]
    assert submits == sorted(submits)
    for job in trace.jobs:
        log = EventLog([job.workload])
        log.submit(0, 0)
        for index, task in enumerate(job.workload.tasks):
            log.bind(0, 0, index, index, (0,) if task.spec.gpu_share else ())
        assert check(log, cluster.nodes).by_kind == {}


def test_a_gang_has_pods_of_at_most_one_node():
    trace = generate(GeneratorConfig(jobs=2000, capacity=256), 7)
    gangs = [job.workload for job in trace.jobs if len(job.workload.tasks) > 1]
    assert gangs
    assert {dict(task.spec.requests)["nvidia.com/gpu"] for one in gangs for task in one.tasks} == {8}


def test_queues_priorities_and_checkpoints_are_mixed_as_documented():
    trace = generate(GeneratorConfig(jobs=8000, queues=2, shared=0.5), 7)
    jobs = [job.workload for job in trace.jobs]
    assert np.mean([job.queue == "queue-1" for job in jobs]) == pytest.approx(2 / 3, abs=0.02)
    assert np.mean([not job.is_preemptible for job in jobs]) == pytest.approx(0.05, abs=0.01)
    assert np.mean([job.checkpoint.interval is not None for job in jobs]) == pytest.approx(0.5, abs=0.02)
    assert np.mean([job.tasks[0].spec.gpu_share is not None for job in jobs]) == pytest.approx(0.2927 / 2, abs=0.02)


def test_what_may_not_be_evicted_fits_into_what_its_queue_is_guaranteed():
    """Larger ones could never start: what nobody may take back is not lent."""
    config = GeneratorConfig(jobs=5000, queues=3)
    guaranteed = {queue.name: queue.guaranteed["nvidia.com/gpu"] for queue in cluster_for(config).queues}
    fixed = [job for job in generate(config, 2).jobs if not job.workload.is_preemptible]
    assert len(fixed) > 100
    assert all(gpu_milli_of(job) <= guaranteed[job.workload.queue] for job in fixed)


def test_the_same_seed_gives_the_same_trace_and_another_one_another():
    config = GeneratorConfig(jobs=100)
    assert generate(config, 3) == generate(config, 3)
    assert generate(config, 3) != generate(config, 4)


def test_load_and_days_are_met():
    by_load = GeneratorConfig(jobs=3000, load=0.7)
    assert offered_load(generate(by_load, 1), by_load) == pytest.approx(0.7, rel=0.02)
    by_both = GeneratorConfig(days=20, load=0.9)
    trace = generate(by_both, 1)
    assert offered_load(trace, by_both) == pytest.approx(0.9, rel=0.05)
    assert trace.jobs[-1].workload.created_at == pytest.approx(20 * 86_400e6, rel=0.05)
    by_days = GeneratorConfig(days=2, jobs=500)
    assert len(generate(by_days, 1).jobs) == 500


@pytest.mark.parametrize(
    "fields",
    [
        {"jobs": 0}, {"capacity": 0}, {"node_size": 0}, {"queues": 0}, {"users": 0}, {"load": 0}, {"days": -1},
        {"shared": 1.5}, {"saving": float("nan")}, {"jobs": 1, "days": 1, "load": 1},
    ],
)  # fmt: skip
def test_an_impossible_configuration_is_refused(fields):
    with pytest.raises(ValueError, match=r"."):
        generate(GeneratorConfig(**fields), 0)


def test_a_workload_of_more_jobs_than_anybody_wants_is_refused(monkeypatch):
    """As many as are drawn before that is known are a hundredth of the real bound here: that saves four seconds."""
    monkeypatch.setattr("tenure.simulator.generate.workload.MAX_JOBS", MAX_JOBS // 100)
    with pytest.raises(TooManyJobsError, match=f"more than {MAX_JOBS // 100} jobs"):
        generate(GeneratorConfig(days=36_500, load=90, capacity=100_000), 0)
