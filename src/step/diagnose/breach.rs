//! The cause of strain beyond its limit, told once: which pins pull cloth farther than it reaches,
//! or which bodies close on it.
//!
//! Looked for are causes that shorter steps do not help against. Pins pull cloth apart where the
//! straight line between two vertices that different pins hold is longer than cloth is between them
//! at rest. If it is longer than a way along edges bears, no step is short enough: an edge of that
//! way is stretched beyond the limit, wherever the vertices between are. Bodies close on cloth
//! where two of them, at least one of which moves, have little room between them. If that is less
//! than one layer takes, no step is short enough. Where neither is found, shorter steps are
//! advised.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use glam::DVec3;
use serde::{Deserialize, Serialize};

use crate::collide::Distances;
use crate::scene::Slide;
use crate::step::simulation::Simulation;
use crate::step::system::assembly::Strains;
use crate::step::world::World;

/// The first time that a triangle is beyond its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breach {
    /// How far beyond it.
    pub beyond: f64,
    /// The triangle, in the numbering of the patch tree.
    pub triangle: u32,
    /// When, where and why, and what helps: the end of a sentence.
    pub told: String,
}

impl Breach {
    /// The one to be told of two that ranks have found after one step.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let order = (other.beyond.total_cmp(&self.beyond)).then(self.triangle.cmp(&other.triangle));
        if order.is_le() { self } else { other }
    }
}

/// The most vertices that pins hold of which all are looked at.
const MOST_HELD: usize = 2000;
/// The share of the limit beyond which pins that stretch cloth are named.
const PULLED: f64 = 0.5;
/// How much farther ways along edges may be than straight ones on a flat cloth.
const CORNERS: f64 = 1.25;
/// Bodies are near that have no more than this room between them, in thicknesses: that of two
/// layers.
const ROOM: f64 = 3.0;
/// Cosine between the normals of two bodies that face each other.
const FACING: f64 = -0.5;

impl Simulation<'_> {
    /// The cause for which the triangle of this rank that is stretched farthest beyond its limit is
    /// so, after the last step.
    #[must_use]
    pub fn breach(&self, strains: &Strains) -> Option<Breach> {
        let triangle = strains.worst?;
        Some(Breach {
            beyond: strains.beyond,
            triangle,
            told: self.tell(triangle, strains.beyond),
        })
    }

    fn tell(&self, triangle: u32, beyond: f64) -> String {
        let (world, x) = (self.world, self.positions());
        let corner = world.model().triangles()[triangle as usize][0];
        let named = world.name(corner as usize);
        let limit = world.model().strain_limit(triangle as usize);
        let at = format!(
            "first at {:.4} s (step {}), at vertex {} of cloth `{}`: {:.1} %, where its limit is {} %",
            self.time(),
            self.step(),
            named.of_cloth,
            named.cloth,
            100.0 * (limit + beyond),
            // As it was typed, but for what rounding adds.
            (1e5 * limit).round() / 1e3
        );
        if !self.state.is_whole() {
            // Causes are looked for among all vertices and bodies near the triangle.
            return at;
        }
        // The last step began at this time in s; it may be that other pins hold now.
        let began = self.time() - world.scene().time.step;
        let pins = torn(world, x, corner, (limit, began));
        let near = ring(world, triangle);
        let bodies = squeezed(world, x, &near, self.time())
            .or_else(|| squeezed_elsewhere(world, x, triangle, self.time()));
        if pins.is_none() && bodies.is_none() {
            return format!("{at}; {}", or_shorter_steps(world, triangle, began));
        }
        let causes = pins.into_iter().chain(bodies);
        let (causes, surely): (Vec<String>, Vec<bool>) =
            causes.map(|cause| (cause.told, cause.surely)).unzip();
        let end = if surely.contains(&true) {
            ". No step is short enough for that"
        } else {
            ""
        };
        format!("{at}; {}{end}", causes.join("; "))
    }
}

/// A cause that forces cloth beyond its limit.
struct Cause {
    told: String,
    /// Whether it does so however short steps are.
    surely: bool,
}

/// The remedy where nothing forces cloth beyond its limit.
fn or_shorter_steps(world: &World, triangle: u32, began: f64) -> String {
    let mend = match world.scene().time.shortest {
        None => "take a shorter time.step, or a time.shortest to which steps may be cut",
        Some(_) => "take a shorter time.shortest",
    };
    let ring = ring(world, triangle);
    let mut pins: Vec<usize> = held(world, began)
        .filter(|held| ring.contains(&held.vertex))
        .map(|held| held.pin)
        .collect();
    pins.sort_unstable();
    pins.dedup();
    let cloth = cloth_of(world, triangle);
    let moving = pins
        .iter()
        .filter(|pin| !world.scene().cloths[cloth].pins[**pin].is_still());
    let moving: Vec<String> = moving.map(ToString::to_string).collect();
    if moving.is_empty() {
        return mend.to_owned();
    }
    let pins = moving.join(", ");
    format!(
        "{mend}, or, where pin {pins} goes faster than cloth can follow, have it go more slowly"
    )
}

/// The two pins that are farther apart than cloth reaches between them by way of a vertex, if there
/// are such in a step that began at a time in s.
fn torn(world: &World, x: &[DVec3], via: u32, (limit, began): (f64, f64)) -> Option<Cause> {
    let cloth = world.model().cloth_of_vertex()[via as usize] as usize;
    let pins = &world.scene().cloths[cloth].pins;
    let ways = ways(world, via);
    let mut held: Vec<(u32, usize, f64)> = held(world, began)
        .map(|held| (held.vertex, held.pin, ways[held.vertex as usize]))
        .filter(|(vertex, ..)| world.model().cloth_of_vertex()[*vertex as usize] as usize == cloth)
        // A vertex that slides goes where it is pulled.
        .filter(|(_, pin, way)| pins[*pin].slide == Slide::Nowhere && way.is_finite())
        .collect();
    held.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
    held.truncate(MOST_HELD);
    let mut worst: Option<Apart> = None;
    for (index, &(vertex, pin, way)) in held.iter().enumerate() {
        for &(other, other_pin, other_way) in &held[..index] {
            // One pin moves what it holds as a whole.
            if pin == other_pin {
                continue;
            }
            let distance = |of: &[DVec3]| of[vertex as usize].distance(of[other as usize]);
            let apart = Apart {
                pins: [pin.min(other_pin), pin.max(other_pin)],
                now: distance(x),
                straight: distance(world.model().start()),
                along: way + other_way,
            };
            let told = worst.as_ref().map_or(1.0 + PULLED * limit, Apart::stretch);
            if apart.stretch() > told {
                worst = Some(apart);
            }
        }
    }
    worst.map(|apart| apart.cause(limit))
}

/// Two vertices that different pins hold.
struct Apart {
    pins: [usize; 2],
    /// How far apart they are, in m.
    now: f64,
    /// How far apart they are at rest, in m: no way from one to the other is shorter.
    straight: f64,
    /// The length at rest of a way along edges by the triangle that is stretched, in m: it leads
    /// there and back where the triangle lies aside, and goes in corners where edges do.
    along: f64,
}

impl Apart {
    /// The factor by which cloth is stretched between them, at least as far as edges tell; as the
    /// way is straight, if edges go hardly farther.
    fn stretch(&self) -> f64 {
        let rest = if self.along < CORNERS * self.straight {
            self.straight
        } else {
            self.along
        };
        self.now / rest
    }

    fn cause(&self, limit: f64) -> Cause {
        let [a, b] = self.pins;
        let told = format!(
            "pins {a} and {b} of the cloth are {:.3} m apart there, and only {:.3} m of cloth lie between them at rest: bring them no farther apart \
             than it reaches, or raise material.strain_limit",
            self.now,
            self.now / self.stretch(),
        );
        let surely = self.now > (1.0 + limit) * self.along;
        Cause { told, surely }
    }
}

/// The two bodies that leave cloth less room at a triangle than it takes, if there are such.
fn squeezed(world: &World, x: &[DVec3], vertices: &[u32], time: f64) -> Option<Cause> {
    let narrowest = narrowest(world, x, vertices, (ROOM * 0.5, time))?;
    Some(narrowest.cause(world, "there"))
}

/// The two bodies that leave less room than one layer takes, anywhere in the cloth of a triangle,
/// if there are such. Constraints that cannot all be satisfied may throw cloth far from where they
/// are.
fn squeezed_elsewhere(world: &World, x: &[DVec3], triangle: u32, time: f64) -> Option<Cause> {
    let cloth = cloth_of(world, triangle);
    let cloths = world.model().cloth_of_vertex();
    let vertices: Vec<u32> = (0..x.len() as u32)
        .filter(|&vertex| cloths[vertex as usize] as usize == cloth)
        .collect();
    let narrowest = narrowest(world, x, &vertices, (1.0, time))?;
    let place = format!(
        "at vertex {}",
        world.name(narrowest.vertex as usize).of_cloth
    );
    Some(narrowest.cause(world, &place))
}

/// The place where two bodies that face each other leave the least room.
struct Narrowest {
    /// In m.
    room: f64,
    bodies: [usize; 2],
    vertex: u32,
}

impl Narrowest {
    fn cause(&self, world: &World, place: &str) -> Cause {
        let (bodies, distances) = (&world.scene().bodies, world.distances());
        let [a, b] = self.bodies;
        let layer = taken(distances, self.vertex, self.bodies);
        let told = format!(
            "bodies `{}` and `{}` leave {:.2} mm of room {place}, where a layer of cloth takes {:.2} mm between bodies and every further one \
             {:.2} mm: keep them farther apart, or take a smaller contact.thickness",
            bodies[a].name,
            bodies[b].name,
            1e3 * self.room.max(0.0),
            1e3 * layer,
            1e3 * distances.between(self.vertex, self.vertex)
        );
        let surely = self.room < layer;
        Cause { told, surely }
    }
}

/// The place among vertices where two bodies that face each other, at least one of which moves,
/// leave the least room; less than `layers` times that of a layer.
fn narrowest(
    world: &World,
    x: &[DVec3],
    vertices: &[u32],
    (layers, time): (f64, f64),
) -> Option<Narrowest> {
    let bodies = &world.scene().bodies;
    let mut narrowest: Option<Narrowest> = None;
    for &vertex in vertices {
        let p = x[vertex as usize];
        let gaps: Vec<f64> = world.gaps(p, time);
        for b in 0..gaps.len() {
            for a in 0..b {
                let room = gaps[a] + gaps[b];
                let moves = !bodies[a].is_still() || !bodies[b].is_still();
                let narrower = narrowest.as_ref().is_none_or(|least| room < least.room);
                let few = room < layers * taken(world.distances(), vertex, [a, b]);
                if moves && few && narrower && face(world, p, [a, b], time) {
                    narrowest = Some(Narrowest {
                        room,
                        bodies: [a, b],
                        vertex,
                    });
                }
            }
        }
    }
    narrowest
}

/// The room in m that a layer of cloth takes at a vertex between two bodies.
fn taken(distances: &Distances, vertex: u32, bodies: [usize; 2]) -> f64 {
    let of = bodies.map(|body| distances.from_body(vertex, body as u32));
    of[0] + of[1]
}

/// Whether two bodies face each other across a point.
fn face(world: &World, p: DVec3, bodies: [usize; 2], time: f64) -> bool {
    let h = 0.01 * world.scene().contact.thickness;
    let slopes = DVec3::AXES.map(|axis| {
        let [after, before] = [p + axis * h, p - axis * h].map(|q| world.gaps(q, time));
        bodies.map(|body| after[body] - before[body])
    });
    let normal = |k: usize| DVec3::from_array(slopes.map(|slope| slope[k])).normalize_or_zero();
    normal(0).dot(normal(1)) < FACING
}

/// The vertices of the triangles that share a corner with one, ascending.
fn ring(world: &World, triangle: u32) -> Vec<u32> {
    let triangles = world.model().triangles();
    let corners = triangles[triangle as usize];
    let beside = triangles
        .iter()
        .filter(|t| t.iter().any(|v| corners.contains(v)));
    let mut ring: Vec<u32> = beside.flatten().copied().collect();
    ring.sort_unstable();
    ring.dedup();
    ring
}

fn cloth_of(world: &World, triangle: u32) -> usize {
    let corner = world.model().triangles()[triangle as usize][0];
    world.model().cloth_of_vertex()[corner as usize] as usize
}

/// A vertex that a pin holds.
struct Held {
    vertex: u32,
    /// The place of the pin in the list of its cloth.
    pin: usize,
}

/// The vertices that pins hold in a step that begins at a time in s.
fn held(world: &World, began: f64) -> impl Iterator<Item = Held> {
    let cloths = world.model().cloth_of_vertex();
    let firsts = world.scene().cloths.iter().scan(0, |before, cloth| {
        let first = *before;
        *before += cloth.pins.len();
        Some(first)
    });
    let firsts: Vec<usize> = firsts.collect();
    let all = world.pins().of(&(0..cloths.len())).iter();
    let all = all.map(move |pinned| Held {
        vertex: pinned.vertex,
        pin: pinned.pin as usize - firsts[cloths[pinned.vertex as usize] as usize],
    });
    all.filter(move |held| {
        let cloth = cloths[held.vertex as usize] as usize;
        let [from, until] = world.scene().cloths[cloth].pins[held.pin].holding();
        from <= began && began < until
    })
}

/// The lengths at rest, in m, of the shortest ways along edges from a vertex to all others;
/// infinite to other pieces.
fn ways(world: &World, from: u32) -> Vec<f64> {
    let rest = world.model().start();
    let triangles = world.model().triangles();
    let sides = triangles
        .iter()
        .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    let mut edges: Vec<[u32; 2]> = sides.flat_map(|[a, b]| [[a, b], [b, a]]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut ways = vec![f64::INFINITY; rest.len()];
    ways[from as usize] = 0.0;
    // Lengths are not negative: their bits are in their order.
    let mut next = BinaryHeap::from([Reverse((0_u64, from))]);
    while let Some(Reverse((bits, vertex))) = next.pop() {
        let way = f64::from_bits(bits);
        if way > ways[vertex as usize] {
            continue;
        }
        let first = edges.partition_point(|edge| edge[0] < vertex);
        for &[_, to] in edges[first..].iter().take_while(|edge| edge[0] == vertex) {
            let further = way + rest[vertex as usize].distance(rest[to as usize]);
            if further < ways[to as usize] {
                ways[to as usize] = further;
                next.push(Reverse((further.to_bits(), to)));
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::Comm;
    use weft_runtime::comm::solo::Solo;
    use weft_runtime::comm::threads::launch;

    use super::*;
    use crate::scene::Scene;

    /// Steps until a triangle is beyond its limit by 2 %, and returns the message of that time.
    fn breach(world: &World, comm: &mut dyn Comm, steps: u64) -> Option<Breach> {
        let mut s = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
        for _ in 0..steps {
            s.advance(comm).unwrap();
            let strains = s.strains();
            if strains.beyond > 0.02 {
                return s.breach(&strains);
            }
        }
        None
    }

    fn told(scene: &str, steps: u64) -> String {
        let world = World::build(&Scene::parse(scene, None, &[]).unwrap()).unwrap();
        breach(&world, &mut Solo::new(), steps).map_or_else(String::new, |breach| breach.told)
    }

    const SHEET: &str = "partition.patches = 4\ntime.step = \"4 ms\"\ngravity = [0, 0, 0]\n[[cloth]]\nname = \"sheet\"\n\
                         grid = { size = [0.4, 0.2], vertices = [17, 9] }\n\
                         material = { density = 0.15, stretch = 1000, bending = 1e-5, strain_limit = 0.1 }\n";

    /// The ends of a sheet are drawn apart at 0.5 m/s, far beyond what it bears.
    fn drawn() -> String {
        format!(
            "{SHEET}pins = [{{ nearest = [0, 0.1, 0], rail = [1, 0, 0] }}, {{ min = [-0.21, -1, -1], max = [-0.19, 1, 1] }}, {{ min = [0.19, -1, -1], max = \
             [0.21, 1, 1], velocity = [0.5, 0, 0] }}]\n"
        )
    }

    #[test]
    fn pins_that_go_farther_than_cloth_reaches_are_named_with_their_distance() {
        let told = told(&drawn(), 100);
        let wanted = "of cloth `sheet`: 1";
        assert!(
            told.starts_with("first at ") && told.contains(wanted),
            "{told}"
        );
        assert!(
            told.contains("; pins 1 and 2 of the cloth are 0.4"),
            "{told}"
        );
        let rest = " apart there, and only 0.400 m of cloth lie between them at rest";
        assert!(told.contains(rest) && !told.contains("time.step"), "{told}");
        // Across the rows, where edges go in corners.
        let across = told_across();
        assert!(
            across.contains("; pins 0 and 1 of the cloth are 0."),
            "{across}"
        );
        assert!(
            across.contains("only 0.447 m of cloth lie between"),
            "{across}"
        );
    }

    /// One corner is drawn away from the opposite one.
    fn told_across() -> String {
        told(
            &format!(
                "{SHEET}pins = [{{ nearest = [-0.2, -0.1, 0] }}, {{ nearest = [0.2, 0.1, 0], velocity = [0.4, 0.2, 0] }}]\n"
            ),
            100,
        )
    }

    #[test]
    fn ranks_tell_the_same() {
        let world = World::build(&Scene::parse(&drawn(), None, &[]).unwrap()).unwrap();
        let alone = breach(&world, &mut Solo::new(), 100).unwrap();
        let ends = launch(3, |comm| {
            let mut s = Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
            // All ranks look after the step in which one rank would stop.
            let step = alone
                .told
                .split("(step ")
                .nth(1)
                .unwrap()
                .split(')')
                .next()
                .unwrap();
            while s.step() < step.parse().unwrap() {
                s.advance(comm).unwrap();
            }
            let strains = s.strains();
            s.breach(&strains)
        });
        let worst = ends.unwrap().into_iter().flatten().reduce(Breach::worse);
        assert_eq!(worst, Some(alone));
    }

    #[test]
    fn cloth_that_is_thrown_at_its_pins_is_told_to_take_shorter_steps() {
        let scene = "partition.patches = 4\ntime.step = \"5 ms\"\n[[cloth]]\ngrid = { size = 0.5, vertices = 20 }\n\
                     velocity = [0, 3, 0]\npins = [{ nearest = [-0.25, 0.25, 0] }, { nearest = [0.25, 0.25, 0] }]\n\
                     material = { density = 0.15, stretch = 100, bending = 1e-5, strain_limit = 0.05 }\n";
        let told = told(scene, 100);
        assert!(
            told.ends_with(
                "take a shorter time.step, or a time.shortest to which steps may be cut"
            ),
            "{told}"
        );
    }

    /// The message about a strip on which two pads close by this length in m each, from 8.2 mm
    /// apart; empty if no limit of strain is passed.
    fn told_between_pads(closing: f64) -> String {
        let pad = |name: &str, side: f64| {
            format!(
                "[[body]]\nname = \"{name}\"\nshape = \"box\"\ncenter = [0, {}, 0.97]\nsize = [0.2, 0.02, 0.04]\nfriction = 1\nedge = 0.02\n\
                 motion.keyframes = [{{ time = 0 }}, {{ time = 0.02, translation = [0, {}, 0] }}]\n",
                0.0141 * side,
                -closing * side
            )
        };
        let strip = "partition.patches = 4\ntime.step = \"1 ms\"\n[[cloth]]\nrotation = [\"90 deg\", 0, 0]\ncenter = [0, 0, 0.8]\n\
                     grid = { size = [0.1, 0.4], vertices = [11, 41] }\n\
                     material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";
        let scene = format!("{strip}{}{}", pad("front", -1.0), pad("back", 1.0));
        told(&scene, 45)
    }

    #[test]
    fn bodies_that_close_on_cloth_are_named_with_the_room_that_they_leave() {
        let told = told_between_pads(0.0039);
        assert!(told.contains("bodies `front` and `back` leave "), "{told}");
        assert!(told.contains("a layer of cloth takes 8.00 mm"), "{told}");
        assert!(told.contains("first at 0.0"), "{told}");
        assert!(!told.contains("time.step"), "{told}");
    }

    #[test]
    fn cloth_that_is_pinched_to_less_than_it_takes_is_not_torn() {
        for closing in [0.0003, 0.0006, 0.001] {
            assert_eq!(told_between_pads(closing), "", "{closing}");
        }
    }
}
