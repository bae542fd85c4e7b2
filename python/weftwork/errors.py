"""The exceptions of the package.

Each carries what a program needs to act on it: the file, the line and the key that are at fault,
where they are known.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple, Optional, Sequence, Union

__all__ = ["Error", "FileError", "Problem", "SceneError", "SimulationError"]


class Problem(NamedTuple):
    """One thing that is wrong with a scene."""

    file: Optional[Path]
    """The file it is in, if it is in one."""
    line: Optional[int]
    """The line of the scene, from 1."""
    column: Optional[int]
    """The column, from 1, of a fault of syntax."""
    key: Optional[str]
    """The dotted key, such as ``cloth.material.bending``."""
    message: str
    """A message: the fault, and what to do about it."""


class Error(Exception):
    """The base of all exceptions of the package."""


class SceneError(Error):
    """A scene, or a mesh of it, is not valid."""

    problems: list[Problem]
    """Everything that is wrong, in the order of lines."""

    def __init__(
        self,
        message: str,
        problems: Sequence[
            tuple[
                Optional[Union[str, PathLike[str]]], Optional[int], Optional[int], Optional[str], str
            ]
        ] = (),
    ) -> None:
        super().__init__(message)
        self.problems = [
            Problem(None if file is None else Path(file), line, column, key, told)
            for file, line, column, key, told in problems
        ]

    @property
    def file(self) -> Optional[Path]:
        """The file of the first problem that has one."""
        return next((p.file for p in self.problems if p.file is not None), None)

    @property
    def key(self) -> Optional[str]:
        """The key of the first problem that has one."""
        return next((p.key for p in self.problems if p.key is not None), None)


class SimulationError(Error):
    """A step could not be taken. The simulation cannot go on; make a new one."""


class FileError(Error):
    """A file of a run is missing, damaged, or not what it should be."""

    file: Path
    """The file."""

    def __init__(self, message: str, file: Union[str, PathLike[str]]) -> None:
        super().__init__(message)
        self.file = Path(file)
