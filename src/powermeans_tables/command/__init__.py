"""The command ``powermeans``.

Each command imports what it needs when it runs. These modules may import all others.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import errno
import gc
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import NoReturn

from powermeans_tables.command import failures, streams

# What people type for options of another name.
_MEANT = {"--k": "-k", "--n-clusters": "-k", "--sheet": "--array"}
_MEANT |= dict.fromkeys(["--ignore", "--exclude", "--drop"], "--as COLUMN=ignore")


class _Interrupt(KeyboardInterrupt):
    """A signal; where code in a text raises KeyboardInterrupt itself, Python ends by SIGINT."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, by default the one in the arguments of the process, and exit with its code."""
    # Looking for garbage at exit takes half a second, in which a user waits after Ctrl-C.
    atexit.register(gc.freeze)
    wanted = list(sys.argv[1:] if arguments is None else arguments)
    is_debugging = "--debug" in wanted
    wanted = [argument for argument in wanted if argument != "--debug"]
    heard: list[int] = []
    with streams.prepared(), _listening(heard):
        try:
            code = _run(wanted, is_debugging)
        except BaseException as error:  # such as Ctrl-C again, before the first was explained
            code = _explain(error)
    sys.exit(128 + heard[-1] if heard and code == failures.INTERRUPTED else code)


def _run(arguments: list[str], is_debugging: bool) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _note
        # The commands have matched the columns by name.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # They scale the columns or speak of them in their own words.
        warnings.filterwarnings("ignore", message="X has columns of very different scales")
        try:
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
def _listening(heard: list[int]) -> Iterator[None]:
    """Let signals that would end the process end the command as Ctrl-C does, and note them.

    Interrupt again where one came in a callback that raises nothing, such as an import's.
    """

    def interrupt(number: int, frame: object) -> None:
        heard.append(number)
        raise _Interrupt

    def repeat(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            # By then Python has left what does not raise it.
            threading.Timer(0.02, _thread.interrupt_main, heard[-1:]).start()
        else:
            before(lost)

    for number in _ending_signals():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    before, sys.unraisablehook = sys.unraisablehook, repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


def _ending_signals() -> list[int]:
    """Return what asks a process to end, if this thread hears signals."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    is_main = threading.current_thread() is threading.main_thread()
    return [getattr(signal, name) for name in names if is_main and hasattr(signal, name)]


def _ignore_interrupts() -> None:
    """Let no Ctrl-C change how the process ends, once all that it writes is written."""
    for number in _ending_signals():
        signal.signal(number, signal.SIG_IGN)


def _explain(error: BaseException, arguments: Sequence[str] = ()) -> int:
    """Say in one line what went wrong, and return the exit code."""
    _ignore_interrupts()
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        return failures.PIPE_CLOSED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error, flush=True)
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
    is_interrupt = any(isinstance(one, KeyboardInterrupt) for one in _chain(error))
    if is_interrupt or type(error).__name__ == "Abort":  # or of a module half imported
        return "interrupted before there was a result: nothing was written", failures.INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and error.name in ("typer", "rich"):
        return f'the command line needs {error.name}: pip install "powermeans[cli]"', failures.USAGE
    if any(map(_lacks_memory, _chain(error))):
        return "there is not enough memory: pass fewer rows or columns", failures.DATA
    if isinstance(error, OSError):
        name = error.filename or "a file"
        return f"{name} cannot be opened or read: {error.strerror}", failures.DATA
    where = "(--debug shows where; please report it)"
    return f"unexpected {type(error).__name__}: {error} {where}", failures.BUG


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those from which it follows."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _lacks_memory(error: BaseException) -> bool:
    """Return whether an error is of memory, also in the words of loaders and threads."""
    is_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    words = "start new thread|launch worker thread|failed to map segment|annot allocate memory"
    return is_memory or re.search(words, str(error)) is not None


def _tell(message: str) -> None:
    print(f"powermeans: {failures.one_line(message)}", file=sys.stderr)


def _note(message: Warning | str, *where: object, **more: object) -> None:
    _tell(f"note: {failures.in_options(message) if isinstance(message, Warning) else message}")
