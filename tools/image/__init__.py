"""Builds the container image without a container engine, and what goes into it for one that has an engine.

    python -m tools.image build dist/image          # an OCI layout for amd64 and arm64, with an SBOM
    python -m tools.image rootfs dist/root --arch arm64     # the root file system alone: what the Containerfile does

Both take the same steps: packages of Debian with a Python and the libraries that it needs, then the project's wheel and
what that needs from the package index. Nothing of it is run while it is built, so that an image for another processor
is built as well. There is no shell in it and no package manager.
"""
