//! PLY, ASCII and binary.
//!
//! Read are `x`, `y`, `z` of the element `vertex` and the list `vertex_indices` (or `vertex_index`)
//! of the element `face`, of any number type, texture coordinates of vertices, and, where they are
//! asked for, velocities of vertices and numbers of them that are groups. All else is walked over
//! and kept nowhere. The counts of the header and of lists are not trusted.
//!
//! Read by hand, not by `ply-rs-bw`: that crate makes a vector of every list, also of those that
//! nobody asks for, and its errors name no byte. The tests use it to read the same files.

use glam::DVec3;

use super::file_mesh::{FileMesh, Texture};
use super::file_problem::{BYTE_ORDER_MARK, Problem, coordinate, short, short_coordinate};
use super::groups::Groups;
use super::ply_header::{Element, Format, Header, Lines, Number, Property};
use super::polygon::{MOST_CORNERS, too_many_corners, triangulate};
use super::{MAX_TRIANGLES, MAX_VERTICES, Wanted};

/// Reads vertices and faces, and of the rest what is wanted.
pub(super) fn read_file(bytes: &[u8], wanted: &Wanted<'_>) -> Result<FileMesh, Problem> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let header = Header::read(bytes)?;
    check_header(&header, bytes.len() - header.body.0)?;
    match header.format {
        Format::Text => read_body(&header, wanted, |place| TextBody {
            lines: Lines {
                bytes,
                at: place.0,
                line: place.1 - 1,
                ending: header.ending,
            },
            rest: &[],
        }),
        Format::Binary { big_endian } => read_body(&header, wanted, |place| BinaryBody {
            bytes,
            at: place.0,
            big_endian,
            last: place.0,
        }),
    }
}

/// The numbers that follow the header, one by one.
trait Body {
    /// The present place: the next byte, and its line in text.
    fn place(&self) -> (usize, usize);
    /// Begins one of an element.
    fn begin(&mut self) -> Result<(), Problem>;
    /// The next number, as a coordinate.
    fn coordinate(&mut self, number: Number) -> Result<f64, Problem>;
    /// The next number, which is whole.
    fn whole(&mut self, number: Number) -> Result<i64, Problem>;
    /// Walks over this many numbers.
    fn skip(&mut self, number: Number, count: usize) -> Result<(), Problem>;
    /// Ends one of an element.
    fn end(&mut self) -> Result<(), Problem>;
    /// A problem with what was read last.
    fn problem(&self, message: String) -> Problem;
    /// Whether there is nothing left.
    fn is_over(&self) -> bool;

    /// The length of a list.
    fn length(&mut self, number: Number) -> Result<usize, Problem> {
        let length = self.whole(number)?;
        usize::try_from(length).map_err(|_| self.problem(format!("a list of {length} numbers")))
    }

    /// Walks over a property.
    fn skip_property(&mut self, property: &Property<'_>) -> Result<(), Problem> {
        let count = match property.list {
            Some(list) => self.length(list)?,
            None => 1,
        };
        self.skip(property.number, count)
    }
}

/// Reads the mesh alone.
#[cfg(test)]
pub(super) fn read(bytes: &[u8]) -> Result<super::TriMesh, Problem> {
    read_file(bytes, &Wanted::default()).map(|file| file.mesh)
}

fn read_body<B: Body>(
    header: &Header<'_>,
    wanted: &Wanted<'_>,
    at: impl Fn((usize, usize)) -> B,
) -> Result<FileMesh, Problem> {
    let mut file = FileMesh::default();
    let mut groups = Groups::new(wanted.groups);
    let mut body = at(header.body);
    // Faces that come before the vertices are looked at once these are known.
    let mut faces_first = None;
    for element in &header.elements {
        let name = element.name;
        if name == b"vertex" {
            read_vertices(
                &mut body,
                element,
                wanted.velocities,
                &mut file,
                &mut groups,
            )
        } else if name == b"face" && file.mesh.positions.is_empty() {
            faces_first = Some((body.place(), element));
            skip_all(&mut body, element)
        } else if name == b"face" {
            read_faces(&mut body, element, &mut file)
        } else {
            skip_all(&mut body, element)
        }?;
    }
    if !body.is_over() {
        let (byte, line) = body.place();
        let message = "there is more in the file than its header says";
        return Err(match header.format {
            Format::Text => Problem::at(line, message),
            Format::Binary { .. } => Problem::at_byte(byte, message),
        });
    }
    if let Some((place, element)) = faces_first {
        read_faces(&mut at(place), element, &mut file)?;
    }
    (file.groups, file.group_names) = groups.finish();
    if let Some(texture) = &mut file.texture {
        // Each vertex has its own.
        texture.corners.clone_from(&file.faces.corners);
    }
    Ok(file)
}

/// Reads the items of an element; an error names the element in which something is missing.
fn each<B: Body>(
    body: &mut B,
    element: &Element<'_>,
    mut read: impl FnMut(&mut B) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for number in 0..element.count {
        let one = body.begin().and_then(|()| read(body));
        one.and_then(|()| body.end()).map_err(|mut problem| {
            let name = short(element.name);
            problem.message = format!("{name} {number}: {}", problem.message);
            problem
        })?;
    }
    Ok(())
}

fn skip_all(body: &mut impl Body, element: &Element<'_>) -> Result<(), Problem> {
    each(body, element, |body| {
        (element.properties.iter()).try_for_each(|property| body.skip_property(property))
    })
}

fn read_vertices(
    body: &mut impl Body,
    element: &Element<'_>,
    wants_velocities: bool,
    file: &mut FileMesh,
    groups: &mut Groups,
) -> Result<(), Problem> {
    let places = |names: &[&[u8]]| -> Vec<Option<usize>> {
        let number = |at: &usize| element.properties[*at].list.is_none();
        let places = names.iter().map(|name| element.position(name));
        places.map(|at| at.filter(number)).collect()
    };
    // The header was checked: there is one of each.
    let axes = places(&[b"x", b"y", b"z"]);
    let texture = TEXTURE.iter().map(|names| places(names));
    let texture = texture.into_iter().find(|names| !names.contains(&None));
    let [vx, vy, vz] = VELOCITY;
    let velocity = places(&[vx, vy, vz]);
    file.has_velocities = !velocity.contains(&None);
    if wants_velocities && let Some(axis) = velocity.iter().position(Option::is_none) {
        return Err(Problem::new(format!(
            "start velocities are wanted of it, and its vertices have no number `{}`; they are the numbers vx, vy and vz of each vertex",
            String::from_utf8_lossy(VELOCITY[axis])
        )));
    }
    let velocity = wants_velocities.then_some(velocity);
    // Numbers of vertices that are no more than that may be groups.
    let of_group: Vec<Option<usize>> = (element.properties.iter())
        .map(|property| {
            let is_known = property.list.is_some() || KNOWN.contains(&property.name);
            let name = (!is_known).then(|| String::from_utf8_lossy(property.name))?;
            groups.name(&name)
        })
        .collect();
    let mut coordinates = Vec::new();
    let mut velocities = Vec::new();
    each(body, element, |body| {
        let mut position = DVec3::ZERO;
        let mut coordinate = [0.0; 2];
        let mut speed = DVec3::ZERO;
        let vertex = u32::try_from(file.mesh.positions.len()).unwrap_or(u32::MAX);
        for (at, property) in element.properties.iter().enumerate() {
            let of_texture = texture.as_ref().and_then(|t| place_in(t, at));
            if let Some(axis) = place_in(&axes, at) {
                position[axis] = body.coordinate(property.number)?;
            } else if let Some(axis) = of_texture {
                coordinate[axis] = body.coordinate(property.number)?;
            } else if let Some(axis) = velocity.as_ref().and_then(|v| place_in(v, at)) {
                let component = body.coordinate(property.number);
                speed[axis] = component.map_err(|mut problem| {
                    let name = String::from_utf8_lossy(property.name);
                    problem.message = format!("{name}: {}", problem.message);
                    problem
                })?;
            } else if let Some(group) = of_group[at] {
                if body.coordinate(property.number)? >= IN_GROUP {
                    groups.add_to(group, vertex);
                }
            } else {
                body.skip_property(property)?;
            }
        }
        file.mesh.positions.push(position);
        if texture.is_some() {
            coordinates.push(coordinate);
        }
        if velocity.is_some() {
            velocities.push(speed);
        }
        Ok(())
    })?;
    file.texture = texture.map(|_| Texture {
        coordinates,
        corners: Vec::new(),
    });
    file.velocities = velocity.map(|_| velocities);
    Ok(())
}

/// The number of the one of some properties that is at this place.
fn place_in(properties: &[Option<usize>], at: usize) -> Option<usize> {
    properties.iter().position(|place| *place == Some(at))
}

fn read_faces(
    body: &mut impl Body,
    element: &Element<'_>,
    file: &mut FileMesh,
) -> Result<(), Problem> {
    let FileMesh { mesh, faces, .. } = file;
    let corners = CORNERS.iter().find_map(|name| element.position(name));
    let count = mesh.positions.len();
    let mut face: Vec<u32> = Vec::with_capacity(MOST_CORNERS);
    each(body, element, |body| {
        for (at, property) in element.properties.iter().enumerate() {
            let Some(list) = property.list.filter(|_| corners == Some(at)) else {
                body.skip_property(property)?;
                continue;
            };
            let length = body.length(list)?;
            if length > MOST_CORNERS {
                return Err(body.problem(too_many_corners()));
            }
            face.clear();
            for _ in 0..length {
                let corner = body.whole(property.number)?;
                match u32::try_from(corner) {
                    Ok(vertex) if (vertex as usize) < count => face.push(vertex),
                    _ => {
                        let message = format!("it names vertex {corner}, there are {count}");
                        return Err(body.problem(message));
                    }
                }
            }
            triangulate(
                &face,
                &mesh.positions,
                |vertex| format!("vertex {vertex}"),
                &mut mesh.triangles,
            )
            .map_err(|message| body.problem(message))?;
            if mesh.triangles.len() > MAX_TRIANGLES {
                return Err(body.problem(format!("more than {MAX_TRIANGLES} triangles")));
            }
            faces.push(&face);
        }
        Ok(())
    })
}

/// Numbers of text: each of an element has a line.
struct TextBody<'a> {
    lines: Lines<'a>,
    /// The rest of the line.
    rest: &'a [u8],
}

impl<'a> TextBody<'a> {
    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn expect(&mut self) -> Result<&'a [u8], Problem> {
        let word = self.word();
        word.ok_or_else(|| {
            self.problem("the line has fewer numbers than the header says".to_owned())
        })
    }
}

impl Body for TextBody<'_> {
    fn place(&self) -> (usize, usize) {
        (self.lines.at, self.lines.line + 1)
    }

    fn begin(&mut self) -> Result<(), Problem> {
        loop {
            let Some(line) = self.lines.next() else {
                return Err(self.problem("the file ends before it".to_owned()));
            };
            if !line.trim_ascii().is_empty() {
                self.rest = line;
                return Ok(());
            }
        }
    }

    fn coordinate(&mut self, number: Number) -> Result<f64, Problem> {
        let word = self.expect()?;
        match number {
            Number::Float32 => short_coordinate(word),
            Number::Float64 => coordinate(word),
            #[expect(clippy::cast_precision_loss, reason = "they have 32 bits at most")]
            whole => return self.range(word, whole).map(|value| value as f64),
        }
        .map_err(|message| self.problem(message))
    }

    fn whole(&mut self, number: Number) -> Result<i64, Problem> {
        let word = self.expect()?;
        self.range(word, number)
    }

    fn skip(&mut self, _: Number, count: usize) -> Result<(), Problem> {
        // A count that is not true ends with the line.
        (0..count).try_for_each(|_| self.expect().map(drop))
    }

    fn end(&mut self) -> Result<(), Problem> {
        match self.word() {
            None => Ok(()),
            Some(word) => Err(self.problem(format!(
                "the line has more numbers than the header says, from `{}` on",
                short(word)
            ))),
        }
    }

    fn problem(&self, message: String) -> Problem {
        Problem::at(self.lines.line, message)
    }

    fn is_over(&self) -> bool {
        self.lines.bytes[self.lines.at..].trim_ascii().is_empty()
    }
}

impl TextBody<'_> {
    /// A word as a whole number of this type.
    fn range(&self, word: &[u8], number: Number) -> Result<i64, Problem> {
        let value = std::str::from_utf8(word).ok();
        let value = value.and_then(|word| word.parse::<i64>().ok());
        let range = match number {
            Number::Int8 => i64::from(i8::MIN)..=i64::from(i8::MAX),
            Number::Uint8 => 0..=i64::from(u8::MAX),
            Number::Int16 => i64::from(i16::MIN)..=i64::from(i16::MAX),
            Number::Uint16 => 0..=i64::from(u16::MAX),
            Number::Int32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
            Number::Uint32 | Number::Float32 | Number::Float64 => 0..=i64::from(u32::MAX),
        };
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.problem(format!(
                "`{}` is no whole number from {least} to {most}",
                short(word)
            ))
        })
    }
}

/// Numbers of bytes.
struct BinaryBody<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
    /// The first byte of what was read last.
    last: usize,
}

impl BinaryBody<'_> {
    /// Walks over this many bytes, and says where they are.
    fn advance(&mut self, count: Option<usize>) -> Result<&[u8], Problem> {
        self.last = self.at;
        let end = count.and_then(|count| self.at.checked_add(count));
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(Problem::at_byte(
                self.bytes.len(),
                format!("the file ends within it, which goes on at byte {}", self.at),
            )),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let big_endian = self.big_endian;
        let bytes = self.advance(Some(N))?;
        let mut number = [0; N];
        number.copy_from_slice(bytes);
        if big_endian {
            number.reverse();
        }
        Ok(number)
    }
}

impl Body for BinaryBody<'_> {
    fn place(&self) -> (usize, usize) {
        (self.at, 0)
    }

    fn begin(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn coordinate(&mut self, number: Number) -> Result<f64, Problem> {
        let value = match number {
            Number::Float32 => f64::from(f32::from_le_bytes(self.take()?)),
            Number::Float64 => f64::from_le_bytes(self.take()?),
            #[expect(clippy::cast_precision_loss, reason = "they have 32 bits at most")]
            whole => self.whole(whole)? as f64,
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.problem(format!("a coordinate is {value}, no finite number")))
        }
    }

    fn whole(&mut self, number: Number) -> Result<i64, Problem> {
        Ok(match number {
            Number::Int8 => i8::from_le_bytes(self.take()?).into(),
            Number::Uint8 => u8::from_le_bytes(self.take()?).into(),
            Number::Int16 => i16::from_le_bytes(self.take()?).into(),
            Number::Uint16 => u16::from_le_bytes(self.take()?).into(),
            Number::Int32 => i32::from_le_bytes(self.take()?).into(),
            Number::Uint32 => u32::from_le_bytes(self.take()?).into(),
            // The header was checked for them.
            Number::Float32 | Number::Float64 => {
                return Err(self.problem("a number that is not whole".to_owned()));
            }
        })
    }

    fn skip(&mut self, number: Number, count: usize) -> Result<(), Problem> {
        self.advance(count.checked_mul(number.size())).map(drop)
    }

    fn end(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn problem(&self, message: String) -> Problem {
        Problem::at_byte(self.last, message)
    }

    fn is_over(&self) -> bool {
        // Some programs end a file with the end of a line.
        self.bytes[self.at..].trim_ascii().is_empty()
    }
}

/// The names of vertices' texture coordinates.
const TEXTURE: [[&[u8]; 2]; 3] = [[b"s", b"t"], [b"u", b"v"], [b"texture_u", b"texture_v"]];

/// The names of the components of vertices' velocities.
const VELOCITY: [&[u8]; 3] = [b"vx", b"vy", b"vz"];

/// Numbers of vertices that are never groups.
const KNOWN: [&[u8]; 20] = [
    b"x",
    b"y",
    b"z",
    b"nx",
    b"ny",
    b"nz",
    b"s",
    b"t",
    b"u",
    b"v",
    b"texture_u",
    b"texture_v",
    b"vx",
    b"vy",
    b"vz",
    b"red",
    b"green",
    b"blue",
    b"alpha",
    b"intensity",
];

/// The value from which on a vertex is in the group that a number of vertices is.
const IN_GROUP: f64 = 0.5;

/// The names of the list of a face's corners.
const CORNERS: [&[u8]; 2] = [b"vertex_indices", b"vertex_index"];

fn check_header(header: &Header<'_>, body: usize) -> Result<(), Problem> {
    for element in &header.elements {
        let (name, count) = (short(element.name), element.count);
        let most = match element.name {
            b"vertex" => MAX_VERTICES,
            b"face" => MAX_TRIANGLES,
            _ => usize::MAX,
        };
        if count > most {
            let message = format!("{count} elements `{name}`; the most are {most}");
            return Err(Problem::new(message));
        }
        let least = match header.format {
            // A digit and the end of a line.
            Format::Text => usize::from(!element.properties.is_empty()),
            Format::Binary { .. } => element.least_size(),
        };
        let fits = least > 0 && count.checked_mul(least).is_some_and(|all| all <= body);
        if count > 0 && !fits {
            let message =
                format!("the header promises {count} elements `{name}` that are not there");
            return Err(Problem::new(message));
        }
    }
    let named = |name: &[u8]| header.elements.iter().find(|e| e.name == name);
    let has = |element: Option<&Element<'_>>, property: &[u8], list: bool| {
        element.is_some_and(|element| {
            let mut all = element.properties.iter();
            all.any(|p| p.name == property && p.list.is_some() == list)
        })
    };
    if ![b"x", b"y", b"z"]
        .into_iter()
        .all(|axis| has(named(b"vertex"), axis, false))
    {
        return Err(Problem::new(
            "the header has no element `vertex` with x, y and z",
        ));
    }
    let faces = named(b"face");
    match CORNERS.map(|name| has(faces, name, true)) {
        [false, false] => {
            return Err(Problem::new(
                "the header has no element `face` with a list `vertex_indices`",
            ));
        }
        [true, true] => {
            return Err(Problem::new(
                "the header has `vertex_indices` and `vertex_index`: nothing says which are the corners",
            ));
        }
        _ => {}
    }
    let Some(faces) = faces.filter(|faces| faces.count > 0) else {
        return Err(Problem::new("the header says that it has 0 faces"));
    };
    let corners = CORNERS.iter().find_map(|name| faces.position(name));
    if corners.is_none_or(|at| !faces.properties[at].number.is_whole()) {
        return Err(Problem::new(
            "the corners of faces are no whole numbers, by the header",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{FilePlace, TriMesh};
    use super::*;

    fn header(format: &str, vertices: &str, faces: &str) -> String {
        format!(
            "ply\nformat {format} 1.0\ncomment made by hand\nelement vertex {vertices}\n\
             property float x\nproperty float y\nproperty float z\nproperty uchar red\n\
             element face {faces}\nproperty list uchar uint vertex_index\nend_header\n"
        )
    }

    #[test]
    fn ascii_and_both_binary_orders_agree() {
        let points = [
            [0f32, 0.0, 0.5],
            [1.0, 0.0, 0.5],
            [1.0, 1.0, 0.5],
            [0.0, 1.0, 0.5],
        ];
        let faces: [&[u32]; 2] = [&[0, 1, 2], &[0, 2, 3]];
        let mut ascii = header("ascii", "4", "2");
        for [x, y, z] in points {
            ascii += &format!("{x} {y} {z} 255\n");
        }
        ascii += "3 0 1 2\n3 0 2 3\n";
        let binary = |little: bool| {
            let name = if little {
                "binary_little_endian"
            } else {
                "binary_big_endian"
            };
            let order = |bytes: [u8; 4]| {
                let mut bytes = bytes;
                if !little {
                    bytes.reverse();
                }
                bytes
            };
            let mut out = header(name, "4", "2").into_bytes();
            for point in points {
                out.extend(point.iter().flat_map(|x| order(x.to_le_bytes())));
                out.push(255);
            }
            for face in faces {
                out.push(3);
                out.extend(face.iter().flat_map(|v| order(v.to_le_bytes())));
            }
            out
        };
        let mesh = read(ascii.as_bytes()).unwrap();
        assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
        assert_eq!(mesh.positions[2], DVec3::new(1.0, 1.0, 0.5));
        assert_eq!(read(&binary(true)).unwrap(), mesh);
        assert_eq!(read(&binary(false)).unwrap(), mesh);
    }

    #[test]
    fn polygons_of_a_ply_file_are_cut_into_triangles() {
        let text = header("ascii", "4", "1") + "0 0 0 1\n1 0 0 1\n1 1 0 1\n0 1 0 1\n4 0 1 2 3\n";
        assert_eq!(read(text.as_bytes()).unwrap().triangles.len(), 2);
    }

    #[test]
    fn promises_that_are_not_kept_are_refused_without_taking_memory() {
        for count in ["18446744073709551615", "4000000000", "19000000", "5"] {
            for format in ["ascii", "binary_little_endian"] {
                assert!(
                    read(header(format, count, "1").as_bytes()).is_err(),
                    "{count} {format}"
                );
                assert!(
                    read(header(format, "0", count).as_bytes()).is_err(),
                    "{count} {format}"
                );
            }
        }
        let empty = "ply\nformat binary_little_endian 1.0\nelement ghost 99\nend_header\n";
        assert_eq!(
            read(empty.as_bytes()).unwrap_err().message,
            "the header promises 99 elements `ghost` that are not there"
        );
        // A list of 4 billion corners.
        let mut list =
            b"ply\nformat binary_little_endian 1.0\nelement vertex 0\nproperty float x\n\
            property float y\nproperty float z\nelement face 1\n\
            property list uint uint vertex_indices\nend_header\n"
                .to_vec();
        list.extend(u32::MAX.to_le_bytes());
        assert!(read(&list).is_err());
    }

    #[test]
    fn errors_name_line_or_element() {
        let text = header("ascii", "3", "1") + "0 0 0 1\n1 0 x 1\n0 1 0 1\n3 0 1 2\n";
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error, Problem::at(13, "vertex 1: `x` is no number"),);
        let text = header("ascii", "3", "1") + "0 0 0 1\n1 0 0 1\n0 1 0 1\n3 0 1 3\n";
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(
            error,
            Problem::at(15, "face 0: it names vertex 3, there are 3")
        );
        let error = read(b"plx\n").unwrap_err();
        assert!(error.message.contains("first line is `plx`"), "{error:?}");
        let error = read(b"ply\nformat ascii 1.0\nend_header\n").unwrap_err();
        assert_eq!(
            error.message,
            "the header has no element `vertex` with x, y and z"
        );
    }

    /// Numbers of one file as text and as bytes, by the crate and by this reader.
    #[test]
    fn an_independent_reader_agrees() {
        use ply_rs_bw::parser::Parser;
        use ply_rs_bw::ply::{DefaultElement, Property as Theirs};

        let text = header("ascii", "4", "2")
            + "0 0 0.1 1\n1 0 0.2 1\n1 1 0.3 1\n0 1 -7e-3 1\n3 0 1 2\n3 0 2 3\n";
        let parser = Parser::<DefaultElement>::new();
        let theirs = parser.read_ply(&mut text.as_bytes()).unwrap();
        let ours = read(text.as_bytes()).unwrap();
        let number = |element: &DefaultElement, name: &str| match element[name] {
            Theirs::Float(x) => f64::from(x),
            ref other => panic!("{other:?}"),
        };
        let positions: Vec<DVec3> = theirs.payload["vertex"]
            .iter()
            .map(|v| DVec3::from_array(["x", "y", "z"].map(|axis| number(v, axis))))
            .collect();
        assert_eq!(ours.positions, positions);
        let corners = theirs.payload["face"]
            .iter()
            .map(|face| match &face["vertex_index"] {
                Theirs::ListUInt(corners) => corners.clone(),
                other => panic!("{other:?}"),
            });
        let ours: Vec<Vec<u32>> = ours.triangles.iter().map(|t| t.to_vec()).collect();
        assert_eq!(ours, corners.collect::<Vec<_>>());
    }

    /// A quad with all kinds of things around it that are not asked for, in both orders of vertices
    /// and faces.
    #[test]
    fn elements_other_than_vertices_and_faces_are_skipped() {
        let vertices = "element vertex 4\nproperty list uchar double extra\nproperty double x\n\
                        property int y\nproperty float z\n";
        let faces = "element face 1\nproperty float quality\nproperty list char int vertex_indices\n\
                     property list uint uchar more\n";
        let others = "element edge 2\nproperty list ushort short way\nproperty double length\n";
        let of_text = [
            "1 0.5 0 0 0\n0 1 0 0\n0 1 1 0\n2 7 7 0 1 0\n",
            "0.5 4 0 1 2 3 2 1 2\n",
            "3 1 2 3 0.5\n\n0 1\n",
        ];
        let number = |x: f64| x.to_le_bytes().to_vec();
        let float = |x: f32| x.to_le_bytes().to_vec();
        let int = |x: i32| x.to_le_bytes().to_vec();
        let vertex = |extra: &[f64], [x, y, z]: [i32; 3]| {
            let mut bytes = vec![extra.len() as u8];
            bytes.extend(extra.iter().flat_map(|&x| number(x)));
            bytes.extend([number(x.into()), int(y), float(z as f32)].concat());
            bytes
        };
        let of_bytes = [
            [
                vertex(&[0.5], [0, 0, 0]),
                vertex(&[], [1, 0, 0]),
                vertex(&[], [1, 1, 0]),
                vertex(&[7.0, 7.0], [0, 1, 0]),
            ]
            .concat(),
            [
                float(0.5),
                vec![4],
                int(0),
                int(1),
                int(2),
                int(3),
                int(2),
                vec![1, 2],
            ]
            .concat(),
            [
                vec![3, 0, 1, 0, 2, 0, 3, 0],
                number(0.5),
                vec![0, 0],
                number(1.0),
            ]
            .concat(),
        ];
        let quad = TriMesh {
            positions: vec![DVec3::ZERO, DVec3::X, DVec3::new(1.0, 1.0, 0.0), DVec3::Y],
            triangles: Vec::new(),
        };
        for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]] {
            let head = |format: &str| {
                let elements = order.map(|k| [vertices, faces, others][k]).concat();
                format!("ply\nformat {format} 1.0\nobj_info x\n{elements}end_header\n")
            };
            let text = head("ascii") + &order.map(|k| of_text[k]).concat();
            let mesh = read(text.as_bytes()).unwrap();
            assert_eq!(mesh.positions, quad.positions);
            assert_eq!(mesh.triangles.len(), 2);
            let crlf = read(text.replace('\n', "\r\n").as_bytes());
            assert_eq!(crlf.as_ref(), Ok(&mesh));
            let old = read(text.replace('\n', "\r").as_bytes());
            assert_eq!(old.as_ref(), Ok(&mesh));
            let mut bytes = head("binary_little_endian").into_bytes();
            bytes.extend(order.map(|k| of_bytes[k].clone()).concat());
            assert_eq!(read(&bytes).as_ref(), Ok(&mesh));
            // One byte less, and one more.
            let error = read(&bytes[..bytes.len() - 1]).unwrap_err();
            assert!(
                error.place == Some(FilePlace::Byte(bytes.len() - 1)),
                "{error:?}"
            );
            bytes.push(7);
            let error = read(&bytes).unwrap_err();
            let message = "there is more in the file than its header says";
            assert_eq!(error, Problem::at_byte(bytes.len() - 1, message));
        }
    }

    #[test]
    fn lines_that_are_not_as_the_header_says_are_refused() {
        let rows = "0 0 0 1\n1 0 0 1\n0 1 0 1\n";
        let error = |rows: &str| read((header("ascii", "3", "1") + rows).as_bytes()).unwrap_err();
        for (end, line, words) in [
            ("3 0 1 2\n7\n", 16, "more in the file"),
            (
                "3 0 1 2 9\n",
                15,
                "more numbers than the header says, from `9` on",
            ),
            ("3 0 1\n", 15, "fewer numbers"),
            ("-3 0 1 2\n", 15, "`-3` is no whole number from 0 to 255"),
            ("256 0 1 2\n", 15, "`256` is no whole number"),
            ("3 0 1 -2\n", 15, "`-2` is no whole number"),
            ("2 0 1\n", 15, "a face with 2 corners"),
            ("3 0 1 1\n", 15, "a face that has vertex 1 twice"),
            ("200 0\n", 15, "more than 128 corners"),
        ] {
            let error = error(&format!("{rows}{end}"));
            assert_eq!(error.place, Some(FilePlace::Line(line)), "{error:?}");
            assert!(error.message.contains(words), "{error:?}");
        }
        for token in ["nan", "inf", "1e39", "-1e400"] {
            let error = error(&format!("0 0 0 1\n1 {token} 0 1\n0 1 0 1\n3 0 1 2\n"));
            let message = format!("vertex 1: `{token}` is no finite number");
            assert_eq!(error, Problem::at(13, message));
        }
        // As bytes, where the number begins.
        let mut bytes = header("binary_little_endian", "3", "1").into_bytes();
        let body = bytes.len();
        for k in 0..3_u8 {
            let x = if k == 1 { f32::NAN } else { f32::from(k) };
            bytes.extend([x, 0.0, 0.0].iter().flat_map(|x| x.to_le_bytes()));
            bytes.push(k);
        }
        bytes.extend([3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let error = read(&bytes).unwrap_err();
        let message = "vertex 1: a coordinate is NaN, no finite number";
        assert_eq!(error, Problem::at_byte(body + 13, message));
    }

    #[test]
    fn texture_coordinates_polygons_and_groups_are_kept() {
        let text = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float t\n\
                    property float y\nproperty uchar pin\nproperty float z\nproperty float s\n\
                    property float weight\nproperty uchar red\nelement face 1\n\
                    property list uchar int vertex_indices\nend_header\n\
                    0 .1 0 0 0 .2 0.4 9\n1 .3 0 1 0 .4 0.5 9\n1 .5 1 1 0 .6 1 9\n0 .7 1 0 0 .8 0 9\n\
                    4 0 1 2 3\n";
        let file = read_file(
            text.as_bytes(),
            &Wanted::groups(&["weight", "pin", "red", "nothing"]),
        )
        .unwrap();
        assert_eq!(file.faces.polygons(), [1, 0]);
        let texture = file.texture.unwrap();
        assert_eq!(texture.corners, [0, 1, 2, 3]);
        let known = [[0.2, 0.1], [0.4, 0.3], [0.6, 0.5], [0.8, 0.7]];
        for (read, known) in texture
            .coordinates
            .as_flattened()
            .iter()
            .zip(known.as_flattened())
        {
            assert!((read - known).abs() < 1e-7);
        }
        assert_eq!(file.group_names, ["pin", "weight"]);
        let groups: Vec<&[u32]> = file.groups.iter().map(|g| &g.vertices[..]).collect();
        assert_eq!(groups, [&[1, 2], &[1, 2]]);
    }

    #[test]
    fn headers_that_mean_nothing_are_refused_with_their_line() {
        let start = "ply\nformat ascii 1.0\n";
        for (text, line, words) in [
            ("ply\n", 1, "no line `end_header`"),
            ("ply\nend_header\n", 2, "no line `format`"),
            (
                "ply\nformat ascii 2.0\n",
                2,
                "`format ascii 2.0` is none of",
            ),
            ("ply\nformat text 1.0\n", 2, "is none of"),
            (
                &format!("{start}element vertex\n"),
                3,
                "`element NAME COUNT`",
            ),
            (
                &format!("{start}element vertex -1\n"),
                3,
                "`element NAME COUNT`",
            ),
            (&format!("{start}property float x\n"), 3, "of no element"),
            (
                &format!("{start}element v 1\nproperty real x\n"),
                4,
                "`real`",
            ),
            (
                &format!("{start}element v 1\nproperty float\n"),
                4,
                "neither as",
            ),
            (
                &format!("{start}element v 1\nproperty list float int x\n"),
                4,
                "length of a list",
            ),
            (
                &format!("{start}element v 1\nelement v 1\n"),
                4,
                "another element `v`",
            ),
            (
                &format!("{start}element v 1\nproperty int x\nproperty int x\n"),
                5,
                "another property",
            ),
            (&format!("{start}element v 1 2\n"), 3, "a word too many"),
            (&format!("{start}\u{1b}[2J\n"), 3, "`\\u{1b}[2J` is no line"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(
                error.place,
                Some(FilePlace::Line(line)),
                "{text}: {error:?}"
            );
            assert!(error.message.contains(words), "{text}: {error:?}");
        }
    }
}
