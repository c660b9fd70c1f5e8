//! Faults of components and of the configuration.

use super::super::{Answer, Backoff, ErrorAnswer, Ids, Reader, Retry, Signer, StrictReader};
use super::Mutant;
use crate::json::{Value, write_str};
use crate::json_rpc::signature;
use crate::mutant::{config as told, parts, parts as reader};

/// Replaces the reader: the function edits the correct reader's result.
macro_rules! reads {
    ($change:expr) => {
        |_, parts| parts.reader = Box::new(Changed($change))
    };
}

/// Replaces the delays by a function of the retry's number, the base, the server's wish, and the correct delay.
macro_rules! waits {
    ($delay:expr) => {
        |_, parts| {
            let correct = std::mem::replace(&mut parts.backoff, Box::new(Nothing));
            parts.backoff = Box::new(Delays { correct, delay: $delay });
        }
    };
}

macro_rules! signs {
    ($sign:expr) => {
        |config, parts| {
            if let Some(auth) = &config.scenario.auth {
                parts.signer = Some(Box::new(Signs { key: auth.key.clone(), count: 0, sign: $sign }));
            }
        }
    };
}

pub(super) const MUTANTS: &[Mutant] = &[
    parts("client-one-id-for-all", &["RPC-CLIENT-05"], "Every request has the same id.", |_, parts| {
        parts.ids = Box::new(OneId)
    }),
    parts("client-counts-to-256", &["RPC-CLIENT-05"], "Ids begin anew after 256 requests.", |_, parts| {
        parts.ids = Box::new(Byte(0));
    }),
    told("client-heeds-no-order", &["RPC-CLIENT-07"], "No call waits for another.", |config| {
        config.scenario.calls.iter_mut().for_each(|call| call.after.clear());
    }),
    reader(
        "client-takes-errors-for-results",
        &["RPC-CLIENT-10"],
        "An error is taken for a result.",
        reads!(|_, answer| match answer {
            Answer::Error(error) => Answer::Result(error.error),
            other => other,
        }),
    ),
    reader(
        "client-wraps-results",
        &["RPC-CLIENT-09"],
        "A result is written down in an array.",
        reads!(|_, answer| match answer {
            Answer::Result(value) => Answer::Result(Value::Array(vec![value])),
            other => other,
        }),
    ),
    reader(
        "client-takes-false-for-nothing",
        &["RPC-CLIENT-09"],
        "A result that is 0, false or empty is taken for null.",
        reads!(|_, answer| match answer {
            Answer::Result(Value::Bool(false)) => Answer::Result(Value::Null),
            Answer::Result(value) if value == Value::Number(0.into()) || value == Value::from("") => {
                Answer::Result(Value::Null)
            }
            other => other,
        }),
    ),
    reader(
        "client-takes-null-for-invalid",
        &["RPC-CLIENT-09"],
        "A result that is null is taken for none.",
        reads!(|_, answer| match answer {
            Answer::Result(Value::Null) => Answer::Invalid,
            other => other,
        }),
    ),
    reader(
        "client-loses-error-data",
        &["RPC-CLIENT-10"],
        "The data of an error are lost.",
        reads!(|_, answer| match answer {
            Answer::Error(mut error) => {
                if let Value::Object(members) = &mut error.error {
                    members.retain(|(name, _)| name != "data");
                }
                Answer::Error(error)
            }
            other => other,
        }),
    ),
    told("client-halves-timeouts", &["RPC-CLIENT-11"], "A call waits half of its time.", |config| {
        config.scenario.calls.iter_mut().for_each(|call| call.timeout_ms /= 2);
    }),
    told("client-waits-for-ever", &["RPC-CLIENT-11"], "No call ever times out.", |config| {
        config.scenario.calls.iter_mut().for_each(|call| call.timeout_ms = 1 << 40);
    }),
    told(
        "client-waits-too-long",
        &["RPC-CLIENT-11"],
        "A call waits two seconds more than it may.",
        |config| {
            config.scenario.calls.iter_mut().for_each(|call| call.timeout_ms += 2_000);
        },
    ),
    told("client-never-retries", &["RPC-CLIENT-12"], "There is one attempt.", |config| {
        config
            .scenario
            .calls
            .iter_mut()
            .for_each(|call| call.retry = Retry { max_attempts: 1, ..call.retry });
    }),
    told("client-gives-up-early", &["RPC-CLIENT-12"], "The last attempt is not made.", |config| {
        config.scenario.calls.iter_mut().for_each(|call| call.retry.max_attempts -= 1);
    }),
    reader(
        "client-gives-up-on-unavailable",
        &["RPC-CLIENT-12"],
        "-32001 is not tried again.",
        reads!(|code, answer| if code == Some(-32001) { final_one(answer) } else { answer }),
    ),
    reader(
        "client-gives-up-on-rate-limit",
        &["RPC-CLIENT-12"],
        "-32002 is not tried again.",
        reads!(|code, answer| if code == Some(-32002) { final_one(answer) } else { answer }),
    ),
    reader(
        "client-gives-up-on-limits-without-a-wait",
        &["RPC-CLIENT-12"],
        "-32002 is not tried again where it does not say how long to wait.",
        reads!(|code, answer| match answer {
            Answer::Error(ErrorAnswer { retry_after_ms: None, .. }) if code == Some(-32002) =>
                final_one(answer),
            other => other,
        }),
    ),
    reader(
        "client-gives-up-on-timeout",
        &["RPC-CLIENT-12"],
        "TIMEOUT is not tried again.",
        reads!(|code, answer| if code == Some(-32000) { final_one(answer) } else { answer }),
    ),
    told("client-tries-once-more", &["RPC-CLIENT-13"], "There is an attempt too many.", |config| {
        config.scenario.calls.iter_mut().for_each(|call| call.retry.max_attempts += 1);
    }),
    reader(
        "client-retries-everything",
        &["RPC-CLIENT-13"],
        "Every error is tried again.",
        reads!(|_, answer| transient(answer)),
    ),
    reader(
        "client-retries-every-execution",
        &["RPC-CLIENT-13"],
        "Every -32000 is tried again, whatever its type.",
        reads!(|code, answer| if code == Some(-32000) { transient(answer) } else { answer }),
    ),
    reader(
        "client-retries-auth",
        &["RPC-CLIENT-13"],
        "-32003 is tried again.",
        reads!(|code, answer| if code == Some(-32003) { transient(answer) } else { answer }),
    ),
    reader(
        "client-reads-codes-of-32-bits",
        &["RPC-CLIENT-13"],
        "Of the code of an error 32 bits count.",
        reads!(|code, answer| {
            let wraps = code == Some((1 << 32) - 32_001);
            if wraps { transient(answer) } else { answer }
        }),
    ),
    reader(
        "client-folds-types-of-errors",
        &["RPC-CLIENT-13"],
        "`timeout` is a timeout as well.",
        reads!(|_, answer| match &answer {
            Answer::Error(error)
                if error.error.get("data").and_then(|data| data.get("type")).and_then(Value::as_str)
                    == Some("timeout") =>
                transient(answer),
            _ => answer,
        }),
    ),
    parts(
        "client-waits-32-bits",
        &["RPC-CLIENT-16"],
        "Of `retry_after_ms` 32 bits count.",
        waits!(|retry, base, asked, _| (base << retry).max(asked.unwrap_or_default() & 0xffff_ffff)),
    ),
    parts(
        "client-retries-at-once",
        &["RPC-CLIENT-14"],
        "A retry does not wait.",
        waits!(|_, _, asked, _| asked.unwrap_or_default()),
    ),
    parts(
        "client-backs-off-linearly",
        &["RPC-CLIENT-14"],
        "Delays grow by the base each time.",
        waits!(|retry, base, asked, _| (base * (u64::from(retry) + 1)).max(asked.unwrap_or_default())),
    ),
    parts(
        "client-backs-off-too-far",
        &["RPC-CLIENT-14"],
        "Delays grow fourfold each time.",
        waits!(|retry, base, asked, _| (base << (2 * retry)).max(asked.unwrap_or_default())),
    ),
    parts(
        "client-without-jitter",
        &["RPC-CLIENT-15"],
        "Every delay is exactly base·2^k.",
        waits!(|retry, base, asked, _| (base << retry).max(asked.unwrap_or_default())),
    ),
    parts(
        "client-waits-up-to-twice-the-middle",
        &["RPC-CLIENT-14"],
        "Delays lie between 0.5 and 2 times base·2^k.",
        waits!(|retry, base, asked, correct| {
            let least = (base << retry) / 2;
            (least + correct.saturating_sub(least) * 3 / 2).max(asked.unwrap_or_default())
        }),
    ),
    parts(
        "client-ignores-retry-after",
        &["RPC-CLIENT-16"],
        "`retry_after_ms` means nothing.",
        waits!(|retry, base, _, _| base << retry),
    ),
    parts(
        "client-waits-as-asked-once",
        &["RPC-CLIENT-16"],
        "`retry_after_ms` means nothing from the second answer on.",
        waits!(|retry, base, asked, _| if retry == 0 { asked.unwrap_or(base) } else { base << retry }),
    ),
    parts(
        "client-takes-both-for-result",
        &["RPC-CLIENT-17"],
        "A response with result and error counts as a result.",
        |_, parts| {
            parts.reader = Box::new(Lenient(|response| {
                response.get("error")?;
                Some(Answer::Result(response.get("result")?.clone()))
            }));
        },
    ),
    parts(
        "client-takes-neither-for-result",
        &["RPC-CLIENT-17"],
        "A response without result and error counts as the result null.",
        |_, parts| {
            parts.reader = Box::new(Lenient(|response| {
                (response.get("error").is_none() && response.get("result").is_none())
                    .then_some(Answer::Result(Value::Null))
            }));
        },
    ),
    parts(
        "client-takes-any-error",
        &["RPC-CLIENT-17"],
        "Whatever stands under `error` is one.",
        |_, parts| {
            parts.reader = Box::new(Lenient(|response| {
                let error = response.get("error")?.clone();
                response.get("result").is_none().then_some(Answer::Error(ErrorAnswer {
                    error,
                    transient: false,
                    retry_after_ms: None,
                }))
            }));
        },
    ),
    told("client-sends-any-size", &["RPC-CLIENT-18"], "No request is too large to be sent.", |config| {
        config.limits.rpc_message_bytes_max = 64 << 20;
    }),
    parts(
        "client-takes-fractions-for-codes",
        &["RPC-CLIENT-17"],
        "The code of an error may be any number.",
        |_, parts| {
            parts.reader = Box::new(Lenient(|response| {
                let error = response.get("error")?.clone();
                let is_number = matches!(error.get("code"), Some(Value::Number(_)));
                (is_number && response.get("result").is_none()).then_some(Answer::Error(ErrorAnswer {
                    error,
                    transient: false,
                    retry_after_ms: None,
                }))
            }));
        },
    ),
    told("client-sends-small-requests", &["RPC-CLIENT-18"], "500,000 bytes are too large.", |config| {
        config.limits.rpc_message_bytes_max = 500_000;
    }),
    told("client-signs-nothing", &["RPC-CLIENT-24"], "Requests are not signed.", |config| {
        config.scenario.auth = None;
    }),
    parts(
        "client-signs-without-nonce",
        &["RPC-CLIENT-24"],
        "A signature has no nonce.",
        signs!(|_, text| text),
    ),
    parts(
        "client-repeats-its-nonce",
        &["RPC-CLIENT-24"],
        "Every signature has the same nonce.",
        signs!(|_, text| with_nonce(text, "n-1")),
    ),
    parts(
        "client-signs-in-ms",
        &["RPC-CLIENT-24"],
        "The timestamp of a signature is in milliseconds.",
        signs!(|count, text| {
            let text = with_nonce(text, &format!("n-{count}"));
            String::from_utf8_lossy(&text).replacen("\"timestamp\":", "\"timestamp\":1000", 1).into_bytes()
        }),
    ),
    told("client-is-late-by-400-s", &["RPC-CLIENT-24"], "Its clock is 400 s late.", |config| {
        config.started_unix_ms -= 400_000;
    }),
    parts(
        "client-signs-params-only",
        &["RPC-CLIENT-24"],
        "A signature is made without the id.",
        |config, parts| {
            if let Some(auth) = &config.scenario.auth {
                parts.signer = Some(Box::new(Partial { key: auth.key.clone(), count: 0 }));
            }
        },
    ),
];

/// Ids in a single byte, which wrap around.
struct Byte(u8);

impl Ids for Byte {
    fn next(&mut self) -> Value {
        self.0 = self.0.wrapping_add(1);
        Value::Number(i64::from(self.0).into())
    }
}

struct OneId;

impl Ids for OneId {
    fn next(&mut self) -> Value {
        Value::Number(1.into())
    }
}

/// Correct reader with an edited result. The function also gets the error code.
struct Changed(fn(Option<i64>, Answer) -> Answer);

impl Reader for Changed {
    fn read(&self, response: &Value) -> Answer {
        let code = response.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
        (self.0)(code, StrictReader.read(response))
    }
}

/// Correct reader with a second chance for invalid responses.
struct Lenient(fn(&Value) -> Option<Answer>);

impl Reader for Lenient {
    fn read(&self, response: &Value) -> Answer {
        match StrictReader.read(response) {
            Answer::Invalid => (self.0)(response).unwrap_or(Answer::Invalid),
            other => other,
        }
    }
}

fn final_one(answer: Answer) -> Answer {
    match answer {
        Answer::Error(error) => Answer::Error(ErrorAnswer { transient: false, ..error }),
        other => other,
    }
}

fn transient(answer: Answer) -> Answer {
    match answer {
        Answer::Error(error) => Answer::Error(ErrorAnswer { transient: true, ..error }),
        other => other,
    }
}

struct Nothing;

impl Backoff for Nothing {
    fn delay_ms(&mut self, _retry: u32, _base_ms: u64, _asked_ms: Option<u64>) -> u64 {
        0
    }
}

struct Delays {
    correct: Box<dyn Backoff>,
    delay: fn(u32, u64, Option<u64>, u64) -> u64,
}

impl Backoff for Delays {
    fn delay_ms(&mut self, retry: u32, base_ms: u64, asked_ms: Option<u64>) -> u64 {
        let correct = self.correct.delay_ms(retry, base_ms, asked_ms);
        (self.delay)(retry, base_ms, asked_ms, correct)
    }
}

/// A signer whose function completes `auth`, given the number of the message and its text with a timestamp.
struct Signs {
    key: Vec<u8>,
    count: u64,
    sign: fn(u64, Vec<u8>) -> Vec<u8>,
}

impl Signer for Signs {
    fn sign(&mut self, message: Vec<u8>, unix_s: u64) -> Vec<u8> {
        self.count += 1;
        let text = (self.sign)(self.count, with_timestamp(message, unix_s));
        let mark = signature(&self.key, &text).unwrap_or_default();
        with_signature(text, &mark)
    }
}

struct Partial {
    key: Vec<u8>,
    count: u64,
}

impl Signer for Partial {
    fn sign(&mut self, message: Vec<u8>, unix_s: u64) -> Vec<u8> {
        self.count += 1;
        let text = with_nonce(with_timestamp(message, unix_s), &format!("n-{}", self.count));
        let signed = String::from_utf8_lossy(&text).replace("\"id\":", "\"ID\":").into_bytes();
        let mark = signature(&self.key, &signed).unwrap_or_default();
        with_signature(text, &mark)
    }
}

fn with_timestamp(mut message: Vec<u8>, unix_s: u64) -> Vec<u8> {
    message.pop();
    message.extend_from_slice(format!(",\"auth\":{{\"timestamp\":{unix_s}}}}}").as_bytes());
    message
}

/// Appends a member to the `auth` at the end of a text.
fn with_member(mut text: Vec<u8>, name: &str, value: &str) -> Vec<u8> {
    text.truncate(text.len().saturating_sub(2));
    text.extend_from_slice(format!(",\"{name}\":").as_bytes());
    write_str(&mut text, value);
    text.extend_from_slice(b"}}");
    text
}

fn with_nonce(text: Vec<u8>, nonce: &str) -> Vec<u8> {
    with_member(text, "nonce", nonce)
}

fn with_signature(text: Vec<u8>, mark: &str) -> Vec<u8> {
    with_member(text, "signature", mark)
}
