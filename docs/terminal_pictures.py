"""Draw what a terminal shows in the middle of `powermeans fit`.

    python docs/terminal_pictures.py

The command runs in a pseudo-terminal, so that it draws its progress as it does for people. What it
writes goes through a terminal emulator (pyte), and the emulator's screen becomes an SVG (rich).
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import numpy as np
import pyte
from rich.console import Console
from rich.text import Text
from sklearn.datasets import make_blobs

WIDTH, HEIGHT = 104, 40
PICTURES = Path(__file__).parent / "_static"
# Where there is no such font any other of equal width does; nothing is fetched.
FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'


class Terminal:
    """A screen, and the commands that were typed at it."""

    def __init__(self, width: int = WIDTH, height: int = HEIGHT) -> None:
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.screen)

    def show(self, text: str) -> None:
        """As if it had been typed."""
        self._stream.feed(text.replace("\n", "\r\n").encode())

    def run(
        self,
        command: Sequence[str],
        folder: Path,
        watch: Callable[[int], None] = lambda process_id: None,
    ) -> int:
        """Type a command, and let it run to its end.

        Parameters
        ----------
        command : sequence of str
            The arguments of powermeans.
        folder : Path
            Where it runs.
        watch : callable, optional
            Called with the number of the process whenever it has written something.

        Returns
        -------
        int
            Its exit code.
        """
        self.show(f"$ powermeans {' '.join(command)}\n")
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("4H", self.screen.lines, self.screen.columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "powermeans", *command],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(self.screen.columns)},
            start_new_session=True,
        )
        os.close(theirs)
        for written in _read(ours):
            self._stream.feed(written)
            watch(process.pid)
        os.close(ours)
        return process.wait()

    def lines(self) -> list[Text]:
        """What is on the screen, without the empty end."""
        last = max((row for row, line in enumerate(self.screen.display) if line.strip()), default=0)
        return [self._line(row) for row in range(last + 1)]

    def _line(self, row: int) -> Text:
        text = Text()
        for column in range(self.screen.columns):
            character = self.screen.buffer[row][column]
            color = None if character.fg == "default" else _color(character.fg)
            text.append(character.data, f"{'bold ' if character.bold else ''}{color or ''}".strip())
        text.rstrip()
        return text


def _read(descriptor: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # the other end is closed
        while written := os.read(descriptor, 4096):
            yield written


def _color(name: str) -> str:
    is_code = re.fullmatch("[0-9a-f]{6}", name)
    return f"#{name}" if is_code else {"brown": "yellow"}.get(name, name)


def draw(lines: Sequence[Text], path: Path) -> None:
    """An SVG of a terminal with these lines."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line, soft_wrap=True)
    picture = console.export_svg(title="powermeans", unique_id=path.stem)
    picture = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    picture = re.sub(r"font-family: Fira Code, monospace", f"font-family: {FONTS}", picture)
    path.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE) + "\n", encoding="utf-8")


def main() -> None:
    """Draw the picture."""
    terminal, middle = Terminal(), list[list[Text]]()

    def watch(process_id: int) -> None:
        told = re.search(r"start [2-9] of .* sweeps, inertia", "".join(terminal.screen.display))
        if told and not middle:
            middle.append(terminal.lines())

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        points, _ = make_blobs(200_000, 6, centers=12, cluster_std=2.5, random_state=0)
        header = "length,width,height,weight,age,price"
        np.savetxt(folder / "shells.csv", points, "%.3f", ",", header=header, comments="")
        options = ["-k", "12", "--effort", "thorough", "--model", "shells.pm"]
        terminal.run(["fit", "shells.csv", *options], folder, watch)
    draw(middle[0], PICTURES / "terminal_progress.svg")


if __name__ == "__main__":
    main()
