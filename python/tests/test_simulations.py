"""Scenes, simulations, and the exceptions of both."""

import copy
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import weftwork

from conftest import SMALL, WEFT, weft

CLOTH = {
    "name": "sheet",
    "center": [0, 0, 0.5],
    "grid": {"size": "0.4 m", "vertices": np.array([9, 7])},
    "material": {"density": 0.15, "stretch": np.float64(300), "bending": "1e-5 N m"},
    "pins": [{"nearest": [-0.2, 0.2, 0.5]}],
}


def test_the_hash_is_that_of_the_command(small):
    run = weftwork.Run(small / "out")
    simulation = weftwork.Simulation(weftwork.Scene.load(small / "small.toml"), threads=2)
    report = simulation.step(20)
    assert (simulation.steps, simulation.time) == (20, pytest.approx(0.08))
    assert simulation.hash() == run.hash
    assert np.array_equal(simulation.positions, run.frames[-1].positions)
    assert np.array_equal(simulation.velocities, run.frames[-1].velocities)
    assert np.array_equal(simulation.triangles, run.frames[-1].triangles)
    last = {name: column[-1] for name, column in run.history.items()}
    for name in ("cg_iterations", "tests", "passes", "rounds", "hits", "cut"):
        assert getattr(report, name) == last[name], name
    assert report.momentum == pytest.approx([last[f"momentum_{a}_Ns"] for a in "xyz"], rel=1e-12)
    assert report.given["bodies"][2] == pytest.approx(last["bodies_z_Ns"], rel=1e-12)
    assert set(report.seconds) == {"collide", "assemble", "solve", "respond", "share"}
    assert simulation.strain() == pytest.approx(last["max_strain"], rel=1e-12)


def test_the_hash_of_a_scene_of_the_program_and_overrides(tmp_path):
    scene = weftwork.Scene.load("quick", {"time.step": "4 ms", "cloth.grid.vertices": 12})
    simulation = weftwork.Simulation(scene)
    simulation.step(10)
    said = weft(
        "run", "quick", "--set", "time.step=4 ms", "--set", "cloth.grid.vertices=12", "--quiet",
        "--steps", "10", "--set", "output.pictures=false", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert said.split()[-1] == simulation.hash()


def test_bodies_masses_and_cloths(small):
    simulation = weftwork.Simulation(weftwork.Scene.load(small / "small.toml"))
    simulation.step(10)
    assert list(simulation.bodies) == ["ball", "lift"]
    assert simulation.bodies["lift"].vertices[:, 2] == pytest.approx(-0.004)
    frame = weftwork.Run(small / "out").frames[1]
    assert (frame.step, list(frame.bodies)) == (10, ["lift", "ball"])
    for name, mesh in simulation.bodies.items():
        assert np.array_equal(mesh.vertices, frame.bodies[name].vertices)
        assert np.array_equal(mesh.triangles, frame.bodies[name].triangles)
    assert simulation.masses.sum() == pytest.approx(0.15 * 0.09)
    assert set(simulation.cloth_of_vertex) == {0} and simulation.vertices == 144


def test_a_scene_of_arrays_is_that_of_their_file(tmp_path):
    x, y = np.meshgrid(np.linspace(0, 0.3, 10), np.linspace(0, 0.2, 8))
    vertices = np.stack([x, y, 0.1 * x * y + np.pi], axis=-1).reshape(-1, 3)
    corner = (10 * np.arange(7)[:, None] + np.arange(9)).reshape(-1)
    triangles = np.concatenate(
        [
            np.stack([corner, corner + 1, corner + 11], axis=1),
            np.stack([corner, corner + 11, corner + 10], axis=1),
        ]
    )
    cloth = {"mesh": (vertices, triangles), "material": {"fabric": "tablecloth"}}
    tetrahedron = (
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
        [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
    )
    scene = {
        "title": 'a "title" \x7f ü'.replace("\x7f", ""),
        "time": {"step": 0.002},
        "partition": {"patches": 4},
        "cloth": [cloth],
        "body": [{"shape": "mesh", "mesh": weftwork.Mesh(*map(np.array, tetrahedron))}],
    }
    before = copy.deepcopy(scene)
    made = weftwork.Scene.from_dict(scene)
    assert made.title == scene["title"] and made.check() == []
    np.testing.assert_equal(scene, before)
    simulation = weftwork.Simulation(made)
    del made
    gc.collect()
    assert np.array_equal(simulation.positions, vertices)
    assert {tuple(np.roll(t, -t.argmin())) for t in simulation.triangles} == {
        tuple(np.roll(t, -t.argmin())) for t in triangles
    }
    simulation.step(5)
    obj = [f"v {' '.join(map(repr, map(float, v)))}" for v in vertices]
    obj += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles]
    (tmp_path / "cloth.obj").write_text("\n".join(obj) + "\n")
    body = [f"v {' '.join(map(repr, map(float, v)))}" for v in tetrahedron[0]]
    body += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in tetrahedron[1]]
    (tmp_path / "body.obj").write_text("\n".join(body) + "\n")
    (tmp_path / "scene.toml").write_text(
        'time.step = 0.002\npartition.patches = 4\n[[cloth]]\nmesh = "cloth.obj"\n'
        'material.fabric = "tablecloth"\n[[body]]\nshape = "mesh"\nmesh = "body.obj"\n'
    )
    said = weft("run", "scene.toml", "--steps", "5", "--quiet", cwd=tmp_path)
    assert said.split()[-1] == simulation.hash()


def test_the_folder_of_arrays_goes_with_its_scene():
    mesh = (np.eye(3), np.array([[0, 1, 2]]))
    scene = weftwork.Scene.from_dict({"cloth": [{"mesh": mesh, "material": {"fabric": "denim"}}]})
    folder = Path(scene._folder.name)
    assert folder.is_dir()
    del scene
    gc.collect()
    assert not folder.exists()


def test_a_scene_in_toml_is_a_scene():
    scene = weftwork.Scene.parse(SMALL)
    again = weftwork.Scene.parse(scene.to_toml())
    assert again.to_toml() == scene.to_toml()
    assert "napkin" in scene.sizes()[0] and (scene.time_step, scene.end, scene.steps) == (0.004, 0.08, 20)


def test_a_state_that_is_changed_goes_on_from_there():
    scene = weftwork.Scene.from_dict({"cloth": [CLOTH], "partition": {"patches": 4}})
    simulation = weftwork.Simulation(scene)
    start = simulation.positions
    # A copy is not the state.
    start[:] = 7
    assert not np.any(simulation.positions == 7)
    simulation.step(3)
    state = simulation.save()
    simulation.step(4)
    hash = simulation.hash()
    simulation.restore(state)
    assert (state.step, simulation.steps) == (3, 3)
    simulation.step(4)
    assert simulation.hash() == hash
    moved = simulation.positions + [0, 0, 1]
    simulation.positions = moved
    assert np.array_equal(simulation.positions, moved)
    simulation.change(velocities=np.full((63, 3), [1.0, 0, 0]))
    before = simulation.positions.mean(axis=0)
    simulation.step()
    assert simulation.positions.mean(axis=0)[0] > before[0] + 0.001
    simulation.velocities = simulation.velocities.tolist()


def test_a_checkpoint_is_gone_on_from(small):
    run = weftwork.Run(small / "out")
    simulation = weftwork.Simulation(weftwork.Scene.load(small / "small.toml"))
    simulation.restore(run.checkpoints[-1])
    assert simulation.hash() == run.hash
    other = weftwork.Simulation(weftwork.Scene.load(small / "small.toml", {"time.step": "2 ms"}))
    with pytest.raises(weftwork.FileError, match="another") as error:
        other.restore(run.checkpoints[-1])
    assert error.value.file == run.checkpoints[-1]


def test_what_is_wrong_with_a_scene_has_file_line_and_key(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(SMALL.replace('radius = "8 cm"', 'radius = "8 kg"').replace("bending", "bendng"))
    with pytest.raises(weftwork.SceneError, match="did you mean `bending`") as error:
        weftwork.Scene.load(path)
    assert isinstance(error.value, weftwork.Error)
    keys = [problem.key for problem in error.value.problems]
    assert "body.0.radius" in keys and "cloth.material.bendng" in keys
    lines = path.read_text().split("\n")
    for problem in error.value.problems:
        assert problem.file == path and problem.key.split(".")[-1] in lines[problem.line - 1] + "bending"
    assert error.value.file == path and error.value.key in keys
    with pytest.raises(weftwork.SceneError) as error:
        weftwork.Scene.load(tmp_path / "none.toml")
    assert error.value.file == tmp_path / "none.toml"
    with pytest.raises(weftwork.SceneError) as error:
        weftwork.Scene.load("quick", {"time.stepp": 1})
    assert error.value.key == "time.stepp" and error.value.file is None


@pytest.mark.parametrize(
    "mesh, message",
    [
        (5, "wants a file"),
        ((np.zeros((4, 2)), np.zeros((1, 3), int)), r"\(n, 3\)"),
        ((np.zeros((4, 3)), np.zeros((1, 3))), "whole numbers"),
        ((np.zeros((4, 3)), np.array([[0, 1, 4]])), "from 0 to 3"),
        ((np.zeros((4, 3)), np.array([[0, 1, -1]])), "from 0 to 3"),
    ],
)
def test_meshes_that_are_none_are_told_by_their_key(mesh, message):
    with pytest.raises(weftwork.SceneError, match=message) as error:
        weftwork.Scene.from_dict({"cloth": [CLOTH, {"mesh": mesh}]})
    assert error.value.key == "cloth.1.mesh"


def test_values_that_no_scene_can_have_are_told_by_their_key():
    with pytest.raises(weftwork.SceneError, match="NoneType") as error:
        weftwork.Scene.from_dict({"cloth": [{**CLOTH, "velocity": [0, None, 0]}]})
    assert error.value.key == "cloth.0.velocity.1"
    with pytest.raises(weftwork.SceneError) as error:
        weftwork.Scene.from_dict({"cloth": [CLOTH], "time": {"step": float("nan")}})
    assert error.value.key == "time.step"
    mesh = (np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0.0]]), np.array([[0, 1, 2]]))
    flat = weftwork.Scene.from_dict({"cloth": [{"mesh": mesh, "material": {"fabric": "denim"}}]})
    with pytest.raises(weftwork.SceneError, match="triangle"):
        flat.check()
    with pytest.raises(weftwork.SceneError, match="triangle"):
        weftwork.Simulation(flat)


def test_arrays_that_are_no_states_change_nothing():
    simulation = weftwork.Simulation(weftwork.Scene.from_dict({"cloth": [CLOTH]}))
    before = simulation.hash()
    nan = simulation.positions
    nan[5, 1] = np.nan
    for wrong, message in [(np.zeros((3, 3)), "shape"), (nan, "vertex 5"), (np.zeros(63), "shape")]:
        with pytest.raises(ValueError, match=message):
            simulation.positions = wrong
    with pytest.raises(ValueError, match="threads"):
        weftwork.Simulation(simulation.scene, threads=0)
    with pytest.raises(OverflowError):
        simulation.step(-1)
    assert simulation.step(0) is None and simulation.hash() == before


def test_a_step_that_fails_is_told_and_ends_the_simulation():
    scene = weftwork.Scene.from_dict(
        {"cloth": [CLOTH], "solver": {"max_iterations": 1, "tolerance": 1e-12}}
    )
    simulation = weftwork.Simulation(scene)
    with pytest.raises(weftwork.SimulationError, match="step 1"):
        simulation.step(3)
    for use in (simulation.step, simulation.save):
        with pytest.raises(weftwork.SimulationError, match="make a new simulation"):
            use()


def test_other_threads_run_while_it_steps():
    simulation = weftwork.Simulation(weftwork.Scene.from_dict({"cloth": [CLOTH]}))
    stepping = threading.Thread(target=simulation.step, args=(200,))
    turns = 0
    stepping.start()
    while stepping.is_alive():
        turns += 1
    stepping.join()
    assert turns > 0 and simulation.steps == 200


def test_ctrl_c_ends_it_between_steps():
    code = """
import os, signal, threading, weftwork
simulation = weftwork.Simulation(weftwork.Scene.load("quick"))
began = threading.Event()
def press():
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
began.set()
try:
    simulation.step(1_000_000)
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
before = simulation.steps
simulation.step()
assert simulation.steps == before + 1
print(len(simulation.hash()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "16", done.stderr


def test_importing_needs_numpy_alone():
    code = """
import sys
before = set(sys.modules)
import numpy
of_numpy = set(sys.modules)
import weftwork
new = {name.split(".")[0] for name in set(sys.modules) - of_numpy} - set(sys.stdlib_module_names)
assert new <= {"weftwork", "numpy"}, new
"""
    subprocess.run([sys.executable, "-c", code], check=True)
