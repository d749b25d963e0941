"""Devices that claims ask for: what drivers publish, which of them a request takes, and where there is room for it."""
