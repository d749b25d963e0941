"""Single values as people write them, in exact units, and what is wrong with one."""
