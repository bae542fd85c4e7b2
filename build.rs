//! Notes the commit for `weft info` and the records of runs. Only in release builds: others are
//! rebuilt too often to do it each time.
//!
//! A packed crate says of which commit it is in `.cargo_vcs_info.json`. A working tree is asked by
//! git, but only if its files are ones of that repository: sources that lie inside a foreign one,
//! as those of a registry in a home folder under version control, are not of its commit. Sources
//! without either have no commit, and that is no error.

use std::env;
use std::fs;
use std::process::Command;

/// The file that `cargo package` adds to a crate.
const PACKED: &str = ".cargo_vcs_info.json";

/// The digits of a commit that are kept.
const DIGITS: usize = 12;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    if let Some(commit) = commit_of_package().or_else(commit_of_tree) {
        println!("cargo:rustc-env=WEFT_COMMIT={commit}");
    }
}

/// The commit that a packed crate was made of.
fn commit_of_package() -> Option<String> {
    let text = fs::read_to_string(PACKED).ok()?;
    println!("cargo:rerun-if-changed={PACKED}");
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    let is_commit = commit.len() >= DIGITS && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_commit.then(|| commit[..DIGITS].to_owned())
}

/// The commit of the working tree that these sources are part of.
fn commit_of_tree() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["rev-parse", &format!("--short={DIGITS}"), "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
