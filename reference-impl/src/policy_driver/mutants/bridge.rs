//! Mutants of the bridge to a model.

use super::driver::Answer;
use super::tree::{self, edited, get, put, take};
use crate::json::{Policy, Value};
use crate::machine::{Action, Event, FetchError, Fetched, Machine, Millis, PostOrder};
use crate::mutant::text;
use crate::mutant::{self, Inner, Seam, config};
use crate::policy_driver::block::{BlockReader, Rules};
use crate::policy_driver::{Bridge, BridgeConfig};

/// A bridge that breaks clauses.
pub type Mutant = mutant::Mutant<BridgeConfig, (), Rewiring>;

/// Rewriting of a bridge's input or output.
#[derive(Debug, Clone, Copy)]
pub enum Rewiring {
    /// The payload.
    Payload(fn(&[u8]) -> Vec<u8>),
    /// Edits the request to the model.
    Order(fn(&mut PostOrder)),
    /// Sends the request by GET.
    Get,
    /// Edits the model's reply.
    Reply(fn(Result<Fetched, FetchError>) -> Result<Fetched, FetchError>),
    /// Edits the answer to a payload.
    Answer(fn(&[u8], Answer) -> Answer),
    /// Writes the model's text unchecked if the function returns true for it.
    Unchecked(fn(&str) -> bool),
}

impl Mutant {
    /// The mutant as a machine.
    pub fn machine(&self, config: BridgeConfig) -> Inner {
        let build = |config, ()| -> Inner { Box::new(Bridge::new(config)) };
        let rewire =
            |inner, rewiring| -> Inner { Box::new(Rewired { inner, rewiring, payload: Vec::new() }) };
        self.build(config, |_| (), build, rewire)
    }
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    MUTANTS.to_vec()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

const fn wire(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewiring: Rewiring,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(rewiring))
}

struct Rewired {
    inner: Inner,
    rewiring: Rewiring,
    payload: Vec<u8>,
}

impl Machine for Rewired {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        if let Event::Stdin(bytes) = event {
            self.payload.extend_from_slice(bytes);
        }
        match (event, self.rewiring) {
            (Event::Stdin(_), Rewiring::Payload(_)) => {}
            (Event::StdinEof, Rewiring::Payload(rewrite)) => {
                self.inner.handle(Event::Stdin(&rewrite(&self.payload)), now, &mut inner);
                self.inner.handle(Event::StdinEof, now, &mut inner);
            }
            (Event::Fetched(reply), Rewiring::Reply(rewrite)) => {
                self.inner.handle(Event::Fetched(rewrite(reply)), now, &mut inner);
            }
            (Event::Fetched(Ok(reply)), Rewiring::Unchecked(suits))
                if spoken(&reply).is_some_and(|text| suits(&text)) =>
            {
                let text = spoken(&reply).unwrap_or_default();
                actions.extend(Answer::block(text.trim()).actions());
                return;
            }
            (event, _) => self.inner.handle(event, now, &mut inner),
        }
        let (answer, rest) = Answer::of(inner);
        for action in rest {
            actions.push(match (action, self.rewiring) {
                (Action::Post(mut order), Rewiring::Order(change)) => {
                    change(&mut order);
                    Action::Post(order)
                }
                (Action::Post(order), Rewiring::Get) => {
                    let PostOrder { host, port, path, host_header, body_bytes_max, timeout_ms, .. } = *order;
                    Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms }
                }
                (action, _) => action,
            });
        }
        if let Some(answer) = answer {
            let answer = match self.rewiring {
                Rewiring::Answer(rewrite) => rewrite(&self.payload, answer),
                _ => answer,
            };
            actions.extend(answer.actions());
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Text of a model's successful reply.
fn spoken(reply: &Fetched) -> Option<String> {
    let body = tree::parse(&reply.body).filter(|_| (200..300).contains(&reply.status))?;
    let text = body.get("machina_out").or_else(|| body.get("output"));
    text.and_then(Value::as_str).map(str::to_owned)
}

fn is_block(text: &str) -> bool {
    reads(text, false)
}

fn reads(text: &str, lenient_base64: bool) -> bool {
    let policy = Policy::default();
    let rules = Rules { lenient_base64, trims_vt_ff: false, nesting_max: 64, policy };
    BlockReader::new(rules).read(text.as_bytes()).is_ok()
}

/// Edits the body of a reply.
fn body(
    reply: Result<Fetched, FetchError>,
    change: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Result<Fetched, FetchError> {
    reply.map(|reply| Fetched { body: change(&reply.body), ..reply })
}

/// Edits the text of a reply, in either member.
fn said(reply: Result<Fetched, FetchError>, change: impl Fn(&str) -> String) -> Result<Fetched, FetchError> {
    body(reply, |body| {
        edited(body, |members| {
            for name in ["machina_out", "output"] {
                if let Some(text) = get(members, name)
                    && let Some(old) = text.as_str()
                {
                    let new = change(old);
                    *text = new.as_str().into();
                }
            }
        })
    })
}

/// Body of a reply with `text`.
fn saying(text: &str) -> Vec<u8> {
    tree::text(&Value::Object(vec![("output".into(), text.into())]))
}

/// SID of the first entry of a payload's menu.
fn first_sid(payload: &[u8]) -> Option<String> {
    let payload = tree::parse(payload)?;
    Some(payload.get("menu")?.as_array()?.first()?.get("sid")?.as_str()?.to_owned())
}

/// Mutants in the order of the clauses.
const MUTANTS: &[Mutant] = &[
    wire("bridge-gets", &["PD-LLM-01"], "The model is asked by GET.", Rewiring::Get),
    wire(
        "bridge-posts-inputs-only",
        &["PD-LLM-01"],
        "No more than the inputs are sent.",
        Rewiring::Order(|order| {
            order.body = match tree::parse(&order.body) {
                Some(payload) => payload.get("inputs").map(tree::text).unwrap_or_default(),
                None => order.body.clone(),
            }
        }),
    ),
    wire(
        "bridge-wraps-payload",
        &["PD-LLM-01"],
        "The payload is sent as a member of another object.",
        Rewiring::Order(|order| order.body = [b"{\"payload\":", order.body.as_slice(), b"}"].concat()),
    ),
    wire(
        "bridge-posts-text",
        &["PD-LLM-01"],
        "The payload is sent as a JSON string.",
        Rewiring::Order(|order| {
            order.body = tree::text(&String::from_utf8_lossy(&order.body).as_ref().into())
        }),
    ),
    wire(
        "bridge-loses-other-members",
        &["PD-LLM-01"],
        "Members of the payload that the contract does not name are not sent.",
        Rewiring::Order(|order| {
            order.body = edited(&order.body, |members| {
                let known = ["goal_digest", "state_digest", "control_mode", "inputs", "menu"];
                members.retain(|(name, _)| known.iter().any(|known| name == known));
            })
        }),
    ),
    wire(
        "bridge-rounds-integers",
        &["PD-LLM-01"],
        "Integers of the payload go through 32-bit floats.",
        Rewiring::Order(|order| {
            if let Some(mut payload) = tree::parse(&order.body) {
                tree::each(&mut payload, &tree::round);
                order.body = tree::text(&payload);
            }
        }),
    ),
    wire(
        "bridge-unescapes-entities",
        &["PD-LLM-01"],
        "Entities of HTML in the payload become the characters that they stand for.",
        Rewiring::Order(|order| order.body = text::swap_all(&order.body, "&amp;", "&")),
    ),
    wire(
        "bridge-cuts-payload",
        &["PD-LLM-01"],
        "No more than 64 KiB of the payload are sent.",
        Rewiring::Order(|order| order.body.truncate(64 << 10)),
    ),
    wire(
        "bridge-forgets-path",
        &["PD-LLM-01"],
        "The path of the URL is not used.",
        Rewiring::Order(|order| "/".clone_into(&mut order.path)),
    ),
    wire(
        "bridge-forgets-query",
        &["PD-LLM-01"],
        "The query of the URL is not used.",
        Rewiring::Order(|order| order.path = order.path.split('?').next().unwrap_or_default().to_owned()),
    ),
    wire(
        "bridge-without-authorization",
        &["PD-LLM-02"],
        "The Authorization header is not sent.",
        Rewiring::Order(|order| order.authorization = None),
    ),
    wire(
        "bridge-always-bearer",
        &["PD-LLM-02"],
        "`Bearer` is put before the value of the Authorization header.",
        Rewiring::Order(|order| {
            order.authorization = order.authorization.take().map(|value| format!("Bearer {value}"))
        }),
    ),
    wire(
        "bridge-always-authorized",
        &["PD-LLM-02"],
        "Without the variable there is an Authorization header all the same.",
        Rewiring::Order(|order| {
            order.authorization.get_or_insert("Bearer none".to_owned());
        }),
    ),
    wire(
        "bridge-output-first",
        &["PD-LLM-03"],
        "`output` goes before `machina_out`.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                edited(body, |members| {
                    if get(members, "output").is_some_and(|output| output.as_str().is_some()) {
                        take(members, "machina_out");
                    }
                })
            })
        }),
    ),
    wire(
        "bridge-ignores-output",
        &["PD-LLM-03"],
        "`output` is not looked at.",
        Rewiring::Reply(|reply| body(reply, |body| edited(body, |members| drop(take(members, "output"))))),
    ),
    wire(
        "bridge-ignores-machina-out",
        &["PD-LLM-03"],
        "`machina_out` is not looked at.",
        Rewiring::Reply(|reply| {
            body(reply, |body| edited(body, |members| drop(take(members, "machina_out"))))
        }),
    ),
    wire(
        "bridge-reads-64-kib",
        &["PD-LLM-03"],
        "Of a reply the first 64 KiB are read.",
        Rewiring::Reply(|reply| body(reply, |body| body[..body.len().min(64 << 10)].to_vec())),
    ),
    wire(
        "bridge-wants-created",
        &["PD-LLM-03"],
        "A status other than 200 is an error.",
        Rewiring::Reply(|reply| {
            reply.and_then(
                |reply| if reply.status == 200 { Ok(reply) } else { Err(FetchError("status".to_owned())) },
            )
        }),
    ),
    wire(
        "bridge-ignores-status",
        &["PD-LLM-04"],
        "The status of a reply means nothing.",
        Rewiring::Reply(|reply| reply.map(|reply| Fetched { status: 200, ..reply })),
    ),
    wire(
        "bridge-ignores-client-errors",
        &["PD-LLM-04"],
        "A status of 400 to 499 means nothing.",
        Rewiring::Reply(|reply| {
            reply.map(|reply| {
                let status = if (400..500).contains(&reply.status) { 200 } else { reply.status };
                Fetched { status, ..reply }
            })
        }),
    ),
    wire(
        "bridge-picks-after-failure",
        &["PD-LLM-04"],
        "Where the model gives no block the first entry is picked.",
        Rewiring::Answer(|payload, answer| match first_sid(payload) {
            Some(sid) if answer.stdout.is_empty() => Answer::block(&format!("<PICK><{sid}><END>")),
            _ => answer,
        }),
    ),
    wire(
        "bridge-noop-after-failure",
        &["PD-LLM-04"],
        "Where the model gives no block NOOP is written, and the status is 0.",
        Rewiring::Answer(
            |_, answer| {
                if answer.stdout.is_empty() { Answer::block("<NOOP><END>") } else { answer }
            },
        ),
    ),
    wire(
        "bridge-status-of-success",
        &["PD-LLM-04"],
        "Where the model gives no block the status is 0.",
        Rewiring::Answer(|_, answer| Answer { end: Action::Exit(0), ..answer }),
    ),
    wire(
        "bridge-asks-about-anything",
        &["PD-LLM-05"],
        "A payload that is no JSON, or has no menu, is sent, and whatever SID the model says is taken.",
        Rewiring::Payload(|payload| {
            let is_offered = first_sid(payload).is_some();
            if is_offered {
                payload.to_vec()
            } else {
                b"{\"menu\":[{\"sid\":\"SID0007\",\"aid\":\"A.X.v1\",\"name\":\"x\",\"tags\":[]}]}".to_vec()
            }
        }),
    ),
    wire(
        "bridge-takes-nearly-json",
        &["PD-LLM-04"],
        "NaN, a comma too many and text behind the object of a reply are overlooked.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                let end = memchr::memrchr(b'}', body).map_or(body.len(), |end| end + 1);
                text::swap_all(&text::swap_all(&body[..end], ":NaN", ":null"), ",}", "}")
            })
        }),
    ),
    wire(
        "bridge-takes-plain-text",
        &["PD-LLM-04"],
        "A reply that is the block itself is taken.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                let text = String::from_utf8_lossy(body);
                if tree::parse(body).is_none() && text.trim_start().starts_with('<') {
                    saying(&text)
                } else {
                    body.to_vec()
                }
            })
        }),
    ),
    wire(
        "bridge-takes-strings",
        &["PD-LLM-04"],
        "A reply that is a JSON string is taken.",
        Rewiring::Reply(|reply| {
            body(reply, |body| match tree::parse(body).as_ref().and_then(Value::as_str) {
                Some(text) => saying(text),
                None => body.to_vec(),
            })
        }),
    ),
    wire(
        "bridge-takes-arrays",
        &["PD-LLM-04"],
        "The first object of a reply that is an array is taken.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                let first = tree::parse(body).and_then(|value| value.as_array()?.first().map(tree::text));
                first.unwrap_or(body.to_vec())
            })
        }),
    ),
    wire(
        "bridge-takes-other-names",
        &["PD-LLM-04"],
        "The text may be in a member `text` or `content` too.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                edited(body, |members| {
                    let known = ["text", "content", "response"].iter().find_map(|name| take(members, name));
                    if let Some(text) = known.filter(|_| get(members, "output").is_none()) {
                        put(members, "output", text);
                    }
                })
            })
        }),
    ),
    wire(
        "bridge-names-in-any-case",
        &["PD-LLM-04"],
        "The members of a reply may have their names in any case.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                edited(body, |members| {
                    for known in ["machina_out", "output"] {
                        let is_like = |name: &str| name.eq_ignore_ascii_case(known);
                        let like = members.iter().find(|(name, _)| is_like(&name.to_lossy())).cloned();
                        if let Some((_, text)) = like.filter(|_| get(members, known).is_none()) {
                            put(members, known, text);
                        }
                    }
                })
            })
        }),
    ),
    wire(
        "bridge-joins-texts",
        &["PD-LLM-04"],
        "An array of strings is taken for its text.",
        Rewiring::Reply(|reply| {
            body(reply, |body| {
                edited(body, |members| {
                    for name in ["machina_out", "output"] {
                        if let Some(Value::Array(parts)) = get(members, name).cloned() {
                            let text: String = parts.iter().filter_map(Value::as_str).collect();
                            put(members, name, text.as_str().into());
                        }
                    }
                })
            })
        }),
    ),
    wire(
        "bridge-finds-block-in-prose",
        &["PD-LLM-05"],
        "A block is taken out of the prose around it.",
        Rewiring::Reply(|reply| {
            said(reply, |text| {
                let from = text::find(text.as_bytes(), "<").unwrap_or(0);
                let rest = &text[from..];
                let to = rest.find("<END>").map_or(rest.len(), |at| at + 5);
                rest[..to].to_owned()
            })
        }),
    ),
    wire(
        "bridge-opens-fences",
        &["PD-LLM-05"],
        "A block is taken out of a fence of back-ticks.",
        Rewiring::Reply(|reply| {
            said(reply, |text| {
                let inner = text.trim().strip_prefix("```").and_then(|text| text.strip_suffix("```"));
                inner.map_or(text.to_owned(), |inner| {
                    inner.trim_start_matches(|letter| letter != '<').to_owned()
                })
            })
        }),
    ),
    wire(
        "bridge-in-any-case",
        &["PD-LLM-05"],
        "A block in lower case is put right.",
        Rewiring::Reply(|reply| {
            said(reply, |text| {
                if text.contains("<INP") || text.contains("<inp") {
                    text.to_owned()
                } else {
                    text.to_uppercase()
                }
            })
        }),
    ),
    wire(
        "bridge-last-of-two",
        &["PD-LLM-05"],
        "Of two blocks the last is taken.",
        Rewiring::Reply(|reply| {
            said(reply, |text| {
                match text.trim().strip_suffix("<END>").and_then(|text| text.rsplit_once("<END>")) {
                    Some((_, last)) => format!("{last}<END>"),
                    None => text.to_owned(),
                }
            })
        }),
    ),
    wire(
        "bridge-takes-anything",
        &["PD-LLM-05"],
        "What the model says is written as it is.",
        Rewiring::Unchecked(|_| true),
    ),
    wire(
        "bridge-takes-lenient-base64",
        &["PD-LLM-05"],
        "Base64 without its padding, or with unused bits set, is written as it is.",
        Rewiring::Unchecked(|text| !is_block(text) && reads(text, true)),
    ),
    wire(
        "bridge-repairs-patches",
        &["PD-LLM-05"],
        "A comma too many in a patch is taken away.",
        Rewiring::Reply(|reply| said(reply, |text| text.replace(",}", "}"))),
    ),
    wire(
        "bridge-takes-any-sid",
        &["PD-LLM-05"],
        "A SID that the menu does not have is taken.",
        Rewiring::Unchecked(is_block),
    ),
    config("bridge-reads-on", &["PD-LLM-06"], "A reply is read up to 512 MiB.", |config| {
        config.limits.policy_llm_reply_bytes_max = 512 << 20
    }),
    config("bridge-waits-on", &["PD-LLM-04", "PD-LLM-06"], "A model has an hour for its reply.", |config| {
        config.limits.policy_llm_timeout_ms = 3_600_000
    }),
];
