//! Cases: checks written as data.
//!
//! A case file is TOML with one `[[case]]` a check. This module reads the rows and is strict about them: an unknown
//! key, a row that means nothing and an id that comes twice are load errors that name file and id. What a step says
//! is the boundary's business; it gives the type of its steps and makes checks of the rows.
//!
//! A row with `each` stands for one case for each of its entries, whose words are filled into any text and any key. With
//! `together = true` it stays one case, and only the steps that hold such a word are there once for each entry.
//!
//! | `each` | words, besides `$INDEX` |
//! |---|---|
//! | table of texts | `$NAME`, `$EACH`: name and text, in the order of names |
//! | array of texts | `$EACH` |
//! | array of tables | `$KEY` for each key in capitals |
//! | number | so many entries |
//! | `{ near = "text" }` | `$NAME`, `$EACH`: kind and text of each near miss ([`near_misses`]) |
//! | `{ near_value = "JSON" }` | `$NAME`, `$EACH`: kind and JSON text of each near miss of a word or flag ([`near_values`]) |
//!
//! Large inputs are recipes ([`Recipe`]): a unit and how often, in numbers or relative to a limit by name, never a blob.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use include_dir::Dir;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::json;
use toml::{Table, Value};

use crate::blame::HarnessFault;
use crate::carriage::Carriage;
use crate::check::{Check, Untestable};
use crate::clause::ClauseId;
use crate::facts::Facts;
use crate::near_miss::{near_misses, near_values};
use crate::payload::{Payload, Segment};
use crate::plan::Plan;
use crate::rng::Rng;

/// One row of a case file; `S` is a step as the boundary writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, bound = "S: DeserializeOwned")]
pub struct Case<S> {
    /// Kebab path below the boundary and the mode: `json/trailing-comma`.
    pub id: String,
    /// One sentence: what is done, what must happen.
    pub title: String,
    /// Clauses put at risk; the first is the one a step breaks that names no other.
    pub clauses: Vec<ClauseId>,
    /// Commands it runs on, one check each; empty: all that the boundary has for cases.
    #[serde(default)]
    pub modes: Vec<String>,
    /// Roles that have to be mapped; the first is the one a step addresses that names no other.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Feature that has to be claimed.
    #[serde(default)]
    pub feature: Option<String>,
    /// Further features that have to be claimed as well.
    #[serde(default)]
    pub features_too: Vec<String>,
    /// What else is special about its checks.
    #[serde(default)]
    pub flags: Vec<Flag>,
    /// Environment of the peer.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is sent and what must come.
    pub steps: Vec<S>,
    /// For each step the place among the rows of `steps` in the file: steps of one `together` row share it.
    #[serde(skip)]
    pub families: Vec<usize>,
}

/// What is special about a check.
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
    /// The check of this row, on one command.
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

/// Reads what is not usual about the way of a body over HTTP, as a field of a step: members of a [`Carriage`], where `""` takes
/// one away and a connection may be a word that was filled in.
///
/// # Errors
/// Those are no members of one.
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

/// A row with the file it stands in.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// Name of the file, without its extension.
    pub file: String,
    /// The row.
    pub case: Case<S>,
}

/// Names and texts of the case files of a folder, in the order of their names; those of folders within it are not among
/// them.
pub fn files<'a>(folder: &'a Dir<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let files = folder.files();
    files.filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents_utf8()?))).collect()
}

/// Reads case files, given as (name, text), in order.
///
/// # Errors
/// One sentence with file and id (or number) of the first row that cannot be used.
pub fn load<'a, S: DeserializeOwned>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Loaded<S>>, HarnessFault> {
    let mut loaded = Vec::new();
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for (file, text) in files {
        let rows: File = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        for (index, row) in rows.case.into_iter().enumerate() {
            let name = row
                .get("id")
                .and_then(Value::as_str)
                .map_or_else(|| format!("row {}", index + 1), |id| format!("case {id:?}"));
            let wrong = |error: &dyn fmt::Display| HarnessFault::from(format!("{file}, {name}: {error}"));
            for (table, families) in spread(row).map_err(|error| wrong(&error))? {
                let case: Case<S> = table.try_into().map_err(|error| wrong(&error))?;
                let case = Case { families, ..case };
                well_formed(&case).map_err(|error| wrong(&error))?;
                let modes = if case.modes.is_empty() { vec![String::new()] } else { case.modes.clone() };
                for mode in modes {
                    if !seen.insert((mode, case.id.clone())) {
                        return Err(format!("{file}, case {:?}: the id is there twice", case.id).into());
                    }
                }
                loaded.push(Loaded { file: file.trim_end_matches(".toml").to_owned(), case });
            }
        }
    }
    Ok(loaded)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Table>,
}

/// One table for each entry of `each`, or the row itself; with the family of each step.
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

/// The words of one entry of `each`.
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
                right.parse().map_err(|_| HarnessFault::from("`near_value` is no JSON".to_owned()))?;
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
        _ => return Err("`each` is a table, an array or a number".into()),
    }?;
    if entries.is_empty() {
        return Err("`each` is empty".into());
    }
    entries.iter_mut().zip(0..).for_each(|(words, index): (&mut Words, u32)| {
        words.insert("INDEX".to_owned(), index.to_string());
    });
    Ok(entries)
}

/// One step for each entry, or the step itself where it has none of their words.
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

/// What a placeholder stands for, with the text that goes on behind it.
pub type Filled<'a> = Result<Option<(String, &'a str)>, Untestable>;

/// `text` with its placeholders filled in: `$` and capitals or low lines. `value` is given the name of each, without
/// its dollar sign, and the text behind it; where it has nothing for it, the placeholder stays.
///
/// # Errors
/// What `value` reports.
pub fn fill_in<'a>(
    text: &'a str,
    value: &dyn Fn(&'a str, &'a str) -> Filled<'a>,
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

/// Text in a case: a string, or an array of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe(pub Vec<Part>);

/// A part of a [`Recipe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text; the boundary fills its placeholders in.
    Text(String),
    /// Bytes that no text can hold: `{ hex = "ff" }`.
    Hex(String),
    /// `{ repeat = "x", times = 65 }`, `{ repeat = "x", times = "limit + 1" }`.
    Repeat(String, Amount),
    /// `{ repeat = "x", fill_to = "limit - 1" }`: as often as makes the whole recipe that many bytes long.
    Fill(String, Amount),
}

/// A number, or a limit by name with something added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    limit: Option<String>,
    plus: i64,
}

impl Amount {
    /// The number; `limits` knows the limits of the contract by name.
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
    /// Expands to a payload. `fill_in` is given every text, repeated units included, and returns it with its
    /// placeholders filled in.
    ///
    /// # Errors
    /// What `fill_in` and [`Amount::resolve`] report; units of no byte, two fills, a fill that is already too long.
    pub fn payload(
        &self,
        limits: &dyn Fn(&str) -> Option<u64>,
        fill_in: &dyn Fn(&str) -> Result<String, Untestable>,
    ) -> Result<Payload, Untestable> {
        let mut segments = Vec::new();
        let mut fill = None;
        for part in &self.0 {
            match part {
                Part::Text(text) => segments.push(Segment::Text(fill_in(text)?)),
                Part::Hex(hex) => segments.push(Segment::Hex(hex.clone())),
                Part::Repeat(unit, times) => {
                    segments.push(Segment::Repeat { unit: fill_in(unit)?, times: times.resolve(limits)? });
                }
                Part::Fill(unit, bytes) => {
                    if fill.replace((segments.len(), bytes.resolve(limits)?)).is_some() {
                        return Err("`fill_to` is there twice".into());
                    }
                    segments.push(Segment::Repeat { unit: fill_in(unit)?, times: 0 });
                }
            }
        }
        let mut payload = Payload(segments);
        // Hex is checked here, so that a case file with a slip does not load.
        if payload.0.iter().any(|segment| matches!(segment, Segment::Hex(_))) {
            payload.expand(&BTreeMap::new())?;
        }
        let bare = payload.len(&BTreeMap::new()) as u64;
        if let Some((at, bytes)) = fill
            && let Some(Segment::Repeat { unit, times }) = payload.0.get_mut(at)
        {
            let left = bytes.checked_sub(bare).ok_or("`fill_to` is less than the rest")?;
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
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Recipe;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of parts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Recipe, E> {
                Ok(Recipe(vec![Part::Text(text.to_owned())]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Recipe, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Recipe(parts))
            }
        }
        deserializer.deserialize_any(Parts)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            hex: Option<String>,
            repeat: Option<String>,
            times: Option<Amount>,
            fill_to: Option<Amount>,
        }
        struct OnePart;
        impl<'de> Visitor<'de> for OnePart {
            type Value = Part;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, { hex }, { repeat, times } or { repeat, fill_to }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Part, A::Error> {
                match Row::deserialize(de::value::MapAccessDeserializer::new(map))? {
                    Row { hex: Some(hex), repeat: None, times: None, fill_to: None } => Ok(Part::Hex(hex)),
                    Row { repeat: Some(unit), times: Some(times), hex: None, fill_to: None } => {
                        Ok(Part::Repeat(unit, times))
                    }
                    Row { repeat: Some(unit), fill_to: Some(bytes), hex: None, times: None } => {
                        Ok(Part::Fill(unit, bytes))
                    }
                    _ => {
                        Err(de::Error::custom("a part is { hex }, { repeat, times } or { repeat, fill_to }"))
                    }
                }
            }
        }
        deserializer.deserialize_any(OnePart)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a limit such as \"line_bytes_max + 1\"")
            }
            fn visit_i64<E: de::Error>(self, plus: i64) -> Result<Amount, E> {
                Ok(Amount { limit: None, plus })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Step {
        raw: Recipe,
    }

    fn load_one(text: &str) -> Result<Vec<Loaded<Step>>, String> {
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
        assert_eq!(cases[1].case.steps[0].raw, Recipe(vec![Part::Text("a:\"\"".to_owned())]));
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
        let text = |text: &str| Recipe(vec![Part::Text(text.to_owned())]);
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
