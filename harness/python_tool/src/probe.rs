//! Probes of guarantees: roles with an effect, the routes that have it, and what shows it.

use peerproof_engine::face::Sign;
use peerproof_engine::json::Json;
use peerproof_engine::payload::{Payload, Vars};
use peerproof_engine::plan::{Fixture, Plan};

use super::project::PROJECT;

/// What a file holds that a tool is to change.
pub const BEFORE: &str = "as it was before anybody changed it";

/// Permission bits that a tool sets.
const MODE: u32 = 0o751;

/// Variable of the environment whose value nobody knows.
pub const VARIABLE: &str = "PEERPROOF_VALUE";

/// The listener of calls that may connect, and of those that must not.
pub const LISTENERS: [&str; 2] = ["open", "closed"];

/// A guarantee: its name, the role that it is about, the clauses of plain and of other routes, and plain routes.
#[derive(Debug, Clone, Copy)]
pub struct Guarantee {
    /// Name in a request.
    pub name: &'static str,
    /// Role.
    pub role: &'static str,
    /// The clause of plain routes, and of others.
    pub clauses: [&'static str; 2],
    /// Plain routes.
    pub plain: &'static [&'static str],
}

/// All guarantees.
pub const GUARANTEES: [Guarantee; 6] = [
    Guarantee {
        name: "no_filesystem_write",
        role: "write",
        clauses: ["PT-FSW-01", "PT-FSW-02"],
        plain: &["open", "pathlib", "mkdir", "remove"],
    },
    Guarantee {
        name: "no_filesystem_read",
        role: "read",
        clauses: ["PT-FSR-01", "PT-FSR-02"],
        plain: &["open", "pathlib"],
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

/// The guarantee that is about a role.
pub fn about(role: &str) -> Option<&'static Guarantee> {
    GUARANTEES.iter().find(|guarantee| guarantee.role == role)
}

/// The role that a guarantee is about.
pub fn role(name: &str) -> &'static str {
    GUARANTEES.iter().find(|guarantee| guarantee.name == name).map_or("write", |guarantee| guarantee.role)
}

impl Guarantee {
    /// The clause about a route.
    pub fn clause(&self, route: &str) -> &'static str {
        match route {
            "listdir" | "scandir" => "PT-FSR-03",
            _ => self.clauses[usize::from(!self.plain.contains(&route))],
        }
    }
}

/// One use of a route: `token` is a word that nothing else has, and `number` that of the call.
#[derive(Debug, Clone)]
pub struct Probe<'a> {
    /// Role.
    pub role: &'a str,
    /// Route.
    pub route: &'a str,
    /// A word of its own.
    pub token: &'a str,
    /// Number of the call in its conversation.
    pub number: usize,
    /// It is the call that is within the guarantee.
    pub guarded: bool,
}

impl Probe<'_> {
    /// The label of a look at what it makes.
    pub fn label(&self) -> String {
        format!("made-{}", self.number)
    }

    /// What has to be there before.
    pub fn fixtures(&self) -> Vec<Fixture> {
        let file = |name: String, text: &str| Fixture::File {
            name: format!("{PROJECT}/{name}"),
            content: Payload::text(text),
            mode: (self.route == "chmod").then_some(0o644),
            kept: false,
        };
        match (self.role, self.route) {
            ("write", "remove" | "mmap" | "overwrite" | "truncate" | "chmod") => {
                vec![file(self.label(), BEFORE)]
            }
            ("write", "rmdir") => {
                let name = format!("{PROJECT}/{}", self.label());
                vec![Fixture::Folder { name, folders: Vec::new(), watched: false }]
            }
            ("write", "rename" | "link") => vec![file(format!("from-{}", self.number), BEFORE)],
            ("read", "listdir" | "scandir") => vec![file(format!("{}/{}", self.label(), self.token), BEFORE)],
            ("read", _) => vec![file(self.label(), self.token)],
            _ => Vec::new(),
        }
    }

    /// The payload, as JSON with the variables of fixtures.
    pub fn payload(&self, host: &str, catch: bool) -> Payload {
        let (route, label) = (self.route, self.label());
        let catch = if catch { ",\"catch\":true" } else { "" };
        let head = Payload::text(format!("{{\"route\":\"{route}\"{catch},"));
        let at = |name: &str, path: &str| {
            let head = Payload::text(format!("\"{name}\":\"")).var(format!("{PROJECT}.path"));
            head.then(Payload::text(format!("/{path}\"")))
        };
        let rest = match self.role {
            "write" => {
                let text = Payload::text(format!(",\"text\":\"{}\"", self.token));
                let rest = at("path", &label).then(text);
                match route {
                    "rename" | "link" => {
                        let from = at("from", &format!("from-{}", self.number));
                        rest.then(Payload::text(",")).then(from)
                    }
                    _ => rest,
                }
            }
            "read" if matches!(route, "listdir" | "scandir") => at("path", &format!("{label}/none")),
            "read" | "process" => at("path", &label),
            "connect" => {
                let listener = LISTENERS[usize::from(self.guarded)];
                Payload::text(format!("\"host\":\"{host}\",\"port\":"))
                    .var(format!("{listener}.port"))
                    .then(Payload::text(format!(",\"text\":\"{}\",\"listener\":\"{listener}\"", self.token)))
            }
            "env_read" => Payload::text(format!("\"name\":\"{VARIABLE}\"")),
            _ => Payload::text(format!("\"name\":\"PEERPROOF_SET\",\"value\":\"{}\"", self.token)),
        };
        head.then(rest).then(Payload::text("}"))
    }
}

/// What shows the effect of a call; `None` where the payload is not that of its role. `session` is that of the call.
pub fn sign(plan: &Plan, session: usize, role: &str, payload: &Json) -> Option<Sign> {
    let text = |name: &str| payload.get(name).and_then(Json::as_str);
    let route = text("route")?;
    let label = || Some(text("path")?.rsplit('/').next()?.to_owned());
    let told = |text: String| Sign::Told { holds: text.into_bytes() };
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
            "mmap" | "overwrite" => found(Some(text("text")?)),
            "chmod" => Some(Sign::Mode { label: label()?, mode: MODE }),
            _ => found(None),
        },
        "process" => found(None),
        "connect" => Some(Sign::Hit {
            listener: text("listener")?.to_owned(),
            // Nothing whatever may come to the one that is closed.
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
        // It is written backwards, so that a message which quotes the request is no effect.
        "env_write" => Some(told(text("value")?.chars().rev().collect())),
        _ => None,
    }
}
