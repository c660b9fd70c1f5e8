//! Checks of the json_rpc boundary. Each check is a row of a file below `corpora/json_rpc/cases`.
//!
//! [`server`] reads rows about a server, [`client`] rows about a client (`cases/client`). A step that has to be
//! computed names a function (`computed`) in [`computed`].

use std::collections::BTreeSet;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;

use peerproof_engine::data::case::{self, Loaded};
use peerproof_engine::data::payload::Payload;

mod auth;
pub(crate) mod client;
pub(crate) mod computed;
mod rate;
pub(crate) mod server;
mod sizes;
pub(crate) mod words;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Limits by name, for recipes (document 004, Performance; contract readings).
const LIMITS: [(&str, u64); 2] = [("line_bytes_certain", 1_000_000), ("line_bytes_max", 1_048_576)];

fn limit(name: &str) -> Option<u64> {
    LIMITS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// All rows of a folder's files. The data is embedded; a test shows that it loads.
fn all<S: DeserializeOwned>(folder: &str, cases: &'static OnceLock<Vec<Loaded<S>>>) -> &'static [Loaded<S>] {
    cases.get_or_init(|| {
        case::load(files(folder))
            .unwrap_or_else(|error| unreachable!("corpora/json_rpc/cases does not load: {error}"))
    })
}

/// Names and texts of a folder's files.
pub(crate) fn files(folder: &str) -> BTreeSet<(&'static str, &'static str)> {
    let folder = if folder.is_empty() { Some(&FILES) } else { FILES.get_dir(folder) };
    folder.map(case::files).unwrap_or_default()
}

/// A message and its end, by default a line feed.
fn ended(message: Payload, end: Option<&str>) -> Payload {
    match end {
        Some("") => message,
        end => message.then(Payload::text(end.unwrap_or("\n"))).merged(),
    }
}
