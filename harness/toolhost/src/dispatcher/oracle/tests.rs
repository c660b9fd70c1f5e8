//! Tests of the oracle on synthetic transcripts, with and without faults.

use super::super::super::oracle::judge;
use super::super::call::{AID, Call, LATER, Reply, Talk, answering};
use super::super::expect::{Allowed, Expect, Reveals};
use super::*;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Bytes, Event};

const TOOLHOST_PID: i32 = 11;

/// Transcript of one call to a correct dispatcher.
struct CallTranscript {
    transcript: Transcript,
}

impl CallTranscript {
    fn new(expect: impl Into<CallExpect>, script: Vec<ActorStep>) -> Self {
        let mut talk = Talk::new(&mut Rng::new(1));
        talk.call(&Call::of(AID, r#"{"k":1}"#), script, expect).counts_as_canary();
        let plan = talk.plan();
        let step = plan.steps.iter().position(|step| !step.expect.is_null()).unwrap();
        let Act::Send { payload, .. } = &plan.steps[step].act else { panic!("no call") };
        let sent = EventKind::Sent { step, payload: payload.clone() };
        let transcript = Transcript {
            boundary: "toolhost".to_owned(),
            check: "test".to_owned(),
            facts: Facts::new(Side::Consumer).into(),
            plan: plan.into(),
            timeout_scale: 1.0,
            events: Vec::new(),
        };
        Self { transcript }.with(sent).with(EventKind::StdinClosed).started(TOOLHOST_PID)
    }

    fn expecting(expect: impl Into<CallExpect>) -> Self {
        Self::new(expect, answering(Reply::ok("[1]").payload())).request(&call_text())
    }

    fn with(mut self, kind: EventKind) -> Self {
        let at_us = self.transcript.events.len() as u64;
        self.transcript.events.push(Event { at_us, session: 0, kind });
        self
    }

    fn started(self, pid: i32) -> Self {
        self.with(EventKind::ActorStarted { actor: "toolhost0".to_owned(), argv: Vec::new(), pid })
    }

    fn request(self, text: &str) -> Self {
        let bytes = Bytes(text.as_bytes().to_vec());
        self.with(EventKind::ActorReceived { actor: "toolhost0".to_owned(), bytes, pid: None })
    }

    fn prints(self, text: &str) -> Self {
        self.with(EventKind::Received { bytes: Bytes(text.as_bytes().to_vec()) })
    }

    fn exits(self, exit: Exit) -> Self {
        self.with(EventKind::Exited { exit })
    }

    fn judged(&self) -> Judgement {
        judge(&self.transcript)
    }

    /// Keys of all findings.
    fn found(&self) -> Vec<(String, String)> {
        let findings = self.judged().findings;
        findings.into_iter().map(|finding| (finding.clause.0.to_string(), finding.reason)).collect()
    }

    fn finds(&self, clause: &str, reason: &str) {
        assert_eq!(self.found(), [(clause.to_owned(), reason.to_owned())]);
    }
}

fn call_text() -> String {
    format!(r#"{{"aid":"{AID}","inputs":{{"k":1}}}}"#)
}

fn output() -> Expect {
    Expect::output("C", "[1]")
}

fn error(kind: &str) -> String {
    format!(r#"{{"error":true,"aid":"{AID}","type":"{kind}","detail":"why"}}"#)
}

#[test]
fn a_right_call_is_a_canary_and_has_no_finding() {
    for printed in ["[1]\n", "[ 1.0 ]", "\"[1]\"\n"] {
        let judgement = CallTranscript::expecting(output()).prints(printed).exits(Exit::Code(0)).judged();
        assert_eq!((judgement.findings.len(), judgement.canaries_answered), (0, 1), "{printed}");
    }
    let expected = Expect::error("C", &["crash"]);
    let judgement = CallTranscript::expecting(expected).prints(&error("crash")).exits(Exit::Code(3)).judged();
    assert_eq!((judgement.findings.len(), judgement.canaries_answered), (0, 0));
}

#[test]
fn tells_wrong_results_apart() {
    let story = |expect: Expect, printed: &str| {
        CallTranscript::expecting(expect).prints(printed).exits(Exit::Code(0))
    };
    story(output(), "[2]").finds("C", "wrong_output");
    story(output(), &error("crash")).finds("C", "reported_error");
    story(Expect::error("C", &["crash"]), "[1]").finds("C", "reported_success");
    story(Expect::error("C", &["crash"]), &error("timeout")).finds("C", "wrong_type");
    story(output(), "[1]\n[1]\n").finds("TH-DISP-07", "result_not_json");
    story(output(), "[NaN]").finds("TH-DISP-07", "result_not_json");
}

#[test]
fn an_error_object_must_be_well_formed() {
    let story = |printed: &str| {
        CallTranscript::expecting(Expect::error("C", &[])).prints(printed).exits(Exit::Code(0))
    };
    story(&error("crash").replace("true", "1")).finds("TH-DISP-10", "error_not_true");
    story(&error("crash").replace(AID, "AID.OTHER")).finds("TH-DISP-10", "error_aid");
    story(&error("crash").replace("why", "")).finds("TH-DISP-10", "error_detail");
    story(&error("Crash")).finds("TH-DISP-11", "error_type");
}

#[test]
fn a_detail_may_be_empty_where_the_toolhost_gave_no_reason() {
    let expect = || CallExpect::from(Expect::error("C", &[])).reasonless();
    let story = |printed: &str| CallTranscript::expecting(expect()).prints(printed).exits(Exit::Code(0));
    assert_eq!(story(&error("exception").replace("why", "")).found(), []);
    story(&error("exception").replace("\"why\"", "{}")).finds("TH-DISP-10", "error_detail");
}

#[test]
fn a_request_that_is_not_the_call_breaks_the_clause_that_was_named() {
    let expect = CallExpect::from(output()).request("R");
    let story = |request: &str| {
        CallTranscript::new(expect.clone(), answering(Reply::ok("[1]").payload()))
            .request(request)
            .prints("[1]\n")
    };
    story(&call_text().replace("\"k\":1", "\"k\":2")).finds("R", "request_inputs");
    story(&call_text()[..9]).finds("R", "request_not_json");
}

#[test]
fn an_error_without_a_start_is_judged_by_its_type() {
    let silent = |printed: &str| {
        let mut story = CallTranscript::expecting(output()).prints(printed).exits(Exit::Code(0));
        story.transcript.events.retain(|event| {
            !matches!(event.kind, EventKind::ActorStarted { .. } | EventKind::ActorReceived { .. })
        });
        story
    };
    silent(&error("exception")).finds("C", "reported_error");
    silent("[1]").finds("TH-DISP-01", "not_started");
}

#[test]
fn an_output_that_looks_like_an_error_object_is_an_output() {
    let text = r#"{"error":true,"type":"x","detail":""}"#;
    let story = CallTranscript::expecting(Expect::output("C", text)).prints(text).exits(Exit::Code(0));
    assert_eq!((story.found().len(), story.judged().canaries_answered), (0, 1));
}

#[test]
fn silence_is_told_apart() {
    CallTranscript::expecting(output()).exits(Exit::Signal(6)).finds("C", "crashed");
    CallTranscript::expecting(output()).exits(Exit::Code(1)).finds("C", "no_result");
    let late = EventKind::DeadlinePassed { awaited: Awaited::Frames, waited_ms: 4_000, slept: false };
    CallTranscript::expecting(output()).with(late).with(EventKind::Killed).finds("C", "hung");
}

#[test]
fn requests_are_held_against_the_call() {
    let story = |request: &str| {
        CallTranscript::new(output(), answering(Reply::ok("[1]").payload()))
            .request(request)
            .prints("[1]")
            .exits(Exit::Code(0))
    };
    let good = [
        r#"{"inputs":{"k":1.0},"aid":"AID.PEERPROOF.CALL.v1","more":0}"#,
        r#"{"input_json":" {\"k\":1}"}"#,
        r#"{"aid":"AID.PEERPROOF.CALL.v1","input_json":"{\"k\":1}","ds_state":{"slots":{}}}"#,
    ];
    for request in good {
        assert_eq!(story(request).found(), [], "{request}");
    }
    for (request, clause, reason) in [
        (r#"{"inputs":{"k":1}}"#, "TH-DISP-04", "request_aid"),
        (r#"{"aid":"A","input_json":"{\"k\":1}"}"#, "TH-DISP-04", "request_aid"),
        (r#"{"input_json":{"k":1}}"#, "TH-DISP-04", "request_inputs"),
        (r#"{"input_json":"{'k':1}"}"#, "TH-DISP-04", "request_inputs"),
        (r#"{"aid":"AID.PEERPROOF.CALL.v1","inputs":{"k":2}}"#, "TH-DISP-04", "request_inputs"),
        (r#"{"aid":"AID.PEERPROOF.CALL.v1"}"#, "TH-DISP-04", "request_inputs"),
        ("[]", "TH-DISP-03", "request_not_json"),
        ("", "TH-DISP-03", "request_not_json"),
        ("{'aid':1}", "TH-DISP-03", "request_not_json"),
    ] {
        story(request).finds(clause, reason);
    }
}

#[test]
fn what_follows_a_request_is_found() {
    let story = CallTranscript::expecting(output()).prints("[1]").exits(Exit::Code(0));
    story.request(&call_text()).finds("TH-DISP-01", "second_request");
    let story = CallTranscript::expecting(output()).prints("[1]").exits(Exit::Code(0));
    story.request("END").finds("TH-DISP-03", "bytes_after_request");
    let again = CallTranscript::expecting(output()).started(12).request(&call_text());
    again.prints("[1]").exits(Exit::Code(0)).finds("TH-DISP-01", "started_again");
}

#[test]
fn a_result_without_a_toolhost_is_found() {
    let mut story = CallTranscript::expecting(output()).prints("[1]").exits(Exit::Code(0));
    story.transcript.events.retain(|event| {
        !matches!(event.kind, EventKind::ActorStarted { .. } | EventKind::ActorReceived { .. })
    });
    story.finds("TH-DISP-01", "not_started");
}

#[test]
fn what_outlives_a_call_is_found_once() {
    let leak = |pid| EventKind::LeakedProcess { pid, command: "x".to_owned() };
    let alive = |role: &str| EventKind::ActorAlive {
        actor: "toolhost0".to_owned(),
        label: LATER.to_owned(),
        role: role.to_owned(),
    };
    let plain = || CallTranscript::expecting(output()).prints("[1]").exits(Exit::Code(0));
    plain().with(leak(TOOLHOST_PID)).finds("TH-DISP-31", "process_left");
    plain().with(EventKind::LeftFile { path: "a".to_owned() }).finds("TH-DISP-31", "file_left");

    let probed = || {
        let expect = CallExpect::from(output()).gone("G", LATER, &["self"]).gone("H", LATER, &["left_group"]);
        let script = vec![ActorStep::ForkHolder { ms: 1, leave_group: true }, ActorStep::ReadRequest];
        CallTranscript::new(expect, script).request(&call_text()).prints("[1]").exits(Exit::Code(0))
    };
    probed().with(alive("self")).with(leak(TOOLHOST_PID)).finds("G", "self_lives");
    let late = EventKind::DeadlinePassed { awaited: Awaited::Frames, waited_ms: 4_000, slept: false };
    assert_eq!(probed().with(late).with(alive("self")).found(), [], "looked at before the result came");
    probed().with(alive("left_group")).with(leak(99)).finds("H", "left_group_lives");
    assert_eq!(probed().with(leak(99)).found(), []);
}

#[test]
fn the_end_of_the_dispatcher_is_judged() {
    let story = || CallTranscript::expecting(output()).prints("[1]\n");
    story().exits(Exit::Signal(9)).finds("TH-DISP-32", "died_by_signal");
    let late = EventKind::DeadlinePassed { awaited: Awaited::Exit, waited_ms: 2_000, slept: false };
    story().with(late).with(EventKind::Killed).finds("TH-DISP-31", "does_not_end");
}

#[test]
fn memory_is_bounded_by_the_baseline() {
    let sample = |label: &str, mib: u64| EventKind::Memory { label: label.to_owned(), hwm_bytes: mib << 20 };
    let story = || {
        let expect = CallExpect::from(output()).memory("M", "small", "flood", 64 << 20);
        CallTranscript::new(expect, answering(Reply::ok("[1]").payload()))
            .request(&call_text())
            .prints("[1]")
            .exits(Exit::Code(0))
    };
    assert_eq!(story().with(sample("small", 10)).with(sample("flood", 74)).found(), []);
    story().with(sample("small", 10)).with(sample("flood", 75)).finds("M", "memory_grows");
    assert!(story().with(sample("flood", 10)).judged().untestable.is_some());
    assert_eq!(story().judged().untestable, None, "over before it could be measured");
}

#[test]
fn choices_are_recorded() {
    let choice = |expect: Expect, printed: &str| {
        let judgement = CallTranscript::expecting(expect).prints(printed).exits(Exit::Code(0)).judged();
        judgement.choice.map(|choice| format!("{}={}", choice.key, choice.value)).unwrap_or_default()
    };
    assert_eq!(choice(output().reveals(Reveals::RequestShape), "[1]"), "request_shape=inputs");
    assert_eq!(choice(output().reveals(Reveals::PrintedAs), "\"[1]\""), "printed_as=string");
    assert_eq!(choice(output().reveals(Reveals::ExitStatus), "[1]"), "exit_status=zero");
    let either = || output().or(Allowed::error(&[])).choice("bom", &["ignore", "refuse"]);
    assert_eq!(choice(either(), "[1]"), "bom=ignore");
    assert_eq!(choice(either(), &error("crash")), "bom=refuse");
}
