"""Questions to a Prometheus. Safe to use from several threads."""

from __future__ import annotations

import math
from typing import Final
from urllib.parse import urlencode

import msgspec
import urllib3

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.decoding import decoder_of

MOST_BYTES: Final = 64 << 20
"""Bytes of an answer that are read: about 200,000 series."""

_TIMEOUT: Final = 20.0


class PrometheusError(Exception):
    """An answer that cannot be had or read: why."""


class PrometheusSample(msgspec.Struct):
    """The value of one series now; a value is written as text."""

    metric: dict[str, str]
    value: tuple[float, str]

    @property
    def number(self) -> float | None:
        """The value; None where it is no number."""
        try:
            found = float(self.value[1])
        except ValueError:
            return None
        return None if math.isnan(found) else found

    def label(self, *names: str) -> str:
        """Give the first of some labels that is there: exporters' own labels may have come under another name."""
        return next((found for name in names if (found := self.metric.get(name))), "")


class _Data(msgspec.Struct):
    result: list[PrometheusSample] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


_DECODE: Final = decoder_of(_Answer).decode


class PrometheusClient:
    """The client of the Prometheus at an address; ``server`` is empty where there is none."""

    def __init__(self, server: str) -> None:
        self.server = server.rstrip("/")
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False)

    def ask(self, query: str) -> list[PrometheusSample]:
        """Give what a query says now.

        Raises
        ------
        PrometheusError
            If there is no answer, or one that cannot be read.
        """
        try:
            return self._asked(f"{self.server}/api/v1/query?{urlencode({'query': query})}")
        except (urllib3.exceptions.HTTPError, msgspec.MsgspecError, ValueError) as error:
            raise PrometheusError(brief(error)) from None

    def _asked(self, address: str) -> list[PrometheusSample]:
        answer = self._pool.request("GET", address, preload_content=False)
        try:
            body = answer.read(MOST_BYTES + 1)
        finally:
            answer.release_conn()
        if len(body) > MOST_BYTES:
            raise ValueError(f"the answer has more than {MOST_BYTES >> 20} MiB")
        found = _DECODE(body)
        if found.status != "success":
            raise ValueError(found.error or f"HTTP {answer.status}")
        return found.data.result
