//! Discovery of the roles and features of a peer.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::data::blame::Misconfigured;
use crate::data::facts::Facts;
use crate::data::plan::Plan;
use crate::data::transcript::Transcript;

/// Discovery of the roles and features of a peer, before its checks and for `doctor`. A boundary whose peers have none
/// implements it without methods.
pub trait Discovery {
    /// Conversations that show which roles and features a peer has, given the configured `facts`.
    fn probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Second round of probes, made after [`Discovery::complete`] has read the first.
    fn further_probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Completes `facts` from the transcripts of the probes. `features_given` is false if the configuration lacks a
    /// `[features]` table; features that show then count as claimed.
    fn complete(&self, _facts: &mut Facts, _features_given: bool, _probes: &[Transcript]) {}

    /// Adds facts that a recorded conversation shows.
    fn complete_recorded(&self, _facts: &mut Facts, _transcript: &Transcript) {}

    /// Lines for people about a peer: results of the probes and their consequences.
    fn seen(&self, _facts: &Facts) -> Vec<String> {
        Vec::new()
    }

    /// Lines about the peer's tools for a generated configuration.
    fn inventory(&self, facts: &Facts) -> Vec<String> {
        self.seen(facts)
    }

    /// Tools that may play roles and may be tried, the likeliest first.
    fn candidates(&self, _facts: &Facts) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Conversations that show whether the tool configured for a role plays it, each with the role. They give no
    /// findings. `None` if the probes already try configured tools.
    fn trials(&self, _facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        None
    }

    /// Description of what the peer did in a trial instead of playing `role`; `None` if it plays it.
    fn role_fault(&self, _facts: &Facts, _role: &str, _trial: &Transcript) -> Option<String> {
        None
    }

    /// Features that `facts` do not claim but the probes show, each with the advice for the user.
    fn undeclared(&self, _facts: &Facts, _probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Reason why the peer cannot be checked as configured, such as a revision that it does not speak.
    fn unavailable(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// Clauses that a library breaks in every peer that uses it, each with the name of the library. Only libraries that
    /// this peer's answers reveal.
    fn libraries(&self, _facts: &Facts) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Checks the value of a key that [`ConfigKey::setting`](super::ConfigKey::setting) made.
    ///
    /// # Errors
    /// Describes in one sentence why its form is wrong.
    fn check_setting(&self, _name: &str, _value: &Value) -> Result<(), Misconfigured> {
        Ok(())
    }
}
