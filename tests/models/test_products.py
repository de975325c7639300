"""Compiled matrix products against numpy in double precision."""

import numpy as np
import pytest
import torch

from mh4.models import products
from mh4.models.layers import Linear, with_our_products
from mh4.models.products import COLUMNS, add_products, multiply, multiply_transposed

# (rows, inner size, columns): no rows, less than a tile, whole tiles, tall tiles both full and partial, overlapping
# tiles, and enough work for a second thread.
SHAPES = [
    (0, 3, COLUMNS),
    (1, 1, COLUMNS),
    (3, 5, COLUMNS - 1),
    (4, 2, 3 * COLUMNS),
    (8, 6, COLUMNS),
    (21, 4, COLUMNS + 3),
    (7, 33, COLUMNS + 1),
    (130, 70, 2 * COLUMNS + 5),
]


@pytest.fixture(params=[True, False])
def _wide_registers(request, monkeypatch):
    monkeypatch.setattr(products, "WIDE_REGISTERS", request.param)


def matrix(rows, columns, seed):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32))


def close(found, wanted):
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("_threads", "_wide_registers")
@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_multiply(rows, inner, columns):
    a, b, bias = matrix(rows, inner, 1), matrix(inner, columns, 2), matrix(1, columns, 3)[0]
    product = a.double().numpy() @ b.double().numpy()
    close(multiply(a, b), product)
    close(multiply(a, b, bias), product + bias.numpy())


@pytest.mark.parametrize("columns", [COLUMNS, 2 * COLUMNS + 5])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 8, 13, 20])
def test_products_are_added_to_some_rows(count, columns):
    generator = np.random.default_rng(count)
    a, b, out = (matrix(*shape, 9).numpy() for shape in ((23, 7), (5, columns), (24, columns + 3)))
    a_rows, out_rows = generator.integers(0, 23, 20), generator.permutation(24)[:20]
    wanted = out.astype(float)
    wanted[out_rows[:count], 2 : columns + 2] += a[a_rows[:count], 1:6].astype(float) @ b
    add_products(a, a_rows, 1, b, out, out_rows, 2, count)
    np.testing.assert_allclose(out, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("_threads", "_wide_registers")
@pytest.mark.parametrize(("inner", "rows", "columns"), SHAPES)
def test_multiply_transposed(inner, rows, columns):
    a, b = matrix(inner, rows + 6, 4), matrix(inner, columns + 3, 5)
    wanted = a.double().numpy()[:, 6:].T @ b.double().numpy()[:, 2 : columns + 2]
    close(multiply_transposed(a, b, slice(6, None), slice(2, columns + 2)), wanted)
    close(multiply_transposed(a, b), a.double().numpy().T @ b.double().numpy())


@pytest.mark.usefixtures("_threads", "_wide_registers")
@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_linear_is_the_one_of_pytorch(rows, inner, columns):
    torch.manual_seed(6)
    linear = Linear(inner, columns)
    torch.nn.init.normal_(linear.bias)
    x, upstream = matrix(2 * rows, inner, 7).view(2, rows, inner), matrix(2 * rows, columns, 8).view(2, rows, columns)
    results = []
    for function in (linear, lambda x: torch.nn.functional.linear(x, linear.weight, linear.bias)):
        own_x = x.clone().requires_grad_()
        linear.zero_grad()
        y = function(own_x.transpose(0, 1))  # rows are not contiguous
        y.backward(upstream.transpose(0, 1))
        results.append((y, own_x.grad, linear.weight.grad, linear.bias.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    with torch.inference_mode():
        torch.testing.assert_close(linear(x.transpose(0, 1)), results[1][0].detach(), atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("bias", [True, False])
def test_layers_of_another_package_take_our_products(bias):
    model = torch.nn.Sequential(torch.nn.Linear(9, COLUMNS + 3, bias=bias), torch.nn.GELU())
    x = matrix(5, 9, 10).view(1, 5, 9)
    results = []
    for ours in (False, True):
        if ours:
            with_our_products(model)
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        results.append([y, *(weight.grad for weight in model.parameters())])
    assert type(model[0]) is Linear
    for before, after in zip(*results, strict=True):
        torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_layers_of_another_package_may_change_products_in_place():
    layer = Linear(9, COLUMNS)
    product = layer(matrix(5, 9, 10).view(1, 5, 9)).permute(0, 2, 1)
    product /= 2
    product.sum().backward()
    assert layer.bias.grad.tolist() == [2.5] * COLUMNS


@pytest.mark.usefixtures("_wide_registers")
def test_large_matrices_are_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(products, "LARGE", 5 * COLUMNS - 1)
    for name in ("_multiply", "_multiply_transposed"):
        monkeypatch.setattr(products, name, None)
    a, b = matrix(7, 5, 11), matrix(5, COLUMNS, 12)
    close(multiply(a, b), a.numpy() @ b.numpy())
    transposed = matrix(7, COLUMNS, 13)
    close(multiply_transposed(a, transposed), a.numpy().T @ transposed.numpy())
