"""The terms that a spec asks for: pod affinity and anti-affinity, and topology spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenure.model.selectors import LabelSelector, PodAffinity, PodAffinityTerm, Requirement, SpreadConstraint
from tenure.model.workload import TaskSpec


class Meant(NamedTuple):
    """Tasks that ``selector`` matches, in ``namespaces`` and in those whose labels ``among`` matches."""

    selector: LabelSelector | None
    namespaces: frozenset[str]
    among: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """Tasks that are ``meant``, counted by value of the node label ``key``.

    Of several required affinities only a task that all of them mean counts for any; so there may be more of ``meant``.
    """

    meant: tuple[Meant, ...]
    key: str

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of the term itself."""
        return self.meant[0].selector


class AskedTerms(NamedTuple):
    """The terms that a spec asks for. Each spread constraint has one, what is only preferred has its weight."""

    affinity: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    spread: tuple[Term, ...] = ()
    preferred: tuple[tuple[float, Term], ...] = ()

    def all(self) -> Iterator[Term]:
        """Give all of them."""
        yield from (*self.affinity, *self.anti, *self.spread, *(term for _, term in self.preferred))


def terms_of(spec: TaskSpec, namespace: str) -> AskedTerms:
    """Give the terms that a spec asks for, of a task in a namespace."""
    labels, affinity = dict(spec.labels), spec.affinity
    pod = affinity.pod if affinity and affinity.pod else PodAffinity()
    anti = affinity.pod_anti if affinity and affinity.pod_anti else PodAffinity()
    weighted = [(float(p.weight), p.term) for p in pod.preferred] + [(-float(p.weight), p.term) for p in anti.preferred]
    return AskedTerms(
        _together([_term(t, namespace, labels) for t in pod.required]),
        tuple(_term(t, namespace, labels) for t in anti.required),
        tuple(_spread_term(c, namespace, labels) for c in spec.spread),
        tuple((weight, _term(t, namespace, labels)) for weight, t in weighted),
    )


def _together(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Give required affinities so that each counts only tasks that all of them mean."""
    meant = [t.meant[0] for t in terms]
    return tuple(
        Term((m, *meant[:i], *meant[i + 1 :]), t.key) for i, (m, t) in enumerate(zip(meant, terms, strict=True))
    )


def _term(term: PodAffinityTerm, namespace: str, labels: dict[str, str]) -> Term:
    own = () if term.namespace_selector is not None else (namespace,)
    selector = _narrowed(term.selector, term.match_label_keys, labels, term.mismatch_label_keys)
    meant = Meant(selector, frozenset(term.namespaces or own), term.namespace_selector)
    return Term((meant,), term.topology_key)


def _spread_term(constraint: SpreadConstraint, namespace: str, labels: dict[str, str]) -> Term:
    selector = _narrowed(constraint.selector, constraint.match_label_keys, labels)
    return Term((Meant(selector, frozenset((namespace,))),), constraint.topology_key)


def _narrowed(
    selector: LabelSelector | None, keys: tuple[str, ...], labels: dict[str, str], unlike: tuple[str, ...] = ()
) -> LabelSelector | None:
    """Add to a selector that tasks are like the one with these labels in ``keys``, and not in ``unlike``."""
    if selector is None or not (keys or unlike):
        return selector
    same = tuple((k, labels[k]) for k in keys if k in labels)
    other = tuple(Requirement(key=k, operator="NotIn", values=(labels[k],)) for k in unlike if k in labels)
    return LabelSelector(
        match_labels=tuple(sorted({*selector.match_labels, *same})),
        match_expressions=(*selector.match_expressions, *other),
    )


def has_terms(spec: TaskSpec) -> bool:
    """Whether a spec asks for anything that looks at other tasks, or for a port of its node."""
    return spec.affinity is not None or bool(spec.spread or spec.host_ports)
