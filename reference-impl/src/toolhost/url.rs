//! `http` URLs, read strictly: whatever two readers could take for two different hosts is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host as it is contacted and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlHost {
    /// A name in lower case without a trailing dot.
    Name(String),
    /// An address literal.
    Address(IpAddr),
}

impl fmt::Display for UrlHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl UrlHost {
    /// Reads a host as it stands in a URL: a name, a dotted quad, or an IPv6 address in brackets.
    ///
    /// # Errors
    /// Why it is refused; among others every other spelling of an IPv4 address (`127.1`, `0x7f000001`, `017.0.0.1`).
    pub fn parse(host: &str) -> Result<Self, &'static str> {
        if let Some(inside) = host.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or("an IPv6 address needs both brackets")?;
            let address: Ipv6Addr = inside.parse().map_err(|_| "malformed IPv6 address")?;
            return Ok(Self::Address(address.into()));
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if name.is_empty() {
            return Err("no host");
        }
        let valid = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if name.len() > 253 || !name.split('.').all(valid) {
            return Err("malformed host name");
        }
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        // A name whose last label is a number is taken for an IPv4 address by resolvers.
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal =
            last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        if hexadecimal || last.bytes().all(|b| b.is_ascii_digit()) {
            return Err("malformed IPv4 address");
        }
        Ok(Self::Name(name))
    }
}

/// An absolute `http` URL; its fragment is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Host that is contacted.
    pub host: UrlHost,
    /// TCP port, 80 unless named.
    pub port: u16,
    /// Path and query, starting with `/`.
    pub path: String,
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// Why it is refused: another scheme, user-info, a backslash, a byte that is not printable ASCII, a malformed host
    /// or port.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        if !url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
            return Err("a URL holds printable ASCII without backslashes");
        }
        let (scheme, rest) = url.split_once("://").ok_or("not an absolute URL")?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err("only http is supported");
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err("user-info is not allowed");
        }
        let bracket = authority.find(']').map_or(0, |at| at + 1);
        let colon = authority.get(bracket..).and_then(|tail| tail.find(':')).map(|at| bracket + at);
        let (host, port) = match colon {
            Some(colon) => (&authority[..colon], &authority[colon + 1..]),
            None => (authority, ""),
        };
        let port = match port {
            "" => 80,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().unwrap_or(0),
            _ => 0,
        };
        if port == 0 {
            return Err("malformed port");
        }
        let target = rest.split('#').next().unwrap_or_default();
        let path = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self { host: UrlHost::parse(host)?, port, path })
    }

    /// The URL that a `Location` header on a reply to this one names.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn join(&self, location: &str) -> Result<Self, &'static str> {
        let authority = self.authority();
        if has_scheme(location) {
            return Self::parse(location);
        }
        if location.starts_with("//") {
            return Self::parse(&format!("http:{location}"));
        }
        let path = self.path.split('?').next().unwrap_or_default();
        let target = if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{path}{location}")
        } else if location.is_empty() || location.starts_with('#') {
            self.path.clone()
        } else {
            let directory = path.rfind('/').map_or("/", |at| &path[..=at]);
            format!("{directory}{location}")
        };
        Self::parse(&format!("http://{authority}{target}"))
    }

    /// Host and port as they stand in a URL and in a `Host` header.
    pub fn authority(&self) -> String {
        let host = match &self.host {
            UrlHost::Address(IpAddr::V6(address)) => format!("[{address}]"),
            host => host.to_string(),
        };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }
}

/// True for an absolute reference: a scheme and a colon before any `/`, `?` or `#`.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?', '#']);
    end.is_some_and(|end| end > 0 && reference.as_bytes().get(end) == Some(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> Option<(String, u16, String)> {
        Url::parse(url).ok().map(|url| (url.host.to_string(), url.port, url.path))
    }

    fn some(host: &str, port: u16, path: &str) -> Option<(String, u16, String)> {
        Some((host.to_owned(), port, path.to_owned()))
    }

    #[test]
    fn reads_the_host_that_is_contacted() {
        assert_eq!(parts("http://Example.COM"), some("example.com", 80, "/"));
        assert_eq!(parts("HTTP://example.com.:8080/a?b#c"), some("example.com", 8080, "/a?b"));
        assert_eq!(parts("http://h?@other/"), some("h", 80, "/?@other/"));
        assert_eq!(parts("http://h#@other/"), some("h", 80, "/"));
        assert_eq!(parts("http://h:/x"), some("h", 80, "/x"));
        assert_eq!(parts("http://[::1]:81/"), some("::1", 81, "/"));
        assert_eq!(parts("http://127.0.0.1/"), some("127.0.0.1", 80, "/"));
    }

    #[test]
    fn refuses_what_could_be_read_twice() {
        for url in [
            "",
            "h",
            "http:/h/",
            "http:h",
            "//h/",
            "https://h/",
            "ftp://h/",
            "file:///etc/passwd",
            "http://",
            "http:///h",
            "http://user@h/",
            "http://a:b@h/",
            "http://h\\@other/",
            "http://h\\.other/",
            "http://h /",
            "http://h\r\nX: y/",
            "http://h\0/",
            "http://h\t/",
            "http://h%2eother/",
            "http://\u{ff41}/",
            "http://a..b/",
            "http://.a/",
            "http://a../",
            "http://h:0/",
            "http://h:65536/",
            "http://h:-1/",
            "http://h:80:80/",
            "http://h:8x/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://017.0.0.1/",
            "http://127.0.0.1.1/",
            "http://1.2.3.256/",
            "http://[::1/",
            "http://::1/",
            "http://[::1%lo]/",
            "http://[127.0.0.1]/",
            "http://[::1]x/",
            "http://0x/",
            " http://h/",
        ] {
            assert!(Url::parse(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn follows_locations() {
        let base = Url::parse("http://h:81/a/b?c").unwrap();
        for (location, joined) in [
            ("http://other/x", "other|/x"),
            ("//other", "other|/"),
            ("/x?y", "h:81|/x?y"),
            ("x", "h:81|/a/x"),
            ("?z", "h:81|/a/b?z"),
            ("#f", "h:81|/a/b?c"),
            ("", "h:81|/a/b?c"),
            ("x:y", ""),
            ("https://h/", ""),
        ] {
            let url = base.join(location).map(|url| format!("{}|{}", url.authority(), url.path));
            assert_eq!(url.unwrap_or_default(), joined, "{location}");
        }
    }
}
