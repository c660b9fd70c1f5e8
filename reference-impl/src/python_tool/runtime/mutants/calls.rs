//! Mutants that make calls differently.

use super::super::{Config, End, Outcome, Parts, Ready, Target};
use super::Change::{Assured, Both, Config as Told, Line, Parts as Made, Sent, Shaken, Trace};
use super::{Mutant, assured, each, edited, has, line, member, of, with_text};
use crate::envelope::{get, number, set};
use crate::envelope_caller::mutants::Fault;
use crate::json::Value;
use crate::mutant::carrier;

/// Extra time that a late mutant gives a call, in ms.
const LATE_MS: u64 = 8_000;

pub(super) const MUTANTS: &[Mutant] = &[
    of(
        "runtime-never-times-out",
        &["PT-RT-18"],
        "No call times out.",
        Told(|config| {
            each(config, |ready| ready.timeout_ms += 1 << 32);
        }),
    ),
    of(
        "runtime-halves-timeouts",
        &["PT-RT-18"],
        "A call has half of its time.",
        Told(|config| {
            each(config, |ready| ready.timeout_ms /= 2);
        }),
    ),
    of(
        "runtime-halves-timeouts-in-secret",
        &["PT-RT-18"],
        "A call has half of its time, which its trace does not tell.",
        Both(|config, parts| {
            each(config, |ready| ready.timeout_ms /= 2);
            parts.line = Box::new(|name, ready, mut told| {
                let whole = ready.map(|ready| {
                    let mut whole = ready.clone();
                    whole.timeout_ms *= 2;
                    whole
                });
                if let (Some(whole), Outcome::Other("timeout", _)) = (&whole, &told.outcome) {
                    told.elapsed_ms = whole.timeout_ms;
                }
                line(name, whole.as_ref(), told)
            });
        }),
    ),
    of(
        "runtime-is-late-in-secret",
        &["PT-RT-18"],
        "A local call has eight seconds more, and its trace the time that it should have had.",
        Both(|config, parts| {
            each(config, be_late);
            be_silent_of_it(parts);
        }),
    ),
    of(
        "runtime-waits-for-the-pipe-in-secret",
        &["PT-RT-45"],
        "The end of a held pipe is waited for, and the outcome is a timeout that came in time.",
        Both(|config, parts| {
            each(config, |ready| {
                be_late(ready);
                if let Target::Local(argv) = &mut ready.target {
                    let script = "out=$(\"$0\" \"$@\") || exit; printf %s \"$out\"";
                    argv.splice(0..0, ["sh", "-c", script].map(str::to_owned));
                }
            });
            be_silent_of_it(parts);
        }),
    ),
    of(
        "runtime-counts-no-handshakes",
        &["PT-RT-18"],
        "The time of a call begins behind its handshake.",
        Made(|parts| parts.counted = |_| 0),
    ),
    carrier(
        "runtime-asks-to-end",
        &["PT-RT-18"],
        "A late program is asked to end, and waited for.",
        Fault::AsksToEnd,
    ),
    carrier(
        "runtime-outlasts-writing",
        &["PT-RT-18"],
        "The time of a call is over only when its request is written.",
        Fault::OutlastsWriting,
    ),
    carrier(
        "runtime-waits-anew",
        &["PT-RT-19"],
        "The time of a call begins anew with each byte.",
        Fault::WaitsAnew,
    ),
    carrier(
        "runtime-waits-for-the-head",
        &["PT-RT-19"],
        "The time of a call is over once its reply has begun.",
        Fault::WaitsForTheHead,
    ),
    carrier(
        "runtime-kills-one-process",
        &["PT-RT-20"],
        "Only the first process of a late program is killed.",
        Fault::KillsOne,
    ),
    of(
        "runtime-waits-longer",
        &["PT-RT-21"],
        "A call that says nothing has 30 seconds.",
        Told(|config| {
            each(config, |ready| {
                if ready.timeout_ms == 10_000 {
                    ready.timeout_ms = 30_000;
                }
            });
        }),
    ),
    of(
        "runtime-takes-seconds-for-ms",
        &["PT-RT-22"],
        "`timeout_seconds` counts as milliseconds in the trace.",
        Trace(|ready, trace| {
            if let Some(seconds) = ready.told.get("timeout_seconds") {
                set(trace, "timeout_ms", seconds.clone());
            }
        }),
    ),
    of(
        "runtime-takes-whole-seconds",
        &["PT-RT-22"],
        "Of `timeout_seconds` the fraction is dropped.",
        Told(|config| {
            each(config, |ready| {
                if ready.told.get("timeout_seconds").is_some() {
                    ready.timeout_ms = ready.timeout_ms / 1_000 * 1_000;
                }
            });
        }),
    ),
    of(
        "runtime-prefers-seconds",
        &["PT-RT-23"],
        "Of two times the seconds count.",
        Told(|config| {
            each(config, |ready| {
                if let Some(Value::Number(seconds)) = ready.told.get("timeout_seconds") {
                    ready.timeout_ms = (seconds.as_f64() * 1_000.0) as u64;
                }
            });
        }),
    ),
    of(
        "runtime-makes-wrong-calls",
        &["PT-RT-25"],
        "A payload that is no object is sent.",
        Told(|config| {
            let spare = config.scenario.calls.iter().find_map(|call| call.ready.clone().ok());
            for call in &mut config.scenario.calls {
                if call.ready.as_ref().is_err_and(|why| why.to_string().contains("payload"))
                    && let Some(spare) = &spare
                {
                    call.ready = Ok(spare.clone());
                }
            }
        }),
    ),
    of(
        "runtime-tells-wrong-calls-invalid",
        &["PT-RT-25"],
        "A wrong call is invalid.",
        Line(|line| {
            if get(line, "outcome") == Some(&Value::from("bad_call")) {
                set(line, "outcome", Value::from("invalid"));
            }
        }),
    ),
    of(
        "runtime-sends-other-payloads",
        &["PT-RT-26"],
        "Members that are null are dropped from payloads.",
        Sent(|ready, sent| {
            if matches!(ready.target, Target::Local(_))
                && let Some(Value::Object(payload)) = member(sent, "payload")
            {
                payload.retain(|(_, value)| *value != Value::Null);
            }
        }),
    ),
    of(
        "runtime-needs-a-package",
        &["PT-RT-04", "PT-RT-05"],
        "A call of a module that lies in no package is wrong.",
        Told(|config| {
            for call in &mut config.scenario.calls {
                let is_at_top = |ready: &Ready| {
                    let module = ready.told.get("entry").and_then(Value::as_str)?.split_once(':')?.0;
                    Some(!module.contains('.'))
                };
                if call.ready.as_ref().ok().and_then(is_at_top) == Some(true) {
                    call.ready = Err("its module lies in no package".into());
                }
            }
        }),
    ),
    of(
        "runtime-spells-tools-in-ascii",
        &["PT-RT-29"],
        "Letters beyond ASCII are dropped from the names of tools.",
        Sent(|_, sent| {
            if let Some(name) = member(sent, "tool_name") {
                let ascii: String =
                    name.as_str().unwrap_or_default().chars().filter(char::is_ascii).collect();
                *name = Value::from(ascii.as_str());
            }
        }),
    ),
    of(
        "runtime-sends-version-2",
        &["PT-RT-26"],
        "Requests have version 2.",
        Sent(|ready, sent| {
            if matches!(ready.target, Target::Local(_)) {
                set(sent, "protocol_version", number(2));
            }
        }),
    ),
    of(
        "runtime-drops-trace-ids",
        &["PT-RT-27"],
        "`trace_id` is not sent.",
        Sent(|_, sent| {
            sent.retain(|(name, _)| *name != *"trace_id");
        }),
    ),
    of(
        "runtime-switches-the-sandbox-off",
        &["PT-RT-27"],
        "`sandbox` is sent as false.",
        Sent(|_, sent| {
            if get(sent, "sandbox").is_some() {
                set(sent, "sandbox", Value::Bool(false));
            }
        }),
    ),
    of(
        "runtime-sends-no-guarantees",
        &["PT-RT-28"],
        "Guarantees are not sent.",
        Sent(|_, sent| {
            sent.retain(|(name, _)| *name != *"capability_context");
        }),
    ),
    of(
        "runtime-sends-tool-to-services",
        &["PT-RT-29"],
        "A service gets `tool`, not `tool_name`.",
        Sent(|_, sent| {
            sent.iter_mut()
                .filter(|(name, _)| *name == *"tool_name")
                .for_each(|(name, _)| *name = "tool".into());
        }),
    ),
    of(
        "runtime-sends-no-time",
        &["PT-RT-29"],
        "A service gets no `timeout_ms`.",
        Sent(|_, sent| {
            sent.retain(|(name, _)| *name != *"timeout_ms");
        }),
    ),
    of(
        "runtime-sends-no-project",
        &["PT-RT-29"],
        "A service gets no `project`.",
        Sent(|_, sent| {
            sent.retain(|(name, _)| *name != *"project");
        }),
    ),
    carrier("runtime-posts-text", &["PT-RT-30"], "Requests are `text/plain`.", Fault::PostsText),
    carrier("runtime-leaves-stdin-open", &["PT-RT-31"], "Standard input stays open.", Fault::LeavesStdinOpen),
    of(
        "runtime-uses-a-shell",
        &["PT-RT-32"],
        "Commands are given to a shell.",
        Told(|config| {
            each(config, |ready| {
                if let Target::Local(argv) = &mut ready.target {
                    *argv = vec!["sh".to_owned(), "-c".to_owned(), argv.join(" ")];
                }
            });
        }),
    ),
    carrier("runtime-calls-twice", &["PT-RT-33"], "Each call is made twice.", Fault::CallsTwice),
    carrier(
        "runtime-posts-lost-again",
        &["PT-RT-33"],
        "A request whose connection was lost is made again.",
        Fault::PostsLostAgain,
    ),
    of(
        "runtime-tries-again",
        &["PT-RT-33"],
        "What crashes is run again.",
        Told(|config| {
            each(config, |ready| {
                if let Target::Local(argv) = &mut ready.target {
                    let script = "t=$(mktemp) && cat >\"$t\" && { \"$0\" \"$@\" <\"$t\" || \"$0\" \"$@\" <\"$t\"; s=$?; rm \"$t\"; exit $s; }";
                    argv.splice(0..0, ["sh", "-c", script].map(str::to_owned));
                }
            });
        }),
    ),
    of(
        "runtime-stays-where-it-is",
        &["PT-RT-34"],
        "Runners are started where the runtime is.",
        Told(|config| {
            config.scenario.folder = None;
        }),
    ),
    of(
        "runtime-heeds-no-order",
        &["PT-RT-35"],
        "No call waits for another.",
        Told(|config| {
            config.scenario.calls.iter_mut().for_each(|call| call.after.clear());
        }),
    ),
    carrier("runtime-leaves-stderr", &["PT-RT-37"], "Standard error is not read.", Fault::LeavesStderr),
    carrier("runtime-mixes-stderr", &["PT-RT-37"], "Standard error counts as output.", Fault::MixesStderr),
    carrier(
        "runtime-writes-first",
        &["PT-RT-38"],
        "Output is read once the request is written.",
        Fault::WritesFirst,
    ),
    carrier("runtime-follows-redirects", &["PT-RT-39"], "Redirects are followed.", Fault::Follows),
    of(
        "runtime-uses-proxies",
        &["PT-RT-40"],
        "Services are asked through the proxy of the environment.",
        Told(|config| {
            let Some(proxy) = config.proxy.clone() else { return };
            for ready in config.scenario.calls.iter_mut().filter_map(|call| call.ready.as_mut().ok()) {
                if let Target::Service(url) = &mut ready.target {
                    *url = format!("{proxy}/{}", url.splitn(4, '/').nth(3).unwrap_or_default());
                }
            }
        }),
    ),
    of(
        "runtime-takes-little",
        &["PT-RT-41"],
        "A reply has at most 512 KiB.",
        Told(|config| {
            config.reply_bytes_max = 512 << 10;
        }),
    ),
    of(
        "runtime-takes-more",
        &["PT-RT-42"],
        "A reply has at most 64 MiB.",
        Told(|config| {
            config.reply_bytes_max = 64 << 20;
        }),
    ),
    carrier(
        "runtime-gives-held-pipes-up",
        &["PT-RT-44"],
        "A reply behind which another process holds the pipe is no reply.",
        Fault::WaitsForPipe,
    ),
    carrier(
        "runtime-waits-for-the-pipe",
        &["PT-RT-45"],
        "The end of a held pipe is waited for, whatever the time.",
        Fault::OutwaitsPipe,
    ),
    of(
        "runtime-makes-no-handshake",
        &["PT-RT-46"],
        "A service is not asked for its guarantees.",
        Told(|config| {
            each(config, |ready| ready.required.clear());
        }),
    ),
    of(
        "runtime-takes-one-assurance-for-all-guarantees",
        &["PT-RT-46"],
        "What a service assured for a tool is taken for every guarantee of that tool.",
        Told(|config| keep_assurance(config, "tool")),
    ),
    of(
        "runtime-takes-one-assurance-for-all-tools",
        &["PT-RT-46"],
        "What a service assured for a tool is taken for every tool.",
        Told(|config| keep_assurance(config, "guarantees")),
    ),
    of(
        "runtime-requires-nothing",
        &["PT-RT-46"],
        "A handshake requires nothing.",
        Shaken(|sent| {
            set(sent, "required_guarantees", Value::Object(Vec::new()));
        }),
    ),
    of(
        "runtime-says-more-in-handshakes",
        &["PT-RT-46"],
        "A handshake has members of its own.",
        Shaken(|sent| {
            set(sent, "client", Value::from("runtime"));
        }),
    ),
    of(
        "runtime-takes-ok-for-assurance",
        &["PT-RT-47"],
        "A handshake with `ok` true is enough.",
        Assured(|end, is| is || matches!(end, End::Replied(200, text) if has(text, "\"ok\":true"))),
    ),
    of(
        "runtime-takes-words-for-assurance",
        &["PT-RT-47"],
        "The word `enforced` is enough.",
        Assured(|end, is| {
            is || matches!(end, End::Replied(200, text) if has(text, "\"enforced\"") && has(text, "\"ok\":true"))
        }),
    ),
    of(
        "runtime-takes-guarantees-in-any-case",
        &["PT-RT-47"],
        "Names of guarantees that a service supports count in capital letters as well.",
        Made(|parts| {
            parts.assured = Box::new(|ready, config, end| {
                let end = with_text(end.clone(), |text| {
                    edited(text, |reply| {
                        if let Some(Value::Object(supported)) = member(reply, "supported_guarantees") {
                            for (name, _) in supported {
                                *name = name.to_lossy().to_lowercase().as_str().into();
                            }
                        }
                    })
                });
                assured(ready, config, &end)
            });
        }),
    ),
    of(
        "runtime-takes-silence-for-assurance",
        &["PT-RT-48"],
        "A service without handshakes is trusted.",
        Assured(|end, is| is || !matches!(end, End::Replied(200, text) if has(text, "enforcement"))),
    ),
    of(
        "runtime-heeds-no-override",
        &["PT-RT-50"],
        "`unsafe_override` means nothing.",
        Told(|config| {
            config.has_override = false;
        }),
    )
    .needing("unsafe_override"),
];

fn be_late(ready: &mut Ready) {
    if matches!(ready.target, Target::Local(_)) {
        ready.timeout_ms += LATE_MS;
    }
}

/// Skips the handshake of a call if an earlier call of the same service has the same value of `member`.
fn keep_assurance(config: &mut Config, member: &str) {
    let mut assured = Vec::new();
    for ready in config.scenario.calls.iter_mut().filter_map(|call| call.ready.as_mut().ok()) {
        let Target::Service(url) = &ready.target else { continue };
        let own = (url.clone(), ready.told.get(member).cloned());
        if !ready.required.is_empty() && assured.contains(&own) {
            ready.required.clear();
        }
        assured.push(own);
    }
}

/// Reports a late call as if its time limit had been kept.
fn be_silent_of_it(parts: &mut Parts) {
    parts.line = Box::new(|name, ready, mut told| {
        let mut own = ready.cloned();
        if let Some(own) = own.as_mut().filter(|own| matches!(own.target, Target::Local(_))) {
            own.timeout_ms -= LATE_MS;
            if told.elapsed_ms > own.timeout_ms {
                told.outcome = Outcome::Other("timeout", "its time is over".to_owned());
                told.elapsed_ms = own.timeout_ms;
            }
        }
        line(name, own.as_ref(), told)
    });
}
