"""Compile the fused kernels for a GPU, without one, and tell what each needs.

One line for a kernel: its name, bytes of shared memory, registers of a thread, bytes of each thread
that did not fit into registers, and how its products take float32 ("none" without any). Arguments
are said to be divisible by 16 where a launch would find them so, which decides how much is copied
ahead and so how much shared memory it takes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from powermeans.rows.torch import fused, kernels

POINTERS = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16"}
# Bytes of shared memory that a program may have, as the CUDA C++ Programming Guide lists them.
SHARED = {80: 166_912, 86: 101_376, 89: 101_376, 90: 232_448, 100: 232_448, 120: 101_376}
OF_FLOAT32 = (
    "origin",
    "lifts",
    "heights",
    "least",
    "second",
    "shares",
    "references",
    "log_sums",
    "terms",
    "sums",
    "weights",
    "highest",
)
OF_CHUNKS = {
    "places": "*fp64",
    "sample_weight": "*fp64",
    "order": "*i64",
    "offsets": "*i64",
    "clusters": "*i64",
    "first_chunks": "*i64",
    "sums": "*fp64",
    "weights": "*fp64",
    "own": "*fp64",
    "parts": "*fp64",
}

Figures = tuple[str, int, int, int, str]


@dataclass(frozen=True)
class Problem:
    """What a kernel is compiled for."""

    dtype: str
    precision: str
    n_features: int
    n_centers: int
    capability: int
    is_moved: bool = False
    is_gaussian: bool = False

    @property
    def slopes(self) -> torch.dtype:
        """The dtype that centers are rounded to."""
        is_direct = self.n_features <= fused.formulas.MOST_FEATURES_DIRECT
        is_rounded = self.precision == "high" and not is_direct
        found: torch.dtype = getattr(torch, self.dtype if is_rounded else "float32")
        return found

    @property
    def sizes(self) -> dict[str, int]:
        """Arguments whose divisibility a launch sees."""
        return {"n_features": self.n_features, "n_centers": self.n_centers, "n_points": 1_000_000}

    @property
    def choices(self) -> dict[str, Any]:
        """Constants of all kernels that take distances."""
        return {
            "IS_DIRECT": self.n_features <= fused.formulas.MOST_FEATURES_DIRECT,
            "IS_MOVED": self.is_moved,
            "PRECISION": fused.PRODUCTS[self.precision],
        }


def compiled(
    kernel: Any, problem: Problem, tiles: Mapping[str, Any], types: Mapping[str, str], **more: Any
) -> Figures:
    names = kernel.arg_names
    constants = {name: value for name, value in {**tiles, **more}.items() if name.isupper()}
    signature = {name: types.get(name, "i32") for name in names}
    signature |= dict.fromkeys(constants, "constexpr")
    divisible = [
        (names.index(name),)
        for name, kind in signature.items()
        if kind.startswith("*") or problem.sizes.get(name, 1) % 16 == 0
    ]
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={place: [["tt.divisibility", 16]] for place in divisible},
    )
    options = {name: tiles[name] for name in ("num_warps", "num_stages") if name in tiles}
    made = triton.compile(
        source,
        target=GPUTarget("cuda", problem.capability, 32),
        options=options | {"enable_fp_fusion": True},
    )
    registers, spilled = resources(made.asm["cubin"])
    products = set(re.findall(r"inputPrecision = (\w+)", made.asm["ttir"]))
    how = "+".join(sorted(products)) or "none"
    return kernel.__name__, made.metadata.shared, registers, spilled, how


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


def all_compiled(problem: Problem) -> Iterator[Figures]:
    """What each kernel needs, in the order in which they run."""
    slopes = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
    types = dict.fromkeys(OF_FLOAT32, "*fp32")
    types |= {"points": POINTERS[problem.dtype], "slopes": slopes[problem.slopes]}
    types |= {"labels": "*i32", "scale": "fp32", "slope": "fp32"}
    shared = SHARED[problem.capability]
    sizes = problem.n_features, problem.n_centers
    tiles = fused.nearest_tiles(problem.slopes, problem.precision, *sizes, shared)
    soft = {**problem.choices, "IS_GAUSSIAN": problem.is_gaussian}
    for tells in (False, True):
        told = {**problem.choices, "TELLS_SECOND": tells}
        yield compiled(kernels.nearest_kernel, problem, tiles, types, **told)
    if problem.n_features <= fused.MOST_FEATURES_SOFT:
        yield compiled(kernels.log_sums_kernel, problem, tiles, types, **soft, TELLS_LABEL=False)
        tiles = fused.soft_tiles(problem.slopes, problem.precision, *sizes, shared)
        soft["SUM_PRECISION"] = fused.PRODUCTS[problem.precision]
        yield compiled(kernels.soft_sums_kernel, problem, tiles, types, **soft)
    types |= OF_CHUNKS
    moved = {"IS_MOVED": problem.is_moved}
    yield compiled(
        kernels.cluster_sums_kernel, problem, fused.chunk_tiles(sizes[0]), types, **moved
    )
    yield compiled(kernels.add_chunks_kernel, problem, fused.adding_tiles(sizes[0]), types)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dtype", choices=POINTERS)
    parser.add_argument("precision", choices=["highest", "high"])
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--centers", type=int, default=1024)
    parser.add_argument("--capability", type=int, default=90, choices=SHARED)
    parser.add_argument("--moved", action="store_true", help="points are told from an origin")
    parser.add_argument("--gaussian", action="store_true", help="soft weights are Gaussian")
    a = parser.parse_args()
    problem = Problem(
        a.dtype, a.precision, a.features, a.centers, a.capability, a.moved, a.gaussian
    )
    for figures in all_compiled(problem):
        print(*figures)


if __name__ == "__main__":
    main()
