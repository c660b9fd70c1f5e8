//! Mutants with another configuration or other components.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use super::super::method::{Answer, Call, Method, Step, Task, World};
use super::super::{Components, Config, NonceStore, RateLimiter, Verifier};
use super::Mutant;
use super::edit::{Object, has, object_mut};
use crate::json::{Policy, Value};
use crate::machine::Millis;
use crate::mutant;

// Wrapper with concrete types, which `needing` has to know.
const fn config(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut Config),
) -> Mutant {
    mutant::config(id, clauses, fault, change)
}

const fn parts(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut Config, &mut Components),
) -> Mutant {
    mutant::parts(id, clauses, fault, change)
}

/// A verifier whose verdict `message` may replace.
struct Looking {
    inner: Box<dyn Verifier>,
    message: fn(&[u8], Option<String>) -> Option<String>,
}

impl Verifier for Looking {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        (self.message)(message, self.inner.verify(message, unix_s))
    }
}

fn look(components: &mut Components, message: fn(&[u8], Option<String>) -> Option<String>) {
    if let Some(inner) = components.verifier.take() {
        components.verifier = Some(Box::new(Looking { inner, message }));
    }
}

fn nonce(message: &[u8]) -> Option<String> {
    let message = Value::parse(message, 256, &Policy::default()).ok()?;
    Some(message.get("auth")?.get("nonce")?.as_str()?.to_owned())
}

/// A verifier that remembers the nonces of failed messages.
struct Burning {
    inner: Box<dyn Verifier>,
    burned: RefCell<BTreeSet<String>>,
}

impl Verifier for Burning {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let verified = self.inner.verify(message, unix_s);
        if verified.is_none() {
            self.burned.borrow_mut().extend(nonce(message));
        }
        verified.filter(|nonce| !self.burned.borrow().contains(nonce))
    }
}

/// A verifier that ignores unknown members.
struct Overlooking {
    inner: Box<dyn Verifier>,
    /// Removes them from a message.
    overlook: fn(&mut Object),
}

impl Verifier for Overlooking {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let Ok(Value::Object(mut members)) = Value::parse(message, 256, &Policy::default()) else {
            return self.inner.verify(message, unix_s);
        };
        (self.overlook)(&mut members);
        self.inner.verify(&super::edit::text(&Value::Object(members)), unix_s)
    }
}

fn overlook(components: &mut Components, overlook: fn(&mut Object)) {
    if let Some(inner) = components.verifier.take() {
        components.verifier = Some(Box::new(Overlooking { inner, overlook }));
    }
}

fn keep(members: &mut Object, known: &[&str]) {
    members.retain(|(name, _)| known.iter().any(|known| name == known));
}

/// A memory that keeps only the last nonces.
struct Few {
    kept: VecDeque<String>,
    most: usize,
}

impl Few {
    fn of(most: usize) -> Box<Self> {
        Box::new(Self { kept: VecDeque::new(), most })
    }
}

impl NonceStore for Few {
    fn is_known(&mut self, nonce: &str, _: Millis) -> bool {
        self.kept.iter().any(|known| known == nonce)
    }

    fn remember(&mut self, nonce: &str, _: Millis) -> bool {
        self.kept.push_back(nonce.to_owned());
        if self.kept.len() > self.most {
            self.kept.pop_front();
        }
        true
    }
}

struct Forgetful;

impl NonceStore for Forgetful {
    fn is_known(&mut self, _: &str, _: Millis) -> bool {
        false
    }

    fn remember(&mut self, _: &str, _: Millis) -> bool {
        true
    }
}

/// A limiter that refuses forever after its first refusal.
struct Unforgiving {
    inner: Box<dyn RateLimiter>,
    refused: bool,
}

impl RateLimiter for Unforgiving {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        if self.refused {
            return Err(1_000);
        }
        let passed = self.inner.pass(now);
        self.refused = passed.is_err();
        passed
    }
}

/// A limiter that refuses for longer than it announces.
struct Lying {
    inner: Box<dyn RateLimiter>,
    until: Option<Millis>,
}

impl RateLimiter for Lying {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        match self.until {
            Some(until) if now < until => Err(((until - now) * 5 / 8).max(1)),
            _ => {
                let passed = self.inner.pass(now);
                self.until = passed.err().map(|ms| now + ms * 8 / 5);
                passed
            }
        }
    }
}

/// A limiter that counts requests of the same moment once, as if it counted lines instead of batch elements.
struct Coarse {
    inner: Box<dyn RateLimiter>,
    last: Option<Millis>,
}

impl RateLimiter for Coarse {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        if self.last == Some(now) {
            return Ok(());
        }
        let passed = self.inner.pass(now);
        self.last = passed.is_ok().then_some(now);
        passed
    }
}

/// A method with changed answers.
struct Changed {
    inner: Box<dyn Method>,
    change: fn(Answer) -> Answer,
}

impl Method for Changed {
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer {
        (self.change)(self.inner.call(call, world))
    }
}

fn change(components: &mut Components, name: &'static str, change: fn(Answer) -> Answer) {
    if let Some(inner) = components.methods.take(name) {
        components.methods.set(name, Changed { inner, change });
    }
}

/// A task without partial output.
struct Quiet(Box<dyn Task>);

impl Task for Quiet {
    fn poll(&mut self, now: Millis) -> Step {
        loop {
            match self.0.poll(now) {
                Step::Chunk(_) => {}
                other => return other,
            }
        }
    }

    fn ends_at(&self) -> Option<Millis> {
        self.0.ends_at()
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    config("limit-too-small", &["RPC-SIZE-01"], "999,990 bytes are the limit.", |config| {
        config.limits.rpc_message_bytes_max = 999_990;
    }),
    config("limit-too-large", &["RPC-SIZE-02"], "4 MiB are the limit.", |config| {
        config.limits.rpc_message_bytes_max = 4 << 20;
    }),
    config("nesting-of-60", &["RPC-JSON-08"], "60 levels are the limit.", |config| {
        config.limits.nesting_max = 60;
    }),
    config("batch-of-1000", &["RPC-BATCH-05"], "1,000 elements are the limit.", |config| {
        config.limits.rpc_batch_elements_max = 1_000;
    }),
    config("no-batches", &["RPC-BATCH-01"], "Arrays are refused though batches are claimed.", |config| {
        config.features.batch = false;
    }),
    config("one-call-at-a-time", &["RPC-CONC-01"], "Calls queue though concurrency is claimed.", |config| {
        config.features.concurrent = false;
    }),
    config("no-streams", &["RPC-STREAM-01"], "There are no streams though they are claimed.", |config| {
        config.features.streaming = false;
    }),
    config("drops-work-at-eof", &["RPC-TIME-04"], "Slow calls are refused at the end of input.", |config| {
        config.limits.rpc_eof_grace_ms = 0;
    }),
    config("refuses-long-timeouts", &["RPC-TIME-05"], "A minute is the longest timeout.", |config| {
        config.limits.rpc_timeout_max_ms = 60_000;
    }),
    config("messages-one-byte-over", &["RPC-SIZE-05"], "A message may have 1,048,577 bytes.", |config| {
        config.limits.rpc_message_bytes_max += 1;
    }),
    config("default-timeout-of-90s", &["RPC-TIME-01"], "The default timeout is 90 s.", |config| {
        config.limits.rpc_timeout_default_ms = 90_000;
    }),
    parts("ignores-timeout", &["RPC-TIME-01"], "`timeout_ms` means nothing.", |_, components| {
        for name in ["peerproof.sleep", "execute_task"] {
            change(components, name, |answer| match answer {
                Answer::Later { task, streams, .. } => Answer::Later { task, streams, timeout_ms: 600_000 },
                done => done,
            });
        }
    }),
    parts("late-timeout", &["RPC-TIME-01"], "A timeout comes 3 s too late.", |_, components| {
        change(components, "peerproof.sleep", |answer| match answer {
            Answer::Later { task, streams, timeout_ms } => {
                Answer::Later { task, streams, timeout_ms: timeout_ms + 3_000 }
            }
            done => done,
        });
    }),
    parts(
        "empty-stream",
        &["RPC-STREAM-07"],
        "A stream has no chunks, whatever the code is.",
        |_, components| {
            change(components, "execute_task", |answer| match answer {
                Answer::Later { task, streams, timeout_ms } => {
                    Answer::Later { task: Box::new(Quiet(task)), streams, timeout_ms }
                }
                done => done,
            });
        },
    ),
    parts("forgets-the-context", &["RPC-CTX-01"], "`update_context` is not there.", |_, components| {
        drop(components.methods.take("update_context"));
    }),
    parts("validates-nothing", &["RPC-VALID-01"], "`validate_code` is not there.", |_, components| {
        drop(components.methods.take("validate_code"));
    }),
    config(
        "refuses-gzip",
        &["RPC-GZIP-01"],
        "Compressed lines are refused though they are claimed.",
        |config| {
            config.features.gzip = false;
        },
    )
    .needing("gzip"),
    config(
        "inflates-too-much",
        &["RPC-GZIP-02"],
        "4 MiB are the limit of what a line inflates to.",
        |config| {
            config.limits.rpc_message_bytes_max = 4 << 20;
        },
    )
    .needing("gzip"),
    parts("lets-anybody-in", &["RPC-AUTH-01"], "Signatures are not looked at.", |_, components| {
        components.verifier = None;
    })
    .needing("auth"),
    parts(
        "takes-wrong-signatures",
        &["RPC-AUTH-01"],
        "A signature only has to be there.",
        |_, components| {
            look(components, |message, verified| verified.or_else(|| nonce(message)));
        },
    )
    .needing("auth"),
    config("takes-stale-signatures", &["RPC-AUTH-02"], "Timestamps may be an hour old.", |config| {
        config.limits.rpc_clock_skew_s = 3_600;
    })
    .needing("auth"),
    config("takes-fresh-signatures-only", &["RPC-AUTH-02"], "Timestamps may be 30 s old.", |config| {
        config.limits.rpc_clock_skew_s = 30;
    })
    .needing("auth"),
    parts("forgets-nonces", &["RPC-AUTH-03"], "A nonce can be used again.", |_, components| {
        components.nonces = Box::new(Forgetful);
    })
    .needing("auth"),
    parts(
        "remembers-forty-nonces",
        &["RPC-AUTH-03"],
        "A nonce is forgotten after 40 others.",
        |_, components| {
            components.nonces = Few::of(40);
        },
    )
    .needing("auth"),
    parts(
        "remembers-ten-thousand-nonces",
        &["RPC-AUTH-03"],
        "A nonce is forgotten after 10,000 others.",
        |_, components| {
            components.nonces = Few::of(10_000);
            // The rate limit would let too few of them pass.
            components.limiter = None;
        },
    )
    .needing("auth"),
    parts(
        "takes-the-nonces-of-notifications-again",
        &["RPC-AUTH-03"],
        "The nonce of a notification can be used by a request.",
        |_, components| {
            look(components, |message, verified| {
                let is_request = has(message, "\"id\":");
                verified.map(|nonce| if is_request { nonce } else { format!("{nonce}, of a notification") })
            });
        },
    )
    .needing("auth"),
    parts(
        "refuses-the-longest-nonces",
        &["RPC-AUTH-03"],
        "A nonce may have 63 characters.",
        |_, components| {
            look(components, |_, verified| verified.filter(|nonce| nonce.chars().count() < 64));
        },
    )
    .needing("auth"),
    parts("refuses-the-shortest-nonces", &["RPC-AUTH-03"], "A nonce has two characters.", |_, components| {
        look(components, |_, verified| verified.filter(|nonce| nonce.chars().count() > 1));
    })
    .needing("auth"),
    config("forgets-nonces-early", &["RPC-AUTH-03"], "A nonce is remembered for 60 s.", |config| {
        config.limits.rpc_nonce_ttl_ms = 60_000;
    })
    .needing("auth"),
    config(
        "forgets-nonces-after-five-minutes",
        &["RPC-AUTH-03"],
        "A nonce is remembered for as long as a timestamp is accepted.",
        |config| config.limits.rpc_nonce_ttl_ms = 300_000,
    )
    .needing("auth"),
    parts("counts-nonces-in-bytes", &["RPC-AUTH-03"], "A nonce may have 64 bytes.", |_, components| {
        look(components, |_, verified| verified.filter(|nonce| nonce.len() <= 64));
    })
    .needing("auth"),
    config("never-forgets-nonces", &["RPC-AUTH-03"], "A nonce is remembered for a day.", |config| {
        config.limits.rpc_nonce_ttl_ms = 86_400_000;
    })
    .needing("auth"),
    parts(
        "signs-the-spelling",
        &["RPC-AUTH-04"],
        "White space in a signed message is refused.",
        |_, components| {
            look(components, |message, verified| {
                verified.filter(|_| memchr::memmem::find(message, b": ").is_none())
            });
        },
    )
    .needing("auth"),
    parts(
        "burns-nonces-of-failures",
        &["RPC-AUTH-08"],
        "A wrong signature uses its nonce up.",
        |_, components| {
            if let Some(inner) = components.verifier.take() {
                components.verifier = Some(Box::new(Burning { inner, burned: RefCell::default() }));
            }
        },
    )
    .needing("auth"),
    parts(
        "overlooks-unknown-members",
        &["RPC-AUTH-09"],
        "Members that no request has are not signed.",
        |_, components| {
            overlook(components, |members| keep(members, &["jsonrpc", "method", "params", "id", "auth"]));
        },
    )
    .needing("auth"),
    parts(
        "overlooks-unknown-members-of-auth",
        &["RPC-AUTH-09"],
        "Members of `auth` that are not known are not signed.",
        |_, components| {
            overlook(components, |members| {
                if let Some(auth) = object_mut(members, "auth") {
                    keep(auth, &["timestamp", "nonce", "key_id", "signature"]);
                }
            });
        },
    )
    .needing("auth"),
    parts("never-limits", &["RPC-RATE-01"], "The rate is not limited.", |_, components| {
        components.limiter = None;
    })
    .needing("rate_limit"),
    config("limits-too-early", &["RPC-RATE-01"], "One request less passes.", |config| {
        if let Some(rate) = &mut config.rate_limit {
            rate.requests -= 1;
        }
    })
    .needing("rate_limit"),
    config("limits-one-too-late", &["RPC-RATE-01"], "One request more passes.", |config| {
        if let Some(rate) = &mut config.rate_limit {
            rate.requests += 1;
        }
    })
    .needing("rate_limit"),
    parts("counts-batches-once", &["RPC-RATE-03"], "Requests of one moment count once.", |_, components| {
        if let Some(inner) = components.limiter.take() {
            components.limiter = Some(Box::new(Coarse { inner, last: None }));
        }
    })
    .needing("rate_limit"),
    parts(
        "limits-for-longer-than-it-tells",
        &["RPC-RATE-02"],
        "A request passes after 1.6 times the wait that was told.",
        |_, components| {
            if let Some(inner) = components.limiter.take() {
                components.limiter = Some(Box::new(Lying { inner, until: None }));
            }
        },
    )
    .needing("rate_limit"),
    parts(
        "limits-for-ever",
        &["RPC-RATE-02"],
        "Whoever was refused once is refused always.",
        |_, components| {
            if let Some(inner) = components.limiter.take() {
                components.limiter = Some(Box::new(Unforgiving { inner, refused: false }));
            }
        },
    )
    .needing("rate_limit"),
];
