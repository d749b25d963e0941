"""Pictures as SVG: plots, curves, charts, and bars over time."""
