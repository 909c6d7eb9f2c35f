"""Licences of what is shipped."""

from scripts.audit import ALLOWED, licences


def test_every_package_that_is_shipped_has_a_licence_that_allows_it() -> None:
    found = licences()
    assert len(found) > 20
    assert {name: told for name, told in found.items() if not ALLOWED.search(told)} == {}
