//! Presentations: texts of one value that every reader must treat alike.
//!
//! A peer that answers one of them differently reads text instead of JSON.

use super::write::{Compact, Style, WhitespacePlace, write, write_code_unit};
use super::{Json, Number};

/// Presentation of a value that makes no difference to its meaning.
///
/// No presentation writes a line feed or carriage return, so that the text still fits on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presentation {
    /// Random order of members in every object, except objects with duplicate keys, whose order may matter.
    ShuffledKeys,
    /// Spaces and tabs wherever the grammar allows them, also around the text.
    WhiteSpace,
    /// Characters of strings and member names as `\uXXXX`, and `/` as `\/`.
    UnicodeEscapes,
    /// Numbers in another spelling of the exact decimal value: `1.0`, `1e0`, `10e-1`.
    NumberSpelling,
    /// Further members in the top-level object, with names that no message has. Other values stay as they are.
    ExtraMembers,
}

impl Presentation {
    /// All presentations.
    pub const ALL: [Presentation; 5] = [
        Presentation::ShuffledKeys,
        Presentation::WhiteSpace,
        Presentation::UnicodeEscapes,
        Presentation::NumberSpelling,
        Presentation::ExtraMembers,
    ];

    /// Name in configurations and reports.
    pub fn name(self) -> &'static str {
        match self {
            Presentation::ShuffledKeys => "shuffled-keys",
            Presentation::WhiteSpace => "white-space",
            Presentation::UnicodeEscapes => "unicode-escapes",
            Presentation::NumberSpelling => "number-spelling",
            Presentation::ExtraMembers => "extra-members",
        }
    }
}

/// Writes `value` in the presentation `how`, with choices drawn from `rng`.
///
/// The text decodes to a value equal to `value`, except for members added by [`Presentation::ExtraMembers`].
pub fn present(value: &Json, how: Presentation, rng: &mut dyn FnMut() -> u64) -> String {
    let mut out = String::new();
    match how {
        Presentation::ShuffledKeys => {
            let mut shuffled = value.clone();
            shuffled.for_each_object(|members| shuffle(members, rng));
            write(&mut out, &shuffled, &mut Compact);
        }
        Presentation::WhiteSpace => write(&mut out, value, &mut Spaced(rng)),
        Presentation::UnicodeEscapes => write(&mut out, value, &mut Escaped(rng)),
        Presentation::NumberSpelling => write(&mut out, value, &mut Respelled(rng)),
        Presentation::ExtraMembers => write(&mut out, &with_extra_members(value, rng), &mut Compact),
    }
    out
}

/// Random index below `len`, which is at least 1. The bias of the remainder does not matter here.
fn draw(rng: &mut dyn FnMut() -> u64, len: usize) -> usize {
    (rng() % len as u64) as usize
}

fn shuffle(members: &mut [(String, Json)], rng: &mut dyn FnMut() -> u64) {
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return;
    }
    for last in (1..members.len()).rev() {
        members.swap(last, draw(rng, last + 1));
    }
}

fn with_extra_members(value: &Json, rng: &mut dyn FnMut() -> u64) -> Json {
    let mut extended = value.clone();
    let count = 1 + draw(rng, 3);
    for _ in 0..count {
        let key = loop {
            let key = format!("x_peerproof_{:08x}", rng() as u32);
            if extended.get(&key).is_none() {
                break key;
            }
        };
        let extra = match draw(rng, 6) {
            0 => Json::Null,
            1 => true.into(),
            2 => (draw(rng, 1_000_000)).into(),
            3 => "an extra member".into(),
            4 => Json::array(["an", "extra", "member"]),
            _ => Json::object([("ok", false.into()), ("error", Json::Null)]),
        };
        if let Some(members) = extended.as_object_mut() {
            let at = draw(rng, members.len() + 1);
            members.insert(at, (key, extra));
        }
    }
    extended
}

struct Spaced<'a>(&'a mut dyn FnMut() -> u64);

impl Style for Spaced<'_> {
    fn space(&mut self, out: &mut String, _: WhitespacePlace, _: usize) {
        out.push_str([" ", "\t", "  ", " \t ", ""][draw(self.0, 5)]);
    }
}

struct Escaped<'a>(&'a mut dyn FnMut() -> u64);

impl Style for Escaped<'_> {
    fn space(&mut self, _: &mut String, _: WhitespacePlace, _: usize) {}

    fn string(&mut self, out: &mut String, string: &str) {
        out.push('"');
        for character in string.chars() {
            let bits = (self.0)();
            let plain = character >= ' ' && character != '"' && character != '\\';
            if plain && bits & 1 == 0 {
                out.push(character);
            } else if character == '/' && bits & 2 == 0 {
                out.push_str("\\/");
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write_code_unit(out, *unit, bits & 4 == 0);
                }
            }
        }
        out.push('"');
    }
}

struct Respelled<'a>(&'a mut dyn FnMut() -> u64);

impl Style for Respelled<'_> {
    fn space(&mut self, _: &mut String, _: WhitespacePlace, _: usize) {}

    fn number(&mut self, out: &mut String, number: &Number) {
        respell(out, number.text(), draw(self.0, 6));
    }
}

/// Appends another spelling of the number `text`, chosen by `variant` (0 to 5).
fn respell(out: &mut String, text: &str, variant: usize) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let Some(exponent) = exponent else {
        match (variant, mantissa.contains('.')) {
            (0, false) => out.extend([mantissa, ".0"]),
            (0, true) => out.extend([mantissa, "0"]),
            (1, _) => out.extend([mantissa, "e0"]),
            (2, _) => out.extend([mantissa, "E+00"]),
            (3, false) => out.extend([with_more_zeros(mantissa, 1).as_str(), "e-1"]),
            (4, false) => out.extend([with_more_zeros(mantissa, 3).as_str(), "E-03"]),
            (3 | 4, true) => out.extend([mantissa, "00e-0"]),
            _ => scientific(out, mantissa),
        }
        return;
    };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", exponent.trim_start_matches('+')),
    };
    out.push_str(mantissa);
    if variant < 3 {
        out.push_str(if mantissa.contains('.') { "0" } else { ".0" });
    }
    out.extend([
        ["e", "E"][variant % 2],
        if sign.is_empty() && variant.is_multiple_of(3) { "+" } else { sign },
    ]);
    out.extend([if variant < 3 { "" } else { "0" }, digits]);
}

/// Appends zeros to an integer, except to zero, because `00` is invalid.
fn with_more_zeros(integer: &str, zeros: usize) -> String {
    match integer {
        "0" | "-0" => integer.to_owned(),
        _ => format!("{integer}{:0<zeros$}", ""),
    }
}

/// Appends a number without exponent in the form `d.ddd` with one: 125 as `1.25e2`, 0.5 as `0.5e0`.
fn scientific(out: &mut String, mantissa: &str) {
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let first = usize::from(integer.starts_with('-')) + 1;
    let (head, tail) = integer.split_at(first);
    out.extend([head, ".", tail, fraction]);
    if tail.is_empty() && fraction.is_empty() {
        out.push('0');
    }
    out.push_str(&format!("e{}", tail.len()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::rng::Rng;

    #[test]
    fn every_spelling_of_a_number_is_another_text_of_the_same_value() {
        let texts = [
            "0",
            "-0",
            "7",
            "-7",
            "125",
            "-100",
            "0.5",
            "-12.50",
            "1e5",
            "1E+5",
            "2.5e-3",
            "0e0",
            "9007199254740991",
        ];
        for text in texts.into_iter().chain(["1e999999999999999999999999", "1.5e-999999999"]) {
            for variant in 0..6 {
                let mut out = String::new();
                respell(&mut out, text, variant);
                let spelled = Number::from_text(&out).unwrap_or_else(|| panic!("{out} is a number"));
                assert_eq!(spelled, Number::from_text(text).expect("a number"), "{text} as {out}");
                assert_ne!(out, text);
            }
        }
    }

    #[test]
    fn presentations_change_the_text_in_their_own_way() {
        let value: Json = r#"{"aid":"AID.X/v1","n":[1,20,-3.5],"e":[],"o":{"a":null,"b":true,"c":"é😀\n"}}"#
            .parse()
            .expect("JSON");
        let mut rng = Rng::new(5);
        let mut text = |how| present(&value, how, &mut || rng.next_u64());
        assert_ne!(text(Presentation::ShuffledKeys), value.to_text());
        let spaced = text(Presentation::WhiteSpace);
        assert!(spaced.contains(' ') && spaced.contains('\t') && !spaced.contains(['\n', '\r']), "{spaced}");
        let escaped = text(Presentation::UnicodeEscapes);
        assert!(escaped.contains("\\u00") && !escaped.contains("AID.X/v1"), "{escaped}");
        assert!(text(Presentation::NumberSpelling).contains(['e', 'E']));
        let extended: Json = text(Presentation::ExtraMembers).parse().expect("JSON");
        let more = extended.as_object().expect("an object");
        assert!(more.iter().any(|(key, _)| key.starts_with("x_peerproof_")));
        let originals = more.iter().filter(|(key, _)| !key.starts_with("x_peerproof_")).cloned();
        assert_eq!(Json::Object(originals.collect()), value);
    }

    #[test]
    fn duplicate_keys_are_not_shuffled() {
        let value: Json = r#"{"a":1,"b":2,"a":3,"c":4}"#.parse().expect("JSON");
        for rng_seed in 0..20 {
            let mut rng = Rng::new(rng_seed);
            assert_eq!(present(&value, Presentation::ShuffledKeys, &mut || rng.next_u64()), value.to_text());
        }
    }

    #[test]
    fn scalars_get_no_extra_members() {
        let mut rng = Rng::new(1);
        for text in ["1", "[{}]", "null"] {
            let value: Json = text.parse().expect("JSON");
            assert_eq!(present(&value, Presentation::ExtraMembers, &mut || rng.next_u64()), text);
        }
    }
}
