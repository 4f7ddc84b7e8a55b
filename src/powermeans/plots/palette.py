"""Colours that nearly all eyes tell apart, and shapes for print without colour."""

from __future__ import annotations

OKABE_ITO = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#D55E00",  # vermilion
    "#56B4E9",  # sky blue
    "#CC79A7",  # reddish purple
    "#999999",  # grey
)
"""Okabe & Ito (2008) without black, which centers have, and with grey in place of yellow, which
is lost on white paper."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One more than there are colours, so that no pair of colour and shape comes again before 56."""

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY = OKABE_ITO
INK = "#222222"
PALE = "#c3c9d0"


def color_of(label: int) -> str:
    """The colour of a cluster."""
    return OKABE_ITO[label % len(OKABE_ITO)]


def marker_of(label: int) -> str:
    """The shape of its points, in matplotlib's letters."""
    return MARKERS[label % len(MARKERS)]
