//! Cases: checks written as data.
//!
//! A case file is TOML with one `[[case]]` per check. This module reads the rows strictly: an unknown key, a row
//! without a meaning and a repeated id are load errors that name file and id. The boundary defines the type of a step
//! and makes checks from the rows.
//!
//! A row with `each` yields one case per entry, with the entry's words filled into every text and key. With
//! `together = true` it stays one case, and only steps that hold such a word are repeated for each entry.
//!
//! | `each` | words, besides `$INDEX` |
//! |---|---|
//! | table of texts | `$NAME`, `$EACH`: name and text, ordered by name |
//! | array of texts | `$EACH` |
//! | array of tables | `$KEY` for each key in capitals |
//! | number | this many entries |
//! | `{ near = "text" }` | `$NAME`, `$EACH`: kind and text of each near miss ([`near_misses`]) |
//! | `{ near_value = "JSON" }` | `$NAME`, `$EACH`: kind and JSON text of each near miss of a word or flag ([`near_values`]) |
//!
//! Large inputs are recipes ([`Recipe`]): a unit and a repeat count, given as a number or relative to a named limit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use include_dir::Dir;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::json;
use toml::{Table, Value};

use crate::data::blame::HarnessFault;
use crate::data::carriage::Carriage;
use crate::data::check::{Check, Untestable};
use crate::data::clause::ClauseId;
use crate::data::facts::Facts;
use crate::data::near_miss::{near_misses, near_values};
use crate::data::payload::{Payload, Segment};
use crate::data::plan::Plan;
use crate::data::rng::Rng;

/// One row of a case file; `S` is a step as the boundary writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, bound = "S: DeserializeOwned")]
pub struct Case<S> {
    /// Kebab path below the boundary and the mode, such as `json/trailing-comma`.
    pub id: String,
    /// One sentence: the stimulus and the required behaviour.
    pub title: String,
    /// Clauses under test. A step that names no clause is about the first.
    pub clauses: Vec<ClauseId>,
    /// Commands to run it on, one check each; empty for all commands that the boundary allows for cases.
    #[serde(default)]
    pub modes: Vec<String>,
    /// Roles that must be mapped. A step that names no role addresses the first.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Feature that must be claimed.
    #[serde(default)]
    pub feature: Option<String>,
    /// Further features that must be claimed.
    #[serde(default)]
    pub features_too: Vec<String>,
    /// Special properties of its checks.
    #[serde(default)]
    pub flags: Vec<Flag>,
    /// Environment variables of the peer.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Messages to send and expected replies.
    pub steps: Vec<S>,
    /// For each step, the index of its row in the file's `steps`. Steps made from one `together` row share it.
    #[serde(skip)]
    pub families: Vec<usize>,
}

/// Special property of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// [`Check::slow`]
    Slow,
    /// [`Check::very_slow`]
    VerySlow,
    /// [`Check::waits`]
    Waits,
    /// [`Check::exclusive`]
    Exclusive,
    /// [`Check::on_process`]
    OnProcess,
    /// [`Check::ambient`]
    Ambient,
    /// [`Check::first_canary`]
    FirstCanary,
}

impl<S> Case<S> {
    /// Makes the check of this row for one command.
    pub fn check(
        &self,
        id: String,
        command: &str,
        planner: impl Fn(&Facts, &mut Rng) -> Result<Plan, Untestable> + Send + Sync + 'static,
    ) -> Check {
        let mut check = Check::new(id, self.title.clone(), self.clauses.clone(), command, planner);
        check.roles.clone_from(&self.roles);
        check.feature.clone_from(&self.feature);
        check.features_too.clone_from(&self.features_too);
        self.flags.iter().fold(check, |check, flag| match flag {
            Flag::Slow => check.slow(),
            Flag::VerySlow => check.very_slow(),
            Flag::Waits => check.waits(),
            Flag::Exclusive => check.exclusive(),
            Flag::OnProcess => check.on_process(),
            Flag::Ambient => check.ambient(),
            Flag::FirstCanary => check.first_canary(),
        })
    }
}

/// Deserializes the unusual settings of a body over HTTP, a field of a step: members of a [`Carriage`]. `""` removes a
/// member; `connection` may be a text that holds a number.
///
/// # Errors
/// Fails if a member is unknown or has a wrong type.
pub fn carriage<'de, D: Deserializer<'de>>(row: D) -> Result<Option<Carriage>, D::Error> {
    let mut carriage = json!(Carriage::post());
    for (name, value) in serde_json::Map::deserialize(row)? {
        carriage[&name] = match value.as_str() {
            Some("") => serde_json::Value::Null,
            Some(number) if name == "connection" => number.parse().map_err(de::Error::custom)?,
            _ => value,
        };
    }
    serde_json::from_value(carriage).map(Some).map_err(de::Error::custom)
}

/// Row and the file that holds it.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// Name of the file, without its extension.
    pub file: String,
    /// Row of the file.
    pub case: Case<S>,
}

/// Names and texts of the case files directly in a folder, ordered by name.
pub fn files<'a>(folder: &'a Dir<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let files = folder.files();
    files.filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents_utf8()?))).collect()
}

/// Reads case files, given as (name, text), in order.
///
/// # Errors
/// Names file and id (or number) of the first unusable row, in one sentence.
pub fn load<'a, S: DeserializeOwned>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Loaded<S>>, HarnessFault> {
    let mut loaded = Vec::new();
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for Row { file, name, row, families } in rows(&mut files.into_iter())? {
        let wrong = |error: &dyn fmt::Display| HarnessFault::from(format!("{file}, {name}: {error}"));
        let case: Case<S> = serde_json::from_value(row).map_err(|error| wrong(&error))?;
        let case = Case { families, ..case };
        well_formed(&case).map_err(|error| wrong(&error))?;
        let modes = if case.modes.is_empty() { vec![String::new()] } else { case.modes.clone() };
        for mode in modes {
            if !seen.insert((mode, case.id.clone())) {
                return Err(format!("{file}, case {:?}: the id occurs twice", case.id).into());
            }
        }
        loaded.push(Loaded { file: file.trim_end_matches(".toml").to_owned(), case });
    }
    Ok(loaded)
}

/// Row of a file as JSON. The types of steps read JSON only: code that also reads TOML would be several times as large,
/// in every boundary.
struct Row<'a> {
    file: &'a str,
    /// Name of the row in messages.
    name: String,
    row: serde_json::Value,
    families: Vec<usize>,
}

fn rows<'a>(files: &mut dyn Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<Row<'a>>, HarnessFault> {
    let mut all = Vec::new();
    for (file, text) in files {
        let rows: File = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        for (index, row) in rows.case.into_iter().enumerate() {
            let name = row
                .get("id")
                .and_then(Value::as_str)
                .map_or_else(|| format!("row {}", index + 1), |id| format!("case {id:?}"));
            let wrong = |error: &dyn fmt::Display| HarnessFault::from(format!("{file}, {name}: {error}"));
            for (table, families) in spread(row).map_err(|error| wrong(&error))? {
                let row = serde_json::to_value(table).map_err(|error| wrong(&error))?;
                all.push(Row { file, name: name.clone(), row, families });
            }
        }
    }
    Ok(all)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Table>,
}

/// Tables made from a row: one per entry of `each`, or the row itself. Each comes with the families of its steps.
fn spread(mut row: Table) -> Result<Vec<(Table, Vec<usize>)>, HarnessFault> {
    let steps = row.get("steps").and_then(Value::as_array).map_or(0, Vec::len);
    let Some(each) = row.remove("each") else { return Ok(vec![(row, (0..steps).collect())]) };
    let entries = entries(each)?;
    if row.remove("together").is_some_and(|together| together == Value::Boolean(true)) {
        let mut families = Vec::new();
        if let Some(Value::Array(steps)) = row.get_mut("steps") {
            let mut all = Vec::new();
            for (family, step) in steps.iter().enumerate() {
                all.extend(spread_step(step, &entries));
                families.resize(all.len(), family);
            }
            *steps = all;
        }
        return Ok(vec![(row, families)]);
    }
    let one = |words| {
        let mut row = row.clone();
        row.iter_mut().for_each(|(_, value)| fill_in_words(value, words));
        (row, (0..steps).collect())
    };
    Ok(entries.iter().map(one).collect())
}

/// Words of one entry of `each`.
type Words = BTreeMap<String, String>;

fn entries(each: Value) -> Result<Vec<Words>, HarnessFault> {
    let text = |name: &str, value: Value| match value {
        Value::String(text) => Ok((name.to_owned(), text)),
        _ => Err(HarnessFault::from(format!("`each`: {name} is not a string"))),
    };
    let named = |name: &str, value: Value| {
        Ok(Words::from([text("NAME", Value::String(name.to_owned()))?, text("EACH", value)?]))
    };
    let mut entries: Vec<Words> = match each {
        Value::Table(mut table) if table.len() == 1 && table.contains_key("near") => {
            let (_, right) = text("near", table.remove("near").unwrap_or(Value::Boolean(false)))?;
            near_misses(&right).into_iter().map(|miss| named(miss.kind, Value::String(miss.text))).collect()
        }
        Value::Table(mut table) if table.len() == 1 && table.contains_key("near_value") => {
            let (_, right) = text("near_value", table.remove("near_value").unwrap_or(Value::Boolean(false)))?;
            let right =
                right.parse().map_err(|_| HarnessFault::from("`near_value` is not JSON".to_owned()))?;
            near_values(&right)
                .into_iter()
                .map(|(kind, value)| named(kind, Value::String(value.to_text())))
                .collect()
        }
        Value::Table(table) => table.into_iter().map(|(name, value)| named(&name, value)).collect(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Table(words) => {
                    words.into_iter().map(|(key, value)| text(&key.to_uppercase(), value)).collect()
                }
                value => Ok(Words::from([text("EACH", value)?])),
            })
            .collect(),
        Value::Integer(count) => Ok((0..count).map(|_| Words::new()).collect()),
        _ => return Err("`each` must be a table, an array or a number".into()),
    }?;
    if entries.is_empty() {
        return Err("`each` is empty".into());
    }
    entries.iter_mut().zip(0..).for_each(|(words, index): (&mut Words, u32)| {
        words.insert("INDEX".to_owned(), index.to_string());
    });
    Ok(entries)
}

/// One step per entry, or the step itself if it holds none of their words.
fn spread_step(step: &Value, entries: &[Words]) -> Vec<Value> {
    let one = |words| {
        let mut step = step.clone();
        fill_in_words(&mut step, words);
        step
    };
    let mut steps: Vec<Value> = entries.iter().map(one).collect();
    if steps.first() == Some(step) {
        steps.truncate(1);
    }
    steps
}

fn filled(text: &str, words: &Words) -> String {
    let word = |name: &str, rest| Ok(words.get(name).map(|word| (word.clone(), rest)));
    fill_in(text, &word).unwrap_or_default()
}

fn fill_in_words(value: &mut Value, words: &Words) {
    match value {
        Value::String(text) => *text = filled(text, words),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in_words(item, words)),
        Value::Table(table) => {
            for (key, mut item) in std::mem::take(table) {
                fill_in_words(&mut item, words);
                table.insert(filled(&key, words), item);
            }
        }
        _ => {}
    }
}

/// Replacement of a placeholder, and the rest of the text after it.
pub type Substitution<'a> = Result<Option<(String, &'a str)>, Untestable>;

/// Fills in the placeholders of `text`: `$` followed by capitals or underscores. `value` receives the name without its
/// dollar sign and the text after it; a placeholder stays if `value` returns `None`.
///
/// # Errors
/// Passes on errors of `value`.
pub fn fill_in<'a>(
    text: &'a str,
    value: &dyn Fn(&'a str, &'a str) -> Substitution<'a>,
) -> Result<String, Untestable> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let end = behind.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        rest = match value(name, behind)? {
            Some((filled, behind)) => {
                out.push_str(&filled);
                behind
            }
            None => {
                out.push('$');
                out.push_str(name);
                behind
            }
        };
    }
    out.push_str(rest);
    Ok(out)
}

fn well_formed<S>(case: &Case<S>) -> Result<(), &'static str> {
    let kebab = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    match () {
        () if case.id.split('/').count() != 2 || !case.id.split('/').all(kebab) => {
            Err("an id is topic/name in lower case with hyphens (with `each`, `$NAME` belongs in it)")
        }
        () if case.title.is_empty() => Err("`title` is empty"),
        () if case.clauses.is_empty() => Err("`clauses` is empty"),
        () if case.steps.is_empty() => Err("`steps` is empty"),
        () => Ok(()),
    }
}

/// Text in a case: a string or an array of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe(pub Vec<RecipePart>);

/// Part of a [`Recipe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipePart {
    /// Text whose placeholders the boundary fills in.
    Text(String),
    /// Bytes that are not text: `{ hex = "ff" }`.
    Hex(String),
    /// Repeated unit: `{ repeat = "x", times = 65 }`, `{ repeat = "x", times = "limit + 1" }`.
    Repeat(String, Amount),
    /// Unit repeated until the whole recipe has this many bytes: `{ repeat = "x", fill_to = "limit - 1" }`.
    Fill(String, Amount),
}

/// Number, or a named limit plus a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    limit: Option<String>,
    plus: i64,
}

impl Amount {
    /// Resolves to a number; `limits` looks up the contract's limits by name.
    ///
    /// # Errors
    /// Names an unknown limit, or says that the number is negative.
    pub fn resolve(&self, limits: &dyn Fn(&str) -> Option<u64>) -> Result<u64, Untestable> {
        let base = match &self.limit {
            None => 0,
            Some(name) => limits(name).ok_or_else(|| format!("there is no limit called {name:?}"))?,
        };
        base.checked_add_signed(self.plus).ok_or_else(|| format!("{base} {:+} is negative", self.plus).into())
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(plus) = text.parse() {
            return Some(Self { limit: None, plus });
        }
        let (name, plus) = match text.find(['+', '-']) {
            None => (text, 0),
            Some(at) => {
                let plus: i64 = text[at + 1..].trim().parse().ok()?;
                (&text[..at], if text.as_bytes()[at] == b'-' { -plus } else { plus })
            }
        };
        let name = name.trim();
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        plain.then(|| Self { limit: Some(name.to_owned()), plus })
    }
}

impl Recipe {
    /// Expands to a payload. `fill_in` fills the placeholders of every text, repeated units included.
    ///
    /// # Errors
    /// Passes on errors of `fill_in` and [`Amount::resolve`]. Fails for an empty unit, two fills, or a fill that the
    /// other parts exceed.
    pub fn payload(
        &self,
        limits: &dyn Fn(&str) -> Option<u64>,
        fill_in: &dyn Fn(&str) -> Result<String, Untestable>,
    ) -> Result<Payload, Untestable> {
        let mut segments = Vec::new();
        let mut fill = None;
        for part in &self.0 {
            match part {
                RecipePart::Text(text) => segments.push(Segment::Text(fill_in(text)?)),
                RecipePart::Hex(hex) => segments.push(Segment::Hex(hex.clone())),
                RecipePart::Repeat(unit, times) => {
                    segments.push(Segment::Repeat { unit: fill_in(unit)?, times: times.resolve(limits)? });
                }
                RecipePart::Fill(unit, bytes) => {
                    if fill.replace((segments.len(), bytes.resolve(limits)?)).is_some() {
                        return Err("`fill_to` occurs twice".into());
                    }
                    segments.push(Segment::Repeat { unit: fill_in(unit)?, times: 0 });
                }
            }
        }
        let mut payload = Payload(segments);
        // Checks hex at load time.
        if payload.0.iter().any(|segment| matches!(segment, Segment::Hex(_))) {
            payload.expand(&BTreeMap::new())?;
        }
        let bare = payload.len(&BTreeMap::new()) as u64;
        if let Some((at, bytes)) = fill
            && let Some(Segment::Repeat { unit, times }) = payload.0.get_mut(at)
        {
            let left =
                bytes.checked_sub(bare).ok_or("`fill_to` is smaller than the size of the other parts")?;
            if unit.is_empty() || !left.is_multiple_of(unit.len() as u64) {
                return Err(format!("{left} bytes cannot be filled with {unit:?}").into());
            }
            *times = left / unit.len() as u64;
        }
        Ok(payload)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RecipeParts;
        impl<'de> Visitor<'de> for RecipeParts {
            type Value = Recipe;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of parts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Recipe, E> {
                Ok(Recipe(vec![RecipePart::Text(text.to_owned())]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Recipe, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Recipe(parts))
            }
        }
        deserializer.deserialize_any(RecipeParts)
    }
}

impl<'de> Deserialize<'de> for RecipePart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct PartRow {
            hex: Option<String>,
            repeat: Option<String>,
            times: Option<Amount>,
            fill_to: Option<Amount>,
        }
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = RecipePart;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, { hex }, { repeat, times } or { repeat, fill_to }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RecipePart, E> {
                Ok(RecipePart::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RecipePart, A::Error> {
                match PartRow::deserialize(de::value::MapAccessDeserializer::new(map))? {
                    PartRow { hex: Some(hex), repeat: None, times: None, fill_to: None } => {
                        Ok(RecipePart::Hex(hex))
                    }
                    PartRow { repeat: Some(unit), times: Some(times), hex: None, fill_to: None } => {
                        Ok(RecipePart::Repeat(unit, times))
                    }
                    PartRow { repeat: Some(unit), fill_to: Some(bytes), hex: None, times: None } => {
                        Ok(RecipePart::Fill(unit, bytes))
                    }
                    _ => {
                        Err(de::Error::custom("a part is { hex }, { repeat, times } or { repeat, fill_to }"))
                    }
                }
            }
        }
        deserializer.deserialize_any(PartVisitor)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a limit such as \"line_bytes_max + 1\"")
            }
            fn visit_i64<E: de::Error>(self, plus: i64) -> Result<Amount, E> {
                Ok(Amount { limit: None, plus })
            }
            fn visit_u64<E: de::Error>(self, plus: u64) -> Result<Amount, E> {
                let unexpected = |_| E::invalid_value(de::Unexpected::Unsigned(plus), &self);
                i64::try_from(plus).map_err(unexpected).and_then(|plus| self.visit_i64(plus))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RawStep {
        raw: Recipe,
    }

    fn load_one(text: &str) -> Result<Vec<Loaded<RawStep>>, String> {
        Ok(load([("a.toml", text)])?)
    }

    const ROW: &str = "[[case]]\nid='t/n'\ntitle='T.'\nclauses=['C-1']\nsteps=[{raw='x'}]\n";

    fn limits(name: &str) -> Option<u64> {
        (name == "line_bytes_max").then_some(10)
    }

    #[test]
    fn an_unknown_key_is_named_with_file_and_id() {
        let error = load_one(&ROW.replace("title=", "titel=")).unwrap_err();
        assert!(error.contains("a.toml") && error.contains("t/n") && error.contains("titel"), "{error}");
        let error = load_one(&ROW.replace("{raw=", "{row=")).unwrap_err();
        assert!(error.contains("t/n") && error.contains("row"), "{error}");
    }

    #[test]
    fn an_id_that_comes_twice_is_refused() {
        let error = load_one(&format!("{ROW}{ROW}")).unwrap_err();
        assert!(error.contains("t/n") && error.contains("twice"), "{error}");
    }

    #[test]
    fn one_row_stands_for_many_cases() {
        let text = "[[case]]\nid='t/is-$NAME'\ntitle='$NAME'\nclauses=['C-1']\n\
                    each={number='1',text='\"\"'}\nsteps=[{raw='a:$EACH'}]\n";
        let cases = load_one(text).unwrap();
        let ids: Vec<&str> = cases.iter().map(|loaded| loaded.case.id.as_str()).collect();
        assert_eq!(ids, ["t/is-number", "t/is-text"]);
        assert_eq!(cases[1].case.steps[0].raw, Recipe(vec![RecipePart::Text("a:\"\"".to_owned())]));
    }

    #[test]
    fn entries_are_counted_or_have_words_of_their_own() {
        let ids = |each: &str, id: &str| {
            let text = ROW.replace("t/n", id).replace("steps=", &format!("each={each}\nsteps="));
            let cases = load_one(&text)?;
            Ok::<_, String>(cases.into_iter().map(|loaded| loaded.case.id).collect::<Vec<_>>())
        };
        assert_eq!(ids("3", "t/$INDEX").unwrap(), ["t/0", "t/1", "t/2"]);
        assert_eq!(ids("['b','a']", "t/$EACH-$INDEX").unwrap(), ["t/b-0", "t/a-1"]);
        let tables = "[{name='x',size='1'},{name='y',size='2'}]";
        assert_eq!(ids(tables, "t/$NAME-$SIZE").unwrap(), ["t/x-1", "t/y-2"]);
        assert!(ids("{near='ab'}", "t/$NAME").unwrap().contains(&"t/upper-case".to_owned()));
        for each in ["[]", "0", "true", "[1]", "{a=1}"] {
            assert!(ids(each, "t/$INDEX").unwrap_err().contains("each"), "{each}");
        }
    }

    #[test]
    fn a_row_says_what_is_special_about_its_check() {
        let text = ROW.replace("steps=", "flags=['waits','on_process']\nfeatures_too=['f']\nsteps=");
        let check = load_one(&text).unwrap()[0].case.check("b/t/n".to_owned(), "run", |_, _| Err("".into()));
        assert!(check.waits && check.needs_process && !check.slow && check.features_too == ["f"]);
        let error = load_one(&text.replace("waits", "wait")).unwrap_err();
        assert!(error.contains("t/n") && error.contains("wait"), "{error}");
    }

    #[test]
    fn a_placeholder_ends_where_its_name_does() {
        let filled =
            fill_in("$A$AB($A)$a$", &|name, behind| Ok((name == "A").then(|| ("x".to_owned(), behind))));
        assert_eq!(filled.unwrap(), "x$AB(x)$a$");
    }

    #[test]
    fn one_row_stands_for_many_steps() {
        let text = "[[case]]\nid='t/n'\ntitle='T.'\nclauses=['C-1']\ntogether=true\n\
                    each={a='1',b='2'}\nsteps=[{raw='first'},{raw='x$EACH'}]\n";
        let cases = load_one(text).unwrap();
        let raw: Vec<&Recipe> = cases[0].case.steps.iter().map(|step| &step.raw).collect();
        let text = |text: &str| Recipe(vec![RecipePart::Text(text.to_owned())]);
        assert_eq!(raw, [&text("first"), &text("x1"), &text("x2")]);
        assert_eq!(cases[0].case.families, [0, 1, 1]);
    }

    #[test]
    fn sizes_are_relative_to_limits() {
        let text = ROW.replace("'x'", "['ab',{hex='ff'},{repeat='x',fill_to='line_bytes_max + 2'},'c']");
        let cases = load_one(&text).unwrap();
        let fill_in = |text: &str| Ok(text.to_owned());
        let payload = cases[0].case.steps[0].raw.payload(&limits, &fill_in).unwrap();
        assert_eq!(payload.expand(&BTreeMap::new()).unwrap(), b"ab\xffxxxxxxxxc");
        let text = ROW.replace("'x'", "[{repeat='xy',times='line_bytes_max-8'}]");
        let payload = load_one(&text).unwrap()[0].case.steps[0].raw.payload(&limits, &fill_in).unwrap();
        assert_eq!(payload.expand(&BTreeMap::new()).unwrap(), b"xyxy");
    }

    #[test]
    fn a_recipe_that_cannot_be_is_refused() {
        let fill_in = |text: &str| Ok(text.to_owned());
        for (parts, word) in [
            ("[{repeat='x',times='no_such_limit'}]", "no_such_limit"),
            ("[{hex='f'}]", "hex"),
            ("['abc',{repeat='x',fill_to=2}]", "fill_to"),
        ] {
            let cases = load_one(&ROW.replace("'x'", parts)).unwrap();
            let error = cases[0].case.steps[0].raw.payload(&limits, &fill_in).unwrap_err();
            assert!(error.detail.contains(word), "{error}");
        }
        let error = load_one(&ROW.replace("'x'", "[{repeat='x'}]")).unwrap_err();
        assert!(error.contains("fill_to"), "{error}");
    }
}
