//! Tests of what is refused, and of what the refusal says.

use super::*;

const SCENE: &str = r#"
    time = { step = "1 ms", end = "1 s" }
    [[cloth]]
    grid = { size = "1 m", vertices = 20 }
    material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }
"#;

fn scene(keys: &[(&str, &str)]) -> Scene {
    let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let overrides: Vec<_> = keys.iter().map(own).collect();
    Scene::parse(SCENE, None, &overrides).unwrap()
}

/// A million vertices.
const MILLION: MeshCounts = MeshCounts {
    vertices: 1_000_000,
    triangles: 2_000_000,
    body_triangles: 0,
    sampled_triangles: 0,
    sample_bytes: 0,
    mapped: false,
};

fn may(bytes: u64) -> impl Fn(u64) -> Option<Allowed> {
    move |processes| {
        Some(Allowed {
            bytes: bytes / processes,
            bound: Bound::Machine,
        })
    }
}

#[test]
fn a_scene_is_refused_exactly_where_it_needs_more_than_there_is() {
    let scene = scene(&[]);
    for ranks in [Ranks::threads(1), Ranks::threads(4), Ranks::process(8, 1)] {
        let needs = estimate::peak(&scene, &MILLION, ranks) as u64;
        assert_eq!(decide(&scene, &MILLION, ranks, &may(needs + 1)), Ok(()));
        assert!(decide(&scene, &MILLION, ranks, &may(needs - 1)).is_err());
        assert_eq!(decide(&scene, &MILLION, ranks, &|_| None), Ok(()));
        assert_eq!(fits(&scene, &MILLION, ranks, Limit::Any), Ok(()));
        assert_eq!(
            fits(&scene, &MILLION, ranks, Limit::Bytes(needs + 1)),
            Ok(())
        );
        let told = fits(&scene, &MILLION, ranks, Limit::Bytes(needs - 1)).unwrap_err();
        assert!(told.contains("--memory any"), "{told}");
    }
}

#[test]
fn a_refusal_names_changes_of_which_each_fits_and_no_others() {
    let scene = scene(&[]);
    let ranks = Ranks::threads(4);
    let bytes = 4_800_000_000;
    let told = decide(&scene, &MILLION, ranks, &may(bytes)).unwrap_err();
    let fewer = MeshCounts {
        vertices: 750_000,
        triangles: 1_500_000,
        ..MILLION
    };
    let most = told.split("at most ").nth(1).unwrap();
    let most: u64 = most.split(' ').next().unwrap().parse().unwrap();
    let with = |vertices: u64| {
        let counts = MeshCounts {
            vertices,
            triangles: 2 * vertices,
            ..MILLION
        };
        decide(&scene, &counts, ranks, &may(bytes))
    };
    assert_eq!(with(most), Ok(()), "{told}");
    assert!(with(most * 102 / 100 + 1).is_err(), "{told}");
    assert!(decide(&scene, &fewer, ranks, &may(bytes)).is_ok());
    // Two ranks hold less twice than four.
    assert!(told.contains("--ranks 2"), "{told}");
    assert_eq!(
        decide(&scene, &MILLION, Ranks::threads(2), &may(bytes)),
        Ok(())
    );
    assert!(decide(&scene, &MILLION, Ranks::threads(3), &may(bytes)).is_err());
    assert!(told.contains("output.pictures = false"), "{told}");
    assert!(!told.contains("contact.certify"), "{told}");
    let tight = decide(&scene, &MILLION, ranks, &may(1_000_000_000)).unwrap_err();
    assert!(!tight.contains("--ranks"), "{tight}");
}

#[test]
fn processes_of_a_node_share_and_fewer_of_them_fit() {
    let scene = scene(&[("output.pictures", "false")]);
    let told = decide(&scene, &MILLION, Ranks::process(8, 8), &may(12_000_000_000));
    let told = told.unwrap_err();
    assert!(told.contains("shared by 8 processes"), "{told}");
    let fitting = told.split(" ranks on a node").next().unwrap();
    let fitting: usize = fitting.rsplit(' ').next().unwrap().parse().unwrap();
    let decided = |here| {
        decide(
            &scene,
            &MILLION,
            Ranks::process(8, here),
            &may(12_000_000_000),
        )
    };
    assert_eq!(decided(fitting), Ok(()));
    assert!(decided(fitting + 1).is_err());
}

#[test]
fn cloth_that_does_not_fit_is_refused_before_it_is_made() {
    let huge = scene(&[("cloth.grid.vertices", "4000")]);
    let world = build(&huge, 1, Ranks::none(), Limit::Bytes(1 << 30));
    let Err(error) = world else {
        panic!("a grid of 16 million vertices was built");
    };
    assert!(matches!(error, WorldError::Memory(_)), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert!(build(&scene(&[]), 1, Ranks::none(), Limit::Left).is_ok());
}

/// A process that maps a prepared world, and subscribes to the state of others, needs a share of
/// what one alone needs.
#[test]
fn processes_of_a_prepared_world_need_less_the_more_there_are() {
    let scene = scene(&[
        ("partition.state", "\"subscribed\""),
        ("output.pictures", "false"),
        ("output.frames", "false"),
        ("output.checkpoints", "false"),
    ]);
    let mapped = MeshCounts {
        mapped: true,
        ..MILLION
    };
    let needs = |counts, all| estimate::peak(&scene, counts, Ranks::process(all, 1));
    let one = needs(&MILLION, 1);
    assert!(needs(&mapped, 4) < 0.42 * one);
    assert!(needs(&mapped, 16) < 0.2 * one);
    assert!(needs(&mapped, 64) < 0.5 * needs(&MILLION, 64));
    for all in [4, 16, 64] {
        assert!(needs(&mapped, all) < needs(&MILLION, all), "{all}");
    }
}
