//! Effects outside the conversation: what must have been seen, and what must not.

use crate::face::{Asked, Effect, Face, Need, Sign};
use crate::finding::{Finding, Judgement, Repair};
use crate::transcript::{Found, Kind, Transcript};

use super::answers::filed;

/// What a transcript says of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Seen,
    /// It was looked for.
    Absent,
    /// Nobody looked.
    Unknown,
}

/// Judges the effects of all that was asked.
pub(super) fn judge<F: Face>(transcript: &Transcript, asked: &[Asked<F>], judgement: &mut Judgement) {
    for asked in asked {
        for effect in asked.due.parts.iter().flat_map(|part| &part.effects) {
            match verdict(transcript, effect) {
                Verdict::Fine => {}
                Verdict::Open(why) => judgement.untestable = judgement.untestable.take().or(Some(why)),
                Verdict::Broken(finding) => judgement.findings.push(filed(asked, finding)),
            }
        }
    }
}

enum Verdict {
    Fine,
    Open(String),
    Broken(Finding),
}

fn verdict(transcript: &Transcript, effect: &Effect) -> Verdict {
    let sign = phrase(&effect.sign);
    let finding = |expected: String, got: &str, repair| {
        Verdict::Broken(Finding::new(effect.clause, effect.reason, expected, got).repaired_by(repair))
    };
    match (effect.need, evidence(transcript, &effect.sign)) {
        (_, Evidence::Unknown) => Verdict::Open(format!("not_looked: nobody looked whether {sign}")),
        (Need::Must, Evidence::Seen) => Verdict::Fine,
        (Need::Must, Evidence::Absent) => finding(sign, "it was looked for and not seen", Repair::Do),
        (Need::MustNot, Evidence::Seen) => finding(format!("never: {sign}"), "it was seen", Repair::Undo),
        (Need::MustNot, Evidence::Absent) => match &effect.control {
            Some(control) if evidence(transcript, control) != Evidence::Seen => Verdict::Open(format!(
                "no_control: where it is allowed, it was not seen either that {}",
                phrase(control)
            )),
            _ => Verdict::Fine,
        },
    }
}

fn evidence(transcript: &Transcript, sign: &Sign) -> Evidence {
    let kinds = || transcript.events.iter().map(|event| &event.kind);
    let seen = |is_seen: bool, was_looked: bool| match (is_seen, was_looked) {
        (true, _) => Evidence::Seen,
        (false, true) => Evidence::Absent,
        (false, false) => Evidence::Unknown,
    };
    let has = |fixture: &str| transcript.plan.fixtures.iter().any(|it| it.name() == fixture);
    match sign {
        Sign::Found { label, holds } => {
            let look = kinds().find_map(|kind| match kind {
                Kind::Looked { label: at, found, cut, .. } if at == label => Some((found, *cut)),
                _ => None,
            });
            match look {
                None => Evidence::Unknown,
                Some((found, cut)) => {
                    let holding = |found: &Found| {
                        holds.as_ref().is_none_or(|holds| {
                            found.bytes.as_ref().is_some_and(|bytes| holds_bytes(&bytes.0, holds))
                        })
                    };
                    seen(found.iter().any(holding), !cut)
                }
            }
        }
        Sign::Hit { listener, holds } => {
            let is_hit = kinds().any(|kind| match kind {
                Kind::ListenerHit { listener: at, head, body } if at == listener => holds
                    .as_ref()
                    .is_none_or(|holds| holds_bytes(&head.0, holds) || holds_bytes(&body.0, holds)),
                _ => false,
            });
            seen(is_hit, has(listener))
        }
        Sign::Starts { actor, holds, times } => {
            let count = starts(transcript, actor, holds);
            seen(times.contains(&count), has(actor))
        }
        Sign::Alive { label } => {
            let is_alive =
                kinds().any(|kind| matches!(kind, Kind::ActorAlive { label: at, .. } if at == label));
            let was_probed = transcript.plan.steps.iter().any(
                |step| matches!(&step.act, crate::plan::Act::ProbeActor { label: at, .. } if at == label),
            );
            seen(is_alive, was_probed)
        }
        Sign::Told { holds } => {
            let sessions = 0..transcript.plan.sessions.len();
            let is_told = sessions.into_iter().any(|session| holds_bytes(&transcript.stdout(session), holds));
            seen(is_told, true)
        }
    }
}

/// How often an actor was started with input or arguments that hold these bytes.
fn starts(transcript: &Transcript, actor: &str, holds: &[u8]) -> usize {
    let mut counts = 0;
    // What an actor was given follows its start.
    let mut open = false;
    for event in &transcript.events {
        match &event.kind {
            Kind::ActorStarted { actor: name, argv, .. } if name == actor => {
                let is_its = holds.is_empty() || argv.iter().any(|arg| holds_bytes(arg.as_bytes(), holds));
                counts += usize::from(is_its);
                open = !is_its;
            }
            Kind::ActorReceived { actor: name, bytes } if name == actor && open => {
                if holds_bytes(&bytes.0, holds) {
                    counts += 1;
                    open = false;
                }
            }
            _ => {}
        }
    }
    counts
}

fn holds_bytes(bytes: &[u8], holds: &[u8]) -> bool {
    memchr::memmem::find(bytes, holds).is_some()
}

fn phrase(sign: &Sign) -> String {
    match sign {
        Sign::Found { label, holds: None } => format!("there is something at {label}"),
        Sign::Found { label, holds: Some(_) } => format!("what is at {label} holds what it must not lose"),
        Sign::Hit { listener, .. } => format!("the listener {listener} is contacted"),
        Sign::Starts { actor, times, .. } if times.start() == times.end() => {
            format!("{actor} is started {} times", times.start())
        }
        Sign::Starts { actor, times, .. } => {
            format!("{actor} is started {} to {} times", times.start(), times.end())
        }
        Sign::Alive { label } => format!("a process lives at {label}"),
        Sign::Told { .. } => "the peer tells what it must not know".to_owned(),
    }
}
