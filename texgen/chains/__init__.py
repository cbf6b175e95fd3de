"""A copy beside the MMA it feeds: shared memory → registers → fragment, as one spec (``spec.ChainSpec``).

``build.py`` makes the spec out of a copy and an MMA, ``retile.py`` lays a copy atom over an operand as
``make_tiled_copy_A`` does, ``shared.py`` says where elements lie, ``delivery.py`` what arrives in every register.
"""
