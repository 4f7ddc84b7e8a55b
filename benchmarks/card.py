"""Seconds of fits of the same points as a tensor on a card and as an array beside it.

The two take turns, and each figure is the median of three fits after one that is not counted.
"""

from __future__ import annotations

import datetime
from functools import partial

import torch

from benchmarks import machine
from benchmarks.pages import Page, as_markdown
from benchmarks.turns import seconds_in_turns
from powermeans import KMeans, PowerKMeans
from powermeans.system.threads import usable_processors

PAGE = Page("how_do_i/gpu", "python -m benchmarks.card")
SIZES = [(100_000, 16, 8), (1_000_000, 16, 20), (1_000_000, 64, 100), (200_000, 128, 256)]
MODELS = {
    "`KMeans`": lambda k: KMeans(k, n_init=1, random_state=0),
    '`PowerKMeans(effort="fast")`': lambda k: PowerKMeans(k, effort="fast", random_state=0),
    "`PowerKMeans`": lambda k: PowerKMeans(k, random_state=0),
}
N_FITS = 3


def clusters(n_points: int, n_features: int, n_clusters: int) -> torch.Tensor:
    """Return normal points about normal means, which overlap in few features."""
    like = {"generator": torch.Generator("cuda").manual_seed(0), "device": "cuda"}
    means = 2 * torch.randn((n_clusters, n_features), **like)
    points = torch.randn((n_points, n_features), **like)
    return points.add_(means[torch.randint(n_clusters, (n_points,), **like)])


def main() -> None:
    """Measure, and write the table of the page."""
    rows = [["Points, features, clusters", *(f"{m}: card, array" for m in MODELS)]]
    for size in SIZES:
        on_card = clusters(*size)
        places, k = {"card": on_card, "array": on_card.cpu().numpy()}, size[2]
        rows.append([" × ".join(f"{n:,}" for n in size[:2]) + f", {k}"])
        for make in MODELS.values():
            fits = {at: partial(make(k).fit, points) for at, points in places.items()}
            seconds = seconds_in_turns(fits, N_FITS)
            rows[-1].append(", ".join(f"{found:.2f} s" for found in seconds.values()))
    where = (
        f"Measured {datetime.date.today()} in float32 on one {torch.cuda.get_device_name()} with "
        f"PyTorch {torch.__version__}, and on {usable_processors()} cores of {machine.processor()}."
    )
    PAGE.write(f"{where}\n\n{as_markdown(rows)}")
    print(where, as_markdown(rows), sep="\n\n")


if __name__ == "__main__":
    main()
