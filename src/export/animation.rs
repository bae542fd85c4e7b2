//! All frames as one animation (APNG), drawn as pictures of a run are.
//!
//! It plays in the time of the simulation, with at most 25 pictures a second: of closer frames some
//! are left out. Pictures are drawn one at a time.

use std::io;

use glam::DVec3;
use rayon::prelude::*;

use super::{Job, Recorded, reading};
use crate::mesh::TriMesh;
use crate::output::{
    Animation, Camera, Drawing, Item, OutputError, Picture, Playing, ViewRecord, look,
};
use crate::scene::Colours;

/// The shortest time in s for which a picture is shown.
const SHORTEST: f64 = 0.04;
/// The parts that threads draw.
const SHARES: usize = 16;

/// The file of a run.
pub(super) fn file(run: &Recorded) -> String {
    format!("{}.png", run.name())
}

/// A cloth or a body to draw.
struct Drawn {
    mesh: TriMesh,
    colours: [[f32; 3]; 2],
    smooth: bool,
    /// The number of its cloth, if it is one.
    cloth: Option<usize>,
}

/// Draws all frames and writes the animation.
pub(super) fn write(job: &Job<'_>) -> Result<(), OutputError> {
    let run = job.run;
    let Some(view) = run.view() else {
        return Err(OutputError::Inconsistent {
            path: file(run).into(),
            what: "the run is of an earlier weft, which kept no camera for animations: run the scene again, or go on from its \
                   checkpoint"
                .to_owned(),
        });
    };
    let stride = (SHORTEST / run.spacing() - 1e-6).ceil().max(1.0);
    let frames: Vec<usize> = (0..run.frames().len()).step_by(stride as usize).collect();
    let playing = Playing {
        pictures: frames.len() as u32,
        delay: (stride * run.spacing() * 1e3)
            .round()
            .clamp(1.0, f64::from(u16::MAX)) as u16,
        size: view.size.map(|side| side.max(1)),
    };
    let start = starts(run)?;
    job.target.write(&file(run), |out| {
        let mut animation = Animation::begin(out, playing)?;
        for &frame in &frames {
            animation.add(draw(run, view, &start, frame)?)?;
        }
        animation.finish()
    })
}

/// Where each cloth is in the first frame, in m.
fn starts(run: &Recorded) -> Result<Vec<Vec<DVec3>>, OutputError> {
    let of = |cloth| run.mesh(cloth, 0).map(|mesh| mesh.positions);
    run.cloths().iter().map(of).collect()
}

/// Draws a frame, with cloths that are there in the first one.
fn draw(
    run: &Recorded,
    view: &ViewRecord,
    start: &[Vec<DVec3>],
    frame: usize,
) -> io::Result<Picture> {
    let mut all = Vec::new();
    for (number, cloth) in run.cloths().iter().enumerate() {
        let own = if view.colours == Colours::Plain {
            0
        } else {
            number
        };
        all.push(Drawn {
            mesh: reading(run.mesh(cloth, frame))?,
            colours: look::of_cloth(own),
            smooth: true,
            cloth: Some(number),
        });
    }
    let cloths = all.iter().map(|drawn| &drawn.mesh.positions[..]);
    let way = middle(cloths) - middle(start.iter().map(Vec::as_slice));
    for body in run.bodies() {
        all.push(Drawn {
            mesh: reading(run.body(body, frame))?.mesh,
            colours: [look::of_body(body.flat); 2],
            smooth: !body.flat,
            cloth: None,
        });
    }
    let checked = |number: &usize| {
        let start = &start[*number];
        look::checker(start, 0..start.len())
    };
    let items: Vec<Item<'_>> = (all.iter())
        .map(|drawn| Item {
            positions: &drawn.mesh.positions,
            triangles: &drawn.mesh.triangles,
            front: drawn.colours[0],
            back: drawn.colours[1],
            smooth: drawn.smooth,
            checker: (drawn.cloth.as_ref())
                .filter(|_| view.colours == Colours::Checker)
                .map(checked),
        })
        .collect();
    let camera = Camera::new(view.eye, view.target);
    let camera = if view.follows {
        camera.moved_by(way)
    } else {
        camera
    };
    let drawing = Drawing::new(&items, &camera, view.size);
    let shares = (0..SHARES).into_par_iter();
    let shares: Vec<Vec<u8>> = shares.map(|share| drawing.share(share, SHARES)).collect();
    Picture::of_shares(&shares, view.size)
        .ok_or_else(|| io::Error::other("the shares of a picture do not fit together"))
}

/// The mean of the positions of all cloths, in m.
fn middle<'a>(cloths: impl Iterator<Item = &'a [DVec3]>) -> DVec3 {
    look::middle(&cloths.flatten().copied().collect::<Vec<_>>())
}
