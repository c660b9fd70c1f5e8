//! The `ds_state` of replies: a delta that leads to the peer's current state.

use peerproof_engine::data::check::Check;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::relation::Relation;
use super::super::super::talk::{Request, Talk};
use super::super::super::talk_state::{Artifact, delta, full, note, put_input, slots};
use super::{FEATURE, id};

const CLAUSE: &str = "TH-STATE-15";

type State<'a> = &'a [(u8, &'a Artifact)];

pub(super) fn checks() -> Vec<Check> {
    vec![by_tools(), by_requests(), by_both(), by_failures()]
}

/// Sends a request. Its reply's delta must lead from `before`, or from the state after the request's own `ds_state`,
/// to `after`, and the peer must then have this state.
fn step(
    talk: &mut Talk<'_>,
    request: &Request,
    outcome: Outcome,
    before: State<'_>,
    own: State<'_>,
    after: State<'_>,
) {
    talk.send(request.line(), Expect::new(CLAUSE, Allowed::of(outcome)));
    let step = talk.at();
    talk.relate(Relation::DeltaLeads {
        clause: CLAUSE.into(),
        step,
        bases: vec![slots(before), slots(own)],
        after: slots(after),
    });
    talk.state_is(CLAUSE, after);
}

/// Copies with the same content under another type, and then also with another provenance.
fn relabelled(artifact: &Artifact) -> [Artifact; 2] {
    let typed = Artifact { kind: "peerproof.other".to_owned(), ..artifact.clone() };
    let traced = Artifact { provenance: "elsewhere".to_owned(), ..typed.clone() };
    [typed, traced]
}

fn by_tools() -> Check {
    Check::new(
        id("reply-delta-after-writes-and-removals"),
        "The delta in a reply leads to the state after the tool, also if only a type or provenance differs.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (a, b) = (note("a"), note("b"));
            let write =
                |talk: &Talk<'_>, slot, artifact: &Artifact| talk.ask("put", &put_input(slot, artifact));
            let remove = |talk: &Talk<'_>, slot: u8| talk.ask("remove", &format!("{{\"slot\":{slot}}}"));
            let request = write(&talk, 0, &a);
            step(&mut talk, &request, Outcome::Ok, &[], &[], &[(0, &a)]);
            let request = write(&talk, 7, &b);
            step(&mut talk, &request, Outcome::Ok, &[(0, &a)], &[(0, &a)], &[(0, &a), (7, &b)]);
            let both: State<'_> = &[(0, &a), (7, &b)];
            let request = write(&talk, 0, &b);
            step(&mut talk, &request, Outcome::Ok, both, both, &[(0, &b), (7, &b)]);
            let both: State<'_> = &[(0, &b), (7, &b)];
            let (request, _) = talk.good(CLAUSE);
            step(&mut talk, &request, Outcome::Ok, both, both, both);
            let request = remove(&talk, 0);
            step(&mut talk, &request, Outcome::Ok, both, both, &[(7, &b)]);
            let request = remove(&talk, 3);
            step(&mut talk, &request, Outcome::Ok, &[(7, &b)], &[(7, &b)], &[(7, &b)]);
            let [typed, traced] = relabelled(&b);
            let request = write(&talk, 7, &typed);
            step(&mut talk, &request, Outcome::Ok, &[(7, &b)], &[(7, &b)], &[(7, &typed)]);
            let request = write(&talk, 7, &traced);
            step(&mut talk, &request, Outcome::Ok, &[(7, &typed)], &[(7, &typed)], &[(7, &traced)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "put", "get", "remove"])
}

fn by_requests() -> Check {
    Check::new(
        id("reply-delta-after-the-request-s-own-state"),
        "The delta in the reply to a request with a state leads to the new state, from the state before or \
         after the request's own.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (a, b) = (note("a"), note("b"));
            let (request, _) = talk.good(CLAUSE);
            let own: State<'_> = &[(0, &a), (1, &b)];
            step(&mut talk, &request.state(&full(own)), Outcome::Ok, &[], own, own);
            let (request, _) = talk.good(CLAUSE);
            let changed: State<'_> = &[(0, &b), (2, &a)];
            let change = delta(&[(0, &b), (2, &a)], &[1]);
            step(&mut talk, &request.state(&change), Outcome::Ok, own, changed, changed);
            let (request, _) = talk.good(CLAUSE);
            let last: State<'_> = &[(5, &a)];
            step(&mut talk, &request.state(&full(last)), Outcome::Ok, changed, last, last);
            let [typed, traced] = relabelled(&a);
            let (request, _) = talk.good(CLAUSE);
            let own: State<'_> = &[(5, &typed)];
            step(&mut talk, &request.state(&delta(own, &[])), Outcome::Ok, last, own, own);
            let (request, _) = talk.good(CLAUSE);
            let last: State<'_> = &[(5, &traced)];
            step(&mut talk, &request.state(&full(last)), Outcome::Ok, own, last, last);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn by_both() -> Check {
    Check::new(
        id("reply-delta-after-own-state-and-tool"),
        "The delta in a reply includes both the request's own state and the changes of its tool.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (a, b, c) = (note("a"), note("b"), note("c"));
            talk.apply(CLAUSE, &full(&[(0, &a)]));
            let request = talk.ask("put", &put_input(1, &b)).state(&delta(&[(1, &a), (2, &c)], &[]));
            step(
                &mut talk,
                &request,
                Outcome::Ok,
                &[(0, &a)],
                &[(0, &a), (1, &a), (2, &c)],
                &[(0, &a), (1, &b), (2, &c)],
            );
            // The tool removes the artifact that the request set.
            let request = talk.ask("remove", "{\"slot\":3}").state(&delta(&[(3, &c)], &[0]));
            let before: State<'_> = &[(0, &a), (1, &b), (2, &c)];
            let own: State<'_> = &[(1, &b), (2, &c), (3, &c)];
            step(&mut talk, &request, Outcome::Ok, before, own, &[(1, &b), (2, &c)]);
            // The tool restores the artifact that the request removed.
            let request = talk.ask("put", &put_input(1, &b)).state(&delta(&[], &[1, 2]));
            step(&mut talk, &request, Outcome::Ok, &[(1, &b), (2, &c)], &[], &[(1, &b)]);
            // The tool writes the artifact that is already there.
            let request = talk.ask("put", &put_input(1, &b));
            step(&mut talk, &request, Outcome::Ok, &[(1, &b)], &[(1, &b)], &[(1, &b)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "put", "get", "remove"])
}

fn by_failures() -> Check {
    Check::new(
        id("reply-delta-after-a-tool-error"),
        "A delta in a TOOL_ERROR reply leads to the state that the peer then has.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (a, b) = (note("a"), note("b"));
            talk.apply(CLAUSE, &full(&[(0, &a)]));
            let fail = |talk: &Talk<'_>| talk.ask("fail", "{\"message\":\"on purpose\"}");
            let request = fail(&talk);
            step(&mut talk, &request, Outcome::ToolError, &[(0, &a)], &[(0, &a)], &[(0, &a)]);
            let request = fail(&talk).state(&delta(&[(1, &b)], &[0]));
            step(&mut talk, &request, Outcome::ToolError, &[(0, &a)], &[(1, &b)], &[(1, &b)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "fail", "get"])
}
