"""Vectors cut and scaled."""

from __future__ import annotations

import numpy as np
import pytest

from puna.service.vectors import Floats, shape

ROW = np.array([[3.0, -4.0, 0.0, 12.0]], np.float32)


def norm(vector: Floats, p: float) -> float:
    return float((np.abs(vector.astype(np.float64)) ** p).sum() ** (1 / p))


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_a_p_norm_becomes_one(p: int) -> None:
    scaled = shape(ROW, dimensions=None, norm=p)
    assert norm(scaled[0], p) == pytest.approx(1, abs=1e-6)
    assert np.allclose(scaled[0] / scaled[0][0], ROW[0] / ROW[0][0])


def test_other_scalings() -> None:
    assert shape(ROW, dimensions=None, norm=-1).tolist() == ROW.tolist()
    assert shape(ROW, dimensions=None, norm=0).tolist() == [[8190.0, -10920.0, 0.0, 32760.0]]


def test_high_powers_do_not_overflow() -> None:
    scaled = shape(ROW * 1e30, dimensions=None, norm=2_000_000_000)
    assert scaled[0].tolist() == pytest.approx([0.25, -1 / 3, 0, 1])


@pytest.mark.parametrize("p", [0, 1, 2, 9])
def test_a_vector_of_zeros_stays_one(p: int) -> None:
    assert shape(np.zeros((2, 3), np.float32), dimensions=None, norm=p).tolist() == [[0.0] * 3] * 2


def test_what_is_cut_is_scaled_again() -> None:
    assert shape(ROW, dimensions=2, norm=2)[0].tolist() == pytest.approx([0.6, -0.8])
    assert shape(ROW, dimensions=2, norm=-1)[0].tolist() == [3.0, -4.0]


def test_every_row_is_scaled_on_its_own() -> None:
    rows = np.array([[3.0, 4.0], [0.0, -2.0]], np.float32)
    assert shape(rows, dimensions=None, norm=2).tolist() == [pytest.approx([0.6, 0.8]), [0.0, -1.0]]
