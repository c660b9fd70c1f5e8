//! Run mode: one request on standard input, one reply, one exit status.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::role::reference_aid;
use super::super::talk::{Request, Talk, quoted, refused};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![first_canary(), success(), unknown_aid_with_garbage()];
    checks.extend(accepted_forms());
    checks.extend(refused_forms());
    checks.extend(error_exits());
    checks.extend(chunkings());
    checks.push(crash());
    checks.push(slow_tool());
    checks
}

fn first_canary() -> Check {
    Check::new(
        "toolhost/run/canary/plain-request",
        "A plain valid request is answered by one object.",
        ["TH-RUN-04"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, body, expect) = if talk.has("any") {
                talk.good_run("TH-RUN-04")
            } else {
                (reference_aid("any"), Request::empty().input("{}").body(), Expect::ok("TH-RUN-04"))
            };
            // The success of the tool depends on the configuration; a reply must come in any case.
            let expect = expect.or(Allowed::of(Outcome::Any)).reason(CANARY_FAILED);
            talk.run(&aid, body, &[], expect);
            Ok(talk.run_counts_as_canary().plan())
        },
    )
    .first_canary()
}

fn success() -> Check {
    Check::new(
        "toolhost/run/exit/after-success",
        "After a success reply the exit status is 0 and the process ends.",
        ["TH-RUN-02", "TH-PROC-03"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, body, expect) = talk.good_run("TH-RUN-02");
            talk.run(&aid, body, &[], expect);
            Ok(talk.run_counts_as_canary().plan())
        },
    )
    .roles(&["any"])
}

const NO_SUCH_AID: &str = "AID.PEERPROOF.NO_SUCH_TOOL.v1";

fn unknown_aid_with_garbage() -> Check {
    Check::new(
        "toolhost/run/request/aid-unknown-and-garbage",
        "Garbage for an unknown action id gets one error reply.",
        ["TH-RUN-04"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let garbage = Payload::text("]{\"")
                .then(Payload(vec![peerproof_engine::data::payload::Segment::Hex("fffe00".into())]));
            talk.run(NO_SUCH_AID, garbage, &[], Expect::refused("TH-RUN-04"));
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
}

/// Creates a check with a variation of a good request.
fn varied(
    name: &str,
    title: &str,
    clauses: &[&'static str],
    vary: fn(Request) -> Payload,
    chunking: Chunking,
) -> Check {
    let clause = clauses[0];
    Check::new(format!("toolhost/run/{name}"), title, clauses.iter().copied(), "run", move |facts, _| {
        let mut talk = Talk::runs(facts);
        let (aid, request, expect) = talk.good_run_request(clause);
        talk.add_session("run", &[("aid", &aid)], &[]);
        talk.send_as(vary(request), chunking, 0, expect);
        talk.act(Act::Finish);
        Ok(talk.run_canary().plan())
    })
    .roles(&["any"])
}

fn accepted_forms() -> Vec<Check> {
    let accepted = |name: &str, what: &str, vary: fn(Request) -> Payload| {
        let title = format!("{what} is accepted.");
        varied(&format!("stdin/{name}"), &title, &["TH-RUN-01"], vary, Chunking::Whole)
    };
    vec![
        accepted("final-lf", "One object and a line feed", |request| request.line()),
        accepted("white-space-before", "White space before the object", |request| {
            Payload::text(" \n\r\n\t").then(request.body())
        }),
        accepted("white-space-after", "White space after the object", |request| {
            request.body().then(Payload::text(" \n\n\r\n\t  "))
        }),
        accepted("lines-inside", "An object spread over several lines", |request| {
            let inner = request.body();
            // The white space goes between the opening brace and the first member.
            Payload::text("{\n\r\n\t").then(without_brace(inner)).then(Payload::text("\n"))
        }),
        accepted("many-lines-after", "One object and 4,096 line feeds", |request| {
            request.body().repeat("\n", 4_096)
        }),
    ]
}

fn without_brace(mut body: Payload) -> Payload {
    if let Some(peerproof_engine::data::payload::Segment::Text(text)) = body.0.first_mut() {
        text.remove(0);
    }
    body
}

/// Creates checks in which the tool runs only if the peer mistakes a part of the input, or a default, for the whole.
fn refused_forms() -> Vec<Check> {
    /// Name, title, clause, text before the object, true if there is an object, text after it.
    const FORMS: &[(&str, &str, &str, &str, bool, &str)] = &[
        ("empty", "Empty standard input", "TH-RUN-01", "", false, ""),
        ("white-space-only", "Only white space", "TH-RUN-01", " \n\t\r\n", false, ""),
        ("two-objects", "Two objects", "TH-RUN-01", "", true, "{}"),
        ("two-lines", "Two objects on two lines", "TH-RUN-01", "{\"input_json\":\"{}\"}\n", true, "\n"),
        ("garbage-before", "A word before the object", "TH-RUN-01", "run ", true, ""),
        ("not-json", "Text that is not JSON", "TH-RUN-04", "this is not json", false, ""),
        ("object-cut", "An object that is cut off", "TH-RUN-01", "{\"input_json\":\"{}\"", false, ""),
    ];
    FORMS
        .iter()
        .map(|&(name, what, clause, before, with_object, after)| {
            Check::new(
                format!("toolhost/run/stdin/{name}"),
                format!("{what} is answered by one ok:false."),
                [clause],
                "run",
                move |facts, _| {
                    let mut talk = Talk::runs(facts);
                    let (aid, request, _) = talk.good_run_request(clause);
                    let object = if with_object { request.body() } else { Payload::default() };
                    let body = Payload::text(before).then(object).then(Payload::text(after));
                    refuse(&mut talk, &aid, body, Expect::refused(clause));
                    Ok(talk.run_canary().plan())
                },
            )
            .roles(&["any"])
        })
        .collect()
}

/// Runs with the time limit of a small request: the peer answers only after the end of input.
fn refuse(talk: &mut Talk<'_>, aid: &str, body: Payload, expect: Expect) {
    talk.run(aid, body, &[], expect).allow_ms(2_000);
}

fn error_exits() -> Vec<Check> {
    let open = |name: &str, what: &str, roles: &[&str], ask: fn(&Talk<'_>) -> (String, Payload)| {
        Check::new(
            format!("toolhost/run/exit/{name}"),
            format!("After the error reply to {what} the run ends with any exit status, never by a signal."),
            ["TH-RUN-03"],
            "run",
            move |facts, _| {
                let mut talk = Talk::runs(facts);
                let (aid, body) = ask(&talk);
                talk.run(&aid, body, &[], Expect::refused("TH-RUN-03").choice("host_error_exit"));
                Ok(talk.run_canary().plan())
            },
        )
        .roles(roles)
    };
    let mut checks = vec![
        open("after-unknown-aid", "an unknown action id", &["any"], |_| {
            (NO_SUCH_AID.to_owned(), Payload::text("{}"))
        }),
        open("after-malformed-input", "malformed input", &["any"], |talk| {
            (talk.role("any").aid, Payload::text("{"))
        }),
    ];
    // A tool's failure is not a host error. Its status is open too, but not by this choice.
    checks.push(
        Check::new(
            "toolhost/run/exit/after-tool-error",
            "After the error reply to a failed tool the run ends with any exit status, never by a signal.",
            ["TH-RUN-03"],
            "run",
            |facts, _| {
                let mut talk = Talk::runs(facts);
                let aid = talk.role("fail").aid;
                let body = Request::empty().input("{\"message\":\"on purpose\"}").body();
                talk.run(&aid, body, &[], Expect::refused("TH-RUN-03"));
                Ok(talk.run_canary().plan())
            },
        )
        .roles(&["any", "fail"]),
    );
    checks
}

fn chunkings() -> Vec<Check> {
    let multi_byte: fn(Request) -> Payload =
        |request| request.member("note", quoted("aé€😀\u{2028}\u{7f}")).body();
    vec![
        varied(
            "chunking/byte-by-byte",
            "A request that arrives byte by byte, cut inside characters, is answered like any other.",
            &["TH-FRAME-04"],
            multi_byte,
            Chunking::Dribble,
        ),
        varied(
            "chunking/three-bytes-at-a-time",
            "A request that arrives in pieces of three bytes is answered like any other.",
            &["TH-FRAME-04"],
            multi_byte,
            Chunking::Every(3),
        ),
        varied(
            "chunking/larger-than-a-pipe",
            "A request of several times the size of a pipe, in pieces, is read completely.",
            &["TH-FRAME-04", "TH-RUN-01"],
            |request| {
                let note = Payload::text("\"").repeat("é€😀", 40_000).then(Payload::text("\""));
                request.payload("note", note).body()
            },
            Chunking::Dribble,
        ),
    ]
}

/// Creates a check of a crash: a tool that throws has failed, one that aborts takes its process down.
fn crash() -> Check {
    Check::new(
        "toolhost/run/tools/crash",
        "A tool that throws gets an error reply; a tool that aborts ends the run at once, with a non-zero \
         status.",
        ["TH-RUN-04"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let aid = talk.role("crash").aid;
            let expect = Expect::new("TH-RUN-04", refused()).or(Allowed::of(Outcome::Dies));
            talk.run(&aid, Request::empty().input("{}").body(), &[], expect);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any", "crash"])
}

/// Creates a check with a tool that finishes long after the end of input.
fn slow_tool() -> Check {
    Check::new(
        "toolhost/run/tools/slow",
        "A run whose tool takes 300 ms answers with its result and exits with 0.",
        ["TH-RUN-04", "TH-RUN-02"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let aid = talk.role("sleep").aid;
            let body = Request::empty().input("{\"ms\":300}").body();
            talk.run(&aid, body, &[], Expect::holding("TH-RUN-04", "{\"slept_ms\":300}")).allow_ms(300);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any", "sleep"])
}
