//! A `[[seam]]` of a scene, and its keys: two borders of cloth that are sewn together.

use super::error::did_you_mean;
use super::form::{Amount, Numbers, OneOf, Text, plain, words};
use super::key::{Changes, Key, Nested, Value, note_missing, read_keys, write_inline, write_lines};
use super::load::MOST_VERTICES;
use super::nearest::nearest;
use super::objects::{Surroundings, name};
use super::quantity::{Dimension, Short};
use super::reader::{Range, Table};
use super::{Cloth, ClothSource, Scene, defaults};

/// Two borders of cloth that are sewn together.
#[derive(Clone, Debug, PartialEq)]
pub struct Seam {
    /// Its name in messages.
    pub name: String,
    /// The two borders.
    pub sides: [SeamSide; 2],
    /// The time in s by which they are together.
    pub close: f64,
    /// The distance in m up to which they are, if it does not follow from the thickness of cloth.
    pub gap: Option<f64>,
}

/// One of the two borders of a seam.
#[derive(Clone, Debug, PartialEq)]
pub struct SeamSide {
    /// The name of the cloth.
    pub cloth: String,
    /// The part of its border.
    pub border: Border,
}

/// A part of the border of a cloth.
#[derive(Clone, Debug, PartialEq)]
pub enum Border {
    /// An edge of a grid, from one share of its length to another.
    Edge(GridEdge, [f64; 2]),
    /// The vertices of a group of the cloth's file.
    Group(String),
    /// The vertices of these numbers, from 0, as the cloth's file or its grid has them.
    Vertices(Vec<u64>),
}

/// An edge of a grid as it lies before it is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridEdge {
    /// Where x is least.
    Left,
    /// Where x is largest.
    Right,
    /// Where y is least.
    Bottom,
    /// Where y is largest.
    Top,
}

impl Scene {
    /// The distance in m up to which the sides of a seam are together.
    #[must_use]
    pub fn gap_of(&self, seam: &Seam) -> f64 {
        let thickness = |side: &SeamSide| {
            let cloth = self.cloths.iter().find(|cloth| cloth.name == side.cloth);
            self.thickness(cloth.and_then(|cloth| cloth.thickness))
        };
        let [one, other] = seam.sides.each_ref().map(thickness);
        seam.gap.unwrap_or(0.5 * (one + other))
    }
}

impl GridEdge {
    const ALL: [Self; 4] = [Self::Left, Self::Right, Self::Bottom, Self::Top];

    /// The name of the edge in a scene.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Bottom => "bottom",
            Self::Top => "top",
        }
    }
}

words!(GridEdge);

/// The values of the keys of a seam but for its sides.
#[derive(Clone, Debug)]
pub(super) struct SeamKeys {
    name: Option<String>,
    sides: Vec<SideKeys>,
    close: f64,
    gap: Option<f64>,
}

impl Default for SeamKeys {
    fn default() -> Self {
        Self {
            name: None,
            sides: Vec::new(),
            close: defaults::SEAM_CLOSE,
            gap: None,
        }
    }
}

/// The values of the keys of one side of a seam.
#[derive(Clone, Debug, Default)]
pub(super) struct SideKeys {
    cloth: Option<String>,
    edge: Option<GridEdge>,
    from: Option<f64>,
    to: Option<f64>,
    group: Option<String>,
    vertices: Option<Vec<u64>>,
}

type Of<F> = Value<SeamKeys, F>;

/// The keys of a seam, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<SeamKeys>] = &[
    Key::new(
        "name",
        &Of {
            form: Text,
            get: |seam| seam.name.clone(),
            set: |seam, name| seam.name = Some(name),
        },
        "Its name in messages.",
    )
    .unset("`seam0`, `seam1`, ..."),
    Key::new(
        "sides",
        &Nested {
            what: "an array of two tables",
            write: |seam: &SeamKeys| {
                let sides = seam.sides.iter();
                let sides: Vec<String> = sides.map(|side| write_inline(SIDE_KEYS, side)).collect();
                Some(plain(format!("[{}]", sides.join(", "))))
            },
        },
        "The two borders that are sewn together: [which vertices](#sewing) of which cloth.",
    )
    .required(
        "sides = [{ cloth = \"front\", edge = \"left\" }, { cloth = \"back\", edge = \"left\" }]",
    ),
    Key::new(
        "close",
        &Of {
            form: Amount(Dimension::TIME, Range::Positive),
            get: |seam| Some(seam.close),
            set: |seam, close| seam.close = close,
        },
        "The time by which the seam is closed. Both sides are pulled together until then, and a run in which they are not together \
         by then ends.",
    ),
    Key::new(
        "gap",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |seam| seam.gap,
            set: |seam, gap| seam.gap = Some(gap),
        },
        "The distance up to which the two sides are together.",
    )
    .unset("the mean of the thicknesses of both cloths")
    .changes(Changes::Onwards),
];

type OfSide<F> = Value<SideKeys, F>;

/// The keys of a side of a seam.
pub(super) const SIDE_KEYS: &[Key<SideKeys>] = &[
    Key::new(
        "cloth",
        &OfSide {
            form: Text,
            get: |side| side.cloth.clone(),
            set: |side, cloth| side.cloth = Some(cloth),
        },
        "The name of the cloth. Both sides may be of one.",
    )
    .required("cloth = \"front\""),
    Key::new(
        "edge",
        &OfSide {
            form: OneOf::<GridEdge>::NEW,
            get: |side| side.edge,
            set: |side, edge| side.edge = Some(edge),
        },
        "An edge of a grid, as it lies before it is turned: x grows from left to right, y from bottom to top. A side has this, \
         `group`, or `vertices`.",
    )
    .unset("none"),
    Key::new(
        "from",
        &OfSide {
            form: Amount(Dimension::NUMBER, Range::HalfOpen(0.0, 1.0)),
            get: |side| side.from,
            set: |side, from| side.from = Some(from),
        },
        "The share of the length of an `edge` at which the side begins.",
    )
    .unset("0"),
    Key::new(
        "to",
        &OfSide {
            form: Amount(Dimension::NUMBER, Range::Positive),
            get: |side| side.to,
            set: |side, to| side.to = Some(to),
        },
        "The share of the length of an `edge` at which the side ends.",
    )
    .unset("1"),
    Key::new(
        "group",
        &OfSide {
            form: Text,
            get: |side| side.group.clone(),
            set: |side, group| side.group = Some(group),
        },
        "The name of a [group of vertices](#mesh-files) of the cloth's file. They follow each other along the border of the mesh.",
    )
    .unset("none"),
    Key::new(
        "vertices",
        &OfSide {
            form: Numbers(0, MOST_VERTICES - 1),
            get: |side| side.vertices.clone(),
            set: |side, vertices| side.vertices = Some(vertices),
        },
        "The numbers of vertices, from 0, as pins have them, in any order. They follow each other along the border of the mesh.",
    )
    .unset("none"),
];

/// Reads a seam of a scene with these cloths.
pub(super) fn seam(
    table: &Table<'_>,
    index: usize,
    cloths: &[Cloth],
    surroundings: &Surroundings<'_>,
) -> Option<Seam> {
    let said = read_keys(table, KEYS, SeamKeys::default());
    note_missing(table, KEYS, &said);
    let name = name(
        table,
        said.name.as_deref(),
        &format!("seam{index}"),
        surroundings,
    );
    let sides = table.tables("sides", 2, |_, table| side(table, cloths));
    let is_two = sides.len() == 2;
    if table.has("sides") && !is_two {
        table.note("sides", "a seam has two sides");
    }
    let mut sides = sides.into_iter();
    let sides = [sides.next()??, sides.next()??];
    if sides[0] == sides[1] {
        table.note("sides", "are one border; a seam sews two together");
    }
    Some(Seam {
        name,
        sides,
        close: said.close,
        gap: said.gap,
    })
}

fn side(table: &Table<'_>, cloths: &[Cloth]) -> Option<SeamSide> {
    let said = read_keys(table, SIDE_KEYS, SideKeys::default());
    note_missing(table, SIDE_KEYS, &said);
    let part = [said.from.unwrap_or(0.0), said.to.unwrap_or(1.0)];
    if said.edge.is_none() && (said.from.is_some() || said.to.is_some()) {
        table.note("edge", "`from` and `to` are of a side with an `edge`");
    } else if part[1] <= part[0] || part[1] > 1.0 {
        table.note(
            "to",
            "wants a share of the edge that is larger than `from`, and at most 1",
        );
    }
    let border = match (said.edge, said.group, said.vertices) {
        (Some(edge), None, None) => Some(Border::Edge(edge, part)),
        (None, Some(group), None) => Some(Border::Group(group)),
        (None, None, Some(vertices)) => Some(Border::Vertices(vertices)),
        _ => {
            table.note("", "wants one of `edge`, `group` and `vertices`");
            None
        }
    };
    let name = said.cloth?;
    let Some(cloth) = cloths.iter().find(|cloth| cloth.name == name) else {
        let hint = did_you_mean(nearest(&name, cloths.iter().map(|of| of.name.as_str())));
        let message = format!("no cloth is named `{}`{hint}", Short(&name));
        table.note("cloth", message);
        return None;
    };
    let is_grid = matches!(cloth.source, ClothSource::Grid { .. });
    let has_file = matches!(cloth.source, ClothSource::File { .. });
    match &border {
        Some(Border::Edge(..)) if !is_grid => {
            table.note("edge", "edges are of cloths with a `grid`")
        }
        Some(Border::Group(_)) if !has_file => {
            table.note("group", "groups are of cloths with a file (`mesh`)");
        }
        _ => {}
    }
    border.map(|border| SeamSide {
        cloth: name,
        border,
    })
}

/// Tells each cloth which groups of its file seams name.
pub(super) fn tell_groups(seams: &[Seam], cloths: &mut [Cloth]) {
    for side in seams.iter().flat_map(|seam| &seam.sides) {
        if let Border::Group(group) = &side.border
            && let Some(cloth) = cloths.iter_mut().find(|cloth| cloth.name == side.cloth)
        {
            cloth.sewn_groups.push(group.clone());
        }
    }
}

/// Writes a seam.
pub(super) fn write_seam(out: &mut String, seam: &Seam) {
    out.push_str("\n[[seam]]\n");
    let side = |side: &SeamSide| {
        let mut said = SideKeys {
            cloth: Some(side.cloth.clone()),
            ..SideKeys::default()
        };
        match &side.border {
            Border::Edge(edge, [from, to]) => {
                said.edge = Some(*edge);
                said.from = (*from != 0.0).then_some(*from);
                said.to = (*to != 1.0).then_some(*to);
            }
            Border::Group(group) => said.group = Some(group.clone()),
            Border::Vertices(vertices) => said.vertices = Some(vertices.clone()),
        }
        said
    };
    let said = SeamKeys {
        name: Some(seam.name.clone()),
        sides: seam.sides.iter().map(side).collect(),
        close: seam.close,
        gap: seam.gap,
    };
    write_lines(out, KEYS, &said);
}
