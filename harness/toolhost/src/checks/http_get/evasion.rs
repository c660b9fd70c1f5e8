//! Attempts to bypass the list, none of which may work. `web` listens on the unlisted host, `listed` on the listed
//! one.

use peerproof_engine::data::check::{Check, Untestable};

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::relation::Relation;
use super::super::super::talk::Talk;
use super::super::super::talk_state::listener;
use super::{HOSTS, fetch, http, id, page, refused_url, way_is_open};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, hosts, url) in DISGUISES {
        let title = "A listed name in another part of the URL does not get an unlisted host contacted.";
        checks.push(refused_url(name, "TH-HTTP-08", title, hosts, url));
    }
    for (name, hosts, url) in DOTS {
        let title = "Trailing dots and joined names do not get an unlisted host contacted.";
        checks.push(refused_url(name, "TH-HTTP-09", title, hosts, url));
    }
    for (name, hosts, url) in IPV6 {
        let title =
            "An IPv6 literal is a host of its own, and is not contacted if only another spelling is listed.";
        checks.push(refused_url(name, "TH-HTTP-12", title, hosts, url));
    }
    checks.push(ipv6_loopback());
    for status in [301, 302, 303, 307, 308] {
        checks.push(redirect_away(status, "absolute", "http://localhost:{{web.port}}/"));
    }
    checks.push(redirect_away(302, "scheme-relative", "//localhost:{{web.port}}/"));
    checks.push(redirect_away(302, "with-user-info", "http://127.0.0.1@localhost:{{web.port}}/"));
    checks.push(redirect_away(302, "with-scheme-in-upper-case", "HTTP://localhost:{{web.port}}/"));
    checks.push(redirect_away(302, "with-backslashes", "/\\localhost:{{web.port}}/"));
    checks.push(second_redirect());
    checks.push(redirect_within());
    checks
}

const LISTED: &str = "127.0.0.1";

/// Disguised URLs: name, list, URL. If `127.0.0.1` is listed, `localhost` is the unlisted host, and vice versa.
const DISGUISES: &[(&str, &str, &str)] = &[
    ("user-info-that-is-listed", LISTED, "http://127.0.0.1@localhost:{{web.port}}/"),
    (
        "user-info-with-port-that-is-listed",
        LISTED,
        "http://127.0.0.1:{{listed.port}}@localhost:{{web.port}}/",
    ),
    ("user-info-with-password", "localhost", "http://localhost:secret@127.0.0.1:{{web.port}}/"),
    ("two-user-infos", "localhost", "http://a@localhost@127.0.0.1:{{web.port}}/"),
    ("path-that-is-listed", LISTED, "http://localhost:{{web.port}}/127.0.0.1"),
    ("path-with-at-sign", LISTED, "http://localhost:{{web.port}}/@127.0.0.1:{{listed.port}}/"),
    ("query-that-is-listed", LISTED, "http://localhost:{{web.port}}?@127.0.0.1:{{listed.port}}/"),
    ("fragment-that-is-listed", LISTED, "http://localhost:{{web.port}}#@127.0.0.1:{{listed.port}}/"),
    ("backslash-before-at-sign", LISTED, "http://localhost:{{web.port}}\\@127.0.0.1:{{listed.port}}/"),
    ("encoded-slash-in-user-info", LISTED, "http://127.0.0.1%2f@localhost:{{web.port}}/"),
    ("encoded-backslash-in-user-info", LISTED, "http://127.0.0.1%5c@localhost:{{web.port}}/"),
    ("encoded-at-sign", LISTED, "http://127.0.0.1%40localhost:{{web.port}}/"),
    ("space-before-at-sign", LISTED, "http://localhost:{{web.port}} @127.0.0.1:{{listed.port}}/"),
    ("tab-in-the-host", "localhost", "http://127.0.0.1\t:{{web.port}}/"),
    ("line-feed-in-the-url", LISTED, "http://localhost:{{web.port}}/\r\nHost: 127.0.0.1\r\n"),
    ("address-as-one-number", "localhost", "http://2130706433:{{web.port}}/"),
    ("address-in-short", "localhost", "http://127.1:{{web.port}}/"),
    ("address-in-octal", "localhost", "http://0177.0.0.1:{{web.port}}/"),
    ("address-in-hexadecimal", "localhost", "http://0x7f.0.0.1:{{web.port}}/"),
    ("any-address", "localhost", "http://0.0.0.0:{{web.port}}/"),
    // The reverse: the check uses the right host, but the connection goes to another one.
    (
        "listed-host-before-a-fragment-with-at-sign",
        LISTED,
        "http://127.0.0.1:{{listed.port}}#@localhost:{{web.port}}/",
    ),
    (
        "listed-host-before-a-query-with-at-sign",
        LISTED,
        "http://127.0.0.1:{{listed.port}}?@localhost:{{web.port}}/",
    ),
    (
        "listed-host-before-a-backslash-with-at-sign",
        LISTED,
        "http://127.0.0.1:{{listed.port}}\\@localhost:{{web.port}}/",
    ),
    ("scheme-in-upper-case", LISTED, "HTTP://localhost:{{web.port}}/"),
    ("space-before-the-scheme", LISTED, " http://localhost:{{web.port}}/"),
    ("no-slashes", LISTED, "http:localhost:{{web.port}}/"),
    ("one-slash", LISTED, "http:/localhost:{{web.port}}/"),
    ("three-slashes", LISTED, "http:///localhost:{{web.port}}/"),
    ("host-after-nul", LISTED, "http://127.0.0.1\0@localhost:{{web.port}}/"),
];

const DOTS: &[(&str, &str, &str)] = &[
    ("unlisted-name-with-trailing-dot", LISTED, "http://localhost.:{{web.port}}/"),
    ("unlisted-address-with-trailing-dot", "localhost", "http://127.0.0.1.:{{web.port}}/"),
    ("listed-address-before-an-unlisted-name", LISTED, "http://127.0.0.1.localhost:{{web.port}}/"),
    ("unlisted-name-that-begins-with-an-entry", "local", "http://localhost.:{{web.port}}/"),
    ("suffix-with-trailing-dots", "*.example.com", "http://localhost..:{{web.port}}/"),
];

const IPV6: &[(&str, &str, &str)] = &[
    ("ipv4-mapped-literal", LISTED, "http://[::ffff:127.0.0.1]:{{web.port}}/"),
    ("ipv4-mapped-literal-in-hexadecimal", "localhost,127.0.0.1", "http://[::ffff:7f00:1]:{{web.port}}/"),
];

fn ipv6_loopback() -> Check {
    const CLAUSE: &str = "TH-HTTP-12";
    let title = "The host [::1] is not contacted if only 127.0.0.1 and localhost are listed.";
    http(Check::new(id("ipv6-loopback"), title, [CLAUSE], "serve", |facts, _| {
        if std::net::TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_err() {
            return Err(Untestable::new("no_ipv6", "this machine has no ::1"));
        }
        let mut talk = super::talk(facts, Some("127.0.0.1,localhost"));
        fetch(&mut talk, "http://[::1]:{{web.port}}/", Expect::refused(CLAUSE));
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
}

fn redirect_away(status: u16, name: &str, location: &'static str) -> Check {
    const CLAUSE: &str = "TH-HTTP-10";
    let title = "A redirect from a listed host to an unlisted one does not lead to contact with it.";
    http(Check::new(id(&format!("redirect-{status}-{name}")), title, [CLAUSE], "serve", move |facts, _| {
        let mut talk = super::talk(facts, Some(LISTED));
        talk.fixture(listener("listed", status, Some(location), "moved"));
        let expect = Expect::new(CLAUSE, Allowed::of(Outcome::Refused)).or(page(status, "moved"));
        fetch(&mut talk, "http://127.0.0.1:{{listed.port}}/", expect);
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
}

fn second_redirect() -> Check {
    const CLAUSE: &str = "TH-HTTP-10";
    let title =
        "A second redirect, away from the listed host, does not lead to contact with the unlisted one.";
    http(Check::new(id("redirect-twice"), title, [CLAUSE], "serve", |facts, _| {
        let mut talk = super::talk(facts, Some(LISTED));
        talk.fixture(listener("listed", 302, Some("http://127.0.0.1:{{second.port}}/"), "moved"));
        talk.fixture(listener("second", 302, Some("http://localhost:{{web.port}}/"), "moved"));
        let expect = Expect::new(CLAUSE, Allowed::of(Outcome::Refused)).or(page(302, "moved"));
        fetch(&mut talk, "http://127.0.0.1:{{listed.port}}/", expect);
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
}

fn redirect_within() -> Check {
    const CLAUSE: &str = "TH-HTTP-11";
    let title = "A redirect between listed hosts is followed, or answered without following.";
    http(Check::new(id("redirect-to-a-listed-host"), title, [CLAUSE], "serve", |facts, _| {
        let mut talk = Talk::serve_env(facts, &[(HOSTS, LISTED)]);
        talk.fixture(listener("listed", 302, Some("http://127.0.0.1:{{web.port}}/"), "moved"));
        talk.fixture(listener("web", 200, None, "hello"));
        let expect = Expect::new(CLAUSE, page(200, "hello").shows("follow"))
            .or(page(302, "moved").shows("refuse"))
            .or(Allowed::of(Outcome::Refused).shows("refuse"))
            .choice("redirects");
        fetch(&mut talk, "http://127.0.0.1:{{listed.port}}/", expect);
        talk.canary().finish();
        Ok(talk.plan())
    }))
}
