"""Which extended resources are devices without configuration, and how much of a GPU each device is, in milli-GPU.

The names are those that the vendors' own device plugins give. Left out on purpose: what is the same device once more
under another name or in another unit (cores, memory, monitoring), because a node that has both would count twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model.fields.kinds import WILDCARD
from tenure.model.values.resources import MILLI

MIG_SLICES: Final = 7
"""Compute slices of a GPU that is divided by MIG: a profile says how many of them it has."""

_WHOLE: Final = (
    "amd.com/gpu", "aws.amazon.com/neuron", "birentech.com/gpu", "cambricon.com/mlu", "enflame.com/gcu",
    "furiosa.ai/rngd", "google.com/tpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
    "huawei.com/Ascend310P", "huawei.com/Ascend910", "hygon.com/dcu", "iluvatar.ai/gpu", "iluvatar.com/gpu",
    "kunlunxin.com/xpu", "metax-tech.com/gpu", "mthreads.com/gpu", "qualcomm.com/qaic", "rebellions.ai/ATOM",
)  # fmt: skip

_AMD_PARTITIONS: Final = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}
"""Into how many parts each mode divides an accelerator; ``cpx`` into as many as an MI300X has dies."""

_PARTS: Final = {f"nvidia.com/mig-{slices}g.": slices * MILLI // MIG_SLICES for slices in range(1, MIG_SLICES + 1)} | {
    f"amd.com/{mode}_": MILLI // parts for mode, parts in _AMD_PARTITIONS.items()
}

GPU_PARTS: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys(_WHOLE, MILLI) | {f"{beginning}{WILDCARD}": milli for beginning, milli in _PARTS.items()}
)
"""Milli-GPU by resource, in the form of the setting ``deviceResources``."""


def gpu_part(resource: str) -> int:
    """Give how much of a GPU a device of a resource is by default, in milli-GPU; 0 where it is none."""
    if "/" not in resource:  # Kubernetes' own resources
        return 0
    whole = GPU_PARTS.get(resource)
    if whole is not None:
        return whole
    return next((milli for beginning, milli in _PARTS.items() if resource.startswith(beginning)), 0)
