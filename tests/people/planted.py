"""What is planted in a file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """The right answer to a file: which rows belong together."""

    name: str
    groups: list[int]  # of each row, in order; -1 for one that belongs to none, such as a total
    k: int  # 0 where there is nothing to cluster
    hint: str  # empty where a tool succeeds alone, else what it has to ask for or say
    what: str
