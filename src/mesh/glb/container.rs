//! The parts of a glTF file: its JSON, the buffers that it has or names, and the numbers in them.
//!
//! Sizes and places that the file gives are not trusted: each is checked before it is used.

use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gltf::accessor::DataType;
use gltf::buffer::Source;
use gltf::{Accessor, Document};

use super::super::file_problem::{Problem, short};
use super::super::looks::no_glb;

/// Reads a file beside the one that names it, up to a number of bytes.
pub(in crate::mesh) type Beside<'a> = dyn Fn(&Path, u64) -> std::io::Result<Vec<u8>> + 'a;

/// The JSON of a file, and where its binary chunk lies, with its first byte.
pub(super) fn chunks(bytes: &[u8]) -> Result<(&[u8], Binary<'_>), Problem> {
    if !bytes.starts_with(b"glTF") {
        return Err(no_glb(bytes));
    }
    let number = |at: usize| {
        let number = bytes.get(at..at + 4).and_then(<[u8]>::first_chunk);
        let number = number.map(|&number| u32::from_le_bytes(number));
        number.ok_or_else(|| Problem::at_byte(bytes.len(), "the file ends within its header"))
    };
    let version = number(4)?;
    if version != 2 {
        let message = if version.swap_bytes() == 2 {
            "its numbers have the wrong byte order: glTF has the lowest byte first".to_owned()
        } else {
            format!("it is of version {version} of glTF; only version 2 is read")
        };
        return Err(Problem::at_byte(4, message));
    }
    let length = number(8)? as usize;
    if length != bytes.len() {
        let message = format!(
            "it says that it has {length} bytes, and has {}",
            bytes.len()
        );
        return Err(Problem::at_byte(8, message));
    }
    let chunk = |at: usize| {
        let length = number(at)? as usize;
        let kind = bytes.get(at + 4..at + 8).unwrap_or_default();
        let end = (at + 8).checked_add(length);
        let chunk = end.and_then(|end| bytes.get(at + 8..end));
        let cut = || Problem::at_byte(at, "the file ends within a chunk that begins here");
        Ok((kind, chunk.ok_or_else(cut)?))
    };
    let (kind, json) = chunk(HEADER)?;
    if kind != b"JSON" {
        return Err(Problem::at_byte(
            HEADER + 4,
            "its first chunk is not `JSON`",
        ));
    }
    let mut at = HEADER + 8 + json.len();
    while at < bytes.len() {
        let (kind, chunk) = chunk(at)?;
        if kind == b"BIN\0" {
            let binary = Binary {
                bytes: chunk,
                within: Within::Here(at + 8),
            };
            return Ok((json, binary));
        }
        at += 8 + chunk.len();
    }
    let none = Binary {
        bytes: &[],
        within: Within::Here(bytes.len()),
    };
    Ok((json, none))
}

/// A buffer with what messages call it.
pub(super) type Named = (String, Vec<u8>);

/// Reads the buffers that are no chunk.
pub(super) fn other_buffers(
    document: &Document,
    beside: &Beside<'_>,
) -> Result<Vec<Option<Named>>, Problem> {
    let mut left = MOST_BESIDE;
    let mut read = Vec::new();
    for buffer in document.buffers() {
        let Source::Uri(uri) = buffer.source() else {
            read.push(None);
            continue;
        };
        let refused = |why: &str| {
            let uri = short(uri.as_bytes());
            Problem::new(format!("its buffer {} is `{uri}`: {why}", buffer.index()))
        };
        let (name, bytes) = match uri.strip_prefix("data:") {
            Some(data) => {
                let Some((_, data)) = data.split_once(";base64,") else {
                    return Err(refused("data must be in base64"));
                };
                let bytes = STANDARD.decode(data);
                let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
                (format!("buffer {}", buffer.index()), bytes)
            }
            None => {
                let path = decoded(uri)
                    .filter(|path| is_within(Path::new(path)))
                    .ok_or_else(|| {
                        refused(
                            "only files in the folder of the one that names them, or in folders there, are read; export it as one \
                             file (.glb)",
                        )
                    })?;
                let bytes = beside(Path::new(&path), left);
                let bytes = bytes.map_err(|error| refused(&format!("cannot read it: {error}")))?;
                (short(path.as_bytes()), bytes)
            }
        };
        if bytes.len() < buffer.length() {
            return Err(refused(&format!(
                "it must have {} bytes, and has {}",
                buffer.length(),
                bytes.len()
            )));
        }
        left = left.saturating_sub(bytes.len() as u64);
        read.push(Some((name, bytes)));
    }
    Ok(read)
}

/// The files in which a glTF file keeps its data, as it names them; none of one that is no glTF.
/// They are relative to its folder.
pub(crate) fn files_beside(text: &[u8]) -> Vec<PathBuf> {
    let document: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let buffers = document
        .get("buffers")
        .and_then(|buffers| buffers.as_array());
    let names = (buffers.into_iter().flatten()).filter_map(|buffer| buffer.get("uri")?.as_str());
    let names = names.filter(|uri| !uri.starts_with("data:"));
    names.filter_map(decoded).map(PathBuf::from).collect()
}

/// Text in which `%20` and the like are the bytes that they stand for.
fn decoded(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(if first == b'%' {
            let digits;
            (digits, rest) = rest.split_at_checked(2)?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        } else {
            first
        });
    }
    String::from_utf8(bytes).ok()
}

/// Whether a path stays in the folder that it begins in.
fn is_within(path: &Path) -> bool {
    let mut parts = path.components();
    // On every system, what others take for a root or a scheme.
    let text = path.as_os_str().to_string_lossy();
    !text.is_empty()
        && !text.contains(['\\', ':', '\0'])
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Bytes that accessors lie in.
#[derive(Clone, Copy)]
pub(super) struct Binary<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) within: Within<'a>,
}

/// A place of bytes.
#[derive(Clone, Copy)]
pub(super) enum Within<'a> {
    /// The file itself, from this byte on.
    Here(usize),
    /// Another file.
    File(&'a str),
}

impl Binary<'_> {
    /// A problem with a byte.
    fn problem(self, at: usize, message: String) -> Problem {
        match self.within {
            Within::Here(first) => Problem::at_byte(first + at, message),
            Within::File(name) => Problem::new(format!("{name}, byte {at}: {message}")),
        }
    }
}

/// The buffers of a file; `None` for one that is not there.
pub(super) struct Data<'a>(pub(super) Vec<Option<Binary<'a>>>);

impl Data<'_> {
    /// Reads the numbers of an accessor, `N` at a time.
    pub(super) fn numbers<const N: usize>(
        &self,
        accessor: &Accessor<'_>,
        what: &str,
        mut each: impl FnMut([f64; N]),
    ) -> Result<(), Problem> {
        let bad = |message: &str| Problem::new(format!("{what}: {message}"));
        if accessor.sparse().is_some() {
            return Err(bad("sparse data are not read"));
        }
        if accessor.dimensions().multiplicity() != N {
            return Err(bad(
                "it has another number of components than the format says",
            ));
        }
        let Some(view) = accessor.view() else {
            return Err(bad("it has no data"));
        };
        let Some(&Some(buffer)) = self.0.get(view.buffer().index()) else {
            return Err(bad("its buffer is not there"));
        };
        let bytes = buffer.bytes;
        let kind = accessor.data_type();
        let size = kind.size() * N;
        let stride = view.stride().unwrap_or(size).max(1);
        let inside = |from: Option<usize>, length: usize| {
            let end = from?.checked_add(length)?;
            (end <= bytes.len()).then_some(from?)
        };
        let view_at = inside(Some(view.offset()), view.length());
        let length = (accessor.count().checked_sub(1))
            .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(size));
        let start = length.and_then(|length| {
            let start = view_at?.checked_add(accessor.offset());
            let fits = accessor.offset().checked_add(length)? <= view.length();
            inside(start, length).filter(|_| fits)
        });
        let Some(start) = start else {
            return Err(bad("its data go on behind the end of its file"));
        };
        for index in 0..accessor.count() {
            let at = start + index * stride;
            let mut values = [0.0; N];
            for (k, value) in values.iter_mut().enumerate() {
                let at = at + k * kind.size();
                *value = number(kind, accessor.normalized(), &bytes[at..]);
                if !value.is_finite() {
                    let message = format!("{what} {index} is {value}, no finite number");
                    return Err(buffer.problem(at, message));
                }
            }
            each(values);
        }
        Ok(())
    }
}

/// The number that some bytes begin with; there are enough of them.
fn number(kind: DataType, normalized: bool, bytes: &[u8]) -> f64 {
    let two = bytes.first_chunk().copied().unwrap_or_default();
    let four = bytes.first_chunk().copied().unwrap_or_default();
    let one = bytes.first().copied().unwrap_or_default();
    let (value, largest) = match kind {
        DataType::I8 => (f64::from(one.cast_signed()), f64::from(i8::MAX)),
        DataType::U8 => (f64::from(one), f64::from(u8::MAX)),
        DataType::I16 => (f64::from(i16::from_le_bytes(two)), f64::from(i16::MAX)),
        DataType::U16 => (f64::from(u16::from_le_bytes(two)), f64::from(u16::MAX)),
        DataType::U32 => (f64::from(u32::from_le_bytes(four)), f64::from(u32::MAX)),
        DataType::F32 => return f64::from(f32::from_le_bytes(four)),
    };
    if normalized {
        (value / largest).max(-1.0)
    } else {
        value
    }
}

/// Bytes before the first chunk.
pub(super) const HEADER: usize = 12;

/// Bytes of other files, at most.
pub(super) const MOST_BESIDE: u64 = 2 << 30;
