//! Trial calls of each tool before the checks.

use peerproof_engine::contract::face::SessionTrace;
use peerproof_engine::contract::judge as engine;
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::Transcript;

use super::face;
use super::kit::{self, COMPILER};
use super::talk::Talk;

/// One plain call of each tool, which shows whether it plays its role.
pub(crate) fn trial(facts: &Facts) -> Plan {
    let mut talk = Talk::new(facts);
    let path = talk.kit.sample_file();
    let text = talk.kit.sample(&"a".repeat(kit::LETTERS));
    talk.write("QUE-GEN-04", &path, &text);
    if facts.claims(COMPILER) {
        talk.compile("QUE-GEN-01", &path, "made").load("QUE-GEN-01", "made");
    }
    talk.plan()
}

/// Outcome of the trial calls, by role. An answer counts only if the calls before it succeeded.
pub(crate) fn tried(trial: &Transcript) -> Vec<(&'static str, RoleTrial)> {
    let written =
        || engine::judge(&face::Genesis, trial).findings.into_iter().find(|it| it.clause.0 == "QUE-GEN-04");
    engine::listen(&face::Genesis, trial, |trace| {
        let mut answers = trace.sessions.iter().flat_map(SessionTrace::answers);
        let mut is_reached = true;
        let tell = |role| {
            let reply = answers.next().map(|(.., answer)| answer.message);
            let is_done = reply.and_then(face::is_ok);
            let came = match (is_reached, reply) {
                (false, _) => RoleTrial::Untold("the fixture of the trial was not created".to_owned()),
                (true, None) => RoleTrial::Untold("its call gets no readable reply".to_owned()),
                (true, Some(reply)) if is_done == Some(false) => crate::refusal::refused(&reply.to_text()),
                (true, Some(_)) => match written().filter(|_| role == kit::ROLES[0]) {
                    Some(finding) => RoleTrial::Untold(finding.got),
                    None => RoleTrial::Plays,
                },
            };
            is_reached &= came == RoleTrial::Plays;
            (role, came)
        };
        let asked = kit::ROLES.into_iter().take(trace.asked.len());
        asked.map(tell).collect()
    })
}
