"""``powermeans palette``: the colours of an image."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from powermeans.app.command import failures
from powermeans.app.command.outputs import check_outputs, interruptible, write_text
from powermeans.app.command.screen import Screen, counted, seconds
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.system.atomic_write import atomic_write
from powermeans.types import FloatArray

Bytes = NDArray[np.uint8]


def quantise(
    image: str,
    n_colours: int,
    *,
    output: str | None,
    palette: str | None,
    settings: dict[str, Any],
    screen: Screen,
) -> None:
    """Reduce an image to a few colours, and write it and the colours."""
    stem = Path(image).with_suffix("")
    output = output or f"{stem}-{n_colours}.png"
    palette = palette or f"{stem}-{n_colours}.txt"
    check_outputs(output, palette, reads=[image])
    _kind_of(output)
    pixels, alpha = _read(image)
    _check_kind(output, has_alpha=alpha is not None)
    started = time.perf_counter()
    colours, indices, shares, error = palette_of(pixels.reshape(-1, 3), n_colours, settings, alpha)
    elapsed = time.perf_counter() - started
    codes = ["#" + bytes(colour).hex() for colour in colours]
    with interruptible() as done:
        _write(output, colours, indices.reshape(pixels.shape[:2]), alpha)
        done.append(output)
        write_text(palette, "\n".join(codes) + "\n")
        done.append(palette)
        screen.say(
            f"{counted(len(codes), 'colour')} of {image} in {seconds(elapsed)}, root mean square "
            f"error {error:.2f} of 255"
        )
        _show(codes, shares, screen)
    screen.say(f"written: {output}, {palette}")
    screen.tell_machines(
        {
            "image": image,
            "colours": [
                {"colour": code, "share": share} for code, share in zip(codes, shares, strict=True)
            ],
            "root_mean_square_error": error,
            "seconds": elapsed,
            "written": {"image": output, "palette": palette},
        }
    )


def palette_of(
    pixels: Bytes, n_colours: int, settings: dict[str, Any], alpha: Bytes | None = None
) -> tuple[Bytes, NDArray[np.intp], FloatArray, float]:
    """Find the colours that change the visible pixels least, from the most frequent to the least.

    Return them, the index of the colour of each pixel, the share of each colour, and the root mean
    square error.
    """
    is_seen = np.ones(len(pixels), dtype=bool) if alpha is None else alpha.ravel() > 0
    if not is_seen.any():
        raise failures.Failure("every pixel of the picture is transparent", failures.DATA)
    codes = pixels[is_seen].astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    distinct, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    points = np.stack([distinct >> 16, distinct >> 8 & 255, distinct & 255], axis=1).astype(float)
    model = PowerKMeans(min(n_colours, len(distinct)), **settings)
    with failures.refusing():
        model.fit(points, sample_weight=counts.astype(float))
    sizes = np.bincount(model.labels_, counts, minlength=model.n_clusters)
    order = np.argsort(-sizes, kind="stable")
    rank = np.argsort(order)
    colours = np.rint(model.cluster_centers_[order]).clip(0, 255).astype(np.uint8)
    indices = np.zeros(len(pixels), dtype=np.intp)
    indices[is_seen] = rank[model.labels_][place.ravel()]
    error = float(np.sqrt(model.inertia_ / counts.sum() / 3))
    return colours, indices, sizes[order] / counts.sum(), error


def _read(path: str) -> tuple[Bytes, Bytes | None]:
    """Read red, green and blue of each pixel, and the opacities if the image has any."""
    pillow = _pillow()
    from PIL import ImageOps

    if not Path(path).exists():
        raise failures.Failure(f"{path} does not exist", failures.DATA)
    try:
        with pillow.open(path) as image:
            has_alpha = image.has_transparency_data
            mode = "RGBA" if has_alpha else "RGB"
            upright = ImageOps.exif_transpose(image)  # turned as the camera was held
            pixels = np.asarray(_of_eight_bits(upright, path).convert(mode))
    except failures.Failure:
        raise
    except Exception as error:
        reason = failures.one_line(str(error))
        raise failures.Failure(f"{path} is not an image: {reason}", failures.DATA) from error
    return pixels[..., :3], pixels[..., 3] if has_alpha else None


def _of_eight_bits(image: Any, path: str) -> Any:
    """Scale grey of 16 bits to 8 bits; Pillow would cut it off at 255."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image, dtype=np.float64)
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        raise failures.Failure(
            f"{path} has grey of the kind {image.mode}, from {values.min():g} to "
            f"{values.max():g}: save it with 8 or 16 bits",
            failures.DATA,
        )
    return _pillow().fromarray(np.rint(values * (255 / 65535)).astype(np.uint8))


def _check_kind(path: str, *, has_alpha: bool) -> None:
    """Refuse a format that cannot hold this image, such as its transparency."""
    kind, pillow = _kind_of(path), _pillow()
    try:
        pillow.new("RGBA" if has_alpha else "RGB", (1, 1)).save(io.BytesIO(), format=kind)
    except (OSError, KeyError, ValueError):
        what = "partly transparent images" if has_alpha else "such images"
        raise failures.Failure(f"{path}: {what} cannot be written as {kind}: name a .png") from None


def _write(path: str, colours: Bytes, indices: NDArray[np.intp], alpha: Bytes | None) -> None:
    pillow = _pillow()
    if len(colours) <= 256 and alpha is None and path.lower().endswith((".png", ".gif")):
        image = pillow.fromarray(indices.astype(np.uint8))
        image.putpalette(colours.tobytes())
    else:
        pixels = colours[indices]
        if alpha is not None:
            pixels[alpha == 0] = 0
        layers = [pixels] if alpha is None else [pixels, alpha[..., None]]
        image = pillow.fromarray(np.concatenate(layers, axis=2))
    # Pillow does not notice where a full disk takes only a part of what it writes.
    content = io.BytesIO()
    image.save(content, format=_kind_of(path))
    with failures.writing(path), atomic_write(path) as file:
        file.write(content.getvalue())


def _kind_of(path: str) -> str:
    kind: str | None = _pillow().registered_extensions().get(Path(path).suffix.lower())
    if kind is None:
        raise failures.Failure(f"{path}: the suffix names no kind of image: name a .png")
    return kind


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise failures.needing("Pillow", "palette") from None
    return Image


def _show(codes: list[str], shares: FloatArray, screen: Screen) -> None:
    screen.say()
    shown = list(zip(codes, shares, strict=True))[:64]
    screen.show(
        ["colour", "share", ""],
        [[code, f"{share:.1%}", Text("      ", style=f"on {code}")] for code, share in shown],
        left=[0, 2],
    )
