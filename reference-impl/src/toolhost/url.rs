//! `http` URLs, read strictly (RFC 3986). A URL in which two readers could find different hosts is refused.

use std::fmt;
use std::net::IpAddr;

use fluent_uri::component::{Authority, Host};
use fluent_uri::{Uri, UriRef};

/// Host for connections and comparisons.
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
    /// Reads a host of a URL: a name, a dotted quad, or an IPv6 address in brackets.
    ///
    /// # Errors
    /// The reason for the refusal: it is not exactly one host. Other spellings of an IPv4 address (`127.1`,
    /// `0x7f000001`, `017.0.0.1`) are refused too.
    pub fn parse(host: &str) -> Result<Self, &'static str> {
        let url = format!("http://{host}");
        match Uri::parse(url.as_str()).ok().and_then(|url| url.authority()) {
            Some(authority) if authority.host() == host => Self::of(&authority),
            _ => Err("no host"),
        }
    }

    /// True if it is certainly this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => format!(".{name}").ends_with(".localhost"),
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    fn of(authority: &Authority<'_>) -> Result<Self, &'static str> {
        let name = match authority.host_parsed() {
            Host::Ipv4(address) => return Ok(Self::Address(address.into())),
            Host::Ipv6(address) => return Ok(Self::Address(address.into())),
            Host::RegName(name) => name.as_str(),
            _ => return Err("malformed address"),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        // Escapes and delimiters are refused, because resolvers read them differently.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.split('.').any(str::is_empty) || !name.bytes().all(is_plain) {
            return Err("malformed host name");
        }
        // Resolvers treat a name with a numeric last label as an IPv4 address.
        let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let (digits, base) = last.strip_prefix("0x").map_or((last.as_str(), 10), |digits| (digits, 16));
        if digits.chars().all(|digit| digit.is_digit(base)) {
            return Err("malformed IPv4 address");
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }
}

/// Absolute `http` URL without its fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Host to connect to.
    pub host: UrlHost,
    /// TCP port; the default is 80.
    pub port: u16,
    /// Host and port as spelled in the URL, for a `Host` header.
    pub authority: String,
    /// Path and query, starting with `/`.
    pub path: String,
    uri: Uri<String>,
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// The reason for the refusal: no URL, another scheme, user-info, a malformed host or port.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        Self::of(Uri::parse(url).map_err(|_| "not an absolute URL")?.strip_fragment().to_owned())
    }

    /// URL of a `Location` header in a reply to this URL.
    ///
    /// # Errors
    /// As for [`Url::parse`].
    pub fn join(&self, location: &str) -> Result<Self, &'static str> {
        let location = UriRef::parse(location).map_err(|_| "the location is no URL")?;
        let uri = location.resolve_against(&self.uri).map_err(|_| "the location leads nowhere")?;
        Self::of(uri.strip_fragment().to_owned())
    }

    fn of(uri: Uri<String>) -> Result<Self, &'static str> {
        if !uri.scheme().as_str().eq_ignore_ascii_case("http") {
            return Err("only http is supported");
        }
        let authority = uri.authority().ok_or("no host")?;
        if authority.has_userinfo() {
            return Err("user-info is not allowed");
        }
        let port = match authority.port_to_u16() {
            Ok(Some(0)) | Err(_) => return Err("malformed port"),
            Ok(port) => port.unwrap_or(80),
        };
        let path = match uri.path().as_str() {
            "" => "/",
            path => path,
        };
        Ok(Self {
            host: UrlHost::of(&authority)?,
            port,
            authority: authority.as_str().to_owned(),
            path: match uri.query() {
                Some(query) => format!("{path}?{query}"),
                None => path.to_owned(),
            },
            uri,
        })
    }
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
            "http://0X7F.0x1/",
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
    fn knows_this_machine() {
        for (host, is_loopback) in [
            ("LocalHost.", true),
            ("a.localhost", true),
            ("127.3.2.1", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("notlocalhost", false),
            ("localhost.example", false),
            ("128.0.0.1", false),
            ("[::2]", false),
        ] {
            assert_eq!(UrlHost::parse(host).unwrap().is_loopback(), is_loopback, "{host}");
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
            let url = base.join(location).map(|url| format!("{}|{}", url.authority, url.path));
            assert_eq!(url.unwrap_or_default(), joined, "{location}");
        }
    }
}
