"""Files as documents: YAML and JSON into plain values with their lines, and back."""
