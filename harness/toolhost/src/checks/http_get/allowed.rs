//! Allowed hosts (everything without a list, exact hosts, suffixes, `*`), and the answer of a fetch.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::Act;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::relation::Relation;
use super::super::super::talk::{LATER_MS, Request, Talk};
use super::super::super::talk_state::{listener, url_input};
use super::{
    FEATURE, HOSTS, fetch, http, id, next_process, page, page_or_no_loopback, page_or_refused, refused_url,
    resolves, talk, way_is_open,
};

const URL: &str = "http://127.0.0.1:{{web.port}}/";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        positive(
            "no-list",
            "TH-HTTP-01",
            "Without a list every host is fetched.",
            None,
            URL,
            Some("127.0.0.1"),
        ),
        positive(
            "empty-list",
            "TH-HTTP-01",
            "An empty list allows every host.",
            Some(""),
            URL,
            Some("127.0.0.1"),
        ),
        positive(
            "exact-host",
            "TH-HTTP-02",
            "A host that the list names is fetched.",
            Some("127.0.0.1"),
            URL,
            None,
        ),
        positive(
            "exact-host-among-others",
            "TH-HTTP-02",
            "A host that is one entry of several is fetched.",
            Some("example.com,127.0.0.1,*.example.org"),
            URL,
            None,
        ),
        positive("star", "TH-HTTP-02", "The entry `*` allows every host.", Some("*"), URL, Some("127.0.0.1")),
        positive(
            "star-among-others",
            "TH-HTTP-02",
            "The entry `*` beside other entries allows every host.",
            Some("example.com,*"),
            URL,
            None,
        ),
        positive_name("host-in-upper-case", "localhost", "LOCALHOST"),
        positive_name("entry-in-upper-case", "LocalHost", "localhost"),
        suffix_match(),
        run_mode(),
        one_after_the_other(),
        looked_at_later(),
    ];
    for status in [200, 404, 500] {
        checks.push(shape(status));
    }
    for (name, hosts) in [("comma", ","), ("commas-and-spaces", " , ,")] {
        checks.push(refused_url(
            &format!("list-of-a-{name}"),
            "TH-HTTP-06",
            "A list that contains only separators does not allow everything.",
            hosts,
            URL,
        ));
    }
    for (name, hosts, url) in UNLISTED {
        let title = "A host that matches no entry is never contacted, and the reply is ok:false.";
        checks.push(refused_url(&format!("unlisted-{name}"), "TH-HTTP-03", title, hosts, url));
    }
    for (name, hosts, url) in SUFFIXES {
        let title = "A suffix entry does not match a name that only contains or resembles it.";
        checks.push(refused_url(&format!("suffix-{name}"), "TH-HTTP-04", title, hosts, url));
    }
    for (name, hosts, url) in OPEN_SUFFIXES {
        checks.push(open(&format!("suffix-{name}"), "TH-HTTP-05", hosts, url));
    }
    for (name, url) in ODD_SPELLINGS {
        checks.push(open(&format!("listed-host-{name}"), "TH-HTTP-13", "127.0.0.1,::1,localhost", url));
    }
    checks
}

/// Hosts that are not listed: name, list, URL.
const UNLISTED: &[(&str, &str, &str)] = &[
    ("address", "example.com", URL),
    ("address-beside-its-name", "localhost", URL),
    ("name-beside-its-address", "127.0.0.1", "http://localhost:{{web.port}}/"),
    ("neighbour-address", "127.0.0.2", URL),
    ("address-that-extends-an-entry", "127.0.0", URL),
    ("address-that-ends-in-an-entry", "0.0.1", URL),
    ("address-that-an-entry-repeats", "127.0.0.1127.0.0.1", URL),
    ("address-that-an-entry-goes-beyond", "127.0.0.11", URL),
    ("address-that-an-entry-cuts-at-its-begin", "27.0.0.1", URL),
    ("address-with-dots-in-an-entry", ".127.0.0.1", URL),
    ("address-beside-an-empty-entry", "example.com,", URL),
    ("name-that-fits-an-entry-as-a-pattern", "local.ost", "http://localhost:{{web.port}}/"),
    ("address-with-listed-port", "127.0.0.2:80,example.com", URL),
];

/// Suffixes that do not match: name, list, URL.
const SUFFIXES: &[(&str, &str, &str)] = &[
    ("that-the-name-ends-in-without-a-dot", "*.host", "http://localhost:{{web.port}}/"),
    ("that-starts-the-name", "*.local", "http://localhost:{{web.port}}/"),
    ("in-the-middle-of-an-address", "*.0.0", URL),
    ("of-another-name", "*.example.com", URL),
];

/// Suffix entries for which both outcomes are allowed: name, list, URL.
const OPEN_SUFFIXES: &[(&str, &str, &str)] =
    &[("itself", "*.localhost", "http://localhost:{{web.port}}/"), ("of-an-address", "*.0.0.1", URL)];

/// Odd spellings of a listed host.
const ODD_SPELLINGS: &[(&str, &str)] = &[
    ("with-trailing-dot", "http://127.0.0.1.:{{web.port}}/"),
    ("percent-encoded", "http://%31%32%37.0.0.1:{{web.port}}/"),
    ("as-one-number", "http://2130706433:{{web.port}}/"),
    ("in-short", "http://127.1:{{web.port}}/"),
    ("in-hexadecimal", "http://0x7f000001:{{web.port}}/"),
    ("with-user-info", "http://user:secret@127.0.0.1:{{web.port}}/"),
];

/// Creates a check that a URL is fetched under `hosts`. `control` is fetched for comparison, because a peer may refuse
/// all loopback addresses.
fn positive(
    name: &str,
    clause: &'static str,
    title: &str,
    hosts: Option<&'static str>,
    url: &'static str,
    control: Option<&'static str>,
) -> Check {
    http(Check::new(id(name), title, [clause], "serve", move |facts, _| {
        let mut talk = talk(facts, control);
        let of = fetch(&mut talk, url, page_or_no_loopback(clause));
        talk.canary().finish();
        next_process(&mut talk, hosts);
        let step = fetch(&mut talk, url, page_or_refused(clause));
        talk.relate(Relation::SucceedsLike { clause: clause.into(), step, of });
        talk.canary().finish();
        Ok(talk.plan())
    }))
}

fn positive_name(name: &str, hosts: &'static str, host: &'static str) -> Check {
    const CLAUSE: &str = "TH-HTTP-07";
    let title = "Hosts are compared without regard to case and without the port of the URL.";
    http(Check::new(id(name), title, [CLAUSE], "serve", move |facts, _| {
        resolves("localhost")?;
        let url = format!("http://{host}:{{{{web.port}}}}/");
        let mut talk = talk(facts, None);
        let of = fetch(&mut talk, &url, page_or_refused(CLAUSE));
        talk.canary().finish();
        next_process(&mut talk, Some(hosts));
        let step = fetch(&mut talk, &url, page_or_refused(CLAUSE));
        talk.relate(Relation::SucceedsLike { clause: CLAUSE.into(), step, of });
        talk.canary().finish();
        Ok(talk.plan())
    }))
}

fn suffix_match() -> Check {
    const CLAUSE: &str = "TH-HTTP-04";
    const NAME: &str = "peerproof.localhost";
    let title = "A name that ends in `.suffix` is fetched under the entry `*.suffix`.";
    http(Check::new(id("suffix-of-the-name"), title, [CLAUSE], "serve", |facts, _| {
        resolves(NAME)?;
        let url = format!("http://{NAME}:{{{{web.port}}}}/");
        let mut talk = talk(facts, None);
        let of = fetch(&mut talk, &url, page_or_refused(CLAUSE));
        talk.canary().finish();
        next_process(&mut talk, Some("*.localhost"));
        let step = fetch(&mut talk, &url, page_or_refused(CLAUSE));
        talk.relate(Relation::SucceedsLike { clause: CLAUSE.into(), step, of });
        talk.canary().finish();
        Ok(talk.plan())
    }))
}

/// Creates a check that needs no working role: if the feature is claimed, the check shows that the tool does not work.
fn shape(status: u16) -> Check {
    const CLAUSE: &str = "TH-HTTP-14";
    let title = "A fetched URL is answered with its status as integer and its body as string.";
    let check = http(Check::new(
        id(&format!("page-with-status-{status}")),
        title,
        [CLAUSE],
        "serve",
        move |facts, _| {
            const BODY: &str = "naïve \"page\"\n\\ 漢字";
            let mut talk = talk(facts, None);
            // A peer that refuses loopback addresses shows no page at all.
            let of = fetch(&mut talk, URL, page_or_no_loopback(CLAUSE));
            talk.fixture(listener("page", status, None, BODY));
            let expect = Expect::new(CLAUSE, page(status, BODY)).or(Allowed::of(Outcome::Refused));
            let step = fetch(&mut talk, "http://127.0.0.1:{{page.port}}/a?b=c", expect);
            talk.relate(Relation::SucceedsLike { clause: CLAUSE.into(), step, of });
            talk.canary().finish();
            Ok(talk.plan())
        },
    ));
    check.roles(&["any"])
}

fn open(name: &str, clause: &'static str, hosts: &'static str, url: &'static str) -> Check {
    let title = "An unusual spelling of a listed host is fetched or refused; the reply is well-formed \
        either way.";
    http(Check::new(id(name), title, [clause], "serve", move |facts, _| {
        let mut talk = talk(facts, Some(hosts));
        // Each spelling would be a choice of its own, and there are too many.
        let expect = Expect::new(clause, page(200, "hello")).or(Allowed::of(Outcome::Refused));
        fetch(&mut talk, url, expect);
        talk.canary().finish();
        Ok(talk.plan())
    }))
}

fn one_after_the_other() -> Check {
    const CLAUSE: &str = "TH-HTTP-03";
    const UNLISTED_URL: &str = "http://localhost:{{web.port}}/";
    let title = "An unlisted host is refused after a listed one was fetched, and the listed one is fetched \
        again.";
    http(Check::new(id("unlisted-between-listed"), title, [CLAUSE], "serve", |facts, _| {
        let mut talk = talk(facts, Some("127.0.0.1"));
        talk.fixture(listener("listed", 200, None, "hello"));
        let listed = "http://127.0.0.1:{{listed.port}}/";
        let of = fetch(&mut talk, listed, page_or_no_loopback(CLAUSE));
        fetch(&mut talk, UNLISTED_URL, Expect::refused(CLAUSE));
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        let step = fetch(&mut talk, listed, page_or_refused(CLAUSE));
        talk.relate(Relation::SucceedsLike { clause: CLAUSE.into(), step, of });
        talk.canary().finish();
        Ok(talk.plan())
    }))
}

fn looked_at_later() -> Check {
    const CLAUSE: &str = "TH-HTTP-03";
    let title = "A host that matches no entry is not contacted later either (1.2 s after the refusal).";
    http(Check::new(id("unlisted-looked-at-later"), title, [CLAUSE], "serve", |facts, _| {
        let mut talk = talk(facts, Some("example.com"));
        fetch(&mut talk, URL, Expect::refused(CLAUSE));
        talk.act(Act::Wait { ms: LATER_MS });
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        talk.canary().finish();
        way_is_open(&mut talk);
        Ok(talk.plan())
    }))
    .waits()
}

fn run_mode() -> Check {
    const CLAUSE: &str = "TH-HTTP-03";
    let title = "In run mode too a host that matches no entry is never contacted.";
    let check = Check::new("toolhost/run/http_get/unlisted-address", title, [CLAUSE], "run", |facts, _| {
        let mut talk = Talk::runs(facts);
        talk.fixture(listener("web", 200, None, "hello"));
        talk.fixture(listener("other", 200, None, "hello"));
        let aid = talk.role(FEATURE).aid;
        let body = |url: &str| Request::empty().payload("input_json", url_input(url)).body();
        talk.run(&aid, body(URL), &[(HOSTS, "localhost")], Expect::refused(CLAUSE));
        talk.relate(Relation::NotContacted { clause: CLAUSE.into(), listener: "web".to_owned() });
        // The accepted twin: the request under a list with the host.
        let url = "http://127.0.0.1:{{other.port}}/";
        talk.run(&aid, body(url), &[(HOSTS, "127.0.0.1")], page_or_refused(CLAUSE));
        let step = talk.at() - 1;
        talk.relate(Relation::Control { step });
        Ok(talk.run_canary().plan())
    });
    http(check)
}
