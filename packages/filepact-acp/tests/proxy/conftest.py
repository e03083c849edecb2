"""A proxy between an editor that can read and write files and an agent."""

import pytest

from tests.faces.acp.proxy.rig import BOTH, Rig


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path, fs=BOTH) as made:
        yield made
