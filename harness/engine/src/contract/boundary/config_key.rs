//! Keys of `peerproof.toml`.

use std::fmt;

use crate::data::clause::Side;

/// Key that `peerproof.toml` may hold for a boundary. `list --config-keys` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// Name within its table.
    pub name: &'static str,
    /// Table and form of the value.
    pub form: KeyForm,
    /// Meaning in one sentence.
    pub meaning: &'static str,
    /// Side to which the key applies; `None` for both.
    pub side: Option<Side>,
}

/// Form of the value of a key, and with it the table that holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// Value under `[peer]` that every boundary has: one of these words, or a free value if there are none.
    General(&'static [&'static str]),
    /// Command line under `[peer]` with these placeholders.
    Command(&'static [Placeholder]),
    /// Table under `[roles]` with these members.
    Role(&'static [Member]),
    /// Feature that a peer has or lacks.
    Switch,
    /// Feature that is off, has one of these words or a list of them.
    Words(&'static [&'static str]),
    /// Feature that is on, off, or a table with these members.
    Settings(&'static [Member]),
    /// Feature that is off or a table with these members.
    OptionalTable(&'static [Member]),
    /// Setting under `[features]` whose form the boundary checks, see
    /// [`Discovery::check_setting`](super::Discovery::check_setting).
    Checked,
    /// Word under `[choices]` for an open clause.
    Choice(&'static [&'static str]),
    /// Number under `[limits]` with its minimum.
    Limit(u64),
}

/// Placeholder in the command line of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder {
    /// Text in the command line, with braces.
    pub text: &'static str,
    /// Consequence if the command line lacks it.
    pub absence: Absence,
}

/// Consequence of a placeholder that a command line lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The command line is refused.
    Refused,
    /// The placeholder is not needed.
    Allowed,
    /// The placeholder is appended.
    Appended,
    /// A variable of `env` must have it.
    InEnvironment,
}

/// Member of a table under `[roles]` or `[features]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Name of the member.
    pub name: &'static str,
    /// Other name; a table has exactly one of the two.
    pub alternative: Option<&'static str>,
    /// Set if a table without it is refused.
    pub is_required: bool,
    /// Type of its value.
    pub kind: MemberKind,
    /// Placeholders allowed in the strings of its value, with their braces.
    pub placeholders: &'static [&'static str],
}

/// Type of the value of a [`Member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// Any value.
    Any,
    /// Object without members.
    Empty,
    /// Path of a file, relative to the folder of the configuration.
    File,
    /// Integer that is not negative.
    Integer,
    /// Object.
    Object,
    /// JSON Pointer.
    Pointer,
    /// String that is not empty.
    String,
}

impl MemberKind {
    /// Word in lists of keys.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Empty => "empty",
            Self::File => "file",
            Self::Integer => "integer",
            Self::Object => "object",
            Self::Pointer => "pointer",
            Self::String => "string",
        }
    }
}

impl Placeholder {
    /// Placeholder that a command line must have.
    pub const fn required(text: &'static str) -> Self {
        Self { text, absence: Absence::Refused }
    }

    /// Placeholder that a command line may lack.
    pub const fn optional(text: &'static str) -> Self {
        Self { text, absence: Absence::Allowed }
    }

    /// Placeholder that is appended to a command line that lacks it.
    pub const fn appended(text: &'static str) -> Self {
        Self { text, absence: Absence::Appended }
    }

    /// Placeholder that the command line or a variable of `env` must have.
    pub const fn or_in_environment(text: &'static str) -> Self {
        Self { text, absence: Absence::InEnvironment }
    }

    /// Name without braces.
    pub fn name(&self) -> &'static str {
        self.text.trim_matches(['{', '}'])
    }
}

/// Writes `?` behind a placeholder that may be missing, `+` behind one that is appended, and `*` behind one that a
/// variable may have.
impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.absence {
            Absence::Refused => "",
            Absence::Allowed => "?",
            Absence::Appended => "+",
            Absence::InEnvironment => "*",
        };
        write!(f, "{}{mark}", self.text)
    }
}

impl Member {
    const fn new(name: &'static str, kind: MemberKind) -> Self {
        Self { name, alternative: None, is_required: true, kind, placeholders: &[] }
    }

    /// Required member: any value.
    pub const fn any(name: &'static str) -> Self {
        Self::new(name, MemberKind::Any)
    }

    /// Required member: an object without members.
    pub const fn empty(name: &'static str) -> Self {
        Self::new(name, MemberKind::Empty)
    }

    /// Required member: the path of a file.
    pub const fn file(name: &'static str) -> Self {
        Self::new(name, MemberKind::File)
    }

    /// Required member: an integer that is not negative.
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, MemberKind::Integer)
    }

    /// Required member: an object.
    pub const fn object(name: &'static str) -> Self {
        Self::new(name, MemberKind::Object)
    }

    /// Required member: a JSON Pointer.
    pub const fn pointer(name: &'static str) -> Self {
        Self::new(name, MemberKind::Pointer)
    }

    /// Required member: a string that is not empty.
    pub const fn string(name: &'static str) -> Self {
        Self::new(name, MemberKind::String)
    }

    /// Makes a table without the member valid.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    /// Lets a table have a member of another name instead.
    #[must_use]
    pub const fn or(self, alternative: &'static str) -> Self {
        Self { alternative: Some(alternative), ..self }
    }

    /// Makes the value a template with these placeholders.
    #[must_use]
    pub const fn with(self, placeholders: &'static [&'static str]) -> Self {
        Self { placeholders, ..self }
    }

    /// Both names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alternative)
    }
}

/// Writes `name: type`, with `?` behind the name of an optional member, `|` between two names, and the placeholders
/// behind the type.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_required { "" } else { "?" };
        write!(f, "{}", self.name)?;
        if let Some(alternative) = self.alternative {
            write!(f, "|{alternative}")?;
        }
        write!(f, "{mark}: {}", self.kind.word())?;
        self.placeholders.iter().try_for_each(|text| write!(f, " {text}"))
    }
}

impl ConfigKey {
    /// Choice among the values of a repeated key.
    pub const DUPLICATE_KEYS: Self = Self::choice(
        "duplicate_keys",
        &["last", "first", "refuse"],
        "Handling of a repeated key in one object: the last value counts, the first one, or the object is \
         refused",
    );
    /// Choice of the handling of an unpaired surrogate in a string.
    pub const LONE_SURROGATES: Self = Self::choice(
        "lone_surrogates",
        &["echo", "replace", "refuse"],
        "Handling of an unpaired surrogate such as `\\ud800`",
    );
    /// Choice of the handling of integers that a double cannot represent.
    pub const BIG_INTEGERS: Self =
        Self::choice("big_integers", &["exact", "round", "refuse"], "Handling of integers beyond ±(2^53−1)");

    /// Key with a value of this form.
    const fn new(name: &'static str, form: KeyForm, meaning: &'static str) -> Self {
        Self { name, form, meaning, side: None }
    }

    /// Key of `[peer]` that every boundary has.
    pub(crate) const fn general(
        name: &'static str,
        words: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self::new(name, KeyForm::General(words), meaning)
    }

    /// Command line of a command with these placeholders.
    pub const fn command(
        name: &'static str,
        placeholders: &'static [Placeholder],
        meaning: &'static str,
    ) -> Self {
        Self::new(name, KeyForm::Command(placeholders), meaning)
    }

    /// Role given as a table with these members. The first one names the peer's own tool or method.
    pub const fn role(name: &'static str, members: &'static [Member], meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Role(members), meaning)
    }

    /// Feature that a peer has or lacks.
    pub const fn feature(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Switch, meaning)
    }

    /// Feature that is on, off, or a table with these settings.
    pub const fn set_feature(name: &'static str, members: &'static [Member], meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Settings(members), meaning)
    }

    /// Feature that is off, has one of these values or a list of them.
    pub const fn feature_with_values(
        name: &'static str,
        values: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self::new(name, KeyForm::Words(values), meaning)
    }

    /// Feature that is either off or a table with these settings.
    pub const fn optional_feature(
        name: &'static str,
        members: &'static [Member],
        meaning: &'static str,
    ) -> Self {
        Self::new(name, KeyForm::OptionalTable(members), meaning)
    }

    /// Setting under `[features]` whose form the boundary checks, see
    /// [`Discovery::check_setting`](super::Discovery::check_setting).
    pub const fn setting(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Checked, meaning)
    }

    /// Open clause with its possible values.
    pub const fn choice(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Choice(values), meaning)
    }

    /// Number that the contract lets a peer set.
    pub const fn limit(name: &'static str, meaning: &'static str) -> Self {
        Self::limit_from(name, 0, meaning)
    }

    /// Number with a minimum that the contract lets a peer set.
    pub const fn limit_from(name: &'static str, min: u64, meaning: &'static str) -> Self {
        Self::new(name, KeyForm::Limit(min), meaning)
    }

    /// Start-up time of a peer in milliseconds, see [`Peer::pace`](crate::drive::peer::Peer::pace).
    pub const STARTUP_MS: Self = Self::limit(
        "startup_ms",
        "Start-up time of a process in milliseconds, unless a longer one is measured; time limits include it",
    );

    /// Restricts the key to one side.
    #[must_use]
    pub const fn of(self, side: Side) -> Self {
        Self { side: Some(side), ..self }
    }

    /// Table of the key: `peer`, `roles`, `features`, `choices` or `limits`.
    pub const fn table(&self) -> &'static str {
        match self.form {
            KeyForm::General(_) | KeyForm::Command(_) => "peer",
            KeyForm::Role(_) => "roles",
            KeyForm::Switch
            | KeyForm::Words(_)
            | KeyForm::Settings(_)
            | KeyForm::OptionalTable(_)
            | KeyForm::Checked => "features",
            KeyForm::Choice(_) => "choices",
            KeyForm::Limit(_) => "limits",
        }
    }

    /// Words of which the value is one; none if it is free or has another form.
    pub const fn words(&self) -> &'static [&'static str] {
        match self.form {
            KeyForm::General(words) | KeyForm::Words(words) | KeyForm::Choice(words) => words,
            _ => &[],
        }
    }

    /// Members of the table that the value is.
    pub const fn members(&self) -> &'static [Member] {
        match self.form {
            KeyForm::Role(members) | KeyForm::Settings(members) | KeyForm::OptionalTable(members) => members,
            _ => &[],
        }
    }

    /// Placeholders of the command line that the value is.
    pub const fn placeholders(&self) -> &'static [Placeholder] {
        match self.form {
            KeyForm::Command(placeholders) => placeholders,
            _ => &[],
        }
    }

    /// True if [`ConfigKey::setting`] made this key.
    pub const fn is_setting(&self) -> bool {
        matches!(self.form, KeyForm::Checked)
    }

    /// Allowed values for people: words, the members of a table in braces, `64..` for a minimum, `…` for a form that the
    /// boundary checks.
    pub fn shown_values(&self) -> Vec<String> {
        let table = || format!("{{ {} }}", self.shown_members().join(", "));
        match self.form {
            KeyForm::Switch => vec!["true".to_owned(), "false".to_owned()],
            KeyForm::Settings(_) => vec!["true".to_owned(), "false".to_owned(), table()],
            KeyForm::OptionalTable(_) => vec!["false".to_owned(), table()],
            KeyForm::Checked => vec!["…".to_owned()],
            KeyForm::Limit(min) if min > 0 => vec![format!("{min}..")],
            _ => self.words().iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    /// Placeholders or members of the value, for people.
    pub fn shown_members(&self) -> Vec<String> {
        let placeholders = self.placeholders().iter().map(ToString::to_string);
        placeholders.chain(self.members().iter().map(ToString::to_string)).collect()
    }
}
