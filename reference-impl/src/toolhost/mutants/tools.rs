//! Mutants of the fetching tool with a gap in its check of hosts.

use super::Mutant;
use crate::json::{Traits, write_str};
use crate::mutant::parts as hole;
use crate::toolhost::{AllowedHosts, Answer, Components, Config, Context, HttpGet, Input, Step, Tool};

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    hole("urls-match-case", &["TH-HTTP-07"], "A host in capitals matches nothing.", |config, components| {
        replace(config, components, |list, url| {
            let capitals = host(url)?.contains(|c: char| c.is_ascii_uppercase());
            (capitals && !list.is_empty()).then(|| "nobody".to_owned())
        });
    }),
    hole(
        "listed-name-anywhere",
        &["TH-HTTP-08", "TH-HTTP-09", "TH-HTTP-10"],
        "A URL that holds a listed name anywhere is fetched.",
        |config, components| {
            replace(config, components, |list, url| {
                list.iter().any(|entry| url.contains(entry.as_str())).then(|| url.to_owned())
            });
        },
    ),
    hole(
        "trusts-user-info",
        &["TH-HTTP-08"],
        "A listed name as user-info is taken for the host.",
        |config, components| replace(config, components, listed_user_info),
    ),
    hole(
        "trusts-encoded-user-info",
        &["TH-HTTP-08"],
        "A host is decoded after it was compared with the list.",
        |config, components| {
            replace(config, components, |list, url| {
                url.contains("%40")
                    .then(|| url.replace("%40", "@"))
                    .and_then(|url| listed_user_info(list, &url))
            });
        },
    ),
    hole(
        "trusts-encoded-slashes",
        &["TH-HTTP-08"],
        "A host that is compared ends at an encoded slash, one that is contacted does not.",
        |config, components| {
            replace(config, components, |list, url| {
                let plain = url.replace("%2f", "").replace("%5c", "");
                (plain != url).then(|| listed_user_info(list, &plain)).flatten()
            });
        },
    ),
    hole(
        "trusts-what-follows-a-fetch",
        &["TH-HTTP-03"],
        "Once a listed host was fetched the list is not looked at.",
        trusting,
    ),
    hole(
        "trusts-backslashes",
        &["TH-HTTP-08"],
        "A backslash ends the host that is contacted, not the one that is compared.",
        |config, components| {
            replace(config, components, |_, url| {
                url.split_once('\\').map(|(before, _)| format!("{before}/"))
            });
        },
    ),
    hole(
        "contacts-what-follows-an-at-sign",
        &["TH-HTTP-08"],
        "What is contacted stands behind the last at sign, wherever that is; what is compared is the host.",
        |config, components| {
            replace(config, components, |list, url| {
                let listed = host(url)?.split('\\').next()?.to_lowercase();
                let (before, after) = url.split_once("://")?.1.rsplit_once('@')?;
                let behind_the_host = before.contains(['#', '?', '\\']);
                (behind_the_host && list.contains(&listed)).then(|| format!("http://{after}"))
            });
        },
    ),
    hole(
        "mends-beginnings",
        &["TH-HTTP-08"],
        "A URL that does not begin with `http://` is mended and fetched without a look at the list.",
        |config, components| {
            replace(config, components, |_, url| mended(url));
        },
    ),
    hole(
        "reads-entries-as-patterns",
        &["TH-HTTP-03"],
        "A dot in an entry of the list stands for any character.",
        |config, components| {
            replace(config, components, |list, url| {
                let host = host(url)?;
                let fits = |entry: &String| {
                    entry.len() == host.len()
                        && entry.bytes().zip(host.bytes()).all(|(e, h)| e == b'.' || e == h)
                };
                list.iter().any(fits).then(|| url.to_owned())
            });
        },
    ),
    hole(
        "trusts-white-space",
        &["TH-HTTP-08"],
        "A URL with white space is mended and fetched without a look at the list.",
        |config, components| {
            replace(config, components, |_, url| {
                let mended = url.replace('\t', "");
                let mended = mended.split([' ', '\r', '\n']).next().unwrap_or_default();
                (mended != url).then(|| mended.to_owned())
            });
        },
    ),
    hole(
        "trusts-odd-addresses",
        &["TH-HTTP-08"],
        "An IPv4 address in an odd spelling is not compared with the list.",
        |config, components| {
            replace(config, components, |_, url| {
                let host = host(url)?;
                let numbers = host.starts_with(|c: char| c.is_ascii_digit())
                    && host.chars().all(|c| c.is_ascii_hexdigit() || c == '.' || c == 'x');
                let odd = host == "0.0.0.0" || host.parse::<std::net::Ipv4Addr>().is_err();
                (numbers && odd).then(|| url.replacen(host, "127.0.0.1", 1))
            });
        },
    ),
    hole(
        "trusts-trailing-dots",
        &["TH-HTTP-09"],
        "A host with trailing dots is not compared with the list.",
        |config, components| {
            replace(config, components, |_, url| {
                let host = host(url)?;
                host.ends_with('.').then(|| url.replacen(host, host.trim_end_matches('.'), 1))
            });
        },
    ),
    hole(
        "trusts-listed-beginnings",
        &["TH-HTTP-09"],
        "A name below localhost that begins with a listed host is fetched from this machine.",
        |config, components| {
            replace(config, components, |list, url| {
                let host = host(url)?;
                let begins = list.iter().any(|entry| host.starts_with(&format!("{entry}.")));
                (begins && host.ends_with(".localhost")).then(|| url.replacen(host, "127.0.0.1", 1))
            });
        },
    ),
    hole(
        "trusts-redirects",
        &["TH-HTTP-10"],
        "The target of a redirect is not checked.",
        |config, components| replace_redirect(config, components, |_, url| Some(url.to_owned())),
    ),
    hole(
        "trusts-user-info-of-redirects",
        &["TH-HTTP-10"],
        "A listed name as user-info in the target of a redirect is taken for the host.",
        |config, components| replace_redirect(config, components, listed_user_info),
    ),
    hole(
        "mends-redirects",
        &["TH-HTTP-10"],
        "The target of a redirect is compared with the list only where it begins with `http://`.",
        |config, components| replace_redirect(config, components, |_, url| mended(&url.replace('\\', "/"))),
    ),
    hole("trusts-ipv6", &["TH-HTTP-12"], "IPv6 literals are not checked.", |config, components| {
        replace(config, components, |_, url| url.contains('[').then(|| url.to_owned()));
    }),
];

/// Gap: given the list's entries in lower case and a URL, returns a URL to fetch without a check.
type Hole = fn(&[String], &str) -> Option<String>;

/// URL as a browser repairs it, if it lacks `http://`.
fn mended(url: &str) -> Option<String> {
    let trimmed = url.trim_start();
    let rest = match trimmed.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("http:") => &trimmed[5..],
        _ => trimmed.strip_prefix("//").map(|_| trimmed)?,
    };
    let mended = format!("http://{}", rest.trim_start_matches('/'));
    (mended != url).then_some(mended)
}

/// User-info, host and port of a URL.
fn authority(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split(['/', '?', '#']).next()
}

/// Host of a URL, as a careless reader finds it.
fn host(url: &str) -> Option<&str> {
    authority(url)?.split(':').next()
}

/// URL without its user-info, if a part of the user-info is a listed name.
fn listed_user_info(list: &[String], url: &str) -> Option<String> {
    let (user_info, _) = authority(url)?.rsplit_once('@')?;
    let listed = user_info.split([':', '@', '\0']).any(|part| list.iter().any(|entry| entry == part));
    listed.then(|| url.replacen(&format!("{user_info}@"), "", 1))
}

fn no_hole(_: &[String], _: &str) -> Option<String> {
    None
}

struct Leaky {
    list: Vec<String>,
    strict: HttpGet,
    open: HttpGet,
    hole: Hole,
    redirect_hole: Hole,
    through_hole: bool,
}

fn replace(config: &mut Config, components: &mut Components, hole: Hole) {
    leaky(config, components, hole, no_hole);
}

fn replace_redirect(config: &mut Config, components: &mut Components, redirect_hole: Hole) {
    leaky(config, components, no_hole, redirect_hole);
}

/// Allows every host after the first fetched page.
fn trusting(config: &mut Config, components: &mut Components) {
    let text = config.http_allowed_hosts.clone().unwrap_or_default();
    for aid in ["AID.NET.HTTP_GET.v1", "AID.PEERPROOF.HTTP_GET.v1"] {
        if let Some(entry) = super::entry(components, aid) {
            entry.tool = Box::new(Trusting {
                strict: HttpGet::new(AllowedHosts::parse(&text)),
                open: HttpGet::new(AllowedHosts::parse("")),
                is_open: false,
            });
        }
    }
}

struct Trusting {
    strict: HttpGet,
    open: HttpGet,
    is_open: bool,
}

impl Tool for Trusting {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        if self.is_open { self.open.call(input, cx) } else { self.strict.call(input, cx) }
    }

    fn resume(&mut self, answer: Answer, cx: &mut Context<'_>) -> Step {
        let tool = if self.is_open { &mut self.open } else { &mut self.strict };
        let step = tool.resume(answer, cx);
        self.is_open |= matches!(step, Step::Done(_));
        step
    }
}

fn leaky(config: &mut Config, components: &mut Components, hole: Hole, redirect_hole: Hole) {
    let text = config.http_allowed_hosts.clone().unwrap_or_default();
    let entries = text.split(',').map(|entry| entry.trim().to_lowercase());
    let list: Vec<String> = entries.filter(|entry| !entry.is_empty()).collect();
    for aid in ["AID.NET.HTTP_GET.v1", "AID.PEERPROOF.HTTP_GET.v1"] {
        if let Some(entry) = super::entry(components, aid) {
            entry.tool = Box::new(Leaky {
                list: list.clone(),
                strict: HttpGet::new(AllowedHosts::parse(&text)),
                open: HttpGet::new(AllowedHosts::parse("")),
                hole,
                redirect_hole,
                through_hole: false,
            });
        }
    }
}

impl Tool for Leaky {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        let value = input.value().ok();
        let url = value.as_ref().and_then(|value| value.get("url")).and_then(|url| url.as_str());
        let target = url.and_then(|url| (self.hole)(&self.list, url));
        self.through_hole = target.is_some();
        if let Some(target) = target {
            let mut text = b"{\"url\":".to_vec();
            write_str(&mut text, &target);
            text.push(b'}');
            let text = String::from_utf8_lossy(&text).into_owned();
            let input = Input::new(&text, Traits::default(), cx.choices.policy(), cx.limits.nesting_max);
            return self.open.call(&input, cx);
        }
        // Both tools follow the same call, so that either can continue after a redirect.
        self.open.call(input, cx);
        self.strict.call(input, cx)
    }

    fn resume(&mut self, mut answer: Answer, cx: &mut Context<'_>) -> Step {
        if let Answer::Fetched(Ok(reply)) = &mut answer
            && let Some(target) =
                reply.location.as_ref().and_then(|url| (self.redirect_hole)(&self.list, url))
        {
            self.through_hole = true;
            reply.location = Some(target);
        }
        if self.through_hole { self.open.resume(answer, cx) } else { self.strict.resume(answer, cx) }
    }
}
