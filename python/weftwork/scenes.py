"""Scenes: read from files, or made of dictionaries and arrays."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Mapping, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _weftwork
from .errors import SceneError

__all__ = ["Mesh", "Scene"]

Overrides = Mapping[str, Any]


class Mesh(NamedTuple):
    """A mesh of triangles."""

    vertices: npt.NDArray[np.float64]
    """Positions in m, of shape (n, 3)."""
    triangles: npt.NDArray[np.uint32]
    """Three numbers of vertices each, of shape (m, 3)."""


class Scene:
    """A scene whose text has been checked.

    Make one with :meth:`load`, :meth:`parse` or :meth:`from_dict`. Its meshes are looked at by
    :meth:`check`, and when a simulation begins.
    """

    def __init__(
        self, native: _weftwork.NativeScene, folder: Optional[TemporaryDirectory[str]] = None
    ) -> None:
        self._native = native
        # The files of meshes that were given as arrays; they are there as long as the scene is.
        self._folder = folder

    @classmethod
    def load(
        cls, path: Union[str, PathLike[str]], overrides: Optional[Overrides] = None
    ) -> Scene:
        """Reads a scene file, or a scene that is part of the program (such as ``"quick"``).

        ``overrides`` are what the command takes as ``--set KEY=VALUE``: dotted keys and their
        values.

        Raises :class:`~weftwork.SceneError`.
        """
        return cls(_weftwork.find_scene(path, _overrides(overrides)))

    @classmethod
    def parse(
        cls,
        text: str,
        overrides: Optional[Overrides] = None,
        *,
        path: Optional[Union[str, PathLike[str]]] = None,
    ) -> Scene:
        """Reads a scene from a text in TOML.

        ``path`` names the scene in messages; files of meshes are looked for in its folder.

        Raises :class:`~weftwork.SceneError`.
        """
        return cls(_weftwork.parse_scene(text, path, _overrides(overrides)))

    @classmethod
    def from_dict(
        cls,
        scene: Mapping[str, Any],
        overrides: Optional[Overrides] = None,
        *,
        path: Optional[Union[str, PathLike[str]]] = None,
    ) -> Scene:
        """Makes a scene of a dictionary with the keys of the book's scene reference.

        ``cloth`` and ``body`` are lists of dictionaries. Their key ``mesh`` may be the name of a
        file, or a :class:`Mesh`, or any pair of an array of vertices (n, 3) in m and one of
        triangles (m, 3). Numbers of numpy, and arrays of them, may stand wherever numbers and lists
        may.

        Raises :class:`~weftwork.SceneError`, with the key, also of a value that no scene can have.
        """
        folder: Optional[TemporaryDirectory[str]] = None
        told: dict[str, Any] = dict(scene)
        for kind in ("cloth", "body"):
            objects = told.get(kind)
            if not isinstance(objects, (list, tuple)):
                continue
            objects = [dict(one) if isinstance(one, Mapping) else one for one in objects]
            for number, one in enumerate(objects):
                mesh = one.get("mesh") if isinstance(one, dict) else None
                if mesh is None or isinstance(mesh, str):
                    continue
                if isinstance(mesh, PathLike):
                    one["mesh"] = str(mesh)
                    continue
                if folder is None:
                    folder = TemporaryDirectory(prefix="weftwork-")
                file = Path(folder.name) / f"{kind}{number}.ply"
                _write_ply(file, mesh, f"{kind}.{number}.mesh")
                one["mesh"] = str(file)
            told[kind] = objects
        lines = [f"{_key(key)} = {_toml(value, str(key))}" for key, value in told.items()]
        native = _weftwork.parse_scene("\n".join(lines) + "\n", path, _overrides(overrides))
        return cls(native, folder)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._native.name

    @property
    def title(self) -> str:
        """A line for people."""
        return self._native.title

    @property
    def time_step(self) -> float:
        """The length of a step in s."""
        return self._native.step

    @property
    def end(self) -> float:
        """The end of the run in s."""
        return self._native.end

    @property
    def steps(self) -> int:
        """The number of steps to the end."""
        return self._native.steps

    def to_toml(self) -> str:
        """The scene with all keys in force, as ``weft check`` prints it."""
        return self._native.echo()

    def check(self) -> list[str]:
        """Reads the meshes and checks everything that a simulation needs. Returns the warnings, if
        there are any.

        Raises :class:`~weftwork.SceneError`.
        """
        warnings, _ = self._native.check()
        return warnings

    def sizes(self) -> list[str]:
        """A line on each cloth and body: extent, vertices, edges, mass.

        Raises :class:`~weftwork.SceneError`.
        """
        _, sizes = self._native.check()
        return sizes

    def __repr__(self) -> str:
        return f"<weftwork.Scene {self.name!r}: {self.title!r}, {self.steps} steps>"


def _overrides(overrides: Optional[Overrides]) -> list[tuple[str, str]]:
    told = {} if overrides is None else overrides
    return [(key, _override(value, key)) for key, value in told.items()]


def _override(value: Any, key: str) -> str:
    # The command takes a text with and without quotes.
    return _toml(value, key)


def _refused(key: str, message: str) -> SceneError:
    return SceneError(f"{key}: {message}", [(None, None, None, key, message)])


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _refused(str(key), "keys of scenes are texts")
    return _text(key)


def _text(text: str) -> str:
    # TOML reads the escapes of JSON, but takes no DEL as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any, key: str) -> str:
    """A value of TOML in one line."""
    if isinstance(value, np.ndarray) or isinstance(value, np.generic):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, PathLike):
        return _text(str(value))
    if isinstance(value, Mapping):
        pairs = (f"{_key(k)} = {_toml(v, f'{key}.{k}')}" for k, v in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v, f"{key}.{i}") for i, v in enumerate(value)) + "]"
    raise _refused(key, f"a scene can have no {type(value).__name__}")


def _write_ply(file: Path, mesh: Any, key: str) -> None:
    """Writes a mesh so that it is read to the bit."""
    try:
        vertices, triangles = mesh
        vertices = np.asarray(vertices, dtype="<f8")
        triangles = np.asarray(triangles)
    except (TypeError, ValueError) as error:
        raise _refused(key, f"wants a file, or an array of vertices and one of triangles: {error}")
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise _refused(key, f"vertices: wants an array of shape (n, 3), not {vertices.shape}")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
        raise _refused(
            key,
            f"triangles: wants whole numbers of shape (m, 3), not {triangles.dtype} of {triangles.shape}",
        )
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(vertices)):
        raise _refused(key, f"triangles: wants numbers from 0 to {len(vertices) - 1}")
    faces = np.empty(len(triangles), dtype=[("corners", "u1"), ("vertices", "<u4", 3)])
    faces["corners"] = 3
    faces["vertices"] = triangles
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(vertices)}\n"
        "property double x\nproperty double y\nproperty double z\n"
        f"element face {len(triangles)}\n"
        "property list uchar uint vertex_indices\nend_header\n"
    )
    with open(file, "wb") as out:
        out.write(header.encode("ascii"))
        out.write(np.ascontiguousarray(vertices).tobytes())
        out.write(faces.tobytes())
