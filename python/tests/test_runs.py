"""Files of runs, as arrays; and the errors for damaged files."""

import json
import shutil

import numpy as np
import pytest

import weftwork


@pytest.fixture
def damaged(small, tmp_path):
    shutil.copytree(small / "out", tmp_path / "out")
    return tmp_path / "out"


def test_a_run_is_read_whole(small):
    run = weftwork.Run(small / "out")
    assert run.exit == 0 and run.info["scene"]["name"] == "small"
    assert [frame.step for frame in run.frames] == [0, 10, 20]
    assert run.frames[1].time == pytest.approx(0.04)
    assert len(run.frames[1:]) == 2 and run.frames[-1].step == 20
    history = run.history
    assert history["step"].dtype == np.int64 and list(history["step"]) == list(range(1, 21))
    assert history["time_s"].dtype == np.float64
    assert history["stop"].dtype.kind == "U" and set(history["stop"]) <= {"relative", "absolute", "start"}
    frame = run.frames[-1]
    assert set(frame.of_triangles["owner"]) == {0, 1}
    assert len(frame.of_triangles["patch"]) == len(frame.triangles) == 242
    checkpoint = run.checkpoint()
    assert checkpoint.step == 20 and checkpoint.header["vertices"] == 144
    assert np.array_equal(checkpoint.positions, frame.positions)
    assert np.array_equal(checkpoint.velocities, frame.velocities)
    assert checkpoint.held.dtype == np.bool_ and checkpoint.held.any()


def test_forces_are_those_of_the_ledger(small):
    forces = weftwork.Run(small / "out").forces()
    assert {"gravity", "bodies", "pins", "contact", "cut", "rest"} <= set(forces)
    assert forces["gravity"][:, 2] == pytest.approx(-9.81 * 0.15 * 0.09)
    # The ball bears some of the weight in the end.
    assert forces["bodies"][-1, 2] > 0


def test_contact_forces_of_a_frame_add_up_to_the_ledger(small):
    run = weftwork.Run(small / "out")
    frame, forces = run.frames[-1], run.forces()
    force = frame.of_vertices["contact_force"]
    assert force.shape == frame.positions.shape
    touched = np.linalg.norm(force, axis=1) > 0
    assert touched.any() and not touched.all()
    together = sum(forces[entry][-1] for entry in ("bodies", "contact", "cut"))
    assert force.sum(axis=0) == pytest.approx(together, abs=1e-9)


def test_a_trace_has_the_spans_of_all_ranks(small):
    trace = weftwork.Run(small / "out").trace()
    assert set(trace.rank) == {0, 1}
    steps = trace.name == "step"
    assert steps.sum() == 0 or (trace.duration[steps] > 0).all()
    total = trace.total()
    assert total["collide"] > 0 and total["solve"] > 0
    assert sum(total.values()) == pytest.approx(trace.duration.sum())
    assert (np.diff(trace.begin) >= 0).all()


def test_a_run_that_goes_on_is_read_as_far_as_it_is(damaged):
    record = json.loads((damaged / "run.json").read_text())
    record["exit"] = record["result"] = None
    (damaged / "run.json").write_text(json.dumps(record))
    history = (damaged / "history.csv").read_text()
    (damaged / "history.csv").write_text(history[:-30])
    (damaged / "frames.pvd").unlink()
    run = weftwork.Run(damaged)
    assert run.exit is None and run.hash is None
    assert list(run.history["step"]) == list(range(1, 20))
    assert len(run.frames) == 0


@pytest.mark.parametrize(
    "file, bytes, use",
    [
        ("run.json", b"{", lambda run: run.info),
        ("run.json", b"[]", lambda run: run.info),
        ("run.json", b'{"schema": 2}', lambda run: run.info),
        ("run.json", b"\xff\xfe\x00", lambda run: run.info),
        ("history.csv", b"", lambda run: run.history),
        ("history.csv", b"a,b\n1\n", lambda run: run.history),
        ("history.csv", b"\xff\n", lambda run: run.history),
        ("frames.pvd", b"<VTKFile>", lambda run: run.frames),
        ("frames/cloth.000010.vtp", b"", lambda run: run.frames[1].positions),
        ("frames/cloth.000010.vtp", bytes(1000), lambda run: run.frames[1].positions),
        ("trace.json", b"{}", lambda run: run.trace()),
        ("trace.json", b'{"traceEvents":[{"ph":"E","pid":1,"tid":1,"ts":1}]}', lambda run: run.trace()),
        ("state.000020.ckpt", b"WEFTCKPT", lambda run: run.checkpoint()),
    ],
)
def test_damaged_files_are_refused_by_name(damaged, file, bytes, use):
    run = weftwork.Run(damaged)
    (damaged / file).write_bytes(bytes)
    with pytest.raises(weftwork.FileError, match=file.split("/")[-1].replace(".", r"\.")) as error:
        use(run)
    assert error.value.file == damaged / file


@pytest.mark.parametrize("missing", [1, 40, 1000])
def test_frames_that_are_cut_off_are_refused(damaged, missing):
    frame = weftwork.Run(damaged).frames[1]
    frame.path.write_bytes(frame.path.read_bytes()[:-missing])
    with pytest.raises(weftwork.FileError, match="not all of it"):
        frame.positions


def test_files_outside_of_a_run_are_not_read(damaged):
    list_of_frames = (damaged / "frames.pvd").read_text()
    for file in ("../run.json", "/etc/passwd", "frames/../../x.vtp"):
        named = list_of_frames.replace("frames/cloth.000010.vtp", file)
        (damaged / "frames.pvd").write_text(named)
        with pytest.raises(weftwork.FileError, match="outside"):
            weftwork.Run(damaged).frames


def test_what_is_no_run_is_refused(tmp_path):
    for directory in (tmp_path, tmp_path / "none"):
        with pytest.raises(weftwork.FileError, match="holds no run"):
            weftwork.Run(directory)
