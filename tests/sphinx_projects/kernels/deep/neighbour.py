ATOMS = (2, 2, 1)
