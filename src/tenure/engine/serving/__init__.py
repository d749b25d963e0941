"""How those that wait are served: their order, their places, promises and reservations, and when they would start."""
