//! All checks of the json_rpc boundary, by topic. [`super::cases`] reads their rows.

use peerproof_engine::data::check::Check;

use super::cases::{self, server};

mod http;

/// Files about a server.
const SERVER: [&str; 23] = [
    "framing",
    "examples",
    "json",
    "ids",
    "requests",
    "methods",
    "batches",
    "profile",
    "mixtures",
    "notifications",
    "near",
    "limits",
    "sizes",
    "timeouts",
    "results",
    "process",
    "streams",
    "auth",
    "rate",
    "gzip",
    "wrapped",
    "model",
    "ambient",
];
/// Files about a client.
const CLIENT: [&str; 10] = [
    "answers", "requests", "timeouts", "retries", "hostile", "streams", "ends", "auth", "mixture", "ambient",
];

/// Every check, in the order in which they run.
pub(crate) fn all() -> Vec<Check> {
    let mut checks: Vec<Check> = SERVER.into_iter().flat_map(server::checks).collect();
    checks.extend(CLIENT.into_iter().flat_map(cases::client::checks));
    let carried = http::carried(&checks);
    checks.extend(carried);
    checks.extend(server::checks("http"));
    checks
}

#[cfg(test)]
mod tests {
    use super::super::cases::files;
    use super::*;

    #[test]
    fn every_case_file_is_used() {
        for (folder, used) in [("", SERVER.as_slice()), ("client", &CLIENT)] {
            for (name, _) in files(folder) {
                let file = name.trim_end_matches(".toml");
                assert!(used.contains(&file) || file == "http", "{folder}/{name} is in no topic");
            }
        }
    }
}
