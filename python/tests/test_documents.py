"""Notebooks, blocks of Python that users copy, and the schema of scenes."""

import json
import re
import tomllib

import jsonschema
import nbformat
import pytest
from nbclient import NotebookClient

from conftest import ROOT, WEFT, weft

NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs" / "src").glob("*.md"))]
SCENES = sorted((ROOT / "scenes").rglob("*.toml"))


def blocks(language):
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for number, block in enumerate(re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)):
            found.append(pytest.param(block, id=f"{page.relative_to(ROOT)}:{number}"))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path, monkeypatch):
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, f"{path}: has outputs; strip them"
    monkeypatch.setenv("PATH", f"{WEFT.parent}:{__import__('os').environ['PATH']}")
    monkeypatch.setenv("WEFT_NOTEBOOK_SMALL", "1")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert pictures, f"{path}: draws nothing"


def test_there_are_notebooks_and_blocks():
    assert len(NOTEBOOKS) == 2
    assert len(blocks("python")) >= 4


@pytest.mark.parametrize("block", blocks("python"))
def test_blocks_of_python_run(block, tmp_path, monkeypatch):
    """Each in a folder in which ``weft run quick`` has run, shortened."""
    if not (tmp_path.parent / "runs").exists():
        weft(
            "run", "quick", "--quiet", "--steps", "250", "--set", "cloth.grid.vertices=12",
            "--set", "output.pictures=false", "--trace=1..5", cwd=tmp_path.parent,
        )  # fmt: skip
    monkeypatch.chdir(tmp_path.parent)
    exec(compile(block, "block", "exec"), {"__name__": "__main__"})


SCHEMA = json.loads((ROOT / "contrib" / "scene.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


@pytest.mark.parametrize("path", SCENES, ids=lambda path: str(path.relative_to(ROOT)))
def test_scenes_satisfy_their_schema(path):
    VALIDATOR.check_schema(SCHEMA)
    VALIDATOR.validate(tomllib.loads(path.read_text(encoding="utf-8")))


def test_all_keys_in_force_satisfy_the_schema():
    for name in ("quick", "shirt", "turntable", "curtain"):
        VALIDATOR.validate(tomllib.loads(weft("check", name)))


@pytest.mark.parametrize(
    "change",
    [
        {"tme": {}},
        {"time": {"stepp": 1}},
        {"time": {"step": 0}},
        {"time": {"step": [1]}},
        {"solver": {"integrator": "eulr"}},
        {"cloth": []},
        {"gravity": [0, 0]},
        {"partition": {"patches": 1.5}},
        {"time": {"step": "fast"}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_scenes_refuse(change):
    scene = tomllib.loads((ROOT / "scenes" / "quick.toml").read_text())
    assert not VALIDATOR.is_valid({**scene, **change})
