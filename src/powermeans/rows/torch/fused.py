"""Sweeps by the fused kernels, which write no distances to memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from powermeans.rows.torch import formulas
from powermeans.rows.torch.formulas import Added, Part, Planes, View
from powermeans.rows.torch.placing import blocks
from powermeans.rules import Gaussian, Hard, Harmonic, Power, Rule
from powermeans.types import FloatArray

# A distance is a difference of squares. Below this share of them it has lost digits, and its point
# is swept in float64.
_CANCELLATION = 1 / 256
# The error of products in the difference of two distances, in units of the same squares.
_ALIKE = {"highest": 2.0**-14, "high": 2.0**-6}
# Float32 holds all digits of distances down to this.
_LEAST = 1e-30
MOST_FEATURES_SOFT = 256
# The two passes of soft rules compute distances by different instructions, with different rounding,
# which the power multiplies in the weights. Plain PyTorch computes them once.
STEEPEST_POWER = -1024.0
# The two passes may differ this much in a distance, in units of the squares of its difference,
_UNLIKE = 2.0**-23
# and this much, relatively, in a weight.
_UNLIKE_WEIGHTS = 2.0**-10
_POINTS_OF_CHUNK = 256
_CHUNKS_AT_ONCE = 32
# Points of a stretch add up in float32, stretches in float64.
_POINTS_OF_STRETCH = 16_384
_FEWEST_POINTS_OF_STRETCH = 512
# Several for each of the 132 multiprocessors of a large card.
_PROGRAMS_FOR_A_CARD = 512
# The limit of the second axis of a CUDA grid.
_MOST_STRETCHES = 65_535
_POINTS_OF_TILE = 64
_MOST_ENTRIES_OF_STRETCHES = 2**25
# Labels below this fit into 16 bits, which sort faster.
_MOST_SHORT_LABELS = 2**15
# Triton's default, which newer versions ask for explicitly.
_LAUNCH = {"enable_fp_fusion": True}
PRODUCTS = {"highest": "tf32x3", "high": "tf32"}
# The first compute capability that multiplies TF32, and the least shared memory among such cards.
_LEAST_CAPABILITY = (8, 0)
_LEAST_SHARED = 101_376


@dataclass(frozen=True, slots=True)
class Fused:
    """Sweep over parts of the points, in a view of float32.

    `counts` holds how often points were swept again in "float64", and how often a rule was
    "too steep" for the kernels.
    """

    view: View
    precision: str  # "highest" or "high", as in torch.set_float32_matmul_precision
    rows_at_once: Callable[[int], int]  # the points of a block, from the entries of each
    counts: Counter[str] = field(default_factory=Counter)

    def can_sweep(self, rule: Rule, planes: Planes) -> bool:
        """Return whether a kernel keeps the digits of this rule with these features."""
        if not isinstance(rule, (Power, Harmonic, Gaussian)):
            return isinstance(rule, Hard)
        if planes.slopes.shape[1] > MOST_FEATURES_SOFT:
            return False
        is_too_steep = not isinstance(rule, Gaussian) and rule.power < STEEPEST_POWER
        self.counts["too steep"] += is_too_steep
        return not is_too_steep

    def labels(self, part: Part, planes: Planes) -> torch.Tensor:
        """Return the nearest center of each point, the first of several, int32."""
        with _current(part.points):
            return self._labels(part, planes)

    def sweep(self, part: Part, planes: Planes, rule: Rule) -> Added:
        """Weigh these points by the rule and add up."""
        with _current(part.points):
            if isinstance(rule, Hard):
                return self._by_label(part, planes, self._labels(part, planes))
            return self._softly(part, planes, rule)

    def spread(self, part: Part, planes: Planes) -> tuple[torch.Tensor, torch.Tensor]:
        """Return error and utility of each center, (n_centers, 2), and its weight."""
        with _current(part.points):
            labels, least, second = self._nearest(part, planes, tells_second=True)
            spoilt = self._spoilt(part, planes, second, labels, Hard())
            for some in self._some(spoilt, len(planes.lifts)):
                labels[some], least[some], second[some] = self._exactly(part[some], planes)
            return self._spread(part, planes, labels, second - least)

    def _spread(
        self, part: Part, planes: Planes, labels: torch.Tensor, saved: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        figures = torch.zeros((len(labels), 2), dtype=torch.float32, device=labels.device)
        figures[:, 1] = saved
        for rows, block in part.in_blocks(self.rows_at_once(1)):
            figures[rows, 0] = formulas.to_own(block, planes, self.view, labels[rows]).float()
        places = figures.new_zeros((len(planes.lifts), 2), dtype=torch.float64)
        beside = Fused(View(torch.float32, torch.float64), self.precision, self.rows_at_once)
        of_figures = Part(figures, part.heights, part.weights, part.rows)
        added = beside._by_label(of_figures, Planes(places, places[:, 0], True), labels)
        return added.points, added.weights

    # The hard rule.

    def _labels(self, part: Part, planes: Planes) -> torch.Tensor:
        labels, least, _ = self._nearest(part, planes)
        spoilt = self._spoilt(part, planes, least, labels, Hard())
        for some in self._some(spoilt, len(planes.lifts)):
            labels[some] = self._certain_labels(part[some], planes)
        return labels

    def _certain_labels(self, part: Part, planes: Planes) -> torch.Tensor:
        """Label points whose distances have lost digits, in float64 if the two least are alike."""
        labels, least, second = self._nearest(part, planes, tells_second=True)
        sizes = formulas.sizes_to_own(part, planes, labels)
        is_alike = second - least < _ALIKE[self.precision] * sizes
        alike = torch.nonzero(is_alike)[:, 0]
        labels[alike] = self._exactly(part[alike], planes)[0]
        return labels

    def _exactly(
        self, part: Part, planes: Planes
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return labels, least and second least distances of some points, computed in float64."""
        self.counts["float64"] += len(part.points)
        found, _ = formulas.distances(part, planes.exact, self.view.exact)
        least, labels = formulas.nearest(found)
        second = found.scatter_(1, labels[:, None], torch.inf).amin(1)
        return labels.int(), least.float(), second.float()

    def _some(self, indices: torch.Tensor, n_centers: int) -> Iterator[torch.Tensor]:
        """Yield these points in groups whose distances to all centers fit into memory."""
        n_at_once = self.rows_at_once(n_centers)
        return (indices[some] for some in blocks(len(indices), n_at_once))

    def _nearest(
        self, part: Part, planes: Planes, *, tells_second: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return labels, least distances and, if asked for, second least distances."""
        n_points = len(part.points)
        labels = torch.empty(n_points, dtype=torch.int32, device=part.points.device)
        least = torch.empty(n_points, dtype=torch.float32, device=part.points.device)
        second = torch.empty_like(least) if tells_second else least
        used = self._rounded(part, planes)
        inputs, sizes, options = self._given(nearest_tiles, part, used)
        _kernels().nearest_kernel[(_parts(n_points, options["ROWS"]),)](
            *inputs, labels, least, second, *sizes, **options, TELLS_SECOND=tells_second
        )
        return labels, least, second

    def _by_label(self, part: Part, planes: Planes, labels: torch.Tensor) -> Added:
        n_centers, n_features = planes.slopes.shape
        if not planes.is_euclidean:
            return self._by_label_and_height(part, planes, labels)
        chunks = _Chunks.of(labels, n_centers)
        like = {"dtype": torch.float64, "device": labels.device}
        sums = torch.zeros((chunks.n_chunks, n_features), **like)
        figures = torch.zeros((2, chunks.n_chunks), **like)
        _kernels().cluster_sums_kernel[(chunks.n_chunks,)](
            part.points,
            self._origin(part),
            planes.exact.slopes,
            part.weights,
            *(chunks.order, chunks.offsets, chunks.clusters, chunks.first_chunks),
            *(sums, figures[0], figures[1]),
            n_centers,
            n_features,
            self.view.scale,
            **chunk_tiles(n_features),
            IS_MOVED=self._is_moved(),
            **_LAUNCH,
        )
        inertia = figures[1].sum()
        weights = chunks.add(figures[0][:, None].contiguous())[:, 0]
        return Added(chunks.add(sums), weights, inertia, inertia)

    def _by_label_and_height(self, part: Part, planes: Planes, labels: torch.Tensor) -> Added:
        """Add up by label, with the inertia by heights and slopes since planes are not places."""
        places = Planes(torch.zeros_like(planes.exact.slopes), planes.exact.lifts, True)
        added = self._by_label(part, places, labels)
        inertia = torch.zeros_like(added.inertia)
        for rows, block in part.in_blocks(self.rows_at_once(1)):
            own = formulas.to_own(block, planes, self.view, labels[rows])
            inertia += torch.dot(block.weights, own)
        return Added(added.points, added.weights, inertia, inertia)

    # Soft rules.

    def _softly(self, part: Part, planes: Planes, rule: Rule) -> Added:
        n_centers = len(planes.lifts)
        used, shares = self._rounded(part, planes), self._shares(rule, planes)
        references, log_sums, least, labels = self._log_sums(part, used, shares, rule)
        terms = self._terms(rule, references, log_sums, n_centers)
        spoilt = self._spoilt(part, planes, least, labels, rule)
        logs = (terms.terms + torch.log(part.weights)).float()
        logs[spoilt] = -torch.inf
        weights = part.weights.clone()
        weights[spoilt] = 0.0
        sums, of_centers = self._soft_sums(part, used, shares, references, logs, rule)
        objective = torch.dot(weights, terms.objectives)
        added = Added(sums, of_centers, objective, torch.dot(weights, least.double()))
        self.counts["float64"] += len(spoilt)
        for some in self._some(spoilt, n_centers):
            added += formulas.sweep(part[some], planes.exact, self.view.exact, rule)
        return added

    def _log_sums(
        self, part: Part, used: Planes, shares: torch.Tensor, rule: Rule
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return references, log-sums and least distances, and the labels if they matter."""
        n_points, device = len(part.points), part.points.device
        found = torch.empty((3, n_points), dtype=torch.float32, device=device)
        # For such planes the size of the cancelled terms depends on the center.
        tells_label = not used.is_euclidean
        labels = torch.empty(n_points if tells_label else 1, dtype=torch.int32, device=device)
        inputs, sizes, options = self._given(nearest_tiles, part, used)
        options |= {"IS_GAUSSIAN": isinstance(rule, Gaussian), "TELLS_LABEL": tells_label}
        _kernels().log_sums_kernel[(_parts(n_points, options["ROWS"]),)](
            *inputs, shares, *found, labels, *sizes, self._slope(rule), **options
        )
        references, log_sums, least = found
        return references, log_sums, least, labels

    def _soft_sums(
        self,
        part: Part,
        used: Planes,
        shares: torch.Tensor,
        references: torch.Tensor,
        logs: torch.Tensor,
        rule: Rule,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, sizes, options = self._given(soft_tiles, part, used)
        n_points, n_centers, n_features, _ = sizes
        rows_of_stretch = _rows_of_stretch(n_points, n_centers, n_features)
        n_stretches = _parts(n_points, rows_of_stretch)
        like = {"dtype": torch.float32, "device": part.points.device}
        sums = torch.empty((n_stretches, n_centers, n_features), **like)
        weights, highest = torch.empty((2, n_stretches, n_centers), **like)
        is_gaussian = isinstance(rule, Gaussian)
        slope = self._slope(rule) - (0.0 if is_gaussian else 1.0)
        options |= {"IS_GAUSSIAN": is_gaussian, "SUM_PRECISION": PRODUCTS[self.precision]}
        outputs = sums, weights, highest
        _kernels().soft_sums_kernel[(_parts(n_centers, options["COLS"]), n_stretches)](
            *inputs, shares, references, logs, *outputs, *sizes, slope, rows_of_stretch, **options
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
        """Return the power, or one over twice the variance."""
        if isinstance(rule, Gaussian):
            return 1 / (2 * formulas.variance_in_unit(rule, self.view.scale))
        return max(rule.power, -1e30)

    def _shares(self, rule: Rule, planes: Planes) -> torch.Tensor:
        """Return 2 v log q_j of Gaussians; for other rules, unused values of that shape."""
        if not isinstance(rule, Gaussian):
            return planes.lifts
        variance = formulas.variance_in_unit(rule, self.view.scale)
        logs: FloatArray = 2 * variance * formulas.log_shares(rule, len(planes.lifts))
        return torch.as_tensor(logs, dtype=torch.float32, device=planes.lifts.device)

    def _given(
        self, tiles: Callable[..., dict[str, Any]], part: Part, used: Planes
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, int, int, float], dict[str, Any]]:
        """Return the arguments of kernels of distances: arrays, sizes with scale, and options."""
        n_centers, n_features = used.slopes.shape
        inputs = (part.points, self._origin(part), used.slopes, used.lifts, part.heights.float())
        dtype, shared = used.slopes.dtype, _shared(part.points)
        options = {
            **tiles(dtype, self.precision, n_features, n_centers, shared),
            **_LAUNCH,
            "IS_DIRECT": used.is_direct,
            "IS_MOVED": self._is_moved(),
            "PRECISION": PRODUCTS[self.precision],
        }
        return inputs, (len(part.points), n_centers, n_features, self.view.scale), options

    def _is_moved(self) -> bool:
        return self.view.origin is not None or self.view.scale != 1

    def _origin(self, part: Part) -> torch.Tensor:
        if self.view.origin is not None:
            return self.view.origin
        return torch.zeros(part.points.shape[1], dtype=torch.float32, device=part.points.device)

    def _rounded(self, part: Part, planes: Planes) -> Planes:
        """Return the centers rounded for 16-bit products, if these were asked for."""
        half = part.points.dtype
        if half == torch.float32 or self.precision == "highest" or planes.is_direct:
            return planes
        if not planes.is_euclidean or planes.reach > torch.finfo(half).max:
            return planes
        slopes = planes.slopes.to(half)
        return Planes(slopes, slopes.float().square().sum(1), True)

    def _spoilt(
        self, part: Part, planes: Planes, found: torch.Tensor, labels: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        """Return points whose distance has lost digits by cancellation, or is zero."""
        if planes.is_direct:
            sizes = found
        elif planes.is_euclidean:
            sizes = part.heights
        else:
            sizes = formulas.sizes_to_own(part, planes, labels)
        if planes.is_direct and isinstance(rule, Hard):
            is_spoilt = torch.zeros_like(found, dtype=torch.bool)
        else:
            share = 0.0 if planes.is_direct else _cancellation(rule)
            is_spoilt = found < (share * sizes).clamp(min=_LEAST)
        if isinstance(rule, Gaussian):
            variance = formulas.variance_in_unit(rule, self.view.scale)
            is_spoilt |= sizes > 2 * variance * _UNLIKE_WEIGHTS / _UNLIKE
        return torch.nonzero(is_spoilt)[:, 0]


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
        # The upper bound, so that the host need not wait for the device to count them.
        n_chunks = len(labels) // _POINTS_OF_CHUNK + n_centers
        every = torch.arange(n_chunks, device=labels.device)
        clusters = torch.searchsorted(first_chunks[1:].contiguous(), every, right=True)
        return cls(order, offsets, clusters, first_chunks)

    @property
    def n_chunks(self) -> int:
        """Number of chunks, with the spare ones."""
        return len(self.clusters)

    def add(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the sums of clusters from the sums of chunks."""
        n_centers, n_features = len(self.offsets) - 1, parts.shape[1]
        sums = torch.empty((n_centers, n_features), dtype=torch.float64, device=parts.device)
        tiles = adding_tiles(n_features)
        _kernels().add_chunks_kernel[(n_centers, _parts(n_features, tiles["FEATURES"]))](
            parts, self.first_chunks, sums, n_features, **tiles, **_LAUNCH
        )
        return sums


def why_not(points: torch.Tensor, device: torch.device) -> str | None:
    """Return the reason why the kernels cannot take these points; None if they can."""
    if points.dtype == torch.float64:
        return "the points are float64"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"Triton has no kernels for {device}"
    if torch.version.hip is not None:
        return "Triton multiplies for ROCm with fewer digits than the kernels need"
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < _LEAST_CAPABILITY:
        return f"they need compute capability 8.0 or more, which {device} lacks"
    try:
        _kernels()
    except ImportError:
        return "Triton is not installed"
    return None


def _kernels() -> Any:
    from powermeans.rows.torch import kernels

    return kernels


def _current(points: torch.Tensor) -> AbstractContextManager[Any]:
    """Let kernels run on the GPU of these points."""
    return torch.cuda.device(points.device) if points.is_cuda else nullcontext()


def _shared(points: torch.Tensor) -> int:
    """Return the shared memory of a program in bytes; off the GPU, as on the least card."""
    if not points.is_cuda:
        return _LEAST_SHARED
    # PyTorch 2.6 lacks this property; every supported card has at least this much.
    card = torch.cuda.get_device_properties(points.device)
    return int(getattr(card, "shared_memory_per_block_optin", _LEAST_SHARED))


def _cancellation(rule: Rule) -> float:
    """Return the least share of the squares at which weights of the rule keep their digits."""
    if isinstance(rule, (Power, Harmonic)):
        return max(_CANCELLATION, -rule.power * _UNLIKE / _UNLIKE_WEIGHTS)
    return _CANCELLATION


def _parts(total: int, size: int) -> int:
    return -(-total // size)


def _power_of_two(number: int, least: int = 16) -> int:
    return max(least, 1 << (number - 1).bit_length())


def nearest_tiles(
    dtype: torch.dtype, precision: str, n_features: int, n_centers: int, shared: int
) -> dict[str, Any]:
    """Return the tile sizes of kernels that work on a block of points.

    They are the largest that fit into registers and this shared memory, as compiled for several
    compute capabilities.
    """
    is_half = dtype != torch.float32
    most_features = 32
    if is_half:
        # Three stages hold a tile of points and a tile of centers each.
        is_roomy = n_features <= 128 or shared >= 3 * 2 * 128 * 128 * dtype.itemsize
        most_features = 128 if is_roomy else 64
    features = min(most_features, _power_of_two(n_features))
    return {
        "ROWS": 128,
        "COLS": min(128 if is_half or precision == "high" else 64, _power_of_two(n_centers)),
        "FEATURES": features,
        "IS_ONE_TILE": n_features <= features,
        "num_warps": 8,
        "num_stages": 3 if is_half else 2,
    }


def chunk_tiles(n_features: int) -> dict[str, Any]:
    """Return the tile sizes for sums of a cluster."""
    return {
        "LENGTH": _POINTS_OF_CHUNK,
        "ROWS": 32,
        "FEATURES": min(128, _power_of_two(n_features)),
    }


def adding_tiles(n_features: int) -> dict[str, Any]:
    """Return the tile sizes for adding up chunks."""
    return {"ROWS": _CHUNKS_AT_ONCE, "FEATURES": min(64, _power_of_two(n_features, least=1))}


def soft_tiles(
    dtype: torch.dtype, precision: str, n_features: int, n_centers: int, shared: int
) -> dict[str, Any]:
    """Return the tile sizes for soft sums over points."""
    features = min(32, _power_of_two(n_features))
    is_wide = dtype == torch.float32 and n_features > 128
    return {
        "ROWS": 64 if precision == "high" and not is_wide else 32,
        "COLS": min(64, _power_of_two(n_centers)),
        "FEATURES": features,
        "WIDTH": _power_of_two(n_features),
        "IS_ONE_TILE": n_features <= features,
        "num_warps": 8,
        "num_stages": 2,
    }


def _rows_of_stretch(n_points: int, n_centers: int, n_features: int) -> int:
    most_stretches = max(1, _MOST_ENTRIES_OF_STRETCHES // (n_centers * n_features))
    least = _parts(n_points, min(most_stretches, _MOST_STRETCHES))
    for_all_processors = _parts(n_points * _parts(n_centers, 64), _PROGRAMS_FOR_A_CARD)
    most = min(_POINTS_OF_STRETCH, max(_FEWEST_POINTS_OF_STRETCH, for_all_processors))
    wanted = min(max(most, least), n_points)
    return _parts(wanted, _POINTS_OF_TILE) * _POINTS_OF_TILE
