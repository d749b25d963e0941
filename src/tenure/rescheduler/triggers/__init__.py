"""Reasons to move what runs, one file each: ``act(action, …)`` plans and carries out."""
