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
    (before, after, s.largest_strain())
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

/// The sheet with a corner that is torn away: how far its edges change their length in one step of 5 ms, as a share, with its momentum
/// before and after.
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
    let (rest, x) = (world.model().rest(), s.positions());
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
