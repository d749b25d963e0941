"""Manifests of Kubernetes, read into what the model has: pods, their claims, what owns them."""
