"""Simulations: steps, and the state between them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _weftwork
from .scenes import Mesh, Scene

__all__ = ["Simulation", "State", "StepReport"]

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepReport:
    """The report of a step; the book's table of the columns of ``history.csv`` has more on each."""

    cg_iterations: int
    """Iterations of the conjugate gradients."""
    systems: int
    """Linear systems that were solved."""
    parts: int
    """Parts that the step was taken in; more than 1 if it was cut."""
    halvings: int
    """Parts that failed and were halved."""
    contacts: int
    """Contacts found."""
    constraints: int
    """Contacts with bodies that became constraints of the solve."""
    impulses: int
    """Contacts that pushed in the first pass of corrections."""
    tests: int
    """Tests of collision: pairs of nodes of trees."""
    passes: int
    """Passes of corrections."""
    rounds: int
    """Rounds in all passes."""
    unsettled: int
    """Passes that ended before impulses had settled."""
    clamped: int
    """Vertices that had to be kept out of bodies after the corrections."""
    hits: int
    """Pairs of features that would have crossed, or could not be shown not to."""
    cut: int
    """Vertices whose displacements were cut because of hits."""
    zones: int
    """Rigid zones in which vertices moved as one body because of hits."""
    squeezed: int
    """Vertices that bodies let through because there was no room."""
    lagging: int
    """Vertices held by pins whose displacements were cut."""
    seconds: Mapping[str, float]
    """Wall time of each phase in s."""
    momentum: Reals
    """The momentum of the cloth at the end of the step, in N s."""
    given: Mapping[str, Reals]
    """The momentum that gravity, pins, bodies, corrections and truncation gave to it in the step,
    in N s.

    Divided by the time step it is the force."""

    @classmethod
    def _of(cls, told: dict[str, Any]) -> StepReport:
        told["momentum"] = np.array(told["momentum"])
        told["given"] = {name: np.array(value) for name, value in told["given"].items()}
        return cls(**told)


class State:
    """A state of a simulation, to go back to: see :meth:`Simulation.save`."""

    def __init__(self, native: _weftwork.NativeState) -> None:
        self._native = native

    @property
    def step(self) -> int:
        """The steps that had been taken."""
        return self._native.step

    def __repr__(self) -> str:
        return f"<weftwork.State after step {self.step}>"


class Simulation:
    """A simulation of a scene, in this process.

    Other threads of Python run while it steps. The trajectory is that of ``weft run``, to the bit,
    whatever ``threads`` is: after as many steps :meth:`hash` is the state hash that the command
    tells. Vertices are those of all cloths, one after the other, in the order of the scene.

    Raises :class:`~weftwork.SceneError` if the meshes are not valid.
    """

    def __init__(self, scene: Scene, *, threads: int = 1) -> None:
        self.scene = scene
        """The scene."""
        self._native = _weftwork.NativeSimulation(scene._native, threads)

    def step(self, steps: int = 1) -> Optional[StepReport]:
        """Takes this number of steps. Returns the report of the last one; ``None`` if there was
        none to take.

        Ctrl-C ends it between two steps. Raises :class:`~weftwork.SimulationError`.
        """
        told = self._native.advance(steps)
        return None if told is None else StepReport._of(told)

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self._native.now()[0]

    @property
    def time(self) -> float:
        """The simulated time in s."""
        return self._native.now()[1]

    @property
    def vertices(self) -> int:
        """The number of vertices of all cloths."""
        return self._native.vertices

    @property
    def positions(self) -> Reals:
        """A copy of the positions in m, of shape (n, 3). Assign an array to change them: see
        :meth:`change`.
        """
        return self._native.positions()

    @positions.setter
    def positions(self, positions: npt.ArrayLike) -> None:
        self.change(positions=positions)

    @property
    def velocities(self) -> Reals:
        """A copy of the velocities in m/s, of shape (n, 3). Assign an array to change them."""
        return self._native.velocities()

    @velocities.setter
    def velocities(self, velocities: npt.ArrayLike) -> None:
        self.change(velocities=velocities)

    def change(
        self,
        *,
        positions: Optional[npt.ArrayLike] = None,
        velocities: Optional[npt.ArrayLike] = None,
    ) -> None:
        """Changes the state between two steps.

        Certification goes on from the state that is given: cloth that crosses something in it may
        go on to cross it. Vertices that pins hold are put back by the next step.
        """

        def taken(values: Optional[npt.ArrayLike]) -> Optional[Reals]:
            return None if values is None else np.array(values, dtype=np.float64, ndmin=2)

        self._native.change(taken(positions), taken(velocities))

    @property
    def triangles(self) -> npt.NDArray[np.uint32]:
        """The triangles of all cloths, of shape (m, 3)."""
        return self._native.triangles()

    @property
    def cloth_of_vertex(self) -> npt.NDArray[np.int64]:
        """The number of the cloth of each vertex, in the order of the scene."""
        return self._native.cloths()

    @property
    def masses(self) -> Reals:
        """The mass of each vertex in kg."""
        return self._native.masses()

    @property
    def bodies(self) -> dict[str, Mesh]:
        """The bodies by name, where they are now, as triangles."""
        return {name: Mesh(x, t) for name, x, t in self._native.bodies()}

    def strain(self) -> float:
        """The largest principal strain of a triangle."""
        return self._native.strain()

    def hash(self) -> str:
        """The state hash, in hexadecimal."""
        return self._native.hash()

    def save(self) -> State:
        """Keeps all of the state, contacts and what solves start from included."""
        return State(self._native.save())

    def restore(self, state: Union[State, str, PathLike[str]]) -> None:
        """Goes back to a state that was kept, or on from a checkpoint (``state.*.ckpt``) of the
        same scene.

        Raises :class:`~weftwork.FileError` if a checkpoint is damaged, or of another scene.
        """
        if isinstance(state, State):
            self._native.restore(state._native)
        else:
            self._native.restore_file(state)

    def __repr__(self) -> str:
        steps, time = self._native.now()
        return f"<weftwork.Simulation of {self.scene.name!r}: {self.vertices} vertices, step {steps}, {time:g} s>"
