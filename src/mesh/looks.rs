//! Guesses at the true format of a file that is not the mesh its name says, for a user who gave the
//! wrong one.

use super::file_problem::{Problem, short};

/// The reason why an OBJ file without faces has none.
pub(super) fn without_faces(bytes: &[u8], vertices: usize) -> Problem {
    let kind =
        "OBJ, which is text with a line `v X Y Z` for each vertex and `f I J K` for each triangle";
    if vertices > 0 {
        return Problem::new(format!(
            "it has {vertices} vertices and no line `f`: nothing says which of them are corners of triangles"
        ));
    }
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// The problem with a file that does not begin as PLY does.
pub(super) fn no_ply(bytes: &[u8]) -> Problem {
    let kind = "PLY, whose first line is `ply`";
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// The problem with a file that is neither kind of STL.
pub(super) fn no_stl(bytes: &[u8]) -> Problem {
    let kind =
        "STL, which is text that begins with `solid`, or binary with 84 bytes before its triangles";
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// The problem with a file that does not begin as glTF Binary does.
pub(super) fn no_glb(bytes: &[u8]) -> Problem {
    let kind = "glTF Binary, whose first letters are `glTF`";
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// The problem with a file that does not begin as glTF does.
pub(super) fn no_gltf(bytes: &[u8]) -> Problem {
    let kind = "glTF, which is JSON that begins with `{`";
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// The problem with a file that is neither kind of USD.
pub(super) fn no_usd(bytes: &[u8]) -> Problem {
    let kind = "USD, which is text that begins with `#usda`, binary that begins with `PXR-USDC`, or a package";
    Problem::new(format!("it is no {kind}; {}", looks(bytes)))
}

/// Describes the file by its first bytes.
fn looks(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    if head.trim_ascii().is_empty() {
        return "it is empty".to_owned();
    }
    let ending = if head.starts_with(b"ply\n") || head.starts_with(b"ply\r") {
        ", as PLY does: call it .ply"
    } else if head.starts_with(b"solid ") {
        ", as STL does: call it .stl"
    } else if head.starts_with(b"glTF") {
        ", as glTF Binary does: call it .glb"
    } else if head.starts_with(b"#usda") {
        ", as USD does: call it .usda"
    } else {
        ""
    };
    let line = head.trim_ascii_start().split(|&byte| byte == b'\n').next();
    let line = line.unwrap_or_default().trim_ascii_end();
    let is_text = |bytes: &[u8]| {
        // Cut anywhere, also within a character.
        let text = match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        };
        text && !bytes.iter().any(|&b| b < b' ' && !b.is_ascii_whitespace())
    };
    if is_text(head) || !ending.is_empty() {
        format!("its first line is `{}`{ending}", short(line))
    } else {
        format!("it is binary, {} bytes", bytes.len())
    }
}

/// Bytes at the beginning that are looked at.
const LOOKED_AT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_told_by_what_it_looks_like() {
        let obj = |bytes: &[u8]| without_faces(bytes, 0).message;
        assert!(obj(b"").ends_with("; it is empty"));
        assert!(obj(b" \n\n").ends_with("; it is empty"));
        assert!(obj(b"\x89PNG\r\n\x1a\n\0\0").ends_with("; it is binary, 10 bytes"));
        assert!(obj(b"\xff\xfe\xfd").ends_with("; it is binary, 3 bytes"));
        assert!(obj(b"<html>\n<p>not found").ends_with("; its first line is `<html>`"));
        assert!(obj(b"ply\r\nformat").ends_with("is `ply`, as PLY does: call it .ply"));
        assert!(obj(b"solid ball\nfacet").ends_with("`solid ball`, as STL does: call it .stl"));
        // A character that the look ends within.
        let long = "µ".repeat(LOOKED_AT);
        assert!(obj(&[b"x", long.as_bytes()].concat()).contains("its first line is `xµ"));
        let message = without_faces(b"v 0 0 0\n", 1).message;
        assert!(message.contains("1 vertices and no line `f`"), "{message}");
        let message = no_ply(b"v 0 0 0\n").message;
        assert!(
            message.ends_with("its first line is `v 0 0 0`"),
            "{message}"
        );
    }
}
