//! The dispatcher: the harness plays the toolhost.

use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Plan};
use peerproof_engine::data::rng::Rng;

use super::super::dispatcher::call::{Call, Reply, Talk, answering};
use super::super::dispatcher::expect::{Expect, Reveals};

mod crash;
mod failure;
mod output;
mod request;
mod result;
mod size;
mod start;
mod stderr;
mod timeout;

pub(super) fn checks() -> Vec<Check> {
    let first = vec![first_canary(), one_request(), one_value(), error_object(), ends(), exit_status()];
    [
        first,
        request::checks(),
        result::checks(),
        output::checks(),
        size::checks(),
        start::checks(),
        crash::checks(),
        failure::checks(),
        stderr::checks(),
        timeout::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Creates a check of the dispatcher, which needs a real process. Each call has its own process and cannot be harmed
/// by another, so all these checks depend only on the first canary.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk, &mut Rng) + Send + Sync + 'static,
) -> Check {
    let planner = move |_: &Facts, rng: &mut Rng| -> Result<Plan, Untestable> {
        let mut talk = Talk::new(rng);
        make(&mut talk, rng);
        Ok(talk.plan())
    };
    let clauses = clauses.iter().copied();
    Check::new(format!("toolhost/dispatch/{name}"), title, clauses, "command", planner).on_process().vouched()
}

/// Makes a call that must succeed. `script` builds the toolhost's steps from a good reply.
fn succeeds(talk: &mut Talk, call: &Call, clause: &str, script: impl Fn(Reply) -> Vec<ActorStep>) {
    let output = talk.output();
    let expect = Expect::output(clause, &output);
    talk.call(call, script(Reply::ok(&output)), expect).counts_as_canary();
}

/// Creates a check that a toolhost which prints exactly `reply` fails the call with one of `types`.
fn refused(
    name: &str,
    title: &str,
    clause: &'static str,
    reply: impl Fn(&str) -> Payload + Send + Sync + 'static,
    types: &'static [&'static str],
) -> Check {
    check(name, title, &[clause], move |talk, _| {
        let output = talk.output();
        talk.call(&Call::plain(), answering(reply(&output)), Expect::error(clause, types));
    })
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "The dispatcher prints the tool's output for a plain call.",
        &["TH-DISP-08"],
        |talk, _| {
            succeeds(talk, &Call::plain(), "TH-DISP-08", |reply| answering(reply.payload()));
            talk.shows_latency();
        },
    )
    .first_canary()
}

fn one_request() -> Check {
    let clauses = ["TH-DISP-01", "TH-DISP-03", "TH-DISP-04"];
    check(
        "every-call/one-request",
        "In every call the toolhost is started once and gets the call as one strict JSON object.",
        &clauses,
        |talk, _| {
            // The pause lets a second request arrive while the toolhost still runs.
            succeeds(talk, &Call::plain(), "TH-DISP-01", |reply| {
                vec![ActorStep::ReadRequest, ActorStep::Sleep { ms: 300 }, ActorStep::Stdout(reply.payload())]
            });
        },
    )
    .ambient()
}

fn one_value() -> Check {
    check(
        "every-call/one-json-value",
        "Standard output is exactly one strict JSON value, whatever happens.",
        &["TH-DISP-07"],
        |talk, _| succeeds(talk, &Call::plain(), "TH-DISP-07", |reply| answering(reply.payload())),
    )
    .ambient()
}

fn error_object() -> Check {
    check(
        "every-call/error-object",
        "Every failure is printed as an object with error:true, the aid of the call, one of the five types \
         and a detail.",
        &["TH-DISP-10", "TH-DISP-11"],
        |talk, _| {
            let clause = "TH-DISP-10";
            let call = Call::of("AID.\"QUOTED\".é\\v1", "{}");
            let script = answering(Payload::text("no JSON"));
            talk.call(&call, script, Expect::error(clause, &[]));
        },
    )
    .ambient()
}

fn ends() -> Check {
    check(
        "every-call/ends-and-leaves-nothing",
        "The dispatcher ends within 2 s of its result, and no process and no temporary file of it is left.",
        &["TH-DISP-31"],
        |talk, _| succeeds(talk, &Call::plain(), "TH-DISP-31", |reply| answering(reply.payload())),
    )
    .ambient()
}

fn exit_status() -> Check {
    check(
        "every-call/exit-status",
        "The dispatcher ends with an exit status, after an error object as well, and never by a signal.",
        &["TH-DISP-32"],
        |talk, _| {
            let clause = "TH-DISP-32";
            let expect = Expect::error(clause, &[]).reveals(Reveals::ExitStatus);
            talk.call(&Call::plain(), answering(Payload::text("no JSON")), expect);
        },
    )
    .ambient()
}
