"""The columns of the points of a fit, with which those of new points are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.points.scaling import Scaling


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of some points.

    Attributes
    ----------
    scaling : Scaling or None
        What is done to them.
    is_scaling_known : bool
        Whether None says that nothing is done to them.
    """

    n_features: int | None
    names: tuple[str, ...] | None
    scaling: Scaling | None
    is_scaling_known: bool = True

    def check(self, new: Columns, way_out: str) -> None:
        """Raise where new points have other columns, or are scaled in another way."""
        are_other = None not in (self.n_features, new.n_features) and (
            new.n_features != self.n_features
        )
        if are_other or (None not in (self.names, new.names) and new.names != self.names):
            raise ValueError(
                f"X has {new.n_features} columns, {list(new.names or [])[:20]}, and the estimator "
                f"was fitted with {self.n_features}, {list(self.names or [])[:20]}: {way_out}"
            )
        if self.scaling is not None and not self.scaling.equals(new.scaling):
            raise ValueError(
                "the estimator was fitted with scaled columns and X is not scaled in the same "
                "way: pass open_data(..., scale=model.scaling_)"
            )
        if self.scaling is None and self.is_scaling_known and new.scaling is not None:
            raise ValueError(
                "the estimator was fitted without scaling and X is opened with it: leave scale "
                "out of open_data(...), or, where the points of the fit had been scaled like that, "
                "ask type(model).from_centers(model.cluster_centers_)"
            )

    def refuse_unscaled(self) -> None:
        """Raise where new points in an array cannot say that they are scaled."""
        if self.scaling is not None:
            raise ValueError(
                "the estimator was fitted with scaled columns, and X is an array that does not "
                "say how it is scaled: pass open_data(X, scale=model.scaling_), or ask "
                "type(model).from_centers(model.cluster_centers_) about model.scaling_.transform(X)"
            )

    def check_width(self, n_features: int, name: str) -> None:
        """Raise where new points have another number of features, as scikit-learn does."""
        if self.n_features is not None and n_features != self.n_features:
            raise ValueError(
                f"X has {n_features} features, but {name} is expecting {self.n_features} features "
                "as input"
            )

    def noted(self) -> dict[str, Any]:
        """Return the attributes of an estimator that describe the columns."""
        found: dict[str, Any] = {"n_features_in_": self.n_features, "scaling_": self.scaling}
        if self.names is not None:
            found["feature_names_in_"] = np.asarray(self.names, dtype=object)
        return found
