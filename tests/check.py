"""Run what a change has to pass, step by step, and say at the end what this machine left out.

Run `make check`, which installs the packages that only a few tests need too. Each step is a target
of the Makefile; the first that fails is the last. A step leaves something out where it prints
`left out: ...`, and a test where pytest lists it as skipped.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = ["lint", "types", "links", "demo", "sanitize", "platforms", "test"]
STEPS += ["test-reproduce", "test-benchmarks"]
STEPS += ["attack SECONDS=60 SEED=1"]  # a nightly run takes the day's seed
LEFT_OUT = re.compile(
    r"left out: (?P<step>.*)|SKIPPED \[(?P<tests>\d+)\] [^:]+(:\d+)?: (?P<why>.*)"
)


def run(step: str, left_out: dict[str, re.Match[str]]) -> int:
    """Run a target, print what it prints, note lines on what it leaves out; return its status."""
    # Hypothesis draws the same examples each time where CI is set.
    environment = {"CI": "true", "PYTHONUNBUFFERED": "1", **os.environ}
    command = ["make", "--no-print-directory", *step.split()]
    print(f"\n== make {step}", flush=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            if found := LEFT_OUT.match(line):
                left_out[line] = found
    return running.returncode


def main() -> int:
    """Run the steps up to the first that fails, and print the minutes and what was left out."""
    left_out: dict[str, re.Match[str]] = {}  # two steps may print one line of the same tests
    lines = []
    for step in STEPS:
        started = time.monotonic()
        status = run(step, left_out)
        minutes = (time.monotonic() - started) / 60
        lines.append(f"{minutes:6.1f} min  make {step}{' FAILED' if status else ''}")
        if status:
            break
    print("", *lines, sep="\n")
    print("Left out on this machine:" if left_out else "Nothing was left out on this machine.")
    n_left_out: Counter[str] = Counter()
    for found in left_out.values():
        n_left_out[found["why"] or found["step"]] += int(found["tests"] or 0)
    for reason, n_tests in n_left_out.items():
        print(f"  {reason}" + (f" ({n_tests} tests)" if n_tests else ""))
    return status


if __name__ == "__main__":
    sys.exit(main())
