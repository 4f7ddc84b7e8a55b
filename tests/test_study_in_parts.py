"""Criteria of rows in parts, against those of the same rows in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powermeans import choose_k, open_data
from powermeans.choosing_k import _Scaled
from powermeans.datasets.generated import blobs as make_blobs  # noqa: F401
from powermeans.input_checks import admit
from powermeans.search import Solution
from powermeans.verdicts import CRITERIA, Settings, Study
from powermeans.centers_by_k import EFFORTS_FOR_EACH_K
