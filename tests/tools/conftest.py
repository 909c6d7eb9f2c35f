"""What keeps a service clean that several tests of a module share."""

from collections.abc import Iterator

import pytest

from tests.deploy.env_example import variables


@pytest.fixture(scope="module", autouse=True)
def _settings_of_nobody_for_a_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the developer's own keys and ``.env`` away: what guards each test comes too late for a module's fixture."""
    with pytest.MonkeyPatch.context() as patch:
        for name in variables():
            patch.delenv(name, raising=False)
        patch.chdir(tmp_path_factory.mktemp("module"))
        yield
