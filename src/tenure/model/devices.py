"""Devices of `resource.k8s.io`: what drivers publish, their classes, and the claims that tasks have on them.

Semantics are those of Kubernetes 1.37. Capacities and counters are in thousand-millionths of a unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from tenure.model.fields.containers import NanoQuantityKind
from tenure.model.fields.kinds import IntegerKind
from tenure.model.fields.records import check_with
from tenure.model.fields.vocabulary import FieldKey, NameText, Time
from tenure.model.selectors import NodeSelector

AllocationMode = Literal["ExactCount", "All"]
Nano = Annotated[int, NanoQuantityKind()]
_WHOLE: Final = IntegerKind(-(1 << 63), (1 << 63) - 1)

MOST_RESULTS: Final = 32
"""Devices that one claim gets, at the most."""

MOST_USERS: Final = 256
"""Pods that use one claim at a time, at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAttribute:
    """An attribute of a device: one of a text, a whole number, a truth value and a version."""

    text: Annotated[str | None, FieldKey("string")] = None
    number: Annotated[int | None, _WHOLE, FieldKey("int")] = None
    flag: Annotated[bool | None, FieldKey("bool")] = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRange:
    """The amounts of a capacity that one share may be: from ``least`` to ``most``, in steps."""

    least: Annotated[Nano, FieldKey("min")]
    most: Annotated[Nano | None, NanoQuantityKind(), FieldKey("max")] = None
    step: Annotated[Nano | None, NanoQuantityKind()] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPolicy:
    """The rule by which a share of a capacity is rounded up, and what it is where a request does not say."""

    default: Annotated[Nano | None, NanoQuantityKind()] = None
    values: Annotated[tuple[Nano, ...], FieldKey("validValues")] = ()
    range: Annotated[CapacityRange | None, FieldKey("validRange")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCapacity:
    """A capacity of a device."""

    value: Nano
    policy: Annotated[CapacityPolicy | None, FieldKey("requestPolicy")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCounter:
    """An amount of something that devices of a pool share."""

    value: Nano


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSet:
    """Counters of which the devices of a pool consume, by name."""

    name: str
    counters: Mapping[str, DeviceCounter] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterUse:
    """The counters of a set that a device consumes while it is given out."""

    counter_set: str
    counters: Mapping[str, DeviceCounter] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTaint:
    """A taint of a device: claims that do not tolerate it do not get the device."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceToleration:
    """A toleration of taints of devices; without a key, of all."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of a pool. ``is_shared``: several claims have shares of it at a time.

    ``node``, ``nodes`` and ``on_all_nodes`` say where it is, where its slice leaves that to each device.
    ``binding_conditions`` are what its driver has to report before a pod is bound, ``binding_failure_conditions`` what
    it reports where that will never be.
    """

    name: NameText
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict, hash=False)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict, hash=False)
    consumes: Annotated[tuple[CounterUse, ...], FieldKey("consumesCounters")] = ()
    taints: tuple[DeviceTaint, ...] = ()
    is_shared: Annotated[bool, FieldKey("allowMultipleAllocations")] = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    node: Annotated[str | None, FieldKey("nodeName")] = None
    nodes: Annotated[NodeSelector | None, FieldKey("nodeSelector")] = None
    on_all_nodes: Annotated[bool, FieldKey("allNodes")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePoolName:
    """The pool that a slice is a part of: the newest generation counts, once all of its slices are there."""

    name: str
    generation: Annotated[int, _WHOLE] = 1
    slices: Annotated[int, _WHOLE, FieldKey("resourceSliceCount")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSlice:
    """A ResourceSlice: devices that a driver publishes, and the nodes that reach them."""

    name: NameText
    driver: str
    pool: DevicePoolName
    node: Annotated[str | None, FieldKey("nodeName")] = None
    nodes: Annotated[NodeSelector | None, FieldKey("nodeSelector")] = None
    on_all_nodes: Annotated[bool, FieldKey("allNodes")] = False
    is_per_device: Annotated[bool, FieldKey("perDeviceNodeSelection")] = False
    devices: tuple[Device, ...] = ()
    counters: Annotated[tuple[CounterSet, ...], FieldKey("sharedCounters")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CelExpression:
    """An expression over ``device`` in the Common Expression Language."""

    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSelector:
    """A selector of devices: those of which the expression is true."""

    cel: CelExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A DeviceClass: the devices that all of its selectors take.

    ``extended_resource``: the name by which pods ask for its devices as for any resource; of two classes with one name
    the one that was created later serves it.
    """

    name: NameText
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource: Annotated[str, FieldKey("extendedResourceName")] = ""
    created_at: Annotated[Time | None, FieldKey("creationTimestamp")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRequest:
    """The amounts of a device's capacities that a request asks for."""

    requests: Mapping[str, Nano] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDevices:
    """A request for devices of one class: so many of them, or all that a node reaches.

    ``has_admin_access``: for a look at devices that others use.
    """

    class_name: Annotated[str, FieldKey("deviceClassName")]
    selectors: tuple[DeviceSelector, ...] = ()
    mode: Annotated[AllocationMode, FieldKey("allocationMode")] = "ExactCount"
    count: Annotated[int, IntegerKind(1, (1 << 63) - 1)] = 1
    has_admin_access: Annotated[bool, FieldKey("adminAccess")] = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeDevices:
    """One of several requests of which the first that can be met is."""

    name: str
    class_name: Annotated[str, FieldKey("deviceClassName")]
    selectors: tuple[DeviceSelector, ...] = ()
    mode: Annotated[AllocationMode, FieldKey("allocationMode")] = "ExactCount"
    count: Annotated[int, IntegerKind(1, (1 << 63) - 1)] = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequest | None = None

    @property
    def exactly(self) -> ExactDevices:
        """The request, without its name."""
        return ExactDevices(
            class_name=self.class_name, selectors=self.selectors, mode=self.mode, count=self.count,
            tolerations=self.tolerations, capacity=self.capacity,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """A request of a claim, by name: for ``exactly`` these devices, or for the first of several that are available."""

    name: str
    exactly: ExactDevices | None = None
    first_available: tuple[AlternativeDevices, ...] = ()

    @property
    def options(self) -> tuple[tuple[str, ExactDevices], ...]:
        """What would do, best first, each with the name that its devices are given out under."""
        if self.exactly is not None:
            return ((self.name, self.exactly),)
        return tuple((f"{self.name}/{option.name}", option.exactly) for option in self.first_available)


@dataclass(frozen=True, slots=True)
class ExtendedRequest:
    """A request for an extended resource: the name that it has in a claim, how many, and the containers that use it."""

    resource: str
    name: str
    count: int
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConstraint:
    """A constraint on the devices of some requests (of all, where none is named): alike, or distinct, in an attribute.

    The attribute is named with its domain.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """A device that a claim has got for one of its requests. ``consumed`` is its share of the capacities."""

    request: str
    driver: str
    pool: str
    device: str
    has_admin_access: Annotated[bool, FieldKey("adminAccess")] = False
    share: Annotated[str | None, FieldKey("shareID")] = None
    consumed: Annotated[Mapping[str, Nano], FieldKey("consumedCapacity")] = field(default_factory=dict, hash=False)
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The device by driver, pool and name."""
        return self.driver, self.pool, self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAllocation:
    """The devices that a claim got ``at`` (µs since the epoch), and the nodes that reach all of them (None: all)."""

    devices: tuple[AllocatedDevice, ...] = ()
    nodes: Annotated[NodeSelector | None, FieldKey("nodeSelector")] = None
    at: Annotated[Time | None, FieldKey("allocationTimestamp")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCondition:
    """A condition that a driver reports of a device."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""

    @property
    def is_true(self) -> bool:
        """Whether the condition holds."""
        return self.status == "True"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """The status of a device that a claim has, as its driver reports it."""

    driver: str
    pool: str
    device: str
    conditions: tuple[DeviceCondition, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The device by driver, pool and name."""
        return self.driver, self.pool, self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """A ResourceClaim. ``reserved_for`` are the uids of the pods that use it, ``unsupported`` what is not evaluated.

    ``is_made``: a scheduler made it for a pod that asks for extended resources.
    """

    name: NameText
    namespace: NameText = "default"
    uid: str = ""
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    allocation: DeviceAllocation | None = None
    statuses: Annotated[tuple[DeviceStatus, ...], FieldKey("devices")] = ()
    reserved_for: tuple[str, ...] = ()
    is_going: Annotated[bool, FieldKey("deleting")] = False
    is_made: Annotated[bool, FieldKey("extendedResources")] = False
    unsupported: str = ""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """A use of a claim by a task. ``awaits`` is why it has to be waited for, ``unsupported`` what is not evaluated.

    ``counted`` is what its devices count for the task's queue, GPUs in milli-GPU; where ``payer`` (the uid of a pod) is
    known, for that pod alone. ``resources`` are the extended resources that it serves: a node that has all of them by
    itself needs no claim, and none is made there.
    """

    claim: str
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    allocation: DeviceAllocation | None = None
    awaits: str = ""
    unsupported: str = ""
    counted: tuple[tuple[str, int], ...] = ()
    payer: str = ""
    resources: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether a task that uses it can be placed, given a node that suits."""
        return not self.awaits and not self.unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInventory:
    """All that decides about the devices of a cluster's tasks. ``claims`` are all, used by its tasks or not."""

    slices: tuple[DeviceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[DeviceClaim, ...] = ()


@check_with(DeviceAttribute)
def _check_attribute(value: DeviceAttribute) -> Iterable[tuple[str, str]]:
    if sum(x is not None for x in (value.text, value.number, value.flag, value.version)) != 1:
        yield "", "has to have exactly one of string, int, bool and version"


@check_with(DeviceRequest)
def _check_request(value: DeviceRequest) -> Iterable[tuple[str, str]]:
    if (value.exactly is None) == (not value.first_available):
        yield "", "has to have either exactly or firstAvailable"


@check_with(DeviceConstraint)
def _check_constraint(value: DeviceConstraint) -> Iterable[tuple[str, str]]:
    named = [a for a in (value.match_attribute, value.distinct_attribute) if a is not None]
    if len(named) != 1:
        yield "", "has to have either matchAttribute or distinctAttribute"
    elif "/" not in named[0]:
        yield "", f"names the attribute {named[0]} without its domain; write domain/name"


@check_with(DeviceSlice)
def _check_slice(value: DeviceSlice) -> Iterable[tuple[str, str]]:
    places = (value.node is not None, value.nodes is not None, value.on_all_nodes, value.is_per_device)
    if sum(places) != 1:
        yield "", "has to have exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
