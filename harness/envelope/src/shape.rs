//! The documented members, read from the schemas: what model, generator and checks know of them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use peerproof_engine::json::Json;
use peerproof_engine::near_miss::near_misses;
use peerproof_engine::schema::Schemas;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");

/// Place of a wrong item that whoever looks at the first items alone overlooks.
const LATE_ITEM: usize = 40;

/// What a value may be.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its type and what is in it.
    pub what: What,
    /// `null` is a value of its own.
    pub nullable: bool,
    /// It is one of these strings; empty: any.
    pub one_of: Vec<String>,
    /// What its absence stands for.
    pub default: Option<Json>,
    /// What an engine that runs stages may do with it.
    pub advance: Advance,
    /// The schema requires it.
    pub core: bool,
}

/// Types with what is in them.
#[derive(Debug, Clone)]
pub enum What {
    /// Anything.
    Any,
    /// A string.
    Text,
    /// A string that begins so, with 16 digits of lower-case hexadecimal behind.
    Id(String),
    /// A date-time.
    Time,
    /// An integer, with its minimum.
    Whole(Option<i64>),
    /// A number.
    Number,
    /// A boolean.
    Flag,
    /// A list.
    List(Box<Shape>),
    /// An object whose members are alike.
    Map(Box<Shape>),
    /// An object with these members, among others.
    Record(Vec<(String, Shape)>),
}

/// What an engine that runs stages may do with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// Nothing.
    Fixed,
    /// Anything.
    Free,
    /// Add at its end.
    Append,
    /// The same, or take it away as well.
    Feedback,
    /// Add members.
    Add,
    /// Write sections of the agents that it runs.
    Outputs,
    /// Raise it.
    Rise,
    /// Raise it, or begin anew with a stage.
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
            Some(&"string") if text("format") == "date-time" => What::Time,
            Some(&"string") => match text("pattern").strip_prefix('^').and_then(|it| it.split_once('[')) {
                Some((prefix, _)) => What::Id(prefix.to_owned()),
                None => What::Text,
            },
            Some(&"integer") => What::Whole(schema.get("minimum").and_then(Json::as_i64)),
            Some(&"number") => What::Number,
            Some(&"boolean") => What::Flag,
            Some(&"array") => What::List(inner("items")),
            Some(&"object") => match schema.get("properties") {
                Some(members) => What::Record(record(members, schema)),
                None => What::Map(inner("additionalProperties")),
            },
            _ => What::Any,
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

    /// The members of an object with known ones.
    pub fn members(&self) -> &[(String, Shape)] {
        match &self.what {
            What::Record(members) => members,
            _ => &[],
        }
    }

    /// The shape of a member.
    pub fn member(&self, name: &str) -> Option<&Shape> {
        self.members().iter().find(|(known, _)| known == name).map(|(_, shape)| shape)
    }

    /// Whether it is a list or a map, for which `null` is empty.
    pub fn is_container(&self) -> bool {
        matches!(self.what, What::List(_) | What::Map(_) | What::Record(_))
    }

    /// JSON texts of right values: a plain one first.
    pub fn samples(&self) -> Vec<String> {
        let own: &[&str] = match &self.what {
            What::Any => &["[{\"agent\":\"perception\"}]"],
            What::Text if !self.one_of.is_empty() => {
                return self.one_of.iter().map(|it| format!("{it:?}")).collect();
            }
            What::Text => &["\"a b\"", "\"\""],
            What::Id(prefix) => return vec![format!("\"{prefix}0123456789abcdef\"")],
            What::Time => &["\"2025-12-10T10:00:00.123456Z\"", "\"2025-12-10T12:30:00+02:30\""],
            // Within every usual bound.
            What::Whole(least) => return vec!["2".to_owned(), least.unwrap_or(-1).to_string()],
            What::Number => &["0.5"],
            What::Flag => &["true", "false"],
            What::List(item) => {
                return vec![
                    format!("[{}]", item.samples().first().map_or("1", String::as_str)),
                    "[]".to_owned(),
                ];
            }
            What::Map(item) => {
                let item = item.samples().into_iter().next().unwrap_or_default();
                return vec![format!("{{\"k\":{item}}}"), "{}".to_owned()];
            }
            What::Record(members) => {
                let each = members.iter().map(|(name, shape)| format!("\"{name}\":{}", shape.samples()[0]));
                return vec![format!("{{{}}}", each.collect::<Vec<_>>().join(","))];
            }
        };
        own.iter().map(|text| (*text).to_owned()).collect()
    }

    /// JSON texts of wrong values: of every other type, under the minimum, outside the enumeration, and what holds such.
    pub fn wrong(&self) -> Vec<String> {
        let all = ["\"x\"", "\"5\"", "\"true\"", "5", "1.5", "true", "[]", "{}"];
        let mut wrong: Vec<String> = all
            .into_iter()
            .filter(|text| !self.takes_type(text))
            .filter(|text| !matches!(self.what, What::Whole(_)) || *text != "5")
            .map(str::to_owned)
            .collect();
        let inner = |item: &Shape| {
            let null = (!item.nullable && !matches!(item.what, What::Any)).then(|| "null".to_owned());
            item.wrong().into_iter().chain(null)
        };
        match &self.what {
            What::Text if !self.one_of.is_empty() => {
                let near = near_misses(&self.one_of[0]).into_iter().map(|miss| miss.text);
                let words = near.chain(["".to_owned(), "unheard_of".to_owned()]);
                wrong.extend(words.map(|text| Json::from(text.as_str()).to_text()));
            }
            // Taken for false, or for a number that no bound forbids, they contradict nothing else.
            What::Flag => wrong.extend(["0", "1", "\"false\"", "\"\""].map(str::to_owned)),
            What::Whole(None) => wrong.extend(["\"2\"", "2.5"].map(str::to_owned)),
            What::Whole(Some(least)) => {
                wrong.extend([least - 1, -7, i64::from(i32::MIN)].map(|it| it.to_string()));
                wrong.extend(["\"2\"", "2.5"].map(str::to_owned));
            }
            What::List(item) => {
                let right = item.samples().into_iter().next().unwrap_or_default();
                wrong.extend(inner(item).map(|wrong| format!("[{right},{wrong}]")));
                let last = inner(item).next();
                wrong.extend(last.map(|wrong| format!("[{}{wrong}]", format!("{right},").repeat(LATE_ITEM))));
            }
            What::Map(item) => wrong.extend(inner(item).map(|wrong| format!("{{\"k\":{wrong}}}"))),
            _ => {}
        }
        wrong
    }

    /// Whether the type of a JSON text is its own.
    fn takes_type(&self, text: &str) -> bool {
        match self.what {
            What::Any => true,
            What::Text | What::Id(_) | What::Time => text.starts_with('"'),
            What::Whole(_) => text == "5",
            What::Number => text == "5" || text == "1.5",
            What::Flag => text == "true",
            What::List(_) => text == "[]",
            What::Map(_) | What::Record(_) => text == "{}",
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

/// The shape that a schema describes: `envelope`, a named agent, `processing_record` or `error_record`.
pub fn named(name: &str) -> Option<&'static Shape> {
    shapes().get(name)
}

/// The shape of an envelope.
pub fn envelope() -> &'static Shape {
    named("envelope").unwrap_or_else(|| unreachable!("corpora/envelope/schemas has no envelope.json"))
}

/// What the JSON Schema `name` objects to: where, and in which words. The second opinion on what a peer wrote.
pub fn objection(name: &str, value: &Json) -> Option<(String, String)> {
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

/// The six agents that the document names.
pub const AGENTS: [&str; 6] = ["perception", "intent", "plan", "execution", "critic", "integration"];

/// Counters, their bounds, the usual bounds, and the reasons for ending at them.
pub const BOUNDS: [(&str, &str, i64, &str); 3] = [
    ("iteration", "max_iterations", 3, "max_iterations_exceeded"),
    ("llm_call_count", "max_llm_calls", 10, "max_llm_calls_exceeded"),
    ("agent_hop_count", "max_agent_hops", 21, "max_agent_hops_exceeded"),
];

/// The clauses about the members of a completed stage, in the order of its schema.
pub const STAGE_CLAUSES: [&str; 4] = ["ENV-STAGE-01", "ENV-STAGE-02", "ENV-STAGE-03", "ENV-STAGE-04"];

/// The clause about a documented member; those of the schema are numbered in its order.
pub fn clause_of(name: &str) -> &'static str {
    static CLAUSES: OnceLock<BTreeMap<String, &'static str>> = OnceLock::new();
    let clauses = CLAUSES.get_or_init(|| {
        let members = envelope().members().iter().enumerate();
        let of = members.map(|(at, (name, _))| (name.clone(), format!("ENV-PROP-{:02}", at + 1)));
        // As many as there are members, once.
        of.map(|(name, clause)| (name, &*clause.leak())).collect()
    });
    clauses.get(name).copied().unwrap_or("ENV-OUT-01")
}
