//! Values in files whose arrays are read where they lie.
//!
//! A process of a distributed run reads its own part of what was made of a scene, and little of the
//! rest. So large arrays of a file are not decoded: where the caller has mapped the file, they are
//! slices of the mapping, and the system reads a page of them when somebody first looks at it.
//! Otherwise they are read into memory. A type whose values are kept in such a file says so with
//! the macro [`archives`], field by field, and has arrays of type [`Array`].
//!
//! A file has two parts behind each other: the *data*, in which each array begins at a multiple of
//! [`ALIGNMENT`] bytes, and the *index* with all that is no array. The index is read as a whole. It
//! has a mark for each struct, made from the names of its fields, so that a program with another
//! layout finds out before it reads a wrong number.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use bytemuck::Pod;
use thiserror::Error;

use crate::heap_bytes::HeapBytes;

/// A large array: owned, or a part of a mapped file.
pub(crate) type Array<T> = Cow<'static, [T]>;

/// The multiple of bytes at which arrays begin in the data.
pub(crate) const ALIGNMENT: u64 = 16;

/// The fault of an archive whose bytes are those that were written.
#[derive(Debug, Error)]
pub(crate) enum ArchiveFault {
    /// It was written with other types.
    #[error("was written by another version of weft")]
    OtherLayout,
    /// The index is shorter than the values that it should hold, or it names arrays that the data
    /// does not have.
    #[error("ends early")]
    Short,
    /// The file cannot be read.
    #[error(transparent)]
    Read(io::Error),
}

impl From<io::Error> for ArchiveFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Short,
            _ => Self::Read(error),
        }
    }
}

/// A value that is kept in an archive.
pub(crate) trait Archive: Sized {
    /// Writes it.
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()>;

    /// Reads what [`save`](Self::save) has written.
    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault>;
}

/// Writes the data of an archive, and gathers its index.
pub(crate) struct Saver<'a> {
    data: &'a mut dyn Write,
    /// The bytes of data that are written.
    written: u64,
    index: Vec<u8>,
}

impl<'a> Saver<'a> {
    /// An archive whose data goes here.
    pub(crate) fn new(data: &'a mut dyn Write) -> Self {
        Self {
            data,
            written: 0,
            index: Vec::new(),
        }
    }

    /// Appends an array.
    pub(crate) fn array<T: Pod>(&mut self, array: &[T]) -> io::Result<()> {
        (array.len() as u64).save(self)?;
        (size_of::<T>() as u32).save(self)?;
        if array.is_empty() {
            return Ok(());
        }
        let start = self.written.next_multiple_of(ALIGNMENT);
        let gap = [0; ALIGNMENT as usize];
        self.data
            .write_all(&gap[..(start - self.written) as usize])?;
        let bytes: &[u8] = bytemuck::cast_slice(array);
        self.data.write_all(bytes)?;
        self.written = start + bytes.len() as u64;
        Ok(())
    }

    /// Appends the mark of a struct with this layout.
    pub(crate) fn mark(&mut self, layout: &str) -> io::Result<()> {
        mark_of(layout).save(self)
    }

    /// The index, after all data is written, and the length of the data.
    pub(crate) fn finish(self) -> (Vec<u8>, u64) {
        (self.index, self.written)
    }
}

/// The place of an archive's data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// A mapping, in which the data begins at a multiple of [`ALIGNMENT`] bytes. Arrays are parts
    /// of it.
    Mapped(&'static [u8]),
    /// A file, and where the data begins in it and how long it is. Arrays are read.
    File(&'a File, u64, u64),
}

/// Reads an archive.
pub(crate) struct Loader<'a> {
    index: &'a [u8],
    data: Data<'a>,
    at: u64,
}

impl<'a> Loader<'a> {
    /// An archive with this index and data.
    pub(crate) fn new(index: &'a [u8], data: Data<'a>) -> Self {
        Self { index, data, at: 0 }
    }

    /// Reads an array.
    pub(crate) fn array<T: Pod>(&mut self) -> Result<Array<T>, ArchiveFault> {
        let count = usize::load(self)?;
        if u32::load(self)? as usize != size_of::<T>() {
            return Err(ArchiveFault::OtherLayout);
        }
        if count == 0 {
            return Ok(Cow::Owned(Vec::new()));
        }
        let bytes = (count as u64).checked_mul(size_of::<T>() as u64);
        let start = self.at.next_multiple_of(ALIGNMENT);
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        let length = match self.data {
            Data::Mapped(all) => all.len() as u64,
            Data::File(_, _, length) => length,
        };
        let end = end
            .filter(|&end| end <= length)
            .ok_or(ArchiveFault::Short)?;
        self.at = end;
        match self.data {
            Data::Mapped(all) => {
                let part = bytemuck::try_cast_slice(&all[start as usize..end as usize]);
                let part = part.map_err(|_| ArchiveFault::OtherLayout)?;
                Ok(Cow::Borrowed(part))
            }
            Data::File(file, first, _) => {
                let mut all: Vec<T> = bytemuck::zeroed_vec(count);
                read_at(file, first + start, bytemuck::cast_slice_mut(&mut all))?;
                Ok(Cow::Owned(all))
            }
        }
    }

    /// Reads a mark, which must be that of this layout.
    pub(crate) fn check(&mut self, layout: &str) -> Result<(), ArchiveFault> {
        match u32::load(self)? == mark_of(layout) {
            true => Ok(()),
            false => Err(ArchiveFault::OtherLayout),
        }
    }

    /// Whether all of the index was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.index.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ArchiveFault> {
        let (taken, rest) = self.index.split_first_chunk().ok_or(ArchiveFault::Short)?;
        self.index = rest;
        Ok(*taken)
    }

    /// Reads how many values follow, each of which has a byte or more.
    fn count(&mut self) -> Result<usize, ArchiveFault> {
        let count = usize::load(self)?;
        match count <= self.index.len() {
            true => Ok(count),
            false => Err(ArchiveFault::Short),
        }
    }
}

/// Reads some bytes of a file, from this place on.
pub(crate) fn read_at(file: &File, from: u64, into: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, into, from);
    #[cfg(windows)]
    {
        let (mut from, mut left) = (from, into);
        while !left.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(file, left, from)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    from += count as u64;
                    left = &mut left[count..];
                }
            }
        }
        Ok(())
    }
}

/// A number for a layout: FNV-1a of its text.
fn mark_of(layout: &str) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    layout.as_bytes().iter().fold(0x811c_9dc5, step)
}

/// Keeps a struct by its fields. The value of a field after `without` is not kept: it is the
/// default of its type when it is read.
macro_rules! archives {
    ($type:ty: $($field:ident),* $(; without $($other:ident),+)?) => {
        impl $crate::archive::Archive for $type {
            fn save(&self, to: &mut $crate::archive::Saver<'_>) -> std::io::Result<()> {
                let Self { $($field,)* $($($other: _,)+)? } = self;
                to.mark(concat!(stringify!($type), $(" ", stringify!($field)),*))?;
                $( $crate::archive::Archive::save($field, to)?; )*
                Ok(())
            }

            fn load(
                from: &mut $crate::archive::Loader<'_>,
            ) -> Result<Self, $crate::archive::ArchiveFault> {
                from.check(concat!(stringify!($type), $(" ", stringify!($field)),*))?;
                Ok(Self {
                    $($field: $crate::archive::Archive::load(from)?,)*
                    $($($other: Default::default(),)+)?
                })
            }
        }
    };
}

pub(crate) use archives;

macro_rules! archives_numbers {
    ($($type:ty),+) => { $(
        impl Archive for $type {
            fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
                to.index.extend(self.to_le_bytes());
                Ok(())
            }

            fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
                from.take().map(Self::from_le_bytes)
            }
        }
    )+ };
}

archives_numbers!(u8, u16, u32, u64, u128, f64);

impl Archive for usize {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        (*self as u64).save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Self::try_from(u64::load(from)?).map_err(|_| ArchiveFault::Short)
    }
}

impl Archive for bool {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        u8::from(*self).save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        match u8::load(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ArchiveFault::OtherLayout),
        }
    }
}

impl Archive for String {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.len().save(to)?;
        to.index.extend(self.as_bytes());
        Ok(())
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let count = from.count()?;
        let (text, rest) = from.index.split_at(count);
        from.index = rest;
        Self::from_utf8(text.to_vec()).map_err(|_| ArchiveFault::OtherLayout)
    }
}

impl<T: Archive> Archive for Option<T> {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.is_some().save(to)?;
        self.as_ref().map_or(Ok(()), |value| value.save(to))
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        bool::load(from)?.then(|| T::load(from)).transpose()
    }
}

/// A list that is small, or whose elements have arrays of their own.
impl<T: Archive> Archive for Vec<T> {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.len().save(to)?;
        self.iter().try_for_each(|value| value.save(to))
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let count = from.count()?;
        let mut all = Self::with_capacity(count);
        for _ in 0..count {
            all.push(T::load(from)?);
        }
        Ok(all)
    }
}

impl<T: Archive + Copy + Default, const N: usize> Archive for [T; N] {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.iter().try_for_each(|value| value.save(to))
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let mut all = [T::default(); N];
        for value in &mut all {
            *value = T::load(from)?;
        }
        Ok(all)
    }
}

impl<A: Archive, B: Archive> Archive for (A, B) {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.0.save(to)?;
        self.1.save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok((A::load(from)?, B::load(from)?))
    }
}

/// A value that nobody shares any more when it is read again.
impl<T: Archive> Archive for Arc<T> {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        (**self).save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        T::load(from).map(Self::new)
    }
}

impl<T: Pod> Archive for Array<T> {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        to.array(self)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        from.array()
    }
}

/// The bytes that are owned; a mapped file is not on the heap.
impl<T: HeapBytes + Clone> HeapBytes for Array<T> {
    fn heap_bytes(&self) -> usize {
        match self {
            Cow::Borrowed(_) => 0,
            Cow::Owned(all) => all.heap_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Inner {
        values: Array<u32>,
        name: String,
    }

    archives!(Inner: values, name);

    #[derive(Debug, PartialEq)]
    struct Outer {
        short: Array<[u16; 3]>,
        all: Vec<Inner>,
        flag: bool,
        chosen: Option<(u64, [f64; 2])>,
        left_out: Vec<u8>,
    }

    archives!(Outer: short, all, flag, chosen; without left_out);

    struct Other {
        values: Array<u32>,
    }

    archives!(Other: values);

    fn outer() -> Outer {
        let inner = |count: u32| Inner {
            values: (0..count).collect(),
            name: format!("of {count}"),
        };
        Outer {
            short: vec![[1, 2, 3], [4, 5, 6]].into(),
            all: vec![inner(5), inner(0), inner(1000)],
            flag: true,
            chosen: Some((7, [0.5, -0.0])),
            left_out: Vec::new(),
        }
    }

    fn saved(value: &impl Archive) -> (Vec<u8>, Vec<u8>) {
        let mut data = Vec::new();
        let mut saver = Saver::new(&mut data);
        value.save(&mut saver).unwrap();
        let (index, length) = saver.finish();
        assert_eq!(length, data.len() as u64);
        (index, data)
    }

    /// Data in memory that stays, aligned as in a mapping.
    fn mapped(data: &[u8]) -> Data<'static> {
        let mut units = vec![0_u128; data.len().div_ceil(16)];
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut units);
        room[..data.len()].copy_from_slice(data);
        let all: &'static [u128] = Vec::leak(units);
        Data::Mapped(&bytemuck::cast_slice(all)[..data.len()])
    }

    #[test]
    fn values_come_back_from_a_mapping_and_from_a_file() {
        let value = outer();
        let (index, data) = saved(&value);
        let mut from = Loader::new(&index, mapped(&data));
        let read = Outer::load(&mut from).unwrap();
        assert!(from.is_at_end());
        assert_eq!(read, value);
        assert!(read.all.iter().all(|inner| inner.values.heap_bytes() == 0));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"head").unwrap();
        file.write_all(&data).unwrap();
        let of_file = Data::File(&file, 4, data.len() as u64);
        let read = Outer::load(&mut Loader::new(&index, of_file)).unwrap();
        assert_eq!(read, value);
    }

    #[test]
    fn other_layouts_and_short_archives_are_found_out() {
        let (index, data) = saved(&outer());
        for length in 0..index.len() {
            let read = Outer::load(&mut Loader::new(&index[..length], mapped(&data)));
            assert!(matches!(read, Err(ArchiveFault::Short)), "{length}");
        }
        for length in [0, 15, data.len() - 1] {
            let read = Outer::load(&mut Loader::new(&index, mapped(&data[..length])));
            assert!(matches!(read, Err(ArchiveFault::Short)), "{length}");
        }
        let (index, data) = saved(&Other {
            values: vec![1, 2].into(),
        });
        let read = Outer::load(&mut Loader::new(&index, mapped(&data)));
        assert!(matches!(read, Err(ArchiveFault::OtherLayout)));
        // Elements of another size.
        let (index, data) = saved(&Array::from(vec![1_u16; 8]));
        let read = Array::<u32>::load(&mut Loader::new(&index, mapped(&data)));
        assert!(matches!(read, Err(ArchiveFault::OtherLayout)));
        // A count that no memory has room for.
        let huge = [u64::MAX.to_le_bytes(), 4_u64.to_le_bytes()].concat();
        let read = Array::<u32>::load(&mut Loader::new(&huge, mapped(&[0; 16])));
        assert!(matches!(read, Err(ArchiveFault::Short)));
        let read = Vec::<String>::load(&mut Loader::new(&huge, mapped(&[])));
        assert!(matches!(read, Err(ArchiveFault::Short)));
    }
}
