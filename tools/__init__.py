"""Tools for working on Tenure. Nothing of it is installed."""
