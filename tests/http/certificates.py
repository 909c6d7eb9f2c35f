"""An authority of the test's own, and what it certifies."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bench.certificates import CERTIFIES

__all__ = ["Authority"]

_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])


class Authority:
    """Certifies servers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = _certificate(self._key, self._key, 10).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        own = own.add_extension(CERTIFIES, True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def server(self, address: str = "127.0.0.1", days: int = 10) -> ssl.SSLContext:
        """What a server needs that shows a certificate for an address, valid for some days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        signed = _certificate(key, self._key, days).add_extension(names, False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{address}{days}.pem"
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _certificate(
    key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    subject = _NAME if key is issuer else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    return (
        x509.CertificateBuilder(_NAME, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )
