//! Near misses of a secret or name: texts that a careless comparison accepts.
//!
//! A peer accepts one of them if it compares only a prefix or suffix, folds case, trims blanks, stops at NUL, takes a
//! namespace for the whole name, decodes once too often or normalises Unicode. Every boundary uses this list for
//! tokens, signatures, nonces, methods, aids, SIDs and file names. [`near_values`] covers words and flags.

use crate::data::json::Json;

/// Text that differs from the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// Kind of difference in kebab case: part of a check's id.
    pub kind: &'static str,
    /// The text; never equal to the right one.
    pub text: String,
}

/// Look-alikes of ASCII characters: Cyrillic letters, full-width digits, other hyphens and dots.
const LOOK_ALIKES: &[(char, char)] = &[
    ('a', '\u{430}'),
    ('e', '\u{435}'),
    ('o', '\u{43e}'),
    ('c', '\u{441}'),
    ('p', '\u{440}'),
    ('x', '\u{445}'),
    ('A', '\u{410}'),
    ('E', '\u{415}'),
    ('O', '\u{41e}'),
    ('C', '\u{421}'),
    ('P', '\u{420}'),
    ('S', '\u{405}'),
    ('I', '\u{406}'),
    ('0', '\u{ff10}'),
    ('1', '\u{ff11}'),
    ('7', '\u{ff17}'),
    ('-', '\u{2010}'),
    ('.', '\u{ff0e}'),
    ('_', '\u{ff3f}'),
];

/// Offset from a printable ASCII character to its full-width form.
const FULL_WIDTH: u32 = 0xfee0;

/// Characters that separate the parts of a name: `AID.X.v1`, `tools.x:run`.
const BETWEEN_PARTS: [char; 2] = ['.', ':'];

/// Minimum length of a text that counts as hexadecimal, characters.
const HEX_MIN: usize = 8;

/// Character that differs from `c`. In hexadecimal text it is another hexadecimal digit; elsewhere it is none, so that
/// the text no longer matches a pattern of such digits.
fn changed(c: char, in_hex: bool) -> char {
    let of = |letters: &[u8], at: u8| char::from(letters[usize::from(at) % letters.len()]);
    match c {
        '0'..='9' if in_hex => of(b"abcdef", c as u8 - b'0'),
        'a'..='f' | 'A'..='F' if in_hex => of(b"0123456789", c as u8 & 7),
        '0'..='9' => of(b"ghijklmnop", c as u8 - b'0'),
        'a'..='z' => of(b"ghijklmnopqrstuvwxyz", c as u8 - b'a' + 1),
        'A'..='Z' => of(b"GHIJKLMNOPQRSTUVWXYZ", c as u8 - b'A' + 1),
        _ => 'g',
    }
}

/// Near misses of equal length that differ in the last two, the middle or the first letters or digits. Two at the end,
/// because base64 ignores some bits of the last.
fn of_equal_length(right: &str) -> Vec<(&'static str, String)> {
    let chars: Vec<char> = right.chars().collect();
    let places: Vec<usize> =
        chars.iter().enumerate().filter(|(_, c)| c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    let in_hex = chars.len() >= HEX_MIN && chars.iter().all(char::is_ascii_hexdigit);
    let with_changes = |places: &[usize]| {
        let mut other = chars.clone();
        places.iter().for_each(|&at| other[at] = changed(other[at], in_hex));
        other.into_iter().collect()
    };
    let last = &places[places.len().saturating_sub(2)..];
    let middle = places.len() / 2;
    let middle = places.get(middle..=middle).unwrap_or_default();
    let first = places.get(..1).unwrap_or_default();
    [("last-changed", last), ("middle-changed", middle), ("first-changed", first)]
        .map(|(kind, places)| (kind, with_changes(places)))
        .into()
}

/// Near misses of a name with a part dropped or added.
fn of_parts(right: &str) -> Vec<(&'static str, String)> {
    let between = right.chars().rfind(|c| BETWEEN_PARTS.contains(c)).unwrap_or('.');
    let mut misses =
        vec![("part-behind", format!("{right}{between}x")), ("part-before", format!("x{between}{right}"))];
    if let (Some((_, rest)), Some((start, _))) =
        (right.split_once(BETWEEN_PARTS), right.rsplit_once(BETWEEN_PARTS))
    {
        misses.extend([("last-part-missing", start.to_owned()), ("first-part-missing", rest.to_owned())]);
        if let Some((_, last)) = rest.rsplit_once(BETWEEN_PARTS) {
            let first = &right[..right.len() - rest.len()];
            misses.push(("middle-part-missing", format!("{first}{last}")));
        }
    }
    misses
}

/// All near misses of `right`, without repetition, in a fixed order. Inapplicable kinds are omitted: a text without
/// letters has no other case, one of one character no half.
pub fn near_misses(right: &str) -> Vec<NearMiss> {
    let mut misses: Vec<NearMiss> = Vec::new();
    let mut add = |kind: &'static str, text: String| {
        if text != right && misses.iter().all(|miss| miss.text != text) {
            misses.push(NearMiss { kind, text });
        }
    };
    let chars: Vec<char> = right.chars().collect();
    let take = |count: usize| chars[..count].iter().collect::<String>();
    if chars.len() > 1 {
        add("shorter-by-one", take(chars.len() - 1));
        add("shorter-by-half", take(chars.len() / 2));
        add("first-missing", chars[1..].iter().collect());
    }
    if let Some(last) = chars.last() {
        add("longer-by-one", format!("{right}{last}"));
        add("twice", format!("{right}{right}"));
    }
    add("upper-case", right.to_ascii_uppercase());
    add("lower-case", right.to_ascii_lowercase());
    if let Some(at) = chars.iter().position(char::is_ascii_alphabetic) {
        let mut other = chars.clone();
        other[at] = if other[at].is_ascii_lowercase() {
            other[at].to_ascii_uppercase()
        } else {
            other[at].to_ascii_lowercase()
        };
        add("one-letter-of-other-case", other.into_iter().collect());
    }
    // Letter that Unicode's compatibility forms (NFKC) equate with the plain one.
    let full_width =
        |c: &char| char::from_u32(u32::from(*c) + FULL_WIDTH).filter(|_| c.is_ascii_alphabetic());
    if let Some((at, wide)) = chars.iter().enumerate().find_map(|(at, c)| Some((at, full_width(c)?))) {
        let mut other = chars.clone();
        other[at] = wide;
        add("full-width-letter", other.into_iter().collect());
    }
    add("other-alphabet", swapped(right, &[('+', '-'), ('/', '_')]));
    add("without-padding", right.trim_end_matches('=').to_owned());
    add("more-padding", format!("{right}="));
    add("blank-before", format!(" {right}"));
    add("blank-behind", format!("{right} "));
    add("tab-behind", format!("{right}\t"));
    add("line-feed-behind", format!("{right}\n"));
    add("nul-behind", format!("{right}\0"));
    add("nul-and-more-behind", format!("{right}\0x"));
    if let Some(first) = right.bytes().next().filter(u8::is_ascii) {
        add("percent-encoded", format!("%{first:02X}{}", &right[1..]));
    }
    let alike = |known: &&char| LOOK_ALIKES.iter().any(|(ascii, _)| ascii == *known);
    if let Some(known) = chars.iter().find(alike) {
        let other = LOOK_ALIKES.iter().find(|(ascii, _)| ascii == known).map_or(*known, |(_, other)| *other);
        add("look-alike", right.replacen(*known, &other.to_string(), 1));
    }
    add("zero-width-behind", format!("{right}\u{200b}"));
    for (kind, text) in of_equal_length(right).into_iter().chain(of_parts(right)) {
        add(kind, text);
    }
    misses
}

/// Near misses of a word or flag, as JSON values: other case, other letters, other types. Absence is omitted, because
/// every protocol spells it in its own way.
pub(crate) fn near_values(right: &Json) -> Vec<(&'static str, Json)> {
    let within = [
        ("in-an-array", Json::Array(vec![right.clone()])),
        ("in-an-object", Json::object([("value", right.clone())])),
    ];
    let others = [
        ("null", Json::Null),
        ("true", Json::Bool(true)),
        ("false", Json::Bool(false)),
        ("zero", Json::from(0)),
        ("one", Json::from(1)),
        ("empty-text", Json::from("")),
        ("empty-array", Json::Array(Vec::new())),
    ];
    let texts = match right {
        Json::String(text) => {
            let capital = text
                .char_indices()
                .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
            let capital = NearMiss { kind: "capital", text: capital.collect() };
            let mut misses = near_misses(text);
            if capital.text != *text && misses.iter().all(|miss| miss.text != capital.text) {
                misses.push(capital);
            }
            misses
        }
        _ => vec![NearMiss { kind: "as-text", text: right.to_text() }],
    };
    let texts = texts.into_iter().map(|miss| (miss.kind, Json::from(miss.text.as_str())));
    // The other flag is valid, too.
    let is_near = |value: &Json| value != right && !matches!((value, right), (Json::Bool(_), Json::Bool(_)));
    texts.chain(others).chain(within).filter(|(_, value)| is_near(value)).collect()
}

/// All kinds of near misses, for secrets that become known during a conversation.
pub fn kinds() -> Vec<&'static str> {
    /// Texts that together have all kinds. If a text ends in padding, the near miss with more padding equals another
    /// one.
    const EVERY: [&str; 2] = ["aB+/c0==", "aB+/c0"];
    let mut kinds: Vec<&'static str> = Vec::new();
    for kind in EVERY.into_iter().flat_map(near_misses).map(|miss| miss.kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Near miss of this kind; `right` twice if the kind does not apply.
pub fn near_miss(right: &str, kind: &str) -> String {
    let found = near_misses(right).into_iter().find(|miss| miss.kind == kind);
    found.map_or_else(|| format!("{right}{right}"), |miss| miss.text)
}

/// Separator in a variable's name between that of a captured value and the kind of its near miss: `token~upper-case`.
pub const MARK: char = '~';

/// `text` with the characters of each pair exchanged.
fn swapped(text: &str, pairs: &[(char, char)]) -> String {
    let other = |c: char| {
        let from = pairs.iter().find(|(a, b)| c == *a || c == *b);
        from.map_or(c, |&(a, b)| if c == a { b } else { a })
    };
    text.chars().map(other).collect()
}

/// Maximum number of near misses of an id.
pub const NEAR_IDS_MAX: usize = 32;

/// Ids that a careless comparison takes for `id`, but never small numbers.
pub fn near_ids(id: &Json) -> Vec<Json> {
    let text = |text: &str| near_misses(text).into_iter().map(|miss| Json::from(miss.text.as_str()));
    match id {
        Json::String(id) => text(id).collect(),
        // Neighbours of a small counter may be other ids; these are not.
        Json::Number(_) => id.as_i64().map_or_else(Vec::new, |number| {
            let numbers =
                [format!("{number}.5"), (number + (1 << 32)).to_string(), (-number - 1).to_string()];
            let numbers = numbers.iter().filter_map(|number| number.parse().ok());
            let number = number.to_string();
            let texts = near_misses(&number).into_iter().map(|miss| miss.text);
            // Without its blank, the text would be another number.
            let texts = texts.filter(|text| text.trim() == number || text.parse::<i64>().is_err());
            numbers.chain(texts.map(|text| Json::from(text.as_str()))).collect()
        }),
        _ => Vec::new(),
    }
}

/// Equal id of the other type: an integer as text, a numeric text as integer.
pub fn of_the_other_type(id: &Json) -> Option<Json> {
    match id {
        Json::Number(_) => id.as_i64().map(|number| Json::from(number.to_string().as_str())),
        Json::String(text) => {
            let number: i64 = text.parse().ok()?;
            (number.to_string() == *text).then(|| Json::from(number))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_near_miss_is_the_right_text_or_another_one() {
        for right in ["", "a", "é", "\u{1F600}", "AID.MY.ECHO.v1", "SID0001", "ab+/cd==", "n-1", "run.sh"] {
            let misses = near_misses(right);
            let texts: BTreeSet<&str> = misses.iter().map(|miss| miss.text.as_str()).collect();
            let kinds: BTreeSet<&str> = misses.iter().map(|miss| miss.kind).collect();
            assert_eq!((texts.len(), kinds.len()), (misses.len(), misses.len()), "{right:?}");
            assert!(!texts.contains(right), "{right:?}");
        }
    }

    #[test]
    fn secrets_have_every_kind_and_names_most() {
        let text = |right: &str, kind: &str| {
            near_misses(right).into_iter().find(|miss| miss.kind == kind).map(|miss| miss.text)
        };
        assert_eq!(text("ab+/cd==", "other-alphabet").as_deref(), Some("ab-_cd=="));
        assert_eq!(text("ab+/cd==", "without-padding").as_deref(), Some("ab+/cd"));
        assert_eq!(text("aBc", "one-letter-of-other-case").as_deref(), Some("ABc"));
        assert_eq!(text("echo", "percent-encoded").as_deref(), Some("%65cho"));
        assert_eq!(text("echo", "look-alike").as_deref(), Some("\u{435}cho"));
        assert_eq!(text("1-echo", "full-width-letter").as_deref(), Some("1-\u{ff45}cho"));
        assert_eq!(text("echo", "nul-and-more-behind").as_deref(), Some("echo\0x"));
        assert_eq!(text("123", "upper-case"), None);
        assert_eq!(near_miss("123", "upper-case"), "123123");
        assert_eq!(near_miss("abc", "upper-case"), "ABC");
        for kind in [
            "upper-case",
            "other-alphabet",
            "more-padding",
            "longer-by-one",
            "without-padding",
            "percent-encoded",
            "look-alike",
            "full-width-letter",
        ] {
            assert!(kinds().contains(&kind), "{kind}");
        }
    }

    #[test]
    fn misses_of_equal_length_keep_the_digits_of_a_hexadecimal_text_only() {
        for (right, last, middle) in [
            ("00ff00ff", "00ff0066", "00ffa0ff"),
            ("env_0f", "env_gm", "eni_0f"),
            ("aB+/c0==", "aB+/jg==", "aB+/j0=="),
            ("SID0001", "SID00gh", "SIDg001"),
            ("7", "n", "n"),
        ] {
            assert_eq!((near_miss(right, "last-changed"), right.len()), (last.to_owned(), last.len()));
            assert!(near_misses(right).iter().any(|miss| miss.text == middle), "{right}");
        }
        for right in ["az", "AZ", "zz"] {
            assert!(near_misses(right).iter().any(|miss| miss.kind == "last-changed"), "{right}");
        }
    }

    #[test]
    fn parts_of_a_name_are_dropped_and_added() {
        let of = |right: &str| {
            let misses = near_misses(right).into_iter().filter(|miss| miss.kind.contains("part"));
            misses.map(|miss| miss.text).collect::<Vec<_>>()
        };
        assert_eq!(of("AID.X.Y.v1"), ["AID.X.Y.v1.x", "x.AID.X.Y.v1", "AID.X.Y", "X.Y.v1", "AID.v1"]);
        assert_eq!(of("t:run"), ["t:run:x", "x:t:run", "t", "run"]);
        assert_eq!(of("python3"), ["python3.x", "x.python3"]);
    }

    #[test]
    fn near_values_of_a_word_and_a_flag_are_never_right() {
        for (right, some) in
            [("\"ENFORCED\"", "\"Enforced\""), ("\"a\"", "[\"a\"]"), ("true", "\"true\""), ("false", "0")]
        {
            let right: Json = right.parse().unwrap();
            let values = near_values(&right);
            assert!(values.iter().any(|(_, value)| value.to_text() == some), "{values:?}");
            assert!(values.iter().all(|(_, value)| *value != right), "{values:?}");
            assert_eq!(values.iter().map(|(kind, _)| kind).collect::<BTreeSet<_>>().len(), values.len());
        }
        assert!(near_values(&Json::Bool(true)).iter().all(|(_, value)| *value != Json::Bool(false)));
    }

    #[test]
    fn near_ids_are_others() {
        for id in ["7", "0", "-3", "\"a-1\"", "\"7\""] {
            let id: Json = id.parse().unwrap();
            let near = near_ids(&id);
            assert!((3..=NEAR_IDS_MAX).contains(&near.len()) && !near.contains(&id), "{near:?}");
        }
        assert_eq!(near_ids(&Json::Null), []);
    }

    #[test]
    fn an_id_has_another_type_where_it_is_an_integer() {
        let other = |text: &str| of_the_other_type(&text.parse().unwrap()).map(|id| id.to_text());
        assert_eq!(other("7").as_deref(), Some("\"7\""));
        assert_eq!(other("\"-7\"").as_deref(), Some("-7"));
        for id in ["\"07\"", "\"a-1\"", "1.5", "null", "\"\""] {
            assert_eq!(other(id), None, "{id}");
        }
    }
}
