//! Failed first contact: a guess about the peer, and advice.

use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::finding::LATE_REPLY;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::text::is_blank;
use peerproof_engine::run::results::StoredRun;
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Texts that servers print when they listen.
const LISTENS: &[&str] = &["istening on", "erving at", "erving HTTP", "unning on http", "HTTP/1."];

/// Texts that interpreters print when a file of their command line is missing, in lower case.
const NO_FILE: &[&str] = &["can't open", "cannot open", "cannot find module", "no such file"];

/// Header of messages that are framed by their length.
const LENGTH_HEADER: &str = "Content-Length:";

/// Text of a server that did not listen in time.
const NOT_LISTENING: &str = "nothing listens at";

/// Longest line of a peer that is quoted, characters.
const QUOTE_CHARS_MAX: usize = 120;

/// Advice about a peer that listens at an address or frames its messages by their length. `takes_http` is set if such a
/// peer could be configured as an HTTP server.
fn other_transport<'a>(
    came: &[&'a str],
    events: impl Iterator<Item = &'a str>,
    takes_http: bool,
) -> Option<String> {
    let has_address = |line: &&&str| !begins_message(line) && line.contains("http://");
    let listens = |line: &&str| LISTENS.iter().any(|sign| line.contains(sign));
    let printed = came.iter().find(has_address).copied();
    let printed = printed.or_else(|| came.iter().copied().find(listens));
    if let Some(line) = printed.or_else(|| events.into_iter().find(listens)) {
        return Some(match takes_http {
            true => "It seems to be an HTTP server. Configure it as `http` in peerproof.toml, with {address} instead \
                     of its address."
                .to_owned(),
            false => format!(
                "It seems to be an HTTP server: it printed \"{}\". Only servers over standard input and output are \
                 checked; start it as one.",
                shorten(line, QUOTE_CHARS_MAX)
            ),
        });
    }
    came.iter().any(|line| line.contains(LENGTH_HEADER)).then(|| {
        "It writes `Content-Length` headers as language servers do; this boundary has one message per line and no \
         headers."
            .to_owned()
    })
}

/// True if a line begins like a message. A driver answers in blocks.
fn begins_message(line: &str) -> bool {
    line.trim_start().starts_with(['{', '[', '"', '<'])
}

/// Guess about a peer without any correct answer, and advice, in one sentence. `None` if the causes say everything.
/// `boundaries` are all that the peer may belong to, the more telling ones last.
pub fn impression(run: &StoredRun, boundaries: &[&dyn Boundary]) -> Option<String> {
    let is_answer = |verdict: &Verdict| verdict.is_good() || *verdict == Verdict::Leak;
    let is_dead = run.checks.iter().any(|check| check.first_canary.is_some() && !is_answer(&check.verdict));
    if !is_dead || run.checks.iter().any(|check| check.verdict.is_good()) {
        return None;
    }
    let is_late = |check: &CheckResult| check.findings.iter().any(|finding| finding.reason == LATE_REPLY);
    if run.checks.iter().any(is_late) {
        return Some(
            "It answers only when its input ends. Flush standard output after each answer, as \
             `print(…, flush=True)` does in Python."
                .to_owned(),
        );
    }
    let lines: Vec<&str> =
        run.checks.iter().flat_map(|check| &check.conversation).map(String::as_str).collect();
    let lines_of = |sign: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(sign));
    let came: Vec<&str> = lines_of("← ").filter(|line| !is_blank(line)).collect();
    let told = || lines_of("· ").chain(lines_of("✗ "));
    let speaks = |boundary: &dyn Boundary| {
        boundary.description().signs.iter().any(|sign| came.iter().any(|line| line.contains(sign)))
    };
    let own = boundaries.iter().find(|boundary| boundary.name() == run.header.boundary);
    // Messages of a conversation are lines.
    let is_spread = own.is_some_and(|own| own.description().converses)
        && came.iter().any(|line| matches!(line.trim(), "{" | "["));
    if is_spread {
        return Some(
            "It writes a message over several lines. Each message is one line, as `json.dumps(…)` without `indent` \
             writes it in Python."
                .to_owned(),
        );
    }
    // The probes got answers that the boundary knows.
    let was_known = run.header.config["seen"].as_array().is_some_and(|lines| !lines.is_empty());
    let speaks_own = was_known || own.is_some_and(|own| speaks(*own));
    let mut others = boundaries.iter().rev().filter(|boundary| boundary.name() != run.header.boundary);
    if let Some(other) = others.find(|boundary| speaks(**boundary)).filter(|_| !speaks_own) {
        let other = other.name();
        return Some(format!("It answers as a peer of {other}: try `peerproof check {other}`."));
    }
    let mut commands = own.into_iter().flat_map(|own| own.description().commands);
    let takes_http = own.is_none() || commands.any(|(_, commands)| commands.contains(&HTTP));
    if let Some(advice) = other_transport(&came, told(), takes_http) {
        return Some(advice);
    }
    if told().any(|line| line.starts_with("stderr") && line.to_lowercase().contains("usage:")) {
        return Some("It printed its usage text: it needs other arguments.".to_owned());
    }
    let lacks_a_file = |line: &str| {
        let line = line.to_lowercase();
        line.starts_with("stderr") && NO_FILE.iter().any(|sign| line.contains(sign))
    };
    if came.is_empty() && told().any(lacks_a_file) {
        return Some(
            "Its standard error says that a file does not exist: check the paths of its command line."
                .to_owned(),
        );
    }
    match came.first() {
        Some(first) => (!begins_message(first) && run.header.side == Side::Provider).then(|| {
            let printed = shorten(first, QUOTE_CHARS_MAX);
            format!(
                "It printed \"{printed}\", which is no message: banners, prompts and logs belong on standard error."
            )
        }),
        None => silence(run, boundaries, &told().collect::<Vec<_>>()),
    }
}

/// Advice about a peer that wrote nothing. `told` are the events of its conversations.
fn silence(run: &StoredRun, boundaries: &[&dyn Boundary], told: &[&str]) -> Option<String> {
    if !told.iter().any(|line| line.starts_with("no reply within") || line.starts_with("still running")) {
        return None;
    }
    if run.header.side == Side::Consumer {
        return Some(
            "It waits for its standard input and asks nothing: it seems to be a server. This command needs a client."
                .to_owned(),
        );
    }
    let start_up = Budget::default().scaled(run.header.timeout_scale).start_up.as_secs_f64();
    let failed = run.checks.iter().filter(|check| check.verdict.is_failure());
    if failed.filter_map(|check| check.first_canary.as_deref()).any(|command| command == HTTP) {
        let fault = if told.iter().any(|line| line.contains(NOT_LISTENING)) {
            "It did not listen at its address"
        } else {
            "It accepted a connection and wrote nothing"
        };
        return Some(format!(
            "{fault} within {start_up:.0} s of its start. `{{port}}` in its command line stands for the port of \
             127.0.0.1 that peerproof asks."
        ));
    }
    let mut text = format!(
        "It wrote nothing within {start_up:.0} s of its start. A server that buffers its output has to flush it after \
         each answer."
    );
    let of_run = boundaries.iter().filter(|boundary| boundary.name() == run.header.boundary);
    if of_run.flat_map(|boundary| boundary.description().config_keys).any(|key| key.name == "startup_ms") {
        text.push_str(" One that starts more slowly needs `startup_ms` under [limits].");
    }
    let opened = boundaries.iter().filter(|boundary| boundary.description().converses);
    let opened: Vec<&str> = opened.map(|boundary| boundary.name()).collect();
    if !opened.is_empty() && !opened.contains(&run.header.boundary.as_str()) {
        let name = opened.join(" or ");
        text.push_str(&format!(
            " A server that waits for an opening is a peer of {name}: try `peerproof check {name}`."
        ));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn impression_of(verdict: Value, side: &str, lines: &[&str]) -> Option<String> {
        impression_within(&json!({}), "toy", &[], verdict, side, lines)
    }

    fn impression_within(
        config: &Value,
        boundary: &str,
        all: &[&dyn Boundary],
        verdict: Value,
        side: &str,
        lines: &[&str],
    ) -> Option<String> {
        let mut canary = json!({
            "id": "toy/serve/canary/plain-request", "title": "t", "clauses": [], "first_canary": "serve",
            "conversation": lines, "ms": 1,
        });
        canary.as_object_mut().unwrap().extend(verdict.as_object().unwrap().clone());
        let header = json!({
            "peerproof": "0", "boundary": boundary, "side": side, "peer": "p", "planned": [canary["id"]],
            "clauses_sha256": "", "rng_seed": 1, "timeout_scale": 1.0, "config": config, "started": "",
        });
        impression(&StoredRun::new(from_value(header).unwrap(), vec![from_value(canary).unwrap()]), all)
    }

    #[test]
    fn a_peer_is_known_by_what_it_writes() {
        let fails = || json!({ "verdict": "fail" });
        for (lines, says) in [
            (&["← Listening on 127.0.0.1:80"][..], "an HTTP server"),
            (&["✗ exit status 2", "· stderr (9 bytes): usage: x [-h]"], "needs other arguments"),
            (
                &["✗ exit status 2", "· stderr (41 bytes): python3: can't open file '/x/nothere.py'…"],
                "does not exist",
            ),
            (&["← hello"], "banners"),
            (&["✗ no reply within 2.00 s"], "flush"),
            (&["✗ no reply within 2.00 s"], "within 30 s of its start"),
        ] {
            let sentence = impression_of(fails(), "provider", lines);
            assert!(sentence.as_ref().is_some_and(|it| it.contains(says)), "{lines:?}: {sentence:?}");
        }
        let waits = [
            "✗ no reply within 30.0 s",
            "✗ not started: nothing listens at http://127.0.0.1:1/ after 30001 ms",
        ];
        let of_server = json!({ "verdict": "hang", "first_canary": "http" });
        for (lines, says) in [(&waits[..1], "accepted a connection"), (&waits[..], "did not listen")] {
            let sentence = impression_of(of_server.clone(), "provider", lines).unwrap();
            assert!(sentence.contains(says) && !sentence.contains("flush"), "{sentence}");
        }
        let waits = ["✗ still running after 2.00 s"];
        assert!(impression_of(fails(), "consumer", &waits).unwrap().contains("needs a client"));
    }

    #[test]
    fn a_server_with_an_opening_is_not_taken_for_one_without() {
        let of_mcp = |config: &Value, lines: &[&str]| {
            let all = [peerproof_json_rpc::boundary(), peerproof_mcp::boundary()];
            impression_within(config, "mcp", &all, json!({ "verdict": "fail" }), "provider", lines)
        };
        let changed = r#"← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let known = json!({ "seen": ["server notes 1.0.0"] });
        assert_eq!(of_mcp(&known, &[changed, "✗ no reply within 4.0 s"]), None);
        let refused = r#"← {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#;
        assert!(of_mcp(&json!({}), &[refused]).unwrap().contains("`peerproof check json_rpc`"));
        let spread = ["← {", "←   \"jsonrpc\": \"2.0\",", "←   \"id\": 1", "← }"];
        let sentence = of_mcp(&json!({}), &spread).unwrap();
        assert!(sentence.contains("over several lines") && !sentence.contains("json_rpc"), "{sentence}");
    }

    #[test]
    fn a_server_at_an_address_is_told_what_it_printed() {
        let all = [peerproof_json_rpc::boundary(), peerproof_mcp::boundary()];
        let of = |boundary: &str, line: &str| {
            let lines = [line, "✗ no reply within 30.0 s"];
            let verdict = json!({ "verdict": "fail" });
            impression_within(&json!({}), boundary, &all, verdict, "provider", &lines).unwrap()
        };
        for line in ["← Listening on http://127.0.0.1:3000/mcp", "← ready: http://127.0.0.1:3000/mcp"] {
            let sentence = of("mcp", line);
            let is_told =
                sentence.contains("http://127.0.0.1:3000/mcp") && !sentence.contains("peerproof.toml");
            assert!(is_told && sentence.contains("standard input"), "{sentence}");
            assert!(of("json_rpc", line).contains("peerproof.toml"));
        }
        let sentence = of("mcp", "← Notes server 1.0");
        assert!(sentence.contains("\"Notes server 1.0\"") && !sentence.contains("HTTP"), "{sentence}");
    }

    #[test]
    fn a_peer_that_answers_as_it_must_makes_no_impression() {
        assert_eq!(impression_of(json!({ "verdict": "fail" }), "provider", &["← {\"ok\":1}"]), None);
        assert_eq!(impression_of(json!({ "verdict": "pass" }), "provider", &["← hello"]), None);
        assert_eq!(impression_of(json!({ "verdict": "leak" }), "provider", &["← hello"]), None);
        assert_eq!(impression_of(json!({ "verdict": "fail" }), "provider", &["← <noop><end>"]), None);
        let refused = json!({ "verdict": "untestable", "detail": "no_working_reply: refused" });
        assert_eq!(impression_of(refused, "provider", &[]), None);
    }
}
