//! Excerpts of long texts: the place that matters, with its surroundings as far as there is room.

use crate::data::json::{DecodeLimits, Json, decode};
use crate::data::payload::{Payload, shorten};

/// Limits of texts that are read as JSON here.
pub(super) const LIMITS: DecodeLimits = DecodeLimits { bytes_max: 256 << 10, depth_max: 64 };
/// Sign of an omission.
const LEFT_OUT: &str = "…";
/// Maximum number of neighbours per level that are tried.
const NEIGHBOURS_MAX: usize = 40;
/// Place of the result in an answer of JSON-RPC.
const RESULT: &str = "/result";
/// Minimum length of a quoted value that is searched for.
const QUOTED_BYTES_MIN: usize = 4;
/// Characters kept on both sides of a difference.
const CONTEXT_CHARS: usize = 24;

/// JSON `text` with the value at `pointer`, or else with the container that lacks it. Its neighbours are shown as far as
/// `room` characters hold them, the nearest first. `None` if the text is not JSON.
pub(super) fn around(text: &str, pointer: &str, room: usize) -> Option<String> {
    let value = decode(text.as_bytes(), &LIMITS).ok()?.value;
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut leaf = &value;
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        let at = match leaf {
            Json::Array(items) => name.parse().ok().filter(|at| *at < items.len()),
            Json::Object(members) => members.iter().rposition(|(key, _)| *key == name),
            _ => None,
        };
        let Some(at) = at else { break };
        let level = Level { value: leaf, at, shown: Vec::new() };
        leaf = level.child(at);
        levels.push(level);
    }
    let frame = written(&levels, "").chars().count();
    let leaf = brief(leaf, room.saturating_sub(frame).max(CONTEXT_CHARS));
    for depth in (0..levels.len()).rev() {
        for neighbour in levels[depth].by_distance() {
            levels[depth].shown.push(neighbour);
            if written(&levels, &leaf).chars().count() > room {
                levels[depth].shown.pop();
            }
        }
    }
    Some(shorten(&written(&levels, &leaf), room).into_owned())
}

/// JSON `text` without white space around its elements. `None` if it is not JSON.
pub(super) fn compact(text: &str) -> Option<String> {
    Some(decode(text.as_bytes(), &LIMITS).ok()?.value.to_text())
}

/// Place in the JSON `text` that a finding is about: its own place `at`, which may be within the result, or else the place of
/// the value that it quotes. A missing member is in its container. `None` if the text has no such place.
pub(super) fn place(text: &str, at: Option<&str>, quoted: &str) -> Option<String> {
    let value = decode(text.as_bytes(), &LIMITS).ok()?.value;
    let at = at.filter(|at| !at.is_empty());
    let within = at.map(|at| [at.to_owned(), format!("{RESULT}{at}")]);
    let found = within.iter().flatten().find(|at| value.pointer(at).is_some()).cloned();
    let missing = || {
        let container = |at: &&String| at.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
        let mut within = within.iter().flatten().rev();
        within.find(|at| container(at).is_some_and(|it| it.as_object().is_some())).cloned()
    };
    found.or_else(|| place_of_quoted(&value, quoted)).or_else(missing)
}

/// Place of the first string or number in `value` that is the JSON text `quoted`. Short ones are not unique.
fn place_of_quoted(value: &Json, quoted: &str) -> Option<String> {
    let is_scalar = |value: &Json| matches!(value, Json::String(_) | Json::Number(_));
    let quoted = decode(quoted.as_bytes(), &LIMITS).ok().filter(|_| quoted.len() >= QUOTED_BYTES_MIN)?.value;
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        if is_scalar(&quoted) && *value == quoted {
            return Some(at);
        }
        let name = |key: &str| key.replace('~', "~0").replace('/', "~1");
        match value {
            Json::Array(items) => {
                open.extend(
                    items.iter().enumerate().rev().map(|(index, item)| (format!("{at}/{index}"), item)),
                );
            }
            Json::Object(members) => {
                open.extend(members.iter().rev().map(|(key, item)| (format!("{at}/{}", name(key)), item)));
            }
            _ => {}
        }
    }
    None
}

/// Container on the way to a value.
struct Level<'j> {
    value: &'j Json,
    /// Index of the child on the way.
    at: usize,
    /// Indices of the other children that are shown.
    shown: Vec<usize>,
}

impl<'j> Level<'j> {
    fn len(&self) -> usize {
        match self.value {
            Json::Array(items) => items.len(),
            Json::Object(members) => members.len(),
            _ => 0,
        }
    }

    fn child(&self, at: usize) -> &'j Json {
        match self.value {
            Json::Array(items) => &items[at],
            Json::Object(members) => &members[at].1,
            other => other,
        }
    }

    /// Indices of the other children, the nearest first.
    fn by_distance(&self) -> Vec<usize> {
        let mut others: Vec<usize> = (0..self.len()).filter(|other| *other != self.at).collect();
        others.sort_by_key(|other| other.abs_diff(self.at));
        others.truncate(NEIGHBOURS_MAX);
        others
    }

    /// Text with `inner` for the child on the way.
    fn text(&self, inner: &str) -> String {
        let shown = (0..self.len()).map(|at| {
            let value = match at {
                at if at == self.at => inner.to_owned(),
                at if self.shown.contains(&at) => self.child(at).to_text(),
                _ => return None,
            };
            Some(match self.value {
                Json::Object(members) => member(&members[at].0, &value),
                _ => value,
            })
        });
        enclosed(matches!(self.value, Json::Object(_)), shown)
    }
}

/// Text of nested containers with `leaf` in the innermost.
fn written(levels: &[Level<'_>], leaf: &str) -> String {
    levels.iter().rev().fold(leaf.to_owned(), |inner, level| level.text(&inner))
}

fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", Json::String(key.to_owned()).to_text())
}

/// Object or array of these elements. Each run of missing ones is one sign of omission.
fn enclosed(is_object: bool, elements: impl Iterator<Item = Option<String>>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for element in elements {
        match element {
            Some(text) => parts.push(text),
            None if parts.last().is_some_and(|last| last == LEFT_OUT) => {}
            None => parts.push(LEFT_OUT.to_owned()),
        }
    }
    let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
    format!("{open}{}{close}", parts.join(","))
}

/// Text of a value with at most about `room` characters: its elements as far as they fit.
fn brief(value: &Json, room: usize) -> String {
    let text = value.to_text();
    if text.chars().count() <= room {
        return text;
    }
    let mut left = room.saturating_sub(4);
    let mut fits = |text: String| {
        let length = text.chars().count() + 1;
        (length <= left).then(|| {
            left -= length;
            text
        })
    };
    match value {
        Json::Array(items) => enclosed(false, items.iter().map(|item| fits(item.to_text()))),
        Json::Object(members) => {
            let shown = members.iter().map(|(key, value)| {
                fits(member(key, &value.to_text())).or_else(|| fits(member(key, LEFT_OUT)))
            });
            enclosed(true, shown)
        }
        _ => shorten(&text, room).into_owned(),
    }
}

/// Text of a payload; line feeds become `⏎`.
pub(super) fn sent(payload: &Payload, chars_max: usize) -> String {
    payload.summary(chars_max).replace('\n', "⏎")
}

/// Text of bytes.
pub(super) fn printable(bytes: &[u8], chars_max: usize) -> String {
    Payload::from_bytes(bytes).summary(chars_max)
}

/// Parts in which two texts differ, each on one line of at most `room` characters: members of JSON, a line, or a place
/// within one. With `line`, that line (from 1) of both texts is compared. `None` if there is no difference.
pub(super) fn difference(a: &str, b: &str, line: Option<usize>, room: usize) -> Option<(String, String)> {
    let short = |text: &str| shorten(text, room).into_owned();
    let (a, b) = (a.trim_end_matches('\n'), b.trim_end_matches('\n'));
    let json = |text: &str| decode(text.as_bytes(), &LIMITS).ok().filter(|read| !read.facts.duplicate_keys);
    if let (Some(a), Some(b)) = (json(a), json(b))
        && let Some((a, b)) = values(&a.value, &b.value, room)
    {
        return Some((short(&a), short(&b)));
    }
    let lines = |text| -> Vec<&str> { str::split(text, '\n').collect() };
    let (of_a, of_b) = (lines(a), lines(b));
    if of_a.len() > 1 && of_b.len() > 1 {
        let is_other = |at: &usize| of_a.get(*at) != of_b.get(*at);
        let first = || (0..of_a.len().max(of_b.len())).find(is_other);
        let at = line.map(|line| line - 1).filter(is_other).or_else(first)?;
        let label = |text: &str| format!("line {}: {text}", at + 1);
        let none = |text: Option<&&str>| text.map_or_else(|| "none".to_owned(), |text| short(text));
        return Some(match (of_a.get(at), of_b.get(at)) {
            (Some(a), Some(b)) => {
                let (a, b) = difference(a, b, None, room.saturating_sub(10))?;
                (label(&a), label(&b))
            }
            (a, b) => (label(&none(a)), label(&none(b))),
        });
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let before = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    if before == a.len() && before == b.len() {
        return None;
    }
    let most = a.len().min(b.len()) - before;
    let behind = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let cut = |text: &[char]| {
        let (from, to) =
            (before.saturating_sub(CONTEXT_CHARS), text.len() - behind + CONTEXT_CHARS.min(behind));
        let sign = |is_cut: bool| if is_cut { LEFT_OUT } else { "" };
        let middle: String = text[from..to].iter().collect();
        format!("{}{}{}", sign(from > 0), short(&middle), sign(to < text.len()))
    };
    Some((cut(&a), cut(&b)))
}

/// Members and items in which two values differ. `None` if their texts are equal but for order and white space.
fn values(a: &Json, b: &Json, room: usize) -> Option<(String, String)> {
    let both = |a: Vec<Option<String>>, b: Vec<Option<String>>, is_object| {
        let differs = a.iter().chain(&b).any(Option::is_some);
        differs.then(|| (enclosed(is_object, a.into_iter()), enclosed(is_object, b.into_iter())))
    };
    match (a, b) {
        (Json::Object(of_a), Json::Object(of_b)) => {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (key, value) in of_a {
                match b.get(key) {
                    Some(other) => {
                        let (value, other) = values(value, other, room).unzip();
                        left.push(value.map(|value| member(key, &value)));
                        right.push(other.map(|other| member(key, &other)));
                    }
                    None => left.push(Some(member(key, &brief(value, room)))),
                }
            }
            let new = of_b.iter().filter(|(key, _)| a.get(key).is_none());
            right.extend(new.map(|(key, value)| Some(member(key, &brief(value, room)))));
            both(left, right, true)
        }
        (Json::Array(of_a), Json::Array(of_b)) if of_a.len() == of_b.len() => {
            let pairs = of_a.iter().zip(of_b).map(|(a, b)| values(a, b, room).unzip());
            let (left, right) = pairs.unzip();
            both(left, right, false)
        }
        _ => (a.to_text() != b.to_text()).then(|| (brief(a, room), brief(b, room))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_at_the_place_stays_and_its_neighbours_go_first() {
        let item = |at: usize| format!(r#"{{"uri":"u:{at}","text":"{}","mime":null}}"#, "x".repeat(40));
        let text = format!(r#"{{"id":7,"result":{{"items":[{},{},{}]}}}}"#, item(0), item(1), item(2));
        let shown = around(&text, "/result/items/1/mime", 60).unwrap();
        assert_eq!(shown, r#"{…,"result":{"items":[…,{"uri":"u:1",…,"mime":null},…]}}"#);
        assert!(around(&text, "/result/items/1/name", 90).unwrap().contains(r#"{"uri":"u:1","text":…"#));
        assert_eq!(around(r#"{"a": 1}"#, "/a", 60).unwrap(), r#"{"a":1}"#);
        assert!(around(&text, "", 60).unwrap().chars().count() <= 60);
        assert_eq!(around("{", "/a", 60), None);
    }

    #[test]
    fn a_place_is_its_own_or_within_the_result_or_that_of_the_quoted_value() {
        let text =
            r#"{"id":1004,"result":{"tools":[{"name":"x"}],"nextCursor":"abc"},"params":{"token":"1004"}}"#;
        let of = |at: Option<&str>, quoted: &str| place(text, at, quoted);
        assert_eq!(of(Some("/id"), "").as_deref(), Some("/id"));
        assert_eq!(of(Some("/nextCursor"), "").as_deref(), Some("/result/nextCursor"));
        assert_eq!(of(None, "\"1004\"").as_deref(), Some("/params/token"));
        assert_eq!(of(Some("/missing"), "").as_deref(), Some("/result/missing"));
        assert_eq!((of(None, "1"), of(Some("/no/member"), ""), of(None, "x")), (None, None, None));
    }

    #[test]
    fn two_texts_are_shown_by_their_difference() {
        let of = |a: &str, b: &str| difference(a, b, None, 80).map(|(a, b)| format!("{a} / {b}"));
        let long = "x".repeat(100);
        let job = |goal: &str| format!(r#"{{"why":"{long}","goal":{goal},"menu":[1,{{"tags":{goal}}}]}}"#);
        let expected = r#"{…,"goal":[],"menu":[…,{"tags":[]}]} / {…,"goal":"a","menu":[…,{"tags":"a"}]}"#;
        assert_eq!(of(&job("[]"), &job("\"a\"")).unwrap(), expected);
        assert_eq!(of(r#"{"a":1}"#, r#"{"b":1,"a":1}"#).unwrap(), r#"{…} / {…,"b":1}"#);
        assert_eq!(of(r#"{"a":1}"#, r#"{"a":1}"#), None);
        assert_eq!(of(r#"{"a": 1}"#, r#"{"a":1}"#).unwrap(), r#"{"a": 1} / {"a":1}"#);
        assert_eq!(of("1.0", "1").unwrap(), "1.0 / 1");
        let lines = difference("a\n{\"b\":1}\nc\n", "x\n{\"b\":2}\nc\n", Some(2), 80).unwrap();
        assert_eq!(lines, ("line 2: {\"b\":1}".to_owned(), "line 2: {\"b\":2}".to_owned()));
        assert_eq!(of("a\nb", "a\nb\nc").unwrap(), "line 3: none / line 3: c");
        let (a, b) = difference(&format!("{long}A{long}"), &format!("{long}{long}"), None, 80).unwrap();
        assert!(
            a.starts_with("…xxx") && a.contains("xAx") && a.chars().count() < 60 && !b.contains('A'),
            "{a} {b}"
        );
    }
}
