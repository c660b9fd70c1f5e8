//! Jobs: parsing, the behaviour of their program, and distinct contents.

use std::collections::BTreeSet;

use peerproof_engine::contract::program::Program;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

/// Largest job that must be accepted, bytes.
pub const BYTES_MAX: usize = 10 << 20;

/// Nesting that every reader must accept, levels.
pub(crate) const DEPTH_MAX: usize = 64;

/// Nesting that no reader must accept, levels.
pub(crate) const VERY_DEEP: usize = 100_000;

/// A JSON array with this many levels of nesting.
pub(crate) fn arrays(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// Text of a job with one more member, given as JSON: `"name":value`.
pub(crate) fn with_member(job: &str, member: &str) -> String {
    format!("{},{member}}}", job.strip_suffix('}').unwrap_or(job))
}

/// Name of the program that follows the script of a job.
pub(crate) const PROGRAM: &str = "run_queue/job";

/// Output of a driver at the end.
const NOOP: &str = "<NOOP><END>\n";

/// Verdict about a text as a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// A valid job.
    Right(Json),
    /// A job whose `goal_id` holds `|`, which may be refused.
    Barred(Json),
    /// A job with a lone surrogate, read as U+FFFD, which may be refused.
    Halved(Json),
    /// A text that readers may accept or refuse, and may store in several forms.
    Unclear,
    /// Not a job.
    Malformed,
}

impl Job {
    /// Parses a text of any size.
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

    /// The stored form of the job, if the contract fixes it.
    pub fn value(self) -> Option<Json> {
        match self {
            Self::Right(value) | Self::Barred(value) | Self::Halved(value) => Some(value),
            Self::Unclear | Self::Malformed => None,
        }
    }
}

/// Verdict about a file in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub enum JobVerdict {
    /// A job, with the script of its program.
    Job(Vec<ActorStep>),
    /// A malformed file, by this clause.
    Malformed(&'static str),
    /// A file that may be refused, with the choice if there is one.
    Open(Option<&'static str>),
}

/// Judges the bytes of a file in the inbox.
pub fn read(bytes: &[u8]) -> JobVerdict {
    if bytes.len() > BYTES_MAX {
        return JobVerdict::Malformed("QUE-JOB-18");
    }
    match Job::read(bytes) {
        Job::Right(value) => JobVerdict::Job(play(&value)),
        Job::Barred(_) => JobVerdict::Open(Some("goal_id_with_bar")),
        Job::Halved(_) | Job::Unclear => JobVerdict::Open(None),
        Job::Malformed if decode(bytes).is_some() => JobVerdict::Malformed("QUE-JOB-14"),
        Job::Malformed => JobVerdict::Malformed("QUE-JOB-13"),
    }
}

/// True if every worker must accept a file of this name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name.len() > ".json".len() && name.ends_with(b".json") && !name.starts_with(b".") && !name.contains(&b'/')
}

/// Word by which a job, or the payload of a driver, identifies itself.
pub fn token(bytes: &[u8]) -> Option<String> {
    Some(decode(bytes)?.pointer("/inputs/job")?.as_str()?.to_owned())
}

/// Nesting of a JSON text, levels; 0 for invalid JSON.
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

/// True if a program with this script exits with status 0.
pub fn succeeds(play: &[ActorStep]) -> bool {
    !play.iter().any(|step| matches!(step, ActorStep::Exit(1..) | ActorStep::Die(_)))
}

/// Least duration of a script, ms.
pub(crate) fn lasts_ms(play: &[ActorStep]) -> u64 {
    play.iter().map(|step| if let ActorStep::Sleep { ms } = step { *ms } else { 0 }).sum()
}

/// Program of every job: it follows `inputs.play` of its file, and selects nothing.
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

/// A job under construction.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Word that only its content and its name contain.
    pub tag: String,
    /// File name in the inbox, with suffix.
    pub name: Payload,
    /// Script of its program.
    pub play: Vec<ActorStep>,
    /// Further members as JSON texts. They replace usual members of the same name.
    pub members: Vec<(&'static str, String)>,
}

impl Draft {
    /// A plain job.
    pub fn new(number: usize) -> Self {
        let tag = format!("q{number:03}z");
        let name = Payload::text(format!("{tag}.json"));
        Self { tag, name, play: Vec::new(), members: Vec::new() }
    }

    /// Sets the name; `@` stands for the tag.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Payload::text(name.replace('@', &self.tag));
        self
    }

    /// Sets the script of its program.
    #[must_use]
    pub fn plays(self, play: Vec<ActorStep>) -> Self {
        Self { play, ..self }
    }

    /// Sets a member to a JSON text; empty text removes it.
    #[must_use]
    pub fn with(mut self, name: &'static str, text: &str) -> Self {
        self.members.push((name, text.to_owned()));
        self
    }

    /// JSON text of the job.
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

    /// The job padded to this size, bytes.
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
        let JobVerdict::Job(play) = read(fails.text().as_bytes()) else { panic!("{}", fails.text()) };
        assert!(!succeeds(&play) && lasts_ms(&play) == 5);
        assert_eq!(token(fails.text().as_bytes()).as_deref(), Some("q001z"));
        let steps = Player.answer(fails.text().as_bytes());
        assert!(matches!(steps[..], [_, ActorStep::Stdout(_), ActorStep::Exit(3)]), "{steps:?}");
        assert_ne!(Draft::new(2).text(), Draft::new(1).text());
        let padded = Draft::new(3).padded(1_000).expand(&Default::default()).unwrap();
        assert_eq!((padded.len(), read(&padded)), (1_000, JobVerdict::Job(Vec::new())));
    }

    #[test]
    fn what_is_malformed_has_its_clause() {
        let malformed = |draft: Draft| read(draft.text().as_bytes());
        let without = |name, value| malformed(Draft::new(1).with(name, value));
        for (name, value) in [("goal_id", ""), ("goal_id", "\"\""), ("goal_id", "7"), ("inputs", "[]")] {
            assert_eq!(without(name, value), JobVerdict::Malformed("QUE-JOB-14"), "{name} {value}");
        }
        assert_eq!(without("goal_id", "\"a|b\""), JobVerdict::Open(Some("goal_id_with_bar")));
        assert_eq!(read(b"{"), JobVerdict::Malformed("QUE-JOB-13"));
        assert_eq!(without("goal_id", "\"\\ud800\""), JobVerdict::Open(None));
        assert_eq!(read(&vec![b' '; BYTES_MAX + 1]), JobVerdict::Malformed("QUE-JOB-18"));
        assert_eq!(depth(b"[[1]]"), 2);
    }
}
