//! Tests of verdicts: untried clauses are not proved, and one fault is reported once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::drive::machine::{Action, Machine, MachineEvent, Millis};
use peerproof_engine::drive::peer::{MakeMachine, Origin, Peer};
use peerproof_engine::drive::presentation::{self, Harmless};
use peerproof_engine::drive::reference_peers::Reference;
use peerproof_engine::run::results;
use peerproof_engine::run::runner::{self, Options, Surroundings};
use peerproof_engine::run::verdict::{CheckResult, Verdict};
use peerproof_toolhost::expect::{Allowed, Expect, Outcome};
use peerproof_toolhost::talk::{Request, Talk, refused};
use serde_json::Value;

use crate::start::actor_exe;

/// Reference in this process with further arguments.
fn peer_of(boundary: &'static dyn Boundary, reference: Reference, extra: &[&str]) -> Peer {
    let extra: Vec<String> = extra.iter().map(|word| (*word).to_owned()).collect();
    Peer {
        name: "reference".to_owned(),
        boundary,
        facts: table::played(boundary).facts_of(&reference),
        commands: reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args)).collect(),
        env: Vec::new(),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| {
            table::played(boundary).reference_machine(&[args, &extra].concat(), env)
        })),
        pace: Arc::default(),
    }
}

fn toolhost(extra: &[&str]) -> Peer {
    let toolhost = table::find("toolhost").unwrap();
    peer_of(toolhost, table::played(toolhost).references().remove(0), extra)
}

fn run(peer: &Peer, checks: &[&Check]) -> BTreeMap<String, CheckResult> {
    let options = Options { slow: true, very_slow: true, confirm: 1, keep_going: true, ..Options::default() };
    run_as(peer, checks, &options)
}

fn run_as(peer: &Peer, checks: &[&Check], options: &Options) -> BTreeMap<String, CheckResult> {
    let actor_exe = actor_exe();
    let scratch = tempfile::tempdir().unwrap();
    let interrupted = Arc::<AtomicBool>::default();
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
    let results = Mutex::new(BTreeMap::new());
    runner::run(peer, checks, options, around, &|outcome| {
        results.lock().unwrap().insert(outcome.result.id.clone(), outcome.result);
    });
    results.into_inner().unwrap()
}

fn check(id: &str) -> &'static Check {
    let all = table::all().into_iter().flat_map(Boundary::checks);
    all.into_iter().find(|check| check.id == id).unwrap()
}

#[test]
fn what_was_not_carried_out_is_not_proved() {
    let check = Check::new("toolhost/serve/left-out", "t", ["TH-FRAME-01"], "serve", |facts, _| {
        let mut talk = Talk::serve(facts);
        talk.canary_for("TH-FRAME-01");
        let ends = [Outcome::Silence, Outcome::EndsInOrder].map(Allowed::of);
        let may_end = Expect { allowed: ends.to_vec(), ..Expect::new("TH-FRAME-01", refused()) };
        talk.send(Payload::text("\n"), may_end);
        let unknown = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}");
        talk.send(unknown.line(), Expect::new("TH-FRAME-01", refused()));
        Ok(talk.canary().finish().plan())
    });
    assert_eq!(run(&toolhost(&[]), &[&check])[&check.id].verdict, Verdict::Pass);
    let found = &run(&toolhost(&["--choice", "blank_line=end"]), &[&check])[&check.id];
    let Verdict::Untestable(why) = &found.verdict else { panic!("{:?}", found.verdict) };
    assert_eq!(why.code, "step_left_out");
    assert!(why.detail.ends_with("the peer ended before them (exit status 0)"), "{why}");
}

/// The peer is correct, but the expectations make it wrong: first a SHOULD, then a MUST.
#[test]
fn what_binds_is_judged_beside_a_should_that_is_broken() {
    let told = |must: bool, ends: bool| {
        const MUST: &str = "TH-FRAME-01";
        let clauses = ["TH-FRAME-06", MUST];
        let check = Check::new("toolhost/serve/should-and-must", "t", clauses, "serve", move |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-FRAME-01");
            let unknown = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}");
            talk.send(unknown.line(), Expect::ok("TH-FRAME-06"));
            if ends {
                let may_end = [Outcome::Silence, Outcome::EndsInOrder].map(Allowed::of);
                let may_end = Expect { allowed: may_end.to_vec(), ..Expect::new("TH-FRAME-01", refused()) };
                talk.send(Payload::text("\n"), may_end);
            }
            talk.send(unknown.line(), if must { Expect::ok(MUST) } else { Expect::refused(MUST) });
            Ok(talk.canary().finish().plan())
        });
        let peer = toolhost(&["--choice", if ends { "blank_line=end" } else { "blank_line=ignore" }]);
        let found = run(&peer, &[&check]).remove(&check.id).unwrap();
        let standings = results::standings(std::slice::from_ref(&found));
        let words = standings.iter().map(|(clause, standing)| (clause.id.to_string(), standing.word()));
        let exit = results::exit_code(std::slice::from_ref(&found), false);
        (found, words.collect::<Vec<_>>(), exit)
    };
    let words = |must| vec![("TH-FRAME-01".to_owned(), must), ("TH-FRAME-06".to_owned(), "broken")];
    let (found, standings, exit) = told(true, false);
    assert_eq!((standings, exit), (words("broken"), 1));
    assert_eq!(found.findings[0].clause.0, "TH-FRAME-01", "it is what is confirmed and reproduced");
    let (_, standings, exit) = told(false, false);
    assert_eq!((standings, exit), (words("proved"), 0));
    let (found, standings, exit) = told(false, true);
    assert_eq!((standings, exit), (words("undecided"), 4));
    assert!(found.undecided().unwrap().1.starts_with("step_left_out: "), "{:?}", found.rest);
}

/// Without the token of a reply the conversation could not go on, and only a canary would follow.
#[test]
fn a_reply_that_is_needed_is_waited_for_although_a_canary_follows() {
    const ID: &str = "toolhost/serve/lease/issued-as-configured";
    for how in [Harmless::SlowStart, Harmless::LateReplies] {
        let mut peer = toolhost(&[]);
        let Origin::InProcess(make) = peer.origin.clone() else { panic!("a process") };
        let slow: MakeMachine = Arc::new(move |args, env| Some(presentation::wrap(make(args, env)?, how)));
        peer.origin = Origin::InProcess(slow);
        assert_eq!(run(&peer, &[check(ID)])[ID].verdict, Verdict::Pass, "{}", how.name());
    }
}

#[test]
fn a_plan_that_tries_nothing_is_no_pass() {
    let check = Check::new("toolhost/serve/no-role", "t", ["TH-FRAME-01"], "serve", |facts, _| {
        let mut talk = Talk::serve(facts);
        talk.canary_for("TH-FRAME-01");
        if talk.has("fail") {
            let ask = talk.ask("fail", "{\"message\":\"m\"}");
            talk.send(ask.line(), Expect::new("TH-FRAME-01", refused()));
        }
        Ok(talk.finish().plan())
    });
    let mut peer = toolhost(&[]);
    assert_eq!(run(&peer, &[&check])[&check.id].verdict, Verdict::Pass);
    peer.facts.roles.remove("fail");
    let Verdict::Untestable(why) = &run(&peer, &[&check])[&check.id].verdict else { panic!("decided") };
    assert_eq!(why.code, "nothing_to_try");
}

#[test]
fn correct_peers_are_asked_everything() {
    let mut left_out = Vec::new();
    for boundary in table::all() {
        for reference in table::played(boundary).references() {
            let is_light = |id: &str| !id.contains("/limits/") && !id.contains("size");
            let checks: Vec<&Check> = boundary
                .checks()
                .iter()
                .filter(|check| reference.commands.iter().any(|(name, _)| *name == check.command))
                .filter(|check| !check.needs_process && is_light(&check.id))
                .collect();
            for (id, result) in run(&peer_of(boundary, reference, &[]), &checks) {
                if let Verdict::Untestable(why) = result.verdict
                    && ["step_left_out", "nothing_to_try"].contains(&&*why.code)
                {
                    left_out.push(format!("{id}: {why}"));
                }
            }
        }
    }
    assert_eq!(left_out, Vec::<String>::new());
}

const OTHER: &str = "toolhost/serve/request/aid-missing";
const OWNER: &str = "toolhost/serve/replies/status-is-documented";

/// The check that watches replies reports a fault in every reply; no other check passes whose conversation shows it.
#[test]
fn what_fails_alone_is_masked_beside_the_check_that_tells_why() {
    let peer = toolhost(&["--mutant", "status-in-lower-case"]);
    let (other, owner) = (check(OTHER), check(OWNER));
    assert_eq!(run(&peer, &[other])[OTHER].verdict, Verdict::Fail);
    let both = run(&peer, &[other, owner]);
    assert_eq!(both[OWNER].verdict, Verdict::Fail);
    let Verdict::Masked(cause) = &both[OTHER].verdict else { panic!("{:?}", both[OTHER].verdict) };
    assert!(cause.ends_with(&format!("told by {OWNER}")), "{cause}");
}

/// JSON-RPC server that does not answer malformed messages.
struct Silent(Box<dyn Machine>);

impl Machine for Silent {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let before = actions.len();
        self.0.handle(event, now, actions);
        let mut at = 0;
        actions.retain(|action| {
            at += 1;
            let Action::Stdout(bytes) = action else { return true };
            let text = String::from_utf8_lossy(bytes);
            at <= before || !["-32700", "-32600"].iter().any(|code| text.contains(code))
        });
    }
}

/// A finding of a watching check about another clause is reported by that clause's check, or by the watching check if
/// no other reports it.
#[test]
fn a_watching_check_is_red_for_its_own_clause_only() {
    let boundary = table::find("json_rpc").unwrap();
    let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        Some(Box::new(Silent(table::played(boundary).reference_machine(args, env)?)))
    }));
    let name = |name: &str| format!("json_rpc/stdio/ambient/{name}");
    let watching = ["id", "version"].map(|it| check(&name(it)));
    let of_json: Vec<&Check> = boundary.checks().iter().filter(|it| it.id.contains("stdio/json/")).collect();
    let told = |results: &BTreeMap<String, CheckResult>| {
        let verdict = |it: &str| results[&name(it)].verdict.clone();
        ["id", "version"].map(verdict)
    };

    let [id, version] = told(&run(&peer, &[watching[0], watching[1]]));
    assert_eq!(id, Verdict::Fail, "nobody else tells it");
    assert_eq!(version, Verdict::Masked(format!("RPC-JSON-01 no_reply: told by {}", name("id"))));

    let results = run(&peer, &[&watching[..], &of_json].concat());
    for verdict in told(&results) {
        let Verdict::Masked(cause) = &verdict else { panic!("{verdict:?}") };
        assert!(cause.starts_with("RPC-JSON-01 no_reply: told by json_rpc/stdio/json/"), "{cause}");
    }
    let left = &results[&name("id")];
    assert!(left.findings.is_empty() && left.reason.is_none(), "{left:?}");
    assert_eq!(left.clauses.len(), 1, "the clauses that it watches: {:?}", left.clauses);
}

/// JSON-RPC server with another error code for results that are too large.
struct Recoded(Box<dyn Machine>, &'static str);

impl Machine for Recoded {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.0.handle(event, now, actions);
        for action in actions {
            let Action::Stdout(bytes) = action else { continue };
            let text = String::from_utf8_lossy(bytes);
            if text.contains("RESULT_TOO_LARGE") {
                *bytes = text.replace("-32603", self.1).replace("RESULT_TOO_LARGE", "EXECUTION_ERROR").into();
            }
        }
    }
}

/// A method may have a lower limit than messages: then nothing is known about larger results, and no peer is blamed.
#[test]
fn a_method_that_refuses_to_make_so_much_is_not_blamed() {
    const ID: &str = "json_rpc/stdio/sizes/results-over-limit";
    let boundary = table::find("json_rpc").unwrap();
    for code in ["-32603", "-32602", "-32000", "-32601", "-32600"] {
        let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
        peer.origin = Origin::InProcess(Arc::new(move |args, env| {
            Some(Box::new(Recoded(table::played(boundary).reference_machine(args, env)?, code)))
        }));
        match (code, &run(&peer, &[check(ID)])[ID].verdict) {
            ("-32603", Verdict::Pass) | ("-32601" | "-32600", Verdict::Fail) => {}
            ("-32602" | "-32000", Verdict::Untestable(why)) => {
                assert_eq!(why.code, "role_misbehaves", "{code}: {why}");
            }
            (_, verdict) => panic!("{code}: {verdict:?}"),
        }
    }
}

/// Peer whose only fault is its exit.
struct EndsWith(Box<dyn Machine>, i32);

impl Machine for EndsWith {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.0.handle(event, now, actions);
        actions.iter_mut().for_each(|action| {
            if let Action::Exit(status) = action {
                *status = self.1;
            }
        });
    }
}

/// The first canary's answer is correct: a later fault is reported, and everything else is judged.
#[test]
fn a_wrong_exit_status_is_told_once_and_hides_nothing() {
    for (name, canary, other, owner) in [
        ("toolhost", "toolhost/serve/canary/plain-request", OTHER, "TH-PROC-02"),
        ("json_rpc", "json_rpc/stdio/canary/plain-request", "json_rpc/stdio/json/no-json", "RPC-PROC-02"),
    ] {
        let boundary = table::find(name).unwrap();
        let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
        peer.origin = Origin::InProcess(Arc::new(move |args, env| {
            Some(Box::new(EndsWith(table::played(boundary).reference_machine(args, env)?, 3)))
        }));
        let own = |check: &&Check| {
            check.id == canary || check.id == other || check.clauses.iter().any(|it| it.0 == owner)
        };
        let checks: Vec<&Check> =
            boundary.checks().iter().filter(own).filter(|check| !check.needs_process).collect();
        let results = run_as(&peer, &checks, &Options { confirm: 1, ..Options::default() });
        let said: Vec<String> = results.values().map(|it| format!("{} {:?}", it.id, it.verdict)).collect();
        let red = results.values().filter(|it| it.verdict.is_failure());
        assert!(red.clone().next().is_some(), "{said:?}");
        for result in red {
            assert!(result.findings.iter().all(|it| it.clause.0 == owner), "{:?}", result.findings);
            assert!(
                result.findings.iter().any(|it| it.got.contains("exit status 3")),
                "{:?}",
                result.findings
            );
        }
        for id in [canary, other] {
            assert!(!matches!(results[id].verdict, Verdict::Untestable(_)), "{said:?}");
        }
    }
}

/// JSON-RPC server with its own answer to lines that the specification leaves open.
struct OpenServer {
    inner: Box<dyn Machine>,
    /// True for an open line.
    is_open: fn(&[u8]) -> bool,
    answer: &'static str,
}

/// True if a line contains a number beyond the range of doubles.
fn is_beyond_doubles(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    text.contains("1e400,") || text.contains("-1.5e999}")
}

fn is_no_utf8(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_err()
}

impl Machine for OpenServer {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let MachineEvent::Stdin(bytes) = event else { return self.inner.handle(event, now, actions) };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            let id = ["1", "\"n\"", "\"u\""].into_iter().find(|id| text.contains(&format!("\"id\":{id}}}")));
            // An invalid call and a parse error have no id.
            let id = id.filter(|_| !self.answer.contains("-32700"));
            match self.answer {
                _ if !(self.is_open)(line) => self.inner.handle(MachineEvent::Stdin(line), now, actions),
                "dies" => return actions.push(Action::Abort),
                "is silent" => {}
                answer if id.is_some() || answer.contains("error") => {
                    let id = id.unwrap_or("null");
                    let (head, tail) = answer.split_once("BYTES").unwrap_or((answer, ""));
                    let own: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii()).collect();
                    let own = if tail.is_empty() { Vec::new() } else { own };
                    let ends = (format!("{{\"jsonrpc\":\"2.0\",{head}"), format!("{tail},\"id\":{id}}}\n"));
                    actions.push(Action::Stdout([ends.0.as_bytes(), &own, ends.1.as_bytes()].concat()));
                }
                _ => self.inner.handle(MachineEvent::Stdin(line), now, actions),
            }
        }
    }
}

/// The specification leaves open the answer to 1e400 and to bytes that are not UTF-8, but the answer must be JSON and
/// the server must live on.
#[test]
fn what_no_reader_agrees_on_ends_no_server_and_makes_none_print_what_is_no_json() {
    const ID: &str = "json_rpc/stdio/json/text-that-readers-differ-on";
    let boundary = table::find("json_rpc").unwrap();
    let is_beyond: fn(&[u8]) -> bool = is_beyond_doubles;
    for (is_open, answer, clause) in [
        (is_beyond, "\"result\":[1.7976931348623157e308]", None),
        (is_beyond, "\"result\":[null]", None),
        (is_beyond, "\"error\":{\"code\":-32600,\"message\":\"m\"}", None),
        (is_beyond, "\"error\":{\"code\":-32602,\"message\":\"m\"}", None),
        (is_beyond, "\"error\":{\"code\":-32603,\"message\":\"m\"}", None),
        (is_beyond, "\"result\":[Infinity]", Some("RPC-MSG-05")),
        (is_beyond, "\"result\":[inf]", Some("RPC-MSG-05")),
        (is_beyond, "dies", Some("RPC-ERR-01")),
        (is_beyond, "is silent", None),
        (is_no_utf8, "\"result\":[\"\u{fffd}\"]", None),
        (is_no_utf8, "\"error\":{\"code\":-32700,\"message\":\"m\"}", None),
        (is_no_utf8, "\"error\":{\"code\":-32600,\"message\":\"m\"}", None),
        (is_no_utf8, "\"result\":[\"BYTES\"]", Some("RPC-MSG-05")),
        (is_no_utf8, "\"error\":{\"code\":-32700,\"message\":\"BYTES\"}", Some("RPC-MSG-05")),
        (is_no_utf8, "dies", Some("RPC-ERR-01")),
        (is_no_utf8, "is silent", None),
    ] {
        let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
        peer.facts.requirements = "spec".to_owned();
        peer.origin = Origin::InProcess(Arc::new(move |args, env| {
            let inner = table::played(boundary).reference_machine(args, env)?;
            Some(Box::new(OpenServer { inner, is_open, answer }))
        }));
        let found = run(&peer, &[check(ID)]).remove(ID).unwrap();
        let clauses: Vec<&str> = found.findings.iter().map(|it| it.clause.0.as_ref()).collect();
        assert_eq!(found.verdict.is_failure(), clause.is_some(), "{answer}: {:?}", found.findings);
        assert!(clause.is_none_or(|clause| clauses.contains(&clause)), "{answer}: {:?}", found.findings);
    }
}

/// Server that ends at a carriage return.
struct Fragile(Box<dyn Machine>);

impl Machine for Fragile {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            MachineEvent::Stdin(bytes) if bytes.contains(&b'\r') => actions.push(Action::Abort),
            event => self.0.handle(event, now, actions),
        }
    }
}

/// Accepting a carriage return is a SHOULD; living on is a MUST.
#[test]
fn whoever_dies_of_what_a_should_asks_for_breaks_what_binds() {
    const ID: &str = "json_rpc/stdio/line-ends/carriage-return";
    let boundary = table::find("json_rpc").unwrap();
    let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        Some(Box::new(Fragile(table::played(boundary).reference_machine(args, env)?)))
    }));
    let found = run(&peer, &[check(ID)]).remove(ID).unwrap();
    assert_eq!((found.verdict.word(), found.findings[0].clause.0.as_str()), ("crash", "RPC-ERR-01"));
    assert_eq!(results::exit_code(&[found], false), 1);
}

/// Toolhost that refuses everything with a certain word, for a reason of its own.
struct Refuses(Box<dyn Machine>, &'static str);

impl Machine for Refuses {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let MachineEvent::Stdin(bytes) = event else { return self.0.handle(event, now, actions) };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let refused = String::from_utf8_lossy(line).contains(self.1);
            let line =
                if refused { b"{\"aid\":\"AID.NO.SUCH.TOOL.v1\",\"input_json\":\"{}\"}\n" } else { line };
            self.0.handle(MachineEvent::Stdin(line), now, actions);
        }
    }
}

/// If nothing is accepted, a refusal proves nothing.
#[test]
fn no_refusal_is_proved_by_a_peer_that_refuses_all_of_its_kind() {
    let boundary = table::find("toolhost").unwrap();
    let (word, folder) = ("lease_token", "toolhost/serve/lease/");
    let mut peer = toolhost(&[]);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        Some(Box::new(Refuses(table::played(boundary).reference_machine(args, env)?, word)))
    }));
    let of = |check: &&Check| check.id.starts_with(folder) && !check.needs_process;
    let checks: Vec<&Check> = boundary.checks().iter().filter(of).collect();
    let results = run(&peer, &checks);
    // Requests accepted without a question, and checks that only watch replies, are not about refusals.
    let expects_refusal = |step: &Step| {
        let Act::Send { payload, .. } = &step.act else { return false };
        let outcomes = step.expect["allowed"].as_array().into_iter().flatten();
        let refused =
            |allowed: &Value| !["ok", "any"].contains(&allowed["outcome"].as_str().unwrap_or("any"));
        payload.summary(4_000).contains(word) && outcomes.clone().count() > 0 && outcomes.clone().all(refused)
    };
    let of_refusals = checks.iter().filter(|check| {
        let plan = (check.planner)(&peer.facts, &mut Rng::new(1));
        plan.is_ok_and(|plan| plan.steps.iter().any(expects_refusal))
    });
    let (green, red): (Vec<&str>, Vec<&str>) =
        of_refusals.map(|check| check.id.as_str()).partition(|id| results[*id].verdict.is_good());
    assert!(green.is_empty() && red.len() > 5, "{green:?}, {red:?} of {}", results.len());
}

/// A server that accepts no signature does not prove that it refuses wrong ones.
#[test]
fn no_signature_is_refused_by_a_server_that_refuses_all() {
    let boundary = table::find("json_rpc").unwrap();
    let references = table::played(boundary).references().into_iter();
    let mut peers = references.map(|reference| peer_of(boundary, reference, &[]));
    let mut peer = peers.find(|peer| peer.facts.claims("auth")).unwrap();
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        let inner = table::played(boundary).reference_machine(args, env)?;
        Some(Box::new(TakesNo { inner, word: "\"auth\"" }))
    }));
    let of = |check: &&Check| check.id.starts_with("json_rpc/stdio/auth/") && !check.needs_process;
    let checks: Vec<&Check> = boundary.checks().iter().filter(of).collect();
    let results = run(&peer, &checks);
    let green: Vec<&str> =
        checks.iter().map(|check| check.id.as_str()).filter(|id| results[*id].verdict.is_good()).collect();
    let red = results.values().filter(|result| result.verdict.is_failure()).count();
    assert!(green.is_empty() && red > 5, "{green:?}, {red} red of {}", results.len());
}

/// Server that answers calls with this word as if their signature were wrong.
struct TakesNo {
    inner: Box<dyn Machine>,
    word: &'static str,
}

impl Machine for TakesNo {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let MachineEvent::Stdin(bytes) = event else { return self.inner.handle(event, now, actions) };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line).replace(self.word, "\"auth\":{\"x\":1},\"x\"");
            self.inner.handle(MachineEvent::Stdin(text.as_bytes()), now, actions);
        }
    }
}

/// Fate of a line that a faulty peer cannot take.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RefusedLine {
    /// The process ends.
    Dies,
    /// Nothing more is read, not even the end of the input.
    Hangs,
    /// The line is skipped.
    Loses,
}

/// Correct toolhost, except at lines that ask for a fault.
struct Faulty {
    right: Box<dyn Machine>,
    fate: RefusedLine,
    /// Set if several lines in one read trigger the fault.
    of_bursts: bool,
    /// Text that must have been read before a line with `POISON` triggers the fault.
    after: &'static str,
    primed: bool,
    hangs: bool,
}

impl Machine for Faulty {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.hangs {
            return;
        }
        let MachineEvent::Stdin(bytes) = event else { return self.right.handle(event, now, actions) };
        let text = String::from_utf8_lossy(bytes);
        let is_burst = self.of_bursts && text.lines().count() > 1;
        for line in text.split_inclusive('\n') {
            self.primed |= line.contains(self.after);
            let is_bad = is_burst || !self.of_bursts && self.primed && line.contains("POISON");
            match self.fate {
                _ if !is_bad => self.right.handle(MachineEvent::Stdin(line.as_bytes()), now, actions),
                RefusedLine::Dies => return actions.push(Action::Exit(3)),
                RefusedLine::Hangs => {
                    self.hangs = true;
                    return;
                }
                RefusedLine::Loses => {}
            }
        }
    }
}

/// Result of a check that sends five requests in one write to a peer with this fault.
fn burst(fate: RefusedLine, of_bursts: bool, after: &'static str) -> CheckResult {
    let boundary = table::find("toolhost").unwrap();
    let mut peer = toolhost(&[]);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        let right = table::played(boundary).reference_machine(args, env)?;
        Some(Box::new(Faulty { right, fate, of_bursts, after, primed: after.is_empty(), hangs: false }))
    }));
    let check = Check::new("toolhost/serve/burst", "t", ["TH-ENV-01"], "serve", |facts, _| {
        let mut talk = Talk::serve(facts);
        talk.canary_for("TH-FRAME-01");
        let line = |name: &str| Request::aid(&format!("AID.NO.SUCH.{name}.v1")).input("{}").line();
        let names = ["FIRST", "PRIMER", "OTHER", "POISON", "LAST"];
        let lines = names.iter().fold(Payload::default(), |lines, name| lines.then(line(name)));
        talk.send_all(lines.merged(), Chunking::Whole, Vec::new());
        Ok(Plan { by_model: true, ..talk.canary_for("TH-FRAME-01").finish().plan() })
    });
    run(&peer, &[&check]).remove(&check.id).unwrap()
}

const FATES: [(RefusedLine, Verdict); 3] = [
    (RefusedLine::Dies, Verdict::Crash),
    (RefusedLine::Hangs, Verdict::Hang),
    (RefusedLine::Loses, Verdict::Fail),
];

#[test]
fn a_message_that_a_peer_cannot_take_is_named_and_not_the_first_of_its_burst() {
    for (fate, verdict) in FATES {
        let found = burst(fate, false, "");
        assert_eq!(found.verdict, verdict);
        let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
        assert!(finding.got.contains("POISON") && finding.got.ends_with(", sent alone"), "{}", finding.got);
    }
}

#[test]
fn what_a_message_needs_before_it_to_harm_the_peer_is_told() {
    for (fate, verdict) in FATES {
        let found = burst(fate, false, "PRIMER");
        assert_eq!(found.verdict, verdict);
        let got = &found.findings[0].got;
        assert!(got.contains("POISON") && got.ends_with(", after one other message"), "{got}");
    }
}

/// The search starts a limited number of processes per cause, however long the burst, and keeps the set-up.
#[test]
fn the_search_in_a_burst_is_bounded_and_keeps_what_was_set_up() {
    let boundary = table::find("toolhost").unwrap();
    let mut peer = toolhost(&[]);
    let starts = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&starts);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        counted.fetch_add(1, Ordering::Relaxed);
        let right = table::played(boundary).reference_machine(args, env)?;
        let (of_bursts, after) = (false, "SETUP");
        Some(Box::new(Faulty {
            right,
            fate: RefusedLine::Loses,
            of_bursts,
            after,
            primed: false,
            hangs: false,
        }))
    }));
    let check = Check::new("toolhost/serve/burst", "t", ["TH-ENV-01"], "serve", |facts, _| {
        let mut talk = Talk::serve(facts);
        let line = |name: &str| Request::aid(&format!("AID.NO.SUCH.{name}.v1")).input("{}").line();
        talk.send(line("SETUP"), Expect::new("TH-ENV-01", refused()));
        talk.capture("/error", "error", false);
        talk.canary_for("TH-FRAME-01");
        let name = |n: usize| if n == 777 { "POISON".to_owned() } else { format!("N{n}") };
        let lines = (0..1_000).fold(Payload::default(), |lines, n| lines.then(line(&name(n))));
        talk.send_all(lines.merged(), Chunking::Whole, Vec::new());
        Ok(Plan { by_model: true, ..talk.canary_for("TH-FRAME-01").finish().plan() })
    });
    let found = run(&peer, &[&check]).remove(&check.id).unwrap();
    let got = &found.findings[0].got;
    assert!(got.contains("POISON") && got.ends_with(", sent alone"), "{got}");
    let looks = 1;
    assert!(starts.load(Ordering::Relaxed) <= looks + 12, "{starts:?} starts");
}

#[test]
fn messages_that_are_answered_one_by_one_are_blameless() {
    for (fate, verdict) in FATES {
        let found = burst(fate, true, "");
        assert_eq!(found.verdict, verdict);
        let finding = &found.findings[0];
        assert_eq!(finding.clause.0, "TH-FRAME-04");
        assert!(
            finding.got.ends_with("; the answer comes when the messages are sent one by one"),
            "{}",
            finding.got
        );
    }
}

/// Selector that starts nothing: it answers requests with NOOP and other lines with INVALID.
#[derive(Default)]
struct Internal(Vec<u8>);

impl Machine for Internal {
    fn handle(&mut self, event: MachineEvent<'_>, _: Millis, actions: &mut Vec<Action>) {
        match event {
            MachineEvent::Stdin(bytes) => {
                self.0.extend_from_slice(bytes);
                while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.0.drain(..=end).collect();
                    let is_request = serde_json::from_slice::<Value>(&line).is_ok();
                    let kind = if is_request { "NOOP" } else { "INVALID" };
                    let selection = format!("{{\"kind\":\"{kind}\",\"raw\":\"none\"}}\n");
                    actions.push(Action::Stdout(selection.into_bytes()));
                }
            }
            MachineEvent::StdinEof => actions.push(Action::Exit(0)),
            _ => {}
        }
    }
}

/// Result of a check that sends four lines to a selector with this fault, the third malformed.
fn burst_of_requests(fate: RefusedLine, of_bursts: bool) -> CheckResult {
    use peerproof_policy_driver::SELECTOR;
    use peerproof_policy_driver::request::{FALLBACK_ONLY, Request};
    use peerproof_policy_driver::selector::expect::{Allowed, Expect};
    use peerproof_policy_driver::selector::talk::Talk;

    let boundary = table::find("policy_driver").unwrap();
    let selector = table::played(boundary).references().remove(1);
    let mut peer = peer_of(boundary, selector, &[]);
    peer.origin = Origin::InProcess(Arc::new(move |_, _| {
        let right = Box::<Internal>::default();
        Some(Box::new(Faulty { right, fate, of_bursts, after: "", primed: true, hangs: false }))
    }));
    let check = Check::new("policy_driver/select/burst", "t", ["PD-SEL-13"], SELECTOR, |_, _| {
        let line = Request::plain().mode(FALLBACK_ONLY).text() + "\n";
        let lines = [line.as_str(), &line, "{\"POISON\n", &line].concat();
        let internal = Expect::new("PD-SEL-13", Allowed::Anything);
        let expects = [internal.clone(), internal.clone(), Expect::invalid("PD-SEL-13"), internal];
        let mut talk = Talk::new();
        talk.internal_canary("PD-SEL-01").send_lines(Payload::text(lines), Chunking::Whole, 4, &expects);
        Ok(talk.internal_canary("PD-SEL-01").finish().plan())
    });
    run(&peer, &[&check]).remove(&check.id).unwrap()
}

#[test]
fn the_line_that_a_selector_cannot_take_is_named() {
    for (fate, verdict) in FATES {
        let found = burst_of_requests(fate, false);
        assert_eq!(found.verdict, verdict);
        let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
        assert_eq!(finding.clause.0, "PD-SEL-05");
        assert!(finding.got.contains("POISON") && finding.got.ends_with(", sent alone"), "{}", finding.got);
        let finding = &burst_of_requests(fate, true).findings[0];
        assert_eq!(finding.clause.0, "PD-SEL-13");
        assert!(
            finding.got.ends_with("; the answer comes when the messages are sent one by one"),
            "{}",
            finding.got
        );
    }
}

/// Envelope server that dies, hangs or closes the connection, as its last arguments say: at the poisoned one of four
/// parallel requests, or at a second connection before it has answered the first.
const SERVER: &str = r#"
import os, select, signal, socket, sys, threading
def serve(connection, of_bursts, fate):
    data = b""
    while True:
        while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + size(data):
            more = connection.recv(1 << 16)
            if not more: return
            data += more
        begin = data.index(b"\r\n\r\n") + 4
        body, data = data[begin:begin + size(data)], data[begin + size(data):]
        ahead = data or select.select([connection], [], [], 0.05)[0]
        if (ahead if of_bursts else b"POISON" in body):
            if fate == "Dies": os._exit(3)
            if fate == "Hangs": os.kill(os.getpid(), signal.SIGSTOP)
            return connection.close()
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head.encode() + body)
def size(data):
    return int(data.lower().split(b"content-length:")[1].split(b"\r\n")[0])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0], sys.argv[2] == "True", sys.argv[3]), daemon=True).start()
"#;

#[test]
fn the_body_that_a_server_cannot_take_is_named() {
    use peerproof_engine::data::carriage::{Carriage, HTTP};
    use peerproof_envelope::talk::{PLAIN, Talk, with};

    let boundary = table::find("envelope").unwrap();
    let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let base_env = vec![("PATH".to_owned(), path)];
    peer.origin = Origin::Process { base_env, current_dir: None, cpus: Vec::new() };
    let check = Check::new("envelope/http/burst", "t", ["ENV-HTTP-21"], HTTP, |_, _| {
        let mut talk = Talk::new(HTTP);
        for n in 0..4 {
            let input = ["\"a\"", "\"b\"", "\"POISON\"", "\"d\""][n];
            let text = talk.with_own_ids(&with(PLAIN, [("raw_input", input)]));
            let how = Carriage { pipelined: n > 0, ..Carriage::post().on(1) };
            talk.carry("ENV-HTTP-21", Payload::text(text), Chunking::Whole, how, if n == 3 { 4 } else { 0 });
        }
        talk.canary_behind();
        Ok(talk.plan())
    });
    for (fate, verdict) in FATES {
        for of_bursts in ["False", "True"] {
            let command = ["python3", "-c", SERVER, "{port}", of_bursts, &format!("{fate:?}")];
            peer.commands = [(HTTP.to_owned(), command.map(str::to_owned).to_vec())].into();
            let found = run(&peer, &[&check]).remove(&check.id).unwrap();
            let finding = &found.findings[0];
            match of_bursts {
                "True" => {
                    assert_eq!(finding.clause.0, "ENV-HTTP-21", "{fate:?}");
                    assert!(
                        finding.got.ends_with("; the answer comes when the messages are sent one by one"),
                        "{finding:?}"
                    );
                }
                _ => {
                    let got = &finding.got;
                    assert!(
                        got.contains("env_0000000000000003") && got.ends_with(", sent alone"),
                        "{fate:?}: {got}"
                    );
                    assert_ne!(finding.clause.0, "ENV-HTTP-21", "{finding:?}");
                    assert_eq!(found.verdict, verdict, "{fate:?}");
                }
            }
        }
    }
}

/// Queue adapter that dies at a job with this text, or when more than five are posted at once.
const ADAPTER: &str = r#"
import http.server, itertools, os, sys, time
queue, port, text = sys.argv[1:]
count, busy = itertools.count(), []
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        busy.append(body)
        time.sleep(0.02)
        if text.encode() in body if text else len(busy) > 5: os._exit(3)
        name = "%d.json" % next(count)
        with open(queue + "/" + name, "xb") as job: job.write(body)
        os.rename(queue + "/" + name, queue + "/inbox/" + name)
        busy.remove(body)
        told = b'"%s"' % name.encode()
        self.wfile.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told))
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer): request_queue_size = 256
Server(("127.0.0.1", int(port)), Handler).serve_forever()
"#;

#[test]
fn the_job_that_an_adapter_cannot_take_is_named() {
    let boundary = table::find("run_queue").unwrap();
    let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
    let base_env = vec![("PATH".to_owned(), std::env::var_os("PATH").unwrap_or_default())];
    peer.origin = Origin::Process { base_env, current_dir: None, cpus: Vec::new() };
    // A canary and a look, and a few of the many jobs.
    const FEW: usize = 20;
    let many = check("run_queue/http/many/at-once");
    let planner = move |facts: &Facts, rng: &mut Rng| {
        let mut plan = (many.planner)(facts, rng)?;
        let mut number = 0;
        plan.steps.retain(|step| {
            let is_one = matches!(step.act, Act::Send { .. }) && !step.canary;
            number += usize::from(is_one);
            !is_one || number <= FEW
        });
        if let Act::Send { await_frames, .. } = &mut plan.steps[1 + FEW].act {
            *await_frames = FEW as u32;
        }
        Ok(plan)
    };
    let few = Check { planner: Arc::new(planner), ..many.clone() };
    for (text, is_of_many, end) in [
        ("-15\"", false, ", sent alone"),
        ("", true, "; the answer comes when the messages are sent one by one"),
    ] {
        let command = ["python3", "-c", ADAPTER, "{queue}", "{port}", text];
        peer.commands = [("http".to_owned(), command.map(str::to_owned).to_vec())].into();
        let found = run(&peer, &[&few]).remove(&few.id).unwrap();
        let finding = &found.findings[0];
        // On a busy machine the end of a process may be noticed after that of its connections.
        assert!(found.verdict.is_failure(), "{:?}", found.verdict);
        assert_eq!(finding.clause.0 == "QUE-HTTP-28", is_of_many, "{finding:?}");
        assert!(finding.got.contains(text) && finding.got.ends_with(end), "{}", finding.got);
    }
}

/// Toolhost that ends at lines with any of these words.
fn ends_at(words: &'static [&'static str]) -> Peer {
    struct Mortal(Box<dyn Machine>, &'static [&'static str]);
    impl Machine for Mortal {
        fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
            match event {
                MachineEvent::Stdin(bytes)
                    if self.1.iter().any(|word| String::from_utf8_lossy(bytes).contains(word)) =>
                {
                    actions.push(Action::Exit(3));
                }
                event => self.0.handle(event, now, actions),
            }
        }
    }
    let boundary = table::find("toolhost").unwrap();
    let mut peer = toolhost(&[]);
    peer.origin = Origin::InProcess(Arc::new(move |args, env| {
        Some(Box::new(Mortal(table::played(boundary).reference_machine(args, env)?, words)))
    }));
    peer
}

/// A tool that once ended its process excuses no other end, and a pinned choice makes even that end wrong.
#[test]
fn an_inferred_choice_excuses_nothing_and_a_pinned_one_is_asserted() {
    const CRASH: &str = "toolhost/serve/tools/crash";
    const FAIL: &str = "toolhost/serve/tools/fail";
    let checks = [check(CRASH), check(FAIL)];
    let mut peer = ends_at(&["AID.PEERPROOF.CRASH.v1", "AID.PEERPROOF.FAIL.v1"]);
    let inferred = run(&peer, &checks);
    assert_eq!(inferred[CRASH].verdict, Verdict::Open("crash_kind=abort, inferred".to_owned()));
    assert!(!inferred[CRASH].choice.as_ref().unwrap().pinned);
    assert_eq!(inferred[FAIL].verdict, Verdict::Crash);

    peer.facts.choices.insert("crash_kind".to_owned(), "abort".to_owned());
    let pinned = run(&peer, &checks);
    assert_eq!(pinned[CRASH].verdict, Verdict::Open("crash_kind=abort".to_owned()));
    assert_eq!(pinned[FAIL].verdict, Verdict::Crash);

    peer.facts.choices.insert("crash_kind".to_owned(), "throw".to_owned());
    let asserted = run(&peer, &[check(CRASH)]);
    assert_eq!(asserted[CRASH].verdict, Verdict::Crash);
    assert_eq!(asserted[CRASH].findings[0].clause.0, "TH-TOOL-02");
}

/// Peer whose wrong refusal varies from process to process.
struct Unsteady(Box<dyn Machine>, usize);

impl Machine for Unsteady {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.0.handle(event, now, actions);
        for action in actions {
            let Action::Stdout(bytes) = &action else { continue };
            let text = String::from_utf8_lossy(bytes).into_owned();
            match self.1 {
                _ if !text.contains("-32600") => {}
                0 => *action = Action::Stdout(text.replace("-32600", "-32000").into()),
                1 => *action = Action::Exit(3),
                2 => *action = Action::Stdout(text.replace("error", "result").into()),
                _ => {}
            }
        }
    }
}

/// A check that fails each time, in whatever way, fails; one that fails sometimes is flaky.
#[test]
fn what_fails_in_another_way_each_time_is_not_flaky() {
    const ID: &str = "json_rpc/stdio/examples/invalid-request-object";
    let boundary = table::find("json_rpc").unwrap();
    for (ways, is_flaky) in [([0, 1, 2], false), ([0, 0, 0], false), ([0, 3, 3], true), ([1, 2, 3], true)] {
        let mut peer = peer_of(boundary, table::played(boundary).references().remove(0), &[]);
        let starts = AtomicUsize::new(0);
        peer.origin = Origin::InProcess(Arc::new(move |args, env| {
            let way = ways[starts.fetch_add(1, Ordering::Relaxed) % 3];
            Some(Box::new(Unsteady(table::played(boundary).reference_machine(args, env)?, way)))
        }));
        let options = Options { confirm: 3, keep_going: true, ..Options::default() };
        let verdict = run_as(&peer, &[check(ID)], &options)[ID].verdict.clone();
        assert_eq!(matches!(verdict, Verdict::Flaky(_)), is_flaky, "{ways:?}: {verdict:?}");
        assert!(is_flaky || verdict.is_failure(), "{ways:?}: {verdict:?}");
    }
}

#[test]
fn what_runs_alone_has_nothing_beside_it_in_another_run() {
    let quiet = Arc::<RwLock<()>>::default();
    let options = Options { quiet: Some(Arc::clone(&quiet)), ..Options::default() };
    let canary = |id: &str, is_kept_quiet: fn(&RwLock<()>) -> bool| {
        let quiet = Arc::clone(&quiet);
        Check::new(id, "t", ["TH-FRAME-01"], "serve", move |facts, _| {
            assert!(is_kept_quiet(&quiet));
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-FRAME-01");
            Ok(talk.finish().plan())
        })
    };
    let beside =
        canary("toolhost/serve/beside", |quiet| quiet.try_read().is_ok() && quiet.try_write().is_err());
    let mut alone = canary("toolhost/serve/alone", |quiet| quiet.try_read().is_err());
    alone.exclusive = true;
    for (id, result) in run_as(&toolhost(&[]), &[&beside, &alone], &options) {
        assert_eq!(result.verdict, Verdict::Pass, "{id}");
    }
}
