//! Jobs: what one is, and contents that differ.
