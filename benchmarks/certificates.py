"""A certificate for 127.0.0.1 that only the services of a run trust, since every real provider speaks TLS."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

__all__ = ["CERTIFIES", "make_certificate", "trusting"]

CERTIFIES = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip
"""What an authority does: Python 3.13 and newer trust none that does not say so (``ssl.VERIFY_X509_STRICT``)."""
_PASSWORD = "bench"  # noqa: S105 - Java wants one; the file holds nothing secret


def make_certificate(folder: Path) -> Path:
    """Write a certificate with its key, and what Python's and Java's services need to trust it.

    Returns:
        The certificate with its key, as PEM.
    """
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    trusted = _certificate("bench", authority, authority).add_extension(constraints, critical=True)
    trusted = trusted.add_extension(CERTIFIES, critical=True)
    names = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    shown = _certificate("upstream", key, authority).add_extension(names, critical=False)
    own, server = (each.sign(authority, hashes.SHA256()) for each in (trusted, shown))
    store = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(own, b"bench")], serialization.BestAvailableEncryption(_PASSWORD.encode())
    )
    (folder / "trusted.p12").write_bytes(store)
    (folder / "trusted.pem").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "upstream.pem").write_bytes(private + server.public_bytes(serialization.Encoding.PEM))
    return folder / "upstream.pem"


def trusting(folder: Path) -> Mapping[str, str]:
    """The variables by which a service trusts the certificate that was made in a folder, and nothing else."""
    store = f"-Djavax.net.ssl.trustStore={folder / 'trusted.p12'} -Djavax.net.ssl.trustStorePassword={_PASSWORD}"
    return {"SSL_CERT_FILE": str(folder / "trusted.pem"), "JAVA_TOOL_OPTIONS": store}


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    subject, authority = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, "bench"))
    return (
        x509.CertificateBuilder(authority, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
