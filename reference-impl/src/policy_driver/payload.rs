//! The payload of a driver, read strictly and without a tree (`policy` §2 "Input"; contract §2 "Payload and block").

use super::choices::{AbsentFields, Choices, DuplicateSids};
use super::{Menu, Sid, elements};
use crate::dispatcher::text::normalise;
use crate::json::{Kind, Object, Raw, Scanner};
use crate::refusal::Refusal;

/// A valid payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// JSON text of the `inputs` object.
    pub inputs: String,
    /// Entries of the menu, in order.
    pub entries: Vec<Entry>,
    /// SIDs of the entries.
    pub menu: Menu,
}

/// Relevant parts of a menu entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// SID by which it is picked.
    pub sid: Sid,
    /// Tags, with U+FFFD for lone surrogates.
    pub tags: Vec<String>,
}

/// A member that is looked up in a text.
struct Member {
    name: &'static str,
    kind: Kind,
}

const STRING: Kind = Kind::String;
const OF_PAYLOAD: [Member; 5] = [
    Member { name: "goal_digest", kind: STRING },
    Member { name: "state_digest", kind: STRING },
    Member { name: "control_mode", kind: STRING },
    Member { name: "inputs", kind: Kind::Object },
    Member { name: "menu", kind: Kind::Array },
];
const OF_ENTRY: [Member; 4] = [
    Member { name: "sid", kind: STRING },
    Member { name: "aid", kind: STRING },
    Member { name: "name", kind: STRING },
    Member { name: "tags", kind: Kind::Array },
];

impl Payload {
    /// Reads the bytes of a payload file.
    ///
    /// # Errors
    /// One sentence: the bytes are not a strict JSON object, a listed member has a wrong type, or the choices refuse a
    /// missing or duplicate member.
    pub fn read(bytes: &[u8], nesting_max: usize, choices: &Choices) -> Result<Self, Refusal> {
        let bytes = choices.bom.strip(bytes);
        let normal =
            normalise(bytes, nesting_max, &choices.policy()).map_err(Refusal::of("malformed payload"))?;
        let mut scanner = Scanner::new(nesting_max);
        let scanned = scanner.scan(&normal)?;
        if scanned.kind() != Kind::Object {
            return Err("the payload is no object".into());
        }
        let [.., inputs, menu] = pick(scanned.members(), &OF_PAYLOAD, choices.absent_fields)?;
        let mut payload = Self {
            inputs: inputs.map_or("{}", Raw::text).to_owned(),
            entries: Vec::new(),
            menu: Menu::default(),
        };
        let mut scanner = Scanner::new(nesting_max);
        for entry in menu.map(Raw::text).into_iter().flat_map(elements) {
            payload.add(entry, &mut scanner, choices)?;
        }
        Ok(payload)
    }

    fn add(&mut self, entry: &str, scanner: &mut Scanner, choices: &Choices) -> Result<(), Refusal> {
        let scanned = scanner.scan(entry.as_bytes())?;
        if scanned.kind() != Kind::Object {
            return Err("an entry of the menu is no object".into());
        }
        let [sid, _, _, tags] = pick(scanned.members(), &OF_ENTRY, choices.absent_fields)?;
        let mut texts = Vec::new();
        for tag in tags.map(Raw::text).into_iter().flat_map(elements) {
            texts.push(string(tag).ok_or("a tag is no string")?);
        }
        let Some(sid) = sid.and_then(Raw::as_str) else { return Ok(()) };
        let sid = Sid::parse(&sid.bytes()).ok_or("a SID has not four digits")?;
        if !self.menu.lists(sid) {
            self.menu.add(sid);
            self.entries.push(Entry { sid, tags: texts });
        } else if choices.duplicate_sids == DuplicateSids::Malformed {
            return Err(format!("{sid} is in the menu twice").into());
        }
        Ok(())
    }
}

/// Values of the listed members.
fn pick<'t, const N: usize>(
    members: impl Iterator<Item = Object<'t>>,
    listed: &[Member; N],
    absent: AbsentFields,
) -> Result<[Option<Raw<'t>>; N], Refusal> {
    let mut found = [None; N];
    for (name, value) in members {
        let Some(place) = listed.iter().position(|member| name.is(member.name)) else { continue };
        let Member { name, kind } = &listed[place];
        if value.kind() != *kind {
            return Err(format!("{name} has a wrong type").into());
        }
        found[place] = Some(value);
    }
    match found.iter().position(Option::is_none) {
        Some(place) if absent == AbsentFields::Malformed => {
            Err(format!("{} is missing", listed[place].name).into())
        }
        _ => Ok(found),
    }
}

/// Unescaped content of a JSON string.
fn string(text: &str) -> Option<String> {
    let mut scanner = Scanner::new(1);
    let wrapped = format!("{{\"\":{text}}}");
    let scanned = scanner.scan(wrapped.as_bytes()).ok()?;
    let (_, value) = scanned.members().next()?;
    Some(value.as_str()?.text().to_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Bom;

    fn read(text: &str) -> Result<Payload, Refusal> {
        Payload::read(text.as_bytes(), 64, &Choices::default())
    }

    #[test]
    fn reads_what_is_listed() {
        let payload = read(
            r#"{"goal_digest":"g","state_digest":"s","control_mode":"POLICY_ONLY","inputs":{"a":[1]},"x":0,
               "menu":[{"sid":"SID0002","aid":"A","name":"<END>","tags":["a","\u0062"]},{"sid":"SID0001","tags":[]}]}"#,
        )
        .unwrap();
        assert_eq!(payload.inputs, r#"{"a":[1]}"#);
        let entries: Vec<_> =
            payload.entries.iter().map(|entry| (entry.sid.to_string(), entry.tags.clone())).collect();
        let tags = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(entries, [("SID0002".to_owned(), tags), ("SID0001".to_owned(), Vec::new())]);
    }

    #[test]
    fn refuses_wrong_types() {
        for bad in [
            "",
            "[]",
            "{} x",
            "\u{FEFF}{}",
            r#"{"menu":{}}"#,
            r#"{"menu":null}"#,
            r#"{"menu":[1]}"#,
            r#"{"menu":[{"sid":1}]}"#,
            r#"{"menu":[{"sid":"SID1"}]}"#,
            r#"{"menu":[{"sid":"SID0001","aid":1}]}"#,
            r#"{"menu":[{"sid":"SID0001","tags":"a"}]}"#,
            r#"{"menu":[{"sid":"SID0001","tags":[1]}]}"#,
            r#"{"inputs":[]}"#,
            r#"{"control_mode":7}"#,
            r#"{"goal_digest":null}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn absent_members_and_repeated_sids_are_choices() {
        let twice = r#"{"goal_digest":"","state_digest":"","control_mode":"","inputs":{},"menu":[
            {"sid":"SID0001","aid":"","name":"","tags":[]},{"sid":"SID0001","aid":"","name":"","tags":["x"]}]}"#;
        assert_eq!(read(twice).unwrap().entries.len(), 1);
        assert_eq!(read(r#"{"menu":[{"aid":"A"}]}"#).unwrap().entries, []);
        let strict = Choices {
            absent_fields: AbsentFields::Malformed,
            duplicate_sids: DuplicateSids::Malformed,
            ..Choices::default()
        };
        let strictly = |text: &str| Payload::read(text.as_bytes(), 64, &strict);
        assert!(strictly(twice).is_err());
        assert!(strictly("{}").is_err());
        assert!(strictly(&twice.replacen("SID0001", "SID0002", 1)).is_ok());
        assert!(
            strictly(&twice.replacen("SID0001", "SID0002", 1).replacen("\"name\":\"\",", "", 1)).is_err()
        );
    }

    #[test]
    fn a_mark_of_byte_order_may_be_ignored() {
        let ignoring = Choices { bom: Bom::Ignore, ..Choices::default() };
        assert!(Payload::read("\u{FEFF}{}".as_bytes(), 64, &ignoring).is_ok());
    }
}
