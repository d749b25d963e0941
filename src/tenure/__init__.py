"""Tenure: a batch scheduler and rescheduler in which every eviction has to pay for itself."""

__version__ = "0.1.0"
