//! Payloads: descriptions of bytes, so that a 10 MiB message is one line of text in a case, transcript or reproducer.

use crate::data::blame::HarnessFault;
use crate::data::text::hex;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Part of a [`Payload`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Segment {
    /// UTF-8 text.
    Text(String),
    /// Arbitrary bytes in hexadecimal.
    Hex(String),
    /// `unit` repeated `times` times.
    Repeat {
        /// UTF-8 text of one repetition.
        unit: String,
        /// Number of repetitions.
        times: u64,
    },
    /// Value known only during the conversation: captured from an earlier reply or set by a fixture.
    Var(String),
}

/// Bytes as a list of [`Segment`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(pub Vec<Segment>);

/// Values of variables during a conversation, by name.
pub type Vars = BTreeMap<String, String>;

impl Payload {
    /// Payload of one text segment.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Segment::Text(text.into())])
    }

    /// Describes `bytes` briefly: text if they are UTF-8, runs of a repeated byte as [`Segment::Repeat`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        /// Shorter runs take more space as a segment than as text.
        const RUN_MIN: usize = 64;
        let mut segments = Vec::new();
        let mut literal_from = 0;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let run = bytes[at..].iter().take_while(|other| **other == byte).count();
            if run >= RUN_MIN && byte.is_ascii() {
                push_literal(&mut segments, &bytes[literal_from..at]);
                segments.push(Segment::Repeat { unit: char::from(byte).to_string(), times: run as u64 });
                literal_from = at + run;
            }
            at += run;
        }
        push_literal(&mut segments, &bytes[literal_from..]);
        Self(segments)
    }

    /// Joins adjacent text segments.
    #[must_use]
    pub fn merged(self) -> Self {
        let mut out: Vec<Segment> = Vec::new();
        for segment in self.0 {
            match (out.last_mut(), segment) {
                (Some(Segment::Text(last)), Segment::Text(text)) => last.push_str(&text),
                (_, segment) => out.push(segment),
            }
        }
        Self(out)
    }

    /// Appends another payload.
    pub fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Appends `times` repetitions of `unit`.
    pub fn repeat(mut self, unit: impl Into<String>, times: u64) -> Self {
        self.0.push(Segment::Repeat { unit: unit.into(), times });
        self
    }

    /// Appends a variable.
    pub fn var(mut self, name: impl Into<String>) -> Self {
        self.0.push(Segment::Var(name.into()));
        self
    }

    /// Number of bytes, with variables from `vars` (an unknown one counts 0).
    pub fn len(&self, vars: &Vars) -> usize {
        let lengths = self.0.iter().map(|segment| match segment {
            Segment::Text(text) => text.len(),
            Segment::Hex(hex) => hex.len() / 2,
            Segment::Repeat { unit, times } => {
                unit.len().saturating_mul(usize::try_from(*times).unwrap_or(usize::MAX))
            }
            Segment::Var(name) => vars.get(name).map_or(0, String::len),
        });
        lengths.fold(0, usize::saturating_add)
    }

    /// Replaces each variable by its value.
    ///
    /// # Errors
    /// Names the undefined variable.
    pub fn filled(&self, vars: &Vars) -> Result<Self, HarnessFault> {
        let fill = |segment: &Segment| match segment {
            Segment::Var(name) => {
                let value = vars.get(name).ok_or_else(|| format!("variable {name:?} has no value"))?;
                Ok(Segment::Text(value.clone()))
            }
            other => Ok(other.clone()),
        };
        self.0.iter().map(fill).collect::<Result<_, _>>().map(Self)
    }

    /// First `bytes` bytes. Variables count as empty.
    #[must_use]
    pub fn prefix(&self, bytes: u64) -> Self {
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut segments = Vec::new();
        for segment in &self.0 {
            let one = Self(vec![segment.clone()]);
            let length = one.len(&Vars::new());
            if length <= left {
                left -= length;
                segments.extend(one.0);
                continue;
            }
            if let Segment::Repeat { unit, .. } = segment {
                let times = (left / unit.len()) as u64;
                segments.extend((times > 0).then(|| Segment::Repeat { unit: unit.clone(), times }));
                segments.extend(Self::from_bytes(&unit.as_bytes()[..left % unit.len()]).0);
            } else {
                segments.extend(Self::from_bytes(&one.expand(&Vars::new()).unwrap_or_default()[..left]).0);
            }
            break;
        }
        Self(segments)
    }

    /// Number of line feeds outside variables.
    pub fn lines(&self) -> usize {
        let count = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.0
            .iter()
            .map(|segment| match segment {
                Segment::Text(text) => count(text),
                Segment::Hex(hex) => hex.as_bytes().chunks(2).filter(|pair| pair == b"0a").count(),
                Segment::Repeat { unit, times } => {
                    count(unit).saturating_mul(usize::try_from(*times).unwrap_or(usize::MAX))
                }
                Segment::Var(_) => 0,
            })
            .sum()
    }

    /// True if the last byte outside variables is a line feed.
    pub fn ends_line(&self) -> bool {
        match self.0.last() {
            Some(Segment::Text(text)) => text.ends_with('\n'),
            Some(Segment::Hex(hex)) => hex.ends_with("0a"),
            Some(Segment::Repeat { unit, .. }) => unit.ends_with('\n'),
            Some(Segment::Var(_)) | None => false,
        }
    }

    /// Names of all variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Var(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Expands to bytes. Values are inserted unchanged: a variable inside a JSON string needs an escaped value.
    ///
    /// # Errors
    /// Names the undefined variable, or reports a malformed `hex` segment.
    pub fn expand(&self, vars: &Vars) -> Result<Vec<u8>, HarnessFault> {
        let mut bytes = Vec::with_capacity(self.len(vars));
        for segment in &self.0 {
            match segment {
                Segment::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Segment::Hex(hex) => {
                    bytes.extend(unhex(hex).ok_or_else(|| format!("malformed hex {hex:?}"))?)
                }
                Segment::Repeat { unit, times } => repeat_onto(&mut bytes, unit.as_bytes(), *times),
                Segment::Var(name) => bytes.extend_from_slice(
                    vars.get(name).ok_or_else(|| format!("variable {name:?} has no value"))?.as_bytes(),
                ),
            }
        }
        Ok(bytes)
    }

    /// One line for people of at most `chars_max` characters: text unchanged, repetitions as `⟨…×n⟩`.
    pub fn summary(&self, chars_max: usize) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Text(text) => out.push_str(text),
                Segment::Hex(hex) => out.push_str(&format!("⟨hex {hex}⟩")),
                Segment::Repeat { unit, times } => out.push_str(&format!("⟨{}×{times}⟩", shorten(unit, 16))),
                Segment::Var(name) => out.push_str(&format!("⟨{name}⟩")),
            }
        }
        shorten(out.trim_end_matches('\n'), chars_max).into_owned()
    }
}

/// Appends `unit` `times` times by doubling, as fast as memory is copied.
fn repeat_onto(bytes: &mut Vec<u8>, unit: &[u8], times: u64) {
    let from = bytes.len();
    let end = from + unit.len() * usize::try_from(times).unwrap_or(usize::MAX);
    if end > from {
        bytes.extend_from_slice(unit);
    }
    while bytes.len() < end {
        let more = (bytes.len() - from).min(end - bytes.len());
        bytes.extend_from_within(from..from + more);
    }
}

fn push_literal(segments: &mut Vec<Segment>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => segments.push(Segment::Text(text.to_owned())),
        Err(error) => {
            let (good, rest) = bytes.split_at(error.valid_up_to());
            if !good.is_empty() {
                segments.push(Segment::Text(String::from_utf8_lossy(good).into_owned()));
            }
            let bad = error.error_len().unwrap_or(rest.len());
            segments.push(Segment::Hex(hex(&rest[..bad])));
            push_literal_rest(segments, &rest[bad..]);
        }
    }
}

/// Joins adjacent invalid bytes in one hex segment, so that random bytes neither recurse nor bloat.
fn push_literal_rest(segments: &mut Vec<Segment>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                segments.push(Segment::Text(text.to_owned()));
                return;
            }
            Err(error) => {
                let (good, rest) = bytes.split_at(error.valid_up_to());
                let bad = error.error_len().unwrap_or(rest.len());
                match segments.last_mut() {
                    Some(Segment::Hex(text)) if good.len() < 8 => {
                        text.push_str(&hex(good));
                        text.push_str(&hex(&rest[..bad]));
                    }
                    _ => {
                        segments.push(Segment::Text(String::from_utf8_lossy(good).into_owned()));
                        segments.push(Segment::Hex(hex(&rest[..bad])));
                    }
                }
                bytes = &rest[bad..];
            }
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect()
}

/// Shortens `text` to at most `chars_max` characters, keeping both ends.
pub fn shorten(text: &str, chars_max: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= chars_max {
        return Cow::Borrowed(text);
    }
    let half = chars_max.saturating_sub(1) / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    Cow::Owned(format!("{head}…{tail}"))
}

/// Shortens two texts for comparison: omits their long common part, so that the place where they differ stays visible
/// even if [`shorten`] would cut it.
pub fn shorten_pair(a: &str, b: &str, chars_max: usize) -> (String, String) {
    /// Bytes kept before and after the omission.
    const CONTEXT: usize = 24;
    let plain = |text: &str| shorten(text, chars_max).into_owned();
    let both_fit = [a, b].iter().all(|text| text.chars().count() <= chars_max);
    let Some((at_a, at_b, run)) = alike(a, b).filter(|(.., run)| !both_fit && *run > chars_max / 2) else {
        return (plain(a), plain(b));
    };
    let elided = |text: &str, at: usize| {
        let from = char_begin(text, at.saturating_sub(WORDS_CHARS));
        let (head, tail) = (char_begin(text, at + CONTEXT), char_begin(text, at + run - CONTEXT));
        let tail = tail.max(head);
        let cut = if from > 0 { "…" } else { "" };
        let left_out = tail - head;
        shorten(&format!("{cut}{}⟨{left_out} bytes alike⟩{}", &text[from..head], &text[tail..]), chars_max)
            .into_owned()
    };
    (elided(a, at_a), elided(b, at_b))
}

/// Number of characters within which the value in a text begins, after the words of an expectation.
const WORDS_CHARS: usize = 80;

/// Longest common run of `a` and `b` that begins within the first words of `a`: its offset in each, and its length in
/// bytes.
fn alike(a: &str, b: &str) -> Option<(usize, usize, usize)> {
    const CHARS_MIN: usize = 16;
    let mut shift_before = None;
    let runs = a.char_indices().take(WORDS_CHARS).filter_map(|(at_a, _)| {
        let begin: String = a[at_a..].chars().take(CHARS_MIN).collect();
        let at_b = b.find(&begin)?;
        // An equal shift belongs to the run found before.
        let shift = at_b.wrapping_sub(at_a);
        if shift_before.replace(shift) == Some(shift) {
            return None;
        }
        let same = a[at_a..].chars().zip(b[at_b..].chars()).take_while(|(a, b)| a == b);
        Some((at_a, at_b, same.map(|(c, _)| c.len_utf8()).sum()))
    });
    // Among equally long runs, the first shows the most.
    runs.reduce(|best, run| if run.2 > best.2 { run } else { best })
}

/// Start of the character that contains byte `at`.
fn char_begin(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_long_texts_are_cut_where_they_differ() {
        let long = |middle: &str| format!("{{\"a\":\"{}{middle}{}\"}}", "é".repeat(500), "y".repeat(500));
        let (a, b) = (format!("the result {}", long("A")), format!("{{\"result\":{}}}", long("B")));
        let (a, b) = shorten_pair(&a, &b, 240);
        assert!(a.starts_with("the result {") && a.contains("éA") && b.contains("éB"), "{a}\n{b}");
        assert!(
            a.contains("bytes alike⟩") && [&a, &b].iter().all(|text| text.chars().count() <= 240),
            "{a}\n{b}"
        );
        let same = ("x".repeat(240), "x".repeat(239));
        assert_eq!(shorten_pair(&same.0, &same.1, 240), same, "short ones stay");
        let (a, b) = shorten_pair(&"x".repeat(9_000), "nothing alike", 100);
        assert_eq!((a.chars().count(), b.as_str()), (99, "nothing alike"));
        let early = shorten_pair(&format!("A{}", long("C")), &format!("B{}", long("C")), 100);
        assert_ne!(early.0, early.1);
    }

    fn round_trip(bytes: &[u8]) -> Payload {
        let payload = Payload::from_bytes(bytes);
        assert_eq!(payload.expand(&Vars::new()).unwrap(), bytes);
        assert_eq!(payload.len(&Vars::new()), bytes.len());
        payload
    }

    #[test]
    fn describes_any_bytes_without_loss() {
        round_trip(b"");
        round_trip(b"{\"a\":1}\n");
        round_trip(&[0xff, 0xfe, b'a', 0xc3]);
        let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        round_trip(&noise);
    }

    #[test]
    fn a_long_run_becomes_one_segment() {
        let mut bytes = b"{\"x\":\"".to_vec();
        bytes.extend(std::iter::repeat_n(b'a', 10 << 20));
        bytes.extend(b"\"}\n");
        assert_eq!(round_trip(&bytes).0.len(), 3);
    }

    #[test]
    fn repeats_any_unit_any_number_of_times() {
        for times in [0, 1, 2, 3, 7, 8, 1_000] {
            let expanded =
                Payload::text("<").repeat("a€", times).then(Payload::text(">")).expand(&Vars::new());
            assert_eq!(expanded.unwrap(), format!("<{}>", "a€".repeat(times as usize)).into_bytes());
        }
        assert_eq!(Payload::default().repeat("", 5).expand(&Vars::new()).unwrap(), b"");
    }

    #[test]
    fn a_prefix_has_the_first_bytes() {
        let payload =
            Payload::text("a€").repeat("<é>", 9).then(Payload(vec![Segment::Hex("ff00fe".to_owned())]));
        let whole = payload.expand(&Vars::new()).unwrap();
        for bytes in 0..=whole.len() + 1 {
            let prefix = payload.prefix(bytes as u64).expand(&Vars::new()).unwrap();
            assert_eq!(prefix, whole[..bytes.min(whole.len())]);
        }
        assert_eq!(payload.prefix(u64::MAX), payload);
        assert_eq!(Payload::default().repeat("xy", u64::MAX).prefix(5).0.len(), 2, "nothing long is built");
    }

    #[test]
    fn an_unknown_variable_is_named() {
        let error = Payload::text("a").var("token").expand(&Vars::new()).unwrap_err().to_string();
        assert!(error.contains("token"), "{error}");
    }
}
