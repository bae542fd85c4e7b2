//! Whether a bench is started to measure.

/// Whether the bench is started to measure, and not by `cargo test --benches` or to list what it
/// has.
pub(crate) fn measures() -> bool {
    !std::env::args().any(|argument| argument == "--test" || argument == "--list")
}
