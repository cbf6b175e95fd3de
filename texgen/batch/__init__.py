"""Many figures in one call: a list, workers, and files that are whole or not there."""
