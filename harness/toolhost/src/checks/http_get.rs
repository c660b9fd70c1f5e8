//! The tool that fetches URLs and its list of allowed hosts. Listeners tell who was contacted.

use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::facts::Facts;

use super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::relation::Relation;
use super::super::talk::{Request, Talk};
use super::super::talk_state::{listener, url_input};

mod allowed;
mod evasion;

/// Feature and role of this topic.
const FEATURE: &str = "http_get";

/// Variable that holds the list.
const HOSTS: &str = "MACHINA_HTTP_ALLOWED_HOSTS";

/// Time for a fetch on top of that for a small request, milliseconds.
const FETCH_MS: u64 = 3_000;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    [allowed::checks(), evasion::checks()].into_iter().flatten().collect()
}

fn id(name: &str) -> String {
    format!("toolhost/serve/http_get/{name}")
}

/// What is common to all checks of this topic.
fn http(check: Check) -> Check {
    check.feature(FEATURE).roles(&["any", FEATURE]).on_process()
}

/// A conversation with a process that has this list (nothing: the variable is not set), and a listener `web` that
/// answers `hello`.
///
fn talk<'a>(facts: &'a Facts, hosts: Option<&str>) -> Talk<'a> {
    let mut talk = match hosts {
        Some(hosts) => Talk::serve_env(facts, &[(HOSTS, hosts)]),
        None => Talk::serve(facts),
    };
    talk.fixture(listener("web", 200, None, "hello"));
    talk
}

/// Starts a further process with another list.
fn next_process(talk: &mut Talk<'_>, hosts: Option<&str>) {
    match hosts {
        Some(hosts) => talk.add_session("serve", &[], &[(HOSTS, hosts)]),
        None => talk.add_session("serve", &[], &[]),
    };
}

/// Asks for a URL.
fn fetch(talk: &mut Talk<'_>, url: &str, expect: Expect) -> usize {
    let request = Request::aid(&talk.role(FEATURE).aid).payload("input_json", url_input(url));
    talk.send(request.line(), expect).allow_ms(FETCH_MS);
    talk.at()
}

/// The page of a listener.
fn page(status: u16, body: &str) -> Allowed {
    Allowed::of(Outcome::Ok)
        .output_member("/status", Match::Equals(status.to_string()))
        .output_member("/body", Match::Text(peerproof_engine::payload::Payload::text(body)))
}

/// The page, or a refusal: for fetches that are judged beside another one.
fn page_or_refused(clause: &str) -> Expect {
    Expect::new(clause, page(200, "hello")).or(Allowed::of(Outcome::Refused))
}

/// The same of a fetch from 127.0.0.1 that is allowed: a peer that refuses it chose to refuse this machine.
fn page_or_no_loopback(clause: &str) -> Expect {
    Expect::new(clause, page(200, "hello").shows("fetch"))
        .or(Allowed::of(Outcome::Refused).shows("refuse"))
        .choice("loopback_hosts")
}

/// A URL that must not lead to contact with `listener`, under a list that does not allow it; its accepted twin is
/// judged elsewhere in this topic.
fn refused_url(
    name: &str,
    clause: &'static str,
    title: &str,
    hosts: &'static str,
    url: &'static str,
) -> Check {
    http(Check::new(id(name), title, [clause], "serve", move |facts, _| {
        let mut talk = talk(facts, Some(hosts));
        talk.fixture(listener("listed", 200, None, "listed"));
        // An odd URL may also be read as one of the listed host, and then be fetched from there.
        let expect = Expect::refused(clause).or(Allowed::of(Outcome::Ok));
        let expect = if clause == NEVER_CONTACTED { Expect::refused(clause) } else { expect };
        fetch(&mut talk, url, expect);
        talk.relate(Relation::NotContacted { clause: clause.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
}

/// A process without a list fetches from a host of its own: the tool works, and a refusal above has to do with the list.
fn way_is_open(talk: &mut Talk<'_>) {
    next_process(talk, None);
    talk.fixture(listener("open", 200, None, "hello"));
    let request = Request::aid(&talk.role(FEATURE).aid)
        .payload("input_json", url_input("http://127.0.0.1:{{open.port}}/"));
    talk.control(&request).allow_ms(FETCH_MS).canary().finish();
}

/// The clause that also demands `ok:false`.
const NEVER_CONTACTED: &str = "TH-HTTP-03";

/// Whether a host name resolves to loopback on this machine.
fn resolves(name: &str) -> Result<(), Untestable> {
    use std::net::ToSocketAddrs;
    match (name, 80).to_socket_addrs() {
        Ok(addresses) if addresses.clone().any(|address| address.ip().is_loopback()) => Ok(()),
        _ => Err(Untestable::new("no_name", format!("{name} does not resolve to loopback on this machine"))),
    }
}
