//! Cases of the toolhost boundary as data (`corpora/toolhost/cases`), and the meaning of their rows.
//!
//! A step is one request. `raw` is the request itself; `input` is the text of `input_json` in an otherwise plain
//! request. Serve mode adds a line feed. In run mode each step is a new process. Placeholders:
//!
//! | | |
//! |---|---|
//! | `$HEAD` | `{` in run mode, `{"aid":"…",` in serve mode |
//! | `$GOOD` | a whole request known to succeed |
//! | `$INPUT` | text of an `input_json` known to succeed, to stand between quotes |
//! | `$AID`, `$AID_CUT`, `$AID_ESCAPED` | the action id of the step's role, between quotes: whole, without its last character, every character as `\uXXXX` |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::expect::{Allowed, Expect, Match, Outcome};
use super::talk::{Talk, quoted};
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::case::{self, Case, Loaded, Recipe, RecipePart};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::{ClauseId, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Modes of a case without `modes`.
const MODES: [&str; 2] = ["serve", "run"];

/// Limits by name, for recipes (`ipc` §7, contract readings).
const LIMITS: [(&str, u64); 3] =
    [("stdin_bytes_max", 10_485_760), ("reply_bytes_max", 1_048_576), ("nesting_levels", 64)];

/// One request of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Role of the addressed tool. The default is the case's first role, else `any`.
    role: Option<String>,
    /// Action id instead of the role's. It may contain `$AID` and `$AID_CUT`.
    aid: Option<String>,
    raw: Option<Recipe>,
    input: Option<Recipe>,
    #[serde(default)]
    chunking: Chunking,
    /// Clause that a violation breaks. The default is the case's first clause.
    clause: Option<ClauseId>,
    expect: ExpectedAnswer,
    reason: Option<String>,
    /// True if output beside the replies breaks the step's clause.
    #[serde(default)]
    stray: bool,
    #[serde(default)]
    canary: Canary,
}

/// Source of the proof that the peer still works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Canary {
    /// A plain request after this one.
    #[default]
    After,
    /// This request, whose answer is known.
    Same,
    /// Another step.
    None,
}

/// Expected answer: `"refused"`, `{ output = '…' }`, an array of alternatives, or `{ choice = "key", any_of = […] }`.
#[derive(Debug, Clone)]
struct ExpectedAnswer {
    choice: Option<String>,
    allowed: Vec<Allowed>,
}

/// Checks of one case file, named without its extension.
pub(crate) fn checks(file: &str) -> Vec<Check> {
    all()
        .iter()
        .filter(|loaded| loaded.file == file)
        .flat_map(|loaded| modes(&loaded.case).into_iter().map(|mode| check(&loaded.case, mode)))
        .collect()
}

fn modes(case: &Case<Row>) -> Vec<&'static str> {
    MODES
        .into_iter()
        .filter(|mode| case.modes.is_empty() || case.modes.iter().any(|own| own == mode))
        .collect()
}

/// All cases. The data is embedded, and a test loads it.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        load().unwrap_or_else(|error| unreachable!("corpora/toolhost/cases does not load: {error}"))
    })
}

fn load() -> Result<Vec<Loaded<Row>>, HarnessFault> {
    let cases: Vec<Loaded<Row>> = case::load(case::files(&FILES))?;
    let facts = super::full_facts::facts(Side::Provider);
    for Loaded { file, case } in &cases {
        let wrong =
            |error: Untestable| HarnessFault::from(format!("{file}.toml, case {:?}: {error}", case.id));
        if let Some(mode) = case.modes.iter().find(|mode| !MODES.contains(&mode.as_str())) {
            return Err(wrong(format!("there is no mode {mode:?}").into()));
        }
        for mode in modes(case) {
            plan(case, mode, &facts).map_err(wrong)?;
        }
    }
    Ok(cases)
}

fn check(case: &Case<Row>, mode: &'static str) -> Check {
    let id = format!("toolhost/{mode}/{}", case.id);
    let own = case.clone();
    let mut check = case.check(id, mode, move |facts, _| plan(&own, mode, facts));
    if !case.roles.iter().any(|role| role == "any") {
        check.roles.push("any".to_owned());
    }
    check
}

fn plan(case: &Case<Row>, mode: &str, facts: &Facts) -> Result<Plan, Untestable> {
    let env: Vec<(&str, &str)> =
        case.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let serve = mode == "serve";
    let mut talk = if serve { Talk::serve_env(facts, &env) } else { Talk::runs(facts) };
    let mut canary_due = false;
    // A canary may use the echo, which proves nothing about the tool of `any`.
    let mut control_due = false;
    for (index, row) in case.steps.iter().enumerate() {
        if !serve && !is_run_sample(case, index, facts) {
            continue;
        }
        let filler = Filler::new(case, row, serve, &talk)?;
        let body = row.body(&filler)?;
        let expect = row.expect(case);
        if serve {
            let least = u32::from(!expect.may_be_silent());
            talk.send_as(body.then(Payload::text("\n")), row.chunking, least, expect);
        } else {
            talk.add_session("run", &[("aid", &filler.aid)], &env);
            talk.send_as(body, row.chunking, 0, expect);
        }
        control_due |= row.role.is_none()
            && case.roles.is_empty()
            && row.expect.allowed.iter().all(|allowed| allowed.outcome == Outcome::Refused);
        let must_succeed = matches!(row.expect.allowed.as_slice(), [Allowed { outcome: Outcome::Ok, .. }]);
        if row.canary == Canary::Same || (!serve && must_succeed) {
            talk.counts_as_canary();
        }
        if !serve {
            talk.act(Act::Finish);
            canary_due |= row.canary == Canary::After && !must_succeed;
        } else if row.canary == Canary::After {
            talk.canary();
        }
    }
    let any = talk.any(serve);
    if serve {
        if control_due {
            talk.control(&any);
        }
        talk.finish();
    } else {
        if control_due {
            let aid = talk.role("any").aid;
            talk.run_control(&aid, &any, &env);
        }
        if canary_due {
            talk.run_canary();
        }
    }
    Ok(talk.plan())
}

/// True if a step needs its own process in run mode. If the peer also has serve mode, which probably shares its parser
/// and sees all variants, only the first and the last step of a family run. Steps that only run mode sees all run.
fn is_run_sample(case: &Case<Row>, index: usize, facts: &Facts) -> bool {
    let family = |at: usize| case.families.get(at);
    let is_inner = index > 0 && family(index - 1) == family(index) && family(index + 1) == family(index);
    let serve_sees_it = facts.commands.contains("serve") && modes(case).contains(&"serve");
    !(is_inner && serve_sees_it)
}

/// Values of the placeholders of one step.
struct Filler {
    aid: String,
    input: String,
    serve: bool,
}

impl Filler {
    fn new(case: &Case<Row>, row: &Row, serve: bool, talk: &Talk<'_>) -> Result<Self, Untestable> {
        let name = row.role.as_deref().or(case.roles.first().map(String::as_str)).unwrap_or("any");
        if name != "any" && !case.roles.iter().any(|role| role == name) {
            return Err(format!("the role {name:?} is not among the case's `roles`").into());
        }
        let role = talk.role(name);
        let input = role.input.as_ref().map_or_else(|| "{}".to_owned(), ToString::to_string);
        let filler = Self { aid: role.aid, input, serve };
        match &row.aid {
            Some(aid) => Ok(Self { aid: filler.fill_in(aid)?, ..filler }),
            None => Ok(filler),
        }
    }

    fn fill_in(&self, text: &str) -> Result<String, Untestable> {
        case::fill_in(text, &|name, behind| {
            let value = match name {
                "HEAD" => self.head(),
                "GOOD" => format!("{}\"input_json\":{}}}", self.head(), quoted(&self.input)),
                "INPUT" => inside(&quoted(&self.input)).to_owned(),
                "AID" => inside(&quoted(&self.aid)).to_owned(),
                "AID_CUT" => {
                    let mut aid = self.aid.clone();
                    aid.pop();
                    inside(&quoted(&aid)).to_owned()
                }
                "AID_ESCAPED" => self.aid.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
                other => return Err(format!("there is no placeholder ${other}").into()),
            };
            Ok(Some((value, behind)))
        })
    }

    fn head(&self) -> String {
        if self.serve { format!("{{\"aid\":{},", quoted(&self.aid)) } else { "{".to_owned() }
    }
}

/// JSON string literal without its quotes.
fn inside(literal: &str) -> &str {
    &literal[1..literal.len() - 1]
}

impl Row {
    fn body(&self, filler: &Filler) -> Result<Payload, Untestable> {
        let limits = |name: &str| LIMITS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        match (&self.raw, &self.input) {
            (Some(raw), None) => raw.payload(&limits, &|text| filler.fill_in(text)),
            (None, Some(input)) => {
                let mut parts = vec![RecipePart::Text(format!("{}\"input_json\":\"", filler.head()))];
                parts.extend(input.0.iter().cloned().map(|part| match part {
                    RecipePart::Text(text) => RecipePart::Text(inside(&quoted(&text)).to_owned()),
                    RecipePart::Repeat(unit, times) => {
                        RecipePart::Repeat(inside(&quoted(&unit)).to_owned(), times)
                    }
                    RecipePart::Fill(unit, bytes) => {
                        RecipePart::Fill(inside(&quoted(&unit)).to_owned(), bytes)
                    }
                    RecipePart::Hex(_) => part,
                }));
                parts.push(RecipePart::Text("\"}".to_owned()));
                // An input is data, so a dollar sign in it has no meaning.
                Recipe(parts).payload(&limits, &|text| Ok(text.to_owned()))
            }
            _ => Err("a step must have either `raw` or `input`".into()),
        }
    }

    fn expect(&self, case: &Case<Row>) -> Expect {
        let clause = self.clause.clone().unwrap_or_else(|| case.clauses[0].clone());
        let mut expect = Expect::new(clause, Allowed::of(Outcome::Any));
        expect.allowed.clone_from(&self.expect.allowed);
        let role = self.role.as_deref().or(case.roles.first().map(String::as_str)).unwrap_or("any");
        for allowed in expect.allowed.iter_mut().filter(|_| role != "echo") {
            if let Some(output) = allowed.output.take() {
                allowed.output_members.append(&mut Allowed::holding(&output).output_members);
            }
        }
        expect.reason.clone_from(&self.reason);
        expect.stray = self.stray.then(|| expect.clause.clone());
        expect.choice.clone_from(&self.expect.choice);
        expect
    }
}

impl<'de> Deserialize<'de> for ExpectedAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = ExpectedAnswer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an outcome, a table or an array of them")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<ExpectedAnswer, E> {
                Ok(ExpectedAnswer { choice: None, allowed: vec![Allowed::of(outcome(word)?)] })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ExpectedAnswer, A::Error> {
                let mut allowed = Vec::new();
                while let Some(wanted) = seq.next_element::<ExpectedAnswer>()? {
                    allowed.extend(wanted.allowed);
                }
                Ok(ExpectedAnswer { choice: None, allowed })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ExpectedAnswer, A::Error> {
                WantedRow::deserialize(de::value::MapAccessDeserializer::new(map))?.wanted()
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedRow {
    choice: Option<String>,
    any_of: Option<Vec<ExpectedAnswer>>,
    outcome: Option<String>,
    output: Option<String>,
    hit: Option<bool>,
    #[serde(default)]
    members: BTreeMap<String, Match>,
    #[serde(default)]
    output_members: BTreeMap<String, Match>,
    shows: Option<String>,
}

impl WantedRow {
    fn wanted<E: de::Error>(self) -> Result<ExpectedAnswer, E> {
        if let Some(any_of) = self.any_of {
            if self.outcome.is_some() || self.output.is_some() || self.shows.is_some() {
                return Err(E::custom("`any_of` stands alone or with `choice`"));
            }
            let allowed = any_of.into_iter().flat_map(|wanted| wanted.allowed).collect();
            return Ok(ExpectedAnswer { choice: self.choice, allowed });
        }
        let allowed = Allowed {
            output: self.output,
            hit: self.hit,
            members: self.members,
            output_members: self.output_members,
            choice: self.shows,
            ..Allowed::of(self.outcome.as_deref().map_or(Ok(Outcome::Ok), outcome)?)
        };
        Ok(ExpectedAnswer { choice: self.choice, allowed: vec![allowed] })
    }
}

fn outcome<E: de::Error>(word: &str) -> Result<Outcome, E> {
    Outcome::deserialize(de::value::StrDeserializer::<E>::new(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use peerproof_engine::data::clause;

    #[test]
    fn every_case_loads() {
        if let Err(error) = load() {
            panic!("{error}");
        }
    }

    #[test]
    fn no_check_id_comes_twice() {
        let mut seen = BTreeSet::new();
        for check in super::super::checks::all() {
            assert!(seen.insert(check.id.clone()), "{} is there twice", check.id);
        }
    }

    #[test]
    fn every_file_is_used_by_a_topic() {
        let ids: BTreeSet<String> = super::super::checks::all().into_iter().map(|check| check.id).collect();
        for Loaded { file, case } in all() {
            for mode in modes(case) {
                let id = format!("toolhost/{mode}/{}", case.id);
                assert!(ids.contains(&id), "{file}.toml: {id} is in no topic");
            }
        }
    }

    #[test]
    fn cases_name_clauses_of_their_mode() {
        let clauses = clause::load(include_str!("../corpora/clauses.toml")).unwrap();
        for Loaded { file, case } in all() {
            for id in &case.clauses {
                let clause = clauses.iter().find(|clause| clause.id == *id);
                let clause = clause.unwrap_or_else(|| panic!("{file}.toml, {}: no clause {id}", case.id));
                for mode in modes(case) {
                    assert!(clause.modes.iter().any(|own| own == mode), "{}: {id} not in {mode}", case.id);
                }
            }
            for row in &case.steps {
                let clause = &row.expect(case).clause;
                assert!(case.clauses.contains(clause), "{}: {clause} is not among its clauses", case.id);
            }
        }
    }

    #[test]
    fn unknown_placeholders_are_refused() {
        let filler = Filler { aid: "A".to_owned(), input: "{}".to_owned(), serve: true };
        assert_eq!(filler.fill_in("$HEAD\"x\":1}").unwrap(), "{\"aid\":\"A\",\"x\":1}");
        assert!(filler.fill_in("$HAED").unwrap_err().detail.contains("HAED"));
    }
}
