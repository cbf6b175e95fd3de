"""Handouts: a sheet of figures with blank cells and questions, and its key, made from specs.

``questions`` and its ``ask_*`` modules make questions with their answers, ``figure`` blanks cells, ``sheet`` puts both on
paper, ``catalogue`` has every sentence.
"""
