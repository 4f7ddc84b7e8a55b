"""Sweeps by the fused kernels: distances and what is made of them in one go."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from powermeans.rows.torch import formulas
from powermeans.rows.torch.formulas import Added, Part, Seen, View
from powermeans.rules import Gaussian, Hard, Harmonic, Power, Rule
from powermeans.types import FloatArray

# A point nearer than this share of the squares that its distance is the difference of has lost
# digits, and is swept in float64.
_CANCELLATION = 1 / 256
# The least distance that a float32 tells from zero with all its digits.
_LEAST = 1e-30
MOST_FEATURES_SOFT = 256
_POINTS_OF_CHUNK = 256
_CHUNKS_AT_ONCE = 32
# Sums of one stretch are in float32, those of stretches in float64.
_POINTS_OF_STRETCH = 16_384
_POINTS_OF_TILE = 64
_MOST_ENTRIES_OF_STRETCHES = 2**25
# Labels below this fit into 16 bits, which are sorted sooner.
_MOST_SHORT_LABELS = 2**15
# As Triton has always done it; newer ones warn where nobody says so.
_LAUNCH = {"enable_fp_fusion": True}
PRODUCTS = {"highest": "tf32x3", "high": "tf32"}


@dataclass(frozen=True, slots=True)
class Fused:
    """Sweeps over parts of the points.

    Parameters
    ----------
    view : View
        Of float32.
    precision : {"highest", "high"}
        As `torch.set_float32_matmul_precision` has it.
    n_at_once : int
        Points of a block, for those that need float64.
    """

    view: View
    precision: str
    n_at_once: int

    def can_sweep(self, rule: Rule, seen: Seen) -> bool:
        """Whether there is a kernel for this rule with so many features."""
        if isinstance(rule, (Power, Harmonic, Gaussian)):
            return bool(seen.slopes.shape[1] <= MOST_FEATURES_SOFT)
        return isinstance(rule, Hard)

    def labels(self, part: Part, seen: Seen, exact: Seen) -> torch.Tensor:
        """Nearest center of each point, the first of several, int32."""
        with _current(part.points):
            return self._labels(part, seen, exact)

    def sweep(self, part: Part, seen: Seen, exact: Seen, rule: Rule) -> Added:
        """Weigh these points by the rule and add up."""
        with _current(part.points):
            if isinstance(rule, Hard):
                return self._by_label(part, exact, self._labels(part, seen, exact))
            return self._softly(part, seen, exact, rule)

    # The hard rule.

    def _labels(self, part: Part, seen: Seen, exact: Seen) -> torch.Tensor:
        kernels = _kernels()
        n_points, n_centers, n_features = _sizes(part, seen)
        labels = torch.empty(n_points, dtype=torch.int32, device=part.points.device)
        least = torch.empty(n_points, dtype=torch.float32, device=part.points.device)
        used = self._rounded(part, seen)
        tiles = nearest_tiles(used.slopes.dtype, self.precision, n_features, n_centers)
        kernels.nearest_kernel[(_parts(n_points, tiles["ROWS"]),)](
            *self._inputs(part, used),
            labels,
            least,
            n_points,
            n_centers,
            n_features,
            self.view.scale,
            **tiles,
            **_LAUNCH,
            **self._choices(used),
        )
        spoilt = self._spoilt(part, seen, least, is_soft=False)
        if len(spoilt):
            labels[spoilt] = self._exact_labels(part[spoilt], exact)
        return labels

    def _by_label(self, part: Part, exact: Seen, labels: torch.Tensor) -> Added:
        n_centers, n_features = exact.slopes.shape
        if not exact.is_euclidean:
            return self._by_label_and_height(part, exact, labels)
        chunks = _Chunks.of(labels, n_centers)
        like = {"dtype": torch.float64, "device": labels.device}
        sums = torch.zeros((chunks.n_chunks, n_features), **like)
        figures = torch.zeros((2, chunks.n_chunks), **like)
        _kernels().cluster_sums_kernel[(chunks.n_chunks,)](
            part.points,
            self._origin(part),
            exact.slopes,
            part.weights,
            chunks.order,
            chunks.offsets,
            chunks.clusters,
            chunks.first_chunks,
            sums,
            figures[0],
            figures[1],
            n_centers,
            n_features,
            self.view.scale,
            LENGTH=_POINTS_OF_CHUNK,
            ROWS=32,
            FEATURES=min(128, _power_of_two(n_features)),
            IS_MOVED=self._is_moved(),
            **_LAUNCH,
        )
        inertia = figures[1].sum()
        weights = chunks.add(figures[0][:, None].contiguous())[:, 0]
        return Added(chunks.add(sums), weights, inertia, inertia)

    def _by_label_and_height(self, part: Part, exact: Seen, labels: torch.Tensor) -> Added:
        """Where distances are not those to places: the inertia by heights and slopes."""
        places = Seen(torch.zeros_like(exact.slopes), exact.lifts, True)
        added = self._by_label(part, places, labels)
        inertia = torch.zeros_like(added.inertia)
        for rows, block in part.in_blocks(self.n_at_once):
            own = formulas.to_own(block, exact, self.view, labels[rows])
            inertia += torch.dot(block.weights, own)
        return Added(added.points, added.weights, inertia, inertia)

    def _exact_labels(self, part: Part, exact: Seen) -> torch.Tensor:
        view, found = self.view.in_dtype(torch.float64), []
        for _, block in part.in_blocks(self.n_at_once):
            distances, _ = formulas.distances(block, exact, view)
            found.append(formulas.nearest(distances)[1].int())
        return torch.cat(found)

    # Soft rules.

    def _softly(self, part: Part, seen: Seen, exact: Seen, rule: Rule) -> Added:
        n_points, n_centers, n_features = _sizes(part, seen)
        references, log_sums, least = torch.empty(
            (3, n_points), dtype=torch.float32, device=part.points.device
        )
        used, shares = self._rounded(part, seen), self._shares(rule, seen)
        is_gaussian = isinstance(rule, Gaussian)
        tiles = nearest_tiles(used.slopes.dtype, self.precision, n_features, n_centers)
        _kernels().log_sums_kernel[(_parts(n_points, tiles["ROWS"]),)](
            *self._inputs(part, used),
            shares,
            references,
            log_sums,
            least,
            n_points,
            n_centers,
            n_features,
            self.view.scale,
            self._slope(rule),
            **tiles,
            **_LAUNCH,
            **self._choices(used),
            IS_GAUSSIAN=is_gaussian,
        )
        terms = self._terms(rule, references, log_sums, n_centers)
        spoilt = self._spoilt(part, seen, least, is_soft=True)
        logs = (terms.terms + torch.log(part.weights)).float()
        logs[spoilt] = -torch.inf
        weights = part.weights.clone()
        weights[spoilt] = 0.0
        sums, of_centers = self._soft_sums(part, used, shares, references, logs, rule)
        added = Added(
            sums,
            of_centers,
            torch.dot(weights, terms.objectives),
            torch.dot(weights, least.double()),
        )
        for _, block in part[spoilt].in_blocks(self.n_at_once):
            view = self.view.in_dtype(torch.float64)
            added += formulas.sweep(block, exact, view, rule)
        return added

    def _soft_sums(
        self,
        part: Part,
        used: Seen,
        shares: torch.Tensor,
        references: torch.Tensor,
        logs: torch.Tensor,
        rule: Rule,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        n_points, n_centers, n_features = _sizes(part, used)
        rows_of_stretch = _rows_of_stretch(n_points, n_centers, n_features)
        n_stretches = _parts(n_points, rows_of_stretch)
        like = {"dtype": torch.float32, "device": part.points.device}
        sums = torch.empty((n_stretches, n_centers, n_features), **like)
        weights, highest = torch.empty((2, n_stretches, n_centers), **like)
        tiles = soft_tiles(self.precision, n_features, n_centers)
        _kernels().soft_sums_kernel[(_parts(n_centers, tiles["COLS"]), n_stretches)](
            *self._inputs(part, used),
            shares,
            references,
            logs,
            sums,
            weights,
            highest,
            n_points,
            n_centers,
            n_features,
            self.view.scale,
            self._slope(rule) - (0.0 if isinstance(rule, Gaussian) else 1.0),
            rows_of_stretch,
            **tiles,
            **_LAUNCH,
            **self._choices(used),
            IS_GAUSSIAN=isinstance(rule, Gaussian),
            SUM_PRECISION=PRODUCTS[self.precision],
        )
        factors = torch.exp(highest.double())
        of_centers = (weights.double() * factors).sum(0)
        return (sums.double() * factors[:, :, None]).sum(0), of_centers

    def _terms(
        self, rule: Rule, references: torch.Tensor, log_sums: torch.Tensor, n_centers: int
    ) -> formulas.RowTerms:
        wide, logs, scale = references.double(), log_sums.double(), self.view.scale
        if isinstance(rule, Gaussian):
            return formulas.gaussian_terms(rule, wide, logs, scale)
        assert isinstance(rule, (Power, Harmonic))
        return formulas.power_terms(rule, wide, logs, n_centers, scale)

    def _slope(self, rule: Rule) -> float:
        """The power, or one over twice the variance."""
        if isinstance(rule, Gaussian):
            return 1 / (2 * formulas.variance_in_unit(rule, self.view.scale))
        return max(rule.power, -1e30)

    def _shares(self, rule: Rule, seen: Seen) -> torch.Tensor:
        """2 v log q_j of Gaussians; something of that shape otherwise."""
        if not isinstance(rule, Gaussian):
            return seen.lifts
        variance = formulas.variance_in_unit(rule, self.view.scale)
        logs: FloatArray = 2 * variance * formulas.log_shares(rule, len(seen.lifts))
        return torch.as_tensor(logs, dtype=torch.float32, device=seen.lifts.device)

    # What kernels are given.

    def _inputs(self, part: Part, used: Seen) -> tuple[torch.Tensor, ...]:
        return (part.points, self._origin(part), used.slopes, used.lifts, part.heights.float())

    def _choices(self, used: Seen) -> dict[str, Any]:
        return {
            "IS_DIRECT": used.is_direct,
            "IS_MOVED": self._is_moved(),
            "PRECISION": PRODUCTS[self.precision],
        }

    def _is_moved(self) -> bool:
        return self.view.origin is not None or self.view.scale != 1

    def _origin(self, part: Part) -> torch.Tensor:
        if self.view.origin is not None:
            return self.view.origin
        return torch.zeros(part.points.shape[1], dtype=torch.float32, device=part.points.device)

    def _rounded(self, part: Part, seen: Seen) -> Seen:
        """The centers as 16-bit products take them, where those were asked for."""
        half = part.points.dtype
        if half == torch.float32 or self.precision == "highest" or seen.is_direct:
            return seen
        if not seen.is_euclidean:
            return seen
        slopes = seen.slopes.to(half)
        return Seen(slopes, slopes.float().square().sum(1), True)

    def _spoilt(self, part: Part, seen: Seen, least: torch.Tensor, is_soft: bool) -> torch.Tensor:
        """Which points have lost digits by cancellation, or are at a center."""
        if seen.is_direct:
            limits = torch.full_like(least, _LEAST if is_soft else -1.0)
        elif seen.is_euclidean:
            limits = (_CANCELLATION * part.heights).clamp(min=_LEAST)
        else:
            limits = torch.full_like(least, _LEAST)
        return torch.nonzero(least < limits)[:, 0]


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The points sorted by label, cut into chunks of one cluster each."""

    order: torch.Tensor
    offsets: torch.Tensor
    clusters: torch.Tensor
    first_chunks: torch.Tensor

    @classmethod
    def of(cls, labels: torch.Tensor, n_centers: int) -> _Chunks:
        keys = labels.to(torch.int16) if n_centers <= _MOST_SHORT_LABELS else labels
        in_order, order = torch.sort(keys, stable=True)
        bounds = torch.arange(n_centers + 1, device=labels.device)
        offsets = torch.searchsorted(in_order.int(), bounds.int())
        per_cluster = torch.diff(offsets).add_(_POINTS_OF_CHUNK - 1) // _POINTS_OF_CHUNK
        first_chunks = torch.zeros_like(offsets)
        first_chunks[1:] = torch.cumsum(per_cluster, 0)
        # As many as there can be, so that the host need not wait to know how many there are.
        n_chunks = len(labels) // _POINTS_OF_CHUNK + n_centers
        every = torch.arange(n_chunks, device=labels.device)
        clusters = torch.searchsorted(first_chunks[1:].contiguous(), every, right=True)
        return cls(order, offsets, clusters, first_chunks)

    @property
    def n_chunks(self) -> int:
        """How many there are, with the spare ones."""
        return len(self.clusters)

    def add(self, parts: torch.Tensor) -> torch.Tensor:
        """The sums of clusters from those of chunks."""
        n_centers, n_features = len(self.offsets) - 1, parts.shape[1]
        sums = torch.empty((n_centers, n_features), dtype=torch.float64, device=parts.device)
        width = min(64, _power_of_two(n_features, least=1))
        _kernels().add_chunks_kernel[(n_centers, _parts(n_features, width))](
            parts,
            self.first_chunks,
            sums,
            n_features,
            ROWS=_CHUNKS_AT_ONCE,
            FEATURES=width,
            **_LAUNCH,
        )
        return sums


def why_not(points: torch.Tensor, device: torch.device) -> str | None:
    """What keeps the kernels from these points, if anything does."""
    if points.dtype == torch.float64:
        return "the points are float64"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"Triton has no kernels for {device}"
    try:
        _kernels()
    except ImportError:
        return "Triton is not installed"
    return None


def _kernels() -> Any:
    from powermeans.rows.torch import kernels

    return kernels


def _current(points: torch.Tensor) -> AbstractContextManager[Any]:
    """The GPU of these points is the one that kernels run on."""
    return torch.cuda.device(points.device) if points.is_cuda else nullcontext()


def _sizes(part: Part, seen: Seen) -> tuple[int, int, int]:
    return len(part.points), *seen.slopes.shape


def _parts(total: int, size: int) -> int:
    return -(-total // size)


def _power_of_two(number: int, least: int = 16) -> int:
    return max(least, 1 << (number - 1).bit_length())


def nearest_tiles(
    dtype: torch.dtype, precision: str, n_features: int, n_centers: int
) -> dict[str, Any]:
    """How much a program of the kernels of a point block holds at a time.

    The largest that, compiled for compute capability 9.0, keep all in registers and in the shared
    memory that every card has.
    """
    is_half = dtype != torch.float32
    features = min(128 if is_half else 32, _power_of_two(n_features))
    return {
        "ROWS": 128,
        "COLS": min(128 if is_half or precision == "high" else 64, _power_of_two(n_centers)),
        "FEATURES": features,
        "IS_ONE_TILE": n_features <= features,
        "num_warps": 8,
        "num_stages": 3 if is_half else 2,
    }


def soft_tiles(precision: str, n_features: int, n_centers: int) -> dict[str, Any]:
    """The same for sums over points."""
    features = min(32, _power_of_two(n_features))
    return {
        "ROWS": 64 if precision == "high" else 32,
        "COLS": min(64, _power_of_two(n_centers)),
        "FEATURES": features,
        "WIDTH": _power_of_two(n_features),
        "IS_ONE_TILE": n_features <= features,
        "num_warps": 8,
        "num_stages": 2,
    }


def _rows_of_stretch(n_points: int, n_centers: int, n_features: int) -> int:
    most_stretches = max(1, _MOST_ENTRIES_OF_STRETCHES // (n_centers * n_features))
    least = _parts(n_points, most_stretches)
    wanted = min(max(_POINTS_OF_STRETCH, least), n_points)
    return _parts(wanted, _POINTS_OF_TILE) * _POINTS_OF_TILE
