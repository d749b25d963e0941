"""Names of workloads: what changes little by little is called as it would be if all of it came at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenure.clusters.kubernetes.read.naming import WorkloadNames
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.model.workload import Workload

groups = st.tuples(
    st.sampled_from(["one", "other"]),
    st.sampled_from(["Pod", "Job", "group"]),
    st.sampled_from(["a", "a.job", "a.job.u", "b"]),
    st.booleans(),
    st.sampled_from(["", "u", "v"]),
)


def made_of(group, age):
    """Give the workload of a group, which is not Tenure's where its key says so."""
    namespace, _, name, is_own, uid = group
    scheduler = "tenure" if is_own else "other"
    return ObservedWorkload(
        Workload(name=name, namespace=namespace, uid=uid, scheduler_name=scheduler, created_at=age, tasks=()), ()
    )


@given(st.lists(st.lists(st.tuples(groups, st.integers(0, 2)), max_size=6), max_size=6))
def test_names_are_the_same_however_the_groups_came(steps):
    """Each has a name of its own; who changed is told; and the order in which they came decides nothing."""
    names, made = WorkloadNames(), {}
    for changed in steps:
        before = dict(names.named)
        for group, age in changed:
            if age:
                made[group] = made_of(group, age)
            else:
                made.pop(group, None)
        affected = names.renew(made, {group for group, _ in changed})
        anew = WorkloadNames()
        anew.renew(made, made)
        assert names.named == anew.named
        keys = [one.workload.key for one in names.named.values()]
        assert len(set(keys)) == len(keys) == len(made)
        other = {g for g in before.keys() | names.named.keys() if before.get(g) is not names.named.get(g)}
        assert other <= affected
