//! Tests of the toolhost oracle on synthetic transcripts: events and the findings for them.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]
use std::sync::Arc;

use peerproof_engine::contract::memory::{AFTER_LARGER, AFTER_SMALLER, IDLE};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Judgement, Nature};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::transcript::{Awaited, Bytes, Event, EventKind, Exit, Transcript};
use peerproof_toolhost::expect::{Allowed, Expect, Outcome};
use peerproof_toolhost::oracle::judge;

/// Builder of a transcript. Requests go into the plan and the record alike.
struct Tape {
    transcript: Transcript,
    session: usize,
}

const CLAUSE: &str = "TH-REQ-10";
const OK: &str = r#"{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true}}"#;
const OK_RUN: &str = r#"{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"slots":{}}}"#;
const REFUSAL: &str = r#"{"ok":false,"error":"no"}"#;

impl Tape {
    fn new() -> Self {
        let transcript = Transcript {
            boundary: "toolhost".to_owned(),
            check: "by-hand".to_owned(),
            facts: Facts::new(Side::Provider).into(),
            plan: Plan::default().into(),
            timeout_scale: 1.0,
            events: Vec::new(),
        };
        Self { transcript, session: 0 }
    }

    fn serve() -> Self {
        Self::new().session("serve")
    }

    fn run() -> Self {
        Self::new().session("run")
    }

    fn session(mut self, command: &str) -> Self {
        Arc::make_mut(&mut self.transcript.plan)
            .sessions
            .push(Session { command: command.to_owned(), ..Session::default() });
        self.session = self.transcript.plan.sessions.len() - 1;
        self.event(EventKind::Started { argv: vec!["peer".to_owned()] })
    }

    fn step(mut self, act: Act, expect: serde_json::Value) -> Self {
        let step = Step { session: self.session, expect, ..Step::new(act) };
        Arc::make_mut(&mut self.transcript.plan).steps.push(step);
        self
    }

    fn event(mut self, kind: EventKind) -> Self {
        let at_us = self.transcript.events.len() as u64;
        self.transcript.events.push(Event { at_us, session: self.session, kind });
        self
    }

    fn ask(self, expect: Expect) -> Self {
        let payload = Payload::text("{}\n");
        let act = Act::Send { payload: payload.clone(), chunking: Chunking::Whole, await_frames: 1 };
        let step = self.transcript.plan.steps.len();
        self.step(act, serde_json::to_value(expect).unwrap()).event(EventKind::Sent { step, payload })
    }

    fn good(self) -> Self {
        self.ask(Expect::output(CLAUSE, "{}"))
    }

    fn gets(self, reply: &str) -> Self {
        self.gets_raw(&format!("{reply}\n"))
    }

    fn gets_raw(self, text: &str) -> Self {
        self.event(EventKind::Received { bytes: Bytes(text.as_bytes().to_vec()) })
    }

    fn missed(self, awaited: Awaited) -> Self {
        self.event(EventKind::DeadlinePassed { awaited, waited_ms: 2_000, slept: false })
    }

    fn eof(self) -> Self {
        self.step(Act::Finish, serde_json::Value::Null).event(EventKind::StdinClosed)
    }

    fn exit(self, exit: Exit) -> Self {
        self.event(EventKind::Exited { exit })
    }

    fn ends(self) -> Self {
        self.eof().exit(Exit::Code(0))
    }

    fn sampled(self, label: &str, mib: u64) -> Self {
        let act = Act::SampleMemory { label: label.to_owned() };
        self.step(act, serde_json::Value::Null)
            .event(EventKind::Memory { label: label.to_owned(), hwm_bytes: mib << 20 })
    }

    fn judged(&self) -> Judgement {
        judge(&self.transcript)
    }

    /// Clause, reason and nature of every finding.
    fn findings(&self) -> Vec<(String, String, Nature)> {
        let findings = self.judged().findings.into_iter();
        findings.map(|finding| (finding.clause.0, finding.reason, finding.nature)).collect()
    }

    #[track_caller]
    fn is_clean(&self) {
        assert_eq!(self.findings(), []);
    }

    #[track_caller]
    fn shows(&self, clause: &str, reason: &str, nature: Nature) {
        assert_eq!(self.findings(), [(clause.to_owned(), reason.to_owned(), nature)]);
    }
}

fn may_end() -> Expect {
    Expect::refused(CLAUSE)
        .or(Allowed::of(Outcome::Silence).shows("ignore"))
        .or(Allowed::of(Outcome::EndsInOrder).shows("end"))
        .choice("blank_line")
}

fn may_die() -> Expect {
    Expect::refused(CLAUSE).or(Allowed::of(Outcome::Dies))
}

// Serve mode

#[test]
fn an_orderly_session_is_clean() {
    Tape::serve().good().gets(OK).good().gets(OK).ends().is_clean();
}

#[test]
fn replies_cut_anywhere_and_a_cr_before_the_line_feed_are_no_matter() {
    Tape::serve().good().gets_raw(&OK[..7]).gets_raw(&OK[7..]).gets_raw("\r\n").ends().is_clean();
}

#[test]
fn a_lost_reply_is_a_violation_even_where_a_deadline_passed_later() {
    Tape::serve().good().good().gets(OK).ends().shows(CLAUSE, "no_reply", Nature::Violation);
    let other = Expect::output(CLAUSE, "{\"canary\":2}");
    let tape =
        Tape::serve().ask(Expect::refused("A")).good().gets(OK).ask(other).missed(Awaited::Frames).ends();
    let findings = tape.findings();
    assert_eq!(findings[0], ("A".to_owned(), "no_reply".to_owned(), Nature::Violation));
    assert_eq!(findings[1], (CLAUSE.to_owned(), "hung".to_owned(), Nature::Hang));
    assert_eq!(findings.len(), 2);
}

#[test]
fn replies_in_another_order_are_one_fault() {
    let reply = |n: u32| OK.replace("{}", &format!("{{\\\"n\\\":{n}}}"));
    let ask = |tape: Tape, n: u32| tape.ask(Expect::output(CLAUSE, format!("{{\"n\":{n}}}")));
    let asked = || (0..3).fold(Tape::serve(), ask);
    asked().gets(&reply(0)).gets(&reply(1)).gets(&reply(2)).ends().is_clean();
    let moved = asked().gets(&reply(2)).gets(&reply(0)).gets(&reply(1)).ends();
    moved.shows("TH-FRAME-02", "out_of_order", Nature::Violation);
}

#[test]
fn a_reply_lost_at_the_end_of_input_is_no_crash() {
    Tape::serve().good().gets(OK).good().ends().shows(CLAUSE, "no_reply", Nature::Violation);
}

#[test]
fn a_death_is_charged_to_the_request_that_it_left_unanswered_and_once() {
    let asked = || Tape::serve().good().gets(OK).ask(Expect::ok("A")).ask(Expect::ok("B"));
    asked().exit(Exit::Signal(11)).shows("A", "crashed", Nature::Crash);
    asked().exit(Exit::Code(1)).shows("A", "crashed", Nature::Crash);
    asked().exit(Exit::Code(0)).shows("A", "ended_early", Nature::Crash);
    asked().eof().exit(Exit::Signal(6)).shows("A", "crashed", Nature::Crash);
}

#[test]
fn a_hang_is_charged_to_the_first_unanswered_request() {
    let asked = || Tape::serve().ask(Expect::ok("A")).missed(Awaited::Frames).ask(Expect::ok("B"));
    asked().eof().missed(Awaited::Exit).shows("A", "hung", Nature::Hang);
    asked().ends().shows("A", "hung", Nature::Hang);
    // The reply is due but not awaited, and still missing after the end of input.
    Tape::serve().good().eof().missed(Awaited::Exit).shows(CLAUSE, "hung", Nature::Hang);
}

#[test]
fn a_reply_that_comes_with_the_end_of_input_was_not_flushed() {
    let tape = Tape::serve().good().missed(Awaited::Frames).eof().gets(OK).exit(Exit::Code(0));
    tape.shows("TH-FRAME-03", "late_reply", Nature::Hang);
}

#[test]
fn an_end_with_everything_answered_is_judged_by_its_status() {
    let answered = || Tape::serve().good().gets(OK);
    answered().eof().exit(Exit::Code(3)).shows("TH-PROC-02", "exit_status", Nature::Violation);
    answered().eof().exit(Exit::Signal(11)).shows("TH-PROC-02", "exit_status", Nature::Crash);
    answered().eof().missed(Awaited::Exit).shows("TH-PROC-02", "does_not_end", Nature::Hang);
    answered().exit(Exit::Code(0)).shows("TH-FRAME-01", "ended_early", Nature::Violation);
    Tape::serve().ends().is_clean();
}

#[test]
fn after_a_signal_any_end_will_do_but_not_none() {
    let signalled = || {
        let act = Act::Signal("TERM".to_owned());
        let tape = Tape::serve().good().gets(OK).step(act, serde_json::Value::Null);
        tape.event(EventKind::Signalled { signal: "TERM".to_owned() })
    };
    signalled().exit(Exit::Signal(15)).is_clean();
    signalled().exit(Exit::Code(143)).is_clean();
    signalled().exit(Exit::Code(0)).is_clean();
    signalled().missed(Awaited::Exit).shows("TH-PROC-04", "does_not_end", Nature::Hang);
}

#[test]
fn the_crash_of_a_tool_may_take_the_process_along_but_not_in_order() {
    let crashed = || Tape::serve().good().gets(OK).ask(may_die());
    crashed().exit(Exit::Signal(6)).is_clean();
    crashed().good().exit(Exit::Code(70)).is_clean();
    crashed().gets(REFUSAL).good().gets(OK).ends().is_clean();
    crashed().exit(Exit::Code(0)).shows(CLAUSE, "ended_early", Nature::Crash);
    crashed().good().gets(OK).ends().shows(CLAUSE, "no_reply", Nature::Violation);
    // The peer survived the crash, so the later exit status is a fault of its own.
    crashed().gets(REFUSAL).eof().exit(Exit::Code(1)).shows("TH-PROC-02", "exit_status", Nature::Violation);
}

#[test]
fn an_allowed_end_explains_what_was_not_answered_after_it() {
    let blank = || Tape::serve().good().gets(OK).ask(may_end());
    let choice = |tape: Tape| {
        tape.is_clean();
        tape.judged().choice.map(|seen| seen.value)
    };
    assert_eq!(choice(blank().good().exit(Exit::Code(0))).as_deref(), Some("end"));
    assert_eq!(choice(blank().good().ends()).as_deref(), Some("end"));
    assert_eq!(choice(blank().good().gets(OK).ends()).as_deref(), Some("ignore"));
    assert_eq!(choice(blank().ends()).as_deref(), Some("ignore"));
    blank().good().exit(Exit::Code(1)).shows(CLAUSE, "crashed", Nature::Crash);
}

#[test]
fn a_second_reply_is_charged_to_the_request_that_asks_for_one_only() {
    let twice = |expect: Expect| Tape::serve().ask(expect).good().gets(REFUSAL).gets(REFUSAL).gets(OK).ends();
    twice(Expect::refused("A").once("B")).shows("B", "extra_reply", Nature::Violation);
    twice(Expect::refused("A")).shows("TH-FRAME-01", "extra_reply", Nature::Violation);
    let none = Tape::serve().ask(Expect::refused("A").once("B")).good().gets(OK).ends();
    none.shows("B", "no_reply", Nature::Violation);
    let died = Tape::serve().ask(Expect::refused("A").once("B")).good().exit(Exit::Signal(9));
    died.shows("A", "crashed", Nature::Crash);
}

#[test]
fn an_endless_output_is_one_finding_and_costs_little() {
    let tape = Tape::serve().good().gets(OK).gets_raw(&"y\n".repeat(1 << 20));
    let tape = tape.event(EventKind::StdoutOverflow { bytes_max: 1 << 21, lines_max: None });
    tape.shows("TH-FRAME-05", "other_output", Nature::Violation);
    let unanswered = Tape::serve().good().event(EventKind::StdoutOverflow { bytes_max: 10, lines_max: None });
    unanswered.shows(CLAUSE, "output_flood", Nature::Violation);
}

#[test]
fn what_is_left_behind_is_a_leak() {
    let tape = Tape::serve().good().gets(OK).ends();
    let tape = tape.event(EventKind::LeakedProcess { pid: 7, command: "sleep".to_owned() });
    tape.shows("TH-PROC-05", "process_left", Nature::Leak);
    let tape = Tape::run().ask(Expect::ok(CLAUSE)).gets(OK_RUN).ends();
    let tape = tape.event(EventKind::LeftFile { path: "x.tmp".to_owned() });
    tape.shows("TH-PROC-06", "file_left", Nature::Leak);
}

// Run mode

#[test]
fn an_orderly_run_is_clean_with_or_without_a_line_feed() {
    Tape::run().good().gets(OK_RUN).ends().is_clean();
    Tape::run().good().eof().gets_raw(OK_RUN).exit(Exit::Code(0)).is_clean();
    let refused = || Tape::run().ask(Expect::refused(CLAUSE)).eof().gets(REFUSAL);
    refused().exit(Exit::Code(0)).is_clean();
    refused().exit(Exit::Code(1)).is_clean();
}

#[test]
fn a_run_that_says_nothing_crashed_unless_its_status_is_0() {
    Tape::run().good().eof().exit(Exit::Code(1)).shows(CLAUSE, "crashed", Nature::Crash);
    Tape::run().good().eof().exit(Exit::Signal(11)).shows(CLAUSE, "crashed", Nature::Crash);
    Tape::run().good().eof().exit(Exit::Code(0)).shows(CLAUSE, "no_reply", Nature::Violation);
    // The peer exited before the whole request was written.
    let broken = || Tape::run().good().event(EventKind::StdinBroken { unwritten_bytes: 9 });
    broken().exit(Exit::Code(0)).shows(CLAUSE, "no_reply", Nature::Violation);
    broken().exit(Exit::Code(2)).shows(CLAUSE, "crashed", Nature::Crash);
    // A line feed alone is not a reply but other output.
    assert_eq!(
        Tape::run().good().eof().gets_raw("\n").exit(Exit::Code(0)).findings(),
        [
            (CLAUSE.to_owned(), "no_reply".to_owned(), Nature::Violation),
            ("TH-FRAME-05".to_owned(), "blank_line".to_owned(), Nature::Violation),
        ]
    );
}

#[test]
fn a_run_that_does_not_end_hangs_with_and_without_a_reply() {
    let tape = || Tape::run().good().eof();
    tape().missed(Awaited::Exit).shows(CLAUSE, "hung", Nature::Hang);
    tape().gets(OK_RUN).missed(Awaited::Exit).shows("TH-PROC-03", "does_not_end", Nature::Hang);
}

#[test]
fn the_status_of_a_run_agrees_with_its_reply() {
    let ok = || Tape::run().good().eof().gets(OK_RUN);
    ok().exit(Exit::Code(1)).shows("TH-RUN-02", "exit_status", Nature::Violation);
    ok().exit(Exit::Signal(6)).shows("TH-RUN-02", "exit_status", Nature::Crash);
    let refused = || Tape::run().ask(Expect::refused(CLAUSE)).eof().gets(REFUSAL);
    refused().exit(Exit::Signal(15)).shows("TH-RUN-03", "died_by_signal", Nature::Crash);
}

#[test]
fn the_status_after_an_error_reply_is_a_choice_where_it_is_asked_for() {
    let refused = |code| {
        let expect = Expect::refused(CLAUSE).choice("host_error_exit");
        let judged = Tape::run().ask(expect).eof().gets(REFUSAL).exit(Exit::Code(code)).judged();
        judged.choice.map(|seen| (seen.key, seen.value))
    };
    assert_eq!(refused(0), Some(("host_error_exit".to_owned(), "zero".to_owned())));
    assert_eq!(refused(7), Some(("host_error_exit".to_owned(), "nonzero".to_owned())));
}

#[test]
fn half_a_reply_before_a_death_is_a_crash_too() {
    let tape = Tape::run().good().eof().gets_raw("{\"ok\":tr").exit(Exit::Signal(11));
    let findings = tape.findings();
    assert!(
        findings.contains(&("TH-RUN-04".to_owned(), "crashed".to_owned(), Nature::Crash)),
        "{findings:?}"
    );
}

#[test]
fn a_run_that_may_die_may_not_end_as_if_nothing_had_happened() {
    Tape::run().ask(may_die()).eof().exit(Exit::Signal(6)).is_clean();
    Tape::run().ask(may_die()).eof().exit(Exit::Code(0)).shows(CLAUSE, "no_reply", Nature::Violation);
}

#[test]
fn sessions_are_judged_each_for_itself() {
    let tape = Tape::run().ask(Expect::ok("A")).eof().exit(Exit::Code(1));
    let tape = tape.session("run").ask(Expect::ok("B")).eof().exit(Exit::Code(1));
    let crashed = |clause: &str| (clause.to_owned(), "crashed".to_owned(), Nature::Crash);
    assert_eq!(tape.findings(), [crashed("A"), crashed("B")]);
    // A crash in one session does not hide a wrong status in another.
    let tape = Tape::run().ask(Expect::ok("A")).eof().exit(Exit::Code(1));
    let tape = tape.session("run").good().eof().gets(OK_RUN).exit(Exit::Code(1));
    let reasons: Vec<String> = tape.findings().into_iter().map(|(_, reason, _)| reason).collect();
    assert_eq!(reasons, ["crashed", "exit_status"]);
}

// Memory

#[test]
fn memory_may_grow_by_64_mib_and_no_more() {
    let sampled = |after| Tape::serve().good().gets(OK).sampled(IDLE, 10).sampled(AFTER_LARGER, after).ends();
    sampled(74).is_clean();
    sampled(75).shows("TH-LIMIT-06", "memory_grew", Nature::Violation);
}

#[test]
fn memory_may_not_grow_with_the_input() {
    let sampled = |larger| {
        let tape = Tape::serve().good().gets(OK).sampled(IDLE, 10).sampled(AFTER_SMALLER, 20);
        tape.sampled(AFTER_LARGER, larger).ends()
    };
    sampled(20 + 32).is_clean();
    sampled(20 + 33).shows("TH-LIMIT-06", "memory_grows_with_input", Nature::Violation);
}

#[test]
fn memory_that_cannot_be_read_proves_nothing() {
    let mut tape = Tape::serve().good().gets(OK).sampled(IDLE, 10).ends();
    assert_eq!(tape.judged().untestable, None);
    tape.transcript.events.retain(|event| !matches!(event.kind, EventKind::Memory { .. }));
    assert!(tape.judged().untestable.is_some_and(|reason| reason.code == "no_memory_figures"));
}

#[test]
fn what_is_wrong_with_a_reply_by_itself_is_not_told_as_another_fault() {
    let ok_as_text = OK.replace("\"ok\":true", "\"ok\":\"true\"");
    let asked = |expect: Expect, reply: &str| Tape::serve().ask(expect).gets(reply).ends();
    asked(Expect::ok("A"), &ok_as_text).shows("TH-REPLY-03", "ok_not_boolean", Nature::Violation);
    let findings = asked(Expect::refused("A"), &ok_as_text).findings();
    assert_eq!(findings.len(), 2, "whatever it means, it is no refusal: {findings:?}");
    let of_tool = Expect::new("A", Allowed::of(Outcome::ToolError));
    asked(of_tool, REFUSAL).shows("A", "no_tool_error", Nature::Violation);
    let contradiction = OK.replace("\"OK\"", "\"TOOL_ERROR\"").replace("\"error\":\"\"", "\"error\":\"e\"");
    for expect in [Expect::ok("A"), Expect::refused("A")] {
        let reasons: Vec<String> =
            asked(expect, &contradiction).findings().into_iter().map(|(_, reason, _)| reason).collect();
        assert!(reasons.contains(&"ok_against_status".to_owned()), "{reasons:?}");
        assert!(!reasons.iter().any(|reason| reason == "refused" || reason == "accepted"), "{reasons:?}");
    }
}

#[test]
fn a_wrong_size_in_an_output_is_told_as_one() {
    let artifact = |content: &str, size: usize| {
        let artifact = format!(
            r#"{{"artifact":{{"type":"t","provenance":"p","content_json":"{content}","size_bytes":{size}}}}}"#
        );
        let text = serde_json::to_string(&artifact).unwrap();
        (artifact, OK.replace("\"{}\"", &text))
    };
    let (wanted, right) = artifact("é", 2);
    let asked = |reply: &str| Tape::serve().ask(Expect::output("A", wanted.clone())).gets(reply).ends();
    asked(&right).is_clean();
    asked(&artifact("é", 1).1).shows("TH-STATE-10", "wrong_size_bytes", Nature::Violation);
    asked(&artifact("e", 2).1).shows("A", "wrong_output", Nature::Violation);
}
