//! Jobs: what one is, what its program does, and contents that differ.

use std::collections::BTreeSet;

use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::ActorStep;
use peerproof_engine::program::Program;

/// Most bytes of a job.
pub const BYTES_MAX: usize = 10 << 20;

/// Levels of nesting that always work.
pub const DEPTH_MAX: usize = 64;

/// Levels of nesting that no reader has to take.
pub const VERY_DEEP: usize = 100_000;

/// A JSON array with arrays in one another, so many levels.
pub fn arrays(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// The text of a job with a member more, which is written as it stands in JSON: `"name":value`.
pub fn with_member(job: &str, member: &str) -> String {
    format!("{},{member}}}", job.strip_suffix('}').unwrap_or(job))
}

/// The name of the program that does what a job says.
pub const PROGRAM: &str = "run_queue/job";

/// What a driver says at the end.
const NOOP: &str = "<NOOP><END>\n";

/// What a text is as a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// A job.
    Right(Json),
    /// A job whose `goal_id` holds `|`, which may be refused.
    Barred(Json),
    /// A job with half of a surrogate pair, read as U+FFFD, which may be refused.
    Halved(Json),
    /// What readers may take or refuse, and may store in several ways.
    Unclear,
    /// None.
    Malformed,
}

impl Job {
    /// Reads one, whatever its size.
    pub fn read(text: &[u8]) -> Self {
        if text.starts_with("\u{feff}".as_bytes()) {
            return Self::Unclear;
        }
        let Ok(decoded) = json::decode(text, &DecodeLimits::default()) else { return Self::Malformed };
        let (value, facts) = (decoded.value, decoded.facts);
        let goal = value.get("goal_id").and_then(Json::as_str).unwrap_or_default();
        let has_inputs = value.get("inputs").is_none_or(|inputs| inputs.as_object().is_some());
        let is_open = facts.duplicate_keys || facts.depth > DEPTH_MAX;
        if is_open || value.has_number(|number| number.is_big() || number.is_beyond_double()) {
            return Self::Unclear;
        }
        if value.as_object().is_none() || goal.is_empty() || !has_inputs {
            return Self::Malformed;
        }
        let is = |name: &str, is_right: fn(&Json) -> bool| value.get(name).is_none_or(is_right);
        let is_text = |value: &Json| value.as_str().is_some();
        if !is("request_id", is_text)
            || !is("control_mode", is_text)
            || !is("tools", |tools| tools.as_array().is_some_and(<[Json]>::is_empty))
            || !is("max_steps", |most| most.as_u64().is_some_and(|most| most > 0))
        {
            return Self::Unclear;
        }
        match () {
            () if facts.lone_surrogates => Self::Halved(value),
            () if goal.contains('|') => Self::Barred(value),
            () => Self::Right(value),
        }
    }

    /// What is stored of it, where the contract says so.
    pub fn value(self) -> Option<Json> {
        match self {
            Self::Right(value) | Self::Barred(value) | Self::Halved(value) => Some(value),
            Self::Unclear | Self::Malformed => None,
        }
    }
}

/// What the bytes of a file in the inbox are.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A job, with what its program does.
    Job(Vec<ActorStep>),
    /// A malformed one, by this clause.
    Malformed(&'static str),
    /// One that may be refused, by this choice where there is one.
    Open(Option<&'static str>),
}

/// Reads the bytes of a file in the inbox.
pub fn read(bytes: &[u8]) -> What {
    if bytes.len() > BYTES_MAX {
        return What::Malformed("QUE-JOB-18");
    }
    match Job::read(bytes) {
        Job::Right(value) => What::Job(play(&value)),
        Job::Barred(_) => What::Open(Some("goal_id_with_bar")),
        Job::Halved(_) | Job::Unclear => What::Open(None),
        Job::Malformed if decode(bytes).is_some() => What::Malformed("QUE-JOB-14"),
        Job::Malformed => What::Malformed("QUE-JOB-13"),
    }
}

/// Whether every worker takes a file of this name.
pub fn is_name(name: &[u8]) -> bool {
    name.len() > ".json".len() && name.ends_with(b".json") && !name.starts_with(b".") && !name.contains(&b'/')
}

/// The word by which a job, or the payload of a driver, names itself.
pub fn token(bytes: &[u8]) -> Option<String> {
    Some(decode(bytes)?.pointer("/inputs/job")?.as_str()?.to_owned())
}

/// Levels of nesting.
pub fn depth(bytes: &[u8]) -> usize {
    json::decode(bytes, &DecodeLimits::default()).map_or(0, |decoded| decoded.facts.depth)
}

fn decode(bytes: &[u8]) -> Option<Json> {
    json::decode(bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

fn play(value: &Json) -> Vec<ActorStep> {
    let told = value.pointer("/inputs/play").map(Json::to_text).unwrap_or_default();
    serde_json::from_str(&told).unwrap_or_default()
}

/// Whether a program that plays this ends with status 0.
pub fn succeeds(play: &[ActorStep]) -> bool {
    !play.iter().any(|step| matches!(step, ActorStep::Exit(1..) | ActorStep::Die(_)))
}

/// How long it takes at least, milliseconds.
pub fn lasts_ms(play: &[ActorStep]) -> u64 {
    play.iter().map(|step| if let ActorStep::Sleep { ms } = step { *ms } else { 0 }).sum()
}

/// The program of every job: it does what `inputs.play` of its file says, and picks nothing.
pub struct Player;

impl Program for Player {
    fn answer(&mut self, request: &[u8]) -> Vec<ActorStep> {
        let mut steps = decode(request).map(|value| play(&value)).unwrap_or_default();
        let is_end = |step: &ActorStep| matches!(step, ActorStep::Exit(_) | ActorStep::Die(_));
        let at = steps.iter().position(is_end).unwrap_or(steps.len());
        steps.insert(at, ActorStep::Stdout(Payload::text(NOOP)));
        steps
    }
}

/// A job that is being made.
#[derive(Debug, Clone)]
pub struct Draft {
    /// A word that its content and its name hold, and no other.
    pub tag: String,
    /// Its name in the inbox, with the suffix.
    pub name: Payload,
    /// What its program does.
    pub play: Vec<ActorStep>,
    /// Members beside the usual ones, as JSON texts; in the place of those that they name.
    pub members: Vec<(&'static str, String)>,
}

impl Draft {
    /// A plain one.
    pub fn new(number: usize) -> Self {
        let tag = format!("q{number:03}z");
        let name = Payload::text(format!("{tag}.json"));
        Self { tag, name, play: Vec::new(), members: Vec::new() }
    }

    /// Another name, in which its tag stands for `@`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Payload::text(name.replace('@', &self.tag));
        self
    }

    /// What its program does.
    #[must_use]
    pub fn plays(self, play: Vec<ActorStep>) -> Self {
        Self { play, ..self }
    }

    /// A member, as JSON text; none where that is empty.
    #[must_use]
    pub fn with(mut self, name: &'static str, text: &str) -> Self {
        self.members.push((name, text.to_owned()));
        self
    }

    /// Its text.
    pub fn text(&self) -> String {
        let play = serde_json::to_string(&self.play).unwrap_or_default();
        let tag = &self.tag;
        let mut members = vec![
            ("goal_id", format!("\"goal-{tag}\"")),
            ("request_id", format!("\"request-{tag}\"")),
            ("control_mode", "\"POLICY_ONLY\"".to_owned()),
            ("inputs", format!("{{\"job\":\"{tag}\",\"play\":{play}}}")),
        ];
        let named: BTreeSet<&str> = self.members.iter().map(|(name, _)| *name).collect();
        members.retain(|(name, _)| !named.contains(name));
        members.extend(self.members.iter().filter(|(_, text)| !text.is_empty()).cloned());
        let members: Vec<String> = members.iter().map(|(name, text)| format!("\"{name}\":{text}")).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Its text, made so many bytes long.
    pub fn padded(&self, bytes: usize) -> Payload {
        let text = self.text();
        let head = "{\"pad\":\"";
        let rest = format!("\",{}", &text[1..]);
        let pad = bytes.saturating_sub(head.len() + rest.len());
        Payload::text(head).repeat("x", pad as u64).then(Payload::text(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_jobs_that_differ_and_play_what_they_say() {
        let fails = Draft::new(1).plays(vec![ActorStep::Sleep { ms: 5 }, ActorStep::Exit(3)]);
        let What::Job(play) = read(fails.text().as_bytes()) else { panic!("{}", fails.text()) };
        assert!(!succeeds(&play) && lasts_ms(&play) == 5);
        assert_eq!(token(fails.text().as_bytes()).as_deref(), Some("q001z"));
        let steps = Player.answer(fails.text().as_bytes());
        assert!(matches!(steps[..], [_, ActorStep::Stdout(_), ActorStep::Exit(3)]), "{steps:?}");
        assert_ne!(Draft::new(2).text(), Draft::new(1).text());
        let padded = Draft::new(3).padded(1_000).expand(&Default::default()).unwrap();
        assert_eq!((padded.len(), read(&padded)), (1_000, What::Job(Vec::new())));
    }

    #[test]
    fn what_is_malformed_has_its_clause() {
        let malformed = |draft: Draft| read(draft.text().as_bytes());
        let without = |name, value| malformed(Draft::new(1).with(name, value));
        for (name, value) in [("goal_id", ""), ("goal_id", "\"\""), ("goal_id", "7"), ("inputs", "[]")] {
            assert_eq!(without(name, value), What::Malformed("QUE-JOB-14"), "{name} {value}");
        }
        assert_eq!(without("goal_id", "\"a|b\""), What::Open(Some("goal_id_with_bar")));
        assert_eq!(read(b"{"), What::Malformed("QUE-JOB-13"));
        assert_eq!(without("goal_id", "\"\\ud800\""), What::Open(None));
        assert_eq!(read(&vec![b' '; BYTES_MAX + 1]), What::Malformed("QUE-JOB-18"));
        assert_eq!(depth(b"[[1]]"), 2);
    }
}
