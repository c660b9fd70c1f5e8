//! Comparison of the payload that a driver saw with its request.

use super::sent_requests::SentRequest;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement};
use peerproof_engine::data::json::{self, DecodeLimits, Decoded, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, SightResult, Transcript};

/// Clauses about every payload.
mod clause {
    pub(crate) const FORM: &str = "PD-FILE-01";
    pub(super) const VALUES: &str = "PD-FILE-02";
    pub(crate) const OWNER_ONLY: &str = "PD-FILE-03";
}

/// Members of a payload, in the order of the contract.
const MEMBERS: [&str; 5] = ["goal_digest", "state_digest", "control_mode", "inputs", "menu"];
/// Members of an entry of the menu.
const ENTRY_MEMBERS: [&str; 4] = ["sid", "aid", "name", "tags"];
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Most characters of a quoted value.
const CHARS_MAX: usize = 160;

/// Reason code, expected value and actual value.
type Fault = (&'static str, String, String);

impl SentRequest {
    /// Judges the payloads that the drivers of this request saw.
    pub(super) fn judge_given(&self, transcript: &Transcript, judgement: &mut Judgement) {
        let given = self.expect.given.as_ref().map(|given| given.clause.0.as_str());
        for event in &transcript.events[self.from..self.to] {
            let EventKind::ActorSaw { seen, .. } = &event.kind else { continue };
            match seen {
                SightResult::NoPayload { path, error } => {
                    let expected = "the last argument is the path of a readable file";
                    let got = format!("{path:?}: {error}");
                    let clause = given.unwrap_or(clause::FORM);
                    judgement.findings.push(Finding::new(clause, "no_payload", expected, got));
                }
                SightResult::Payload { bytes, mode, folder_mode, .. } => {
                    if let Err((clause, (reason, expected, got))) = self.payload(&bytes.0, judgement) {
                        judgement.findings.push(Finding::new(given.unwrap_or(clause), reason, expected, got));
                    }
                    if mode & OTHERS != 0 && folder_mode & OTHERS != 0 {
                        let expected = "a file that only its owner can read";
                        let got = format!("mode {mode:o} in a folder of mode {folder_mode:o}");
                        judgement.findings.push(Finding::new(
                            clause::OWNER_ONLY,
                            "readable_by_others",
                            expected,
                            got,
                        ));
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks that a payload equals the request; records the choice that its inputs show.
    fn payload(&self, bytes: &[u8], judgement: &mut Judgement) -> Result<(), (&'static str, Fault)> {
        let expected = "one strict JSON object in UTF-8";
        let text = || shorten(&String::from_utf8_lossy(bytes), CHARS_MAX).into_owned();
        let Decoded { value, facts } = json::decode(bytes, &DecodeLimits::default()).map_err(|error| {
            (clause::FORM, ("not_json", expected.to_owned(), format!("{error}: {}", text())))
        })?;
        if value.as_object().is_none() {
            return Err((clause::FORM, ("no_object", expected.to_owned(), text())));
        }
        let alternatives = self.expect.given.as_ref().map_or(&[][..], |given| given.inputs.as_slice());
        for name in MEMBERS {
            let is_open = name == "inputs" && !alternatives.is_empty();
            // The contract leaves absent members of the request open.
            let asked = self.request.as_ref().and_then(|request| request.get(name));
            if asked.is_none() && !is_open {
                continue;
            }
            let Some(given) = value.get(name) else {
                return Err((clause::FORM, ("no_member", format!("a member `{name}`"), text())));
            };
            let is_right = match name {
                _ if is_open => {
                    let shown = alternatives.iter().find(|(text, _)| {
                        let read = json::decode(text.as_bytes(), &DecodeLimits::default());
                        read.is_ok_and(|read| {
                            read.value == *given && read.facts.lone_surrogates == facts.lone_surrogates
                        })
                    });
                    // If both of two equal members are passed on, the driver decides which one counts.
                    let decided = shown.filter(|_| !facts.duplicate_keys);
                    self.note_given(decided.map(|(_, value)| value.as_str()), judgement);
                    shown.is_some()
                }
                "menu" => asked.is_none_or(|asked| same_menu(asked, given)),
                _ => asked == Some(given),
            };
            if !is_right {
                let expected = match asked {
                    Some(asked) if !is_open => asked.to_text(),
                    _ => alternatives.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" or "),
                };
                let expected = format!("`{name}` = {expected}");
                return Err((clause::VALUES, ("other_value", expected, given.to_text())));
            }
        }
        Ok(())
    }

    fn note_given(&self, value: Option<&str>, judgement: &mut Judgement) {
        if let (Some(choice), Some(value)) = (&self.expect.choice, value) {
            judgement.choice =
                Some(ChoiceSeen { pinned: false, key: choice.key.clone(), value: value.to_owned() });
        }
    }
}

/// True if two menus have the same entries in the same order. Compares only members that the contract names.
fn same_menu(asked: &Json, given: &Json) -> bool {
    let (Some(asked), Some(given)) = (asked.as_array(), given.as_array()) else { return asked == given };
    let same_entry = |(asked, given): (&Json, &Json)| {
        ENTRY_MEMBERS.iter().all(|name| asked.get(name).is_none_or(|value| given.get(name) == Some(value)))
    };
    asked.len() == given.len() && asked.iter().zip(given).all(same_entry)
}

#[cfg(test)]
mod tests {
    use super::super::super::request::Request;
    use super::super::expect::Expect;
    use super::*;

    /// Reason code of the fault of a payload for the plain request with `inputs`, and the choice that it shows.
    fn judged(expect: Expect, payload: &str) -> (Option<&'static str>, Option<String>) {
        let request = Some(Request::plain().inputs("{\"k\":[1]}").0);
        let (step, canary, at_us, starts, from, to) = (0, false, 0, 0, 0, 0);
        let asked = SentRequest { step, canary, expect, request, at_us, sent: 0, starts, from, to };
        let mut judgement = Judgement::default();
        let fault = asked.payload(payload.as_bytes(), &mut judgement).err().map(|(_, (reason, ..))| reason);
        (fault, judgement.choice.map(|choice| choice.value))
    }

    fn payload() -> Request {
        Request::plain().inputs("{\"k\":[1]}")
    }

    #[test]
    fn a_payload_is_that_of_its_request() {
        let expect = || Expect::taken("C", "<NOOP><END>");
        let reason = |payload: Request| judged(expect(), &payload.text()).0;
        assert_eq!(reason(payload()), None);
        assert_eq!(reason(payload().inputs("{\"k\":[1.0]}").with("more", "x")), None);
        assert_eq!(reason(payload().inputs("{\"k\":[2]}")), Some("other_value"));
        assert_eq!(reason(payload().with("menu", "x")), Some("other_value"));
        assert_eq!(reason(payload().without("state_digest")), Some("no_member"));
        assert_eq!(judged(expect(), "[]").0, Some("no_object"));
        assert_eq!(judged(expect(), &payload().text()[1..]).0, Some("not_json"));
    }

    #[test]
    fn a_menu_keeps_its_order() {
        let mut swapped = payload();
        if let Some(menu) = swapped.0.get_mut("menu").and_then(Json::as_array_mut) {
            menu.swap(0, 1);
        }
        assert_eq!(judged(Expect::taken("C", ""), &swapped.text()).0, Some("other_value"));
    }

    #[test]
    fn open_inputs_show_a_choice() {
        let given = [(r#"{"k":"\ud800"}"#, "echo"), (r#"{"k":"\ufffd"}"#, "replace")];
        let expect = || Expect::taken("C", "").given_inputs("D", &given).choice("k", &[""]);
        let text = |inputs: &str| payload().text().replace("{\"k\":[1]}", inputs);
        assert_eq!(judged(expect(), &text(r#"{"k":"\uD800"}"#)), (None, Some("echo".to_owned())));
        assert_eq!(judged(expect(), &text("{\"k\":\"\u{FFFD}\"}")), (None, Some("replace".to_owned())));
        assert_eq!(judged(expect(), &text(r#"{"k":"?"}"#)), (Some("other_value"), None));
    }
}
