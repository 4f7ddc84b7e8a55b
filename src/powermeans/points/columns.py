"""The columns of the points of a fit, with which those of new points are compared."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of some points, and what made them of the columns of a table, if anything."""

    n_features: int | None
    names: tuple[str, ...] | None
    preparation: Any = None

    def check(self, new: Self, way_out: str) -> None:
        """Raise where new points have other columns, or come from a table and these do not."""
        are_other = None not in (self.n_features, new.n_features) and (
            new.n_features != self.n_features
        )
        if are_other or (None not in (self.names, new.names) and new.names != self.names):
            raise ValueError(
                f"X has {new.n_features} columns, {list(new.names or [])[:20]}, and the estimator "
                f"was fitted with {self.n_features}, {list(self.names or [])[:20]}: {way_out}"
            )
        if self.preparation is not None and new.preparation is None:
            self.refuse_points()

    def refuse_points(self) -> None:
        """Raise where new points cannot say from which columns of a table they come."""
        if self.preparation is not None:
            raise ValueError(
                "the estimator was fitted to a table, whose columns became points, and X is an "
                "array that does not say what its columns are: pass a path or a frame with the "
                "columns of the table, or ask type(model).from_centers(model.cluster_centers_) "
                "about points"
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
        found: dict[str, Any] = {"n_features_in_": self.n_features}
        if self.preparation is not None:
            found["preparation_"] = self.preparation
        if self.names is not None:
            found["feature_names_in_"] = np.asarray(self.names, dtype=object)
        return found
