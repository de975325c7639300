"""Where tensors are computed."""

import pytest

from mh4.models.devices import choose_device


def test_devices():
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="known: auto, cpu, cuda"):
        choose_device("tpu")
