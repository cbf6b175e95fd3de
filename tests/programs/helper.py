"""A neighbour that good.py imports."""

ATOMS = (2, 2, 1)
