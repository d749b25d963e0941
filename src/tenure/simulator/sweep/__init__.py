"""Sweeps: many simulations, of which each is done once, on this machine or on a Dask cluster."""
