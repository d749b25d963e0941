"""A real Kubernetes control plane on this machine, for tests and demonstrations; built from Go modules."""
