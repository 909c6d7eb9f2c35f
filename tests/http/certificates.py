"""A certificate authority of the tests' own, and its certificates."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_CERTIFIES = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip
"""What an authority does: Python 3.13 and newer trust none that does not say so (``ssl.VERIFY_X509_STRICT``)."""


class Authority:
    """Certifies servers and clients.

    Args:
        strict: whether its own certificate passes Python's strict check, unlike those of many companies' proxies.
    """

    def __init__(self, folder: Path, *, strict: bool = True) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "authority.pem"
        own = self._certificate(folder.name, self._key, 10).add_extension(
            x509.BasicConstraints(True, 0), critical=strict
        )
        if strict:
            own = _with_identifiers(own.add_extension(_CERTIFIES, critical=True), self._key, self._key)
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def certificate(self, address: str = "127.0.0.1", days: int = 10, password: bytes = b"") -> Path:
        """Write the key and the certificate of an address or a name, valid for some days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_general_name(address)])
        signed = _with_identifiers(self._certificate("server", key, days).add_extension(names, False), key, self._key)
        hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
        file = self._folder / f"{address}{days}{password.decode()}.pem"
        public = signed.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        file.write_bytes(private + public)
        return file

    def server(self, address: str = "127.0.0.1", days: int = 10, *, of_clients: bool = False) -> ssl.SSLContext:
        """What a server needs that shows a certificate, and demands one of its clients if so told."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate(address, days))
        if of_clients:
            context.load_verify_locations(self.file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _certificate(self, name: str, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        issuer, subject = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (self._folder.name, name)
        )
        return (
            x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
        )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _with_identifiers(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(authority, critical=False).add_extension(own, critical=False)
