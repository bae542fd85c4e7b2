//! Seams: that they close, what they bear, and that cloth beside them crosses nothing.

use glam::DVec3;

use super::moving::ends_the_same;
use super::{World, momentum, run};
use crate::collide::Passing;
use crate::collide::audit::Skin;
use crate::scene::Scene;
use crate::step::{Simulation, StepError};

/// Two square sheets of 0.2 m, 1 cm apart, whose left edges are sewn together.
fn two_sheets(vertices: [usize; 2], cloth: &str, more: &str) -> String {
    let sheet = |name: &str, z: f64, vertices: usize, cloth: &str| {
        format!(
            "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = 0.2, vertices = {vertices} }}\ncenter = [0, 0, {z}]\n{cloth}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
        )
    };
    format!(
        "time = {{ step = \"2 ms\", end = \"0.3 s\" }}\ngravity = [0, 0, 0]\nair.density = 0\npartition.patches = 4\n\
         contact = {{ thickness = \"1 mm\", certify = true }}\n{}{}[[seam]]\nname = \"edge\"\n\
         sides = [{{ cloth = \"upper\", edge = \"left\" }}, {{ cloth = \"lower\", edge = \"left\" }}]\nclose = \"0.2 s\"\n{more}\n",
        sheet("upper", 0.01, vertices[0], ""),
        sheet("lower", 0.0, vertices[1], cloth)
    )
}

fn built(text: &str) -> Result<World, String> {
    let scene = Scene::parse(text, None, &[]).map_err(|error| error.to_string())?;
    World::build(&scene).map_err(|error| error.to_string())
}

/// How far the stitch that is open farthest is open, in m.
fn widest(world: &World, x: &[DVec3]) -> f64 {
    let stitches = world.model().stitches().iter();
    let apart = stitches.map(|of| of.between(of.vertices.map(|v| x[v as usize])).length());
    apart.fold(0.0, f64::max)
}

fn crossings(world: &World, x: &[DVec3], passing: Passing) -> usize {
    let skin = Skin::new(x, world.model().triangles());
    skin.letting(passing).crossings().len()
}

/// Sides of as many vertices, and of more and fewer. Inner forces change no momentum.
#[test]
fn the_sides_of_a_seam_come_together_and_stay_so() {
    for vertices in [[9, 9], [9, 7], [6, 11]] {
        let world = built(&two_sheets(vertices, "", "")).unwrap();
        let most = vertices[0].max(vertices[1]);
        assert_eq!(world.model().stitches().len(), most);
        let mut open = Vec::new();
        let simulation = run(&world, 150, |simulation| {
            open.push(widest(&world, simulation.positions()));
        });
        assert!((open[0] - 0.01).abs() < 1e-4, "{vertices:?}: {open:?}");
        let closed = &open[99..];
        assert!(
            closed.iter().all(|apart| *apart < 1e-4),
            "{vertices:?}: {closed:?}"
        );
        let (p, l) = momentum(&world, &simulation);
        let mass: f64 = world.model().masses().iter().sum();
        assert!(
            p.length() < 1e-6 * mass && l.length() < 1e-7,
            "{vertices:?}: {p} {l}"
        );
        let sewn = world
            .model()
            .stitches()
            .iter()
            .flat_map(|of| of.neighbours());
        let passing = Passing::default().sewn(sewn);
        assert_eq!(crossings(&world, simulation.positions(), passing), 0);
    }
}

/// A sheet that hangs on another one by a seam: each of its stitches is as long as its weight over
/// their stiffness.
#[test]
fn a_seam_bears_the_weight_of_what_hangs_on_it() {
    let sheet = |name: &str, y: f64, more: &str| {
        format!(
            "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = 0.2, vertices = 7 }}\ncenter = [0, {y}, 0]\n{more}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5, poisson = 0, damping_mass = 20 }}\n"
        )
    };
    let text = format!(
        "time = {{ step = \"5 ms\", end = \"2 s\" }}\ngravity = [0, -9.81, 0]\nair.density = 0\n{}{}[[seam]]\n\
         sides = [{{ cloth = \"upper\", edge = \"bottom\" }}, {{ cloth = \"lower\", edge = \"top\" }}]\nclose = \"0.1 s\"\n",
        sheet(
            "upper",
            0.1,
            "pins = [{ min = [-1, 0.19, -1], max = [1, 0.21, 1] }]"
        ),
        sheet("lower", -0.102, "")
    );
    let world = built(&text).unwrap();
    let simulation = run(&world, 400, |_| ());
    let weight = 0.15 * 0.2 * 0.2 * 9.81;
    let x = simulation.positions();
    let pull = world.model().stitches().iter().map(|of| {
        let between = of.between(of.vertices.map(|v| x[v as usize]));
        between * of.stiffness
    });
    let pull: DVec3 = pull.sum();
    assert!(
        (pull.y.abs() / weight - 1.0).abs() < 1e-3,
        "{pull} {weight}"
    );
    assert!(
        pull.x.abs() < 1e-3 * weight && pull.z.abs() < 1e-3 * weight,
        "{pull}"
    );
    assert!(widest(&world, x) < 1e-5);
}

/// The pairs of features that are not tested are those of the mesh in which vertices that are sewn
/// together are one.
#[test]
fn features_beside_a_closed_seam_are_neighbours_and_no_others() {
    let world = built(&two_sheets([9, 9], "", "")).unwrap();
    let n = world.model().start().len() as u32;
    let mut becomes: Vec<u32> = (0..n).collect();
    for stitch in world.model().stitches() {
        let held: Vec<u32> = stitch.held().collect();
        assert_eq!(held.len(), 1);
        becomes[stitch.vertices[0] as usize] = held[0];
    }
    let geometry = world.geometry();
    let passing = geometry.cloth.surface().passing();
    let triangles = world.model().triangles();
    let edges = geometry.cloth.surface().edges();
    for edge in edges {
        for face in triangles {
            let shares = edge.iter().any(|v| face.contains(v));
            let one = edge.map(|v| becomes[v as usize]);
            let shares_as_one = face.iter().any(|v| one.contains(&becomes[*v as usize]));
            assert_eq!(shares || passing.lets(edge, face), shares_as_one);
        }
    }
}

#[test]
fn sewing_has_the_bits_of_one_rank_on_all_ranks() {
    ends_the_same(&built(&two_sheets([9, 7], "", "")).unwrap(), 120, 60);
}

/// A plate between both sheets reaches over the seam.
#[test]
fn a_seam_that_something_holds_open_ends_the_run_at_its_time_and_says_where() {
    let plate = "[[body]]\nname = \"plate\"\nshape = \"box\"\ncenter = [-0.1, 0, 0.005]\nsize = [0.08, 0.3, 0.004]\n";
    let world = built(&two_sheets([9, 9], "", plate)).unwrap();
    let mut comm = weft_runtime::comm::solo::Solo::new();
    let options = weft_runtime::ScopeOptions::default();
    let mut simulation = Simulation::new(&world, &comm, &options).unwrap();
    let error = loop {
        match simulation.advance(&mut comm) {
            Ok(_) => assert!(simulation.step() <= 100, "it closed across the plate"),
            Err(error) => break error,
        }
    };
    let StepError::OpenSeam {
        step: 100,
        seam,
        at,
        apart,
        gap,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((seam.as_str(), *gap), ("edge", 1e-3));
    assert!(*apart > 3e-3 && at.of_cloth % 9 == 0, "{error}");
    assert!(error.leaves_state() && !error.is_of_length());
    assert!(
        error.to_string().contains("seam `edge` is open by"),
        "{error}"
    );
    assert_eq!(simulation.step(), 100);
}

#[test]
fn seams_that_cannot_be_sewn_are_refused_before_the_first_step() {
    let refused = |text: &str| built(text).unwrap_err();
    let good = two_sheets([9, 9], "", "");
    let pins = "pins = [{ min = [-0.11, -1, -1], max = [-0.09, 1, 1] }]";
    let held = two_sheets([9, 9], pins, "");
    let one = "name = \"upper\"";
    let told = refused(&held.replace(one, &format!("{one}\n{pins}")));
    assert!(
        told.contains("seam `edge`: pins hold both vertex 0 of cloth"),
        "{told}"
    );
    // A pin that lets go may hold one, and so may one alone.
    let until = pins.replace("{ min", "{ until = \"0.1 s\", min");
    built(&held).unwrap();
    built(&held.replace(one, &format!("{one}\n{until}"))).unwrap();
    let told = refused(&good.replacen("edge = \"left\" }, {", "vertices = [3, 5] }, {", 1));
    assert!(
        told.contains("vertex 3 has 0 of them beside it there"),
        "{told}"
    );
    let told = refused(&good.replacen("edge = \"left\" }, {", "vertices = [0, 9, 81] }, {", 1));
    assert!(
        told.contains("cloth `upper` has no vertex 81; it has 81"),
        "{told}"
    );
    let border: Vec<String> = (0..9)
        .flat_map(|k| [k, 72 + k, 9 * k, 9 * k + 8].map(|v| v.to_string()))
        .collect();
    let all = format!("vertices = [{}] }}, {{", border.join(", "));
    let told = refused(&good.replacen("edge = \"left\" }, {", &all, 1));
    assert!(
        told.contains("one side goes round and the other has ends"),
        "{told}"
    );
}

#[test]
fn keys_of_seams_that_say_nothing_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        let text = two_sheets([9, 9], "", "").replacen(from, to, 1);
        Scene::parse(&text, None, &[]).unwrap_err().to_string()
    };
    let told = refused("{ cloth = \"lower\", edge", "{ cloth = \"lover\", edge");
    assert!(told.contains("did you mean `lower`?"), "{told}");
    let told = refused(", { cloth = \"lower\", edge = \"left\" }", "");
    assert!(told.contains("a seam has two sides"), "{told}");
    let told = refused(
        "cloth = \"lower\", edge = \"left\"",
        "cloth = \"upper\", edge = \"left\"",
    );
    assert!(told.contains("are one border"), "{told}");
    let told = refused("edge = \"left\"", "group = \"left\"");
    assert!(told.contains("groups are of cloths with a file"), "{told}");
    let told = refused("edge = \"left\"", "edge = \"left\", vertices = [1, 2]");
    assert!(
        told.contains("wants one of `edge`, `group` and `vertices`"),
        "{told}"
    );
    let told = refused("close = \"0.2 s\"", "close = 0");
    assert!(told.contains("seam.close"), "{told}");
    let text = two_sheets([9, 9], "", "gap = \"2 mm\"");
    let scene = Scene::parse(&text, None, &[]).unwrap();
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(again.seams, scene.seams);
    assert_eq!(scene.gap_of(&scene.seams[0]), 2e-3);
}
