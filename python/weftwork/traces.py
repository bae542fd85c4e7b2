"""Traces of runs: what each rank and worker did, and when."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from .errors import FileError

__all__ = ["Trace"]


class Trace(NamedTuple):
    """The spans of a trace: arrays with a value for each, in the order in which they begin."""

    name: npt.NDArray[np.str_]
    """The name of the activity, such as ``step``, ``collide`` or a task."""
    rank: npt.NDArray[np.int64]
    """The rank that does it."""
    track: npt.NDArray[np.int64]
    """The thread of it: 1 is the main one, workers follow."""
    begin: npt.NDArray[np.float64]
    """When it begins, in s by the clock of rank 0."""
    duration: npt.NDArray[np.float64]
    """How long it takes, in s."""

    @classmethod
    def read(cls, path: Union[str, PathLike[str]]) -> Trace:
        """Reads a trace in the JSON form of the Trace Event Format.

        Raises :class:`~weftwork.FileError`.
        """
        path = Path(path)
        try:
            told = json.loads(path.read_bytes())
            spans = _spans(told["traceEvents"])
        except OSError as error:
            raise FileError(f"cannot read {path}: {error}", path) from error
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{path}: not a trace of weft: {error!r}", path) from error
        spans.sort(key=lambda span: span[3])
        names, ranks, tracks, begins, durations = zip(*spans) if spans else ((),) * 5
        return cls(
            np.array(names, dtype=np.str_),
            np.array(ranks, dtype=np.int64),
            np.array(tracks, dtype=np.int64),
            np.array(begins, dtype=np.float64),
            np.array(durations, dtype=np.float64),
        )

    def total(self) -> dict[str, float]:
        """The time of all spans in s, by name."""
        names, of = np.unique(self.name, return_inverse=True)
        sums = np.bincount(of, weights=self.duration, minlength=len(names))
        return {str(name): float(time) for name, time in zip(names, sums)}


def _spans(events: list[dict[str, Any]]) -> list[tuple[str, int, int, float, float]]:
    spans = []
    opened: dict[tuple[int, int], list[tuple[str, float]]] = {}
    for event in events:
        phase = event["ph"]
        if phase not in "BEX":
            continue
        place = (int(event["pid"]), int(event["tid"]))
        time = float(event["ts"])
        if phase == "B":
            opened.setdefault(place, []).append((str(event["name"]), time))
            continue
        if phase == "X":
            name, begin, end = str(event["name"]), time, time + float(event["dur"])
        else:
            if not opened.get(place):
                raise ValueError(f"an end without a beginning at {time} us")
            (name, begin), end = opened[place].pop(), time
        # Processes are ranks, counted from 1.
        spans.append((name, place[0] - 1, place[1], 1e-6 * begin, 1e-6 * (end - begin)))
    return spans
