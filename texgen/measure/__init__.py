"""Runs kernels on a GPU and writes result files with their provenance; see ``texgen.measure.bench``."""
