//! The tool that fetches URLs, and its list of allowed hosts. Listeners record all contacts.

use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;

use super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::relation::Relation;
use super::super::talk::{Request, Talk};
use super::super::talk_state::{listener, url_input};

mod allowed;
mod evasion;

/// Feature and role of this topic.
const FEATURE: &str = "http_get";

/// Environment variable with the list.
const HOSTS: &str = "MACHINA_HTTP_ALLOWED_HOSTS";

/// Additional time for a fetch in ms.
const FETCH_MS: u64 = 3_000;

pub(super) fn checks() -> Vec<Check> {
    [allowed::checks(), evasion::checks()].into_iter().flatten().collect()
}

fn id(name: &str) -> String {
    format!("toolhost/serve/http_get/{name}")
}

/// Adds the common requirements of this topic to a check.
fn http(check: Check) -> Check {
    check.feature(FEATURE).roles(&["any", FEATURE]).on_process()
}

/// Starts a conversation with a process under this list (`None`: the variable is not set), and with a listener `web`
/// that answers `hello`.
fn talk<'a>(facts: &'a Facts, hosts: Option<&str>) -> Talk<'a> {
    let mut talk = match hosts {
        Some(hosts) => Talk::serve_env(facts, &[(HOSTS, hosts)]),
        None => Talk::serve(facts),
    };
    talk.fixture(listener("web", 200, None, "hello"));
    talk
}

/// Starts another process under another list.
fn next_process(talk: &mut Talk<'_>, hosts: Option<&str>) {
    match hosts {
        Some(hosts) => talk.add_session("serve", &[], &[(HOSTS, hosts)]),
        None => talk.add_session("serve", &[], &[]),
    };
}

/// Sends a request for a URL.
fn fetch(talk: &mut Talk<'_>, url: &str, expect: Expect) -> usize {
    let request = Request::aid(&talk.role(FEATURE).aid).payload("input_json", url_input(url));
    talk.send(request.line(), expect).allow_ms(FETCH_MS);
    talk.at()
}

/// Success with a listener's page.
fn page(status: u16, body: &str) -> Allowed {
    Allowed::of(Outcome::Ok)
        .output_member("/status", Match::Equals(status.to_string()))
        .output_member("/body", Match::Text(peerproof_engine::data::payload::Payload::text(body)))
}

/// The page or a refusal, for fetches that are judged by comparison with another one.
fn page_or_refused(clause: &str) -> Expect {
    Expect::new(clause, page(200, "hello")).or(Allowed::of(Outcome::Refused))
}

/// The page or a refusal, for an allowed fetch from 127.0.0.1. A refusal shows that the peer refuses loopback hosts.
fn page_or_no_loopback(clause: &str) -> Expect {
    Expect::new(clause, page(200, "hello").shows("fetch"))
        .or(Allowed::of(Outcome::Refused).shows("refuse"))
        .choice("loopback_hosts")
}

/// Creates a check that a forbidden URL causes no contact with `listener`. Other checks of this topic have the
/// accepted twin.
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
        // An odd URL may also be read as one of the listed host, and be fetched from there.
        let expect = Expect::refused(clause).or(Allowed::of(Outcome::Ok));
        let expect = if clause == NEVER_CONTACTED { Expect::refused(clause) } else { expect };
        fetch(&mut talk, url, expect);
        talk.relate(Relation::NotContacted { clause: clause.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
}

/// Shows that the tool works: a process without a list fetches from its own host. So the refusal before is due to the
/// list.
fn way_is_open(talk: &mut Talk<'_>) {
    next_process(talk, None);
    talk.fixture(listener("open", 200, None, "hello"));
    let request = Request::aid(&talk.role(FEATURE).aid)
        .payload("input_json", url_input("http://127.0.0.1:{{open.port}}/"));
    talk.control(&request).allow_ms(FETCH_MS).canary().finish();
}

/// Clause that also demands `ok:false`.
const NEVER_CONTACTED: &str = "TH-HTTP-03";

/// Checks that a host name resolves to loopback on this machine.
fn resolves(name: &str) -> Result<(), Untestable> {
    use std::net::ToSocketAddrs;
    match (name, 80).to_socket_addrs() {
        Ok(addresses) if addresses.clone().any(|address| address.ip().is_loopback()) => Ok(()),
        _ => Err(Untestable::new("no_name", format!("{name} does not resolve to loopback on this machine"))),
    }
}
