//! The outputs of a run: frames and their formats, checkpoints, pictures and animations.

use glam::DVec3;
use serde::{Deserialize, Serialize};

/// A format that frames are exported to, by the name that scenes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// VTK XML PolyData, which all frames are.
    Vtp,
    /// USD as text, with all frames in one file.
    Usd,
    /// A point cache for the mesh of each cloth.
    Pc2,
    /// Another kind of point cache, with the time of each frame.
    Mdd,
    /// A Wavefront OBJ for each cloth and frame.
    Obj,
    /// A PLY for each cloth and frame.
    Ply,
    /// A glTF Binary of the last frame.
    Glb,
    /// An animation (APNG) of all frames.
    Apng,
}

impl Format {
    /// All values of the type.
    pub const ALL: [Self; 8] = [
        Self::Vtp,
        Self::Usd,
        Self::Pc2,
        Self::Mdd,
        Self::Obj,
        Self::Ply,
        Self::Glb,
        Self::Apng,
    ];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vtp => "vtp",
            Self::Usd => "usd",
            Self::Pc2 => "pc2",
            Self::Mdd => "mdd",
            Self::Obj => "obj",
            Self::Ply => "ply",
            Self::Glb => "glb",
            Self::Apng => "apng",
        }
    }
}

/// The files of the cloth in a frame, by the names that scenes give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pieces {
    /// One file, which rank 0 writes.
    #[default]
    One,
    /// A piece of each rank, which it writes, and a file that names them.
    Rank,
}

impl Pieces {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::One, Self::Rank];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Rank => "rank",
        }
    }
}

/// The files that are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Time between frames in s; a frame is written at the first step at or after each multiple.
    pub interval: f64,
    /// Whether `.vtp` frames are written.
    pub frames: bool,
    /// How many files each of these has.
    pub pieces: Pieces,
    /// The formats that frames are exported to when the run ends.
    pub formats: Vec<Format>,
    /// Whether checkpoints are written.
    pub checkpoints: bool,
    /// Wall time between checkpoints in s; zero for one after every step. There is one at the end
    /// too.
    pub checkpoint_interval: f64,
    /// Whether pictures are written.
    pub pictures: bool,
    /// Size of pictures in pixels.
    pub picture_size: [u32; 2],
    /// The position of the camera, in m; chosen from the scene if absent.
    pub camera: Option<DVec3>,
    /// The point at which the camera looks, in m; chosen from the scene if absent.
    pub look_at: Option<DVec3>,
    /// Whether the camera goes along with the mean of all cloth.
    pub camera_follows: bool,
    /// The colours of cloth in pictures.
    pub colours: Colours,
}

/// The colours of cloth in pictures and animations, by the names that scenes give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Colours {
    /// All cloth has one colour.
    #[default]
    Plain,
    /// Each cloth has its own.
    Cloths,
    /// Each cloth has its own, with a checker of the shape with which it starts.
    Checker,
}

impl Colours {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Cloths, Self::Checker];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cloths => "cloths",
            Self::Checker => "checker",
        }
    }
}
