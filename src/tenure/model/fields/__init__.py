"""What a field may hold: one definition for reading, writing, overriding and the schema."""
