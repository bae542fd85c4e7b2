//! Distributed thread groups: fork, hyperfork and join-any over ranks that steal from each other.
pub mod comm;
