//! Checks of replayers: rows of the files `corpora/run_log/cases/replayer-*.toml`.
//!
//! A step is a run whose log is given to a replayer: first as it is, then with an edit of one line. Each edited
//! line has a process of its own. The required verdict follows from the bytes of the log.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, PathKind, Plan};
use peerproof_engine::data::rng::Rng;

use super::generate;
use super::model::{self, LINE_BYTES_MAX, NESTING_MAX};
use super::talk::{self, GivenLog, Maker, Pick, Talk, text};
use crate::{REPLAYER, tools};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Beginning of the names of replayer files.
const PREFIX: &str = "replayer-";

/// Length of an extra member on each line of a long log, characters.
const NOTE_CHARS: usize = 200;

/// Limits by name, for recipes.
fn limit(name: &str) -> Option<u64> {
    match name {
        "line_bytes_max" => Some(LINE_BYTES_MAX as u64),
        "nesting_max" => Some(NESTING_MAX as u64),
        _ => None,
    }
}

/// One step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Selections of the run; by default those of [`talk::usual`].
    run: Vec<Pick>,
    /// Number of random runs, instead of one given run.
    drawn: usize,
    /// Members of the payload of `run_started` as JSON texts; empty text removes a member.
    start: BTreeMap<String, String>,
    /// Members of the header as JSON texts.
    header: BTreeMap<String, String>,
    /// Event of the lines that are edited, one line per process; `pick` means selections with a PICK. By default
    /// all lines.
    on: Option<String>,
    /// Choice among these lines: `first`, `middle`, `last`, or a number; by default each.
    at: Option<String>,
    /// Edit of the line: `remove`, `double`, `swap` with the next one, `end` (move behind all others), `cut` (drop
    /// it and all later lines), `tear` (drop its second half and all later lines).
    line: Option<String>,
    /// Values at JSON pointers of the line, as JSON texts; empty text removes the value.
    set: BTreeMap<String, String>,
    /// Strings at JSON pointers of the line, taken literally; a line feed stays one.
    texts: BTreeMap<String, String>,
    /// A text in the line, and its replacement.
    replace: Option<[String; 2]>,
    /// The line itself, without line feed. `$LINE` stands for the original line, `$OPEN` for it without its last
    /// brace.
    raw: Option<Recipe>,
    /// Lines before and after it.
    before: Option<String>,
    behind: Option<String>,
    /// Recomputes the digests from the patches.
    redigest: bool,
    /// Text before and after the whole log.
    prefix: Option<Recipe>,
    suffix: Option<Recipe>,
    /// Line end instead of a line feed; empty text: the last line has no end.
    line_end: Option<String>,
    /// A second run after this one, with this `run_id`.
    second: Option<String>,
    /// Gives the log once in each other spelling of JSON, applied to all lines.
    presented: bool,
    /// Number of the first step.
    first_step: u64,
    /// Number of steps that are added after the first one and change nothing.
    steps: Option<Amount>,
    /// Omits the unedited twin.
    alone: bool,
    /// Entry at the path of the log, instead of a file.
    missing: Option<PathKind>,
    /// Entry at the path of the toolhost, instead of a program.
    no_toolhost: Option<PathKind>,
    /// Environment of the replayer.
    env: BTreeMap<String, String>,
    /// Time that the tools take, ms.
    allow_ms: u64,
    /// Actions while the replayer runs.
    acts: Vec<Act>,
    /// Clause of the step; by default the first clause of the case.
    clause: Option<ClauseId>,
}

/// All rows. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let own = case::files(&FILES).into_iter().filter(|(name, _)| name.starts_with(PREFIX));
        case::load(own).unwrap_or_else(|error| unreachable!("corpora/run_log/cases does not load: {error}"))
    })
}

/// All checks of replayers, in the order in which they run.
pub(crate) fn checks() -> Vec<Check> {
    let of_case = |case: &Case<Row>| {
        let own = case.clone();
        let planner = move |_: &Facts, rng: &mut Rng| plan(&own, rng);
        case.check(format!("run_log/{REPLAYER}/{}", case.id), REPLAYER, planner).on_process()
    };
    all().iter().map(|loaded| of_case(&loaded.case)).collect()
}

fn plan(case: &Case<Row>, rng: &mut Rng) -> Result<Plan, Untestable> {
    let mut talk = Talk::default();
    for row in &case.steps {
        let clause = row.clause.as_ref().map_or(&case.clauses[0].0, |clause| &clause.0);
        row.perform(clause, &mut talk, rng)?;
    }
    Ok(talk.plan())
}

impl Row {
    fn perform(&self, clause: &str, talk: &mut Talk, rng: &mut Rng) -> Result<(), Untestable> {
        for _ in 0..self.drawn {
            let log = text(&generate::log(rng));
            talk.give(clause, Payload::text(log), self.giving());
        }
        if self.drawn > 0 {
            return Ok(());
        }
        let lines = self.lines(talk::header())?;
        let is_edited = self.is_edited();
        if !is_edited {
            self.control(clause, &lines, talk)?;
            return self.give(clause, &lines, talk, rng);
        }
        if !self.alone {
            talk.twin(clause, &text(&lines));
        }
        let own: Vec<usize> = (0..lines.len()).filter(|at| self.is_meant(&lines[*at])).collect();
        let chosen: Vec<usize> = match self.at.as_deref() {
            None => own,
            Some("first") => own.first().copied().into_iter().collect(),
            Some("middle") => own.get(own.len() / 2).copied().into_iter().collect(),
            Some("last") => own.last().copied().into_iter().collect(),
            Some(number) => {
                number.parse().ok().and_then(|at: usize| own.get(at).copied()).into_iter().collect()
            }
        };
        if chosen.is_empty() {
            return Err(Untestable::new("no_line", "the run has no such line"));
        }
        for at in chosen {
            let payload = self.edited(&lines, at)?;
            talk.give(clause, payload, self.giving());
        }
        Ok(())
    }

    /// Gives a valid twin before an invalid log of an unedited run. In the twin, tools that are re-run do what the
    /// log says.
    fn control(&self, clause: &str, lines: &[Json], talk: &mut Talk) -> Result<(), Untestable> {
        let is_told_to_end = self.acts.iter().any(|act| matches!(act, Act::Signal(_)));
        let is_wrong = model::read(text(lines).as_bytes(), self.no_toolhost.is_none()).wrong.is_some();
        if self.missing.is_some() || self.alone || !(is_told_to_end || is_wrong) {
            return Ok(());
        }
        let honest = |pick: &Pick| {
            let is_run_again = pick.deterministic && !pick.fails;
            let tool = if is_run_again { "DO" } else { pick.tool.as_str() }.to_owned();
            Pick { tool, output: None, ..pick.clone() }
        };
        let own = Self { run: self.run.iter().map(honest).collect(), ..self.clone() };
        talk.twin(clause, &text(&own.lines(talk::header())?));
        Ok(())
    }

    /// True if a line is edited; otherwise a whole log is given.
    fn is_edited(&self) -> bool {
        self.line.is_some()
            || !self.set.is_empty()
            || !self.texts.is_empty()
            || self.replace.is_some()
            || self.raw.is_some()
            || self.before.is_some()
            || self.behind.is_some()
    }

    fn giving(&self) -> GivenLog {
        GivenLog {
            missing: self.missing.clone(),
            no_toolhost: self.no_toolhost.clone(),
            env: self.env.clone(),
            allow_ms: self.allow_ms,
            acts: self.acts.clone(),
        }
    }

    /// The log of the run.
    fn lines(&self, mut header: Json) -> Result<Vec<Json>, Untestable> {
        let mut start = talk::start();
        merge(&mut header, &self.header)?;
        merge(&mut start, &self.start)?;
        let mut run = Maker::new(header, start);
        let usual = talk::usual();
        for pick in if self.run.is_empty() { &usual } else { &self.run } {
            let patch = pick.patch.as_ref().and_then(|patch| patch.parse::<Json>().ok());
            tools::told(patch.as_ref().and_then(|patch| patch.get("do")))?;
            run.pick(pick);
        }
        let mut lines = run.finish("noop");
        for line in &mut lines[1..] {
            let step = line.get("step").and_then(Json::as_u64).unwrap_or_default();
            line.set("step", step + self.first_step);
        }
        Ok(lines)
    }

    fn is_meant(&self, line: &Json) -> bool {
        let event = line.get("event").and_then(Json::as_str).unwrap_or_default();
        let picks = || line.pointer("/payload/kind").and_then(Json::as_str) == Some("PICK");
        match self.on.as_deref() {
            None => true,
            Some("pick") => event == "selector_chosen" && picks(),
            Some(on) => event == on,
        }
    }

    /// The log with its line `at` edited.
    fn edited(&self, lines: &[Json], at: usize) -> Result<Payload, Untestable> {
        let mut lines = lines.to_vec();
        merge_at(&mut lines[at], &self.set)?;
        for (pointer, text) in &self.texts {
            let place = lines[at].pointer_mut(pointer);
            *place.ok_or_else(|| Untestable::new("no_place", format!("there is no {pointer}")))? =
                text.as_str().into();
        }
        if self.redigest {
            talk::redigest(&mut lines);
        }
        let mut texts: Vec<Payload> = lines.iter().map(|line| Payload::text(line.to_text())).collect();
        let own = lines[at].to_text();
        if let Some([from, to]) = &self.replace {
            if !own.contains(from.as_str()) {
                return Err(Untestable::new("no_text", format!("there is no {from:?} in {own}")));
            }
            texts[at] = Payload::text(own.replacen(from.as_str(), to, 1));
        }
        if let Some(raw) = &self.raw {
            let open = own.strip_suffix('}').unwrap_or(&own);
            let filled = |text: &str| Ok(text.replace("$LINE", &own).replace("$OPEN", open));
            texts[at] = raw.payload(&limit, &filled)?;
        }
        match self.line.as_deref() {
            None => {}
            Some("remove") => drop(texts.remove(at)),
            Some("double") => texts.insert(at, texts[at].clone()),
            Some("swap") if at + 1 < texts.len() => texts.swap(at, at + 1),
            // The last line moves to the front.
            Some("swap") => texts.rotate_right(1),
            Some("end") => {
                let line = texts.remove(at);
                texts.push(line);
                // A last line moves to the front instead.
                if at + 1 == texts.len() {
                    texts.rotate_right(1);
                }
            }
            Some("cut") => texts.truncate(at),
            Some("tear") => {
                texts.truncate(at);
                let half = own.char_indices().nth(own.chars().count() / 2).map_or(0, |(at, _)| at);
                return Ok(joined(texts).then(Payload::text(&own[..half])).merged());
            }
            Some(other) => return Err(Untestable::new("no_edit", format!("there is no edit {other:?}"))),
        }
        if let Some(before) = &self.before {
            texts.insert(at, Payload::text(self.filled(before, &lines[at])));
        }
        if let Some(behind) = &self.behind {
            texts.insert(at + 1, Payload::text(self.filled(behind, &lines[at])));
        }
        Ok(joined(texts).merged())
    }

    /// Fills in a line of a row: `$RUN` is the `run_id`, `$STEP` the step of the edited line.
    fn filled(&self, text: &str, line: &Json) -> String {
        let of = |name: &str| line.get(name).map(Json::to_text).unwrap_or_default();
        text.replace("$RUN", &of("run_id")).replace("$STEP", &of("step"))
    }

    /// Gives a whole log to a process.
    fn give(&self, clause: &str, lines: &[Json], talk: &mut Talk, rng: &mut Rng) -> Result<(), Untestable> {
        let same = |text: &str| Ok(text.to_owned());
        let recipe = |part: &Option<Recipe>| {
            part.as_ref().map_or(Ok(Payload::default()), |part| part.payload(&limit, &same))
        };
        let mut body = text(lines);
        if let Some(run) = &self.second {
            body.push_str(&text(&self.lines(Json::object([("run_id", Json::from(run.as_str()))]))?));
        }
        if let Some(end) = &self.line_end {
            body = match end.as_str() {
                "" => body.trim_end().to_owned(),
                end => body.replace('\n', end),
            };
        }
        let mut body = Payload::text(body);
        if let Some(steps) = &self.steps {
            body = longer(lines, steps.resolve(&limit)?);
        }
        let payload = recipe(&self.prefix)?.then(body).then(recipe(&self.suffix)?).merged();
        talk.give(clause, payload, self.giving());
        if self.presented {
            for how in Presentation::ALL {
                // The contract leaves steps spelled 1.0 open.
                if !matches!(how, Presentation::NumberSpelling) {
                    let one =
                        |line: &Json| present(line, how, &mut || rng.next_u64()).replace('\n', " ") + "\n";
                    let log: String = lines.iter().map(one).collect();
                    talk.give(clause, Payload::text(log), self.giving());
                }
            }
        }
        Ok(())
    }
}

/// A log with more steps after the first one. Each picks a tool that is not re-run and changes nothing.
fn longer(lines: &[Json], steps: u64) -> Payload {
    let first = lines.iter().position(|line| line.get("event").and_then(Json::as_str) == Some("tool_ok"));
    let (head, rest) = lines.split_at(first.map_or(lines.len(), |at| at + 1));
    let of = |pointer: &str| {
        head.last().and_then(|line| line.pointer(pointer)).map(Json::to_text).unwrap_or_default()
    };
    let (run, digest) = (of("/run_id"), of("/payload/state_digest"));
    let mut log = text(head);
    // A replayer that holds all lines of 100,000 steps exceeds the memory limit.
    let note = "x".repeat(NOTE_CHARS);
    for step in 1..=steps {
        log.push_str(&format!(
            "{{\"run_id\":{run},\"note\":\"{note}\",\"event\":\"selector_chosen\",\"step\":{step},\"payload\":{{\"kind\":\"PICK\",\"sid\":\"SID0009\",\
             \"aid\":\"AID.PEERPROOF.RANDOM.v1\",\"raw\":\"<PICK><SID0009><END>\"}}}}\n\
             {{\"run_id\":{run},\"note\":\"{note}\",\"event\":\"tool_ok\",\"step\":{step},\"payload\":{{\"aid\":\"AID.PEERPROOF.RANDOM.v1\",\
             \"deterministic\":false,\"output_json\":\"{{}}\",\"tx_patch\":[],\"state_digest\":{digest}}}}}\n"
        ));
    }
    let mut rest = rest.to_vec();
    for line in &mut rest {
        for pointer in ["/step", "/payload/steps"] {
            if let Some(number) = line.pointer_mut(pointer) {
                *number = (number.as_u64().unwrap_or_default() + steps).into();
            }
        }
    }
    log.push_str(&text(&rest));
    Payload::text(log)
}

fn joined(texts: Vec<Payload>) -> Payload {
    texts.into_iter().fold(Payload::default(), |log, line| log.then(line).then(Payload::text("\n")))
}

/// Sets members of an object; empty text removes a member.
fn merge(of: &mut Json, members: &BTreeMap<String, String>) -> Result<(), Untestable> {
    for (name, text) in members {
        if text.is_empty() {
            of.remove(name);
        } else {
            of.set(name, value(text)?);
        }
    }
    Ok(())
}

/// Sets values at JSON pointers; empty text removes a value.
fn merge_at(of: &mut Json, values: &BTreeMap<String, String>) -> Result<(), Untestable> {
    for (pointer, text) in values {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = of
            .pointer_mut(parent)
            .ok_or_else(|| Untestable::new("no_place", format!("there is no {pointer}")))?;
        match (parent, name.parse::<usize>()) {
            (Json::Array(items), Ok(at)) if text.is_empty() => drop(items.remove(at)),
            (Json::Array(items), Ok(at)) if at == items.len() => items.push(value(text)?),
            (Json::Array(items), Ok(at)) => items[at] = value(text)?,
            (parent, _) if text.is_empty() => drop(parent.remove(name)),
            (parent, _) => parent.set(name, value(text)?),
        }
    }
    Ok(())
}

fn value(text: &str) -> Result<Json, Untestable> {
    text.parse().map_err(|error| format!("{text} is not JSON: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::super::model;
    use super::super::talk::log_of;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::payload::Vars;
    use peerproof_engine::data::plan::Fixture;

    /// The name of a topic agrees with the model's verdict about its logs.
    #[test]
    fn the_model_says_of_every_row_what_its_topic_says() {
        let facts = crate::boundary().full_facts(Side::Consumer);
        for check in checks() {
            let plan = (check.planner)(&facts, &mut Rng::new(1))
                .unwrap_or_else(|error| panic!("{}: {error}", check.id));
            let (mut stands, mut can_rerun) = (Vec::new(), false);
            for (session, _) in plan.sessions.iter().enumerate() {
                let log = plan.fixtures.iter().find_map(|fixture| match fixture {
                    Fixture::File { name, content, .. } if *name == log_of(session) => Some(content),
                    _ => None,
                });
                let Some(log) = log.filter(|log| log.len(&Vars::new()) < 1 << 20) else { continue };
                let bytes = log.expand(&Vars::new()).unwrap();
                let told = model::read(&bytes, true);
                let has_rerun = told.runs.iter().any(|run| run.need == model::Need::Must);
                let is_control = has_rerun && told.wrong.is_none();
                assert!(can_rerun || is_control || !has_rerun, "{}: no tool was run again before", check.id);
                can_rerun |= is_control;
                let is_optional = |run: &model::Run| run.need == model::Need::May;
                let open = told.open.len() + told.runs.iter().filter(|run| is_optional(run)).count();
                let stand = match (&told.wrong, open) {
                    (Some(_), _) if told.first_wins == Some(true) => "open",
                    (Some(_), _) => "refused",
                    (None, 0) => "accepted",
                    (None, _) => "open",
                };
                stands.push((
                    stand,
                    format!("{:?} {:?}\n{}", told.wrong, told.open, String::from_utf8_lossy(&bytes)),
                ));
            }
            let topic = check.id.split('/').nth(2).unwrap();
            assert_eq!(stands[0].0, "accepted", "the canary: {}", stands[0].1);
            for (stand, log) in &stands {
                let may = match topic {
                    "accepted" => *stand == "accepted",
                    "refused" => *stand != "open",
                    "open" => *stand != "refused",
                    _ => true,
                };
                assert!(may, "{} is {stand}: {log}", check.id);
            }
            assert!(
                !["refused", "open"].contains(&topic) || stands.iter().any(|(stand, _)| *stand == topic),
                "{} has nothing that is {topic}",
                check.id
            );
        }
    }
}
