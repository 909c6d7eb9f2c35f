"""The images of a question: their number and size, and the check that each is what it says."""

import re
from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

from toolchat.errors import BodyTooLarge, InvalidRequest, ValidationFailed
from toolchat.service.api.body_limits import MAX_IMAGES_BYTES
from toolchat.service.api.service import ServiceState

_DATA = re.compile("data:image/(png|jpeg|gif|webp);base64,", re.ASCII)
_SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}

_URL = {"type": "string", "pattern": f"^{_DATA.pattern}"}
IMAGES_SCHEMA: dict[str, Any] = {"type": "array", "items": _URL, "maxItems": 4}
IMAGES_DESCRIPTION = (
    "Images for a model that takes them (`takes_images` of `GET /`): data URLs of at most 4 MiB together. "
    "The session stores a note in their place"
)


def checked_images(urls: Sequence[str], service: ServiceState) -> tuple[str, ...]:
    """The data URLs of a question's images; ``InvalidRequest`` if the model takes none, ``ValidationFailed``."""
    if urls and not service.chat.model.takes_images:
        raise InvalidRequest(f"images: the model {service.model_label} takes no images")
    if sum(map(len, urls)) > MAX_IMAGES_BYTES:
        raise BodyTooLarge(f"images: are longer than {MAX_IMAGES_BYTES} bytes together")
    for place, url in enumerate(urls):
        match = _DATA.match(url)
        if match is None:
            raise ValidationFailed(f"images[{place}]: must be a data URL of a png, jpeg, gif or webp image in base64")
        try:
            content = a2b_base64(url[match.end() :], strict_mode=True)
        except ValueError:
            content = b""
        if not content.startswith(_SIGNATURES[match[1]]):
            raise ValidationFailed(f"images[{place}]: holds no {match[1]} image")
    return tuple(urls)
