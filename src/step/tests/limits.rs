//! Limits of strain, and of its change in a step.

use super::*;

/// Momentum before and after a step in which a corner is torn away, and the largest strain then.
fn torn(strain_limit: f64) -> (DVec3, DVec3, f64) {
    let limit = format!("bending = \"1e-5 N m\"\nstrain_limit = {strain_limit}");
    let text = sheet(11, "", "[solver]\ntolerance = 1e-10")
        .replace("time =", "gravity = [0, 0, 0]\ntime =");
    let world = world(&text.replace("bending = \"1e-5 N m\"", &limit));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    let corner = x.iter().position(|x| x.x + x.y < -0.99).unwrap();
    v[corner] = DVec3::new(-60.0, -40.0, 20.0);
    let before = momentum(&world, &s).0;
    s.advance(&mut comm).unwrap();
    let after = momentum(&world, &s).0;
    (before, after, s.strains().largest)
}

#[test]
fn a_stretched_triangle_is_brought_to_its_limit_and_no_momentum_appears() {
    let (_, _, unlimited) = torn(1e3);
    assert!(unlimited > 0.2, "{unlimited}");
    let (before, after, strain) = torn(0.1);
    assert!(strain < 0.11, "{strain}");
    assert!(
        (after - before).length() < 1e-7 * before.length(),
        "{before} {after}"
    );
}

/// The sheet with a corner that is torn away: how far its edges change their length in one step of
/// 5 ms, as a share, with its momentum before and after.
fn torn_edges(contact: &str) -> (f64, DVec3, DVec3, u64) {
    let text = sheet(
        11,
        "",
        &format!("[solver]\ntolerance = 1e-10\n[contact]\niterations = 1000\n{contact}"),
    )
    .replace("time =", "gravity = [0, 0, 0]\ntime =")
    .replace(
        "bending = \"1e-5 N m\"",
        "bending = \"1e-5 N m\"\nstrain_limit = 10",
    )
    .replace("1000 N/m", "1 N/m");
    let world = world(&text);
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    let corner = x.iter().position(|x| x.x + x.y < -0.99).unwrap();
    v[corner] = DVec3::new(-6.0, -4.5, 0.0);
    let before = momentum(&world, &s).0;
    let report = s.advance(&mut comm).unwrap();
    let (rest, x) = (world.model().start(), s.positions());
    let changes = world
        .model()
        .triangles()
        .iter()
        .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    let changes = changes.map(|ends| {
        let [a, b] = ends.map(|end| end as usize);
        ((x[a] - x[b]).length() / (rest[a] - rest[b]).length() - 1.0).abs()
    });
    (
        changes.fold(0.0, f64::max),
        before,
        momentum(&world, &s).0,
        report.rate_limited,
    )
}

#[test]
fn edges_change_no_faster_than_allowed() {
    let (free, _, _, none) = torn_edges("");
    assert!(free > 0.15 && none == 0, "{free}");
    let (held, before, after, pushed) = torn_edges("strain_change = 0.1");
    assert!(held < 0.12 && pushed > 0, "{held}");
    assert!(
        (after - before).length() < 1e-7 * before.length(),
        "{before} {after}"
    );
}

/// A soft sheet on two pins that is thrown at 4 m/s.
fn thrown(time: &str) -> World {
    let pins = "velocity = [0, 0, 4]\npins = [{ nearest = [-0.5, -0.5, 0] }, { nearest = [0.5, -0.5, 0] }]";
    let text = sheet(
        20,
        pins,
        "strain_limit = 0.05\n[contact]\nself_collision = false",
    );
    let text = text
        .replace("1000 N/m", "100 N/m")
        .replace(r#"step = "5 ms""#, &format!(r#"step = "5 ms"{time}"#));
    world(&text)
}

/// Takes steps of it: its largest strain, that a rank sees, how often steps were halved, the
/// reason of the first time, and where it ends.
fn stretches(
    world: &World,
    comm: &mut dyn Comm,
    steps: u32,
) -> (f64, u32, Option<String>, Vec<DVec3>) {
    let (mut strain, mut halvings, mut why) = (0.0_f64, 0, None);
    let mut s = Simulation::new(world, &*comm, &ScopeOptions::default()).unwrap();
    for _ in 0..steps {
        let report = s.advance(comm).unwrap();
        strain = strain.max(s.strains().largest);
        halvings += report.halvings;
        why = why.or(report.halved_because);
    }
    (strain, halvings, why, s.positions().to_vec())
}

/// The limit is 5 %.
#[test]
fn steps_that_may_be_cut_are_where_cloth_is_torn_beyond_its_limit() {
    let (whole, none, ..) = stretches(&thrown(""), &mut Solo::new(), 60);
    assert!(whole > 0.15 && none == 0, "{whole}");
    let cuttable = thrown(r#", shortest = "0.6 ms""#);
    let (cut, halvings, why, _) = stretches(&cuttable, &mut Solo::new(), 60);
    assert!(cut < 0.07 && halvings > 0, "{cut} {halvings}");
    let why = why.unwrap();
    assert!(
        why.contains("strain_limit") && why.contains("vertex"),
        "{why}"
    );
}

#[test]
fn ranks_cut_steps_alike_where_cloth_is_torn_beyond_its_limit() {
    let world = thrown(r#", shortest = "2.5 ms""#);
    let (_, halvings, why, x) = stretches(&world, &mut Solo::new(), 20);
    assert!(why.as_ref().unwrap().contains("strain_limit"), "{why:?}");
    let of_ranks = launch(3, |comm| stretches(&world, comm, 20));
    for (_, halvings_here, why_here, x_here) in of_ranks.unwrap() {
        assert_eq!((halvings_here, &why_here), (halvings, &why));
        assert_eq!(x_here, x);
    }
}

/// Slowly, by half a percent of strain in each step, to ten percent beyond its limit.
#[test]
fn cloth_that_is_slowly_pulled_too_far_cuts_no_steps() {
    let text = sheet(
        3,
        "",
        "strain_limit = 0.05\n[contact]\nself_collision = false",
    )
    .replace("time =", "gravity = [0, 0, 0]\ntime =")
    .replace(r#"step = "5 ms""#, r#"step = "5 ms", shortest = "1 ms""#);
    let world = world(&text);
    let x = world.model().start();
    let v: Vec<DVec3> = x.iter().map(|x| DVec3::new(x.x, 0.0, 0.0)).collect();
    let comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    for (stretched, gained, cut) in [
        (0.1, 0.005, false),
        (0.1, 0.02, true),
        (0.0, 0.055, false),
        (0.0, 0.07, true),
    ] {
        let to = x
            .iter()
            .map(|x| DVec3::new(x.x * (1.0 + stretched), x.y, x.z));
        s.state_mut().0.copy_from_slice(&to.collect::<Vec<_>>());
        let found = s.overstretched(&v, gained);
        assert_eq!(found.is_some(), cut, "{stretched} {gained}: {found:?}");
        if let Some(gain) = found {
            let expected = stretched + gained - 0.05_f64.max(stretched);
            assert!((gain - expected).abs() < 1e-12, "{gain}");
        }
    }
}

/// Two sheets, of which one bears less than it is stretched by, and the other far more.
#[test]
fn strain_is_beyond_the_limit_of_its_own_cloth() {
    let one = |name: &str, limit: f64, at: f64| {
        format!(
            "[[cloth]]\nname = \"{name}\"\ncenter = [0, 0, {at}]\ngrid = {{ size = \"1 m\", vertices = 6 }}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5, strain_limit = {limit} }}\n"
        )
    };
    let text = one("weak", 0.05, 0.0) + &one("strong", 0.5, 1.0);
    let world = world(&text);
    let comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    assert_eq!(s.strains().beyond, 0.0);
    let stretched = |by: [f64; 2]| {
        move |x: &DVec3| {
            let by = by[usize::from(x.z > 0.5)];
            DVec3::new(x.x * (1.0 + by), x.y, x.z)
        }
    };
    let rest = world.model().start().to_vec();
    for (by, beyond) in [([0.15, 0.3], 0.1), ([0.05, 0.7], 0.2), ([0.01, 0.45], 0.0)] {
        for (to, x) in s.state_mut().0.iter_mut().zip(&rest) {
            *to = stretched(by)(x);
        }
        let strains = s.strains();
        assert!((strains.largest - by[1]).abs() < 1e-9, "{strains:?}");
        assert!((strains.beyond - beyond).abs() < 1e-9, "{strains:?}");
    }
}
