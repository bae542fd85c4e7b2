//! The files that a run leaves behind: frames, pictures, tables and its record.
//!
//! | file | by | when |
//! |---|---|---|
//! | `run.lock`, `run.files` | [`RunDirectory`] | first; the list has each file before it is made |
//! | `run.json` | [`RunRecord`] | at the start (`"exit": null`) and at the end |
//! | `history.csv` | [`HistoryWriter`] | one line per step |
//! | `frames.pvd`, `frames/*.vtp` | [`FrameSeries`] | per frame; opens in ParaView |
//! | `frames/*.pvtp` | [`FrameSeries`] | per frame in pieces, after the pieces |
//! | `meshes/*.obj` | [`FrameSeries`] | at the start: each cloth as its file has it |
//! | `exports/*` | [`crate::export`] | at the end, in the formats that the scene asks for |
//! | `state.*.ckpt` | [`Checkpoint`] | every ten minutes, and at the end |
//! | `trace.json`, `trace/rank-*` | [`write_trace`], [`write_rank_trace`] | at the end, if traced |
//! | `pictures/*.png` | [`Picture`] | per frame; needs no graphics card and no display |
//!
//! In: data of all vertices in the order of the scene's own, or of the patches of a rank. Out:
//! files below one [`RunDirectory`], which rank 0 holds; others write their sections of a
//! checkpoint and their pieces of frames where it tells them. No messages, no clock. Every file but
//! the streamed `history.csv` is written under a temporary name and renamed into place, so that a
//! reader sees it complete or not at all; the streamed file consists of complete lines.
//!
//! Not here: traces, and what is printed at the end ([`crate::diagnostics`]).

pub mod checkpoint;
mod destination;
mod directory;
#[cfg(test)]
mod directory_tests;
mod error;
mod events;
mod export_folder;
mod frame_arrays;
mod frame_audit;
mod frame_file;
mod frames;
mod history;
mod lock;
mod manifest;
mod matrix_market;
mod names;
pub mod picture;
mod pieces;
mod pieces_read;
mod plain;
mod progress;
mod pvd;
mod run_json;
mod shared_directory;
mod state_hash;
mod trace;
mod vtp;
mod vtp_read;
mod whole;

pub use checkpoint::{Checkpoint, OpenCheckpoint, SectionedCheckpoint};
pub use destination::Destination;
pub use directory::RunDirectory;
pub use error::OutputError;
pub use events::{EVENTS_SCHEMA, Event};
pub use export_folder::ExportFolder;
pub use frame_arrays::{ArrayValues, FrameArrays, NamedArray, read_frame};
pub use frame_audit::{AuditedFrame, CrossedBody, CrossingFrame, FrameAudit};
pub use frame_file::FrameFile;
pub use frames::{Frame, FrameSeries, path_of_cloth, step_of_cloth};
pub(crate) use frames::{cloth_file, mesh_file, moving_file, pieces_file, still_file};
pub use history::{HistoryMark, HistoryRow, HistoryWriter};
pub(crate) use lock::this_host;
pub(crate) use manifest::is_own;
pub use matrix_market::write_system;
pub use picture::{Animation, Camera, Checker, Drawing, Item, Picture, Playing, look, weave};
pub(crate) use pieces::{DUPLICATE, GHOST, PieceArrays, PiecesPlace, TRIANGLE, VERTEX};
pub use progress::Progress;
pub use pvd::Collection;
pub use run_json::{
    BalanceRecord, BodyRecord, ChangeRecord, ClothRecord, FramesRecord, MachineRecord,
    PartitionRecord, ProgramRecord, RankRecord, RefinedRecord, ResultRecord, RunRecord,
    SceneRecord, StartRecord, TraceRecord, ViewRecord,
};
pub(crate) use shared_directory::SharedDirectory;
pub use state_hash::{Hashed, NodeHash, StateHash, hash_of_pair, hash_of_patch, state_hash};
pub use trace::{TRACE, read_rank_trace, write_rank_trace, write_trace};
pub use vtp::{DataArray, PolyData, Values, write_vtp};
pub use vtp_read::{read_integers, read_points, read_time, read_triangles};
pub use whole::write_whole;
