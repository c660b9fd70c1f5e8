//! All checks of the json_rpc boundary, by topic.

use peerproof_engine::check::Check;

use super::cases;

mod ambient;
mod auth;
mod batch;
mod client;
mod framing;
mod gzip;
mod http;
mod limits;
mod model;
mod near;
mod notifications;
mod process;
mod profile;
mod rate;
mod sizes;
mod streams;
mod timeouts;

/// Every check, in the order in which they run.
pub fn all() -> Vec<Check> {
    let mut checks = framing::checks();
    for file in ["examples", "json", "ids", "requests", "methods", "batches", "profile"] {
        checks.extend(cases::checks(file));
    }
    checks.extend(batch::checks());
    checks.extend(notifications::checks());
    checks.extend(near::checks());
    checks.extend(limits::checks());
    checks.extend(sizes::checks());
    checks.extend(timeouts::checks());
    checks.extend(profile::checks());
    checks.extend(process::checks());
    checks.extend(streams::checks());
    checks.extend(auth::checks());
    checks.extend(rate::checks());
    checks.extend(gzip::checks());
    checks.extend(model::checks());
    checks.extend(ambient::checks());
    checks.extend(client::checks());
    let carried = http::carried(&checks);
    checks.extend(carried);
    checks.extend(http::checks());
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_file_is_used() {
        let ids: Vec<String> = all().into_iter().map(|check| check.id).collect();
        for file in cases::files() {
            for check in cases::checks(file) {
                assert!(ids.contains(&check.id), "{file}.toml: {} is in no topic", check.id);
            }
        }
    }
}
