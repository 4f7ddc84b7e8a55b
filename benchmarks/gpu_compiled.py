"""Compile the fused kernels for a GPU, without one, and tell what each needs.

One line for a kernel: its name, bytes of shared memory, registers of a thread, and bytes of each
thread that did not fit into registers.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from powermeans.rows.torch import fused, kernels

POINTERS = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16"}
OF_FLOAT32 = (
    "origin",
    "lifts",
    "heights",
    "least",
    "shares",
    "references",
    "log_sums",
    "terms",
    "sums",
    "weights",
    "highest",
)


def compiled(
    kernel: object, dtype: str, precision: str, tiles: Mapping, capability: int, **choices: object
) -> tuple[str, int, int, int]:
    slopes = POINTERS[dtype] if precision == "high" else "*fp32"
    of = dict.fromkeys(OF_FLOAT32, "*fp32")
    of |= {"points": POINTERS[dtype], "slopes": slopes, "labels": "*i32"}
    of |= {"scale": "fp32", "slope": "fp32"}
    options = {name: tiles[name] for name in ("num_warps", "num_stages")}
    constants = {name: value for name, value in {**tiles, **choices}.items() if name.isupper()}
    names = kernel.arg_names
    signature = {name: of.get(name, "i32") for name in names}
    signature |= dict.fromkeys(constants, "constexpr")
    where = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=where)
    made = triton.compile(
        source,
        target=GPUTarget("cuda", capability, 32),
        options=options | {"enable_fp_fusion": True},
    )
    registers, spilled = resources(made.asm["cubin"])
    return kernel.__name__, made.metadata.shared, registers, spilled


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers, and bytes on the stack, of each thread."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", told)
    assert found is not None, told
    return int(found[1]), int(found[2])


def all_compiled(
    dtype: str, precision: str, n_features: int, n_centers: int, capability: int
) -> Iterator[tuple[str, int, int, int]]:
    slopes = getattr(torch, dtype if precision == "high" else "float32")
    choices = {
        "IS_DIRECT": n_features <= 16,
        "IS_MOVED": False,
        "PRECISION": fused.PRODUCTS[precision],
    }
    tiles = fused.nearest_tiles(slopes, precision, n_features, n_centers)
    yield compiled(kernels.nearest_kernel, dtype, precision, tiles, capability, **choices)
    soft = {"IS_GAUSSIAN": False}
    yield compiled(kernels.log_sums_kernel, dtype, precision, tiles, capability, **choices, **soft)
    tiles = fused.soft_tiles(precision, n_features, n_centers)
    soft["SUM_PRECISION"] = fused.PRODUCTS[precision]
    yield compiled(kernels.soft_sums_kernel, dtype, precision, tiles, capability, **choices, **soft)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dtype", choices=POINTERS)
    parser.add_argument("precision", choices=["highest", "high"])
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--centers", type=int, default=1024)
    parser.add_argument("--capability", type=int, default=90)
    a = parser.parse_args()
    for figures in all_compiled(a.dtype, a.precision, a.features, a.centers, a.capability):
        print(*figures)


if __name__ == "__main__":
    main()
