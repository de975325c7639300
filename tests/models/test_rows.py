"""Gradients of rows that are taken several times are summed in a fixed order."""

import numpy as np
import pytest
import torch

from mh4.models.rows import take_cells, take_rows


@pytest.mark.parametrize("cells", [(), (5,)])
def test_cells_and_gradients_are_those_of_indexing(cells):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 4, *cells, generator=generator, requires_grad=True)
    rows, columns = torch.tensor([2, 0, 2, 1, 2, 0]), torch.tensor([1, 3, 1, 0, 0, 3])
    weights = torch.randn(6, *cells, generator=generator)
    gradients = []
    for taken in (take_cells(x, rows, columns), x[rows, columns]):
        (gradient,) = torch.autograd.grad((taken * weights).sum(), x)
        gradients.append((taken.detach(), gradient))
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.equal(ours, theirs)


def test_gradients_are_added_up_in_the_order_of_the_rows():
    """In float32, 2²⁴ + 1 = 2²⁴, so the sum reveals the order of additions."""
    large, one = 2.0**24, 1.0
    for order, total in (((large, one, one, -large), 0.0), ((one, one, large, -large), 2.0)):
        x = torch.zeros(2, 1, requires_grad=True)
        take_rows(x, torch.ones(4, dtype=torch.int64)).backward(torch.tensor(order)[:, None])
        assert x.grad.tolist() == [[0.0], [total]]


def test_without_gradients_rows_are_selected():
    x = torch.arange(6.0).view(3, 2)
    assert take_rows(x, torch.tensor([2, 2])).tolist() == [[4.0, 5.0]] * 2
    with torch.no_grad():
        assert not take_rows(x.clone().requires_grad_(), torch.tensor([1])).requires_grad
    part = torch.zeros(4, 6, requires_grad=True)[:, 2:4]  # not contiguous
    take_rows(part, torch.tensor([3, 3])).sum().backward()
    assert np.count_nonzero(part.detach()) == 0
