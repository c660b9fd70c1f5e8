//! All checks of the json_rpc boundary, by topic.

use crate::check::Check;

use super::cases;

mod ambient;
mod batch;
mod framing;
mod limits;
mod model;
mod notifications;
mod process;

/// Every check, in the order in which they run.
pub fn all() -> Vec<Check> {
    let mut checks = framing::checks();
    for file in ["json", "ids", "requests", "methods", "batches"] {
        checks.extend(cases::checks(file));
    }
    checks.extend(batch::checks());
    checks.extend(notifications::checks());
    checks.extend(limits::checks());
    checks.extend(process::checks());
    checks.extend(model::checks());
    checks.extend(ambient::checks());
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
