"""The scheduler as it runs beside a cluster: when it decides, what of a plan it carries out yet, and what it tells."""
