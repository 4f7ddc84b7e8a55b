"""Errors and warnings of the package."""

from __future__ import annotations


class ObjectiveRoseWarning(RuntimeWarning):
    """The objective rose between two sweeps at equal power by more than rounding explains.

    See Also
    --------
    powermeans.PowerKMeans : Whose sweeps are watched.

    Examples
    --------
    To end a program rather than go on with a result that something is wrong with:

    >>> import warnings
    >>> from powermeans import ObjectiveRoseWarning, PowerKMeans
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ObjectiveRoseWarning)
    ...     model = PowerKMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    """


class IndefiniteKernelWarning(UserWarning):
    """A kernel has negative eigenvalues, which were taken as zero.

    See Also
    --------
    powermeans.KernelPowerKMeans : Gives it.

    Examples
    --------
    >>> import warnings
    >>> from powermeans import KernelPowerKMeans
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     model = KernelPowerKMeans(2, kernel="precomputed").fit([[0.0, 1.0], [1.0, 0.0]])
    >>> "IndefiniteKernelWarning" in [warning.category.__name__ for warning in told]
    True
    """


class ModelFileError(ValueError):
    """A file holds no model that can be loaded, or only a newer powermeans can read it.

    See Also
    --------
    powermeans.load : Raises it.
    powermeans.save : Writes files that load.

    Examples
    --------
    >>> import tempfile
    >>> import powermeans
    >>> with tempfile.NamedTemporaryFile(suffix=".pm") as file:
    ...     try:
    ...         powermeans.load(file.name)
    ...     except powermeans.ModelFileError:
    ...         print("an empty file holds no model")
    an empty file holds no model
    """


class MissingDataError(FileNotFoundError):
    """A real data set is not where it is looked for; the message says where it comes from.

    See Also
    --------
    powermeans.datasets.load_data_set : Raises it.
    powermeans.errors.WrongDataError : Where there is a file, but of something else.

    Examples
    --------
    >>> from powermeans import MissingDataError, datasets
    >>> try:
    ...     mice = datasets.load_mice_protein()
    ... except MissingDataError as error:
    ...     print(error)  # doctest: +SKIP
    """


class WrongDataError(ValueError):
    """The file of a real data set holds something else than that set.

    See Also
    --------
    powermeans.datasets.load_data_set : Raises it.
    powermeans.errors.MissingDataError : Where there is no file.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> import numpy as np
    >>> from powermeans import WrongDataError, datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "ruspini.npz"), X=np.zeros((75, 3)))
    ...     with mock.patch.dict(os.environ, POWERMEANS_DATA=folder):
    ...         try:
    ...             datasets.load_data_set("ruspini")
    ...         except WrongDataError as error:
    ...             print("the shape is wrong:", "(75, 3)" in str(error))
    the shape is wrong: True
    """
