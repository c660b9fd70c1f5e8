//! Cases: checks written as data.
//!
//! A case file is TOML with one `[[case]]` a check. This module reads the rows and is strict about them: an unknown
//! key, a row that means nothing and an id that comes twice are load errors that name file and id. What a step says
//! is the boundary's business; it gives the type of its steps and makes checks of the rows.
//!
//! A row with a table `each` stands for one case for each of its entries: `$NAME` in id and title is the entry's
//! name, `$EACH` in any text is its value. With `together = true` it stays one case, and only the steps that hold
//! `$EACH` are there once for each entry. Large inputs are recipes ([`Recipe`]): a unit and how often, in numbers or
//! relative to a limit by name, never a blob.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::{Table, Value};

use crate::clause::ClauseId;
use crate::payload::{Payload, Segment};

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
    /// Environment of the peer.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is sent and what must come.
    pub steps: Vec<S>,
    /// For each step the place among the rows of `steps` in the file: steps of one `together` row share it.
    #[serde(skip)]
    pub families: Vec<usize>,
}

/// A row with the file it stands in.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// Name of the file, without its extension.
    pub file: String,
    /// The row.
    pub case: Case<S>,
}

/// Reads case files, given as (name, text), in order.
///
/// # Errors
/// One sentence with file and id (or number) of the first row that cannot be used.
pub fn load<'a, S: DeserializeOwned>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Loaded<S>>, String> {
    let mut loaded = Vec::new();
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for (file, text) in files {
        let rows: File = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        for (index, row) in rows.case.into_iter().enumerate() {
            let name = row
                .get("id")
                .and_then(Value::as_str)
                .map_or_else(|| format!("row {}", index + 1), |id| format!("case {id:?}"));
            let wrong = |error: &dyn fmt::Display| format!("{file}, {name}: {error}");
            for (table, families) in spread(row).map_err(|error| wrong(&error))? {
                let case: Case<S> = table.try_into().map_err(|error| wrong(&error))?;
                let case = Case { families, ..case };
                well_formed(&case).map_err(|error| wrong(&error))?;
                let modes = if case.modes.is_empty() { vec![String::new()] } else { case.modes.clone() };
                for mode in modes {
                    if !seen.insert((mode, case.id.clone())) {
                        return Err(format!("{file}, case {:?}: the id is there twice", case.id));
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
fn spread(mut row: Table) -> Result<Vec<(Table, Vec<usize>)>, String> {
    let steps = row.get("steps").and_then(Value::as_array).map_or(0, Vec::len);
    let entries = match row.remove("each") {
        None => return Ok(vec![(row, (0..steps).collect())]),
        Some(Value::Table(entries)) if !entries.is_empty() => entries,
        Some(_) => return Err("`each` is a table of names and texts".to_owned()),
    };
    let texts: Vec<(String, String)> = entries
        .into_iter()
        .map(|(name, text)| match text {
            Value::String(text) => Ok((name, text)),
            _ => Err(format!("`each.{name}` is not a string")),
        })
        .collect::<Result<_, _>>()?;
    if row.remove("together").is_some_and(|together| together == Value::Boolean(true)) {
        let mut families = Vec::new();
        if let Some(Value::Array(steps)) = row.get_mut("steps") {
            let mut all = Vec::new();
            for (family, step) in steps.iter().enumerate() {
                all.extend(spread_step(step, &texts));
                families.resize(all.len(), family);
            }
            *steps = all;
        }
        return Ok(vec![(row, families)]);
    }
    let mut tables = Vec::new();
    for (name, text) in texts {
        let mut value = Value::Table(row.clone());
        replace(&mut value, &name, &text);
        if let Value::Table(table) = value {
            tables.push((table, (0..steps).collect()));
        }
    }
    Ok(tables)
}

/// One step for each text, or the step itself where it does not speak of them.
fn spread_step(step: &Value, texts: &[(String, String)]) -> Vec<Value> {
    if !step.to_string().contains("$EACH") {
        return vec![step.clone()];
    }
    let one = |(name, text): &(String, String)| {
        let mut step = step.clone();
        replace(&mut step, name, text);
        step
    };
    texts.iter().map(one).collect()
}

fn replace(value: &mut Value, name: &str, text: &str) {
    match value {
        Value::String(string) => *string = string.replace("$NAME", name).replace("$EACH", text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, name, text)),
        Value::Table(table) => table.iter_mut().for_each(|(_, item)| replace(item, name, text)),
        _ => {}
    }
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
    pub fn resolve(&self, limits: &dyn Fn(&str) -> Option<u64>) -> Result<u64, String> {
        let base = match &self.limit {
            None => 0,
            Some(name) => limits(name).ok_or_else(|| format!("there is no limit called {name:?}"))?,
        };
        base.checked_add_signed(self.plus).ok_or_else(|| format!("{base} {:+} is negative", self.plus))
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
        fill_in: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Payload, String> {
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
                        return Err("`fill_to` is there twice".to_owned());
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
                return Err(format!("{left} bytes cannot be filled with {unit:?}"));
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
        load([("a.toml", text)])
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
            assert!(error.contains(word), "{error}");
        }
        let error = load_one(&ROW.replace("'x'", "[{repeat='x'}]")).unwrap_err();
        assert!(error.contains("fill_to"), "{error}");
    }
}
