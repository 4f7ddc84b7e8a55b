"""The command ``powermeans``.

Each command imports what it needs when it runs. These modules may import all others.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import NoReturn

from powermeans_tables.command import failures

# What people type for options of another name.
_MEANT = {"--k": "-k", "--n-clusters": "-k", "--sheet": "--array"}
_MEANT |= dict.fromkeys(["--ignore", "--exclude", "--drop"], "--as COLUMN=ignore")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, by default the one in the arguments of the process, and exit with its code."""
    # Looking for garbage at exit takes half a second, in which a user waits after Ctrl-C.
    atexit.register(gc.freeze)
    wanted = list(sys.argv[1:] if arguments is None else arguments)
    is_debugging = "--debug" in wanted
    wanted = [argument for argument in wanted if argument != "--debug"]
    try:
        code = _run(wanted, is_debugging)
    except KeyboardInterrupt as error:  # again, before the first was explained
        code = _explain(error)
    sys.exit(code)


def _run(arguments: list[str], is_debugging: bool) -> int:
    with warnings.catch_warnings(), _repeating_lost_interrupts():
        warnings.showwarning = _note
        # The commands have matched the columns by name.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # They scale the columns or speak of them in their own words.
        warnings.filterwarnings("ignore", message="X has columns of very different scales")
        try:
            # Without an error, Ctrl-C would end the process while the package is imported.
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            from powermeans_tables.command.commands import app

            code = app(arguments, prog_name="powermeans", standalone_mode=False)
            sys.stdout.flush()
            _ignore_interrupts()
        except BaseException as error:
            if is_debugging:
                traceback.print_exc()
            return _explain(error, arguments)
    if code == failures.INTERRUPTED:
        return _explain(KeyboardInterrupt())
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _repeating_lost_interrupts() -> Iterator[None]:
    """Interrupt again where Ctrl-C came in a callback that raises nothing, such as an import's."""
    before = sys.unraisablehook

    def repeat(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            # By then Python has left what does not raise it.
            threading.Timer(0.02, _thread.interrupt_main).start()
        else:
            before(lost)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


def _ignore_interrupts() -> None:
    """Let no Ctrl-C change how the process ends, once all that it writes is written."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _explain(error: BaseException, arguments: Sequence[str] = ()) -> int:
    """Say in one line what went wrong, and return the exit code."""
    _ignore_interrupts()
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        # The reader closed the pipe; without this, Python's flush at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.PIPE_CLOSED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error)
        return failures.USAGE
    said, code = _in_words(error, arguments)
    _tell(said)
    return code


def _in_words(error: BaseException, arguments: Sequence[str]) -> tuple[str, int]:
    if isinstance(error, failures.Failure):
        return str(error), error.code
    if hasattr(error, "format_message"):  # Typer refuses the arguments
        said = str(error.format_message()).rstrip(".").replace("Value error, ", "")
        if meant := _MEANT.get(getattr(error, "option_name", "")):
            said = f"{said.partition(' (')[0]}: did you mean {meant}?"
        context, typed = getattr(error, "ctx", None), " ".join(["powermeans", *arguments[:1]])
        command = typed if context is None else context.command_path
        return f"{said} (see {command} --help)", failures.USAGE
    if type(error).__name__ == "Abort" or _follows_interrupt(error):
        return "interrupted before there was a result: nothing was written", failures.INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and error.name in ("typer", "rich"):
        return f'the command line needs {error.name}: pip install "powermeans[cli]"', failures.USAGE
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        return "there is not enough memory: pass fewer rows or columns", failures.DATA
    if isinstance(error, OSError):
        name = error.filename or "a file"
        return f"{name} cannot be opened or read: {error.strerror}", failures.DATA
    where = "(--debug shows where; please report it)"
    return f"unexpected {type(error).__name__}: {error} {where}", failures.BUG


def _follows_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is or follows from Ctrl-C, such as one of a module half imported."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _tell(message: str) -> None:
    print(f"powermeans: {failures.one_line(message)}", file=sys.stderr)


def _note(message: Warning | str, *where: object, **more: object) -> None:
    _tell(f"note: {failures.in_options(message) if isinstance(message, Warning) else message}")
