"""YuniKorn's ConfigMap: its ``queues.yaml``, read anew when it changes; an invalid change is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain
from tenure.model.queue import Queue
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.values.problems import InvalidInputError

KEY = "queues.yaml"


class YuniKorn:
    """The last valid ``queues.yaml`` that was seen. ``queues`` is empty where there is none."""

    def __init__(self) -> None:
        self.queues: tuple[Queue, ...] = ()
        self._quota: dict[str, Any] = {}
        self._text = ""

    def read(self, items: Sequence[api.ApiObject], complain: Complain) -> None:
        """Read the ConfigMap as it is now; what is invalid is told of, and changes nothing."""
        data = items[0].data if items and isinstance(items[0].data, dict) else {}
        text = str(data.get(KEY) or "")
        if text == self._text:
            return
        self._text = text
        if not text:
            self.queues, self._quota = (), {}
            return
        from tenure.model.documents.yaml_source import parse_yaml  # noqa: PLC0415  only where there is such a ConfigMap
        from tenure.model.yunikorn.convert import queues_of  # noqa: PLC0415

        try:
            documents = parse_yaml(KEY, text)
            found = queues_of(documents[0])
        except (InvalidInputError, IndexError) as error:
            for line in str(error).splitlines() or ["it is empty"]:
                complain("ConfigMap", items[0].metadata, f"{line}; the queues before this change still hold")
            return
        for warning in found.warnings:
            complain("ConfigMap", items[0].metadata, str(warning))
        self.queues, self._quota = found.queues, dict(found.quota)

    def quota(self, before: QuotaPreemptionSettings) -> QuotaPreemptionSettings:
        """Give the settings of quota preemption with what the file sets changed."""
        return replace(before, **self._quota)
