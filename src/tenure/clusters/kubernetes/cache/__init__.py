"""The informer cache: what the watches brought, as the model has it."""
