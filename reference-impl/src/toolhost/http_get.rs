//! `AID.NET.HTTP_GET.v1` and its list of allowed hosts (policy §7, contract §1).

use std::net::IpAddr;

use super::choices::{LoopbackHosts, Redirects};
use super::tool::{Answer, Context, FetchRequest, Input, Step, Tool, ToolResult};
use super::url::{Url, UrlHost};
use crate::json::{Value, write_str};
use crate::machine::Fetched;
use crate::refusal::Refusal;

/// Parsed `MACHINA_HTTP_ALLOWED_HOSTS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHosts {
    /// True if every host is allowed.
    all: bool,
    exact: Vec<UrlHost>,
    /// Suffixes of `*.suffix` entries, with their leading dot.
    suffixes: Vec<String>,
}

impl AllowedHosts {
    /// Parses a comma-separated list of hosts, `*.suffix` and `*`. An empty list allows all hosts, a list of
    /// separators none. White space around entries and letter case are ignored. An invalid host matches nothing.
    pub fn parse(list: &str) -> Self {
        let mut hosts = Self { all: list.is_empty(), exact: Vec::new(), suffixes: Vec::new() };
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if entry == "*" {
                hosts.all = true;
            } else if let Some(suffix) = entry.strip_prefix("*.") {
                if let Ok(UrlHost::Name(suffix)) = UrlHost::parse(suffix) {
                    hosts.suffixes.push(format!(".{suffix}"));
                }
            } else if let Ok(address) = entry.parse::<IpAddr>() {
                hosts.exact.push(UrlHost::Address(address));
            } else if let Ok(host) = UrlHost::parse(entry) {
                hosts.exact.push(host);
            }
        }
        hosts
    }

    /// True if `host` may be contacted. `*.suffix` matches names below the suffix, but neither the suffix itself nor
    /// addresses.
    pub fn allow(&self, host: &UrlHost) -> bool {
        self.all
            || self.exact.contains(host)
            || matches!(host, UrlHost::Name(name)
                if self.suffixes.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix.as_str())))
    }
}

/// Tool that fetches a URL. It checks every host before it is contacted, after redirects too.
pub struct HttpGet {
    allowed: AllowedHosts,
    /// URL of the call in progress, and the number of redirects followed.
    at: Option<(Url, usize)>,
}

impl HttpGet {
    /// Creates a tool that contacts only `allowed` hosts.
    pub fn new(allowed: AllowedHosts) -> Self {
        Self { allowed, at: None }
    }

    fn fetch(&mut self, url: Url, redirects: usize, cx: &Context<'_>) -> Result<Step, Refusal> {
        let is_refused = cx.choices.loopback_hosts == LoopbackHosts::Refuse && url.host.is_loopback();
        if is_refused || !self.allowed.allow(&url.host) {
            return Err(format!("host not allowed: {}", url.host).into());
        }
        let request = FetchRequest {
            host: url.host.to_string(),
            port: url.port,
            path: url.path.clone(),
            host_header: url.authority.clone(),
        };
        self.at = Some((url, redirects));
        Ok(Step::Fetch(request))
    }

    fn answer(&mut self, reply: Fetched, cx: &Context<'_>) -> Result<Step, Refusal> {
        let (url, redirects) = self.at.take().ok_or("no request is under way")?;
        if let (301 | 302 | 303 | 307 | 308, Some(location)) = (reply.status, &reply.location) {
            if cx.choices.redirects == Redirects::Refuse {
                return Err("the server redirects, which is not followed".into());
            }
            if redirects >= cx.limits.http_redirects_max {
                return Err(format!("more than {} redirects", cx.limits.http_redirects_max).into());
            }
            return self.fetch(url.join(location)?, redirects + 1, cx);
        }
        let mut output = format!("{{\"status\":{},\"body\":", reply.status).into_bytes();
        write_str(&mut output, &String::from_utf8_lossy(&reply.body));
        output.push(b'}');
        Ok(Step::Done(ToolResult::json(String::from_utf8_lossy(&output))))
    }
}

impl Tool for HttpGet {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        let url = input.value().map_err(Refusal::from).and_then(|value| {
            let url = value.get("url").and_then(Value::as_str).ok_or("url must be a string")?;
            Ok(Url::parse(url)?)
        });
        url.and_then(|url| self.fetch(url, 0, cx))
            .unwrap_or_else(|error| Step::Done(ToolResult::error(error)))
    }

    fn resume(&mut self, answer: Answer, cx: &mut Context<'_>) -> Step {
        let reply = match answer {
            Answer::Fetched(reply) => reply.map_err(|error| error.to_string().into()),
            Answer::Woken => Err("no reply".into()),
        };
        reply
            .and_then(|reply| self.answer(reply, cx))
            .unwrap_or_else(|error| Step::Done(ToolResult::error(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &str, host: &str) -> bool {
        AllowedHosts::parse(list).allow(&UrlHost::parse(host).unwrap())
    }

    #[test]
    fn empty_allows_all_and_separators_allow_none() {
        assert!(allows("", "example.com"));
        assert!(allows("a,*", "example.com"));
        for list in [",", " , ,", " "] {
            assert!(!allows(list, "example.com"), "{list:?}");
        }
    }

    #[test]
    fn entries_match_whole_hosts() {
        let list = "Example.com, api.openai.com.,*.GitHub.com,127.0.0.1,::1,[fe80::1]";
        for host in
            ["example.com", "EXAMPLE.com.", "api.openai.com", "a.github.com", "a.b.github.com", "[::1]"]
        {
            assert!(allows(list, host), "{host}");
        }
        assert!(allows(list, "[0:0:0:0:0:0:0:1]"));
        assert!(allows(list, "[FE80::1]"));
        for host in [
            "xexample.com",
            "example.com.evil",
            "www.example.com",
            "github.com",
            "evilgithub.com",
            "127.0.0.2",
            "[::2]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(!allows(list, host), "{host}");
        }
        assert!(!allows("*.1,*.0.0.1", "127.0.0.1"));
        assert!(!allows("*.*", "a.b"));
    }
}
