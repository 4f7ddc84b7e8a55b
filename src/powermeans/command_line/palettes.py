"""``powermeans palette``: the colours of an image."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from powermeans.command_line import failures
from powermeans.command_line.outputs import check_outputs, write_text
from powermeans.command_line.screen import Screen, seconds
from powermeans.power_kmeans import PowerKMeans
from powermeans.whole_files import whole_file

Bytes = NDArray[np.uint8]

_MOST_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours, from the most frequent to the least, and which of them each pixel has."""

    colours: Bytes
    shares: NDArray[np.float64]
    indices: NDArray[np.intp]
    error: float

    def codes(self) -> list[str]:
        """As web pages write them."""
        return ["#" + bytes(colour).hex() for colour in self.colours]


def quantise(
    image: str,
    n_colours: int,
    *,
    output: str | None,
    palette: str | None,
    settings: dict[str, Any],
    screen: Screen,
) -> None:
    """Write an image with few colours, and the colours."""
    stem = Path(image).with_suffix("")
    output = output or f"{stem}-{n_colours}.png"
    palette = palette or f"{stem}-{n_colours}.txt"
    check_outputs(output, palette)
    pixels, alpha = _read(image)
    started = time.perf_counter()
    found = palette_of(pixels.reshape(-1, 3), n_colours, settings)
    elapsed = time.perf_counter() - started
    _write(output, found, pixels.shape[:2], alpha)
    write_text(palette, "\n".join(found.codes()) + "\n")
    _tell(found, image, elapsed, screen)
    screen.say(f"written: {output}, {palette}")
    screen.tell_machines(
        {
            "image": image,
            "colours": [
                {"colour": code, "share": share}
                for code, share in zip(found.codes(), found.shares, strict=True)
            ],
            "root_mean_square_error": found.error,
            "seconds": elapsed,
            "written": {"image": output, "palette": palette},
        }
    )


def palette_of(pixels: Bytes, n_colours: int, settings: dict[str, Any]) -> Palette:
    """The colours that change the pixels least."""
    codes = pixels.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    distinct, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    points = np.stack([distinct >> 16, distinct >> 8 & 255, distinct & 255], axis=1).astype(float)
    model = PowerKMeans(min(n_colours, len(distinct)), **settings)
    with failures.refusing(failures.DATA, ValueError):
        model.fit(points, sample_weight=counts.astype(float))
    sizes = np.bincount(model.labels_, counts, minlength=model.n_clusters)
    order = np.argsort(-sizes, kind="stable")
    rank = np.argsort(order)
    colours = np.rint(model.cluster_centers_[order]).clip(0, 255).astype(np.uint8)
    indices = rank[model.labels_][place.ravel()]
    error = float(np.sqrt(model.inertia_ / counts.sum() / 3))
    return Palette(colours, sizes[order] / counts.sum(), indices, error)


def _read(path: str) -> tuple[Bytes, Bytes | None]:
    """Red, green and blue of each pixel, and how opaque it is if any is not wholly."""
    pillow = _pillow()
    if not Path(path).exists():
        raise failures.Failure(f"{path} does not exist", failures.DATA)
    try:
        with pillow.open(path) as image:
            has_alpha = image.has_transparency_data
            pixels = np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    except Exception as error:
        reason = failures.one_line(str(error))
        raise failures.Failure(f"{path} is no image: {reason}", failures.DATA) from error
    return pixels[..., :3], pixels[..., 3] if has_alpha else None


def _write(path: str, found: Palette, shape: tuple[int, ...], alpha: Bytes | None) -> None:
    pillow = _pillow()
    if len(found.colours) <= 256 and alpha is None and path.lower().endswith((".png", ".gif")):
        image = pillow.fromarray(found.indices.reshape(shape).astype(np.uint8))
        image.putpalette(found.colours.tobytes())
    else:
        pixels = found.colours[found.indices].reshape(*shape, 3)
        layers = [pixels] if alpha is None else [pixels, alpha[..., None]]
        image = pillow.fromarray(np.concatenate(layers, axis=2))
    kind = pillow.registered_extensions().get(Path(path).suffix.lower())
    if kind is None:
        raise failures.Failure(f"{path}: name a kind of image, as .png", failures.USAGE)
    with failures.writing(path), whole_file(path) as file:
        image.save(file, format=kind)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise failures.needing("Pillow", "palette") from None
    return Image


def _tell(found: Palette, image: str, elapsed: float, screen: Screen) -> None:
    screen.say(
        f"{len(found.colours)} colours of {image} in {seconds(elapsed)}, root mean square error "
        f"{found.error:.2f} of 255"
    )
    screen.say()
    shown = list(zip(found.codes(), found.shares, strict=True))[:_MOST_SHOWN]
    screen.show(
        ["colour", "share", ""],
        [[code, f"{share:.1%}", Text("      ", style=f"on {code}")] for code, share in shown],
        left=[0, 2],
    )
