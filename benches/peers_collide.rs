//! The stages of a collision phase beside those of other libraries: the same cloth, in one run, on
//! one core.
//!
//!   cargo bench --bench peers_collide [-- --quick] [VERTICES_OF_A_SIDE...]
//!
//! `--quick` is the smallest cloth alone. The peers, in `benches/peers`, are built when needed into
//! `target/peers`; one that is not there is left out, with a word on what it needs:
//!
//! * [parry](https://parry.rs) and [obvhs](https://docs.rs/obvhs), with the same flags as this
//!   bench;
//! * [Embree](https://www.embree.org) and [FCL](https://github.com/flexible-collision-library/fcl):
//!   `apt-get install g++ libembree-dev libfcl-dev libeigen3-dev`;
//! * [Coal](https://github.com/coal-library/coal):
//!   `apt-get install g++ libeigen3-dev; python3 -m venv VENV && VENV/bin/pip install coal`, and
//!   `COAL_PREFIX=VENV/lib/python3.VERSION/site-packages/cmeel.prefix`;
//! * [IPC Toolkit](https://ipctk.xyz): `python3 -m venv VENV && VENV/bin/pip install numpy ipctk`,
//!   and `IPCTK_PYTHON=VENV/bin/python`.
//!
//! | stage | cloth | what is timed, ours and theirs |
//! |---|---|---|
//! | refit | crumpled | positions to volumes of nodes: 18 planes around vertices; boxes |
//! | refit-moving | crumpled, moving | the same, 18 planes around each motion; boxes at rest |
//! | pairs | crumpled | volumes to pairs of triangles whose volumes meet; no culling |
//! | near-pairs-all | crumpled | the same, of volumes larger by half of `h`, a quarter of a cell |
//! | near-pairs | crumpled | the same, ours with culling and what that asks of positions |
//! | candidates | crumpled, moving | positions to unique pairs of features; no culling |
//! | contacts | crumpled | positions to pairs of features closer than `h`; ours culled |
//! | queries | crumpled, moving | continuous collision detection of all these pairs |
//! | queries-jitter | crumpled, jittered | the same with vertices moved by a quarter of a cell |
//! | ball-pairs | draped | volumes to pairs of triangles of cloth and ball |
//!
//! Their queries are run with `additive` and `tight`. With jitter theirs stop looking behind
//! the first impact, and ours answer each query.
//!
//! Counts are compared too, and the bench fails if they differ: boxes in our trees must meet as
//! often as in theirs; volumes of 18 planes where boxes meet and the volumes do, or nearly so;
//! candidates whose volumes meet must be IPC Toolkit's; and as many pairs must be close as it says
//! (of cloths up to 100 000 vertices).

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::ffi::OsString;
use std::fs;
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use glam::DVec3;
use weft_io::Show as _;
use weftwork::collide::bodies::BodySurface;
use weftwork::collide::candidates::{self, Tree};
use weftwork::collide::ccd::{EdgeEdge, Motion, Separation, VertexFace, edge_edges, vertex_faces};
use weftwork::collide::contact::PairKind;
use weftwork::collide::{
    BodyMotion, Bvh, ClothSurface, Collider, Contact, Distances, Geometry, Kdop, Kdop18, Snapshot,
    TestRun, Volumes,
};
use weftwork::mesh::TriMesh;

#[path = "common/draped.rs"]
mod draped;
#[path = "common/timing.rs"]
mod timing;

use draped::Cloth;

/// Vertices along a side, and into how many parts sides of the ball's icosahedron are cut.
const SIZES: [(usize, u32); 3] = [(100, 22), (316, 63), (707, 63)];
/// The time below which a measurement is repeated more often, here and in the peers: caches take a
/// while to fill.
const SETTLED: Duration = Duration::from_millis(250);
/// How often each has its turn; the best counts.
const ROUNDS: usize = 3;
/// The most vertices along a side for which pairs of IPC Toolkit are looked at one by one: Python
/// takes minutes for more.
const CHECKED: usize = 400;
/// The thickness of contacts as a share of a cell.
const THICKNESS: f64 = 0.25;
/// The lines of a step's grid are no farther apart than two thirds of this, in m, on cloth of 2 m.
const GRID: f64 = 1.5e-4;
/// How far jittered vertices go in a step, as a share of a cell.
const JITTER: f64 = 0.25;
/// Vertices along a side of a patch, about, and the fewest patches along a side of the cloth.
const PATCH: usize = 32;
const PATCHES: usize = 6;

/// Milliseconds and a count, by stage and by whose they are.
type Figures = BTreeMap<(String, String), (f64, u64)>;

/// The cloths of a size, prepared for collisions.
struct Scene {
    side: usize,
    crumpled: Cloth,
    draped: Cloth,
    ball: TriMesh,
    still: Vec<DVec3>,
    motion: Vec<DVec3>,
    h: f64,
    /// The motion of vertices that each go elsewhere.
    jitter: Vec<DVec3>,
    /// Contacts within the thickness, and of volumes that touch.
    near: Distances,
    touching: Distances,
    surface: ClothSurface,
    culled: ClothSurface,
    body: Vec<Collider>,
    motions: [BodyMotion; 1],
}

impl Scene {
    fn new(side: usize, cuts: u32) -> Self {
        let (crumpled, draped) = (Cloth::crumpled(side), Cloth::draped(side));
        let ball = draped::ball(cuts);
        let rest = &crumpled.rest;
        let along = side.div_ceil(PATCH).max(PATCHES);
        let part = |index: usize| index * along / side;
        let patch_of = |v: u32| part(v as usize / side) * along + part(v as usize % side);
        let patches = along * along;
        let surface = ClothSurface::new(&rest.triangles, &rest.positions, patches, patch_of);
        let h = THICKNESS * crumpled.cell;
        let motion = crumpled.x.iter().zip(&crumpled.end);
        Self {
            side,
            still: vec![DVec3::ZERO; crumpled.x.len()],
            motion: motion.map(|(x, end)| end - x).collect(),
            jitter: jitter(crumpled.x.len(), JITTER * crumpled.cell),
            h,
            near: Distances::alike(h, 0.0, 0),
            touching: Distances::alike(0.0, 0.0, 1),
            culled: surface.clone().with_culling(h),
            surface,
            body: vec![Collider::Triangles(Box::new(BodySurface::new(
                &ball,
                0.0,
                &[],
            )))],
            motions: [BodyMotion::constant(DVec3::ZERO)],
            crumpled,
            draped,
            ball,
        }
    }

    /// Cloth against itself within `reach`, if it moves by `v`.
    fn crumpled<'a>(
        &'a self,
        cloth: &'a ClothSurface,
        volumes: &'a mut Volumes,
        (v, reach): (&'a [DVec3], &'a Distances),
    ) -> Snapshot<'a> {
        let geometry = Geometry {
            cloth,
            bodies: &[],
            body_motions: &[],
            thickness: reach.least(),
            distances: reach,
            self_collision: true,
            all_pairs: true,
        };
        Snapshot::new(&geometry, volumes, &self.crumpled.x, v, 0.0, 1.0)
    }

    /// Cloth against the ball.
    fn draped<'a>(&'a self, volumes: &'a mut Volumes) -> Snapshot<'a> {
        let geometry = Geometry {
            cloth: &self.surface,
            bodies: &self.body,
            body_motions: &self.motions,
            thickness: 0.0,
            distances: &self.touching,
            self_collision: false,
            all_pairs: true,
        };
        Snapshot::new(&geometry, volumes, &self.draped.x, &self.still, 0.0, 1.0)
    }

    /// All pairs of features of the crumpled cloth whose volumes meet while it moves.
    fn feature_pairs(&self, volumes: &mut Volumes, motion: &[DVec3]) -> Vec<(PairKind, u32, u32)> {
        let mut found = Vec::new();
        let snapshot = self.crumpled(&self.surface, volumes, (motion, &self.touching));
        candidates::feature_pairs(&snapshot, |kind, a, b| found.push((kind, a, b)));
        found
    }

    /// The queries of these pairs.
    fn queries(&self, motion: &[DVec3]) -> (Vec<VertexFace>, Vec<EdgeEdge>) {
        let at = |v: u32| {
            let start = self.crumpled.x[v as usize];
            let end = start + motion[v as usize];
            Motion { start, end }
        };
        let features = self.surface.surface();
        let (mut faces, mut edges) = (Vec::new(), Vec::new());
        for (kind, a, b) in self.feature_pairs(&mut Volumes::default(), motion) {
            if kind == PairKind::VertexFace {
                faces.push(VertexFace {
                    vertex: at(a),
                    face: features.triangles()[b as usize].map(at),
                });
            } else {
                let [first, second] = [a, b].map(|e| features.edges()[e as usize].map(at));
                edges.push(EdgeEdge { first, second });
            }
        }
        (faces, edges)
    }

    /// Writes the files for the peers: positions, triangles, edges and pairs of features.
    fn write(&self, to: &Path) -> io::Result<()> {
        let points = |name: &str, x: &[DVec3]| {
            let bytes = x.iter().flat_map(|p| p.to_array());
            let bytes: Vec<u8> = bytes.flat_map(f64::to_le_bytes).collect();
            fs::write(to.join(name), bytes)
        };
        let numbers = |name: &str, all: &mut dyn Iterator<Item = u32>| {
            let bytes: Vec<u8> = all.flat_map(u32::to_le_bytes).collect();
            fs::write(to.join(name), bytes)
        };
        points("crumpled.x", &self.crumpled.x)?;
        points("crumpled.end", &self.crumpled.end)?;
        let ends = self.crumpled.x.iter().zip(&self.jitter);
        let ends: Vec<DVec3> = ends.map(|(x, by)| *x + *by).collect();
        points("jittered.end", &ends)?;
        for (name, motion) in [
            ("crumpled.pairs", &self.motion),
            ("jittered.pairs", &self.jitter),
        ] {
            let pairs = self.feature_pairs(&mut Volumes::default(), motion);
            let mut all = pairs
                .iter()
                .flat_map(|&(kind, a, b)| [u32::from(kind != PairKind::VertexFace), a, b]);
            numbers(name, &mut all)?;
        }
        points("draped.x", &self.draped.x)?;
        points("ball.x", &self.ball.positions)?;
        let triangles = self.crumpled.rest.triangles.as_flattened();
        for name in ["crumpled.triangles", "draped.triangles"] {
            numbers(name, &mut triangles.iter().copied())?;
        }
        let ball = self.ball.triangles.as_flattened();
        numbers("ball.triangles", &mut ball.iter().copied())?;
        let edges = self.surface.surface().edges().as_flattened();
        numbers("crumpled.edges", &mut edges.iter().copied())
    }

    /// Our turn. Also the node tests of a stage, in place of a peer's count.
    fn measure(&self, runs: u32, figures: &mut Figures) {
        let mut note = |what: &str, time: Duration, count: u64| {
            keep(figures, what, "ours", (1e3 * time.as_secs_f64(), count));
        };
        let still = (&self.still[..], &self.touching);
        let mut volumes = Volumes::default();
        for (name, motion) in [
            ("refit", still),
            ("refit-moving", (&self.motion[..], &self.touching)),
        ] {
            let mut nodes = 0;
            let refit = settled(runs, || {
                nodes = candidates::refit(&self.crumpled(&self.surface, &mut volumes, motion));
            });
            note(name, refit, nodes as u64);
        }

        let snapshot = self.crumpled(&self.surface, &mut volumes, still);
        candidates::refit(&snapshot);
        let ((mut pairs, mut tests), time) = timed(runs, || counted(&snapshot));
        note("pairs", time, pairs);
        note("pairs-tests", time, tests);

        for (name, cloth) in [
            ("near-pairs", &self.culled),
            ("near-pairs-all", &self.surface),
        ] {
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let snapshot = self.crumpled(cloth, &mut volumes, (&self.still, &self.near));
                candidates::refit(&snapshot);
                best = best.min(timing::best(1, || (pairs, tests) = counted(&snapshot)));
            }
            note(name, best, pairs);
            note(&format!("{name}-tests"), best, tests);
        }

        let mut found: Vec<(PairKind, u32, u32)> = Vec::new();
        let time = settled(runs, || {
            let snapshot =
                self.crumpled(&self.surface, &mut volumes, (&self.motion, &self.touching));
            found.clear();
            candidates::feature_pairs(&snapshot, |kind, a, b| found.push((kind, a, b)));
        });
        note("candidates", time, found.len() as u64);

        for (name, motion) in [("queries", &self.motion), ("queries-jitter", &self.jitter)] {
            let (faces, edges) = self.queries(motion);
            let mut hits = 0;
            let time = settled(runs, || {
                let faces = vertex_faces(&faces, Separation::ZERO).expect("finite motions");
                let edges = edge_edges(&edges, Separation::ZERO).expect("finite motions");
                hits = faces.len() + edges.len();
            });
            let all = faces.len() + edges.len();
            note(name, time, all as u64);
            note(&format!("{name}-hits"), time, hits as u64);
        }

        let mut close = Vec::new();
        let time = settled(runs, || {
            close.clear();
            let near = (&self.still[..], &self.near);
            contacts(&self.crumpled(&self.culled, &mut volumes, near), &mut close);
        });
        note("contacts", time, close.len() as u64);

        let snapshot = self.draped(&mut volumes);
        candidates::refit(&snapshot);
        let ((pairs, tests), time) = timed(runs, || counted(&snapshot));
        note("ball-pairs", time, pairs);
        note("ball-pairs-tests", time, tests);
    }

    /// Whether what others find is what is found here; says what is not.
    fn check(&self, directory: &Path, figures: &Figures) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut equal = |what: &str, ours: u64, theirs: u64| {
            if ours != theirs {
                wrong.push(format!("{what}: {ours} here, {theirs} there"));
            }
        };
        let cloth = whole(&self.crumpled.rest, &self.crumpled.rest.positions);
        for (what, radius) in [("pairs", 0.0), ("near-pairs", 0.5 * self.h)] {
            let volumes = volumes_of(&cloth, &self.crumpled.rest, &self.crumpled.x, radius);
            // Pairs are counted whose volumes meet, once as exactly as f32 tells, and once as
            // coarsely as the grid of a step may.
            let volume = |t: u32, radius: f64| {
                let corners = self.crumpled.rest.triangles[t as usize];
                Kdop18::around(&corners.map(|v| self.crumpled.x[v as usize]), radius)
            };
            let meet = |s, t, radius| u64::from(volume(s, radius).overlaps(&volume(t, radius)));
            let (mut boxes, mut fewest, mut most) = (0, 0, 0);
            candidates::self_pairs(Tree::<8>(&cloth, &volumes), |s, t| {
                boxes += 1;
                fewest += meet(s, t, radius);
            });
            let coarse = radius + GRID;
            let volumes = volumes_of(&cloth, &self.crumpled.rest, &self.crumpled.x, coarse);
            candidates::self_pairs(Tree::<8>(&cloth, &volumes), |s, t| {
                most += meet(s, t, coarse);
            });
            for peer in ["parry", "obvhs"] {
                if let Some(theirs) = of(figures, what, peer) {
                    equal(&format!("{what} of boxes, {peer}"), boxes, theirs.1);
                }
            }
            let ours = if radius > 0.0 { "near-pairs-all" } else { what };
            let ours = of(figures, ours, "ours").map_or(0, |f| f.1);
            let held = ours.clamp(fewest, most);
            equal(&format!("{what} of volumes among boxes"), ours, held);
        }
        {
            let draped = volumes_of(&cloth, &self.crumpled.rest, &self.draped.x, 0.0);
            let ball = whole(&self.ball, &self.ball.positions);
            let ball_volumes = volumes_of(&ball, &self.ball, &self.ball.positions, 0.0);
            let mut boxes = 0;
            let (cloth, ball) = (Tree::<8>(&cloth, &draped), Tree(&ball, &ball_volumes));
            candidates::pairs(cloth, ball, |_, _| boxes += 1);
            for peer in ["parry", "obvhs"] {
                if let Some(theirs) = of(figures, "ball-pairs", peer) {
                    equal(&format!("ball-pairs of boxes, {peer}"), boxes, theirs.1);
                }
            }
        }
        let Ok(theirs) = fs::read(directory.join("candidates.bin")) else {
            return wrong;
        };
        let mut volumes = Volumes::default();
        let snapshot = self.crumpled(&self.surface, &mut volumes, (&self.motion, &self.touching));
        let mut ours = Vec::new();
        candidates::feature_pairs(&snapshot, |kind, a, b| ours.push((kind, a, b)));
        ours.sort_unstable();
        // Counts of those pairs, theirs and ours, whose volumes meet, rounded as little as here.
        let around = |vertices: &[u32]| {
            let x = &self.crumpled.x;
            let ends = vertices.iter().map(|&v| v as usize);
            let ends = ends.flat_map(|v| [x[v], x[v] + self.motion[v]]);
            Kdop18::around(&ends.collect::<Vec<_>>(), 0.0)
        };
        let features = self.surface.surface();
        let meet = |&(kind, a, b): &(PairKind, u32, u32)| {
            let edge = |e: u32| around(&features.edges()[e as usize]);
            match kind {
                PairKind::VertexFace => {
                    around(&features.triangles()[b as usize]).overlaps(&around(&[a]))
                }
                _ => edge(a).overlaps(&edge(b)),
            }
        };
        let mut theirs: Vec<(PairKind, u32, u32)> = (theirs.as_chunks::<12>().0.iter())
            .map(|pair| {
                let (numbers, _) = pair.as_chunks::<4>();
                let [kind, a, b] = [0, 1, 2].map(|k| u32::from_le_bytes(numbers[k]));
                match kind {
                    0 => (PairKind::VertexFace, a, b),
                    _ => (PairKind::EdgeEdge, a.min(b), a.max(b)),
                }
            })
            .filter(meet)
            .collect();
        ours.retain(meet);
        theirs.sort_unstable();
        equal("candidates", ours.len() as u64, theirs.len() as u64);
        let differ = ours.iter().zip(&theirs).filter(|(a, b)| a != b).count();
        equal("candidates of another name", differ as u64, 0);
        if let (Some(ours), Some(theirs)) = (
            of(figures, "contacts", "ours"),
            of(figures, "close", "ipctk"),
        ) {
            equal("contacts", ours.1, theirs.1);
        }
        wrong
    }
}

/// Motions of this length (m) in all directions.
fn jitter(count: usize, length: f64) -> Vec<DVec3> {
    // A low-discrepancy sequence: directions by the golden ratio and its like.
    let part = |k: usize, step: f64| (k as f64 * step).fract();
    (0..count)
        .map(|k| {
            let height = 2.0 * part(k, 0.754_877_666_246_693) - 1.0;
            let (sine, cosine) = (TAU * part(k, 0.569_840_290_998_053)).sin_cos();
            let across = (1.0 - height * height).sqrt();
            DVec3::new(across * cosine, across * sine, height) * length
        })
        .collect()
}

/// The tree over all triangles of a mesh, by their centres at `rest`.
fn whole(mesh: &TriMesh, rest: &[DVec3]) -> Bvh {
    let center = |t: &[u32; 3]| t.iter().map(|&v| rest[v as usize]).sum::<DVec3>() / 3.0;
    Bvh::build((0..).zip(mesh.triangles.iter().map(center)).collect())
}

fn volumes_of<const N: usize>(
    tree: &Bvh,
    mesh: &TriMesh,
    x: &[DVec3],
    radius: f64,
) -> Vec<Kdop<N>> {
    let mut volumes = Vec::new();
    let corners = |t: u32| mesh.triangles[t as usize].map(|v| x[v as usize]);
    tree.refit(|t| Kdop::around(&corners(t), radius), &mut volumes);
    volumes
}

/// Pairs of triangles, and tests.
fn counted(snapshot: &Snapshot<'_>) -> (u64, u64) {
    let mut pairs = 0;
    let tests = candidates::triangle_pairs(snapshot, |a, b| {
        black_box((a, b));
        pairs += 1;
    });
    (pairs, tests)
}

fn contacts(snapshot: &Snapshot<'_>, out: &mut Vec<Contact>) {
    for target in snapshot.targets() {
        if let Some(mut run) = TestRun::new(target, snapshot) {
            while !run.advance(snapshot, u32::MAX, out).1 {}
        }
    }
}

/// The shortest of several runs, which take [`SETTLED`] at least.
fn settled<R>(runs: u32, mut run: impl FnMut() -> R) -> Duration {
    let (mut count, mut all, mut best) = (0, Duration::ZERO, Duration::MAX);
    while count < runs || all < SETTLED {
        let time = timing::best(1, &mut run);
        (count, all, best) = (count + 1, all + time, best.min(time));
    }
    best
}

/// Returns the result of a function, and the shortest time of several runs.
fn timed<R>(runs: u32, mut run: impl FnMut() -> R) -> (R, Duration) {
    let mut last = None;
    let time = settled(runs, || last = Some(run()));
    (last.expect("it ran"), time)
}

fn of(figures: &Figures, what: &str, whose: &str) -> Option<(f64, u64)> {
    figures.get(&(what.to_owned(), whose.to_owned())).copied()
}

fn keep(figures: &mut Figures, what: &str, whose: &str, (ms, count): (f64, u64)) {
    let best = figures
        .entry((what.to_owned(), whose.to_owned()))
        .or_insert((ms, count));
    *best = (best.0.min(ms), count);
}

/// A program that is given a directory, how many runs, and `h`.
struct Peer {
    name: &'static str,
    needs: &'static str,
    /// Program and first arguments, or why there are none.
    start: Result<Vec<OsString>, String>,
}

impl Peer {
    fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = root.join("benches/peers");
        let target = root.join("target/peers");
        let made = |mut command: Command, program: PathBuf| {
            let output = command.output();
            let output = output.map_err(|e| format!("{}: {e}", command.get_program().shown()))?;
            if output.status.success() {
                Ok(vec![program.into_os_string()])
            } else {
                Err(String::from_utf8_lossy(&output.stderr).into_owned())
            }
        };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--locked", "--release", "--manifest-path"])
            .arg(sources.join("trees/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target);
        let compiled = |name: &str, flags: &[&str], prefix: Option<&Path>| {
            let program = target.join(name);
            let mut compiler =
                Command::new(std::env::var_os("CXX").unwrap_or_else(|| "g++".into()));
            compiler
                .args(["-O3", "-std=c++17"])
                .arg(sources.join(name).with_extension("cpp"))
                .arg("-o")
                .arg(&program);
            if let Some(prefix) = prefix {
                let lib = prefix.join("lib");
                compiler.arg("-I").arg(prefix.join("include"));
                compiler.arg("-L").arg(&lib).arg("-Xlinker").arg("-rpath");
                compiler.arg("-Xlinker").arg(lib);
            }
            compiler.args(flags);
            made(compiler, program)
        };
        let python = std::env::var_os("IPCTK_PYTHON").unwrap_or_else(|| "python3".into());
        vec![
            Self {
                name: "parry and obvhs",
                needs: "the network, once",
                start: made(cargo, target.join("release/peer-trees")),
            },
            Self {
                name: "Embree",
                needs: "apt-get install g++ libembree-dev",
                start: compiled("embree_collide", &["-lembree3"], None),
            },
            Self {
                name: "FCL",
                needs: "apt-get install g++ libfcl-dev libeigen3-dev",
                start: compiled(
                    "fcl_collide",
                    &["-I/usr/include/eigen3", "-lfcl", "-lccd"],
                    None,
                ),
            },
            Self {
                name: "Coal",
                needs: "apt-get install g++ libeigen3-dev; python3 -m venv VENV && VENV/bin/pip install coal; \
                        COAL_PREFIX=VENV/lib/python3.VERSION/site-packages/cmeel.prefix",
                start: match std::env::var_os("COAL_PREFIX") {
                    None => Err("COAL_PREFIX is not set".to_owned()),
                    Some(prefix) => compiled(
                        "coal_collide",
                        &["-I/usr/include/eigen3", "-lcoal", "-lboost_serialization"],
                        Some(Path::new(&prefix)),
                    ),
                },
            },
            Self {
                name: "IPC Toolkit",
                needs: "python3 -m venv VENV && VENV/bin/pip install numpy ipctk; IPCTK_PYTHON=VENV/bin/python",
                start: Ok(vec![
                    python,
                    sources.join("ipctk_broad.py").into_os_string(),
                ]),
            },
        ]
    }

    /// Runs the peer, if it is there.
    fn run(
        &self,
        directory: &Path,
        (runs, h): (u32, f64),
        more: &[&str],
    ) -> Result<Figures, String> {
        let words = self.start.as_ref().map_err(Clone::clone)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(directory);
        command.args([runs.to_string(), h.to_string()]).args(more);
        let output = command
            .output()
            .map_err(|e| format!("{}: {e}", words[0].shown()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let mut figures = Figures::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [what, whose, ms, count] = words[..] else {
                return Err(line.to_owned());
            };
            let (Ok(ms), Ok(count)) = (ms.parse(), count.parse()) else {
                return Err(line.to_owned());
            };
            keep(&mut figures, what, whose, (ms, count));
        }
        Ok(figures)
    }
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn print(side: usize, figures: &Figures) {
    const STAGES: [&str; 10] = [
        "refit",
        "refit-moving",
        "pairs",
        "near-pairs-all",
        "near-pairs",
        "candidates",
        "queries",
        "queries-jitter",
        "contacts",
        "ball-pairs",
    ];
    for what in STAGES {
        let Some((ms, count)) = of(figures, what, "ours") else {
            continue;
        };
        let theirs = what.trim_end_matches("-all").trim_end_matches("-moving");
        let mut peers: Vec<(&str, f64, u64)> = (figures.iter())
            .filter(|((stage, whose), _)| stage == theirs && whose != "ours")
            .map(|((_, whose), &(ms, count))| (whose.as_str(), ms, count))
            .collect();
        peers.sort_by(|a, b| a.1.total_cmp(&b.1));
        let faster = peers
            .first()
            .map_or_else(|| "-".to_owned(), |best| format!("{:.2}", best.1 / ms));
        let shown = peers
            .iter()
            .map(|(whose, ms, count)| format!("{whose} {ms:.2} ({count})"));
        let shown: Vec<String> = shown.collect();
        let tests = of(figures, &format!("{what}-tests"), "ours");
        let each = tests.map_or_else(
            || "-".to_owned(),
            |(ms, tests)| format!("{:.2}", 1e6 * ms / tests as f64),
        );
        println!(
            "{:<9} {what:<14} {ms:<9.2} {count:<9} {each:<8} {faster:<7} {}",
            side * side,
            shown.join("  ")
        );
    }
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is what the bench is for"
)]
fn main() -> ExitCode {
    if !timing::measures() {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let quick = arguments.iter().any(|a| a == "--quick");
    let sizes = SIZES.iter().filter(|(side, _)| match &asked[..] {
        [] => !quick || *side == SIZES[0].0,
        asked => asked.contains(side),
    });
    let mut peers = Peer::all();
    println!("vertices  stage          ms        count     ns/test  faster  than, in ms (count)");
    let mut wrong = Vec::new();
    let mut absent = BTreeMap::new();
    for &(side, cuts) in sizes {
        let scene = Scene::new(side, cuts);
        let directory = tempfile::tempdir().expect("a temporary directory");
        if let Err(error) = scene.write(directory.path()) {
            eprintln!("{}: {error}", directory.path().shown());
            return ExitCode::FAILURE;
        }
        let runs = (1_000_000 / (side * side)).clamp(2, 10) as u32;
        let mut figures = Figures::new();
        // In turns, for few machines are quiet for long.
        for round in 0..ROUNDS {
            scene.measure(runs, &mut figures);
            for peer in &mut peers {
                let mut found = peer.run(directory.path(), (runs, scene.h), &[]);
                if round == 0 && peer.name == "IPC Toolkit" && side <= CHECKED {
                    let checked = peer.run(directory.path(), (runs, scene.h), &["check"]);
                    found = found.and_then(|mut found| {
                        checked.map(|more| {
                            found.extend(more);
                            found
                        })
                    });
                }
                let found = found.unwrap_or_else(|error| {
                    let why = || format!("{error}\n  needs: {}", peer.needs);
                    absent.entry(peer.name).or_insert_with(why);
                    peer.start = Err("left out".to_owned());
                    Figures::new()
                });
                for ((what, whose), figure) in found {
                    keep(&mut figures, &what, &whose, figure);
                }
            }
        }
        print(scene.side, &figures);
        wrong.extend(scene.check(directory.path(), &figures));
    }
    for (name, why) in absent {
        eprintln!("LEFT OUT: {name}: {why}");
    }
    for what in &wrong {
        eprintln!("DIFFERENT: {what}");
    }
    if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
