"""Palettes against colour science: contrast, grey levels, and the least distance under colour-vision deficiencies."""

from __future__ import annotations

import numpy as np
import pytest

from texgen.errors import UsageError
from texgen.figures.palette import DIM, DIM_INK, INK, MEMORY, PALETTES, palette

# Machado, Oliveira, Fernandes (2009), severity 1.0: linear RGB as a protanope, deuteranope, tritanope sees it.
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(color: str) -> np.ndarray:
    c = np.array([int(color[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio."""
    high, low = sorted((float(XYZ[1] @ linear(c)) for c in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", PALETTES)
def test_labels_can_be_read_on_every_fill(name):
    assert min(contrast(INK, fill) for fill in (*palette(name), MEMORY)) >= 4.5
    assert contrast(DIM_INK, DIM) >= 4.0


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_default_palette_is_told_apart_by_everyone(deficiency):
    colors = [lab(DEFICIENCIES[deficiency] @ linear(c)) for c in palette("default")]
    assert min(np.linalg.norm(a - b) for i, a in enumerate(colors) for b in colors[:i]) >= 15


@pytest.mark.parametrize("name", ["default", "grey"])
def test_told_apart_in_grey(name):
    levels = sorted(lab(linear(c))[0] for c in palette(name))
    assert np.diff(levels).min() >= (5 if name == "default" else 3)


def test_unknown_palette():
    with pytest.raises(UsageError, match="did you mean grey"):
        palette("gray")
