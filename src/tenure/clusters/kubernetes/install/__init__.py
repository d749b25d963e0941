"""Installation: custom resource definitions, rights and manifests."""
