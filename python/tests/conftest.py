"""Fixtures that the tests share: the command, a small scene, and a run of it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEFT = Path(os.environ.get("WEFT", ROOT / "target" / "release" / "weft"))

SMALL = """
title = "small"
[time]
step = "4 ms"
end = "80 ms"
[[cloth]]
name = "napkin"
grid = { size = "0.3 m", vertices = 12 }
center = [0.03, 0.02, 0.1655]
material = { density = "0.15 kg/m2", stretch = "300 N/m", bending = "1e-5 N m", damping_stiffness = "4 ms" }
[[body]]
name = "ball"
shape = "sphere"
center = [0, 0, 0.08]
radius = "8 cm"
surface = "triangles"
edge = "3 cm"
[[body]]
name = "lift"
shape = "plane"
extent = "1 m"
velocity = [0, 0, -0.1]
[partition]
patches = 8
[output]
interval = "40 ms"
pictures = false
"""


def weft(*arguments, cwd=None):
    done = subprocess.run([WEFT, *arguments], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A folder with a scene, and a traced run of it on two ranks."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.toml").write_text(SMALL)
    weft("run", "small.toml", "--ranks", "2", "--quiet", "--trace", "--out", "out", cwd=folder)
    return folder
