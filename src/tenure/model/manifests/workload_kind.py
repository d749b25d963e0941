"""Kinds of owners: what an object that creates pods says of them, as paths to where it says it.

Which pods start together, in which roles and how many, in which queue and class: all of it is data. The kinds that are
known without configuration are described in `workload_kinds.yaml` in the form of the custom resource ``WorkloadKind``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from tenure.model.fields.field_paths import FieldPath, FieldPathKind, Place
from tenure.model.fields.kinds import LONGEST_NAME, LONGEST_RESOURCE, describe
from tenure.model.fields.records import check_with, record_of
from tenure.model.fields.vocabulary import NameText, Ordinal
from tenure.model.selectors import Topology
from tenure.model.values.problems import InvalidInputError
from tenure.model.values.report import path_text
from tenure.model.workload import SubGroup

PathText = Annotated[FieldPath, FieldPathKind()]
Unit = Literal["owner", "pod", "label", "below"]

CORE_GROUPS: Final = frozenset({"", "apps", "batch"})
"""Kubernetes' own API groups: kinds of these are called by their kind alone."""

POD: Final = "Pod"
"""The key of the kind of pods that own others."""

JOB: Final = "Job"
"""The key of the kind of Kubernetes' own Jobs."""

MOST_ROLES: Final = 64
"""Roles of one owner that are told apart; pods of others come last."""

SURPLUS: Final = 1_000_000
"""Added to the order of a role's pods beyond as many as the role needs: they start after all that are needed."""

MOST_REPLICAS: Final = 2**31 - 1

FOLLOWING: Final = "-following"
"""Ending of the name of a role whose pods come when others of theirs have a place."""

LATER: Final = "later"
"""The subgroup of roles that start apart from what runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedParts:
    """Where an object says how many parts of each role have ended: of what stands at ``each``, by name."""

    each: PathText
    named: PathText
    count: PathText


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRole:
    """The role of some of an owner's pods. A path that begins with ``$`` begins at the object, others at the item."""

    name: str = ""
    each: PathText | None = None
    named: PathText | None = None
    label: str = ""
    value: str = ""
    replicas: PathText | None = None
    times: PathText | None = None
    at_least: PathText | None = None
    at_most: PathText | None = None
    unstated: Ordinal = 1
    suspended: PathText | None = None
    fewer: Ordinal = 0
    minimum: PathText | None = None
    minimum_when: PathText | None = None
    later: bool = False
    later_when: PathText | None = None
    later_is: str = ""
    later_but_first: bool = False
    after: PathText | None = None
    ended: EndedParts | None = None
    first_when: tuple[PathText, ...] = ()
    first_label: str = ""
    first_value: str = ""
    template: tuple[PathText, ...] = ()
    required_topology: PathText | None = None
    preferred_topology: PathText | None = None

    @property
    def reads_spec(self) -> bool:
        """Whether what its object says decides which pods play it, or how many of them are needed."""
        number = (self.replicas, self.times, self.at_least, self.at_most, self.suspended)
        needed = () if self.later else (*number, self.minimum, self.minimum_when)
        near = (self.required_topology, self.preferred_topology)
        later = (self.later_when, self.after)
        paths = (self.each, self.named, *later, *needed, *near)
        return self.ended is not None or bool(self.first_when) or any(path is not None for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGroup:
    """Roles of an owner whose pods are to be near each other: each item at ``each`` lists such roles by name."""

    each: PathText
    named: PathText
    members: PathText
    required_topology: PathText | None = None
    preferred_topology: PathText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """A kind of objects that own pods, and where such an object says what belongs together."""

    group: str = ""
    version: NameText
    kind: NameText
    plural: str = ""
    unit: Unit = "owner"
    unit_label: str = ""
    units: PathText | None = None
    wraps: bool = False
    embedded: PathText | None = None
    joined_by: tuple[str, ...] = ()
    minimum: tuple[PathText, ...] = ()
    roles: tuple[PodRole, ...] = ()
    sub_groups: bool = False
    role_groups: tuple[RoleGroup, ...] = ()
    required_topology: PathText | None = None
    preferred_topology: PathText | None = None
    queue: tuple[PathText, ...] = ()
    priority_class: tuple[PathText, ...] = ()
    suspended: PathText | None = None
    succeeded: PathText | None = None
    failed_indexes: PathText | None = None

    @property
    def key(self) -> str:
        """Give what it is called where kinds of all groups are told apart."""
        return kind_key(self.group, self.kind)

    @property
    def resource(self) -> str:
        """Give the name of its objects in the API's paths."""
        return self.plural or f"{self.kind.lower()}s"

    @property
    def source(self) -> str:
        """Give the name of the watch of its objects."""
        return self.resource if self.group in CORE_GROUPS else f"{self.resource}.{self.group}"

    @property
    def api_version(self) -> str:
        """Give group and version as an object names them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Give the path under which the API server lists its objects of all namespaces."""
        return f"{api_path(self.group, self.version)}/{self.resource}"

    @property
    def reads_only_metadata(self) -> bool:
        """Whether nothing but the metadata of an object decides about pods that are there."""
        paths = (*self.minimum, *self.queue, *self.priority_class)
        roles = () if self.unit in ("pod", "below") else self.roles
        return (
            not any(role.reads_spec for role in roles)
            and not self.role_groups
            and all(p is None for p in (self.succeeded, self.failed_indexes, self.embedded))
            and all(p is None for p in (self.required_topology, self.preferred_topology))
            and all(path.steps[0] == "metadata" for path in paths)
        )


@check_with(WorkloadKind)
def _check_kind(kind: WorkloadKind) -> Iterator[tuple[str, str]]:
    if (kind.unit == "label") != bool(kind.unit_label):
        yield "unitLabel", "goes with unit: label, and only with it; it names the label that tells workloads apart"
    if kind.role_groups and not kind.sub_groups:
        yield "roleGroups", "goes with subGroups: true; only roles that are subgroups can be grouped"


def kind_key(group: str, kind: str) -> str:
    """Give what a kind of an API group is called: kinds of two groups may have one name."""
    return kind if group in CORE_GROUPS else f"{kind}.{group}"


def api_path(group: str, version: str) -> str:
    """Give the path of a version of an API group."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class ShapeProblem(NamedTuple):
    """A value that an owner should not have there, and what would be right."""

    place: Place
    message: str

    def __str__(self) -> str:
        """Give it as a sentence."""
        return f"{path_text(self.place)}: {self.message}"


class _Part(NamedTuple):
    place: Place
    value: Any


@dataclass(frozen=True, slots=True)
class RoleShape:
    """The shape of a role: how many pods it has and needs.

    ``once_there`` is how many it needs, of what comes later, as soon as one of them is there: they come together.
    ``is_apart``: it starts as a whole beside what runs, which does not need it yet. ``ended`` counts its pods that have
    ended for good. Of a role that is parted in two, ``first`` is label and value of the pods that come first, and the
    other one ``follows``. ``template`` is the template of its pods, where one was found, and ``place`` where.
    """

    name: str
    replicas: int
    minimum: int
    label: str = ""
    value: str = ""
    once_there: int = 0
    is_apart: bool = False
    ended: int = 0
    first: tuple[str, str] | None = None
    follows: bool = False
    topology: Topology | None = None
    template: Any = field(default=None, compare=False)
    place: Place = field(default=(), compare=False)

    def has(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod of these labels plays the role; letters count alike, large or small."""
        if self.first is not None and (labels.get(self.first[0]) == self.first[1]) is self.follows:
            return False
        return not self.label or labels.get(self.label, "").lower() == (self.value or self.name).lower()


class NearRoles(NamedTuple):
    """Roles of an owner, by name, whose pods together obey a topology constraint."""

    name: str
    members: tuple[str, ...]
    topology: Topology | None


@dataclass(frozen=True, slots=True)
class OwnerShape:
    """The shape of what an owner makes: the roles of its pods, and how many start together.

    ``minimum`` is None where nothing says it. ``ended`` counts the pods that have ended for good: none is made anew.
    ``has_parts``: its roles have parts of which it says how many have ended, and which say it of their pods themselves.
    ``problems`` say what could not be read.
    """

    roles: tuple[RoleShape, ...] = ()
    minimum: int | None = None
    sub_groups: bool = False
    has_parts: bool = False
    near: tuple[NearRoles, ...] = ()
    topology: Topology | None = None
    queue: str = ""
    priority_class: str = ""
    suspended: bool = False
    ended: int = 0
    problems: tuple[ShapeProblem, ...] = ()

    @property
    def together(self) -> int:
        """Give how many start together."""
        needed = sum(role.minimum for role in self.roles if not role.is_apart)
        return self.minimum if self.minimum is not None else max(1, needed)

    def with_roles(self, there: Collection[int], apart: Collection[int] = ()) -> OwnerShape:
        """Give the shape with roles that have come, by their numbers; all are needed but those ``apart``."""
        come = (
            replace(role, minimum=role.once_there, is_apart=number in apart)
            if role.once_there and number in there else role
            for number, role in enumerate(self.roles)
        )  # fmt: skip
        return replace(self, roles=tuple(come))

    def with_ended(self, more: Mapping[int, int]) -> OwnerShape:
        """Give the shape with more pods that have ended, by the number of their role."""
        roles = tuple(
            replace(role, ended=min(role.ended + more.get(n, 0), role.replicas)) for n, role in enumerate(self.roles)
        )
        return replace(self, roles=roles, ended=min(self.ended + sum(more.values()), MOST_REPLICAS))

    def role_of(self, labels: Mapping[str, str]) -> int | None:
        """Give the number of the role that a pod of these labels plays; None where it is none of them."""
        return next((number for number, role in enumerate(self.roles) if role.has(labels)), None)

    def order_of(self, role: int, number: int) -> int:
        """Give the order of a role's pod by its number: what is needed of each role comes before what is not."""
        shape = self.roles[role]
        return role if number < shape.minimum and not shape.is_apart else SURPLUS + role

    def as_sub_groups(self) -> tuple[SubGroup, ...]:
        """Give a subgroup for each role that has pods; none where roles are none, or one of them need not start.

        Where roles start apart, each role that has come is one, and those that start apart are parts of another.
        """
        has_apart = any(role.is_apart for role in self.roles)
        listed = [role for role in self.roles if (role.minimum if has_apart else role.replicas)]
        names = {role.name for role in listed}
        if not (self.sub_groups or has_apart) or self.minimum is not None or len(names) < len(listed):
            return ()
        if any(role.minimum < 1 for role in listed):
            return ()
        groups = {r.name: SubGroup(name=r.name, min_member=r.minimum, topology=r.topology) for r in listed}
        apart = tuple(groups.pop(role.name) for role in listed if role.is_apart)
        return (*self._nested(list(groups.values())), *((_optional(apart, names),) if apart else ()))

    def _nested(self, roles: list[SubGroup]) -> tuple[SubGroup, ...]:
        """Put subgroups of roles that are to be near each other into one, where the first of them stands."""
        whose = {member: near for near in self.near for member in near.members}
        found: dict[str, SubGroup] = {}
        for role in roles:
            near = whose.get(role.name)
            if near is None:
                found[role.name] = role
            else:
                before = found.get(near.name, SubGroup(name=near.name, topology=near.topology))
                found[near.name] = replace(before, sub_groups=(*before.sub_groups, role))
        return tuple(found.values())


def _optional(groups: tuple[SubGroup, ...], names: Collection[str]) -> SubGroup:
    """Put subgroups into one of which none has to start; each starts as a whole."""
    name = LATER
    while name in names:
        name += "-"
    return SubGroup(name=name, sub_groups=groups, min_sub_group=0)


def shape_of(
    kind: WorkloadKind, item: Any, kinds: WorkloadKinds | None = None, *, with_templates: bool = False
) -> OwnerShape:
    """Read what an object of a kind says of its pods. Whatever stands in it, a shape comes of it.

    Parameters
    ----------
    kind
        Its kind.
    item
        The object, as plain values.
    kinds
        The kinds of objects that may stand inside this one.
    with_templates
        Whether the templates of pods are kept.
    """
    reader = _ShapeReader(item, with_templates=with_templates)
    roles = tuple(shape for role in kind.roles for shape in reader.roles(role))[:MOST_ROLES]
    if kinds is not None and kind.embedded is not None:
        for place, found in kind.embedded.located(item):
            roles += _embedded(place, found, kinds, with_templates=with_templates)
    minimum = next((m for path in kind.minimum if (m := reader.count(path, reader.whole, -1)) >= 0), None)
    return OwnerShape(
        roles=roles,
        minimum=max(1, minimum) if minimum is not None else 1 if not roles else None,
        sub_groups=kind.sub_groups,
        has_parts=any(role.ended is not None for role in kind.roles),
        near=tuple(reader.near(kind.role_groups, {role.name for role in roles})),
        topology=reader.topology(kind, reader.whole),
        queue=reader.text(kind.queue),
        priority_class=reader.text(kind.priority_class),
        suspended=kind.suspended is not None and kind.suspended.first(item) is True,
        ended=min(
            _total(kind.succeeded, item) + _indexes(kind.failed_indexes, item) + sum(role.ended for role in roles),
            MOST_REPLICAS,
        ),
        problems=tuple(reader.problems),
    )


def _embedded(place: Place, item: Any, kinds: WorkloadKinds, *, with_templates: bool) -> tuple[RoleShape, ...]:
    kind = kinds.of_object(item)
    if kind is None or kind.embedded is not None:
        return ()
    roles = shape_of(kind, item, with_templates=with_templates).roles
    return tuple(replace(role, place=(*place, *role.place)) for role in roles)


def merged(own: OwnerShape, below: Iterable[OwnerShape]) -> OwnerShape:
    """Give the shape of an owner that wraps others: what they say of pods, and what it says itself."""
    shapes = list(below)
    if own.roles or not shapes:
        return own
    if len(shapes) == 1:
        (shape,) = shapes
        return replace(
            shape, topology=own.topology or shape.topology,
            queue=own.queue or shape.queue, priority_class=own.priority_class or shape.priority_class,
            suspended=own.suspended, problems=(*own.problems, *shape.problems),
        )  # fmt: skip
    return OwnerShape(
        minimum=sum(shape.together for shape in shapes), topology=own.topology,
        queue=own.queue or next((s.queue for s in shapes if s.queue), ""),
        priority_class=own.priority_class or next((s.priority_class for s in shapes if s.priority_class), ""),
        suspended=own.suspended, ended=sum(s.ended for s in shapes),
        problems=(*own.problems, *(line for s in shapes for line in s.problems)),
    )  # fmt: skip


class _ShapeReader:
    def __init__(self, item: Any, *, with_templates: bool) -> None:
        self.whole = _Part((), item)
        self.with_templates = with_templates
        self.problems: list[ShapeProblem] = []

    def roles(self, role: PodRole) -> Iterator[RoleShape]:
        if role.each is None:
            yield self._role(role, role.name, self.whole)
            return
        for number, (place, item) in enumerate(role.each.located(self.whole.value)):
            part = _Part(place, item)
            named = self._at(role.named, part).value
            name = named if isinstance(named, str) else role.name or str(place[-1])
            shape = self._role(role, name[:LONGEST_NAME], part, is_first=number == 0)
            if any(self._at(path, part).value is not None for path in role.first_when):
                yield from _parted(shape, (role.first_label, role.first_value), self.count(role.times, part, 1))
            else:
                yield shape

    def _role(self, role: PodRole, name: str, part: _Part, *, is_first: bool = False) -> RoleShape:
        times = self.count(role.times, part, 1)
        total = min(max(0, self._replicas(role, part) * times - role.fewer), MOST_REPLICAS)
        after, told = (self._at(path, part).value for path in (role.after, role.later_when))
        template, is_later = self._template(role, part), _comes_later(role, after, told, is_first=is_first)
        needed = min(self._minimum(role, part, total, times), MOST_REPLICAS)
        once_there = needed if is_later and not role.later else 0
        return RoleShape(
            name=name, replicas=total, minimum=0 if is_later else needed, once_there=once_there,
            ended=_ended(role.ended, name, self.whole.value, times) * (total // times if times else 0),
            label=role.label, value=role.value, topology=self.topology(role, part),
            template=template.value, place=template.place,
        )  # fmt: skip

    def _replicas(self, role: PodRole, part: _Part) -> int:
        """Give the number that a role states, within its bounds; the upper one counts where they contradict."""
        if self._at(role.suspended, part).value is True:
            return 0
        least, most = self.count(role.at_least, part), self.count(role.at_most, part, MOST_REPLICAS)
        return min(max(self.count(role.replicas, part, role.unstated), least), most)

    def near(self, groups: Iterable[RoleGroup], roles: Collection[str]) -> Iterator[NearRoles]:
        """Give the roles that are to be near each other; what names no role, or one that has its group, is reported."""
        left = set(roles)
        names = set(roles)
        items = [(group, _Part(*found)) for group in groups for found in group.each.located(self.whole.value)]
        for group, part in items[:MOST_ROLES]:
            name = self._at(group.named, part).value
            if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or name in names:
                words = "but a name is expected that no role and no other group has"
                self.problems.append(ShapeProblem(part.place, f"is called {describe(name)}, {words}"))
                continue
            members = []
            for place, member in islice(group.members.located(part.value), MOST_ROLES):
                if isinstance(member, str) and member in left:
                    members.append(member)
                    left.discard(member)
                else:
                    words = "but the name of a role is expected that is in no other group"
                    self.problems.append(ShapeProblem((*part.place, *place), f"is {describe(member)}, {words}"))
            names.add(name)
            yield NearRoles(name, tuple(members), self.topology(group, part))

    def topology(self, said: WorkloadKind | PodRole | RoleGroup, part: _Part) -> Topology | None:
        """Give the topology constraint that stands where a kind, a role or a group of roles says; None without one."""
        levels = [self._label(path, part) for path in (said.required_topology, said.preferred_topology)]
        return Topology(required=levels[0], preferred=levels[1]) if any(levels) else None

    def _label(self, path: FieldPath | None, part: _Part) -> str | None:
        found = self._at(path, part)
        if found.value is None or found.value == "":
            return None
        if isinstance(found.value, str) and len(found.value) <= LONGEST_RESOURCE:
            return found.value
        self.problems.append(ShapeProblem(found.place, f"is {describe(found.value)}, but a label of nodes is expected"))
        return None

    def _minimum(self, role: PodRole, part: _Part, total: int, times: int) -> int:
        if role.minimum_when is not None and self._at(role.minimum_when, part).value is not True:
            return total
        stated = self.count(role.minimum, part, -1)
        if stated < 0:
            return 0 if role.minimum_when is not None else total
        return min(stated * times, total)

    def _template(self, role: PodRole, part: _Part) -> _Part:
        paths = role.template if self.with_templates else ()
        for path in paths:
            found = self._at(path, part)
            if isinstance(found.value, dict):
                return found
        wanted = tuple(step for step in paths[0].steps if step is not None) if paths else ()
        return _Part((*part.place, *wanted) if wanted else (), None)

    def _at(self, path: FieldPath | None, part: _Part) -> _Part:
        if path is None:
            return _Part((), None)
        base = self.whole if path.from_top else part
        place, value = next(path.located(base.value), ((), None))
        return _Part((*base.place, *place), value)

    def count(self, path: FieldPath | None, part: _Part, otherwise: int = 0) -> int:
        """Give a number of pods; another where it is not stated, or cannot be read."""
        found = self._at(path, part)
        if found.value is None:
            return otherwise
        if type(found.value) is int and 0 <= found.value <= MOST_REPLICAS:
            return found.value
        expected = f"a whole number from 0 to {MOST_REPLICAS}"
        self.problems.append(ShapeProblem(found.place, f"is {describe(found.value)}, but {expected} is expected"))
        return otherwise

    def text(self, paths: Iterable[FieldPath]) -> str:
        for path in paths:
            found = self._at(path, self.whole)
            if isinstance(found.value, str) and found.value:
                return found.value
            if found.value is not None and found.value != "":
                self.problems.append(ShapeProblem(found.place, f"is {describe(found.value)}, but text is expected"))
        return ""


def _parted(shape: RoleShape, first: tuple[str, str], parts: int) -> Iterator[RoleShape]:
    """Part a role in two: one pod of each of its parts, and the others, which come when that one has a place."""
    leading = min(parts, shape.replicas)
    ended = shape.ended * leading // max(1, shape.replicas)
    is_later = shape.once_there > 0
    value = shape.value or shape.name
    yield replace(
        shape, replicas=leading, minimum=0 if is_later else leading, once_there=leading if is_later else 0,
        ended=ended, first=first, value=value,
    )  # fmt: skip
    following = shape.replicas - leading
    if following:
        yield replace(
            shape, name=f"{shape.name[: LONGEST_NAME - len(FOLLOWING)]}{FOLLOWING}", replicas=following, minimum=0,
            once_there=following, ended=shape.ended - ended, first=first, follows=True, value=value,
        )  # fmt: skip


def _comes_later(role: PodRole, after: Any, told: Any, *, is_first: bool) -> bool:
    """Whether a role's pods come when others run; of roles that come one after the other the first does not."""
    if role.later or after:
        return True
    return role.later_when is not None and told == role.later_is and not (role.later_but_first and is_first)


def _ended(said: EndedParts | None, name: str, whole: Any, parts: int) -> int:
    """Give how many of a role's parts have ended, by what its object says."""
    if said is None:
        return 0
    item = next((item for item in said.each.found(whole) if said.named.first(item) == name), None)
    count = said.count.first(item)
    return min(count, parts) if type(count) is int and count > 0 else 0


def _total(path: FieldPath | None, item: Any) -> int:
    """Give the sum of the whole numbers above 0 that stand at a path."""
    found = () if path is None else path.found(item)
    return min(sum(n for n in found if type(n) is int and n > 0), MOST_REPLICAS)


def _indexes(path: FieldPath | None, item: Any) -> int:
    """Give how many indexes the texts at a path name: ``1,3-5`` names four."""
    found = () if path is None else path.found(item)
    listed = [part for text in found if type(text) is str for part in _INDEXES.findall(text[:_LONGEST_LIST])]
    return min(sum(max(0, int(last or first) - int(first) + 1) for first, last in listed), MOST_REPLICAS)


_INDEXES: Final = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?(?:,|$)")
_LONGEST_LIST: Final = 1 << 16


class WorkloadKinds:
    """The kinds of owners that are known: those that come with Tenure, and others beside or instead of them."""

    def __init__(self, kinds: Iterable[WorkloadKind]) -> None:
        self.by_key = {kind.key: kind for kind in kinds}

    def __iter__(self) -> Iterator[WorkloadKind]:
        """Give all kinds, in the order in which they were described."""
        return iter(self.by_key.values())

    def with_others(self, others: Iterable[WorkloadKind]) -> WorkloadKinds:
        """Give these with others; of one group and kind, the other counts."""
        return WorkloadKinds((*self, *others))

    def of_object(self, item: Any) -> WorkloadKind | None:
        """Give the kind of an object; None where it is not known."""
        if not isinstance(item, dict):
            return None
        version, kind = item.get("apiVersion"), item.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            return None
        found = self.by_key.get(kind_key(group_of(version), kind))
        return found if found is not None and found.group == group_of(version) else None

    @cached_property
    def joined(self) -> tuple[tuple[str, str], ...]:
        """Give by which labels and annotations pods name objects, each with the key of their kind."""
        return tuple((label, kind.key) for kind in self for label in kind.joined_by)


def group_of(api_version: str) -> str:
    """Give the API group of an object's ``apiVersion``."""
    return api_version.rpartition("/")[0]


@cache
def built_in_kinds() -> WorkloadKinds:
    """Give the kinds that come with Tenure."""
    from tenure.model.documents.source import read_documents  # noqa: PLC0415  it loads the reader of YAML
    from tenure.model.values.report import ProblemReport  # noqa: PLC0415

    kinds = []
    for document in read_documents(Path(__file__).parent / "workload_kinds.yaml"):
        report = ProblemReport()
        kinds.append(record_of(WorkloadKind).decode(document.value["spec"], (None, "spec"), report))
        if report.problems:
            raise InvalidInputError(document.problems(report.problems))
    return WorkloadKinds(kinds)
