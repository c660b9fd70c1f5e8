//! The request of the dispatcher to the toolhost.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, ActorStep, Chunking};

use super::super::super::dispatcher::call::{AID, Call, Reply, Talk, answering};
use super::super::super::dispatcher::expect::{Allowed, CallExpect, Expect, Reveals};
use super::super::super::talk::quoted;
use super::{check, succeeds};

/// Inputs that must arrive unchanged.
const INPUTS: &[(&str, &str, &str)] = &[
    ("empty", "Empty inputs arrive as an empty object.", "{}"),
    (
        "quotes-and-backslashes",
        "Quotes, backslashes and braces in inputs arrive unchanged.",
        r#"{"a\"b":"\"\\\\\" \\n }{ ][ ' ` $HOME","c:\\d":"\\"}"#,
    ),
    (
        "unicode",
        "Characters of one to four UTF-8 bytes, composed and not, arrive unchanged.",
        "{\"é\":\"e\u{301} ß 漢字 😀 𝄞 \u{2028}\u{2029} \u{202e}abc\u{202c} \u{fffd} \u{10ffff}\",\"\u{feff}\":\"\u{feff}\"}",
    ),
    (
        "escaped-controls-and-nul",
        "Control characters and NUL, written as escapes, arrive unchanged and do not cut the text.",
        r#"{"nul":"a\u0000b","\u0000":"\u0001\u001f\u007f\b\f\n\r\t","tail":"kept"}"#,
    ),
    (
        "surrogate-pairs-escaped",
        "Characters written as escaped surrogate pairs arrive as those characters.",
        r#"{"a":"\ud83d\ude00\uD834\uDD1E","\ud83d\ude00":1}"#,
    ),
    (
        "numbers",
        "Integers within 2^53-1 and ordinary fractions arrive with their exact value.",
        r#"{"a":[9007199254740991,-9007199254740991,0,-1,0.1,-2.5,1e3,1.5e-7,1e300]}"#,
    ),
    (
        "all-kinds-of-values",
        "Values of every kind, nested and empty, arrive unchanged.",
        r#"{"a":null,"b":true,"c":false,"d":[],"e":{},"f":"","g":[[],{},[null]],"":{"":[0,"0",false]}}"#,
    ),
    (
        "entities-and-paths",
        "Entities, markup, path separators and percent signs in inputs arrive unchanged.",
        r#"{"a":"&lt;b&gt; &amp;amp; &#39; <i>&quot;</i>","..\\..\\x":"../%2e%2e%2f..%2fx","c":[[[[[[[["&lt;\/"]]]]]]]]}"#,
    ),
    (
        "separators",
        "Characters that some parsers read as line ends arrive inside their strings.",
        "{\"a\u{85}b\":\"c\u{2028}d\u{2029}e\u{85}f\",\"g\":\"\\u000b\\u000c\\u001c\\u001e\"}",
    ),
    (
        "names-that-differ-in-case",
        "Names that differ only in case arrive as different names.",
        r#"{"a":1,"A":2,"b":{"Id":3,"ID":4,"id":5}}"#,
    ),
    (
        "text-of-requests",
        "Inputs that contain the text or the member names of requests arrive as data.",
        r#"{"aid":"AID.OTHER.v1","inputs":{"x":1},"input_json":"{\"y\":2}","text":"{\"aid\":\"AID.OTHER.v1\"}"}"#,
    ),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![shape()];
    checks.extend(INPUTS.iter().map(|(name, title, inputs)| {
        check(&format!("request/inputs-{name}"), title, &["TH-DISP-04"], |talk, _| {
            let call = Call::of(AID, inputs);
            succeeds(talk, &call, "TH-DISP-04", |reply| answering(reply.payload()));
        })
    }));
    checks.extend([aid(), nested(), presented(), dribbled(), one_megabyte(), slow_reader()]);
    checks.extend([large_integers(), late_end(), two_at_once()]);
    checks
}

fn shape() -> Check {
    check("request/shape", "The request has one of the two documented shapes.", &["TH-DISP-02"], |talk, _| {
        let output = talk.output();
        let expect = Expect::output("TH-DISP-02", &output).reveals(Reveals::RequestShape);
        let script = answering(Reply::ok(&output).payload());
        talk.call(&Call::plain(), script, expect).counts_as_canary();
    })
}

fn aid() -> Check {
    check(
        "request/aid-with-quotes-and-unicode",
        "An aid with quotes, spaces, backslashes and letters of other scripts arrives unchanged.",
        &["TH-DISP-04"],
        |talk, _| {
            let call = Call::of("AID \"x\" \\ 'y' $z é漢😀 {a}", "{\"k\":1}");
            succeeds(talk, &call, "TH-DISP-04", |reply| answering(reply.payload()));
        },
    )
}

fn large_integers() -> Check {
    check(
        "request/inputs-integers-of-64-bits",
        "Integers around 2^63 arrive exact or as the nearest double, or the call is refused; never with another sign.",
        &["TH-DISP-04"],
        |talk, _| {
            for number in ["9223372036854775808", "-9223372036854775809", "18446744073709551616"] {
                let output = talk.output();
                let call = Call::of(AID, &format!("{{\"n\":{number}}}"));
                let expect = Expect::output("TH-DISP-04", &output).or(Allowed::error(&["exception"]));
                talk.call(&call, answering(Reply::ok(&output).payload()), expect).counts_as_canary();
            }
        },
    )
}

fn late_end() -> Check {
    check(
        "request/call-whose-end-comes-late",
        "A call whose input ends 2 s after its last byte works like any other.",
        &["TH-DISP-04"],
        |talk, _| {
            let output = talk.output();
            let path = talk.toolhost(answering(Reply::ok(&output).payload()));
            let call = Call::plain().allow_ms(2_000);
            let session = talk.begin_open(&call, &path, Expect::output("TH-DISP-04", &output));
            talk.act(session, Act::Wait { ms: 2_000 }).act(session, Act::CloseStdin);
            talk.result(session, &call).finish(session).counts_as_canary();
        },
    )
    .waits()
}

/// Creates a check of two concurrent calls. A dispatcher that uses a file with a fixed name mixes them up.
fn two_at_once() -> Check {
    check(
        "request/two-large-calls-at-once",
        "Two concurrent calls with inputs of 300,000 bytes each reach their own toolhost.",
        &["TH-DISP-05"],
        |talk, _| {
            let mut begun = Vec::new();
            for letter in ["a", "b"] {
                let output = talk.output();
                let path = talk.toolhost(answering(Reply::ok(&output).payload()));
                let head = format!("{{\"aid\":{},\"inputs\":{{\"text\":\"", quoted(AID));
                let body = Payload::text(head).repeat(letter, 300_000).then(Payload::text("\"}}"));
                let call = Call::written(body).allow_ms(2_000);
                let expect = CallExpect::from(Expect::output("TH-DISP-05", &output)).request("TH-DISP-05");
                begun.push((talk.begin(&call, &path, expect), call));
                talk.counts_as_canary();
            }
            for (session, call) in begun {
                talk.result(session, &call).finish(session);
            }
        },
    )
}

fn nested() -> Check {
    check(
        "request/inputs-nested-64-levels",
        "Inputs that make the call 64 levels deep arrive complete.",
        &["TH-DISP-04"],
        |talk, _| {
            // The call is the first level. In the request, the object around `inputs` is the first level too.
            let inputs = format!("{{\"a\":{}1{}}}", "[".repeat(62), "]".repeat(62));
            succeeds(talk, &Call::of(AID, &inputs), "TH-DISP-04", |reply| answering(reply.payload()));
        },
    )
}

fn presented() -> Check {
    check(
        "request/call-in-other-presentations",
        "A call with white space, escapes and its members in another order works like any other.",
        &["TH-DISP-04"],
        |talk, rng| {
            let inputs: Json = r#"{"query":"a/b é","k":3,"list":[1,{"x":"y"}]}"#.parse().unwrap_or_default();
            let call = Json::object([("inputs", inputs), ("aid", Json::from(AID))]);
            for how in [Presentation::WhiteSpace, Presentation::UnicodeEscapes, Presentation::ShuffledKeys] {
                let text = present(&call, how, &mut || rng.next_u64());
                let call = Call::written(Payload::text(text + "\n"));
                succeeds(talk, &call, "TH-DISP-04", |reply| answering(reply.payload()));
            }
        },
    )
}

fn dribbled() -> Check {
    check(
        "request/call-byte-by-byte",
        "A call that arrives byte by byte works like any other.",
        &["TH-DISP-04"],
        |talk, _| {
            let call = Call::of(AID, "{\"text\":\"é漢😀\"}").cut(Chunking::Dribble);
            succeeds(talk, &call, "TH-DISP-04", |reply| answering(reply.payload()));
        },
    )
}

/// Call whose inputs hold one string of 1,000,000 bytes with a multi-byte character at each end.
fn large() -> Call {
    let head = format!("{{\"aid\":{},\"inputs\":{{\"text\":\"é", quoted(AID));
    let body = Payload::text(head).repeat("x", 1_000_000).then(Payload::text("é\"}}"));
    Call::written(body).allow_ms(2_000)
}

/// Makes a large call that must arrive whole and succeed.
fn arrives_whole(talk: &mut Talk, script: impl Fn(Reply) -> Vec<ActorStep>) {
    let output = talk.output();
    let expect = CallExpect::from(Expect::output("TH-DISP-05", &output)).request("TH-DISP-05");
    talk.call(&large(), script(Reply::ok(&output)), expect).counts_as_canary();
}

fn one_megabyte() -> Check {
    check(
        "request/inputs-of-one-megabyte",
        "Inputs of 1,000,000 bytes arrive complete.",
        &["TH-DISP-05"],
        |talk, _| arrives_whole(talk, |reply| answering(reply.payload())),
    )
}

fn slow_reader() -> Check {
    check(
        "request/inputs-of-one-megabyte-stderr-first",
        "Inputs of 1,000,000 bytes arrive complete at a toolhost that first fills its stderr and then \
         reads late.",
        &["TH-DISP-05"],
        |talk, _| {
            arrives_whole(talk, |reply| {
                vec![
                    ActorStep::Stderr(Payload::default().repeat("warming up\n", 30_000)),
                    ActorStep::Sleep { ms: 100 },
                    ActorStep::ReadRequest,
                    ActorStep::Stdout(reply.payload()),
                ]
            });
        },
    )
}
