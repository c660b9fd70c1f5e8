//! The toolhost that the harness plays. Its tools depend only on their input and their state, in any process at any
//! time.
//!
//! The member `do` of its input is the task of a tool: `{"output": TEXT, "set": {SLOT: Artifact}, "remove":
//! [SLOT]}`, all optional. Without `output` the tool returns its input and the digest of its state. `steps` are
//! actor steps that replace the reply; a session keeps the changes of `set` and `remove`. The last word of an aid
//! before its version names the misbehaviour of a tool, if any: `AID.PEERPROOF.CRASH.v1`.

use peerproof_engine::contract::program::Program;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::ActorStep;
use peerproof_engine::drive::fixture::actor::LIFE_MS_MAX;

use super::digest;
use super::state::State;

/// Name of the program.
pub(crate) const TOOLHOST: &str = "run_log/toolhost";

/// Duration of a slow tool, ms; leaves time to look at the waiting peer.
const SLOW_MS: u64 = 1_500;

/// Aid of a tool that does its task.
pub(crate) const DO: &str = "AID.PEERPROOF.DO.v1";

/// Outcome of one execution.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionResult {
    /// Success: output text and resulting state.
    Done(String, Box<State>),
    /// Failure with this error text.
    Failed(String),
    /// Misbehaviour, by the word of the tool.
    Amiss(String),
}

/// Word of an aid that names the behaviour of its tool.
pub fn word(aid: &str) -> &str {
    aid.rsplit('.').nth(1).unwrap_or_default()
}

/// True if a tool replies only at the end of its input.
pub(crate) fn is_patient(aid: &str) -> bool {
    word(aid) == "ENDS"
}

/// True for the arguments `--run PLUGIN AID` and `--serve PLUGIN`.
pub(crate) fn is_start(argv: &[String]) -> bool {
    match argv {
        [mode, _] => mode == "--serve",
        [mode, _, aid] => mode == "--run" && !aid.is_empty(),
        _ => false,
    }
}

/// True for tools whose success is open: it has an `error` as well, or the toolhost exits with a non-zero status.
pub(crate) fn is_doubtful(aid: &str) -> bool {
    matches!(word(aid), "DOUBT" | "LATE")
}

/// Runs a tool.
pub fn run(aid: &str, input: &Json, state: &State) -> ExecutionResult {
    let told = input.get("do");
    let get = |name: &str| told.and_then(|told| told.get(name));
    let mut next = state.clone();
    let set = get("set").cloned().unwrap_or_else(|| Json::Object(Vec::new()));
    let remove = get("remove").cloned().unwrap_or_else(|| Json::Array(Vec::new()));
    let change = Json::object([("delta", true.into()), ("slots", set), ("removed_slots", remove)]);
    if let Err(why) = next.change(&change) {
        return ExecutionResult::Failed(why.to_owned());
    }
    let output = match get("output").and_then(Json::as_str) {
        Some(text) => text.to_owned(),
        None => {
            let state = Json::from(digest::of_state(state));
            Json::object([("input", input.clone()), ("state", state)]).to_text()
        }
    };
    match word(aid) {
        "FAIL" => ExecutionResult::Failed("its tool always fails".to_owned()),
        "OTHER" => ExecutionResult::Done("{\"other\":true}".to_owned(), next.into()),
        "MOVES" => {
            let last = next.0.len() - 1;
            next.0[last] = Some(super::state::Artifact::new("text", "tool", "\"moved\""));
            ExecutionResult::Done(output, next.into())
        }
        word @ ("CRASH" | "EXIT" | "HANG" | "GARBAGE" | "CUT" | "EMPTY" | "NOTOK" | "NOOUTPUT"
        | "BADOUTPUT" | "BADSTATE" | "FLOOD" | "NOISY" | "NAN") => ExecutionResult::Amiss(word.to_owned()),
        _ => ExecutionResult::Done(output, next.into()),
    }
}

/// A running toolhost.
pub struct Toolhost {
    /// Aid of run mode; `None` in serve mode.
    aid: Option<String>,
    state: State,
}

impl Toolhost {
    /// A toolhost started with these arguments.
    pub fn new(argv: &[String]) -> Self {
        Self { aid: aid_of(argv).map(str::to_owned), state: State::default() }
    }

    /// Parses a request into aid, input and state of the tool. In serve mode the state is that of the session.
    ///
    /// # Errors
    /// Describes the fault of the request.
    pub fn asked(&mut self, request: &[u8]) -> Result<(String, Json, State), &'static str> {
        let decode = |text: &[u8]| json::decode(json::trim(text), &DecodeLimits::default());
        let is_line = request.ends_with(b"\n") && !json::trim(request).contains(&b'\n');
        if !is_line && self.aid.is_none() {
            return Err("the request in serve mode is not a complete line");
        }
        let request = decode(request).map_err(|_| "the request is not JSON")?.value;
        let named = request.get("aid").and_then(Json::as_str).map(str::to_owned);
        let aid =
            self.aid.clone().or(named).filter(|aid| !aid.is_empty()).ok_or("the request has no `aid`")?;
        let input = match request.get("input_json") {
            None => Json::Object(Vec::new()),
            Some(text) => {
                let text = text.as_str().ok_or("`input_json` is not a string")?;
                let input = decode(text.as_bytes()).map_err(|_| "`input_json` is not JSON")?.value;
                input.as_object().ok_or("`input_json` is not an object")?;
                input
            }
        };
        if let Some(state) = request.get("ds_state") {
            self.state.change(state)?;
        }
        Ok((aid, input, self.state.clone()))
    }

    /// Records the state after a tool.
    pub fn keep(&mut self, state: State) {
        self.state = state;
    }

    fn reply(&self, ok: bool, status: &str, error: &str, output: Option<&str>, state: Json) -> Json {
        let mut reply = Json::object([
            ("ok", Json::from(ok)),
            ("status", status.into()),
            ("error", error.into()),
            ("ds_state", state),
        ]);
        if let Some(output) = output {
            reply.set("output_json", output);
        }
        reply
    }

    fn come_to(&mut self, aid: &str, ran: ExecutionResult) -> Vec<ActorStep> {
        match ran {
            ExecutionResult::Done(output, state) => self.success(aid, &output, *state),
            ExecutionResult::Failed(error) => {
                let nothing = Json::object([("delta", true.into()), ("slots", Json::Object(Vec::new()))]);
                vec![line(&self.reply(false, "TOOL_ERROR", &error, None, nothing))]
            }
            ExecutionResult::Amiss(word) => self.in_mode(amiss(&word)),
        }
    }

    /// Adapts steps to the mode. In serve mode the state of a reply becomes a delta, so that it is valid there.
    fn in_mode(&self, steps: Vec<ActorStep>) -> Vec<ActorStep> {
        let step = |step| match step {
            ActorStep::Stdout(payload) if self.aid.is_none() => ActorStep::Stdout(delta(payload)),
            other => other,
        };
        steps.into_iter().map(step).collect()
    }

    fn success(&mut self, aid: &str, output: &str, state: State) -> Vec<ActorStep> {
        let told = if self.aid.is_some() { state.to_json() } else { state.delta_from(&self.state) };
        self.state = state;
        let error = if word(aid) == "DOUBT" { "not so sure" } else { "" };
        let reply = self.reply(true, "OK", error, Some(output), told);
        let mut steps = vec![line(&reply)];
        if word(aid) == "SLOW" {
            steps.insert(0, ActorStep::Sleep { ms: SLOW_MS });
        }
        if is_patient(aid) && self.aid.is_some() {
            steps.insert(0, ActorStep::ReadToEnd);
        }
        steps.extend((word(aid) == "LATE").then_some(ActorStep::Exit(3)));
        steps
    }
}

impl Program for Toolhost {
    fn reads_lines(&self) -> bool {
        self.aid.is_none()
    }

    fn answer(&mut self, request: &[u8]) -> Vec<ActorStep> {
        let mut steps = match self.asked(request) {
            Err(why) => self.come_to("", ExecutionResult::Failed(why.to_owned())),
            Ok((aid, input, state)) => match (run(&aid, &input, &state), told(input.get("do"))) {
                (ExecutionResult::Done(_, state), Ok(Some(steps))) => {
                    self.keep(*state);
                    self.in_mode(steps)
                }
                (ran, Ok(_)) => self.come_to(&aid, ran),
                (_, Err(why)) => self.come_to(&aid, ExecutionResult::Failed(why)),
            },
        };
        if self.aid.is_some() {
            steps.push(ActorStep::Exit(0));
        }
        steps
    }
}

/// Steps of a task that replace the reply, if it has any.
///
/// # Errors
/// Tells why the steps cannot be read.
pub fn told(task: Option<&Json>) -> Result<Option<Vec<ActorStep>>, String> {
    let Some(steps) = task.and_then(|task| task.get("steps")) else { return Ok(None) };
    let text = steps.to_text();
    serde_json::from_str(&text).map(Some).map_err(|error| format!("no steps of a tool: {error}: {text}"))
}

/// Aid in the arguments of run mode.
pub(crate) fn aid_of(argv: &[String]) -> Option<&str> {
    let run = argv.iter().position(|word| word == "--run")?;
    argv.get(run + 2).map(String::as_str)
}

fn line(reply: &Json) -> ActorStep {
    ActorStep::Stdout(Payload::text(reply.to_text() + "\n"))
}

/// Turns the full state of a reply into a delta of the same slots; other text stays.
fn delta(payload: Payload) -> Payload {
    const FULL: &str = "\"ds_state\":{\"slots\":";
    match payload.expand(&Vars::new()).map(String::from_utf8) {
        Ok(Ok(text)) if text.contains(FULL) => {
            Payload::text(text.replacen(FULL, "\"ds_state\":{\"delta\":true,\"slots\":", 1))
        }
        _ => payload,
    }
}

/// Steps of a misbehaving tool.
fn amiss(word: &str) -> Vec<ActorStep> {
    let says = |text: &str| vec![ActorStep::Stdout(Payload::text(text))];
    match word {
        "CRASH" => vec![ActorStep::Die(6)],
        "EXIT" => vec![ActorStep::Exit(3)],
        "HANG" => vec![ActorStep::Sleep { ms: LIFE_MS_MAX }],
        "FLOOD" => {
            vec![ActorStep::Flood { unit: "x".repeat(1 << 10), bytes_max: 4 << 20 }, ActorStep::Exit(0)]
        }
        "CUT" => {
            [says(r#"{"ok":true,"status":"OK","error":"","output_js"#), vec![ActorStep::Exit(0)]].concat()
        }
        "EMPTY" => vec![ActorStep::Exit(0)],
        "NOTOK" => says(
            "{\"ok\":true,\"status\":\"TOOL_ERROR\",\"error\":\"no\",\"output_json\":\"{}\",\"ds_state\":{\"slots\":{}}}\n",
        ),
        "NOOUTPUT" => says("{\"ok\":true,\"status\":\"OK\",\"error\":\"\",\"ds_state\":{\"slots\":{}}}\n"),
        "BADOUTPUT" => says(
            "{\"ok\":true,\"status\":\"OK\",\"error\":\"\",\"output_json\":\"{'\",\"ds_state\":{\"slots\":{}}}\n",
        ),
        "BADSTATE" => says(
            "{\"ok\":true,\"status\":\"OK\",\"error\":\"\",\"output_json\":\"{}\",\"ds_state\":{\"slots\":{\"9\":{}}}}\n",
        ),
        "NOISY" => says(
            "starting up\n{\"ok\":true,\"status\":\"OK\",\"error\":\"\",\"output_json\":\"{}\",\"ds_state\":{\"slots\":{}}}\n",
        ),
        "NAN" => says(
            "{\"ok\":true,\"status\":\"OK\",\"error\":\"\",\"output_json\":\"{}\",\"took_ms\":NaN,\"ds_state\":{\"slots\":{}}}\n",
        ),
        _ => says("this is no JSON\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies of a toolhost with these arguments, and true if it exits after the last request.
    fn says(argv: &[&str], requests: &[&str]) -> (Vec<Json>, bool) {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let mut host = Toolhost::new(&argv);
        let (mut replies, mut exits) = (Vec::new(), false);
        for step in requests.iter().flat_map(|request| host.answer(format!("{request}\n").as_bytes())) {
            match step {
                ActorStep::Stdout(payload) => {
                    let text = String::from_utf8(payload.expand(&Vars::new()).unwrap()).unwrap();
                    replies.push(text.parse().unwrap());
                }
                ActorStep::Exit(_) => exits = true,
                _ => {}
            }
        }
        (replies, exits)
    }

    #[test]
    fn one_process_is_one_tool_or_keeps_its_state() {
        let set = r#"{"aid":"A.DO.v1","input_json":"{\"do\":{\"set\":{\"3\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"1\",\"size_bytes\":1}}}}"}"#;
        let remove =
            r#"{"aid":"A.DO.v1","input_json":"{\"do\":{\"remove\":[3]}}","ds_state":{"delta":true}}"#;
        let (replies, exits) = says(&["--run", "default", "A.DO.v1"], &[set]);
        assert!(exits && replies[0].pointer("/ds_state/slots/3/type").is_some());
        assert_eq!(replies[0].pointer("/ds_state/delta"), None);
        let (replies, exits) = says(&["--serve", "default"], &[set, remove, "no JSON", remove]);
        assert!(!exits && replies.len() == 4);
        assert!(replies[0].pointer("/ds_state/slots/3/type").is_some());
        assert_eq!(replies[1].pointer("/ds_state/removed_slots").map(Json::to_text), Some("[3]".to_owned()));
        assert_eq!(replies[2].get("ok"), Some(&false.into()));
        assert_eq!(replies[3].pointer("/ds_state/removed_slots").map(Json::to_text), Some("[]".to_owned()));
        assert_ne!(replies[1].get("output_json"), replies[3].get("output_json"));
    }

    #[test]
    fn states_of_replies_that_are_told_are_deltas_in_a_session() {
        let request = |aid: &str, does: &str| {
            Json::object([("aid", Json::from(aid)), ("input_json", format!("{{\"do\":{does}}}").into())])
                .to_text()
        };
        let steps =
            r#"{"steps":[{"stdout":[{"text":"{\"ok\":false,\"ds_state\":{\"slots\":{\"8\":1}}}\n"}]}]}"#;
        for (aid, does) in [("A.DO.v1", steps), ("A.BADSTATE.v1", "{}")] {
            for (argv, is_delta) in
                [(vec!["--serve", "default"], true), (vec!["--run", "default", aid], false)]
            {
                let (replies, _) = says(&argv, &[&request(aid, does)]);
                assert!(replies[0].pointer("/ds_state/slots").is_some(), "{aid}");
                assert_eq!(replies[0].pointer("/ds_state/delta").is_some(), is_delta, "{aid}");
            }
        }
    }

    #[test]
    fn a_request_of_a_session_is_a_line_and_one_of_a_process_need_not_be() {
        let asked = |argv: &[&str], request: &str| {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            Toolhost::new(&argv).asked(request.as_bytes()).is_ok()
        };
        let (serve, run) = (["--serve", "default"], ["--run", "default", "A.DO.v1"]);
        let request = r#"{"aid":"A.DO.v1","input_json":"{\"a\":1}","ds_state":{"slots":{}}}"#;
        let spread = request.replacen(',', ",\n", 1);
        for text in [format!("{request}\n"), format!(" {request}\r\n")] {
            assert!(asked(&serve, &text) && asked(&run, &text), "{text}");
        }
        for text in [request.to_owned(), spread + "\n"] {
            assert!(!asked(&serve, &text) && asked(&run, &text), "{text}");
        }
        for (from, to) in
            [("\"{\\\"a\\\":1}\"", "{}"), ("\\\"a\\\":1", "'"), ("{\\\"a\\\":1}", "[]"), ("{}}", "[]}")]
        {
            let wrong = request.replacen(from, to, 1) + "\n";
            assert!(wrong.trim_end() != request && !asked(&run, &wrong), "{wrong}");
        }
    }
}
