//! Properties of the reference worker and of the model for any bytes. Fuzz targets and plain tests call the same functions; each
//! panics where a property does not hold.

use peerproof_reference::run_queue::{Careful, Config, Ways as _};

use peerproof_engine::json::{self, DecodeLimits};
use peerproof_run_queue::job::{self, What};

/// What the reference takes for a job the model takes for none that is malformed. The reference refuses more: members that it
/// names, of wrong types.
///
/// # Panics
/// Where that does not hold.
pub fn job(data: &[u8]) {
    let is_taken = Careful.read(data, &Config::default()).is_ok();
    let is_open = json::decode(data, &DecodeLimits::default())
        .is_ok_and(|it| it.facts.duplicate_keys || it.facts.lone_surrogates || it.facts.depth > 64);
    if is_taken && !is_open {
        let what = job::read(data);
        assert!(!matches!(what, What::Malformed(_)), "{what:?}: {}", String::from_utf8_lossy(data));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn stored_jobs() {
        crate::stored::replay("run_queue", super::job);
    }

    #[test]
    fn what_the_reference_takes_is_not_malformed() {
        for text in
            ["", "{}", "[]", "{\"goal_id\":\"g\"}", "{\"goal_id\":\"\"}", "{\"goal_id\":\"g\",\"inputs\":1}"]
        {
            super::job(text.as_bytes());
        }
    }
}
