"""What was drawn, as numbers and words."""

import numpy as np


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def heights(ax):
    return np.array([patch.get_height() for patch in ax.patches])


def widths(ax):
    return np.array([patch.get_width() for patch in ax.patches])
