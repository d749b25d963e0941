"""The adapter to a Kubernetes API server: what is observed there, and how plans are carried out.

Only this room knows Kubernetes' API. It needs the extra ``kubernetes``.
"""
