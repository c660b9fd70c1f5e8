//! Shapes of the documented members, read from the schemas. Model, generator and checks use them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::schema::Schemas;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");

/// Index of a wrong item that a peer overlooks if it checks only the first items.
const LATE_ITEM: usize = 40;

/// Shape of a value.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Type of the value.
    pub what: ValueType,
    /// True if `null` is a distinct value.
    pub nullable: bool,
    /// Allowed strings; empty: any.
    pub one_of: Vec<String>,
    /// Default if the member is absent.
    pub default: Option<Json>,
    /// Change that an engine which runs stages may make.
    pub advance: Advance,
    /// True if the schema requires the member.
    pub core: bool,
}

/// Type of a value.
#[derive(Debug, Clone)]
pub(crate) enum ValueType {
    /// Any value.
    Any,
    /// A string.
    Text,
    /// This prefix and 16 lower-case hexadecimal digits.
    Id(String),
    /// A date-time.
    Time,
    /// An integer, with its minimum if it has one.
    Whole(Option<i64>),
    /// A number.
    Number,
    /// A boolean.
    Flag,
    /// A list.
    List(Box<Shape>),
    /// An object whose members have one shape.
    Map(Box<Shape>),
    /// An object with these members; it may have others.
    Record(Vec<(String, Shape)>),
}

/// Change that an engine which runs stages may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    /// No change.
    Fixed,
    /// Any change.
    Free,
    /// Append items.
    Append,
    /// Append items, or remove all of them.
    Feedback,
    /// Add members.
    Add,
    /// Write the sections of agents that it runs.
    Outputs,
    /// Raise the number.
    Rise,
    /// Raise the number, or reset it with a new stage.
    Retry,
}

impl Shape {
    fn of(schema: &Json) -> Self {
        let text = |name: &str| schema.get(name).and_then(Json::as_str).unwrap_or_default();
        let types: Vec<&str> = match schema.get("type") {
            Some(Json::Array(types)) => types.iter().filter_map(Json::as_str).collect(),
            Some(Json::String(name)) => vec![name.as_str()],
            _ => Vec::new(),
        };
        let inner = |name: &str| {
            let any = || Self::of(&Json::Object(Vec::new()));
            Box::new(schema.get(name).map_or_else(any, Self::of))
        };
        let what = match types.iter().find(|name| **name != "null") {
            Some(&"string") if text("format") == "date-time" => ValueType::Time,
            Some(&"string") => match text("pattern").strip_prefix('^').and_then(|it| it.split_once('[')) {
                Some((prefix, _)) => ValueType::Id(prefix.to_owned()),
                None => ValueType::Text,
            },
            Some(&"integer") => ValueType::Whole(schema.get("minimum").and_then(Json::as_i64)),
            Some(&"number") => ValueType::Number,
            Some(&"boolean") => ValueType::Flag,
            Some(&"array") => ValueType::List(inner("items")),
            Some(&"object") => match schema.get("properties") {
                Some(members) => ValueType::Record(record(members, schema)),
                None => ValueType::Map(inner("additionalProperties")),
            },
            _ => ValueType::Any,
        };
        let advance = match text("advance") {
            "free" => Advance::Free,
            "append" => Advance::Append,
            "feedback" => Advance::Feedback,
            "add" => Advance::Add,
            "outputs" => Advance::Outputs,
            "rise" => Advance::Rise,
            "retry" => Advance::Retry,
            _ => Advance::Fixed,
        };
        let one_of = schema.get("enum").and_then(Json::as_array).unwrap_or_default();
        Self {
            what,
            nullable: types.contains(&"null"),
            one_of: one_of.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
            default: schema.get("default").cloned(),
            advance,
            core: false,
        }
    }

    /// Known members of an object.
    pub(crate) fn members(&self) -> &[(String, Shape)] {
        match &self.what {
            ValueType::Record(members) => members,
            _ => &[],
        }
    }

    /// Shape of a member.
    pub(crate) fn member(&self, name: &str) -> Option<&Shape> {
        self.members().iter().find(|(known, _)| known == name).map(|(_, shape)| shape)
    }

    /// True for a list, a map or an object; `null` counts as empty there.
    pub(crate) fn is_container(&self) -> bool {
        matches!(self.what, ValueType::List(_) | ValueType::Map(_) | ValueType::Record(_))
    }

    /// Valid values as JSON texts, a plain one first.
    pub(crate) fn samples(&self) -> Vec<String> {
        let own: &[&str] = match &self.what {
            ValueType::Any => &["[{\"agent\":\"perception\"}]"],
            ValueType::Text if !self.one_of.is_empty() => {
                return self.one_of.iter().map(|it| format!("{it:?}")).collect();
            }
            ValueType::Text => &["\"a b\"", "\"\""],
            ValueType::Id(prefix) => return vec![format!("\"{prefix}0123456789abcdef\"")],
            ValueType::Time => &["\"2025-12-10T10:00:00.123456Z\"", "\"2025-12-10T12:30:00+02:30\""],
            // Within every default bound.
            ValueType::Whole(least) => return vec!["2".to_owned(), least.unwrap_or(-1).to_string()],
            ValueType::Number => &["0.5"],
            ValueType::Flag => &["true", "false"],
            ValueType::List(item) => {
                return vec![
                    format!("[{}]", item.samples().first().map_or("1", String::as_str)),
                    "[]".to_owned(),
                ];
            }
            ValueType::Map(item) => {
                let item = item.samples().into_iter().next().unwrap_or_default();
                return vec![format!("{{\"k\":{item}}}"), "{}".to_owned()];
            }
            ValueType::Record(members) => {
                let each = members.iter().map(|(name, shape)| format!("\"{name}\":{}", shape.samples()[0]));
                return vec![format!("{{{}}}", each.collect::<Vec<_>>().join(","))];
            }
        };
        own.iter().map(|text| (*text).to_owned()).collect()
    }

    /// Wrong values as JSON texts: other types, below the minimum, outside the enumeration, and containers of
    /// those.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let all = ["\"x\"", "\"5\"", "\"true\"", "5", "1.5", "true", "[]", "{}"];
        let mut wrong: Vec<String> = all
            .into_iter()
            .filter(|text| !self.takes_type(text))
            .filter(|text| !matches!(self.what, ValueType::Whole(_)) || *text != "5")
            .map(str::to_owned)
            .collect();
        let inner = |item: &Shape| {
            let null = (!item.nullable && !matches!(item.what, ValueType::Any)).then(|| "null".to_owned());
            item.wrong().into_iter().chain(null)
        };
        match &self.what {
            ValueType::Text if !self.one_of.is_empty() => {
                let near = near_misses(&self.one_of[0]).into_iter().map(|miss| miss.text);
                let words = near.chain(["".to_owned(), "unheard_of".to_owned()]);
                wrong.extend(words.map(|text| Json::from(text.as_str()).to_text()));
            }
            // If a peer reads them as false, or as a small number, they contradict no other member.
            ValueType::Flag => wrong.extend(["0", "1", "\"false\"", "\"\""].map(str::to_owned)),
            ValueType::Whole(None) => wrong.extend(["\"2\"", "2.5"].map(str::to_owned)),
            ValueType::Whole(Some(least)) => {
                wrong.extend([least - 1, -7, i64::from(i32::MIN)].map(|it| it.to_string()));
                wrong.extend(["\"2\"", "2.5"].map(str::to_owned));
            }
            ValueType::List(item) => {
                let right = item.samples().into_iter().next().unwrap_or_default();
                wrong.extend(inner(item).map(|wrong| format!("[{right},{wrong}]")));
                let last = inner(item).next();
                wrong.extend(last.map(|wrong| format!("[{}{wrong}]", format!("{right},").repeat(LATE_ITEM))));
            }
            ValueType::Map(item) => wrong.extend(inner(item).map(|wrong| format!("{{\"k\":{wrong}}}"))),
            _ => {}
        }
        wrong
    }

    /// True if a JSON text has the type of this shape.
    fn takes_type(&self, text: &str) -> bool {
        match self.what {
            ValueType::Any => true,
            ValueType::Text | ValueType::Id(_) | ValueType::Time => text.starts_with('"'),
            ValueType::Whole(_) => text == "5",
            ValueType::Number => text == "5" || text == "1.5",
            ValueType::Flag => text == "true",
            ValueType::List(_) => text == "[]",
            ValueType::Map(_) | ValueType::Record(_) => text == "{}",
        }
    }
}

fn record(members: &Json, schema: &Json) -> Vec<(String, Shape)> {
    let required = schema.get("required").and_then(Json::as_array).unwrap_or_default();
    let is_core = |name: &str| required.iter().any(|it| it.as_str() == Some(name));
    let members = members.as_object().unwrap_or_default().iter();
    members.map(|(name, schema)| (name.clone(), Shape { core: is_core(name), ..Shape::of(schema) })).collect()
}

/// All schemas by name.
fn shapes() -> &'static BTreeMap<String, Shape> {
    static SHAPES: OnceLock<BTreeMap<String, Shape>> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let read = |file: &include_dir::File<'_>| {
            let schema: Json = file.contents_utf8()?.parse().ok()?;
            Some((file.path().file_stem()?.to_str()?.to_owned(), Shape::of(&schema)))
        };
        FILES.files().filter_map(read).collect()
    })
}

/// Shape of a schema: `envelope`, a named agent, `processing_record` or `error_record`.
pub(crate) fn named(name: &str) -> Option<&'static Shape> {
    shapes().get(name)
}

/// Shape of an envelope.
pub(crate) fn envelope() -> &'static Shape {
    named("envelope").unwrap_or_else(|| unreachable!("corpora/envelope/schemas has no envelope.json"))
}

/// First violation of the JSON Schema `name`: JSON pointer and message. Serves as second opinion about a peer's
/// output.
pub(crate) fn objection(name: &str, value: &Json) -> Option<(String, String)> {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    if !Schemas::enabled() {
        return None;
    }
    let schemas = SCHEMAS.get_or_init(|| {
        Schemas::load_dir(&FILES)
            .unwrap_or_else(|error| unreachable!("corpora/envelope/schemas do not load: {error}"))
    });
    let first = schemas.validate(name, value).ok()?.into_iter().next()?;
    Some((first.instance_path, first.message))
}

/// The six agents of the document.
pub(crate) const AGENTS: [&str; 6] = ["perception", "intent", "plan", "execution", "critic", "integration"];

/// Counters with their bounds, default bounds and terminal reasons.
pub(crate) const BOUNDS: [(&str, &str, i64, &str); 3] = [
    ("iteration", "max_iterations", 3, "max_iterations_exceeded"),
    ("llm_call_count", "max_llm_calls", 10, "max_llm_calls_exceeded"),
    ("agent_hop_count", "max_agent_hops", 21, "max_agent_hops_exceeded"),
];

/// Clauses about the members of a completed stage, in the order of its schema.
pub(crate) const STAGE_CLAUSES: [&str; 4] = ["ENV-STAGE-01", "ENV-STAGE-02", "ENV-STAGE-03", "ENV-STAGE-04"];

/// Clause about a documented member. Members of the schema are numbered in its order.
pub(crate) fn clause_of(name: &str) -> &'static str {
    static CLAUSES: OnceLock<BTreeMap<String, &'static str>> = OnceLock::new();
    let clauses = CLAUSES.get_or_init(|| {
        let members = envelope().members().iter().enumerate();
        let of = members.map(|(at, (name, _))| (name.clone(), format!("ENV-PROP-{:02}", at + 1)));
        // Leaks one string per member, once.
        of.map(|(name, clause)| (name, &*clause.leak())).collect()
    });
    clauses.get(name).copied().unwrap_or("ENV-OUT-01")
}
