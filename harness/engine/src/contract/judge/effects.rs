//! Effects outside the conversation: required and forbidden ones.

use std::cell::OnceCell;

use crate::contract::face::{Effect, Face, Need, PlacedExpectation, Sign};
use crate::data::check::Untestable;
use crate::data::finding::{Finding, Judgement, Repair};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::transcript::{EventKind, FoundEntry, Transcript};

/// Evidence of a sign in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Seen,
    /// The harness looked and did not find it.
    Absent,
    /// The harness did not look, or could not tell.
    Unknown,
}

/// Judges the effects of all requests. An undecided effect counts only if the step is about it.
pub(super) fn judge<F: Face>(
    transcript: &Transcript,
    asked: &[PlacedExpectation<F>],
    judgement: &mut Judgement,
) {
    if asked.iter().all(|asked| asked.due.parts.iter().all(|part| part.effects.is_empty())) {
        return;
    }
    let record = EffectRecord::of(transcript);
    for asked in asked {
        for effect in asked.due.parts.iter().flat_map(|part| &part.effects) {
            let aim = asked.aim.as_ref().filter(|aim| aim.clause.0 == effect.clause);
            match record.verdict(effect) {
                EffectVerdict::Fine => {}
                EffectVerdict::Open(why) => {
                    if aim.is_some() {
                        judgement.untestable.get_or_insert(why);
                    }
                }
                // The finding keeps the clause of the effect, whatever the step is about.
                EffectVerdict::Broken(mut finding) => {
                    if let Some(reason) = aim.and_then(|aim| aim.reason.clone()) {
                        finding.reason = reason;
                    }
                    judgement.findings.push(finding.at(asked.step));
                }
            }
        }
    }
}

/// True if a transcript shows a sign, false if it shows its absence; `None` if it does not tell.
pub fn is_seen(transcript: &Transcript, sign: &Sign) -> Option<bool> {
    match EffectRecord::of(transcript).evidence(sign) {
        Evidence::Seen => Some(true),
        Evidence::Absent => Some(false),
        Evidence::Unknown => None,
    }
}

enum EffectVerdict {
    Fine,
    Open(Untestable),
    Broken(Finding),
}

/// Evidence of effects in a transcript.
struct EffectRecord<'a> {
    transcript: &'a Transcript,
    /// Events outside the conversations.
    beside: Vec<&'a EventKind>,
    /// Output of each session, computed on demand.
    told: OnceCell<Vec<Vec<u8>>>,
}

impl<'a> EffectRecord<'a> {
    fn of(transcript: &'a Transcript) -> Self {
        let is_beside = |kind: &&EventKind| {
            matches!(
                kind,
                EventKind::Looked { .. }
                    | EventKind::ListenerHit { .. }
                    | EventKind::ActorStarted { .. }
                    | EventKind::ActorReceived { .. }
            )
        };
        let beside = transcript.events.iter().map(|event| &event.kind).filter(is_beside).collect();
        Self { transcript, beside, told: OnceCell::new() }
    }

    fn told(&self) -> &[Vec<u8>] {
        let sessions = 0..self.transcript.plan.sessions.len();
        self.told.get_or_init(|| sessions.map(|session| self.transcript.stdout(session)).collect())
    }

    fn verdict(&self, effect: &Effect) -> EffectVerdict {
        let sign = phrase(&effect.sign);
        let finding = |expected: String, got: &str, repair| {
            EffectVerdict::Broken(
                Finding::new(effect.clause, effect.reason, expected, got).repaired_by(repair),
            )
        };
        match (effect.need, self.evidence(&effect.sign)) {
            (_, Evidence::Unknown) => {
                let detail = format!("the transcript does not show this: {sign}");
                EffectVerdict::Open(Untestable::new("not_looked", detail))
            }
            (Need::Must, Evidence::Seen) => EffectVerdict::Fine,
            (Need::Must, Evidence::Absent) => finding(sign, "not seen", Repair::Do),
            (Need::MustNot, Evidence::Seen) => finding(format!("never: {sign}"), "seen", Repair::Undo),
            (Need::MustNot, Evidence::Absent) => {
                let is_open = effect.control.as_ref().map(|control| self.evidence(control) == Evidence::Seen);
                match is_open.unwrap_or(matches!(effect.sign, Sign::Told { .. })) {
                    true => EffectVerdict::Fine,
                    false => {
                        let sign = phrase(effect.control.as_ref().unwrap_or(&effect.sign));
                        let detail = format!("this was not seen where it is allowed either: {sign}");
                        EffectVerdict::Open(Untestable::new("no_control", detail))
                    }
                }
            }
        }
    }

    fn evidence(&self, sign: &Sign) -> Evidence {
        let is_there =
            |name: &str| self.transcript.plan.fixtures.iter().any(|fixture| fixture.name() == name);
        match sign {
            Sign::Found { label, holds } => self.found(label, holds.as_deref()),
            Sign::Gone { label, holds } => match self.found(label, holds.as_deref()) {
                Evidence::Seen => Evidence::Absent,
                Evidence::Absent => Evidence::Seen,
                Evidence::Unknown => Evidence::Unknown,
            },
            Sign::Mode { label, mode } => {
                let looks = self.beside.iter().filter_map(|kind| match kind {
                    EventKind::Looked { label: at, found, .. } if at == label => Some(found),
                    _ => None,
                });
                let modes: Vec<u32> = looks.flatten().map(|one| one.mode).collect();
                told_apart(modes.contains(mode), !modes.is_empty())
            }
            Sign::Hit { listener, holds } => {
                let is_hit = self.beside.iter().any(|kind| match kind {
                    EventKind::ListenerHit { listener: at, head, body } if at == listener => holds
                        .as_ref()
                        .is_none_or(|holds| holds_bytes(&head.0, holds) || holds_bytes(&body.0, holds)),
                    _ => false,
                });
                told_apart(is_hit, is_there(listener))
            }
            Sign::Starts { actor, holds, times } => match self.starts(actor, holds) {
                Some(count) => told_apart(times.contains(&count), is_there(actor)),
                None => Evidence::Unknown,
            },
            Sign::Told { holds } => told_apart(self.told().iter().any(|out| says(out, holds)), true),
        }
    }

    /// Evidence that a look with this label found a file with these bytes.
    fn found(&self, label: &str, holds: Option<&[u8]>) -> Evidence {
        let looks = self.beside.iter().filter_map(|kind| match kind {
            EventKind::Looked { label: at, found, cut, .. } if at == label => Some((found, *cut)),
            _ => None,
        });
        let (mut was_looked, mut is_certain) = (false, true);
        for (found, cut) in looks {
            (was_looked, is_certain) = (true, is_certain && !cut);
            for one in found {
                let Some(holds) = holds else { return Evidence::Seen };
                match &one.bytes {
                    Some(bytes) if holds_bytes(&bytes.0, holds) => return Evidence::Seen,
                    bytes => is_certain &= is_whole(one, bytes.as_ref().map_or(0, |bytes| bytes.0.len())),
                }
            }
        }
        told_apart(false, was_looked && is_certain)
    }

    /// Number of starts of an actor with these bytes in input or arguments. `None` if starts overlapped, so that their
    /// inputs cannot be told apart.
    fn starts(&self, actor: &str, holds: &[u8]) -> Option<usize> {
        let (mut count, mut given): (usize, Option<Vec<u8>>) = (0, None);
        for kind in &self.beside {
            match kind {
                EventKind::ActorStarted { actor: name, argv, .. } if name == actor => {
                    count += usize::from(given.take().is_some_and(|given| holds_bytes(&given, holds)));
                    match holds.is_empty() || argv.iter().any(|arg| holds_bytes(arg.as_bytes(), holds)) {
                        true => count += 1,
                        false => given = Some(Vec::new()),
                    }
                }
                EventKind::ActorReceived { actor: name, bytes, .. } if name == actor => {
                    if let Some(given) = &mut given {
                        given.extend_from_slice(&bytes.0);
                    }
                }
                _ => {}
            }
        }
        count += usize::from(given.is_some_and(|given| holds_bytes(&given, holds)));
        (holds.is_empty() || !self.overlap(actor)).then_some(count)
    }

    /// True if an actor was started while an earlier start was running.
    fn overlap(&self, actor: &str) -> bool {
        let mut under_way = 0_u32;
        self.transcript.events.iter().any(|event| {
            match &event.kind {
                EventKind::ActorStarted { actor: name, .. } if name == actor => under_way += 1,
                EventKind::ActorEnded { actor: name, .. } if name == actor => {
                    under_way = under_way.saturating_sub(1);
                }
                _ => {}
            }
            under_way > 1
        })
    }
}

/// True if an output contains the bytes, plainly or escaped in a string of its JSON.
fn says(out: &[u8], holds: &[u8]) -> bool {
    if holds_bytes(out, holds) {
        return true;
    }
    let Ok(holds) = std::str::from_utf8(holds) else { return false };
    let is_told = |value: &Json| match value {
        Json::String(text) => text.contains(holds),
        Json::Object(members) => members.iter().any(|(name, _)| name.contains(holds)),
        _ => false,
    };
    let lines = out.split(|byte| *byte == b'\n');
    let texts = std::iter::once(out).chain(lines).filter(|text| text.contains(&b'\\'));
    let mut decoded = texts.filter_map(|text| json::decode(json::trim(text), &DecodeLimits::default()).ok());
    decoded.any(|decoded| decoded.value.has(is_told))
}

fn told_apart(is_seen: bool, was_looked: bool) -> Evidence {
    match (is_seen, was_looked) {
        (true, _) => Evidence::Seen,
        (false, true) => Evidence::Absent,
        (false, false) => Evidence::Unknown,
    }
}

/// True if `kept` bytes are the whole file. Anything but a file holds no bytes.
fn is_whole(found: &FoundEntry, kept: usize) -> bool {
    found.kind != crate::data::transcript::FoundKind::File || found.total_bytes == kept as u64
}

fn holds_bytes(bytes: &[u8], holds: &[u8]) -> bool {
    memchr::memmem::find(bytes, holds).is_some()
}

fn phrase(sign: &Sign) -> String {
    match sign {
        Sign::Found { label, holds: None } => format!("a file or folder exists at {label:?}"),
        Sign::Found { label, holds: Some(_) } => format!("the file at {label:?} has the given content"),
        Sign::Gone { label, holds: None } => format!("nothing exists at {label:?} any more"),
        Sign::Gone { label, holds: Some(_) } => format!("the file at {label:?} is gone"),
        Sign::Mode { label, mode } => format!("the file at {label:?} has the mode {mode:o}"),
        Sign::Hit { listener, .. } => format!("a connection to the listener {listener}"),
        Sign::Starts { actor, times, .. } if times.start() == times.end() => {
            format!("{actor} is started {} times", times.start())
        }
        Sign::Starts { actor, times, .. } => {
            format!("{actor} is started {} to {} times", times.start(), times.end())
        }
        Sign::Told { .. } => "the peer reveals a value that it must not know".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_told_however_it_is_escaped() {
        for out in [
            "{\"a\":\"x secret y\"}",
            "{\"a\":[\"\\u0073ecret\"]}\n",
            "{\n  \"\\u0073\\u0065cret\": 1\n}",
            "{\"a\":1}\n{\"a\":\"secre\\u0074\"}\n",
            "no JSON: secret",
        ] {
            assert!(says(out.as_bytes(), b"secret"), "{out}");
        }
        for out in ["", "{\"a\":\"\\u0073ecre\"}", "{\"\\u0073e\":\"cret\"}", "no JSON: \\u0073ecret"] {
            assert!(!says(out.as_bytes(), b"secret"), "{out}");
        }
    }
}
