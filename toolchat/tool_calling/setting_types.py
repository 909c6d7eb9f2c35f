"""Field types for settings, as tools and providers declare them: secrets and URLs."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr


def strip_text(value: Any) -> Any:
    """Strip surrounding whitespace from a text; any other value is returned unchanged."""
    return value.strip() if isinstance(value, str) else value


def _require_header_safe(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII without line breaks")
    return value


def _require_url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.isascii() or " " in value:
        raise ValueError("must be a URL in ASCII that starts with http:// or https://")
    try:
        parts = urlsplit(value)
        # Credentials in a URL would compete with the API key, and error messages that show the URL would leak them.
        is_usable = bool(parts.hostname) and (parts.port is None or parts.port > 0) and "@" not in parts.netloc
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("must be a URL with a host, a port between 1 and 65535 if any, and no user name or password")
    return value.rstrip("/")


def _refuse_query(value: str) -> str:
    if "?" in value or "#" in value:
        raise ValueError("must be a URL without ? and #, because paths are appended to it")
    return value


Secret = Annotated[SecretStr, BeforeValidator(strip_text), AfterValidator(_require_header_safe)]
"""A secret: surrounding whitespace is stripped, and it is never printed.

Call ``get_secret_value()`` at each use: the file of a secret may be read again while the service runs.
"""

Url = Annotated[str, BeforeValidator(strip_text), AfterValidator(_require_url)]
"""A URL without a trailing slash."""

BaseUrl = Annotated[Url, AfterValidator(_refuse_query)]
"""A URL to which paths are appended."""
