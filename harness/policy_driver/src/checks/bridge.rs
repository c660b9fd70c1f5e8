//! Checks of the bridge: a driver that asks a model over HTTP. The harness plays the model.

use super::super::BRIDGE;
use super::super::driver::expect::{Allowed, Expect, ModelRequest, PickForm};
use super::super::driver::talk::{AUTHORIZATION, Talk, URL};
use super::super::request::{Entry, Request};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{PathKind, ReplyFault};

/// All checks of bridges.
pub(super) fn checks() -> Vec<Check> {
    vec![
        first_canary(),
        post(),
        authorization(),
        forms(),
        output(),
        large(),
        statuses(),
        refused(),
        bad_replies(),
        silent(),
        dribbled(),
        bad_payloads(),
        invalid_blocks(),
        endless(),
    ]
}

/// Time that a bridge may wait for its model, ms. Models are slow, and the caller of a bridge limits its time.
const MODEL_PATIENCE_MS: u64 = 65_000;

/// A check of a bridge. Each decision has a process of its own.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk<'_>) + Send + Sync + 'static,
) -> Check {
    let clauses = clauses.iter().copied();
    let id = format!("policy_driver/bridge/{name}");
    let check = Check::new(id, title, clauses, BRIDGE, move |facts, _| {
        let mut talk = Talk::bridge(facts);
        make(&mut talk);
        talk.plan()
    });
    check.on_process().vouched()
}

/// Output of a plain model.
const PICK: &str = "<PICK><SID0007><END>";

fn reply(member: &str, block: &str) -> Payload {
    Payload::text(Json::object([(member, Json::from(block))]).to_text())
}

/// Plays a model that answers with this block as `machina_out`.
fn model<'t, 'f>(talk: &'t mut Talk<'f>, block: &str) -> &'t mut Talk<'f> {
    talk.model("/", 200, reply("machina_out", block), None)
}

fn picked(clause: &str) -> Expect {
    let sid = Some("SID0007".to_owned());
    Expect::new(clause, Allowed::Pick { form: Some(PickForm::Plain), sid, patch: None }).narrow()
}

/// Expects a non-zero exit.
fn failure(clause: &str) -> Expect {
    Expect::new(clause, Allowed::Failure).narrow()
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "The block from the model is printed for a plain payload, with status 0.",
        &["PD-LLM-03"],
        |talk| {
            model(talk, PICK).decide(&Request::plain(), picked("PD-LLM-03")).counts_as_canary();
        },
    )
    .first_canary()
}

fn post() -> Check {
    check(
        "request/post",
        "The payload is sent by POST to the URL, path and query included, equal as a JSON value.",
        &["PD-LLM-01"],
        |talk| {
            let long = "long ".repeat(20_000);
            let numbers = r#"{"n":[9007199254740991,-9007199254740991,16777217,0.1]}"#;
            let hostile = Request::of(&[Entry::plain(7).named("zwölf 🦀 \u{2028}\n\"\\").tagged(&[
                "&a=b",
                "%41+",
                "&amp;&lt;&#60;",
            ])]);
            let requests = [
                ("/", Request::plain()),
                ("/", Request::plain().inputs(numbers).with("x_peerproof", "a member of no contract")),
                ("/machina_policy?model=a%20b&x=1", Request::plain()),
                ("/deep/er/", hostile),
                (
                    "/",
                    Request::plain()
                        .inputs(r#"{"text":"","n":[1.5e3,null,{}]}"#)
                        .with("goal_digest", long.as_str()),
                ),
            ];
            for (target, request) in requests {
                talk.model(target, 200, reply("machina_out", PICK), None);
                let target = target.to_owned();
                talk.decide(&request, picked("PD-LLM-01").asks(ModelRequest::Payload { target }));
            }
        },
    )
}

fn authorization() -> Check {
    check(
        "request/authorization",
        "The Authorization header is the value of MACHINA_POLICY_LLM_AUTH; without the variable there is \
         no such header.",
        &["PD-LLM-02"],
        |talk| {
            let asked = |value: Option<&str>| ModelRequest::Authorization(value.map(str::to_owned));
            model(talk, PICK).decide(&Request::plain(), picked("PD-LLM-02").asks(asked(None)));
            for value in ["Bearer peerproof-test-token", "Basic cGVlcnByb29mOnRlc3Q="] {
                model(talk, PICK).env(AUTHORIZATION, value);
                talk.decide(&Request::plain(), picked("PD-LLM-02").asks(asked(Some(value))));
            }
        },
    )
}

fn forms() -> Check {
    check(
        "reply/forms",
        "A block of each form from the model is printed, with white space around it and without.",
        &["PD-LLM-03"],
        |talk| {
            let patched = |form, patch: &str| {
                let (sid, patch) = (Some("SID0003".to_owned()), Some(Payload::text(patch)));
                Expect::new("PD-LLM-03", Allowed::Pick { form: Some(form), sid, patch }).narrow()
            };
            let no_pick = || Expect::new("PD-LLM-03", Allowed::NoPick).narrow();
            let cases = [
                (
                    "<PICK><SID0003><INP>{\"k\":\"</INP>\"}</INP><END>",
                    patched(PickForm::Inp, r#"{"k":"</INP>"}"#),
                ),
                ("<PICK><SID0003><INP64>eyJrIjoxfQ==</INP64><END>", patched(PickForm::Inp64, r#"{"k":1}"#)),
                ("<ASK_SUP><END>", no_pick()),
                ("<NOOP><END>", no_pick()),
                (" \t\r\n<PICK><SID0007><END>\n\n", picked("PD-LLM-03")),
            ];
            for (block, expect) in cases {
                model(talk, block).decide(&Request::plain(), expect);
            }
        },
    )
}

fn output() -> Check {
    check(
        "reply/output",
        "Without machina_out the member output is printed; with both machina_out is.",
        &["PD-LLM-03"],
        |talk| {
            for body in [
                r#"{"output":"<PICK><SID0007><END>"}"#,
                r#"{"output":"<PICK><SID0003><END>","machina_out":"<PICK><SID0007><END>"}"#,
                r#"{"machina_out":"<PICK><SID0007><END>","output":"<PICK><SID0003><END>"}"#,
                "\n{ \"id\": 1, \"usage\": {\"output\": 3},\n \"output\" : \"\\u003cPICK\\u003E<SID0007><END>\" }\n",
                r#"{"machina_out":"<PICK><SID0007><END>","output":17,"error":null}"#,
            ] {
                talk.model("/", 200, Payload::text(body), None);
                talk.decide(&Request::plain(), picked("PD-LLM-03"));
            }
            talk.model("/", 201, reply("machina_out", PICK), None);
            talk.decide(&Request::plain(), picked("PD-LLM-03"));
        },
    )
}

/// Replies larger than a read, a page or a pipe buffer.
fn large() -> Check {
    check(
        "reply/large",
        "A block with a patch of 60,000 bytes is printed completely, and a block after 300,000 bytes of \
         another member is found.",
        &["PD-LLM-03"],
        |talk| {
            let patch = format!("{{\"k\":\"{}\"}}", "long ".repeat(12_000));
            let block = format!("<PICK><SID0007><INP>{patch}</INP><END>");
            let sid = Some("SID0007".to_owned());
            let whole = Allowed::Pick { form: Some(PickForm::Inp), sid, patch: Some(Payload::text(&patch)) };
            let expect = Expect::new("PD-LLM-03", whole).narrow();
            model(talk, &block).decide(&Request::plain(), expect);
            let usage = "x".repeat(300_000);
            let body = format!(r#"{{"usage":"{usage}","machina_out":"{PICK}"}}"#);
            talk.model("/", 200, Payload::text(body), None);
            talk.decide(&Request::plain(), picked("PD-LLM-03"));
        },
    )
}

fn statuses() -> Check {
    check(
        "failure/statuses",
        "An HTTP error ends in a non-zero exit, whatever its body is.",
        &["PD-LLM-04"],
        |talk| {
            for status in [400, 401, 404, 429, 500, 503] {
                talk.model("/", status, reply("machina_out", PICK), None);
                talk.decide(&Request::plain(), failure("PD-LLM-04"));
            }
        },
    )
}

fn refused() -> Check {
    check(
        "failure/refused",
        "If the connection is refused, the bridge ends in a non-zero exit.",
        &["PD-LLM-04"],
        |talk| {
            talk.env(URL, "http://127.0.0.1:1/").decide(&Request::plain(), failure("PD-LLM-04"));
        },
    )
}

fn bad_replies() -> Check {
    check(
        "failure/bad-replies",
        "A reply that is not a JSON object with a string machina_out or output ends in a non-zero exit.",
        &["PD-LLM-04"],
        |talk| {
            for body in [
                "",
                PICK,
                "<html>machina_out</html>",
                "\"<PICK><SID0007><END>\"",
                "[{\"machina_out\":\"<PICK><SID0007><END>\"}]",
                "{}",
                "null",
                r#"{"machina_out":17}"#,
                r#"{"machina_out":["<PICK><SID0007><END>"]}"#,
                r#"{"text":"<PICK><SID0007><END>","content":"<PICK><SID0007><END>"}"#,
                r#"{"result":{"machina_out":"<PICK><SID0007><END>"}}"#,
                r#"{"Machina_Out":"<PICK><SID0007><END>","OUTPUT":"<PICK><SID0007><END>"}"#,
                r#"{"machina_out ":"<PICK><SID0007><END>","machinaOut":"<PICK><SID0007><END>"}"#,
                r#"{"machina_ou":"<PICK><SID0007><END>","machina_ouT":"<PICK><SID0007><END>","outpux":"<PICK><SID0007><END>"}"#,
                r#"{"machina_out":"<PICK><SID0007><END>""#,
                r#"{"machina_out":"<PICK><SID0007><END>","x":NaN}"#,
                r#"{"machina_out":"<PICK><SID0007><END>",}"#,
                r#"{"machina_out":"<PICK><SID0007><END>"} as you asked"#,
                r#"{'machina_out':'<PICK><SID0007><END>'}"#,
            ] {
                talk.model("/", 200, Payload::text(body), None);
                talk.decide(&Request::plain(), failure("PD-LLM-04"));
            }
            talk.model("/", 200, reply("machina_out", PICK), Some(ReplyFault::Cut));
            talk.decide(&Request::plain(), failure("PD-LLM-04"));
        },
    )
}

fn silent() -> Check {
    check(
        "failure/silent",
        "If the model never answers, the bridge gives up and ends in a non-zero exit.",
        &["PD-LLM-04"],
        |talk| {
            talk.model("/", 200, reply("machina_out", PICK), Some(ReplyFault::Silent));
            talk.decide(&Request::plain(), failure("PD-LLM-04")).allow_ms(MODEL_PATIENCE_MS);
        },
    )
    .slow()
}

fn dribbled() -> Check {
    check(
        "reply/dribbled",
        "If a reply comes byte by byte and never ends, the bridge gives up and ends in a non-zero exit.",
        &["PD-LLM-06"],
        |talk| {
            let body = Payload::text(r#"{"machina_out":"<PICK><SID0007><END>","text":"x"#);
            talk.model("/", 200, body, Some(ReplyFault::Dribbled));
            talk.decide(&Request::plain(), failure("PD-LLM-06")).allow_ms(MODEL_PATIENCE_MS);
        },
    )
    .slow()
}

/// A bridge is a driver: of what it cannot read it picks nothing, whatever the model says.
fn bad_payloads() -> Check {
    check(
        "failure/bad-payloads",
        "A payload that is empty, not JSON, or without entries leads to no pick, even if the model picks.",
        &["PD-LLM-05"],
        |talk| {
            let nothing = || failure("PD-LLM-05").or(Allowed::NoPick);
            for payload in ["", "no JSON", "[]", "{\"inputs\":{},\"menu\":[]}", "{\"inputs\":{},\"menu\":{}}"]
            {
                model(talk, PICK).decide_on(Payload::text(payload), nothing());
            }
            model(talk, PICK).decide_on_path(PathKind::Missing, nothing());
            model(talk, PICK).decide(&Request::plain(), picked("PD-LLM-03"));
        },
    )
}

fn invalid_blocks() -> Check {
    check(
        "output/invalid-blocks",
        "Text of the model that is not a single valid block of this menu is not printed as a block.",
        &["PD-LLM-05"],
        |talk| {
            for said in [
                "",
                "I would pick <PICK><SID0007><END>",
                "```\n<PICK><SID0007><END>\n```",
                "<PICK><SID0007><END>\nbecause it is the best",
                "<PICK><SID0007><END><PICK><SID0003><END>",
                "<PICK><SID9999><END>",
                "<pick><sid0007><end>",
                "<PICK><SID07><END>",
                "<PICK><SID0007>",
                "<PICK><SID0007><INP>[1]</INP><END>",
                "<PICK><SID0007><INP>{'k':1}</INP><END>",
                "<PICK><SID0007><INP64>%%%</INP64><END>",
                "<PICK><SID0007><INP64>W10=</INP64><END>",
                "<PICK><SID0007><INP64>eydrJzoxfQ==</INP64><END>",
                "<PICK><SID0007><INP>{\"k\":1,}</INP><END>",
                "<PICK><SID0007><INP>{\"k\":NaN}</INP><END>",
                "<PICK><SID0007><INP>{}</INP><INP64>e30=</INP64><END>",
                "<ASK_SUP><SID0007><END>",
                "\u{FEFF}<PICK><SID0007><END>",
            ] {
                model(talk, said).decide(&Request::plain(), failure("PD-LLM-05").or(Allowed::NoPick));
            }
            // A bridge that corrects the base64 prints a valid block.
            for said in ["<PICK><SID0007><INP64>e30</INP64><END>", "<PICK><SID0007><INP64>e31=</INP64><END>"]
            {
                let (sid, patch) = (Some("SID0007".to_owned()), Some(Payload::text("{}")));
                let right = Allowed::Pick { form: Some(PickForm::Inp64), sid, patch };
                model(talk, said)
                    .decide(&Request::plain(), failure("PD-LLM-05").or(Allowed::NoPick).or(right));
            }
            let long = format!("<PICK><SID0007><INP>{{\"k\":\"{}\"}}</INP><END>", "x".repeat(70_000));
            model(talk, &long).decide(&Request::plain(), failure("PD-LLM-05").or(Allowed::NoPick));
        },
    )
}

fn endless() -> Check {
    check(
        "reply/endless",
        "An endless reply is cut off: the bridge ends in a non-zero exit within its time and in bounded memory.",
        &["PD-LLM-06"],
        |talk| {
            let body = Payload::text(r#"{"machina_out":"<PICK><SID0007><END>","text":"x"#);
            talk.model("/", 200, body, Some(ReplyFault::Endless));
            talk.decide(&Request::plain(), failure("PD-LLM-06")).measured_for(1_200);
        },
    )
    .waits()
}
