"""What the parts of a control plane prove themselves with: a certificate of its own, a signing key, tokens."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tools.controlplane.process import HOST

ADMINISTRATORS: Final = "system:masters"
USERS: Final = {
    "admin": ("admin", ADMINISTRATORS),
    "controllers": ("system:kube-controller-manager", ADMINISTRATORS),
    "scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", ADMINISTRATORS),
}
"""Who has a token: the user's name and group by a word for it."""


@dataclass(frozen=True)
class Credentials:
    """Files for the programs, all in one folder, and the tokens by the words of `USERS`."""

    authority: Path
    certificate: Path
    key: Path
    service_account_key: Path
    service_account_public: Path
    token_file: Path
    tokens: dict[str, str]


def make_credentials(folder: Path) -> Credentials:
    """Make an authority, a certificate for loopback signed by it, a key for service accounts, and tokens."""
    made = Credentials(
        authority=folder / "ca.crt",
        certificate=folder / "server.crt",
        key=folder / "server.key",
        service_account_key=folder / "sa.key",
        service_account_public=folder / "sa.pub",
        token_file=folder / "tokens.csv",
        tokens={word: secrets.token_hex(16) for word in USERS},
    )
    _certificates(made)
    account = ec.generate_private_key(ec.SECP256R1())
    _write_key(made.service_account_key, account)
    public = account.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    made.service_account_public.write_bytes(public)
    lines = [f'{made.tokens[word]},{user},{word},"{group}"' for word, (user, group) in USERS.items()]
    made.token_file.write_text("\n".join(lines) + "\n")
    made.token_file.chmod(0o600)
    return made


def write_kubeconfig(path: Path, server: str, token: str, authority: Path, *, namespace: str = "default") -> Path:
    """Write a kubeconfig with one user, by which `kubectl` and Tenure find the server, and give its path."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "local", "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": namespace}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def _certificates(to: Credentials) -> None:
    root_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "control plane for tests")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(root_key.public_key())
    root = (
        _unsigned(root_name, root_name, root_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
    served = (
        _unsigned(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]), root_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    to.authority.write_bytes(root.public_bytes(Encoding.PEM))
    to.certificate.write_bytes(served.public_bytes(Encoding.PEM))
    _write_key(to.key, key)


def _unsigned(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=30))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
