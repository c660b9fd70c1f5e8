//! SIDs and menus (`policy` §2 "Payload fields"; contract §2 "Payload and block").

use std::fmt;

use crate::json::{Kind, Scanner};
use crate::refusal::Refusal;

/// Number of possible SIDs.
const SIDS: usize = 10_000;

/// Id of an entry within one menu: `SID` and exactly four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(u16);

impl Sid {
    /// Reads a SID with nothing around it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(b"SID")?;
        if digits.len() != 4 || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(Self(digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))))
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SID{:04}", self.0)
    }
}

/// Raw elements of a validated JSON array; empty for any other kind of value.
pub fn elements(array: &str) -> impl Iterator<Item = &str> {
    let bytes = array.as_bytes();
    let mut at = if bytes.first() == Some(&b'[') { 1 } else { bytes.len() };
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',')) {
            at += 1;
        }
        let start = at;
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => at = end_of_string(bytes, at + 1),
                b'[' | b'{' => depth += 1,
                b']' | b'}' if depth == 0 => break,
                b']' | b'}' => depth -= 1,
                b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        array.get(start..at.min(bytes.len())).filter(|element| !element.is_empty())
    })
}

/// Offset of the closing quote of the string whose first byte is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(offset) if rest.get(offset) == Some(&b'\\') => at += offset + 2,
            Some(offset) => return at + offset,
            None => return bytes.len(),
        }
    }
}

/// SIDs of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    first: Option<Sid>,
    /// One bit per SID.
    listed: Box<[u64]>,
}

impl Default for Menu {
    fn default() -> Self {
        Self { first: None, listed: vec![0; SIDS.div_ceil(64)].into() }
    }
}

impl Menu {
    /// Reads a menu: the validated text of an array of objects, each with a unique `sid`.
    ///
    /// # Errors
    /// One sentence: an entry is not an object, has no SID, or repeats an earlier SID.
    pub fn read(array: &str, scanner: &mut Scanner) -> Result<Self, Refusal> {
        let mut menu = Self::default();
        for element in elements(array) {
            let entry = scanner.scan(element.as_bytes())?;
            if entry.kind() != Kind::Object {
                return Err("an entry of the menu is no object".into());
            }
            let sid = entry.members().find(|(name, _)| name.is("sid")).and_then(|(_, value)| value.as_str());
            let sid = sid.and_then(|sid| Sid::parse(&sid.bytes()));
            let sid = sid.ok_or("an entry of the menu has no SID of four digits")?;
            if menu.lists(sid) {
                return Err(format!("{sid} is in the menu twice").into());
            }
            menu.add(sid);
        }
        Ok(menu)
    }

    /// Appends a SID.
    pub fn add(&mut self, sid: Sid) {
        self.first.get_or_insert(sid);
        if let Some(bits) = self.listed.get_mut(usize::from(sid.0) / 64) {
            *bits |= 1 << (sid.0 % 64);
        }
    }

    /// True if an entry has this SID.
    pub fn lists(&self, sid: Sid) -> bool {
        self.listed.get(usize::from(sid.0) / 64).is_some_and(|bits| bits >> (sid.0 % 64) & 1 == 1)
    }

    /// SID of the first entry.
    pub fn first(&self) -> Option<Sid> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Policy, Value, write_value};
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Menu, Refusal> {
        Menu::read(text, &mut Scanner::new(64))
    }

    #[test]
    fn a_sid_has_exactly_four_digits() {
        assert_eq!(Sid::parse(b"SID0007").unwrap().to_string(), "SID0007");
        assert_eq!(Sid::parse(b"SID9999").unwrap().to_string(), "SID9999");
        for bad in ["", "SID", "SID007", "SID00007", "sid0007", "SID000x", " SID0007", "SID0007 ", "SID+007"]
        {
            assert_eq!(Sid::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn lists_what_is_there() {
        let menu = read(r#"[ {"sid":"SID0007","x":["]",{"a":"}\""}]} , {"sid":"\u0053ID0001"} ]"#).unwrap();
        assert_eq!(menu.first(), Sid::parse(b"SID0007"));
        assert!(menu.lists(Sid(1)) && menu.lists(Sid(7)) && !menu.lists(Sid(0)) && !menu.lists(Sid(9999)));
        assert_eq!(read("[]").unwrap().first(), None);
    }

    #[test]
    fn refuses_entries_without_a_sid_of_their_own() {
        for bad in [
            "[1]",
            "[{}]",
            r#"[{"sid":7}]"#,
            r#"[{"sid":"SID07"}]"#,
            r#"[{"sid":"SID0001"},{"sid":"SID0001"}]"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<i32>().prop_map(|n| n.to_string()),
            "[\\[\\]{},\"\\\\ a]{0,6}".prop_map(|text| {
                let mut out = Vec::new();
                crate::json::write_str(&mut out, &text);
                String::from_utf8(out).unwrap()
            }),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(" , "))),
                inner.prop_map(|item| format!("{{\"]\" : {item}}}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn elements_are_those_of_the_tree(items in proptest::collection::vec(value(), 0..6)) {
            let text = format!("[ {} ]", items.join(",\n"));
            let tree = Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap();
            let written = |value: &Value| {
                let mut out = Vec::new();
                write_value(&mut out, value);
                out
            };
            let expected: Vec<_> = tree.as_array().unwrap().iter().map(written).collect();
            let parsed = |text: &str| written(&Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap());
            let got: Vec<_> = elements(&text).map(parsed).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
