//! STL, ASCII and binary; equal vertices are joined.
//!
//! STL lists the corners of every triangle. Corners with the same three numbers become one vertex,
//! in the order of their first appearance; -0 equals 0. Near is not equal: a file written with
//! rounding errors comes out in pieces, and the check says where.
//!
//! Read by hand, not by `stl_io`: that crate leaves out all solids but the first and what is behind
//! the count of a binary file, without a word, and its errors name neither line nor byte. The tests
//! use it to write and to read the same files.

use std::collections::HashMap;

use glam::DVec3;

use super::file_problem::{BYTE_ORDER_MARK, Problem, short, short_coordinate};
use super::looks::no_stl;
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};

/// Reads all triangles and joins equal vertices.
pub(super) fn read(bytes: &[u8]) -> Result<TriMesh, Problem> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let count = bytes.get(COUNT_AT..HEAD).and_then(|c| c.first_chunk());
    let count = count.map(|&count| u32::from_le_bytes(count) as usize);
    let length = count.map(|count| HEAD as u64 + TRIANGLE as u64 * count as u64);
    // The header of a binary file is free text, which may begin as text does.
    let is_binary = length == Some(bytes.len() as u64) || !is_text(bytes);
    match count {
        _ if !is_binary && begins_solid(text) => read_text(text),
        Some(count) if is_binary => read_binary(bytes, count),
        _ => Err(no_stl(bytes)),
    }
}

/// Bytes before the triangles of a binary file, the last four of which are their number.
const HEAD: usize = 84;
const COUNT_AT: usize = 80;
/// Bytes of a triangle.
const TRIANGLE: usize = 50;

fn begins_solid(text: &[u8]) -> bool {
    let start = text.trim_ascii_start();
    let word = start.split(u8::is_ascii_whitespace).next();
    word.is_some_and(|word| word.eq_ignore_ascii_case(b"solid"))
}

/// Whether the first bytes are those of a text: no byte is one that only binary files have.
fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(1024)];
    !head
        .iter()
        .any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x0b)
}

fn read_binary(bytes: &[u8], count: usize) -> Result<TriMesh, Problem> {
    let body = &bytes[HEAD..];
    if body.len() as u64 != TRIANGLE as u64 * count as u64 {
        let there = body.len() / TRIANGLE;
        let message = format!(
            "it says that it has {count} triangles, of {TRIANGLE} bytes each, and it ends in triangle {there} at byte {}",
            bytes.len()
        );
        return Err(Problem::at_byte(COUNT_AT, message));
    }
    let mut joined = Joined::default();
    for (number, triangle) in body.chunks_exact(TRIANGLE).enumerate() {
        let begin = HEAD + TRIANGLE * number;
        let mut corners = [[0.0; 3]; 3];
        // Three numbers of the normal come before those of the corners.
        let numbers = triangle.as_chunks::<4>().0;
        for (k, bytes) in numbers.iter().enumerate().skip(3) {
            let value = f32::from_le_bytes(*bytes);
            if !value.is_finite() {
                return Err(Problem::at_byte(
                    begin + 4 * k,
                    format!("triangle {number}: a coordinate is {value}, no finite number"),
                ));
            }
            corners[k / 3 - 1][k % 3] = value;
        }
        joined
            .add(corners)
            .map_err(|message| Problem::at_byte(begin, message))?;
    }
    Ok(joined.mesh)
}

fn read_text(text: &[u8]) -> Result<TriMesh, Problem> {
    let mut words = Words {
        rest: text,
        line: 1,
        last: 1,
    };
    let mut joined = Joined::default();
    while let Some(word) = words.next() {
        if !word.eq_ignore_ascii_case(b"solid") {
            return Err(words.unexpected(word, "solid"));
        }
        words.skip_line();
        loop {
            let word = words.expect("`facet` or `endsolid`")?;
            if word.eq_ignore_ascii_case(b"endsolid") {
                words.skip_line();
                break;
            }
            if !word.eq_ignore_ascii_case(b"facet") {
                return Err(words.unexpected(word, "facet` or `endsolid"));
            }
            let line = words.last;
            words.keyword("normal")?;
            for _ in 0..3 {
                // Nobody asks for it, and it may be no number where a triangle has no area.
                words.expect("a number")?;
            }
            words.keyword("outer")?;
            words.keyword("loop")?;
            let mut corners = [[0.0; 3]; 3];
            for corner in &mut corners {
                words.keyword("vertex")?;
                for x in corner {
                    *x = words.number()?;
                }
            }
            words.keyword("endloop")?;
            words.keyword("endfacet")?;
            joined
                .add(corners)
                .map_err(|message| Problem::at(line, message))?;
        }
    }
    Ok(joined.mesh)
}

/// Words of a text, and their lines.
struct Words<'a> {
    rest: &'a [u8],
    /// The line where `rest` begins.
    line: usize,
    /// The line of the last word.
    last: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let blanks = self.rest.iter().take_while(|b| b.is_ascii_whitespace());
        let (blanks, rest) = self.rest.split_at(blanks.count());
        self.line += lines(blanks);
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        if word.is_empty() {
            return None;
        }
        self.last = self.line;
        Some(word)
    }

    /// The rest of the line is a name.
    fn skip_line(&mut self) {
        let end = self.rest.iter().position(|&b| b == b'\n' || b == b'\r');
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
    }

    fn expect(&mut self, what: &str) -> Result<&'a [u8], Problem> {
        let word = self.next();
        word.ok_or_else(|| Problem::at(self.last, format!("the file ends where {what} should be")))
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), Problem> {
        let word = self.expect(&format!("`{keyword}`"))?;
        if word.eq_ignore_ascii_case(keyword.as_bytes()) {
            Ok(())
        } else {
            Err(self.unexpected(word, keyword))
        }
    }

    fn number(&mut self) -> Result<f32, Problem> {
        let word = self.expect("a number")?;
        #[expect(clippy::cast_possible_truncation, reason = "it was read with 32 bits")]
        short_coordinate(word)
            .map(|value| value as f32)
            .map_err(|message| Problem::at(self.last, message))
    }

    fn unexpected(&self, word: &[u8], wanted: &str) -> Problem {
        Problem::at(
            self.last,
            format!("`{}` stands where `{wanted}` should be", short(word)),
        )
    }
}

/// How many lines end within blanks: with `\n`, `\r\n` or `\r`.
fn lines(blanks: &[u8]) -> usize {
    let ends = |(at, byte): &(usize, &u8)| match byte {
        b'\n' => true,
        b'\r' => blanks.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    blanks.iter().enumerate().filter(ends).count()
}

/// Triangles whose equal corners are one vertex.
#[derive(Default)]
struct Joined {
    mesh: TriMesh,
    /// The numbers of points. It is only searched, never walked through, so its order does not
    /// matter.
    numbers: HashMap<[u32; 3], u32>,
}

impl Joined {
    fn add(&mut self, corners: [[f32; 3]; 3]) -> Result<(), String> {
        let Self { mesh, numbers } = self;
        if mesh.triangles.len() == MAX_TRIANGLES || mesh.positions.len() + 3 > MAX_VERTICES {
            return Err(format!(
                "more than {MAX_TRIANGLES} triangles or {MAX_VERTICES} vertices"
            ));
        }
        mesh.triangles.push(corners.map(|corner| {
            // Adding zero makes -0 to 0.
            let corner = corner.map(|x| x + 0.0);
            *numbers.entry(corner.map(f32::to_bits)).or_insert_with(|| {
                let [x, y, z] = corner.map(f64::from);
                mesh.positions.push(DVec3::new(x, y, z));
                u32::try_from(mesh.positions.len() - 1).expect("bounded by MAX_VERTICES")
            })
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FilePlace, check_body, cuboid, icosphere};
    use super::*;

    fn binary(mesh: &TriMesh, header: &[u8]) -> Vec<u8> {
        let triangles: Vec<stl_io::Triangle> = mesh
            .triangles
            .iter()
            .map(|&triangle| stl_io::Triangle {
                normal: stl_io::Normal::new([0.0; 3]),
                vertices: mesh
                    .corners(triangle)
                    .map(|p| stl_io::Vertex::new(p.as_vec3().to_array())),
            })
            .collect();
        let mut out = Vec::new();
        stl_io::write_stl(&mut out, triangles.iter()).unwrap();
        out[..header.len()].copy_from_slice(header);
        out
    }

    #[test]
    fn a_closed_mesh_comes_back_closed_whatever_its_header_says() {
        let mesh = icosphere(DVec3::ZERO, 0.5, 0.2).unwrap();
        for header in [b"made by".as_slice(), b"solid ball", b"solid\n"] {
            let read = read(&binary(&mesh, header)).unwrap();
            assert_eq!(read.positions.len(), mesh.positions.len());
            check_body(&read, true).unwrap();
            assert!((read.volume() - mesh.volume()).abs() < 1e-6);
        }
    }

    #[test]
    fn text_is_read_with_and_without_a_name() {
        let mesh = cuboid(DVec3::ZERO, DVec3::ONE, 1.0).unwrap();
        for name in ["solid box", "solid ", "solid"] {
            let mut text = format!("{name}\n");
            for &triangle in &mesh.triangles {
                text += " facet normal 0 0 0\n outer loop\n";
                for p in mesh.corners(triangle) {
                    text += &format!("  vertex {} {} {}\n", p.x, p.y, p.z);
                }
                text += " endloop\n endfacet\n";
            }
            text += "endsolid\n";
            let read = read(text.as_bytes()).unwrap();
            assert_eq!(read.positions.len(), 8);
            check_body(&read, true).unwrap();
        }
    }

    #[test]
    fn zero_is_zero_whatever_its_sign() {
        let mesh = TriMesh {
            positions: vec![DVec3::ZERO, DVec3::X, DVec3::Y, -DVec3::ZERO],
            triangles: vec![[0, 1, 2], [3, 2, 1]],
        };
        assert_eq!(read(&binary(&mesh, b"")).unwrap().positions.len(), 3);
    }

    #[test]
    fn a_count_that_is_not_true_is_refused_and_a_number_that_is_none_is_named() {
        let mesh = cuboid(DVec3::ZERO, DVec3::ONE, 1.0).unwrap();
        let whole = binary(&mesh, b"solid");
        for (bytes, there) in [
            (
                &whole[..HEAD + 50 * 7 + 20],
                "ends in triangle 7 at byte 454",
            ),
            (&[&whole[..], &[0; 50]].concat(), "ends in triangle 13 at"),
            (&[&whole[..], b"x"].concat(), "ends in triangle 12 at"),
            (&whole[..HEAD], "ends in triangle 0 at byte 84"),
        ] {
            let error = read(bytes).unwrap_err();
            assert_eq!(error.place, Some(FilePlace::Byte(80)));
            assert!(error.message.contains("it has 12 triangles"), "{error:?}");
            assert!(error.message.contains(there), "{error:?}");
        }
        let mut huge = vec![0; HEAD];
        huge[80..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&huge).is_err());
        let mut nan = whole.clone();
        nan[HEAD + 50 * 3 + 16..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(
            read(&nan).unwrap_err(),
            Problem::at_byte(
                HEAD + 166,
                "triangle 3: a coordinate is NaN, no finite number"
            )
        );
        for (bytes, words) in [
            (&b""[..], "it is empty"),
            (b"\x00\x01", "it is binary, 2 bytes"),
            (b"v 0 0 0\n", "its first line is `v 0 0 0`"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.message.contains(words), "{error:?}");
        }
    }

    fn facet(corners: &str) -> String {
        format!("facet normal 0 0 nan\nouter loop\n{corners}endloop\nendfacet\n")
    }

    #[test]
    fn words_of_text_are_read_wherever_they_stand_and_all_solids_are_read() {
        let one = facet("vertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\n");
        let two = facet("vertex 0 0 0\nvertex 0 1 0\nvertex -1 0 0\n");
        let text = format!("solid a b\n{one}endsolid a b\n\nsolid\n{two}endsolid");
        let mesh = read(text.as_bytes()).unwrap();
        assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
        for text in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            format!("\u{feff} {}", text.replace("vertex", "\tVERTEX\n")),
        ] {
            assert_eq!(read(text.as_bytes()).as_ref(), Ok(&mesh), "{text}");
        }
        let theirs = format!("solid a\n{}endsolid a\n", one.replace("nan", "1"));
        let theirs = stl_io::read_stl(&mut std::io::Cursor::new(theirs)).unwrap();
        let corners = theirs
            .vertices
            .iter()
            .map(|v| DVec3::from_array(v.0.map(f64::from)));
        assert_eq!(corners.collect::<Vec<_>>(), mesh.positions[..3]);
    }

    #[test]
    fn errors_of_text_name_the_line() {
        let good = facet("vertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\n");
        for (text, line, words) in [
            (
                "solid".to_owned(),
                1,
                "ends where `facet` or `endsolid` should be",
            ),
            (format!("solid\n{good}"), 8, "ends where `facet`"),
            (
                format!("solid\n{good}endsolid\nsolid\n"),
                10,
                "the file ends",
            ),
            (
                format!("solid\n{good}endsolid\nx\n"),
                10,
                "`x` stands where `solid`",
            ),
            (
                "solid\nfacet\nnormals".to_owned(),
                3,
                "`normals` stands where `normal`",
            ),
            (
                format!("solid\n{}", good.replace("1 0 0", "1 0")),
                6,
                "`vertex` is no number",
            ),
            (
                format!("solid\n{}", good.replace("1 0 0", "1 1e39 0")),
                5,
                "`1e39` is no finite",
            ),
            (
                format!("solid\n{}", good.replace("0 1 0", "0 inf 0")),
                6,
                "`inf` is no finite",
            ),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(error.place, Some(FilePlace::Line(line)), "{text}{error:?}");
            assert!(error.message.contains(words), "{text}{error:?}");
        }
    }
}
