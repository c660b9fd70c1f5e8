//! Measures the patch of each role without the copied text, before the checks. Checks then create outputs of
//! exactly the limit.

use serde_json::Value;

use super::super::DRIVER;
use super::super::block::{self, Form};
use super::expect::{Expect, PickForm};
use super::talk::Talk;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::Transcript;

/// Member of a role: bytes of the output around the text of its patch.
const AROUND: &str = "bytes_around_patch";
/// Member of a role: bytes of the patch's text around the copied text.
const WITHIN: &str = "bytes_around_copy";

/// Length of the copied text in the probe, bytes.
const COPIED_BYTES: usize = 6_000;

/// Roles whose patches are measured.
const ROLES: [&str; 2] = ["pick_inp", "pick_inp64"];

fn copied() -> String {
    "p".repeat(COPIED_BYTES)
}

/// A decision for each measured role with a value to copy.
pub(crate) fn plan(facts: &Facts) -> Option<Plan> {
    if !facts.commands.contains(DRIVER) {
        return None;
    }
    let mut talk = Talk::new(facts);
    for role in asked(facts) {
        if let Some(text) = talk.role_with_leaf(role, &format!("\"{}\"", copied())) {
            talk.decide_on(Payload::text(text), Expect::block("PD-OUT-07"));
        }
    }
    talk.plan().ok().filter(|plan| !plan.sessions.is_empty())
}

fn asked(facts: &Facts) -> impl Iterator<Item = &'static str> {
    ROLES.into_iter().filter(|role| Talk::new(facts).role_with_leaf(role, "0").is_some())
}

/// Records the measurements in the facts.
pub(crate) fn complete(facts: &mut Facts, transcript: &Transcript) {
    let roles: Vec<_> = asked(facts).collect();
    for (session, role) in roles.into_iter().enumerate() {
        let Some((around, within)) = measure(&transcript.stdout(session), PickForm::of_role(role).form())
        else {
            continue;
        };
        if let Some(Value::Object(members)) = facts.roles.get_mut(role) {
            members.insert(AROUND.to_owned(), around.into());
            members.insert(WITHIN.to_owned(), within.into());
        }
    }
}

/// Bytes around the text of the patch, and bytes of that text around the copied text. `None` unless it was copied
/// exactly once.
fn measure(out: &[u8], form: Form) -> Option<(usize, usize)> {
    let block = block::parse(out).ok().filter(|block| block.form == form)?;
    let text = block.patch?.to_text();
    let is_copied_once = text.matches(&copied()).count() == 1 && text.matches('p').count() < 2 * COPIED_BYTES;
    let tag = if form == Form::PickInp { "INP>" } else { "INP64>" };
    let out = std::str::from_utf8(out).ok().filter(|_| is_copied_once)?;
    let (before, rest) = out.split_once(&format!("<{tag}"))?;
    let (written, behind) = rest.rsplit_once(&format!("</{tag}"))?;
    let around = before.len() + behind.len() + 2 * tag.len() + "</".len() + "<".len();
    let bytes = match form {
        Form::PickInp => written.len(),
        _ => written.len() / 4 * 3 - written.bytes().filter(|byte| *byte == b'=').count(),
    };
    Some((around, bytes.checked_sub(COPIED_BYTES)?))
}

/// Length of copied text that fills an output up to `bytes`. `None` if not measured.
pub(crate) fn copy_for(facts: &Facts, role: &str, bytes: usize) -> Option<usize> {
    let role_facts = facts.roles.get(role)?;
    let number = |name: &str| usize::try_from(role_facts.get(name)?.as_u64()?).ok();
    let text = bytes.checked_sub(number(AROUND)?)?;
    let patch = match PickForm::of_role(role) {
        PickForm::Inp64 => text / 4 * 3,
        _ => text,
    };
    patch.checked_sub(number(WITHIN)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::full_facts;
    use super::*;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn measures_what_is_not_copied() {
        let copied = copied();
        let plain = format!("<PICK><SID0007><INP> {{\"key\":\"{copied}\"}}</INP><END>\n");
        let (around, within) = measure(plain.as_bytes(), Form::PickInp).unwrap();
        assert_eq!(around + within + COPIED_BYTES, plain.len());
        assert_eq!(within, " {\"key\":\"\"}".len());
        for other in [
            format!("<PICK><SID0007><INP>{{\"a\":\"{copied}{copied}\"}}</INP><END>"),
            "<NOOP><END>".to_owned(),
        ] {
            assert_eq!(measure(other.as_bytes(), Form::PickInp), None);
        }
    }

    #[test]
    fn an_output_of_the_limit_is_found_to_the_byte() {
        let mut facts = full_facts::facts(Side::Provider);
        for (role, around, within) in [("pick_inp", 34, 8), ("pick_inp64", 38, 8)] {
            let Some(Value::Object(members)) = facts.roles.get_mut(role) else { panic!("{role}") };
            members.insert(AROUND.to_owned(), around.into());
            members.insert(WITHIN.to_owned(), within.into());
        }
        assert_eq!(copy_for(&facts, "pick_inp", 65_536), Some(65_536 - 34 - 8));
        let copied = copy_for(&facts, "pick_inp64", 65_536).unwrap();
        let total = |copied: usize| 38 + (copied + 8).div_ceil(3) * 4;
        assert!(total(copied) <= 65_536 && total(copied + 1) > 65_536, "{}", total(copied));
        assert_eq!(copy_for(&facts, "pick", 65_536), None);
    }
}
