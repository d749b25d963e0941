"""The log: one JSON object a line, or text for people. Python's own logging does it; another library is not needed."""

from __future__ import annotations

import json
import logging
from typing import IO, Any

from tenure.model.values.duration import format_time
from tenure.model.values.problems import printable

NAME = "tenure.scheduler"


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": format_time(int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)  # ASCII alone: nothing in it moves a cursor or turns the writing


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={printable(value)}" for key, value in getattr(record, "fields", {}).items())
        line = (
            f"{format_time(int(record.created) * 1_000_000)} {record.levelname.lower()}: {record.getMessage()}{fields}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Log:
    """The writer of messages with fields."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def info(self, message: str, **fields: object) -> None:
        """Something happened that is worth a line."""
        self._logger.info(message, extra={"fields": fields})

    def debug(self, message: str, **fields: object) -> None:
        """Something for who asked for more."""
        self._logger.debug(message, extra={"fields": fields})

    def warning(self, message: str, **fields: object) -> None:
        """Something is not as it should be."""
        self._logger.warning(message, extra={"fields": fields})

    def error(self, message: str, **fields: object) -> None:
        """Something does not work."""
        self._logger.error(message, extra={"fields": fields})

    def failed(self, message: str, error: BaseException, **fields: object) -> None:
        """Something failed that should not; with the traceback."""
        self._logger.error(message, extra={"fields": fields}, exc_info=error)


def set_up(stream: IO[str], *, form: str = "json", verbose: bool = False) -> Log:
    """Give the log, written to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines() if form == "json" else _Text())
    logger = logging.getLogger(NAME)
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    return Log(logger)
