"""The version of stored records: during an upgrade, processes of two versions share the store.

Each record that is a JSON object carries it. A number or a text, such as a count or a digest, has none.
"""

from typing import Annotated, Final

from pydantic import AfterValidator

from toolchat.errors import StoreUnavailable

RECORD_VERSION: Final = 1
"""The version that is written.

Raise it if an older process would misread the new records. A new field that older processes may ignore does not need
another version.
"""


def check_version(version: int) -> int:
    """Check that this process can read a record.

    Raises:
        StoreUnavailable: a newer process wrote it; a retry may reach that one.
    """
    if version > RECORD_VERSION:
        raise StoreUnavailable("a newer version of the service stored this; only that version reads it", retry_after=1)
    return version


RecordVersion = Annotated[int, AfterValidator(check_version)]
"""The type of a record's field ``version``."""
