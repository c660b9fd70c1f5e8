//! Checks of the arrival of lines: in pieces, several at once, and in other spellings.

use super::super::super::super::request::{Entry, Request};
use super::super::super::super::selector::expect::Expect;
use super::super::super::super::selector::talk::{looks_and_says, says};
use super::{BLOCK, check, internal, internal_request, json, send_taken};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking};

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let mut all = vec![
        dribbled(),
        one_write(),
        at_once(),
        cut_inside_characters(),
        pipelined(),
        pipelined_large(),
        one_long_pause(),
        many(),
        carriage_return(),
        unknown_members(),
        names_of_another_case(),
        values_reach_the_driver(),
    ];
    all.extend(Presentation::ALL.map(presented));
    all
}

fn dribbled() -> Check {
    check(
        "lines/cut-into-writes",
        "A request that comes byte by byte, or in pieces of three bytes, is answered like any other.",
        &["PD-SEL-03"],
        |talk, _| {
            talk.canary("PD-SEL-03");
            let request =
                Request::plain().with("goal_digest", "é\u{1F600}\"\\\n").inputs(r#"{"k":"€\u0000"}"#);
            for chunking in [Chunking::Dribble, Chunking::Every(3), Chunking::Whole] {
                send_taken(talk, "PD-SEL-03", request.line(), chunking);
            }
        },
    )
}

fn one_write() -> Check {
    check(
        "lines/several-in-one-write",
        "Requests in one write are answered one by one, in order, each by its own driver or without one.",
        &["PD-SEL-03", "PD-SEL-13"],
        |talk, _| {
            talk.canary("PD-SEL-03");
            for chunking in [Chunking::Whole, Chunking::Dribble] {
                let blocks = ["<PICK><SID0007><END>", "<NOOP><END>", "<PICK><SID0042><END>"];
                for block in blocks {
                    talk.driver(says(block));
                }
                let lines = [Request::plain(), internal_request(), Request::plain(), Request::plain()];
                let text: String = lines.iter().map(|line| line.text() + "\n").collect();
                let expects = [
                    Expect::taken("PD-SEL-13", blocks[0]),
                    internal("PD-SEL-13"),
                    Expect::taken("PD-SEL-13", blocks[1]),
                    Expect::taken("PD-SEL-13", blocks[2]).starts("PD-SEL-13", 3),
                ];
                talk.send_lines(Payload::text(text), chunking, 4, &expects);
            }
            talk.canary("PD-SEL-03");
        },
    )
}

fn at_once() -> Check {
    check(
        "lines/answered-at-once",
        "A Selection comes while input stays open, also if half of the next line has been sent.",
        &["PD-SEL-02", "PD-SEL-03"],
        |talk, _| {
            talk.canary("PD-SEL-02");
            let text = Request::plain().text();
            let (head, tail) = text.split_at(text.len() / 2);
            talk.driver(says(BLOCK)).driver(says("<NOOP><END>"));
            let first = Payload::text(format!("{text}\n{head}"));
            talk.send(first, Chunking::Whole, 1, Expect::taken("PD-SEL-02", BLOCK));
            let rest = Payload::text(format!("{tail}\n"));
            talk.send(rest, Chunking::Whole, 1, Expect::taken("PD-SEL-03", "<NOOP><END>"));
        },
    )
}

/// The Selection for the line before shows that the first part was read.
fn cut_inside_characters() -> Check {
    check(
        "lines/cut-inside-characters",
        "A request that is sent in pieces, cut inside a character, an escape or a name, reaches its driver \
         unchanged.",
        &["PD-SEL-03"],
        |talk, _| {
            talk.canary("PD-SEL-03");
            let inputs = "{\"k\":\"é\u{1F600}\\n\"}";
            let text = Request::plain().inputs(inputs).text();
            let at = text.find('é').unwrap_or(8);
            for cut in [at - 4, at + 1, at + 3, at + 5, at + 7] {
                let (head, tail) = text.as_bytes().split_at(cut);
                let first = [Request::plain().text().as_bytes(), b"\n", head].concat();
                talk.driver(says(BLOCK)).driver(looks_and_says(BLOCK));
                let expect = Expect::taken("PD-SEL-03", BLOCK);
                talk.send(Payload::from_bytes(&first), Chunking::Whole, 1, expect.clone());
                let rest = Payload::from_bytes(&[tail, b"\n"].concat());
                talk.send(rest, Chunking::Whole, 1, expect.given_inputs("PD-SEL-03", &[(inputs, "")]));
            }
        },
    )
}

fn pipelined() -> Check {
    check(
        "lines/pipelined",
        "Twelve requests that are written before any Selection is read are answered in order, also slow \
         ones.",
        &["PD-SEL-13"],
        |talk, _| {
            talk.canary("PD-SEL-13");
            let requests = 12;
            for n in 0..requests {
                let block = ["<PICK><SID0007><END>", "<ASK_SUP><END>", "<PICK><SID0042><END>"][n % 3];
                let pause = if n % 4 == 0 { vec![ActorStep::Sleep { ms: 60 }] } else { Vec::new() };
                talk.driver([pause, says(block)].concat());
                let is_last = n + 1 == requests;
                // The last request waits for all Selections.
                let awaited = if is_last { u32::try_from(requests).unwrap_or(1) } else { 0 };
                talk.send(
                    Request::plain().line(),
                    Chunking::Whole,
                    awaited,
                    Expect::taken("PD-SEL-13", block),
                );
            }
            talk.allow_ms(5_000).canary("PD-SEL-13");
        },
    )
}

/// Larger than any buffer between selector and harness, in both directions.
fn pipelined_large() -> Check {
    check(
        "lines/pipelined-large",
        "Six requests of 400,000 bytes, written before any Selection is read, whose drivers print 60,000 \
         bytes, are answered completely and in order.",
        &["PD-SEL-13"],
        |talk, _| {
            talk.canary("PD-SEL-13");
            for n in 1..=6_u32 {
                // A SID that only this menu has shows which request was answered.
                let own = 100 + n;
                let request = Request::of(&[3, own, 977].map(Entry::plain));
                let output = format!("<PICK><SID{own:04}><END>{}", " ".repeat(60_000));
                talk.driver(says(output.clone()));
                let line = request.with("goal_digest", "x".repeat(400_000).as_str()).line();
                let expect = Expect::taken("PD-SEL-13", output);
                talk.send(line, Chunking::Whole, if n == 6 { 6 } else { 0 }, expect);
            }
            talk.allow_ms(10_000).canary("PD-SEL-13");
        },
    )
}

fn one_long_pause() -> Check {
    check(
        "lines/one-long-pause",
        "A pause of 2 s between two requests, inside a line, or before its LF makes no difference.",
        &["PD-SEL-03"],
        |talk, _| {
            talk.canary("PD-SEL-03").wait_ms(2_000);
            let text = Request::plain().text() + "\n";
            for at in [text.len() / 2, text.len() - 1] {
                let (head, tail) = text.split_at(at);
                // The Selection for the line before shows that the first part was read.
                talk.driver(says(BLOCK)).driver(says(BLOCK));
                let expect = Expect::taken("PD-SEL-03", BLOCK);
                talk.send(Payload::text(text.clone() + head), Chunking::Whole, 1, expect.clone());
                talk.wait_ms(2_000).send(Payload::text(tail), Chunking::Whole, 1, expect);
            }
            talk.canary("PD-SEL-03");
        },
    )
    .waits()
}

fn many() -> Check {
    check("lines/many", "A selector answers the 150th request like the first.", &["PD-SEL-01"], |talk, _| {
        talk.canary("PD-SEL-01");
        for _ in 0..150 {
            let expect = internal("PD-SEL-01").starts("PD-SEL-01", 0);
            talk.send(internal_request().line(), Chunking::Whole, 1, expect);
        }
        talk.canary("PD-SEL-01");
    })
}

fn carriage_return() -> Check {
    check(
        "lines/carriage-return",
        "A CR before the LF of a line makes no difference.",
        &["PD-SEL-12"],
        |talk, _| {
            talk.canary("PD-SEL-12");
            let crlf = |request: &Request| Payload::text(request.text() + "\r\n");
            send_taken(talk, "PD-SEL-12", crlf(&Request::plain()), Chunking::Whole);
            send_taken(talk, "PD-SEL-12", crlf(&Request::plain()), Chunking::Dribble);
            let expect = internal("PD-SEL-12").starts("PD-SEL-12", 0);
            talk.send(crlf(&internal_request()), Chunking::Whole, 1, expect);
            talk.canary("PD-SEL-12");
        },
    )
}

/// A request with every kind of value.
fn rich() -> Request {
    let menu = [
        Entry::plain(3).named("a / \"b\" \\ é\u{1F600}\n").tagged(&[]),
        Entry::plain(7).tagged(&["", "t\u{0}", "t"]),
        Entry::plain(42).named(""),
    ];
    Request::of(&menu)
        .with("goal_digest", "goal/é|\u{1F600}")
        .inputs(r#"{"n":[0,1,-7,100,9007199254740991],"o":{"a":{"b":[]},"":null},"s":"\"\\\/\b\f\n\r\té"}"#)
}

fn presented(how: Presentation) -> Check {
    check(
        &format!("lines/presented-{}", how.name()),
        "The same request in another spelling leads to the same payload and the same Selection.",
        &["PD-SEL-18"],
        move |talk, rng| {
            talk.canary("PD-SEL-18");
            for _ in 0..3 {
                let text = present(&rich().0, how, &mut || rng.next_u64());
                talk.driver(looks_and_says(BLOCK));
                let expect = Expect::taken("PD-SEL-18", BLOCK).given("PD-SEL-18");
                talk.send(Payload::text(text + "\n"), Chunking::Whole, 1, expect);
            }
        },
    )
}

fn unknown_members() -> Check {
    check(
        "lines/unknown-members",
        "Members that the contract does not name, in the request and in entries of the menu, change nothing.",
        &["PD-SEL-18"],
        |talk, _| {
            talk.canary("PD-SEL-18");
            let others = [
                ("mode", "\"FALLBACK_ONLY\""),
                ("", r#"{"menu":[]}"#),
                ("__proto__", r#"{"control_mode":"FALLBACK_ONLY"}"#),
                ("sid", "\"SID0003\""),
                ("raw", "null"),
            ];
            let mut all = Request::plain();
            for (name, value) in others {
                all = all.with(name, json(value));
                talk.play(
                    &Request::plain().with(name, json(value)),
                    looks_and_says(BLOCK),
                    Expect::taken("PD-SEL-18", BLOCK).given("PD-SEL-18"),
                );
            }
            if let Some(entries) = all.0.get_mut("menu").and_then(Json::as_array_mut) {
                for entry in entries {
                    entry.set("score", json("7"));
                    entry.set("id", "SID0000");
                }
            }
            let expect = Expect::taken("PD-SEL-18", BLOCK).given("PD-SEL-18");
            talk.play(&all, looks_and_says(BLOCK), expect);
        },
    )
}

fn names_of_another_case() -> Check {
    check(
        "lines/names-of-another-case",
        "Members whose names differ from those of the contract only in case are unknown, and change nothing.",
        &["PD-SEL-18"],
        |talk, _| {
            talk.canary("PD-SEL-18");
            let others = [("Control_Mode", "\"FALLBACK_ONLY\""), ("MENU", "[]"), ("Inputs", r#"{"k":1}"#)];
            for (name, value) in others {
                let expect = Expect::taken("PD-SEL-18", BLOCK).given("PD-SEL-18");
                talk.play(&Request::plain().with(name, json(value)), looks_and_says(BLOCK), expect);
            }
        },
    )
}

fn values_reach_the_driver() -> Check {
    check(
        "lines/values-reach-the-driver",
        "Strings and integers up to ±(2^53−1) of a request reach the payload unchanged.",
        &["PD-SEL-17"],
        |talk, _| {
            talk.canary("PD-SEL-17");
            let inputs = [
                r#"{"n":9007199254740991,"m":-9007199254740991,"l":[0,-1,2147483648,4294967296,1000000000000]}"#,
                r#"{"k":"\u0000\u001f\u007f\"\\\/\b\f\n\r\t","\u0000":"\ud83d\ude00"}"#,
                "{\"k\":\"é\u{1F600}\u{202E}\u{2028}\u{85}\u{FEFF}\u{FFFD}\u{10FFFF}\",\"\u{E9}\":1,\"e\u{301}\":2}",
                r#"{"k":"null","l":"1","m":"{}","":"","__proto__":{"x":1},"constructor":null}"#,
                "{\"k\":\"\u{2029}&amp;&lt;&#60;&quot; %3C%2F+%20 =3D \\\\u003c \\\\/ ..\\\\..\\\\x ../../x\"}",
            ];
            for inputs in inputs {
                let request = rich().inputs(inputs).with("state_digest", "\u{0}\n\u{1F600}");
                let expect = Expect::taken("PD-SEL-17", BLOCK).given("PD-SEL-17");
                talk.play(&request, looks_and_says(BLOCK), expect);
            }
        },
    )
}
