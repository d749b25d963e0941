"""Pictures and self-contained pages about plans and simulations."""
