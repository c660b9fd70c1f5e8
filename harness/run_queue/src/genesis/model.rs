//! Allowed outcomes of calls of the Genesis tools, derived from earlier calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use peerproof_engine::contract::face::Allowed;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::{Fixture, PathKind, Plan};
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

use super::kit::{ENDS, GARBAGE, Kit, Tool, without_compiler};

/// Folder around the root. Looks cover all of it.
pub(crate) const OUTER: &str = "outer";

/// Root folder of the toolhost.
pub(crate) const ROOT: &str = "outer/root";

/// Source folder.
pub(crate) const SOURCES: &str = "outer/root/runtime_genesis/src";

/// Label of the look at the file that a plugin leaves before it ends.
pub(crate) const MARK: &str = "mark";

/// A call of a Genesis tool or of a compiled tool, with facts for later rules.
#[derive(Debug, Clone)]
pub(super) enum Call {
    /// A call that writes a source.
    Write {
        /// Path; `None` if absent.
        path: Option<String>,
        /// Content; `None` if absent.
        content: Option<String>,
        /// Destination of the path.
        spot: PathDestination,
    },
    /// A call of a tool whose plugin ends in the middle. True if a mark of the plugin was found.
    Ending(bool),
    /// Any other call.
    Other,
}

/// Destination of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathDestination {
    /// A forbidden place.
    Bad,
    /// This place below the source folder, with the choices that it depends on.
    At(String, Vec<&'static str>),
    /// This symbolic link. A file may replace it, but nothing is read or written through it.
    Link(String),
    /// An open case.
    Open,
}

/// Allowed answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedAnswer {
    /// `ok:true`.
    Ok,
    /// `ok:true`, with a slot that holds one of these texts.
    Told(Vec<String>),
    /// `ok:false`.
    Refused,
    /// `ok:false` with the status `TOOL_ERROR`.
    ToolError,
    /// Any reply.
    Reply,
}

/// Kind of a source, or of the plugin built from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Good(String),
    Garbage,
    Ending,
    NoPlugin,
    Hanging,
    Unknown,
}

/// Expectation about a call: clause, choice and allowed answers.
pub(super) type Expectation = (&'static str, Option<&'static str>, Vec<Allowed<AllowedAnswer>>);

/// State of a conversation.
pub(super) struct State {
    kit: Kit,
    /// Choices of the configuration.
    choices: BTreeMap<String, String>,
    /// Links and folders below the source folder.
    links: BTreeSet<String>,
    folders: BTreeSet<String>,
    /// A named pipe without a writer.
    fifo: Option<String>,
    /// Files with their possible contents.
    files: BTreeMap<String, BTreeSet<Source>>,
    /// Builds by name. An empty set is a failed build.
    made: BTreeMap<String, BTreeSet<Source>>,
    /// Possible plugins behind the sample's tool; empty before the first load.
    loaded: BTreeSet<Source>,
    /// True if a plugin was compiled again.
    is_rebuilt: bool,
    /// Letters that a slot may hold since the sample's tool was called.
    told: BTreeSet<String>,
    /// True if something else may have been loaded.
    is_doubtful: bool,
    /// Observed end of a plugin.
    ended: Option<Ended>,
    /// True if the process died or exited with an error.
    died: bool,
    /// Values of `ok` in the replies, in order. They decide calls with an open outcome.
    replies: VecDeque<bool>,
}

/// Process in which a plugin ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// A process of its own.
    Apart,
    /// Possibly the process of the toolhost.
    Within,
}

/// Process in which a plugin ended, from the last look at its mark.
pub(super) fn ended(transcript: &Transcript) -> Option<Ended> {
    let text = transcript.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Looked { label, found, .. } if label == MARK => found.first()?.bytes.as_ref(),
        _ => None,
    })?;
    ended_by(&String::from_utf8_lossy(&text.0))
}

/// Process in which a plugin ended, from the process ids in its mark. A toolhost that runs the plugin in its own
/// process leaves the same id at loading and at the call.
fn ended_by(ids: &str) -> Option<Ended> {
    let (ids, _) = ids.split_once('!')?;
    let is_apart = ids.rsplit_once(' ').is_some_and(|(ids, last)| ids.split(' ').all(|id| id != last));
    Some(if is_apart { Ended::Apart } else { Ended::Within })
}

impl State {
    /// State at the start.
    pub(super) fn new(transcript: &Transcript) -> Self {
        let plan = &transcript.plan;
        let mut kit = Kit::of(&transcript.facts);
        let without = without_compiler(&transcript.facts);
        kit.compiles &=
            plan.sessions.first().is_none_or(|it| !without.keys().any(|name| it.env.contains_key(name)));
        let below = |name: &str| Some(name.strip_prefix(SOURCES)?.strip_prefix('/')?.to_owned());
        let named = |is: &dyn Fn(&Fixture) -> bool| -> BTreeSet<String> {
            plan.fixtures.iter().filter(|it| is(it)).filter_map(|it| below(it.name())).collect()
        };
        Self {
            kit,
            choices: transcript.facts.choices.clone(),
            links: named(&|it| matches!(it, Fixture::Path { what: PathKind::Link { .. }, .. })),
            folders: named(&|it| matches!(it, Fixture::Folder { .. })),
            fifo: fifo(plan),
            files: BTreeMap::new(),
            made: BTreeMap::new(),
            loaded: BTreeSet::new(),
            is_rebuilt: false,
            told: BTreeSet::new(),
            is_doubtful: false,
            ended: ended(transcript),
            died: transcript.exit(0) != Some(Exit::Code(0)),
            replies: replies(&transcript.stdout(0)),
        }
    }

    /// Destination of a path.
    fn spot(&self, path: &str) -> PathDestination {
        if path.is_empty() || path.starts_with('/') || path.contains('\0') {
            return PathDestination::Bad;
        }
        let mut names: Vec<&str> = Vec::new();
        let (mut is_odd, mut has_dots, mut is_deep) = (false, false, false);
        let mut parts = path.split('/').peekable();
        while let Some(name) = parts.next() {
            match name {
                "" | "." => is_odd = true,
                ".." if names.pop().is_none() => return PathDestination::Bad,
                ".." => has_dots = true,
                name => names.push(name),
            }
            let place = names.join("/");
            if self.links.contains(&place) {
                return if parts.peek().is_none() {
                    PathDestination::Link(place)
                } else {
                    PathDestination::Bad
                };
            }
            is_deep |= names.len() > 1;
        }
        let place = names.join("/");
        let is_below =
            |file: &str, other: &str| file.strip_prefix(other).is_some_and(|it| it.starts_with('/'));
        let mut files = self.files.iter().filter(|(_, held)| !held.is_empty()).map(|(file, _)| file);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./".contains(&byte);
        match () {
            () if place.is_empty() || self.folders.contains(&place) => PathDestination::Bad,
            () if path == self.kit.sample_file() => self.at(place, false, false),
            () if is_odd || path.len() > 100 || !path.bytes().all(is_plain) => PathDestination::Open,
            // A file cannot be a folder, nor a folder a file.
            () if files.any(|file| is_below(&place, file) || is_below(file, &place)) => PathDestination::Open,
            () => self.at(place, has_dots, is_deep),
        }
    }

    fn at(&self, place: String, has_dots: bool, is_deep: bool) -> PathDestination {
        let asked = [("write_dotdot_inside", has_dots), ("write_subfolder", is_deep)];
        let is_there = self.files.get(&place).is_some_and(|held| !held.is_empty());
        let asked = asked.into_iter().chain([("write_overwrite", is_there)]);
        PathDestination::At(place, asked.filter(|(_, is)| *is).map(|(key, _)| key).collect())
    }

    fn source(&self, content: &str) -> Source {
        match self.kit.letters(content) {
            Some(letters) => Source::Good(letters),
            None if content.starts_with(GARBAGE) => Source::Garbage,
            None if content.contains(ENDS) => Source::Ending,
            None if Some(content) == self.kit.no_plugin() => Source::NoPlugin,
            None if self.fifo.as_ref().is_some_and(|fifo| content.contains(fifo.as_str())) => Source::Hanging,
            None => Source::Unknown,
        }
    }

    /// The call in a line, and the expectation about it.
    pub(super) fn expect(&mut self, line: &[u8]) -> (Call, Expectation) {
        let came = self.replies.pop_front();
        let text = |value: Option<&Json>| value.and_then(Json::as_str).map(str::to_owned);
        let request: Option<Json> = std::str::from_utf8(line).ok().and_then(|line| line.trim().parse().ok());
        let input: Option<Json> =
            request.as_ref().and_then(|request| request.get("input_json")?.as_str()?.parse().ok());
        let aid = request.as_ref().and_then(|request| text(request.get("aid")));
        let anything = || (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply), Allowed::silence()]);
        let (Some(aid), Some(input)) = (aid, input) else {
            self.is_doubtful = true;
            return (Call::Other, anything());
        };
        let get = |tool: &Tool, name| text(tool.value(&input, name).as_ref());
        if aid == self.kit.write.aid {
            let [path, content] = ["path", "content"].map(|name| get(&self.kit.write, name));
            return self.write(path, content, came);
        }
        if aid == self.kit.compile.aid {
            let [path, name] = ["path", "name"].map(|name| get(&self.kit.compile, name));
            return (Call::Other, self.compile(path, name, came));
        }
        if aid == self.kit.load.aid {
            let name = get(&self.kit.load, "name");
            return (Call::Other, self.load(name, came));
        }
        self.call(aid == self.kit.aid, came)
    }

    fn write(
        &mut self,
        path: Option<String>,
        content: Option<String>,
        came: Option<bool>,
    ) -> (Call, Expectation) {
        let spot = path.as_deref().map_or(PathDestination::Bad, |path| self.spot(path));
        let expected = match (&spot, &content) {
            (_, None) => one("QUE-GEN-05", AllowedAnswer::Refused),
            (PathDestination::Bad, _) => one("QUE-GEN-03", AllowedAnswer::Refused),
            (PathDestination::Open, _) => either(GENERAL, None, ["accept", "refuse"]),
            (PathDestination::Link(place), Some(content)) => {
                if came == Some(true) {
                    self.links.remove(place);
                    self.files.insert(place.clone(), BTreeSet::from([self.source(content)]));
                }
                either("QUE-GEN-03", None, ["accept", "refuse"])
            }
            (PathDestination::At(place, asked), Some(content)) => {
                let source = self.source(content);
                let held = self.files.entry(place.clone()).or_default();
                let choice = |key: &str| self.choices.get(key).map(String::as_str);
                let is_refused = asked.iter().any(|key| choice(key) == Some("refuse"));
                let is_sure = asked.iter().all(|key| choice(key) == Some("accept"));
                // The reply decides: a refused write has no effect, even if it should have been accepted.
                let may_be = came.unwrap_or(is_sure || !is_refused);
                if may_be && (came.is_some() || is_sure) {
                    held.clear();
                }
                if may_be {
                    held.insert(source);
                }
                let clause = match asked.first() {
                    Some(&"write_overwrite") => "QUE-GEN-06",
                    Some(&"write_subfolder") => "QUE-GEN-18",
                    Some(_) => "QUE-GEN-19",
                    None => "QUE-GEN-04",
                };
                match (is_sure, is_refused) {
                    (_, true) => one(clause, AllowedAnswer::Refused),
                    (true, _) => one(clause, AllowedAnswer::Ok),
                    _ => either(
                        clause,
                        asked.first().copied().filter(|_| asked.len() == 1),
                        ["accept", "refuse"],
                    ),
                }
            }
        };
        (Call::Write { path, content, spot }, expected)
    }

    fn compile(&mut self, path: Option<String>, name: Option<String>, came: Option<bool>) -> Expectation {
        if !self.kit.compiles {
            return one("QUE-GEN-21", AllowedAnswer::ToolError);
        }
        let spot = path.as_deref().map_or(PathDestination::Bad, |path| self.spot(path));
        let name = name.unwrap_or_default();
        let place = match spot {
            PathDestination::Bad | PathDestination::Link(_) => {
                return one("QUE-GEN-08", AllowedAnswer::Refused);
            }
            PathDestination::Open => None,
            PathDestination::At(place, _) => Some(place),
        };
        let sources = match place {
            Some(place) => match self.files.get(&place) {
                Some(sources) => sources.clone(),
                // The source was never written.
                None => BTreeSet::new(),
            },
            None => BTreeSet::from([Source::Unknown]),
        };
        if !is_plain(&name) {
            self.is_doubtful |= !is_bad(&name);
            return (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply)]);
        }
        let made = self.made.entry(name).or_default();
        let had_one = !made.is_empty();
        let fails = |source: &Source| matches!(source, Source::Garbage | Source::Hanging);
        let is_good = |source: &Source| matches!(source, Source::Good(_));
        let (has_failed, is_certain) = (sources.iter().all(fails), sources.iter().all(is_good));
        if has_failed || came == Some(false) {
            // A failed build may remove an earlier one. Without an earlier build there is none.
            if had_one {
                made.insert(Source::Unknown);
            }
        } else {
            if is_certain {
                made.clear();
            }
            made.extend(sources.into_iter().filter(|source| !fails(source)));
            self.is_rebuilt |= is_certain && had_one;
        }
        match (has_failed, is_certain) {
            (true, _) => one("QUE-GEN-08", AllowedAnswer::ToolError),
            (_, true) => one(if had_one { "QUE-GEN-12" } else { "QUE-GEN-01" }, AllowedAnswer::Ok),
            _ => (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply)]),
        }
    }

    fn load(&mut self, name: Option<String>, came: Option<bool>) -> Expectation {
        let name = name.unwrap_or_default();
        if is_bad(&name) {
            return one("QUE-GEN-13", AllowedAnswer::Refused);
        }
        let Some(made) = self.made.get(&name) else {
            return match is_plain(&name) {
                true => one("QUE-GEN-13", AllowedAnswer::Refused),
                false => (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply)]),
            };
        };
        if made.is_empty() {
            return one("QUE-GEN-09", AllowedAnswer::Refused);
        }
        if made.iter().all(|source| *source == Source::NoPlugin) {
            return one("QUE-GEN-13", AllowedAnswer::Refused);
        }
        if made.iter().all(|source| *source == Source::Ending) {
            // Some compilers reject the text added to the sample.
            self.loaded.insert(Source::Ending);
            return ("QUE-GEN-14", None, vec![Allowed::answer(AllowedAnswer::Reply)]);
        }
        if !made.iter().all(|source| matches!(source, Source::Good(_))) {
            self.is_doubtful = true;
            return (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply)]);
        }
        if !self.loaded.is_empty() {
            let chosen = self.choices.get("load_again").map(String::as_str);
            match chosen {
                Some("refuse") => return one("QUE-GEN-16", AllowedAnswer::Refused),
                Some(_) => self.loaded.clone_from(made),
                None if came == Some(true) => self.loaded.clone_from(made),
                None if came == Some(false) => {}
                None => self.loaded.extend(made.iter().cloned()),
            }
            return match chosen {
                Some(_) => one("QUE-GEN-16", AllowedAnswer::Ok),
                None => either("QUE-GEN-16", Some("load_again"), ["replace", "refuse"]),
            };
        }
        if came != Some(false) {
            self.loaded.extend(made.iter().cloned());
        }
        one("QUE-GEN-01", AllowedAnswer::Ok)
    }

    fn call(&mut self, is_sample: bool, came: Option<bool>) -> (Call, Expectation) {
        if self.is_doubtful {
            return (Call::Other, (GENERAL, None, vec![Allowed::answer(AllowedAnswer::Reply)]));
        }
        if !is_sample || self.loaded.is_empty() {
            return (Call::Other, one("QUE-GEN-02", AllowedAnswer::Refused));
        }
        if self.loaded.contains(&Source::Ending) {
            let way = if self.ended.is_some() { AllowedAnswer::Refused } else { AllowedAnswer::Reply };
            // A plugin in the process of the toolhost may end it.
            let silence = (self.died && self.ended != Some(Ended::Apart)).then(Allowed::silence);
            let allowed = silence.into_iter().chain([Allowed::answer(way)]).collect();
            return (Call::Ending(self.ended.is_some()), ("QUE-GEN-14", None, allowed));
        }
        let letters = self.loaded.iter().filter_map(|source| match source {
            Source::Good(letters) => Some(letters.clone()),
            _ => None,
        });
        let letters: BTreeSet<String> = letters.collect();
        // A slot that already holds the letters may be omitted from the delta.
        let is_there = letters.iter().any(|letters| self.told.contains(letters));
        let way =
            if is_there { AllowedAnswer::Ok } else { AllowedAnswer::Told(letters.iter().cloned().collect()) };
        if came == Some(true) {
            self.told = letters;
        }
        (Call::Other, one(if self.is_rebuilt { "QUE-GEN-12" } else { "QUE-GEN-01" }, way))
    }
}

/// Clause for the general rules of toolhosts.
pub(crate) const GENERAL: &str = "QUE-GEN-24";

fn one(clause: &'static str, way: AllowedAnswer) -> Expectation {
    (clause, None, vec![Allowed::answer(way)])
}

fn either(clause: &'static str, choice: Option<&'static str>, values: [&'static str; 2]) -> Expectation {
    let ways = [AllowedAnswer::Ok, AllowedAnswer::Refused].into_iter().zip(values);
    (clause, choice, ways.map(|(way, value)| Allowed::answer(way).shows(value)).collect())
}

/// True for a name that every toolhost accepts.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// True for a name that every toolhost must refuse.
fn is_bad(name: &str) -> bool {
    name.is_empty() || name.contains('/') || name == ".."
}

fn replies(stdout: &[u8]) -> VecDeque<bool> {
    let ok = |line: &[u8]| std::str::from_utf8(line).ok()?.trim().parse::<Json>().ok()?.get("ok")?.as_bool();
    stdout.split(|byte| *byte == b'\n').filter_map(ok).collect()
}

fn fifo(plan: &Plan) -> Option<String> {
    let is_fifo = |it: &&Fixture| matches!(it, Fixture::Path { what: PathKind::Fifo, .. });
    plan.fixtures.iter().find(is_fifo).map(|it| it.name().to_owned())
}

#[cfg(test)]
mod tests {
    use peerproof_engine::contract::face::Outcome;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use serde_json::json;

    use super::*;

    fn state() -> State {
        let mut facts = Facts::new(Side::Provider);
        let genesis =
            json!({ "source": "x/sample.c", "aid": "AID.X", "text": "int a; // @NONCE@ and @NONCE@" });
        facts.features.insert("genesis".to_owned(), genesis);
        facts
            .roles
            .insert("load".to_owned(), json!({ "aid": "AID.L", "input": { "a": [1, { "b": "{name}" }] } }));
        super::super::complete(&mut facts);
        let fixtures = vec![
            Fixture::Folder { name: format!("{SOURCES}/folder"), folders: Vec::new(), watched: false },
            Fixture::Path { name: format!("{SOURCES}/link"), what: PathKind::Link { to: "x".to_owned() } },
        ];
        let plan = Plan { fixtures, ..Plan::default() };
        State::new(&Transcript {
            boundary: "run_queue".to_owned(),
            check: "x".to_owned(),
            facts: facts.into(),
            plan: plan.into(),
            timeout_scale: 1.0,
            events: Vec::new(),
        })
    }

    #[test]
    fn a_path_leads_where_it_says() {
        let mut state = state();
        for path in [
            "",
            "/a.c",
            "a\0.c",
            "../a.c",
            "a/../../a.c",
            "link/a.c",
            "link/",
            "folder",
            "folder/",
            ".",
            "a/..",
        ] {
            assert_eq!(state.spot(path), PathDestination::Bad, "{path:?}");
        }
        for path in ["./a.c", "a//b.c", "%2e.c", "a\\b.c", "a b.c", "-a.c"] {
            assert_eq!(state.spot(path), PathDestination::Open, "{path:?}");
        }
        assert_eq!(state.spot("link"), PathDestination::Link("link".to_owned()));
        assert_eq!(state.spot("a.c"), PathDestination::At("a.c".to_owned(), vec![]));
        let asked = vec!["write_dotdot_inside"];
        assert_eq!(state.spot("folder/../a.c"), PathDestination::At("a.c".to_owned(), asked));
        state.files.insert("deep/a".to_owned(), BTreeSet::from([Source::Unknown]));
        state.files.insert("refused".to_owned(), BTreeSet::new());
        assert_eq!(
            (state.spot("deep"), state.spot("deep/a/b")),
            (PathDestination::Open, PathDestination::Open)
        );
        assert_eq!(state.spot("refused"), PathDestination::At("refused".to_owned(), vec![]));
    }

    #[test]
    fn what_a_call_comes_to_follows_from_those_before() {
        let mut state = state();
        let ask = |state: &mut State, aid: &str, input: serde_json::Value| {
            let line = json!({ "aid": aid, "input_json": input.to_string() }).to_string();
            let (_, (clause, _, allowed)) = state.expect(line.as_bytes());
            let ways = allowed.into_iter().filter_map(|allowed| match allowed.outcome {
                Outcome::Answer(way) => Some(way),
                Outcome::Silence => None,
            });
            (clause, ways.collect::<Vec<_>>())
        };
        let write = |letters: &str| {
            let content = format!("int a; // {letters} and {letters}");
            ("AID.GENESIS.WRITE_FILE.v1", json!({ "path": "a.c", "content": content }))
        };
        let compile = |path: &str| ("AID.GENESIS.COMPILE.v1", json!({ "path": path, "name": "made" }));
        let load = || ("AID.L", json!({ "a": [1, { "b": "made" }] }));
        let (one, other) = ("abcdefghijklmnop", "ponmlkjihgfedcba");
        for ((aid, input), clause, way) in [
            (("AID.X", json!({})), "QUE-GEN-02", AllowedAnswer::Refused),
            (load(), "QUE-GEN-13", AllowedAnswer::Refused),
            (compile("a.c"), "QUE-GEN-08", AllowedAnswer::ToolError),
            (load(), "QUE-GEN-09", AllowedAnswer::Refused),
            (write(one), "QUE-GEN-04", AllowedAnswer::Ok),
            (compile("a.c"), "QUE-GEN-01", AllowedAnswer::Ok),
            (compile("link/a.c"), "QUE-GEN-08", AllowedAnswer::Refused),
            (load(), "QUE-GEN-01", AllowedAnswer::Ok),
            (("AID.X", json!({})), "QUE-GEN-01", AllowedAnswer::Told(vec![one.to_owned()])),
        ] {
            assert_eq!(ask(&mut state, aid, input.clone()), (clause, vec![way]), "{aid} {input}");
        }
        state.replies.push_back(true);
        let line = json!({ "aid": "AID.X", "input_json": "{}" }).to_string();
        for way in [AllowedAnswer::Told(vec![one.to_owned()]), AllowedAnswer::Ok] {
            let (_, (_, _, allowed)) = state.expect(line.as_bytes());
            assert_eq!(allowed, [Allowed::answer(way)]);
        }
        // A refused call has no effect on later builds and loads.
        for ((aid, input), clause, way) in [
            (
                ("AID.GENESIS.WRITE_FILE.v1", json!({ "path": "b.c", "content": "text" })),
                "QUE-GEN-04",
                AllowedAnswer::Ok,
            ),
            (compile("b.c"), "QUE-GEN-08", AllowedAnswer::ToolError),
        ] {
            state.replies.push_back(false);
            assert_eq!(ask(&mut state, aid, input.clone()), (clause, vec![way]), "{aid} {input}");
        }
        state.told.clear();
        // The second text may or may not be there, so either may run.
        for (aid, input) in [write(other), compile("a.c"), load()] {
            ask(&mut state, aid, input);
        }
        assert_eq!(
            ask(&mut state, "AID.X", json!({})).1,
            [AllowedAnswer::Told(vec![one.to_owned(), other.to_owned()])]
        );
    }

    #[test]
    fn a_plugin_ends_apart_where_its_process_is_another_one() {
        assert_eq!((ended_by(""), ended_by("7 ")), (None, None));
        assert_eq!(ended_by("7 8!"), Some(Ended::Apart));
        assert_eq!((ended_by("7 8 8!"), ended_by("8!")), (Some(Ended::Within), Some(Ended::Within)));
    }
}
