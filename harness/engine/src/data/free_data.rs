//! Free data: JSON that peers pass on without interpreting it, chosen so that careless peers lose or change it.

use crate::data::json::Json;
use crate::data::rng::Rng;

/// Strings that are easily lost or changed.
const STRINGS: &[&str] = &[
    "",
    "x",
    "é€😀",
    "e\u{301}",
    "\u{0}",
    "a\nb\r\n",
    "\u{2028}",
    "\\u0041",
    "<&>'\"",
    "null",
    "5",
    "007",
    "1e3",
    "true",
    "\ta \r\n",
    "2025-12-10T10:00:00+00:00",
    " blank ",
    "\u{feff}",
];

/// Numbers up to the limits of exact representation.
const NUMBERS: &[&str] =
    &["0", "-0.0", "1.5", "9007199254740991", "-9007199254740991", "1e-7", "0.1", "123456789.25", "1E2"];

/// Random string from the list.
pub fn string(rng: &mut Rng) -> Json {
    Json::from(*rng.pick(STRINGS))
}

/// Random number from the list.
pub fn number(rng: &mut Rng) -> Json {
    rng.pick::<&str>(NUMBERS).parse().unwrap_or_default()
}

/// Random object with up to three of these `names` and at most `levels` further levels.
pub fn object(names: &[&str], rng: &mut Rng, levels: u32) -> Json {
    let mut object = Json::Object(Vec::new());
    for _ in 0..rng.below(4) {
        object.set(rng.pick::<&str>(names), value(names, rng, levels));
    }
    object
}

/// Random value whose objects use these `names`, with at most `levels` levels.
pub fn value(names: &[&str], rng: &mut Rng, levels: u32) -> Json {
    match rng.below(if levels == 0 { 5 } else { 7 }) {
        0 => Json::Null,
        1 => Json::from(rng.chance(1, 2)),
        2 => number(rng),
        3 | 4 => string(rng),
        5 => Json::array((0..rng.below(4)).map(|_| value(names, rng, levels - 1)).collect::<Vec<_>>()),
        _ => object(names, rng, levels - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::{DecodeLimits, decode};

    #[test]
    fn whatever_is_drawn_is_json_of_so_many_levels() {
        let mut rng = Rng::new(7);
        let mut deepest = 0;
        for _ in 0..2_000 {
            let text = value(&["", "k"], &mut rng, 3).to_text();
            deepest = deepest.max(decode(text.as_bytes(), &DecodeLimits::default()).unwrap().facts.depth);
        }
        assert_eq!(deepest, 3);
        assert!(NUMBERS.iter().all(|text| text.parse::<Json>().is_ok()));
    }
}
