//! JSON Schemas of a boundary's messages.
//!
//! A schema is a second opinion on the shape of a message, independent of the reference's types. The validator is a
//! large dependency behind the feature `schemas`. Without it the interface stays, [`Schemas::enabled`] is false and no
//! violation is ever found.

use std::collections::BTreeMap;
use std::fmt;

use crate::data::json::Json;

#[cfg(feature = "schemas")]
mod instance;
mod sample;

pub use sample::sample;

/// Maximum number of violations reported per message.
#[cfg(feature = "schemas")]
pub(crate) const VIOLATIONS_MAX: usize = 16;

/// Compiled schemas of one boundary by name: the file name without `.json`.
#[derive(Debug)]
pub struct Schemas {
    by_name: BTreeMap<String, Schema>,
}

/// Compiled schema.
#[derive(Debug)]
pub struct Schema(engine::Compiled);

/// Violation of a schema by a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer to the wrong part of the message.
    pub instance_path: String,
    /// Description in the words of the validator, of limited length, for people.
    pub message: String,
    /// Violated keyword of the schema, such as `required`.
    pub keyword: String,
}

/// Unusable schema: a fault of the harness or its data, never of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Name of the schema.
    pub name: String,
    /// Description of the fault.
    pub reason: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema `{}` cannot be used: {}", self.name, self.reason)
    }
}

impl std::error::Error for SchemaError {}

impl Schemas {
    /// True if schema validation is compiled in.
    pub const fn enabled() -> bool {
        cfg!(feature = "schemas")
    }

    /// Compiles schemas from their file names and texts.
    ///
    /// They may refer to each other by `$id`; one without `$id` is known by its file name.
    ///
    /// # Errors
    ///
    /// Fails if a text is not JSON or not a valid schema, or refers to a schema outside `files`.
    pub fn load<N, T>(files: impl IntoIterator<Item = (N, T)>) -> Result<Schemas, SchemaError>
    where
        N: AsRef<str>,
        T: AsRef<str>,
    {
        let mut texts = BTreeMap::new();
        for (file, text) in files {
            let name =
                file.as_ref().rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_owned();
            let schema: Json = text.as_ref().parse().map_err(|error| SchemaError::new(&name, error))?;
            texts.insert(name, schema);
        }
        let compiled = engine::compile(&texts)?;
        Ok(Schemas { by_name: compiled.into_iter().map(|(name, schema)| (name, Schema(schema))).collect() })
    }

    /// Compiles every `.json` file of an embedded directory.
    ///
    /// # Errors
    ///
    /// As [`Schemas::load`]; also for a file that is not UTF-8.
    pub fn load_dir(dir: &include_dir::Dir<'_>) -> Result<Schemas, SchemaError> {
        let mut files = Vec::new();
        for file in
            dir.files().filter(|file| file.path().extension().is_some_and(|extension| extension == "json"))
        {
            let name = file.path().to_string_lossy();
            let text =
                file.contents_utf8().ok_or_else(|| SchemaError::new(&name, "its file is not UTF-8"))?;
            files.push((name, text));
        }
        Schemas::load(files)
    }

    /// Names of all schemas, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Schema with this name.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub fn get(&self, name: &str) -> Result<&Schema, SchemaError> {
        self.by_name.get(name).ok_or_else(|| SchemaError::new(name, "there is no schema of this name"))
    }

    /// Violations of the schema `name` by `value`, see [`Schema::validate`].
    ///
    /// # Errors
    ///
    /// Fails for an unknown schema, which must neither look like a valid message nor be blamed on a peer.
    pub fn validate(&self, name: &str, value: &Json) -> Result<Vec<Violation>, SchemaError> {
        Ok(self.get(name)?.validate(value))
    }
}

impl Schema {
    /// Compiles a schema that a peer supplies, in the dialect it names, by default 2020-12. Formats are annotations,
    /// and it may only refer to itself.
    ///
    /// # Errors
    ///
    /// Fails if it is unusable.
    pub fn of_peer(schema: &Json) -> Result<Schema, SchemaError> {
        engine::compile_one(schema).map(Schema)
    }

    /// Fault of a peer's schema by the rules of its dialect, in the words of the validator; `None` if there is none or
    /// the dialect is unknown.
    pub fn fault_of_peer(schema: &Json) -> Option<String> {
        engine::fault(schema)
    }

    /// Violations by `value`, at most [`VIOLATIONS_MAX`].
    ///
    /// The validator only knows doubles: numbers other than 64-bit integers count as the nearest double, or the largest
    /// one if out of range. The last of duplicate keys counts. Containers deeper than 128 levels count as empty.
    pub fn validate(&self, value: &Json) -> Vec<Violation> {
        self.0.violations(value)
    }
}

impl SchemaError {
    fn new(name: &str, reason: impl fmt::Display) -> Self {
        SchemaError { name: name.to_owned(), reason: reason.to_string() }
    }
}

#[cfg(feature = "schemas")]
mod engine {
    use std::collections::BTreeMap;

    use jsonschema::{Registry, ValidationError, Validator};
    use serde_json::Value;

    use super::instance::{Instance, Instances, to_value};
    use super::{SchemaError, VIOLATIONS_MAX, Violation};
    use crate::data::json::Json;

    pub(crate) type Compiled = Validator<Instances>;

    /// Maximum length of a violation's message, characters; longer ones quote a large value.
    const MESSAGE_CHARACTERS_MAX: usize = 300;

    /// Maximum nesting, because validator and schemas recurse.
    const DEPTH_MAX: usize = 128;

    pub(crate) fn compile(schemas: &BTreeMap<String, Json>) -> Result<Vec<(String, Compiled)>, SchemaError> {
        let documents: Vec<(&String, Value)> =
            schemas.iter().map(|(name, schema)| (name, to_value(schema, DEPTH_MAX))).collect();
        let mut registry = Registry::new();
        for (name, document) in &documents {
            let uri = match document.get("$id").and_then(Value::as_str) {
                Some(id) => id.to_owned(),
                None => format!("json-schema:///{name}.json"),
            };
            registry = registry.add(uri, document).map_err(|error| SchemaError::new(name, error))?;
        }
        let registry = registry.prepare().map_err(|error| SchemaError::new("*", error))?;
        let options = jsonschema::options_for::<Instances>()
            .offline()
            .should_validate_formats(true)
            .with_registry(&registry);
        let compile = |(name, document): &(&String, Value)| match options.build(document) {
            Ok(validator) => Ok(((*name).clone(), validator)),
            Err(error) => Err(SchemaError::new(name, message(&error))),
        };
        documents.iter().map(compile).collect()
    }

    pub(crate) fn compile_one(schema: &Json) -> Result<Compiled, SchemaError> {
        let document = to_value(schema, DEPTH_MAX);
        let options = jsonschema::options_for::<Instances>().offline().should_validate_formats(false);
        options.build(&document).map_err(|error| SchemaError::new("of the peer", message(&error)))
    }

    pub(crate) fn fault(schema: &Json) -> Option<String> {
        let document = to_value(schema, DEPTH_MAX);
        let dialect = document.get("$schema").and_then(Value::as_str);
        let is_known = dialect.is_none_or(|uri| DIALECTS.contains(&uri.trim_end_matches('#')));
        if !is_known {
            return None;
        }
        jsonschema::meta::validate(&document).err().map(|error| message(&error))
    }

    /// Dialects that have a meta-schema.
    const DIALECTS: [&str; 5] = [
        "http://json-schema.org/draft-04/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];

    pub(crate) trait SchemaJudge {
        fn violations(&self, value: &Json) -> Vec<Violation>;
    }

    impl SchemaJudge for Compiled {
        fn violations(&self, value: &Json) -> Vec<Violation> {
            let instance = Instance::new(value, DEPTH_MAX);
            // Nearly all messages are valid, and checking that is cheaper than listing violations.
            if self.is_valid(instance) {
                return Vec::new();
            }
            let violation = |error: ValidationError<'_>| Violation {
                instance_path: error.instance_path().to_string(),
                message: message(&error),
                keyword: error.schema_path().to_string().rsplit('/').next().unwrap_or_default().to_owned(),
            };
            self.iter_errors(instance).take(VIOLATIONS_MAX).map(violation).collect()
        }
    }

    /// Message that quotes the wrong value if short, and otherwise names it.
    fn message(error: &ValidationError<'_>) -> String {
        let full = error.to_string();
        if full.chars().count() <= MESSAGE_CHARACTERS_MAX {
            return full;
        }
        let mut short: String = error.masked_with("the value").to_string();
        if let Some((end, _)) = short.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
            short.truncate(end);
            short.push('…');
        }
        short
    }
}

#[cfg(feature = "schemas")]
use engine::SchemaJudge as _;

#[cfg(not(feature = "schemas"))]
mod engine {
    use std::collections::BTreeMap;

    use super::{SchemaError, Violation};
    use crate::data::json::Json;

    #[derive(Debug)]
    pub(crate) struct Compiled;

    pub(crate) fn compile(schemas: &BTreeMap<String, Json>) -> Result<Vec<(String, Compiled)>, SchemaError> {
        Ok(schemas.keys().map(|name| (name.clone(), Compiled)).collect())
    }

    pub(crate) fn compile_one(_: &Json) -> Result<Compiled, SchemaError> {
        Ok(Compiled)
    }

    pub(crate) fn fault(_: &Json) -> Option<String> {
        None
    }

    impl Compiled {
        pub(crate) fn violations(&self, _: &Json) -> Vec<Violation> {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const REPLY: &str = r##"{
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:test:reply",
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": {"type": "boolean"},
            "tier": {"type": "integer", "minimum": 0},
            "at": {"type": "string", "format": "date-time"},
            "slots": {"additionalProperties": {"$ref": "urn:test:slot#/$defs/slot"}}
        }
    }"##;
    const SLOT: &str =
        r#"{"$id": "urn:test:slot", "$defs": {"slot": {"type": "object", "required": ["type"]}}}"#;
    const BY_FILE: &str = r#"{"type": "array", "items": {"$ref": "item.json"}}"#;
    const ITEM: &str = r#"{"type": "string"}"#;

    fn schemas() -> Schemas {
        Schemas::load([
            ("a/reply.json", REPLY),
            ("slot.json", SLOT),
            ("list.json", BY_FILE),
            ("item.json", ITEM),
        ])
        .expect("valid schemas")
    }

    fn paths(name: &str, text: &str) -> Vec<String> {
        let found = schemas().validate(name, &text.parse().expect("JSON")).expect("a schema");
        found.into_iter().map(|violation| violation.instance_path).collect()
    }

    #[test]
    fn names_are_file_stems() {
        assert_eq!(schemas().names().collect::<Vec<_>>(), ["item", "list", "reply", "slot"]);
        let missing = schemas().validate("nothing", &Json::Null).expect_err("no such schema");
        assert_eq!(
            missing.to_string(),
            "the schema `nothing` cannot be used: there is no schema of this name"
        );
    }

    #[test]
    fn conforming_messages_have_no_violation() {
        for text in [
            r#"{"ok":true}"#,
            r#"{"ok":false,"tier":2.0,"x":1e999}"#,
            r#"{"ok":true,"tier":2e0,"slots":{"0":{"type":"t"}}}"#,
            r#"{"ok":1,"ok":true}"#,
            r#"{"ok":true,"at":"2024-02-29T00:00:00Z"}"#,
        ] {
            assert_eq!(paths("reply", text), Vec::<String>::new(), "{text}");
        }
    }

    #[cfg(feature = "schemas")]
    #[test]
    fn violations_name_the_place() {
        assert_eq!(paths("reply", "[]"), [""]);
        assert_eq!(paths("reply", "{}"), [""]);
        assert_eq!(paths("reply", r#"{"ok":"true","tier":1.5}"#), ["/ok", "/tier"]);
        assert_eq!(paths("reply", r#"{"ok":true,"tier":-1e999}"#), ["/tier"]);
        assert_eq!(paths("reply", r#"{"ok":true,"slots":{"0":{"type":1},"a/b":{}}}"#), ["/slots/a~1b"]);
        assert_eq!(paths("reply", r#"{"ok":true,"at":"2023-02-29T00:00:00Z"}"#), ["/at"]);
        assert_eq!(paths("list", r#"["a",1]"#), ["/1"]);
    }

    #[cfg(feature = "schemas")]
    #[test]
    fn reports_are_bounded() {
        let items = Json::Array((0..1_000).map(Json::from).collect());
        assert_eq!(schemas().validate("list", &items).expect("a schema").len(), VIOLATIONS_MAX);
        let long = Json::object([("ok", "x".repeat(100_000).into())]);
        let found = schemas().validate("reply", &long).expect("a schema");
        assert_eq!(found[0].message, "the value is not of type \"boolean\"");
        let deep: Json = ("[".repeat(100_000) + &"]".repeat(100_000)).parse().expect("JSON");
        assert_eq!(schemas().validate("reply", &deep).expect("a schema").len(), 1);
    }

    #[test]
    fn unusable_schemas_are_named() {
        let error = Schemas::load([("bad.json", "{")]).expect_err("no JSON");
        assert_eq!((error.name.as_str(), error.reason.contains("ends before")), ("bad", true));
        if Schemas::enabled() {
            let broken = Schemas::load([("broken.json", r#"{"type":"strin"}"#)]).expect_err("no such type");
            assert_eq!(broken.name, "broken");
            assert!(Schemas::load([("a.json", r#"{"$ref":"urn:test:none"}"#)]).is_err());
        }
    }

    #[test]
    fn every_schema_in_corpora_compiles() {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora");
        let mut compiled = 0;
        for boundary in fs::read_dir(corpora).expect("corpora") {
            let Ok(files) = fs::read_dir(boundary.expect("an entry").path().join("schemas")) else {
                continue;
            };
            let texts: Vec<(String, String)> = files
                .map(|file| file.expect("an entry").path())
                .map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("UTF-8")))
                .collect();
            let schemas = Schemas::load(texts).unwrap_or_else(|error| panic!("{error}"));
            compiled += schemas.names().count();
        }
        assert!(compiled > 0);
    }
}
