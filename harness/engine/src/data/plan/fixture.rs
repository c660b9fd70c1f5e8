//! Fixtures around a peer, as data.

use serde::{Deserialize, Serialize};

use crate::data::payload::Payload;

/// Fixture around a peer. Names are plain words. Those of actors, files and paths may have folders before them
/// (`folder/file`), which are created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fixture {
    /// HTTP server on 127.0.0.1, and on the same port of ::1 if possible. Its variables are `{{name.port}}` and
    /// `{{name.address}}`.
    Listener {
        /// Name.
        name: String,
        /// Status of every reply.
        status: u16,
        /// `Location` header, which may name variables of other fixtures as `{{other.port}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// Body of every reply.
        body: Payload,
        /// Handling of requests and replies.
        #[serde(default, skip_serializing_if = "ListenerSettings::is_plain")]
        manner: ListenerSettings,
    },
    /// Program that the peer starts, a script for sh. Its variable is `{{name.path}}`.
    Actor {
        /// Name.
        name: String,
        /// Steps of a start.
        script: Vec<ActorStep>,
        /// Steps of the second, third … start; the last entry applies to all later starts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        later: Vec<Vec<ActorStep>>,
    },
    /// New file for the peer. Its variable is `{{name.path}}`.
    File {
        /// Name.
        name: String,
        /// Initial content.
        content: Payload,
        /// Permission bits, such as 0o755; `None` for those of new files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// Set if its content is recorded after an [`Act::Play`](super::Act::Play).
        #[serde(default)]
        kept: bool,
    },
    /// Folder for the peer, in which other fixtures may lie. Its variable is `{{name.path}}`.
    Folder {
        /// Name.
        name: String,
        /// Folders in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
        /// Set if every change in it and below is recorded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        watched: bool,
    },
    /// Unusual path for the peer. Its variable is `{{name.path}}`.
    Path {
        /// Name.
        name: String,
        /// Kind of file at the path.
        what: PathKind,
    },
}

impl Fixture {
    /// Name of the fixture.
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

/// Handling of requests and replies by a [`Fixture::Listener`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerSettings {
    /// Set if it reads and records the body of a request before it answers; otherwise it answers after the head.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// `Content-Type` of its replies; `None` for `text/plain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Set if datagrams to its port count as hits, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub datagrams: bool,
    /// Fault of its replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ReplyFault>,
    /// Separate reply for one path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Box<PathReply>>,
}

/// Separate reply of a [`Fixture::Listener`] for one path. Its hits and replies are recorded under the listener's name
/// followed by the path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathReply {
    /// Path, which begins with a slash.
    pub path: String,
    /// Status.
    pub status: u16,
    /// Body, without variables.
    pub body: Payload,
    /// Fault of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ReplyFault>,
}

impl ListenerSettings {
    /// True if all settings have their defaults.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// Fault of the replies of a [`Fixture::Listener`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFault {
    /// The reply never comes; the connection stays open.
    Silent,
    /// The connection closes in the middle of the body.
    Cut,
    /// The connection closes without a byte.
    Closed,
    /// The last character of the body repeats as long as the peer reads.
    Endless,
    /// As [`ReplyFault::Endless`], one byte at a time.
    Dribbled,
    /// The reply begins only after this time.
    Late {
        /// Milliseconds.
        ms: u64,
    },
    /// The head comes at once, and the body in pieces over this time.
    Trickled {
        /// Milliseconds.
        ms: u64,
    },
}

impl ReplyFault {
    /// Duration of a reply that ends, ms.
    pub fn lasts_ms(self) -> u64 {
        match self {
            Self::Late { ms } | Self::Trickled { ms } => ms,
            _ => 0,
        }
    }
}

/// Kind of file at a [`Fixture::Path`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// No file.
    Missing,
    /// A directory.
    Directory,
    /// File without execute permission.
    NotExecutable,
    /// Named pipe without a writer.
    Fifo,
    /// Socket without a listener.
    Socket,
    /// Exact copy of a program.
    Copy {
        /// Path of the program.
        of: String,
    },
    /// A symbolic link.
    Link {
        /// Target, which may be missing and may name fixtures as `{{other.path}}`.
        to: String,
    },
}

/// Exit status of an actor that the system refuses the resource of [`ActorStep::Exhaust`].
pub const REFUSED_STATUS: i32 = 9;

/// Step of an actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorStep {
    /// Reads standard input until one complete JSON object or its end, and records it.
    ReadRequest,
    /// Reads standard input to its end and records it.
    ReadToEnd,
    /// Answers and records requests until the input ends, using the boundary's program of this name.
    Converse(String),
    /// Lets the boundary's program of this name act on the file named by the last argument. Records the file as
    /// received, or empty if missing. Output of the program is not recorded.
    Perform(String),
    /// Writes to standard output.
    Stdout(Payload),
    /// Writes to standard error.
    Stderr(Payload),
    /// Repeats this unit on standard output until the reader is gone or `bytes_max` is reached.
    Flood {
        /// UTF-8 text.
        unit: String,
        /// Maximum number of bytes.
        bytes_max: u64,
    },
    /// Sleeps.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
    /// Closes standard output and lives on.
    CloseStdout,
    /// Starts a child that holds the inherited pipes and sleeps.
    ForkHolder {
        /// Life of the child unless ended earlier, milliseconds.
        ms: u64,
        /// Set if the child leaves the process group for a session of its own.
        leave_group: bool,
    },
    /// Records part of its surroundings, see [`crate::data::transcript::SightResult`].
    Look(Sight),
    /// Uses this amount of a resource and releases it. If the system refuses, the actor exits with [`REFUSED_STATUS`]
    /// or dies by the limit's signal without a core file. Otherwise the next step follows.
    Exhaust {
        /// Resource to use.
        what: Resource,
        /// Amount in the unit of the resource.
        amount: u64,
    },
    /// Writes this text to standard output with values from the JSON file named by its last argument.
    /// `⟦/menu/aid=X/sid⟧` stands for the string at that place, where `aid=X` selects the first item of a list with
    /// this member. `⟦/menu/aid=X/sid~upper-case⟧` stands for a near miss of it.
    Quote(String),
    /// Ignores SIGTERM from here on.
    IgnoreTerm,
    /// Dies of this signal number.
    Die(i32),
    /// Exits with this status.
    Exit(i32),
}

/// Subject of an actor's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// File named by the actor's last argument.
    Payload,
    /// Environment of the actor.
    Environment,
    /// Resource limits of the actor.
    Limits,
    /// Bytes on the actor's standard input within 200 ms.
    Stdin,
    /// Process status from the system: signals, groups, capabilities.
    Status,
}

/// Resource that an actor can exhaust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Processor time, seconds.
    Cpu,
    /// Memory allocated and touched, MiB.
    Memory,
    /// Bytes of an unnamed file in its temporary folder.
    FileBytes,
    /// Open file descriptors.
    OpenFiles,
    /// Simultaneous children, alive for at most 3 s.
    Processes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::plan::Plan;

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
