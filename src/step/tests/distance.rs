//! Bodies that cloth meets by the sampled distance from their mesh.

use std::path::Path;
use std::sync::Arc;

use glam::DVec3;

use super::moving::{ends_the_same, turned};
use super::{Simulation, run};
use crate::collide::audit::{Inside, Met, Skin, crossings};
use crate::collide::bodies::collider::DistanceThen;
use crate::mesh::{TriMesh, cuboid, grid, icosphere, write_obj};
use crate::scene::Scene;
use crate::step::{World, WorldError};

const RADIUS: f64 = 0.06;
const KEPT: f64 = 0.004;

/// Writes a mesh into a folder.
fn write(folder: &Path, mesh: &TriMesh) {
    let mut text = Vec::new();
    write_obj(mesh, &mut text).unwrap();
    std::fs::write(folder.join("figure.obj"), text).unwrap();
}

fn ball(edge: f64) -> TriMesh {
    icosphere(DVec3::ZERO, RADIUS, edge).unwrap()
}

/// A cloth of 0.2 m by 0.2 m in steps of 4 ms, with extra lines in its table and at the end.
fn built(folder: &Path, cloth: &str, rest: &str) -> Result<World, WorldError> {
    built_under("", folder, cloth, rest)
}

/// Does as [`built`] for a scene with extra lines at its top.
fn built_under(top: &str, folder: &Path, cloth: &str, rest: &str) -> Result<World, WorldError> {
    let text = format!(
        "{top}\ntime = {{ step = \"4 ms\", end = \"2 s\" }}\ncontact.thickness = \"4 mm\"\npartition.patches = 4\n[[cloth]]\n\
         grid = {{ size = 0.2, vertices = 13 }}\n{cloth}\n\
         material = {{ density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"4 ms\" }}\n{rest}\n"
    );
    let scene = Scene::parse(&text, Some(&folder.join("x.toml")), &[]);
    World::build(&scene.unwrap_or_else(|error| panic!("{error}")))
}

const FIGURE: &str = "[[body]]\nname = \"figure\"\nshape = \"mesh\"\nmesh = \"figure.obj\"\nsurface = \"distance\"\n";

/// A cloth over a body of samples, with extra lines for that.
fn world(mesh: &TriMesh, cloth: &str, body: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), mesh);
    built(folder.path(), cloth, &format!("{FIGURE}{body}")).unwrap()
}

/// The sampled distance of the vertex that is deepest.
fn least(world: &World, s: &Simulation<'_>) -> f64 {
    let depths = s.positions().iter().map(|&x| -world.depth(x, s.time()));
    depths.fold(f64::INFINITY, f64::min)
}

/// Cloth rests on samples where it rests on the formula of the same ball, but for their error and
/// for what the mesh has less than the ball.
#[test]
fn cloth_rests_on_samples_as_on_a_formula() {
    let folder = tempfile::tempdir().unwrap();
    let of_formula = format!(
        "[[body]]\nshape = \"sphere\"\ncenter = [0, 0, 0]\nradius = {RADIUS}\nfriction = 0.5\nsurface = \"analytic\""
    );
    let center = "center = [0.003, 0.002, 0.068]";
    let formula = built(folder.path(), center, &of_formula).unwrap();
    let samples = world(&ball(0.006), center, "cell = \"4 mm\"\nfriction = 0.5");
    let error = samples.samplings().flatten().next().unwrap().error_m;
    let facets = 0.006 * 0.006 / (6.0 * RADIUS);
    assert!(error < 2e-4, "{error}");
    let nearest = [formula, samples].map(|world| {
        let s = run(&world, 200, |s| {
            assert!(least(&world, s) > 0.9 * KEPT, "{}", s.step());
        });
        let mut radii: Vec<f64> = s.positions().iter().map(|x| x.length()).collect();
        radii.sort_unstable_by(f64::total_cmp);
        radii.truncate(30);
        let [first, last] = [radii[0], radii[29]];
        assert!(last - first < 2e-3, "{first} to {last}");
        radii.iter().sum::<f64>() / 30.0
    });
    let apart = (nearest[0] - nearest[1]).abs();
    assert!(
        apart < error + facets + 2e-5,
        "{nearest:?} {error} {facets}"
    );
    assert!((nearest[1] - RADIUS - KEPT).abs() < 5e-4, "{nearest:?}");
}

fn table() -> TriMesh {
    let center = DVec3::new(0.0, 0.0, -0.05);
    cuboid(center, DVec3::new(0.6, 0.6, 0.1), 0.1).unwrap()
}

/// Friction takes the cloth along at 60° a second.
#[test]
fn a_turntable_of_samples_takes_cloth_along() {
    let round = "friction = 0.8\ncell = \"1 cm\"\nmotion = { repeat = true, keyframes = [{ time = 0 }, { time = \"6 s\", turn = [0, 0, \
                 \"360 deg\"] }] }";
    let world = world(&table(), "center = [0, 0, 0.005]", round);
    let mut before = Vec::new();
    let s = run(&world, 225, |s| {
        if s.step() == 100 {
            before = s.positions().to_vec();
        }
        assert!(least(&world, s) > 0.0, "{}", s.step());
    });
    let (angle, uneven) = turned(&before, s.positions());
    assert!(
        (angle - 30.0).abs() < 0.1 && uneven < 0.2,
        "{angle} {uneven}"
    );
}

#[test]
fn a_body_of_samples_carries_cloth_at_its_velocity() {
    let body = "friction = 0.8\ncell = \"1 cm\"\nvelocity = [0.1, 0.05, 0.2]";
    let world = world(&table(), "center = [0, 0, 0.005]", body);
    let mut before = Vec::new();
    let s = run(&world, 200, |s| {
        if s.step() == 100 {
            before = s.positions().to_vec();
        }
    });
    for (from, to) in before.iter().zip(s.positions()) {
        let went = *to - *from;
        assert!(
            (went - DVec3::new(0.04, 0.02, 0.08)).length() < 1e-3,
            "{went}"
        );
    }
}

/// Ranks, and ranks that go on from a checkpoint, have the bits of one.
#[test]
fn ranks_and_restarts_meet_samples_alike() {
    let body = "cell = \"5 mm\"\nfriction = 0.6\nmotion = { keyframes = [{ time = 0 }, { time = 1, translation = [0, 0, 0.3], turn = [2, 1, \
                3] }] }";
    let world = world(&ball(0.012), "center = [0.003, 0.002, 0.07]", body);
    assert!(ends_the_same(&world, 24, 12) > 100);
}

#[test]
fn worlds_with_samples_are_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &ball(0.012));
    let text = format!(
        "[[cloth]]\ngrid = {{ size = 0.2, vertices = 13 }}\ncenter = [0, 0, 0.07]\n\
         material = {{ density = 0.15, stretch = 300, bending = 1e-5 }}\n{FIGURE}"
    );
    let scene = Scene::parse(&text, Some(&folder.path().join("x.toml")), &[]).unwrap();
    let fields = [1, 2].map(|threads| {
        let world = World::build_on(&scene, threads).unwrap();
        let sampled = Arc::clone(world.solids[0].sampled().unwrap());
        (sampled, world.digest())
    });
    let [(one, digest), (two, other)] = &fields;
    assert_eq!(digest, other);
    let (DistanceThen::Still(one), DistanceThen::Still(two)) = (one.then(0.0), two.then(0.0))
    else {
        panic!("the body keeps its shape");
    };
    assert!(one.has_the_bits_of(two));
}

/// A fast cloth and a plate thinner than its way in a step: no vertex passes.
#[test]
fn fast_cloth_does_not_pass_a_thin_plate() {
    let plate = cuboid(DVec3::ZERO, DVec3::new(0.3, 0.3, 0.004), 0.1).unwrap();
    let cloth = "center = [0, 0, 0.05]\nvelocity = [0, 0, -40]";
    let world = world(&plate, cloth, "cell = \"2 mm\"\nvelocity = [0, 0, 5]");
    let mut hits = 0;
    run(&world, 40, |s| {
        let top = 0.002 + 5.0 * s.time();
        for x in s.positions() {
            let beside = x.x.abs().max(x.y.abs()) > 0.149;
            assert!(x.z > top || beside, "step {}: {x}", s.step());
        }
        assert!(least(&world, s) > 0.0);
        hits += usize::from(s.squeezed().is_empty());
    });
    assert_eq!(hits, 40);
}

#[test]
fn meshes_without_a_distance_and_cells_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = |mesh: &TriMesh, cloth: &str, body: &str| {
        write(folder.path(), mesh);
        let error = built(folder.path(), cloth, &format!("{FIGURE}{body}")).unwrap_err();
        error.to_string()
    };
    let above = "center = [0, 0, 0.07]";
    let open = grid([0.4; 2], [6; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    let found = told(&open, above, "");
    assert!(
        found.starts_with("body `figure` has surface = \"distance\", for which its mesh must be closed, and it has 20 open edges"),
        "{found}"
    );
    assert!(found.contains("surface = \"triangles\""), "{found}");
    let found = told(&ball(0.02), above, "cell = 0.1");
    assert!(
        found.contains("too large for it") && found.contains("`cell` of 6.0"),
        "{found}"
    );
    let found = told(&ball(0.02), above, "cell = 1e-7");
    assert!(found.contains("too small for it"), "{found}");
    let found = told(&ball(0.02), "center = [0, 0, 0.03]", "");
    assert!(
        found.contains("inside body `figure`") || found.contains("starts"),
        "{found}"
    );
    let parse = |body: &str| {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 0.2, vertices = 13 }}\nmaterial = {{ density = 0.15, stretch = 300, bending = 1e-5 }}\n[[body]]\n{body}"
        );
        let scene = Scene::parse(&text, Some(&folder.path().join("x.toml")), &[]);
        scene.unwrap_err().to_string()
    };
    for (body, remedy) in [
        (
            "shape = \"sphere\"\ncenter = [0, 0, 0]\nradius = 1\nsurface = \"distance\"",
            "\"analytic\"",
        ),
        (
            "shape = \"mesh\"\nmesh = \"figure.obj\"\ncell = 0.01",
            "surface = \"distance\"",
        ),
        (
            "shape = \"mesh\"\nmesh = \"figure.obj\"\nsurface = \"distance\"\ncell = 0",
            "greater than 0",
        ),
        (
            "shape = \"mesh\"\nmesh = \"figure.obj\"\nsurface = \"distance\"\ncell = nan",
            "cell",
        ),
    ] {
        let found = parse(body);
        assert!(found.contains(remedy), "{found}");
    }
}

/// Samples that need more memory than there is are refused with cells that would fit.
#[test]
fn too_many_samples_are_refused_with_what_would_fit() {
    use crate::memory::{Limit, Ranks, build};

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &ball(0.012));
    let with = |cell: f64| {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 0.2, vertices = 13 }}\ncenter = [0, 0, 0.07]\n\
             material = {{ density = 0.15, stretch = 300, bending = 1e-5 }}\n{FIGURE}cell = {cell}"
        );
        let scene = Scene::parse(&text, Some(&folder.path().join("x.toml")), &[]).unwrap();
        build(&scene, 1, Ranks::threads(1), Limit::Bytes(60_000_000))
    };
    let told = with(1e-4).unwrap_err().to_string();
    let wider = told
        .split("a `cell` ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let wider: f64 = wider.parse().unwrap();
    assert!(with(1e-4 * wider).is_ok(), "{told}");
}

/// Audits look at the mesh: what is deeper in it than samples may err is inside.
#[test]
fn audits_count_vertices_deeper_than_the_error() {
    let world = world(&ball(0.012), "center = [0, 0, 0.07]", "cell = \"4 mm\"");
    let bound = world.samplings().flatten().next().unwrap().bound_m;
    let x = [
        DVec3::Z * (RADIUS - 0.9 * bound),
        DVec3::Z * (RADIUS - 1.5 * bound),
        DVec3::X * 2.0 * RADIUS,
    ];
    let audited = world.audited_bodies(0.0);
    let met = audited[0].1.meet(&Skin::new(&x, &[[0, 1, 2]]));
    let inside = Inside {
        vertices: vec![1],
        faces: Vec::new(),
    };
    assert_eq!(met, Met::Inside(inside));
}

/// Writes the files of a ball whose vertices are moved by a function of them and of the sample.
fn sequence(folder: &Path, samples: u32, place: impl Fn(DVec3, f64) -> DVec3) {
    for sample in 0..samples {
        let mut mesh = ball(0.012);
        for p in &mut mesh.positions {
            *p = place(*p, f64::from(sample));
        }
        let mut text = Vec::new();
        write_obj(&mesh, &mut text).unwrap();
        std::fs::write(folder.join(format!("figure.{sample:03}.obj")), text).unwrap();
    }
}

const SEQUENCE: &str = "[[body]]\nname = \"figure\"\nshape = \"mesh\"\nsequence = \"figure.*.obj\"\nrate = 25\n\
                        surface = \"distance\"\n";

/// A cloth over a body of samples in space and time, which it reads from a folder as it goes, with
/// extra lines at the top and at the end.
fn deforming(top: &str, folder: &Path, place: impl Fn(DVec3, f64) -> DVec3, body: &str) -> World {
    sequence(folder, 10, place);
    let center = "center = [0.003, 0.002, 0.07]";
    built_under(top, folder, center, &format!("{SEQUENCE}{body}")).unwrap()
}

const CERTIFIED: &str = "contact.certify = true";

/// It breathes, and is dented while it does.
fn breathing(p: DVec3, k: f64) -> DVec3 {
    let dent = 0.1 * (50.0 * p.x).sin() * (k * 0.4).sin();
    p * (1.0 + 0.15 * (k * 0.7).sin() + dent)
}

/// Samples that only translate are the rigid body of the same mesh up to rounding, until rounding
/// decides whether a vertex sticks.
#[test]
fn samples_that_only_go_along_are_a_rigid_body() {
    let velocity = DVec3::new(0.1, 0.05, 0.2);
    let friction = "friction = 0.8\ncell = \"4 mm\"";
    let folder = tempfile::tempdir().unwrap();
    let goes = |p: DVec3, k: f64| p + velocity * (k / 25.0);
    let by_samples = deforming("", folder.path(), goes, friction);
    let rigid = format!("{friction}\nvelocity = [0.1, 0.05, 0.2]");
    let rigid = world(&ball(0.012), "center = [0.003, 0.002, 0.07]", &rigid);
    let compared = [&by_samples, &rigid].map(|world| {
        let mut compared = Vec::new();
        let _end = run(world, 60, |s| {
            assert!(least(world, s) > 0.9 * KEPT, "{}", s.step());
            if s.step() == 36 {
                compared = s.positions().to_vec();
            }
        });
        assert!(!compared.is_empty());
        compared
    });
    let apart = compared[0]
        .iter()
        .zip(&compared[1])
        .map(|(a, b)| a.distance(*b));
    let apart = apart.fold(0.0, f64::max);
    assert!(apart < 1e-7, "{apart}");
}

/// Certified cloth on a body that breathes: no vertex is in its samples, nor deeper in its mesh
/// than these can err, and cloth crosses no cloth.
#[test]
fn certified_cloth_keeps_out_of_a_body_that_breathes() {
    let folder = tempfile::tempdir().unwrap();
    let world = deforming(CERTIFIED, folder.path(), breathing, "cell = \"4 mm\"");
    let mut lowest = f64::INFINITY;
    let s = run(&world, 90, |s| {
        let x = s.positions();
        assert_eq!(crossings(x, world.model().triangles()).len(), 0);
        assert!(least(&world, s) > 0.0, "{}", s.step());
        let skin = Skin::new(x, world.model().triangles());
        let met = world.audited_bodies(s.time())[0].1.meet(&skin);
        assert_eq!(met, Met::Inside(Inside::default()), "{}", s.step());
        lowest = lowest.min(least(&world, s));
    });
    assert!(lowest < 1.2 * KEPT && s.squeezed().is_empty(), "{lowest}");
    drop(s);
    // Three ranks, from the start and from a state between two samples.
    assert!(ends_the_same(&world, 60, 33) > 0);
}

/// Friction takes cloth along with a surface that turns by its samples.
#[test]
fn samples_that_turn_take_cloth_along() {
    let turned_by = |degrees: f64, p: DVec3| {
        let (sine, cosine) = degrees.to_radians().sin_cos();
        DVec3::new(cosine * p.x - sine * p.y, sine * p.x + cosine * p.y, p.z)
    };
    let folder = tempfile::tempdir().unwrap();
    for sample in 0..12 {
        let mut mesh = table();
        for p in &mut mesh.positions {
            *p = turned_by(2.4 * f64::from(sample), *p);
        }
        let mut text = Vec::new();
        write_obj(&mesh, &mut text).unwrap();
        std::fs::write(folder.path().join(format!("figure.{sample:03}.obj")), text).unwrap();
    }
    let body = format!("{SEQUENCE}friction = 0.8\ncell = \"1 cm\"");
    let world = built(folder.path(), "center = [0, 0, 0.005]", &body).unwrap();
    let mut before = Vec::new();
    let s = run(&world, 100, |s| {
        if s.step() == 50 {
            before = s.positions().to_vec();
        }
        assert!(least(&world, s) > 0.0, "{}", s.step());
    });
    // 60° a second for 0.2 s.
    for (from, to) in before.iter().zip(s.positions()) {
        let off = turned_by(12.0, *from).distance(*to);
        assert!(off < 1.5e-3, "{from} is {off} off");
    }
}

/// A body that closes on a plate lets cloth through itself, marked, and no cloth through cloth.
#[test]
fn a_body_of_samples_that_closes_on_a_plate_lets_cloth_through() {
    let plate = "[[body]]\nshape = \"box\"\ncenter = [0, 0, 0.12]\nsize = [0.6, 0.6, 0.02]";
    let body = format!(
        "cell = \"4 mm\"\nmotion = {{ keyframes = [{{ time = 0 }}, {{ time = 0.16, translation = [0, 0, 0.1] }}] }}\n{plate}"
    );
    let folder = tempfile::tempdir().unwrap();
    let world = deforming(CERTIFIED, folder.path(), breathing, &body);
    let mut squeezed = 0;
    run(&world, 36, |s| {
        assert_eq!(crossings(s.positions(), world.model().triangles()).len(), 0);
        squeezed = squeezed.max(s.squeezed().len());
    });
    assert!(squeezed > 0);
}

#[test]
fn sequences_without_a_distance_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let told = || {
        let above = "center = [0, 0, 0.3]";
        built(at, above, SEQUENCE).unwrap_err().to_string()
    };
    sequence(at, 3, |p, _| p);
    let write = |name: &str, mesh: &TriMesh| {
        let mut text = Vec::new();
        write_obj(mesh, &mut text).unwrap();
        std::fs::write(at.join(name), text).unwrap();
    };
    write("figure.002.obj", &ball(0.02));
    let found = told();
    assert!(
        found.contains("figure.002.obj") && found.contains("vertices and"),
        "{found}"
    );
    let open = grid([0.4; 2], [6; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    (0..3).for_each(|k| write(&format!("figure.{k:03}.obj"), &open));
    let found = told();
    assert!(found.contains("its mesh must be closed"), "{found}");
}
