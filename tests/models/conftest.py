"""Fixtures for the tests of the network."""

import pytest
import torch


@pytest.fixture(params=[1, 2])
def _threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)
