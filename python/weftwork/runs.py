"""The files of runs, as arrays."""

from __future__ import annotations

import json
import re
from functools import cached_property
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Union, overload

import numpy as np
import numpy.typing as npt

from . import _weftwork
from .errors import FileError
from .scenes import Mesh
from .traces import Trace

__all__ = ["Checkpoint", "Frame", "Run", "read_table"]

Array = npt.NDArray[Any]

_CLOTH = re.compile(r"cloth\.(\d+)\.p?vtp")
_BODY = re.compile(r"((?:still|moving)-\d+)-(.+?)(?:\.\d{6,})?\.vtp")


class Checkpoint(NamedTuple):
    """A state of a run that was kept to go on from."""

    path: Path
    """The file. :meth:`weftwork.Simulation.restore` takes it."""
    header: dict[str, Any]
    """The facts that the file has about itself; the book has a table of them."""
    positions: npt.NDArray[np.float64]
    """Positions in m, of shape (n, 3)."""
    velocities: npt.NDArray[np.float64]
    """Velocities in m/s, of shape (n, 3)."""
    held: npt.NDArray[np.bool_]
    """Whether a body pushes the vertex."""

    @property
    def step(self) -> int:
        """The steps that had been taken."""
        return int(self.header["step"])


class Frame:
    """A frame of a run. Its file is read when something of it is asked for first, and kept."""

    def __init__(self, run: Path, time: float, files: Sequence[str]) -> None:
        self.time = time
        """The simulated time in s."""
        self._files = [_inside(run, file) for file in files]
        named = _CLOTH.fullmatch(self._files[0].name)
        if named is None:
            raise FileError(f"{self._files[0]}: not the name of a frame of cloth", self._files[0])
        self.step = int(named.group(1))
        """The steps that had been taken."""

    @property
    def path(self) -> Path:
        """The file of the cloth."""
        return self._files[0]

    @cached_property
    def _cloth(self) -> dict[str, Any]:
        return _weftwork.read_frame(self.path)

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """The positions of all cloths in m, of shape (n, 3)."""
        positions: npt.NDArray[np.float64] = self._cloth["positions"]
        return positions

    @property
    def velocities(self) -> npt.NDArray[np.float64]:
        """The velocities in m/s, of shape (n, 3)."""
        velocities: npt.NDArray[np.float64] = self.of_vertices["velocity"]
        return velocities

    @property
    def triangles(self) -> npt.NDArray[np.uint32]:
        """The triangles of all cloths, of shape (m, 3)."""
        triangles: npt.NDArray[np.uint32] = self._cloth["triangles"]
        return triangles

    @property
    def of_vertices(self) -> dict[str, Array]:
        """The arrays that the frame has for each vertex, by name."""
        arrays: dict[str, Array] = self._cloth["of_vertices"]
        return arrays

    @property
    def of_triangles(self) -> dict[str, Array]:
        """The arrays that the frame has for each triangle, by name: the ``owner`` and the ``patch``
        at least.
        """
        arrays: dict[str, Array] = self._cloth["of_triangles"]
        return arrays

    @cached_property
    def bodies(self) -> dict[str, Mesh]:
        """The bodies by name, as triangles, where they are in this frame.

        Files have the first 40 letters of names; of bodies that have these in common, all but the
        first are called by their number too.
        """
        bodies: dict[str, Mesh] = {}
        for file in self._files[1:]:
            named = _BODY.fullmatch(file.name)
            if named is None:
                raise FileError(f"{file}: not the name of a body of a frame", file)
            number, name = named.groups()
            read = _weftwork.read_frame(file)
            name = f"{number}-{name}" if name in bodies else name
            bodies[name] = Mesh(read["positions"], read["triangles"])
        return bodies

    def __repr__(self) -> str:
        return f"<weftwork.Frame after step {self.step}, {self.time:g} s>"


class _Frames(Sequence[Frame]):
    """The frames of a run, in the order of time."""

    def __init__(self, frames: list[Frame]) -> None:
        self._frames = frames

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> _Frames: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Frame, _Frames]:
        if isinstance(index, slice):
            return _Frames(self._frames[index])
        return self._frames[index]

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)

    def __repr__(self) -> str:
        return f"<{len(self)} frames>"


class Run:
    """The directory of a run. Files are read when they are asked for; a run that goes on can be
    looked at again.

    Raises :class:`~weftwork.FileError` if there is no run in it.
    """

    def __init__(self, directory: Union[str, PathLike[str]]) -> None:
        self.directory = Path(directory)
        """The directory."""
        self.info  # noqa: B018 - so that it is known to be a run.

    @property
    def info(self) -> dict[str, Any]:
        """The record of the run, ``run.json``: scene, program, machine and result."""
        path = self.directory / "run.json"
        try:
            told = json.loads(path.read_bytes())
        except OSError as error:
            raise FileError(f"{self.directory} holds no run: {error}", path) from error
        except ValueError as error:
            raise FileError(f"{path}: not JSON: {error}", path) from error
        if not isinstance(told, dict) or told.get("schema") != 1:
            raise FileError(f'{path}: not the record of a run with "schema": 1', path)
        return told

    @property
    def exit(self) -> Optional[int]:
        """The exit code; ``None`` while the run goes on, and for ever if it was killed."""
        code: Optional[int] = self.info["exit"]
        return code

    @property
    def hash(self) -> Optional[str]:
        """The state hash of a run that has ended."""
        result = self.info.get("result")
        return None if result is None else str(result["hash"])

    @property
    def history(self) -> dict[str, Array]:
        """The columns of ``history.csv`` by name, with a value for each step."""
        return read_table(self.directory / "history.csv")

    def forces(self) -> dict[str, npt.NDArray[np.float64]]:
        """The force on the cloth in each step in N, of shape (steps, 3): of ``gravity``, ``pins``,
        ``bodies`` and so on, as the ledger in the history has it."""
        history = self.history
        times = history["time_s"]
        # The steps of a run are equally long.
        length = times[0] / history["step"][0] if len(times) else 1.0
        names = [name[:-5] for name in history if name.endswith("_x_Ns") and name != "momentum_x_Ns"]
        return {
            name: np.stack([history[f"{name}_{axis}_Ns"] for axis in "xyz"], axis=1) / length
            for name in names
        }

    @property
    def frames(self) -> _Frames:
        """The frames that have been written so far, in the order of time."""
        path = self.directory / "frames.pvd"
        entries = _weftwork.read_collection(path)
        by_time: dict[float, list[tuple[int, str]]] = {}
        for time, part, file in entries or []:
            by_time.setdefault(time, []).append((part, file))
        return _Frames(
            [
                Frame(self.directory, time, [file for _, file in sorted(files)])
                for time, files in sorted(by_time.items())
            ]
        )

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints that are there, the newest last."""
        found = self.directory.glob("state.*.ckpt")
        return sorted(found, key=lambda path: (len(path.name), path.name))

    def checkpoint(self, path: Optional[Union[str, PathLike[str]]] = None) -> Checkpoint:
        """Reads a checkpoint: the newest one, unless another is named.

        Raises :class:`~weftwork.FileError` if there is none, or if it is damaged.
        """
        if path is None:
            found = self.checkpoints
            if not found:
                raise FileError(f"{self.directory} has no checkpoint", self.directory)
            path = found[-1]
        header, arrays = _weftwork.read_checkpoint(path)
        return Checkpoint(Path(path), json.loads(header), **arrays)

    def trace(self) -> Trace:
        """Reads ``trace.json``, which a run with ``--trace`` writes.

        Raises :class:`~weftwork.FileError`.
        """
        return Trace.read(self.directory / "trace.json")

    def __repr__(self) -> str:
        return f"<weftwork.Run {str(self.directory)!r}>"


def read_table(path: Union[str, PathLike[str]]) -> dict[str, Array]:
    """Reads a table that the program wrote, such as ``history.csv`` or ``study.csv``: its columns
    by name.

    Columns of whole numbers, of numbers and of texts have these types; where one of numbers is
    empty, there is NaN. A line that is being written is left out.

    Raises :class:`~weftwork.FileError`.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {path}: {error}", path) from error
    whole, _, _ = text.rpartition("\n")
    lines = [(n, line) for n, line in enumerate(whole.split("\n"), 1) if not line.startswith("#")]
    if not lines or not lines[0][1]:
        raise FileError(f"{path}: no line with the names of columns", path)
    names = lines[0][1].split(",")
    rows = []
    for number, line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(names):
            raise FileError(
                f"{path}:{number}: {len(cells)} values, and there are {len(names)} columns", path
            )
        rows.append(cells)
    columns = zip(*rows) if rows else ([] for _ in names)
    return {name: _column(column) for name, column in zip(names, columns)}


def _column(cells: Sequence[str]) -> Array:
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except ValueError:
        pass
    try:
        if any(cells):
            return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    except ValueError:
        pass
    return np.array(cells, dtype=np.str_)


def _inside(run: Path, file: str) -> Path:
    """The path of a file that a run names, which must be below its directory."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise FileError(f"{run}: names a file outside of it: {file!r}", run)
    return run / path
