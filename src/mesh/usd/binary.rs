//! Reads USD's binary form (`.usdc`, also called a crate file) of versions 0.4 to 0.13.
//!
//! The file begins with where its table of contents is, which says where its sections are: words
//! (TOKENS), texts (STRINGS, which are numbers of words), values with the name of their field
//! (FIELDS), lists of these (FIELDSETS), the tree of paths (PATHS), and what is at each path
//! (SPECS). Whole numbers are differences, in one, two or four bytes as a table of two bits says,
//! compressed with LZ4. The layout is that of `crateFile.cpp` and `integerCoding.cpp` of OpenUSD.
//!
//! Nothing of a file is trusted: every place is looked up with its bounds, memory is taken in
//! proportion to what the compressed bytes can hold, and each path is visited once.

use std::collections::HashMap;

use super::super::file_problem::Problem;
use super::layer::{Attribute, Layer, Prim, Value, is_read};

/// Whether a file begins as binary USD does.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PXR-USDC")
}

/// Reads a layer.
pub(super) fn read(bytes: &[u8]) -> Result<Layer, Problem> {
    let file = File { bytes, version: 0 };
    let [_, minor, _] = file.at(8)?.take::<3>("its version")?;
    if bytes.get(8) != Some(&0) || !VERSIONS.contains(&minor) {
        return Err(Problem::at_byte(
            8,
            format!(
                "it is of version {}.{minor} of binary USD; 0.{} to 0.{} are read: save it with a present program, or as .usda",
                bytes.get(8).copied().unwrap_or_default(),
                VERSIONS.start(),
                VERSIONS.end(),
            ),
        ));
    }
    Crate::open(File {
        version: minor,
        ..file
    })?
    .layer()
}

/// The bytes of a file, whose numbers have the lowest byte first.
#[derive(Clone, Copy)]
struct File<'a> {
    bytes: &'a [u8],
    version: u8,
}

/// A place in a file, from which it is read on.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> File<'a> {
    fn at(self, at: u64) -> Result<Cursor<'a>, Problem> {
        let place = usize::try_from(at).ok();
        match place.filter(|&at| at <= self.bytes.len()) {
            Some(at) => Ok(Cursor {
                bytes: self.bytes,
                at,
            }),
            None => Err(Problem::new(format!(
                "it refers to its byte {at}, and has only {} bytes",
                self.bytes.len()
            ))),
        }
    }
}

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize, what: &str) -> Result<&'a [u8], Problem> {
        let end = self.at.checked_add(count);
        let found = end.and_then(|end| self.bytes.get(self.at..end));
        let found = found
            .ok_or_else(|| Problem::at_byte(self.at, format!("the file ends within {what}")))?;
        self.at += count;
        Ok(found)
    }

    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Problem> {
        let found = self.bytes(N, what)?;
        Ok(found.first_chunk().copied().unwrap_or([0; N]))
    }

    fn u32(&mut self, what: &str) -> Result<u32, Problem> {
        self.take(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Problem> {
        self.take(what).map(u64::from_le_bytes)
    }

    /// A count of things, which is refused above `most`.
    fn count(&mut self, what: &str, most: usize) -> Result<usize, Problem> {
        let at = self.at;
        let count = self.u64(what)?;
        match usize::try_from(count).ok().filter(|&count| count <= most) {
            Some(count) => Ok(count),
            None => Err(Problem::at_byte(
                at,
                format!("{count} {what}; the most are {most}"),
            )),
        }
    }

    /// Bytes that are compressed, at most `most` when they are unpacked.
    fn compressed(&mut self, most: usize, what: &str) -> Result<Vec<u8>, Problem> {
        let at = self.at;
        let size = usize::try_from(self.u64(what)?).unwrap_or(usize::MAX);
        let packed = self.bytes(size, what)?;
        let broken = |why: &str| Problem::at_byte(at, format!("{what} cannot be unpacked: {why}"));
        let Some((&chunks, packed)) = packed.split_first() else {
            return Err(broken("there are no bytes"));
        };
        if chunks != 0 {
            return Err(broken(
                "it is in several parts, as only files over 2 GB have",
            ));
        }
        // LZ4 unpacks a byte to at most 255.
        let mut unpacked = vec![0; most.min(packed.len().saturating_mul(255).saturating_add(64))];
        let length = lz4_flex::block::decompress_into(packed, &mut unpacked)
            .map_err(|error| broken(&error.to_string()))?;
        unpacked.truncate(length);
        Ok(unpacked)
    }

    /// Whole numbers of 32 bits.
    fn whole(&mut self, count: usize, what: &str) -> Result<Vec<i32>, Problem> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let at = self.at;
        let codes = count.div_ceil(4);
        let unpacked = self.compressed(4 + codes + 4 * count, what)?;
        let short = || Problem::at_byte(at, format!("{what} has fewer numbers than it says"));
        let (common, rest) = unpacked.split_first_chunk().ok_or_else(short)?;
        let common = i32::from_le_bytes(*common);
        let (codes, mut rest) = rest.split_at_checked(codes).ok_or_else(short)?;
        let mut numbers = Vec::with_capacity(count);
        let mut number = 0_i32;
        for index in 0..count {
            let code = codes[index / 4] >> (2 * (index % 4)) & 3;
            let difference = match code {
                0 => common,
                1 => i32::from(i8::from_le_bytes(split(&mut rest).ok_or_else(short)?)),
                2 => i32::from(i16::from_le_bytes(split(&mut rest).ok_or_else(short)?)),
                _ => i32::from_le_bytes(split(&mut rest).ok_or_else(short)?),
            };
            number = number.wrapping_add(difference);
            numbers.push(number);
        }
        Ok(numbers)
    }
}

/// Takes some bytes off the beginning.
fn split<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// A file whose sections were read.
struct Crate<'a> {
    file: File<'a>,
    tokens: Vec<String>,
    strings: Vec<u32>,
    /// The name of each field, as a word, and what says its value.
    fields: Vec<(i32, Packed)>,
    /// Lists of fields, each ended by -1.
    fieldsets: Vec<i32>,
    nodes: Vec<Node>,
    /// The node of each path that there is.
    paths: HashMap<i32, usize>,
    /// The path, the list of fields and the kind of each spec.
    specs: [Vec<i32>; 3],
}

/// A node of the tree of paths.
struct Node {
    /// The one above, unless this is the root.
    above: Option<usize>,
    /// Nodes above it.
    depth: usize,
    /// Its word.
    token: usize,
}

/// The word that stands for a value: its type, whether it is a list, and the value itself or where
/// it is.
#[derive(Clone, Copy)]
struct Packed(u64);

impl Packed {
    fn kind(self) -> u8 {
        self.0.to_le_bytes()[6]
    }

    fn is_list(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    fn is_inline(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    fn is_compressed(self) -> bool {
        self.0 >> 61 & 1 == 1
    }

    /// The place of the value, or the value.
    fn payload(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }

    /// A value that is in here.
    fn inline(self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        [a, b, c, d]
    }
}

impl<'a> Crate<'a> {
    fn open(file: File<'a>) -> Result<Self, Problem> {
        let mut sections = file.at(file.at(16)?.u64("its head")?)?;
        let count = sections.count("sections", 64)?;
        let mut places = Vec::new();
        for _ in 0..count {
            let name: [u8; 16] = sections.take("its table of contents")?;
            let start = sections.u64("its table of contents")?;
            sections.u64("its table of contents")?;
            places.push((name, start));
        }
        let section = |wanted: &str| {
            let place = places.iter().find(|(name, _)| {
                name.strip_prefix(wanted.as_bytes())
                    .is_some_and(|rest| rest[0] == 0)
            });
            let none = || Problem::new(format!("it has no section {wanted}"));
            file.at(place.ok_or_else(none)?.1)
        };

        let mut at = section("TOKENS")?;
        let count = at.count("words", MOST)?;
        let size = at.count("bytes of words", MOST_BYTES)?;
        let words = at.compressed(size, "TOKENS")?;
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        let words = words.split(|&byte| byte == 0);
        let tokens: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into())
            .collect();
        if tokens.len() < count {
            return Err(Problem::new(format!(
                "TOKENS has {} words, and says {count}",
                tokens.len()
            )));
        }

        let mut at = section("STRINGS")?;
        let count = at.count("texts", MOST)?;
        let bytes = at.bytes(4 * count, "STRINGS")?;
        let strings = bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b));
        let strings = strings.collect();

        let mut at = section("FIELDS")?;
        let count = at.count("fields", MOST)?;
        let names = at.whole(count, "FIELDS")?;
        let values = at.compressed(8 * count, "FIELDS")?;
        let values = values.as_chunks().0;
        if values.len() != count {
            return Err(Problem::new("FIELDS has fewer values than it says"));
        }
        let values = values.iter().map(|&b| Packed(u64::from_le_bytes(b)));
        let fields = names.into_iter().zip(values).collect();

        let mut at = section("FIELDSETS")?;
        let count = at.count("lists of fields", MOST)?;
        let fieldsets = at.whole(count, "FIELDSETS")?;

        let mut at = section("PATHS")?;
        at.count("paths", MOST)?;
        let count = at.count("paths", MOST)?;
        let numbers = at.whole(count, "PATHS")?;
        let words = at.whole(count, "PATHS")?;
        let jumps = at.whole(count, "PATHS")?;
        let (nodes, paths) = tree(&numbers, &words, &jumps)?;

        let mut at = section("SPECS")?;
        let count = at.count("specs", MOST)?;
        let specs = [
            at.whole(count, "SPECS")?,
            at.whole(count, "SPECS")?,
            at.whole(count, "SPECS")?,
        ];
        Ok(Self {
            file,
            tokens,
            strings,
            fields,
            fieldsets,
            nodes,
            paths,
            specs,
        })
    }

    /// Makes a layer of what is said of each path.
    fn layer(&self) -> Result<Layer, Problem> {
        let mut said: Vec<Option<(i32, i32)>> = vec![None; self.nodes.len()];
        let [paths, fieldsets, kinds] = &self.specs;
        for ((path, &fieldset), &kind) in paths.iter().zip(fieldsets).zip(kinds) {
            if let Some(&node) = self.paths.get(path) {
                said[node] = Some((fieldset, kind));
            }
        }
        let mut layer = Layer::default();
        // The order of what is in the root, and in each prim.
        let mut children: Vec<HashMap<String, usize>> = Vec::new();
        let mut prims: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut budget = Budget {
            fields: MOST_FIELDS,
            numbers: NUMBERS.max(self.file.bytes.len().saturating_mul(64)),
        };
        // Nodes come behind those above them.
        for (node, said) in said.into_iter().enumerate() {
            let Some((fieldset, kind)) = said else {
                continue;
            };
            let above = self.nodes[node].above;
            let prim_above = above.and_then(|above| prims[above]);
            match (kind, above) {
                (ROOT, None) if children.is_empty() => {
                    children.push(self.root(fieldset, &mut layer, &mut budget)?)
                }
                (PRIM, Some(above))
                    if !children.is_empty() && (above == 0 || prim_above.is_some()) =>
                {
                    let (mut prim, below) = self.prim(fieldset, &mut budget)?;
                    prim.name.clone_from(self.word(self.nodes[node].token)?);
                    prim.parent = prim_above;
                    prim.is_defined &= prim_above.is_none_or(|above| layer.prims[above].is_defined);
                    // The paths are sorted, and what is in a prim has an order of its own.
                    let beside = prim_above.map_or(0, |above| 1 + above);
                    let beside = children.get(beside).and_then(|names| names.get(&prim.name));
                    prim.place = beside.copied().unwrap_or(usize::MAX);
                    prims[node] = Some(layer.add(prim, self.nodes[node].depth)?);
                    children.push(below);
                }
                (ATTRIBUTE, Some(_)) => {
                    let name = self.word(self.nodes[node].token)?;
                    if let Some(prim) = prim_above
                        && is_read(name)
                    {
                        let attribute = self.attribute(fieldset, &mut budget)?;
                        layer.prims[prim].attributes.insert(name.clone(), attribute);
                    }
                }
                _ => {}
            }
        }
        Ok(layer)
    }

    fn word(&self, index: usize) -> Result<&String, Problem> {
        let word = self.tokens.get(index);
        word.ok_or_else(|| {
            Problem::new(format!(
                "it names word {index}, and has only {} words",
                self.tokens.len()
            ))
        })
    }

    /// The fields of a list.
    fn fields(&self, list: i32, budget: &mut Budget) -> Result<Vec<(&str, Packed)>, Problem> {
        let start = usize::try_from(list).ok();
        let Some(rest) = start.and_then(|start| self.fieldsets.get(start..)) else {
            return Err(Problem::new(format!(
                "it names list {list} of fields, which does not exist"
            )));
        };
        let mut fields = Vec::new();
        for &field in rest.iter().take_while(|&&field| field != -1) {
            budget.fields = (budget.fields.checked_sub(1))
                .ok_or_else(|| Problem::new(format!("it has more than {MOST_FIELDS} fields")))?;
            let known = usize::try_from(field).ok();
            let Some(&(name, value)) = known.and_then(|field| self.fields.get(field)) else {
                return Err(Problem::new(format!(
                    "it names field {field}, which does not exist"
                )));
            };
            let name = usize::try_from(name).unwrap_or(usize::MAX);
            fields.push((self.word(name)?.as_str(), value));
        }
        Ok(fields)
    }

    /// Reads what is said of the layer.
    fn root(
        &self,
        fields: i32,
        layer: &mut Layer,
        budget: &mut Budget,
    ) -> Result<HashMap<String, usize>, Problem> {
        let mut children = HashMap::new();
        for (name, value) in self.fields(fields, budget)? {
            match name {
                "metersPerUnit" => {
                    if let Value::Numbers { numbers, .. } = self.value(value, budget)? {
                        layer.metres = numbers.first().copied();
                    }
                }
                "upAxis" => {
                    if let Value::Words(words) = self.value(value, budget)? {
                        layer.up = words.into_iter().next();
                    }
                }
                "subLayers" => {
                    let count = self.file.at(value.payload())?.u64("a list of layers")?;
                    layer.has_sublayers = count > 0;
                }
                "primChildren" => children = self.order(value, budget)?,
                _ => {}
            }
        }
        Ok(children)
    }

    /// Reads what is said of a prim, and the order of those in it.
    fn prim(
        &self,
        fields: i32,
        budget: &mut Budget,
    ) -> Result<(Prim, HashMap<String, usize>), Problem> {
        let mut prim = Prim::default();
        let mut children = HashMap::new();
        let mut is_active = true;
        for (name, value) in self.fields(fields, budget)? {
            match name {
                "specifier" => prim.is_defined = value.is_inline() && value.payload() == 0,
                "active" => is_active = value.payload() != 0,
                "typeName" => {
                    if let Value::Words(words) = self.value(value, budget)? {
                        prim.kind = words.into_iter().next().unwrap_or_default();
                    }
                }
                "references" => prim.arc = Some("references"),
                "payload" => prim.arc = Some("a payload"),
                "inheritPaths" => prim.arc = Some("inherits"),
                "specializes" => prim.arc = Some("specializes"),
                "variantSetNames" => prim.arc = Some("variants"),
                "clips" => prim.arc = Some("value clips"),
                "primChildren" => children = self.order(value, budget)?,
                _ => {}
            }
        }
        prim.is_defined &= is_active;
        Ok((prim, children))
    }

    /// The place of each word of a list.
    fn order(&self, list: Packed, budget: &mut Budget) -> Result<HashMap<String, usize>, Problem> {
        let mut at = self.file.at(list.payload())?;
        let count = at.count("prims", budget.numbers)?;
        budget.numbers -= count;
        let size = count.saturating_mul(4);
        let words = at.bytes(size, "a list of prims")?.as_chunks().0.iter();
        let words = words.map(|&word| self.word(u32::from_le_bytes(word) as usize));
        let places = words.enumerate();
        places
            .map(|(place, word)| Ok((word?.clone(), place)))
            .collect()
    }

    fn attribute(&self, fields: i32, budget: &mut Budget) -> Result<Attribute, Problem> {
        let mut attribute = Attribute::default();
        for (name, value) in self.fields(fields, budget)? {
            match name {
                "default" => attribute.value = self.value(value, budget)?,
                "timeSamples" if attribute.value == Value::None => {
                    attribute.value = self.first_in_time(value, budget)?;
                }
                "interpolation" => {
                    if let Value::Words(words) = self.value(value, budget)? {
                        attribute.interpolation = words.into_iter().next();
                    }
                }
                _ => {}
            }
        }
        Ok(attribute)
    }

    /// The value of the earliest time.
    fn first_in_time(&self, packed: Packed, budget: &mut Budget) -> Result<Value, Problem> {
        if packed.kind() != TIME_SAMPLES {
            return Ok(Value::None);
        }
        let mut at = self.behind_jump(self.file.at(packed.payload())?)?;
        // The times, which ascend.
        at.u64("times")?;
        let mut at = self.behind_jump(at)?;
        if at.u64("a number of times")? == 0 {
            return Ok(Value::None);
        }
        let first = Packed(at.u64("a value of a time")?);
        self.value(first, budget)
    }

    /// The target of a jump, which counts from where it stands.
    fn behind_jump(&self, mut at: Cursor<'a>) -> Result<Cursor<'a>, Problem> {
        let from = at.at as u64;
        let by = i64::from_le_bytes(at.take("times")?);
        self.file.at(from.saturating_add_signed(by))
    }

    /// Reads a value; it is none if it is of a type that is not read.
    fn value(&self, packed: Packed, budget: &mut Budget) -> Result<Value, Problem> {
        let (element, size) = match packed.kind() {
            INT => (Element::Whole, 4),
            TOKEN | STRING => (Element::Word, 4),
            HALF => (Element::Numbers(1, half), 2),
            FLOAT => (Element::Numbers(1, single), 4),
            DOUBLE => (Element::Numbers(1, double), 8),
            MATRIX_4D => (Element::Numbers(16, double), 8),
            QUATERNION_D => (Element::Numbers(4, double), 8),
            QUATERNION_F => (Element::Numbers(4, single), 4),
            QUATERNION_H => (Element::Numbers(4, half), 2),
            VECTOR_2D => (Element::Numbers(2, double), 8),
            VECTOR_2F => (Element::Numbers(2, single), 4),
            VECTOR_2H => (Element::Numbers(2, half), 2),
            VECTOR_3D => (Element::Numbers(3, double), 8),
            VECTOR_3F => (Element::Numbers(3, single), 4),
            VECTOR_3H => (Element::Numbers(3, half), 2),
            _ => return Ok(Value::None),
        };
        if packed.is_inline() && !packed.is_list() {
            return self.inline(packed, element);
        }
        let mut at = self.file.at(packed.payload())?;
        let count = match (packed.is_list(), packed.payload()) {
            (false, _) => 1,
            (true, 0) => 0,
            (true, _) => self.length(&mut at, budget.numbers)?,
        };
        let each = match element {
            Element::Numbers(each, _) => each,
            Element::Whole | Element::Word => 1,
        };
        let short = || Problem::at_byte(at.at, format!("{count} values, more than can be read"));
        let total = count.checked_mul(each).ok_or_else(short)?;
        budget.numbers = budget.numbers.checked_sub(total).ok_or_else(short)?;
        if element_is_whole(element) && packed.is_list() && packed.is_compressed() && count >= 4 {
            return Ok(Value::Whole(at.whole(count, "a list of whole numbers")?));
        }
        let bytes = at.bytes(total.checked_mul(size).ok_or_else(short)?, "a value")?;
        match element {
            Element::Whole => {
                let whole = bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b));
                Ok(Value::Whole(whole.collect()))
            }
            Element::Word => {
                let words = bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b));
                let words: Result<_, Problem> =
                    words.map(|index| self.text(packed, index)).collect();
                words.map(Value::Words)
            }
            Element::Numbers(each, of) => {
                let mut numbers: Vec<f64> = bytes.chunks_exact(size).map(of).collect();
                if matches!(packed.kind(), QUATERNION_D | QUATERNION_F | QUATERNION_H) {
                    // The real part is the last one in files.
                    numbers
                        .as_chunks_mut::<4>()
                        .0
                        .iter_mut()
                        .for_each(|q| q.rotate_right(1));
                }
                Ok(Value::Numbers { each, numbers })
            }
        }
    }

    /// The length of a list.
    fn length(&self, at: &mut Cursor<'a>, most: usize) -> Result<usize, Problem> {
        if self.file.version < 5 {
            at.u32("a list")?;
        }
        if self.file.version < 7 {
            Ok((at.u32("a list")? as usize).min(most))
        } else {
            at.count("elements of a list", most)
        }
    }

    /// A value that stands where otherwise its place does.
    fn inline(&self, packed: Packed, element: Element) -> Result<Value, Problem> {
        let bytes = packed.inline();
        Ok(match (element, packed.kind()) {
            (Element::Whole, _) => Value::Whole(vec![i32::from_le_bytes(bytes)]),
            (Element::Word, _) => Value::Words(vec![self.text(packed, u32::from_le_bytes(bytes))?]),
            (Element::Numbers(..), HALF) => Value::Numbers {
                each: 1,
                numbers: vec![half(&bytes)],
            },
            (Element::Numbers(..), FLOAT | DOUBLE) => Value::Numbers {
                each: 1,
                numbers: vec![single(&bytes)],
            },
            (Element::Numbers(each, _), VECTOR_2H) => Value::Numbers {
                each,
                numbers: bytes.as_chunks::<2>().0.iter().map(|b| half(b)).collect(),
            },
            // The diagonal, of small whole numbers.
            (Element::Numbers(each, _), MATRIX_4D) => {
                let mut numbers = vec![0.0; 16];
                for (k, byte) in bytes.into_iter().enumerate() {
                    numbers[5 * k] = f64::from(byte.cast_signed());
                }
                Value::Numbers { each, numbers }
            }
            // Small whole numbers.
            (Element::Numbers(each, _), _) => Value::Numbers {
                each,
                numbers: (bytes.iter().take(each))
                    .map(|byte| f64::from(byte.cast_signed()))
                    .collect(),
            },
        })
    }

    /// A word, or a text, which is named by its number among texts.
    fn text(&self, packed: Packed, index: u32) -> Result<String, Problem> {
        let mut index = index as usize;
        if packed.kind() == STRING {
            let text = self.strings.get(index);
            let none = || Problem::new(format!("it names text {index}, which does not exist"));
            index = *text.ok_or_else(none)? as usize;
        }
        self.word(index).cloned()
    }
}

/// The bytes that may still be read, so that a small file takes little.
struct Budget {
    fields: usize,
    numbers: usize,
}

/// The kind of item of which a value consists, and how a number of it is read.
#[derive(Clone, Copy)]
enum Element {
    Whole,
    Word,
    Numbers(usize, fn(&[u8]) -> f64),
}

fn element_is_whole(element: Element) -> bool {
    matches!(element, Element::Whole)
}

fn double(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

fn single(bytes: &[u8]) -> f64 {
    f64::from(f32::from_le_bytes(
        bytes.first_chunk().copied().unwrap_or_default(),
    ))
}

/// A number of 16 bits: five of them are its exponent, ten its digits.
fn half(bytes: &[u8]) -> f64 {
    let bits = u16::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default());
    let digits = f64::from(bits & 0x3ff) / 1024.0;
    let size = match i32::from(bits >> 10 & 0x1f) {
        0 => digits * (2.0_f64).powi(-14),
        31 if digits == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + digits) * (2.0_f64).powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Puts the tree together. A jump says what comes next: -2 nothing, -1 only what is below, 0 only
/// what is beside. A greater one says both, and how much further on the one beside is.
fn tree(
    numbers: &[i32],
    words: &[i32],
    jumps: &[i32],
) -> Result<(Vec<Node>, HashMap<i32, usize>), Problem> {
    let broken = || Problem::new("its tree of paths is none");
    let count = numbers.len();
    let mut nodes: Vec<Node> = Vec::with_capacity(count);
    let mut paths = HashMap::with_capacity(count);
    let mut seen = vec![false; count];
    let mut beside = if count == 0 { vec![] } else { vec![(0, None)] };
    while let Some((mut index, mut above)) = beside.pop() {
        loop {
            let new = seen.get_mut(index).filter(|seen| !**seen);
            *new.ok_or_else(broken)? = true;
            let depth = above.map_or(0, |above: usize| nodes[above].depth + 1);
            let node = nodes.len();
            nodes.push(Node {
                above,
                depth,
                // Words of properties are negative.
                token: words[index].unsigned_abs() as usize,
            });
            if paths.insert(numbers[index], node).is_some() {
                return Err(broken());
            }
            match jumps[index] {
                -2 => break,
                jump @ (-1 | 1..) => {
                    if let Ok(jump @ 1..) = usize::try_from(jump) {
                        beside.push((index.saturating_add(jump), above));
                    }
                    above = Some(node);
                }
                0 if above.is_some() => {}
                _ => return Err(broken()),
            }
            index += 1;
        }
    }
    Ok((nodes, paths))
}

/// The second number of versions that are read.
const VERSIONS: std::ops::RangeInclusive<u8> = 4..=13;

/// Words, paths and the like, at most.
const MOST: usize = 10_000_000;

/// Bytes of words, at most.
const MOST_BYTES: usize = 256 << 20;

/// Fields of all prims and attributes, at most.
const MOST_FIELDS: usize = 50_000_000;

/// Numbers that are read of any file, however small it is: lists that are equal are there once.
const NUMBERS: usize = 50_000_000;

// Kinds of specs.
const ATTRIBUTE: i32 = 1;
const PRIM: i32 = 6;
const ROOT: i32 = 7;

// Types of values.
const INT: u8 = 3;
const HALF: u8 = 7;
const FLOAT: u8 = 8;
const DOUBLE: u8 = 9;
const STRING: u8 = 10;
const TOKEN: u8 = 11;
const MATRIX_4D: u8 = 15;
const QUATERNION_D: u8 = 16;
const QUATERNION_F: u8 = 17;
const QUATERNION_H: u8 = 18;
const VECTOR_2D: u8 = 19;
const VECTOR_2F: u8 = 20;
const VECTOR_2H: u8 = 21;
const VECTOR_3D: u8 = 23;
const VECTOR_3F: u8 = 24;
const VECTOR_3H: u8 = 25;
const TIME_SAMPLES: u8 = 46;
