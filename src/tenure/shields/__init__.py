"""One file per rule that forbids or bounds an eviction, whatever it is for."""
