"""Cloth simulation: build, check and step scenes, and read what runs leave, as numpy arrays.

>>> import weftwork
>>> scene = weftwork.Scene.load("quick")
>>> simulation = weftwork.Simulation(scene)
>>> report = simulation.step(2)
>>> simulation.steps
2

A :class:`Scene` is read from a file or made of a dictionary, in which a mesh may be two arrays. A
:class:`Simulation` takes its steps; between them the state can be read and changed. A :class:`Run`
is the directory that the command ``weft run`` has written. Lengths are in m, times in s, masses in
kg.
"""

from ._weftwork import __version__
from .errors import Error, FileError, Problem, SceneError, SimulationError
from .runs import Checkpoint, Frame, Run, read_table
from .scenes import Mesh, Scene
from .simulations import Simulation, State, StepReport
from .traces import Trace

__all__ = [
    "Checkpoint",
    "Error",
    "FileError",
    "Frame",
    "Mesh",
    "Problem",
    "Run",
    "Scene",
    "SceneError",
    "Simulation",
    "SimulationError",
    "State",
    "StepReport",
    "Trace",
    "__version__",
    "read_table",
]
