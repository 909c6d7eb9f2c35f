"""What the service logs while the tests of its server run."""

import logging

import pytest


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log, from INFO on."""
    caplog.set_level(logging.INFO, logger="toolchat")
    return caplog
