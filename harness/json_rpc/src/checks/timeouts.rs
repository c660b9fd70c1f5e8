//! Calls that take time: timeouts, work at the end of input, and slow calls beside quick ones.
//!
//! Work that would take longer than its timeout and the second that the contract adds is done only by a server that
//! missed it; when the error came is judged from the transcript, with what plain calls before it took added.

use super::super::model::TIMEOUT_DEFAULT_MS;
use super::super::role::role;
use super::super::talk::{Talk, call, good};
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking};

/// What a server that does one thing after the other may still be busy with, ms: calls that have timed out.
const LEFT_OVER_MS: u64 = 6_000;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![
        cut_off(),
        by_default(),
        once(),
        error_type(),
        bounds(),
        quick_at_eof(),
        slow_at_eof(),
        beside_slow(),
    ]
}

/// A call of the method that sleeps, or a notification for it.
fn sleep(facts: &Facts, ms: u64, timeout_ms: Option<&str>, id: Option<&str>) -> Result<String, Untestable> {
    let role = role(facts, "sleep").ok_or("the role `sleep` is not mapped")?;
    let mut params = role.filled("ms", ms)?;
    if let Some(timeout_ms) = timeout_ms {
        let object = params
            .as_object_mut()
            .ok_or("the role `sleep` takes its params by position: no room for options")?;
        let options = object.entry("options").or_insert_with(|| serde_json::json!({}));
        let wish = serde_json::from_str(timeout_ms).map_err(|error| error.to_string())?;
        options
            .as_object_mut()
            .ok_or("`options` of the role `sleep` are no object")?
            .insert("timeout_ms".to_owned(), wish);
    }
    Ok(call(&role.method, Some(&params.to_string()), id))
}

/// Sends a call that takes `ms`, and waits for its answer.
fn send(
    talk: &mut Talk<'_>,
    facts: &Facts,
    ms: u64,
    timeout_ms: Option<&str>,
    id: &str,
) -> Result<(), Untestable> {
    talk.send(&sleep(facts, ms, timeout_ms, Some(id))?).allow_ms(ms + LEFT_OVER_MS);
    Ok(())
}

/// A canary behind calls that a server may still be busy with, and the end.
fn close(talk: &mut Talk<'_>, busy_ms: u64) -> peerproof_engine::plan::Plan {
    talk.canary().allow_ms(busy_ms);
    talk.act(Act::Finish).allow_ms(busy_ms).plan()
}

fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    plan: impl Fn(&Facts) -> Result<peerproof_engine::plan::Plan, Untestable> + Send + Sync + 'static,
) -> Check {
    let id = format!("json_rpc/stdio/{name}");
    Check::new(id, title, clauses.iter().copied(), "command", move |facts, _| plan(facts)).roles(&["sleep"])
}

fn cut_off() -> Check {
    check(
        "timeouts/cut-off",
        "A call of 3 s is answered by a timeout where it may take 0.3 s, and by its result where it may take 30 s.",
        &["RPC-TIME-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-01");
            talk.canary().canary();
            send(&mut talk, facts, 50, Some("30000"), "\"in-time\"")?;
            send(&mut talk, facts, 3_000, Some("300"), "\"too-long\"")?;
            if facts.claims("batch") {
                let text = format!("[{}]", sleep(facts, 3_000, Some("300"), Some("\"in-a-batch\""))?);
                talk.send(&text).allow_ms(3_000 + LEFT_OVER_MS);
            }
            Ok(close(&mut talk, 2 * 3_000))
        },
    )
    .waits()
}

fn by_default() -> Check {
    check(
        "timeouts/thirty-seconds-by-default",
        "A call of 34 s that says nothing of its time is answered by a timeout.",
        &["RPC-TIME-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-01");
            talk.canary().canary();
            send(&mut talk, facts, TIMEOUT_DEFAULT_MS + 4_000, None, "\"too-long\"")?;
            Ok(close(&mut talk, 4_000))
        },
    )
    .slow()
}

fn once() -> Check {
    check(
        "timeouts/no-second-answer",
        "A call that timed out is not answered again when its work is done, and a notification not at all.",
        &["RPC-TIME-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-02");
            send(&mut talk, facts, 1_700, Some("100"), "\"too-long\"")?;
            talk.queue(Payload::text(sleep(facts, 1_700, Some("100"), None)? + "\n"));
            talk.act(Act::Wait { ms: 2_000 });
            Ok(close(&mut talk, 2 * 1_700))
        },
    )
    .waits()
}

fn error_type() -> Check {
    check(
        "timeouts/error-type",
        "The error of a call that timed out has data.type TIMEOUT.",
        &["RPC-TIME-03"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-03");
            send(&mut talk, facts, 2_500, Some("200"), "\"too-long\"")?;
            Ok(close(&mut talk, 2_500))
        },
    )
    .waits()
    .ambient()
}

fn bounds() -> Check {
    check(
        "timeouts/bounds",
        "Timeouts of 1 and 600,000 ms are taken, and those beyond are refused or moved to the nearest of both.",
        &["RPC-TIME-05"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-05");
            for (ms, timeout_ms) in [
                (50, "600000"),
                (2_000, "1"),
                (2_000, "0"),
                (2_000, "-5"),
                (50, "600001"),
                (50, "9007199254740991"),
            ] {
                send(&mut talk, facts, ms, Some(timeout_ms), &format!("\"timeout {timeout_ms}\""))?;
            }
            Ok(close(&mut talk, LEFT_OVER_MS))
        },
    )
    .waits()
}

fn quick_at_eof() -> Check {
    check(
        "eof/half-a-second-of-work",
        "Input ends behind a call of 0.5 s: it is finished and answered.",
        &["RPC-TIME-04"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-TIME-04");
            talk.canary();
            talk.queue(Payload::text(sleep(facts, 500, None, Some("\"last\""))? + "\n"));
            Ok(talk.finish())
        },
    )
    .waits()
}

fn slow_at_eof() -> Check {
    check(
        "eof/minutes-of-work",
        "Input ends behind a call of 100 s: it may be answered by an error or dropped, and the process exits with 0.",
        &["RPC-PROC-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-PROC-02");
            talk.canary();
            talk.queue(Payload::text(sleep(facts, 100_000, None, Some("\"last\""))? + "\n"));
            Ok(talk.act(Act::Finish).allow_ms(TIMEOUT_DEFAULT_MS).plan())
        },
    )
    .waits()
}

fn beside_slow() -> Check {
    check(
        "concurrent/quick-calls-behind-a-slow-one",
        "Calls that are sent behind one of 2.5 s are answered before it.",
        &["RPC-CONC-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-CONC-01");
            talk.canary();
            talk.push(Payload::text(sleep(facts, 2_500, None, Some("\"slow\""))? + "\n"), Chunking::Whole, 0);
            // Where calls wait for each other, the end of the slow one lets go of this one, and not of the quick ones: what
            // is let go at once over several connections may come in any order.
            talk.queue(Payload::text(sleep(facts, 700, None, Some("\"less-slow\""))? + "\n"));
            for number in 101..103 {
                let id = format!("\"quick-{number}\"");
                talk.queue(Payload::text(good(facts, number, &id) + "\n"));
            }
            // The slow one comes as well, whenever it does.
            talk.act(Act::Wait { ms: 3_000 });
            Ok(close(&mut talk, 2_500))
        },
    )
    .feature("concurrent")
    .waits()
}
