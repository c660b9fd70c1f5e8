//! Mutants that accept near misses, or say more or less than they should.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::method::{Answer, Call, Method, World};
use super::super::{Components, Config, NonceStore, RateLimiter, Verifier};
use super::Mutant;
use super::edit::{
    both_ways, edited, ended, find, find_mut, has, incoming, method, outgoing, responses, set, swap_all,
    text, value,
};
use super::wire::Pass;
use crate::json::{Policy, Value};
use crate::machine::Millis;
use crate::mutant;

/// Test key. The mutant that leaks signatures knows no other.
const TEST_KEY: &[u8] = b"peerproof-test-key";

const fn parts(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut Config, &mut Components),
) -> Mutant {
    mutant::parts(id, clauses, fault, change)
}

/// Mark in the memory that a request was refused for its rate.
const LIMITED: &[u8] = b"limited";

const REFUSED: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32002,\"message\":\"Rate limit exceeded\"},\"id\":null}";

const MALFORMED: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}";

/// A verifier that normalises signatures before it checks them.
struct Mending {
    inner: Box<dyn Verifier>,
    mend: fn(&str) -> String,
}

impl Verifier for Mending {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let Ok(mut whole) = Value::parse(message, 256, &Policy::default()) else { return None };
        if let Value::Object(members) = &mut whole
            && let Some(Value::Object(auth)) = find_mut(members, "auth")
            && let Some(given) = find(auth, "signature").and_then(Value::as_str)
        {
            let mended = Value::from((self.mend)(given).as_str());
            set(auth, "signature", mended);
        }
        self.inner.verify(&text(&whole), unix_s)
    }
}

fn mend(components: &mut Components, mend: fn(&str) -> String) {
    if let Some(inner) = components.verifier.take() {
        components.verifier = Some(Box::new(Mending { inner, mend }));
    }
}

/// A memory that ignores the case of nonces.
struct Folding(Box<dyn NonceStore>);

impl NonceStore for Folding {
    fn is_known(&mut self, nonce: &str, now: Millis) -> bool {
        self.0.is_known(&nonce.to_lowercase(), now)
    }

    fn remember(&mut self, nonce: &str, now: Millis) -> bool {
        self.0.remember(&nonce.to_lowercase(), now)
    }
}

/// A memory that learns a nonce only some time after its use.
struct Lagging {
    inner: Box<dyn NonceStore>,
    fresh: Vec<(String, Millis)>,
}

impl NonceStore for Lagging {
    fn is_known(&mut self, nonce: &str, now: Millis) -> bool {
        for (nonce, at) in std::mem::take(&mut self.fresh) {
            if at < now {
                self.inner.remember(&nonce, at);
            } else {
                self.fresh.push((nonce, at));
            }
        }
        self.inner.is_known(nonce, now)
    }

    fn remember(&mut self, nonce: &str, now: Millis) -> bool {
        self.fresh.push((nonce.to_owned(), now));
        true
    }
}

/// A limiter that counts its refusals.
struct Telling {
    inner: Box<dyn RateLimiter>,
    refused: Arc<AtomicU64>,
}

impl RateLimiter for Telling {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        self.inner.pass(now).inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
        })
    }
}

/// A verifier that records for each message if its method exists.
struct Peeking {
    inner: Box<dyn Verifier>,
    is_known: Arc<AtomicBool>,
}

impl Verifier for Peeking {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let message_value = value(message);
        let name = message_value.as_ref().and_then(method);
        let is_known = super::super::methods().names().any(|known| name == Some(known));
        self.is_known.store(is_known, Ordering::Relaxed);
        self.inner.verify(message, unix_s)
    }
}

/// A limiter that counts only calls of existing methods.
struct Choosy {
    inner: Box<dyn RateLimiter>,
    is_known: Arc<AtomicBool>,
}

impl RateLimiter for Choosy {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        if self.is_known.load(Ordering::Relaxed) { self.inner.pass(now) } else { Ok(()) }
    }
}

/// A counter that also counts refused calls.
struct Overcounting {
    inner: Box<dyn Method>,
    refused: Arc<AtomicU64>,
}

impl Method for Overcounting {
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer {
        world.count += self.refused.swap(0, Ordering::Relaxed);
        self.inner.call(call, world)
    }
}

/// Authentication error in reply to `message`, with these `details`.
fn unauthorized(message: &Value, data: &str) -> Option<Pass> {
    let id = text(message.get("id")?);
    let head = format!(
        "{{\"jsonrpc\":\"2.0\",\"error\":{{\"code\":-32003,\"message\":\"Authentication failed\",\"data\":{{\
         \"type\":\"AUTH\",\"details\":\"{data}\"}}}},\"id\":"
    );
    Some(Pass::Answer([head.as_bytes(), &id, b"}"].concat()))
}

fn given(message: &Value) -> Option<&str> {
    message.get("auth")?.get("signature")?.as_str()
}

/// The mutants.
pub(super) const MUTANTS: &[Mutant] = &[
    parts("takes-url-safe-signatures", &["RPC-AUTH-01"], "- and _ are + and /.", |_, components| {
        mend(components, |given| given.replace('-', "+").replace('_', "/"));
    })
    .needing("auth"),
    parts(
        "trims-signatures",
        &["RPC-AUTH-01"],
        "Blanks around a signature do not count.",
        |_, components| {
            mend(components, |given| given.trim().to_owned());
        },
    )
    .needing("auth"),
    parts("pads-signatures", &["RPC-AUTH-01"], "A signature may lack its padding.", |_, components| {
        mend(components, |given| format!("{}=", given.trim_end_matches('=')));
    })
    .needing("auth"),
    parts("folds-nonces", &["RPC-AUTH-03"], "Nonces are compared without case.", |_, components| {
        let inner = std::mem::replace(&mut components.nonces, Box::new(Never));
        components.nonces = Box::new(Folding(inner));
    })
    .needing("auth"),
    parts(
        "learns-nonces-late",
        &["RPC-AUTH-03"],
        "A nonce that comes twice in one moment is accepted twice.",
        |_, components| {
            let inner = std::mem::replace(&mut components.nonces, Box::new(Never));
            components.nonces = Box::new(Lagging { inner, fresh: Vec::new() });
        },
    )
    .needing("auth"),
    incoming(
        "tells-why-it-refuses",
        &["RPC-AUTH-11"],
        "A missing signature has an error of its own.",
        |_, line| {
            let message = value(line).filter(|message| message.get("method").is_some());
            let unsigned = message.filter(|message| given(message).is_none());
            unsigned.and_then(|message| unauthorized(&message, "no signature")).unwrap_or(Pass::Forward)
        },
    )
    .needing("auth"),
    incoming(
        "tells-the-signature",
        &["RPC-AUTH-12"],
        "The error says what the signature should have been.",
        |_, line| {
            let Some(message) = value(line) else { return Pass::Forward };
            let right = super::super::auth::signature(TEST_KEY, line).unwrap_or_default();
            match given(&message) {
                Some(given) if given != right => {
                    unauthorized(&message, &format!("wanted {right}")).unwrap_or(Pass::Forward)
                }
                _ => Pass::Forward,
            }
        },
    )
    .needing("auth"),
    parts(
        "runs-what-it-limits",
        &["RPC-RATE-04"],
        "A call is counted before it is refused.",
        |_, components| {
            let Some(inner) = components.limiter.take() else { return };
            let refused = Arc::new(AtomicU64::new(0));
            components.limiter = Some(Box::new(Telling { inner, refused: refused.clone() }));
            if let Some(inner) = components.methods.take("peerproof.counter") {
                components.methods.set("peerproof.counter", Overcounting { inner, refused });
            }
        },
    )
    .needing("rate_limit"),
    parts(
        "looks-for-methods-before-it-limits",
        &["RPC-RATE-01"],
        "A call of a method that is not there does not count, and is never refused for its rate.",
        |_, components| {
            let (Some(limiter), Some(verifier)) = (components.limiter.take(), components.verifier.take())
            else {
                return;
            };
            let is_known = Arc::new(AtomicBool::default());
            components.verifier = Some(Box::new(Peeking { inner: verifier, is_known: is_known.clone() }));
            components.limiter = Some(Box::new(Choosy { inner: limiter, is_known }));
        },
    )
    .needing("rate_limit"),
    both_ways(
        "limits-notifications-aloud",
        &["RPC-NOTE-01"],
        "A notification beyond the rate is answered.",
        |memory, line| {
            let is_notification =
                value(line).is_some_and(|it| method(&it).is_some() && it.get("id").is_none());
            match is_notification && memory.kept.contains_key(LIMITED) {
                true => Pass::Answer(REFUSED.to_vec()),
                false => Pass::Forward,
            }
        },
        |memory, line| {
            if has(line, "-32002") {
                memory.kept.insert(LIMITED.to_vec(), Vec::new());
            } else {
                memory.kept.remove(LIMITED);
            }
            ended(line.to_vec())
        },
    )
    .needing("rate_limit"),
    both_ways(
        "limits-before-it-reads",
        &["RPC-JSON-01"],
        "Beyond the limit a line that is no JSON is refused for its rate.",
        |memory, line| match memory.kept.get(&b"limited"[..]) {
            Some(refusal) if value(line).is_none() => Pass::Answer(refusal.clone()),
            _ => Pass::Forward,
        },
        |memory, line| {
            if has(line, "\"code\":-32002") {
                let refusal = responses(line, |response| set(response, "id", Value::Null));
                memory.kept.insert(b"limited".to_vec(), refusal.trim_ascii_end().to_vec());
            }
            ended(line.to_vec())
        },
    )
    .needing("rate_limit"),
    incoming(
        "refuses-noncharacters",
        &["RPC-ID-01", "RPC-PARAMS-02"],
        "A message with U+FFFE or U+FFFF is malformed.",
        |_, line| {
            let is_odd = has(line, "\u{fffe}") || has(line, "\u{ffff}");
            if is_odd { Pass::Answer(MALFORMED.to_vec()) } else { Pass::Forward }
        },
    ),
    parts("tells-timeouts-late", &["RPC-TIME-01"], "A timeout is told 2 s too late.", |_, components| {
        if let Some(inner) = components.methods.take("peerproof.sleep") {
            components.methods.set("peerproof.sleep", Slow(inner));
        }
    }),
    mutant::config(
        "takes-undeclared-gzip",
        &["RPC-GZIP-07"],
        "Compressed lines are taken though they are not declared.",
        |config| config.features.gzip = true,
    ),
    outgoing("streams-under-ids", &["RPC-STREAM-08"], "Messages of streams have ids.", |_, line| {
        match has(line, "\"method\":\"stream_") {
            true => ended(swap_all(line, "\"method\":\"stream_", "\"id\":\"s\",\"method\":\"stream_")),
            false => ended(line.to_vec()),
        }
    }),
    outgoing("chunks-as-objects", &["RPC-STREAM-02"], "A chunk is an object with its text.", |_, line| {
        let Some(Value::Object(mut message)) = value(line) else { return ended(line.to_vec()) };
        if let Some(Value::Object(params)) = find_mut(&mut message, "params")
            && let Some(chunk) = find_mut(params, "chunk")
        {
            *chunk = Value::Object(vec![("text".into(), chunk.clone())]);
        }
        ended(text(&Value::Object(message)))
    }),
    outgoing(
        "answers-each-id-once",
        &["RPC-ID-06"],
        "Of two replies of a batch with one id one is lost.",
        |_, line| {
            let Some(Value::Array(replies)) = value(line) else { return ended(line.to_vec()) };
            let mut kept: Vec<Value> = Vec::new();
            for reply in replies {
                let id = reply.get("id").filter(|id| **id != Value::Null);
                if id.is_none() || kept.iter().all(|other| other.get("id") != id) {
                    kept.push(reply);
                }
            }
            ended(text(&Value::Array(kept)))
        },
    ),
    outgoing("drops-null-results", &["RPC-MSG-02"], "A result that is null is left out.", |_, line| {
        responses(line, |response| {
            response.retain(|(name, value)| name != "result" || *value != Value::Null);
        })
    }),
    incoming("needs-params", &["RPC-PARAMS-10"], "A call without `params` is refused.", |_, line| {
        edited(line, |object| {
            let known = find(object, "method")
                .and_then(Value::as_str)
                .is_some_and(|name| super::super::methods().names().any(|known| known == name));
            let add = known && find(object, "params").is_none();
            if add {
                set(object, "params", Value::from("absent"));
            }
            add
        })
    }),
    incoming(
        "trims-methods",
        &["RPC-METHOD-01"],
        "Blanks around a method's name do not count.",
        |_, line| {
            edited(line, |object| {
                let name = find(object, "method").and_then(Value::as_str).map(str::to_owned);
                let trimmed =
                    name.as_deref().map(str::trim).filter(|trimmed| Some(*trimmed) != name.as_deref());
                trimmed.map(|trimmed| set(object, "method", Value::from(trimmed))).is_some()
            })
        },
    ),
    incoming("folds-methods", &["RPC-METHOD-01"], "Methods are found whatever their case.", |_, line| {
        edited(line, |object| {
            let name = find(object, "method").and_then(Value::as_str).map(str::to_owned);
            let known = super::super::methods();
            let is_folded = |known: &str| {
                name.as_deref().is_some_and(|name| known != name && known.eq_ignore_ascii_case(name))
            };
            let found = known.names().find(|known| is_folded(known));
            found.map(|found| set(object, "method", Value::from(found))).is_some()
        })
    }),
    incoming("ends-lines-at-cr", &["RPC-JSON-10"], "A carriage return ends a line.", |_, line| {
        let parts: Vec<Vec<u8>> =
            line.split(|byte| *byte == b'\r').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect();
        if parts.len() > 1 { Pass::Replace(parts) } else { Pass::Forward }
    }),
];

/// A memory of nonces that remembers nothing.
struct Never;

impl NonceStore for Never {
    fn is_known(&mut self, _: &str, _: Millis) -> bool {
        false
    }

    fn remember(&mut self, _: &str, _: Millis) -> bool {
        true
    }
}

/// A method with 2 s more time than the request allows.
struct Slow(Box<dyn Method>);

impl Method for Slow {
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer {
        match self.0.call(call, world) {
            Answer::Later { task, timeout_ms, streams } => {
                Answer::Later { task, streams, timeout_ms: timeout_ms.saturating_add(2_000) }
            }
            done => done,
        }
    }
}
