//! Expectation about a decision, as data.

use serde::{Deserialize, Serialize};

use super::super::block::{Block, Form, Open};
use super::super::choice::Choice;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars, shorten};

/// Expectation about one decision. Stored in the `expect` of the step that ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Clause that is broken if no allowed outcome fits.
    pub clause: ClauseId,
    /// Allowed outcomes.
    pub allowed: Vec<Allowed>,
    /// Reason code if none fits; by default derived from the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Choice whose value is shown by the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Name of the payload's fixture; its menu has the SIDs that may be picked.
    pub payload: String,
    /// SIDs of that menu, if the payload is too large to be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub menu: Option<Vec<String>>,
    /// Makes every fault of the output or the remains break `clause` instead of the clause about all decisions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub narrow: bool,
    /// Step of the decision that [`Allowed::Copied`] compares with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<usize>,
    /// Required request to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ModelRequest>,
    /// Form of the picks that the conversation tests. Without a decision in this form it proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<PickForm>,
}

/// Required request of a bridge to its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelRequest {
    /// The payload, sent by POST.
    Payload {
        /// Path and query.
        target: String,
    },
    /// A request with this `Authorization` header, or without one.
    Authorization(Option<String>),
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Allowed {
    /// One valid block with status 0. A PICK must be of the menu.
    Block,
    /// A PICK of the menu.
    Pick {
        /// Form; `None` allows all three.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        form: Option<PickForm>,
        /// SID of the picked entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sid: Option<String>,
        /// Patch that equals this JSON text as a value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<Payload>,
    },
    /// A PICK with the patch of the twin, in which `from` is replaced by this JSON text. Proves nothing about a
    /// driver that does not copy `from`.
    Copied {
        /// JSON text of a value in the twin's payload.
        from: String,
        /// JSON text of that value in the patch.
        to: String,
    },
    /// ASK_SUP or NOOP with status 0.
    NoPick,
    /// A non-zero status or a signal, whatever the output.
    Failure,
}

/// Form of a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PickForm {
    /// Without a patch.
    Plain,
    /// With `<INP>`.
    Inp,
    /// With `<INP64>`.
    Inp64,
}

impl PickForm {
    /// Form that the payload of a role promises.
    pub(crate) fn of_role(role: &str) -> Self {
        match role {
            "pick_inp" => Self::Inp,
            "pick_inp64" => Self::Inp64,
            _ => Self::Plain,
        }
    }

    /// Form of a block.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::Plain => Form::Pick,
            Self::Inp => Form::PickInp,
            Self::Inp64 => Form::PickInp64,
        }
    }

    /// Description in words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Plain => "a PICK without a patch",
            Self::Inp => "a PICK with <INP>",
            Self::Inp64 => "a PICK with <INP64>",
        }
    }
}

impl Expect {
    /// An expectation with one allowed outcome.
    pub(crate) fn new(clause: &str, allowed: Allowed) -> Self {
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

    /// Expects one valid block; the driver decides which.
    pub(crate) fn block(clause: &str) -> Self {
        Self::new(clause, Allowed::Block)
    }

    /// Expects a PICK of the menu, in any form.
    pub(crate) fn pick(clause: &str) -> Self {
        Self::new(clause, Allowed::PICK)
    }

    /// Expects anything but a PICK: another form, or a failure.
    pub(crate) fn no_pick(clause: &str) -> Self {
        Self::new(clause, Allowed::NoPick).or(Allowed::Failure)
    }

    /// Adds another allowed outcome.
    #[must_use]
    pub(crate) fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Makes every fault of the output or the remains break this clause.
    #[must_use]
    pub(crate) fn narrow(mut self) -> Self {
        self.narrow = true;
        self
    }

    /// Sets the required request to the model.
    #[must_use]
    pub(crate) fn asks(mut self, asked: ModelRequest) -> Self {
        self.asked = Some(asked);
        self
    }

    /// Sets the form of the picks that the conversation tests.
    #[must_use]
    pub(crate) fn shows(mut self, form: PickForm) -> Self {
        self.shows = Some(form);
        self
    }

    /// Sets the SIDs that may be picked, if the payload is not JSON or too large to be parsed.
    #[must_use]
    pub(crate) fn of_menu<S: Into<String>>(mut self, sids: impl IntoIterator<Item = S>) -> Self {
        self.menu = Some(sids.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the reason code of an outcome that does not fit.
    #[must_use]
    pub(crate) fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Sets the value of a choice for each allowed outcome, in order.
    #[must_use]
    pub(crate) fn choice(mut self, key: &str, values: &[&str]) -> Self {
        self.choice = Some(Choice::new(key, values));
        self
    }

    /// True if the driver may fail.
    pub(crate) fn allows_failure(&self) -> bool {
        self.allowed.contains(&Allowed::Failure)
    }

    /// Index of the first allowed outcome that fits a valid block with status 0; `twin` is the patch of the twin.
    pub(crate) fn fit(&self, block: &Block, twin: Option<&Json>) -> Option<usize> {
        self.allowed.iter().position(|allowed| allowed.fits(block, twin))
    }

    /// Value that a driver must copy for this expectation to mean anything.
    pub(crate) fn copied(&self) -> Option<Json> {
        self.allowed.iter().find_map(|allowed| match allowed {
            Allowed::Copied { from, .. } => from.parse().ok(),
            _ => None,
        })
    }

    /// Describes the expectation in one phrase.
    pub(crate) fn phrase(&self) -> String {
        self.allowed.iter().map(Allowed::phrase).collect::<Vec<_>>().join(", or ")
    }
}

impl Allowed {
    /// A PICK of the menu, in any form.
    pub(crate) const PICK: Self = Self::Pick { form: None, sid: None, patch: None };

    /// A PICK of the menu in this form.
    pub(crate) fn in_form(form: PickForm) -> Self {
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
                let mut text = form.map_or("a PICK", PickForm::word).to_owned();
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

/// True if a block has the patch of its twin, with the value of `to` instead of that of `from`.
fn is_copy(block: &Block, twin: &Json, from: &str, to: &str) -> bool {
    let read = |text: &str| json::decode(text.as_bytes(), &DecodeLimits::default()).ok();
    let (Some(from), Some(to)) = (read(from), read(to)) else { return false };
    // A decoded text does not show a lone surrogate.
    to.facts.lone_surrogates == block.open.contains(&Open::LoneSurrogates)
        && block.patch.as_ref() == Some(&replaced(twin, &from.value, &to.value))
}

/// A value in which `to` replaces each `from`.
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

/// True if `value` contains `wanted`.
pub(crate) fn holds(value: &Json, wanted: &Json) -> bool {
    value == wanted
        || match value {
            Json::Array(items) => items.iter().any(|item| holds(item, wanted)),
            Json::Object(members) => members.iter().any(|(_, value)| holds(value, wanted)),
            _ => false,
        }
}

/// JSON value of a plain text payload.
fn value(text: &Payload) -> Option<Json> {
    let bytes = text.expand(&Vars::new()).ok()?;
    json::decode(&bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}
