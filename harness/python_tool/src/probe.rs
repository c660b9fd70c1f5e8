//! Probes of guarantees: roles with an external effect, the routes that cause it, and the signs that show it.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Sign;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Fixture, PathKind, Plan};

use super::project::{PROJECT, TEMPORARY};

/// Content of a file that a tool must change.
pub(crate) const BEFORE: &str = "as it was before anybody changed it";

/// Permission bits that a tool sets.
const MODE: u32 = 0o751;

/// Environment variable with a secret value.
pub(crate) const VARIABLE: &str = "PEERPROOF_VALUE";

/// Environment variable that a tool sets or removes.
pub(crate) const CHANGED: &str = "PEERPROOF_SET";

/// Routes that remove a variable.
const REMOVES: [&str; 6] = ["delete", "pop", "clear", "delete_bytes", "unsetenv", "ctypes_unset"];

/// Names of the listeners for calls that may connect and for calls that must not.
pub(crate) const LISTENERS: [&str; 2] = ["open", "closed"];

/// A guarantee and its probes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guarantee {
    /// Name in a request.
    pub name: &'static str,
    /// Role.
    pub role: &'static str,
    /// Clause about plain routes, and clause about other routes.
    pub clauses: [&'static str; 2],
    /// Plain routes.
    pub plain: &'static [&'static str],
}

/// All guarantees.
pub(crate) const GUARANTEES: [Guarantee; 6] = [
    Guarantee {
        name: "no_filesystem_write",
        role: "write",
        clauses: ["PT-FSW-01", "PT-FSW-02"],
        plain: &["open", "append", "exclusive", "update", "relative", "pathlib", "mkdir", "remove"],
    },
    Guarantee {
        name: "no_filesystem_read",
        role: "read",
        clauses: ["PT-FSR-01", "PT-FSR-02"],
        plain: &["open", "relative", "pathlib"],
    },
    Guarantee {
        name: "no_network",
        role: "connect",
        clauses: ["PT-NET-01", "PT-NET-02"],
        plain: &["create_connection", "urllib"],
    },
    Guarantee {
        name: "no_subprocess",
        role: "process",
        clauses: ["PT-SUB-01", "PT-SUB-02"],
        plain: &["subprocess", "system"],
    },
    Guarantee {
        name: "no_env_read",
        role: "env_read",
        clauses: ["PT-ENR-01", "PT-ENR-02"],
        plain: &["environ", "getenv"],
    },
    Guarantee {
        name: "no_env_write",
        role: "env_write",
        clauses: ["PT-ENW-01", "PT-ENW-02"],
        plain: &["environ"],
    },
];

/// Guarantee that restricts a role.
pub(crate) fn about(role: &str) -> Option<&'static Guarantee> {
    GUARANTEES.iter().find(|guarantee| guarantee.role == role)
}

/// Role that a guarantee restricts.
pub(crate) fn role(name: &str) -> &'static str {
    GUARANTEES.iter().find(|guarantee| guarantee.name == name).map_or("write", |guarantee| guarantee.role)
}

impl Guarantee {
    /// Clause about a route.
    pub(crate) fn clause(&self, route: &str) -> &'static str {
        match route {
            "listdir" | "scandir" => "PT-FSR-03",
            _ => self.clauses[usize::from(!self.plain.contains(&route))],
        }
    }
}

/// One use of a route. Its token occurs nowhere else.
#[derive(Debug, Clone)]
pub(crate) struct Probe<'a> {
    /// Role.
    pub role: &'a str,
    /// Route.
    pub route: &'a str,
    /// Unique word.
    pub token: &'a str,
    /// Number of the call in its conversation.
    pub number: usize,
    /// True for the call within the guarantee.
    pub guarded: bool,
    /// True if created files lie in the folder for temporary files instead of the project.
    pub temporary: bool,
}

impl Probe<'_> {
    /// Last component of the path that the call uses.
    fn label(&self) -> String {
        format!("made-{}", self.number)
    }

    /// Last component of the path of a link to it. It looks like the name of a module.
    fn link(&self) -> String {
        format!("link-{}.py", self.number)
    }

    fn folder(&self) -> &'static str {
        if self.temporary { TEMPORARY } else { PROJECT }
    }

    /// Path of the created file.
    pub(crate) fn made(&self) -> Option<String> {
        matches!(self.role, "write" | "process").then(|| format!("{}/{}", self.folder(), self.label()))
    }

    /// Environment of the runner.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        let own = match self.role {
            "env_read" => Some((VARIABLE, self.token.to_owned())),
            "env_write" if REMOVES.contains(&self.route) => Some((CHANGED, self.token.to_owned())),
            _ if self.temporary => Some(("TMPDIR", format!("{{{{{TEMPORARY}.path}}}}"))),
            _ => None,
        };
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// True if a listener shows the effect. Text that a tool reads after its reply can only be sent to a listener.
    pub(crate) fn is_heard(&self) -> bool {
        self.role == "connect" || self.route == "atexit" && matches!(self.role, "read" | "env_read")
    }

    /// Fixtures that the call needs.
    pub(crate) fn fixtures(&self) -> Vec<Fixture> {
        let file = |name: String, text: &str| Fixture::File {
            name: format!("{}/{name}", self.folder()),
            content: Payload::text(text),
            mode: (self.route == "chmod").then_some(0o644),
            kept: false,
        };
        let link = || Fixture::Path {
            name: format!("{}/{}", self.folder(), self.link()),
            what: PathKind::Link { to: self.label() },
        };
        match (self.role, self.route) {
            ("write", "through_link") => vec![link()],
            ("read", "through_link") => vec![file(self.label(), self.token), link()],
            ("write", "append" | "update" | "remove" | "mmap" | "overwrite" | "truncate" | "chmod") => {
                vec![file(self.label(), BEFORE)]
            }
            ("write", "rmdir") => {
                let name = format!("{}/{}", self.folder(), self.label());
                vec![Fixture::Folder { name, folders: Vec::new(), watched: false }]
            }
            ("write", "rename" | "link") => vec![file(format!("from-{}", self.number), BEFORE)],
            ("read", "listdir" | "scandir") => vec![file(format!("{}/{}", self.label(), self.token), BEFORE)],
            ("read", _) => vec![file(self.label(), self.token)],
            _ => Vec::new(),
        }
    }

    /// Payload as JSON, with variables of fixtures.
    pub(crate) fn payload(&self, host: &str, catch: bool) -> Payload {
        let (route, label) = (self.route, self.label());
        let catch = if catch { ",\"catch\":true" } else { "" };
        let head = Payload::text(format!("{{\"route\":\"{route}\"{catch},"));
        let at = |name: &str, path: &str| {
            let head = Payload::text(format!("\"{name}\":\"")).var(format!("{}.path", self.folder()));
            head.then(Payload::text(format!("/{path}\"")))
        };
        let listener = LISTENERS[usize::from(self.guarded)];
        let heard = |rest: Payload| {
            rest.then(Payload::text(format!("\"host\":\"{host}\",\"port\":")))
                .var(format!("{listener}.port"))
                .then(Payload::text(format!(",\"listener\":\"{listener}\"")))
        };
        let text = |name: &str, text: &str| Payload::text(format!("\"{name}\":\"{text}\""));
        let comma = |payload: Payload| payload.then(Payload::text(","));
        let rest = match self.role {
            "write" => {
                let rest = comma(at("path", &label)).then(text("text", self.token));
                match route {
                    "rename" | "link" => comma(rest).then(at("from", &format!("from-{}", self.number))),
                    "through_link" => comma(rest).then(at("link", &self.link())),
                    _ => rest,
                }
            }
            "read" if matches!(route, "listdir" | "scandir") => at("path", &format!("{label}/none")),
            "read" if route == "through_link" => comma(at("path", &label)).then(at("link", &self.link())),
            "read" | "process" => at("path", &label),
            "connect" => text("text", self.token),
            "env_read" => text("name", VARIABLE),
            _ => comma(text("name", CHANGED)).then(text("value", self.token)),
        };
        let rest = if self.is_heard() { heard(comma(rest)) } else { rest };
        head.then(rest).then(Payload::text("}"))
    }
}

/// Sign of a call's effect; `None` if the payload is not valid for the role. `session` is that of the call.
pub(crate) fn sign(plan: &Plan, session: usize, role: &str, payload: &Json) -> Option<Sign> {
    let text = |name: &str| payload.get(name).and_then(Json::as_str);
    let route = text("route")?;
    let label = || Some(text("path")?.rsplit('/').next()?.to_owned());
    let told = |text: String| match payload.get("listener").and_then(Json::as_str) {
        Some(listener) => Sign::Hit { listener: listener.to_owned(), holds: Some(text.into_bytes()) },
        None => Sign::Told { holds: text.into_bytes() },
    };
    let found = |holds: Option<&str>| Some(Sign::Found { label: label()?, holds: holds.map(|it| it.into()) });
    let held = |name: &str| {
        plan.fixtures.iter().find_map(|fixture| match fixture {
            Fixture::File { name: own, content, .. } if own == name => {
                String::from_utf8(content.expand(&Vars::new()).ok()?).ok()
            }
            _ => None,
        })
    };
    match role {
        "write" => match route {
            "remove" | "rmdir" => Some(Sign::Gone { label: label()?, holds: None }),
            "truncate" => Some(Sign::Gone { label: label()?, holds: Some(BEFORE.into()) }),
            "append" | "update" | "mmap" | "overwrite" => found(Some(text("text")?)),
            "chmod" => Some(Sign::Mode { label: label()?, mode: MODE }),
            _ => found(None),
        },
        "process" => found(None),
        "connect" => Some(Sign::Hit {
            listener: text("listener")?.to_owned(),
            // The listener of forbidden calls must not get any bytes.
            holds: text("listener").filter(|it| *it == LISTENERS[0]).and_then(|_| Some(text("text")?.into())),
        }),
        "read" if matches!(route, "listdir" | "scandir") => {
            let folder = text("path")?.strip_suffix("/none")?.rsplit('/').next()?;
            let within = format!("{PROJECT}/{folder}/");
            let names = plan.fixtures.iter().filter_map(|fixture| fixture.name().strip_prefix(&within));
            names.map(|name| told(name.to_owned())).next()
        }
        "read" => held(&format!("{PROJECT}/{}", label()?)).map(told),
        "env_read" => {
            let env = &plan.sessions.get(session)?.env;
            env.get(text("name")?).map(|value| told(value.clone()))
        }
        // The value is written backwards, so that a message that quotes the request does not look like the effect.
        "env_write" => Some(told(text("value")?.chars().rev().collect())),
        _ => None,
    }
}
