//! What one payload lets one expect of a driver, as data.

use serde::{Deserialize, Serialize};

use super::super::block::{Block, Form, Open};
use super::super::choice::Choice;
use peerproof_engine::clause::ClauseId;
use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::payload::{Payload, Vars, shorten};

/// What is expected of one decision. Stored in the `expect` of the step that ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The clause that is broken when nothing of `allowed` fits.
    pub clause: ClauseId,
    /// Any one of these is right.
    pub allowed: Vec<Allowed>,
    /// Reason code when none fits; by default it is derived from what was printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which of the allowed outcomes came is the value of this choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// File of the payload among the fixtures; its menu is what may be picked from.
    pub payload: String,
    /// SIDs of that menu, where the payload is too large to be read for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub menu: Option<Vec<String>>,
    /// Whatever is wrong with what was printed, or left, breaks `clause` and not the clause about all decisions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub narrow: bool,
    /// Step of the decision that [`Allowed::Copied`] compares with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<usize>,
    /// What the model has to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// The conversation is about picks of this form: where none comes of any decision, it shows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Picked>,
}

/// What the model of a bridge has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The payload, by POST.
    Payload {
        /// Path and query.
        target: String,
    },
    /// With this `Authorization`, or without one.
    Authorization(Option<String>),
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// One valid block with status 0; a PICK is of the menu.
    Block,
    /// A PICK of the menu, in this form.
    Pick {
        /// Form; any of the three where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        form: Option<Picked>,
        /// This entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sid: Option<String>,
        /// A patch that equals this JSON text as a value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<Payload>,
    },
    /// A PICK with the patch of the twin, but that this JSON text stands where `from` stood. Says nothing of a driver
    /// that does not copy `from`.
    Copied {
        /// JSON text of a value in the twin's payload.
        from: String,
        /// JSON text of that value in the patch.
        to: String,
    },
    /// ASK_SUP or NOOP with status 0.
    NoPick,
    /// A non-zero status or a signal, whatever was printed.
    Failure,
}

/// Form of a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picked {
    /// Without a patch.
    Plain,
    /// With `<INP>`.
    Inp,
    /// With `<INP64>`.
    Inp64,
}

impl Picked {
    /// The form that the payload of a role is promised.
    pub fn of_role(role: &str) -> Self {
        match role {
            "pick_inp" => Self::Inp,
            "pick_inp64" => Self::Inp64,
            _ => Self::Plain,
        }
    }

    /// The form of a block.
    pub fn form(self) -> Form {
        match self {
            Self::Plain => Form::Pick,
            Self::Inp => Form::PickInp,
            Self::Inp64 => Form::PickInp64,
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "a PICK without a patch",
            Self::Inp => "a PICK with <INP>",
            Self::Inp64 => "a PICK with <INP64>",
        }
    }
}

impl Expect {
    /// One allowed outcome for `clause`.
    pub fn new(clause: &str, allowed: Allowed) -> Self {
        Self {
            clause: clause.into(),
            allowed: vec![allowed],
            reason: None,
            choice: None,
            payload: String::new(),
            menu: None,
            narrow: false,
            twin: None,
            asked: None,
            shows: None,
        }
    }

    /// One valid block; what it says is the driver's business.
    pub fn block(clause: &str) -> Self {
        Self::new(clause, Allowed::Block)
    }

    /// A PICK of the menu, in any form.
    pub fn pick(clause: &str) -> Self {
        Self::new(clause, Allowed::PICK)
    }

    /// Anything but a PICK: another form, or a failure.
    pub fn no_pick(clause: &str) -> Self {
        Self::new(clause, Allowed::NoPick).or(Allowed::Failure)
    }

    /// Adds another allowed outcome.
    #[must_use]
    pub fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Says that every fault of what is printed or left breaks this clause.
    #[must_use]
    pub fn narrow(mut self) -> Self {
        self.narrow = true;
        self
    }

    /// Says what the model has to be asked.
    #[must_use]
    pub fn asks(mut self, asked: Asked) -> Self {
        self.asked = Some(asked);
        self
    }

    /// Says that the conversation is about picks of this form.
    #[must_use]
    pub fn shows(mut self, form: Picked) -> Self {
        self.shows = Some(form);
        self
    }

    /// Says which SIDs may be picked, where the payload is not JSON or too large to be read for them.
    #[must_use]
    pub fn of_menu<S: Into<String>>(mut self, sids: impl IntoIterator<Item = S>) -> Self {
        self.menu = Some(sids.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the reason code for an outcome that does not fit.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Says which value of a choice each allowed outcome shows, in their order.
    #[must_use]
    pub fn choice(mut self, key: &str, values: &[&str]) -> Self {
        self.choice = Some(Choice::new(key, values));
        self
    }

    /// Whether the driver may fail.
    pub fn allows_failure(&self) -> bool {
        self.allowed.contains(&Allowed::Failure)
    }

    /// Index of the first allowed outcome that a valid block with status 0 fits; `twin` is the patch of the twin.
    pub fn fit(&self, block: &Block, twin: Option<&Json>) -> Option<usize> {
        self.allowed.iter().position(|allowed| allowed.fits(block, twin))
    }

    /// The value that a driver has to copy for this expectation to say anything.
    pub fn copied(&self) -> Option<Json> {
        self.allowed.iter().find_map(|allowed| match allowed {
            Allowed::Copied { from, .. } => from.parse().ok(),
            _ => None,
        })
    }

    /// What is expected, in one phrase.
    pub fn phrase(&self) -> String {
        self.allowed.iter().map(Allowed::phrase).collect::<Vec<_>>().join(", or ")
    }
}

impl Allowed {
    /// A PICK of the menu, in any form.
    pub const PICK: Self = Self::Pick { form: None, sid: None, patch: None };

    /// A PICK of the menu, in this form.
    pub fn in_form(form: Picked) -> Self {
        Self::Pick { form: Some(form), sid: None, patch: None }
    }

    fn fits(&self, block: &Block, twin: Option<&Json>) -> bool {
        match self {
            Self::Block => true,
            Self::Copied { from, to } => twin.is_some_and(|twin| is_copy(block, twin, from, to)),
            Self::Pick { form, sid, patch } => {
                block.sid.is_some()
                    && form.is_none_or(|form| form.form() == block.form)
                    && sid.as_ref().is_none_or(|sid| Some(sid) == block.sid.as_ref())
                    && patch.as_ref().is_none_or(|patch| value(patch).as_ref() == block.patch.as_ref())
            }
            Self::NoPick => matches!(block.form, Form::AskSup | Form::Noop),
            Self::Failure => false,
        }
    }

    fn phrase(&self) -> String {
        match self {
            Self::Block => "one valid block that picks from the menu if it picks".to_owned(),
            Self::Pick { form, sid, patch } => {
                let mut text = form.map_or("a PICK", Picked::word).to_owned();
                if let Some(sid) = sid {
                    text.push_str(&format!(" of {sid}"));
                }
                if let Some(patch) = patch {
                    text.push_str(&format!(" and the patch {}", patch.summary(120)));
                }
                text
            }
            Self::Copied { to, .. } => format!("the patch with {}", shorten(to, 60)),
            Self::NoPick => "ASK_SUP or NOOP".to_owned(),
            Self::Failure => "a non-zero exit".to_owned(),
        }
    }
}

/// Whether a block carries the patch of its twin with the value of `to` in the place of that of `from`.
fn is_copy(block: &Block, twin: &Json, from: &str, to: &str) -> bool {
    let read = |text: &str| json::decode(text.as_bytes(), &DecodeLimits::default()).ok();
    let (Some(from), Some(to)) = (read(from), read(to)) else { return false };
    // A decoded text does not show whether half a surrogate pair was in it.
    to.facts.lone_surrogates == block.open.contains(&Open::LoneSurrogates)
        && block.patch.as_ref() == Some(&replaced(twin, &from.value, &to.value))
}

/// A value with `to` wherever `from` stands in it.
fn replaced(value: &Json, from: &Json, to: &Json) -> Json {
    if value == from {
        return to.clone();
    }
    match value {
        Json::Array(items) => Json::Array(items.iter().map(|item| replaced(item, from, to)).collect()),
        Json::Object(members) => Json::Object(
            members.iter().map(|(name, value)| (name.clone(), replaced(value, from, to))).collect(),
        ),
        other => other.clone(),
    }
}

/// Whether a value stands anywhere in another.
pub fn holds(value: &Json, wanted: &Json) -> bool {
    value == wanted
        || match value {
            Json::Array(items) => items.iter().any(|item| holds(item, wanted)),
            Json::Object(members) => members.iter().any(|(_, value)| holds(value, wanted)),
            _ => false,
        }
}

/// The value that a payload of plain text denotes.
fn value(text: &Payload) -> Option<Json> {
    let bytes = text.expand(&Vars::new()).ok()?;
    json::decode(&bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}
