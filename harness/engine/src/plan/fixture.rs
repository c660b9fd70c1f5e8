//! What the harness plays around a peer, as data.

use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// Something around the peer that the harness plays. Names are plain words; those of actors, files and paths may have
/// folders before them (`folder/file`), which are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fixture {
    /// An HTTP server on 127.0.0.1, and on the same port of ::1 where it is there and free; `{{name.port}}` and `{{name.address}}` are its variables.
    Listener {
        /// Name.
        name: String,
        /// Status of every reply.
        status: u16,
        /// `Location` header; may hold variables of other fixtures as `{{other.port}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// Body of every reply.
        body: Payload,
        /// How requests are taken and replies given.
        #[serde(default, skip_serializing_if = "Manner::is_plain")]
        manner: Manner,
    },
    /// A program that the peer starts; `{{name.path}}` is its path. It is a script for sh.
    Actor {
        /// Name.
        name: String,
        /// What it does when it is started.
        script: Vec<ActorStep>,
        /// What it does instead at its second, third … start; the last of these goes on for all further ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        later: Vec<Vec<ActorStep>>,
    },
    /// A file for the peer, made anew; `{{name.path}}`.
    File {
        /// Name.
        name: String,
        /// What is in it at first.
        content: Payload,
        /// Its permission bits, such as 0o755; where there are none, those that new files get.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// What is in it after a [`Act::Play`](super::Act::Play) is recorded.
        #[serde(default)]
        kept: bool,
    },
    /// A folder for the peer; `{{name.path}}`. Other fixtures may lie in it.
    Folder {
        /// Name.
        name: String,
        /// Folders in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
        /// Whether each change in it and below it is recorded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        watched: bool,
    },
    /// A path for the peer to stumble over; `{{name.path}}`.
    Path {
        /// Name.
        name: String,
        /// What is there.
        what: PathKind,
    },
}

impl Fixture {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Listener { name, .. }
            | Self::Actor { name, .. }
            | Self::File { name, .. }
            | Self::Path { name, .. }
            | Self::Folder { name, .. } => name,
        }
    }
}

/// How a [`Fixture::Listener`] takes requests and gives replies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manner {
    /// It reads the body of a request before it answers, and records it; else it answers once the head is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// `Content-Type` of its replies; `text/plain` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Datagrams to the same port are hits as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub datagrams: bool,
    /// What is wrong with its replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ReplyFault>,
    /// What it replies at a path of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Box<Aside>>,
}

/// What a [`Fixture::Listener`] replies at one path, whatever it replies elsewhere. Hits and replies there are recorded under the
/// listener's name with the path behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aside {
    /// The path, which begins with a slash.
    pub path: String,
    /// Status.
    pub status: u16,
    /// Body, without variables.
    pub body: Payload,
    /// What is wrong with the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ReplyFault>,
}

impl Manner {
    /// Whether it is that of a listener about which nothing is said.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What can be wrong with the replies of a [`Fixture::Listener`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFault {
    /// They never come; the connection stays open.
    Silent,
    /// The connection ends in the middle of the body.
    Cut,
    /// The connection ends without a byte.
    Closed,
    /// Their last character comes again and again, for as long as somebody reads.
    Endless,
    /// As [`ReplyFault::Endless`], a byte at a time.
    Dribbled,
    /// They begin only after this long.
    Late {
        /// Milliseconds.
        ms: u64,
    },
    /// Their head comes at once, and their body in pieces over this long.
    Trickled {
        /// Milliseconds.
        ms: u64,
    },
}

impl ReplyFault {
    /// How long a reply that comes to its end takes, ms.
    pub fn lasts_ms(self) -> u64 {
        match self {
            Self::Late { ms } | Self::Trickled { ms } => ms,
            _ => 0,
        }
    }
}

/// What lies at the path of a [`Fixture::Path`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A file without the run bit.
    NotExecutable,
    /// A pipe with a name, into which nobody writes.
    Fifo,
    /// A socket with a name, at which nobody listens.
    Socket,
    /// A program that is the same as another one, byte by byte.
    Copy {
        /// Path of the other one.
        of: String,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, there or not; may hold variables of fixtures as `{{other.path}}`.
        to: String,
    },
}

/// Status of an actor to which the system refuses what [`ActorStep::Exhaust`] asks for.
pub const REFUSED_STATUS: i32 = 9;

/// One thing that an actor does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorStep {
    /// Read standard input until one complete JSON object or its end, and record it.
    ReadRequest,
    /// Read standard input to its end, and record it.
    ReadToEnd,
    /// Answer requests until the input ends, each recorded, as the boundary's program of this name says.
    Converse(String),
    /// Do what the boundary's program of this name says of what is in the file that its last argument names; that is recorded
    /// as received, and as nothing where there is no such file. What it says it writes is not recorded.
    Perform(String),
    /// Write to standard output.
    Stdout(Payload),
    /// Write to standard error.
    Stderr(Payload),
    /// Write this unit to standard output until nobody reads or `bytes_max` is reached.
    Flood {
        /// UTF-8 text.
        unit: String,
        /// Bound, bytes.
        bytes_max: u64,
    },
    /// Do nothing for this long.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
    /// Close standard output and live on.
    CloseStdout,
    /// Start a child that holds the inherited pipes and sleeps.
    ForkHolder {
        /// How long it lives if nobody ends it, milliseconds.
        ms: u64,
        /// Whether it leaves the process group (a session of its own).
        leave_group: bool,
    },
    /// Record what it was given; see [`crate::transcript::Seen`].
    Look(Sight),
    /// Use so much of a resource, and give it back. Where the system refuses, the actor exits with [`REFUSED_STATUS`] or
    /// is ended by the signal of the limit, without a core file; where it does not, the next step follows.
    Exhaust {
        /// Of what.
        what: Resource,
        /// How much, in the unit of the resource.
        amount: u64,
    },
    /// Write this text to standard output, with what the JSON file that its last argument names holds:
    /// `⟦/menu/aid=X/sid⟧` stands for the string at that place, where `aid=X` is the first item of a list that has this member;
    /// `⟦/menu/aid=X/sid~upper-case⟧` for its near miss of that kind.
    Quote(String),
    /// Ignore SIGTERM from here on.
    IgnoreTerm,
    /// End by this signal number.
    Die(i32),
    /// End with this status.
    Exit(i32),
}

/// What an actor looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// The file that its last argument names.
    Payload,
    /// Its environment.
    Environment,
    /// Its resource limits.
    Limits,
    /// What is on its standard input within 200 ms.
    Stdin,
    /// Its state as the system tells it: signals, groups, capabilities.
    Status,
}

/// What an actor can use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Time of a processor, seconds.
    Cpu,
    /// Memory that is allocated and touched, MiB.
    Memory,
    /// Bytes of a file in its temporary folder; the file has no name.
    FileBytes,
    /// Open descriptors.
    OpenFiles,
    /// Children that live at once, for 3 s at most.
    Processes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn fixtures_of_earlier_plans_still_load() {
        let text = r#"{"fixtures":[{"actor":{"name":"a","script":["read_request"]}},
            {"file":{"name":"b","content":[{"text":"x"}]}},{"path":{"name":"c","what":"missing"}}],
            "sessions":[],"steps":[]}"#;
        let plan: Plan = serde_json::from_str(text).unwrap();
        let content = Payload::text("x");
        let expected = [
            Fixture::Actor { name: "a".to_owned(), script: vec![ActorStep::ReadRequest], later: Vec::new() },
            Fixture::File { name: "b".to_owned(), content, mode: None, kept: false },
            Fixture::Path { name: "c".to_owned(), what: PathKind::Missing },
        ];
        assert_eq!(plan.fixtures, expected);
        let text = serde_json::to_string(&plan).unwrap();
        assert!(!text.contains("later") && !text.contains("mode"), "{text}");
    }

    #[test]
    fn fixtures_survive_storage() {
        let script = vec![
            ActorStep::Look(Sight::Payload),
            ActorStep::Exhaust { what: Resource::FileBytes, amount: 1 << 30 },
        ];
        let fixtures = vec![
            Fixture::Actor {
                name: "p/a".to_owned(),
                script,
                later: vec![vec![ActorStep::Exit(1)], Vec::new()],
            },
            Fixture::File {
                name: "b".to_owned(),
                content: Payload::default(),
                mode: Some(0o755),
                kept: true,
            },
            Fixture::Path { name: "c".to_owned(), what: PathKind::Link { to: "{{b.path}}".to_owned() } },
            Fixture::Folder { name: "d".to_owned(), folders: vec!["e".to_owned()], watched: true },
        ];
        let plan = Plan { fixtures, ..Plan::default() };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
    }
}
