//! Failed first contact: a guess about the peer, and advice.

use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::finding::LATE_REPLY;
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

/// Advice about a peer that listens at an address or frames its messages by their length.
fn other_transport<'a>(came: &str, mut events: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    if LISTENS.iter().any(|sign| came.contains(sign))
        || events.any(|line| LISTENS.iter().any(|sign| line.contains(sign)))
    {
        return Some(
            "It seems to be an HTTP server. Configure it as `http` in peerproof.toml, with {address} instead of its \
             address.",
        );
    }
    came.contains(LENGTH_HEADER).then_some(
        "It writes `Content-Length` headers as language servers do; this boundary has one message per line and no \
         headers.",
    )
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
    let came = lines_of("← ").collect::<Vec<_>>().join("\n");
    let told = || lines_of("· ").chain(lines_of("✗ "));
    let speaks =
        |boundary: &dyn Boundary| boundary.description().signs.iter().any(|sign| came.contains(sign));
    let is_own = |boundary: &dyn Boundary| boundary.name() == run.header.boundary;
    let mut others = boundaries.iter().rev().filter(|boundary| !is_own(**boundary));
    let speaks_own = boundaries.iter().any(|boundary| is_own(*boundary) && speaks(*boundary));
    if let Some(other) = others.find(|boundary| speaks(**boundary)).filter(|_| !speaks_own) {
        let other = other.name();
        return Some(format!("It answers as a peer of {other}: try `peerproof check {other}`."));
    }
    if let Some(advice) = other_transport(&came, told()) {
        return Some(advice.to_owned());
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
    if !came.is_empty() {
        // A driver answers in blocks.
        let is_answer = came.trim_start().starts_with(['{', '[', '"', '<']);
        return (!is_answer && run.header.side == Side::Provider).then(|| {
            "It prints text before its answer: banners, prompts and logs belong on standard error.".to_owned()
        });
    }
    let waits = told().any(|line| line.starts_with("no reply within") || line.starts_with("still running"));
    match run.header.side {
        Side::Provider if waits => {
            let start_up = Budget::default().scaled(run.header.timeout_scale).start_up.as_secs_f64();
            let has_failed = |check: &&CheckResult| check.verdict.is_failure();
            let mut first = run.checks.iter().filter(has_failed).filter_map(|check| check.first_canary.as_deref());
            if first.any(|command| command == HTTP) {
                let fault = if told().any(|line| line.contains(NOT_LISTENING)) {
                    "It did not listen at its address"
                } else {
                    "It accepted a connection and wrote nothing"
                };
                return Some(format!(
                    "{fault} within {start_up:.0} s of its start. `{{port}}` in its command line stands for the port \
                     of 127.0.0.1 that peerproof asks."
                ));
            }
            let mut text = format!(
                "It wrote nothing within {start_up:.0} s of its start. A server that buffers its output has to flush \
                 it after each answer."
            );
            let of_run = boundaries.iter().filter(|boundary| is_own(**boundary));
            if of_run.flat_map(|boundary| boundary.description().config_keys).any(|key| key.name == "startup_ms") {
                text.push_str(" One that starts more slowly needs `startup_ms` under [limits].");
            }
            let opened: Vec<&str> =
                boundaries.iter().filter(|boundary| boundary.description().converses).map(|boundary| boundary.name()).collect();
            if !opened.is_empty() && !opened.contains(&run.header.boundary.as_str()) {
                let name = opened.join(" or ");
                text.push_str(&format!(
                    " A server that waits for an opening is a peer of {name}: try `peerproof check {name}`."
                ));
            }
            Some(text)
        }
        Side::Consumer if waits => Some(
            "It waits for its standard input and asks nothing: it seems to be a server. This command needs a client."
                .to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn impression_of(verdict: Value, side: &str, lines: &[&str]) -> Option<String> {
        let mut canary = json!({
            "id": "toy/serve/canary/plain-request", "title": "t", "clauses": [], "first_canary": "serve",
            "conversation": lines, "ms": 1,
        });
        canary.as_object_mut().unwrap().extend(verdict.as_object().unwrap().clone());
        let header = json!({
            "peerproof": "0", "boundary": "toy", "side": side, "peer": "p", "planned": [canary["id"]],
            "clauses_sha256": "", "rng_seed": 1, "timeout_scale": 1.0, "config": {}, "started": "",
        });
        impression(&StoredRun::new(from_value(header).unwrap(), vec![from_value(canary).unwrap()]), &[])
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
    fn a_peer_that_answers_as_it_must_makes_no_impression() {
        assert_eq!(impression_of(json!({ "verdict": "fail" }), "provider", &["← {\"ok\":1}"]), None);
        assert_eq!(impression_of(json!({ "verdict": "pass" }), "provider", &["← hello"]), None);
        assert_eq!(impression_of(json!({ "verdict": "leak" }), "provider", &["← hello"]), None);
        assert_eq!(impression_of(json!({ "verdict": "fail" }), "provider", &["← <noop><end>"]), None);
        let refused = json!({ "verdict": "untestable", "detail": "no_working_reply: refused" });
        assert_eq!(impression_of(refused, "provider", &[]), None);
    }
}
