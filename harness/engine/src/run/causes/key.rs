//! Identities of faults.

use sha2::{Digest as _, Sha256};

use super::Name;
use crate::data::finding::occasion::{EXIT_STATUS, MessageKind};
use crate::data::finding::{Finding, Nature, Repair};
use crate::data::text::hex;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 12;
/// Maximum length of a value in a key: longer values are results and texts.
const TARGET_BYTES_MAX: usize = 40;

/// Boundary, program, reason and repair of a finding whose only sign is its clause.
pub(super) type ClauseOnlyKey<'a> = (&'a str, &'a str, &'a str, Option<&'a Repair>);

/// Identity of a fault. Findings with equal keys belong to one cause.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultKey<'a> {
    pub(super) boundary: &'a str,
    pub(super) program: &'a str,
    pub(super) reason: &'a str,
    pub(super) sign: FaultSign<'a>,
}

/// Part of a key that names the fault.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FaultSign<'a> {
    /// A place of the answer holds a wrong value. The right value `to` counts unless it depends on the message.
    Place { at: String, to: Option<&'a str> },
    /// The peer died with this error, or refused a message with it.
    Died(&'a str),
    /// The peer broke down at a message without a request.
    Breakdown(MessageKind),
    /// One clause is broken in one way at many places of answers.
    Places(&'a str),
    /// Many clauses are broken in one manner.
    Manner,
    /// All checks of a folder fail in one manner.
    Folder(&'a str),
    /// Messages that are cut, large or sent with others fail in one manner, plain ones do not.
    Carriage,
    /// Only the clause is known.
    Clause(&'a str),
}

impl<'a> FaultKey<'a> {
    pub(super) fn of(check: &'a str, finding: &'a Finding, (clause, reason): Name<'a>) -> Self {
        let mut parts = check.split('/');
        let boundary = parts.next().unwrap_or_default();
        let occasion = finding.occasion.as_ref();
        // Records of earlier versions lack the occasion, or the program.
        let program = occasion.map_or_else(|| parts.next().unwrap_or_default(), |it| it.program.as_str());
        let is_uncaught = occasion.is_some_and(|it| it.is_uncaught);
        let died_with = died_with(finding).filter(|_| finding.reason != EXIT_STATUS || is_uncaught);
        // Only the moment at which the harness notices the end tells these apart.
        let has_died = died_with.is_some() && (finding.nature == Nature::Crash || is_uncaught);
        let reason = if has_died { "crashed" } else { reason };
        let sign = match &finding.repair {
            _ if occasion.is_some_and(|it| it.is_of_method) => FaultSign::Places(&clause.0),
            Some(Repair::Set { at, to }) if !at.is_empty() => FaultSign::Place {
                at: without_indices(at),
                to: to
                    .as_deref()
                    .filter(|to| to.len() <= TARGET_BYTES_MAX && !occasion.is_some_and(|it| it.is_echo)),
            },
            _ => {
                let broke_down = matches!(finding.nature, Nature::Crash | Nature::Hang);
                let is_unread = |it: &MessageKind| {
                    it.has_no_meaning() && (broke_down || it.is_no_json() && finding.lacks_answer())
                };
                let stimulus = occasion.map(|it| it.stimulus).filter(is_unread);
                died_with
                    .map(FaultSign::Died)
                    .or(stimulus.map(FaultSign::Breakdown))
                    .unwrap_or(FaultSign::Clause(&clause.0))
            }
        };
        Self { boundary, program, reason, sign }
    }

    /// Parent place and name of the wrong member.
    pub(super) fn holder(&self) -> Option<(&str, &str)> {
        match &self.sign {
            FaultSign::Place { at, .. } => at.rsplit_once('/'),
            _ => None,
        }
    }

    pub(super) fn manner(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let is_unread = matches!(self.sign, FaultSign::Breakdown(_)) && finding.nature == Nature::Violation;
        let is_by_clause = matches!(self.sign, FaultSign::Clause(_)) || is_unread;
        is_by_clause.then_some((self.boundary, self.program, self.reason, finding.repair.as_ref()))
    }

    /// Manner of a finding that the wrong answer to a plain request may explain. A peer that ends without an answer ends in
    /// one manner, whatever the message was.
    pub(super) fn manner_of_plain(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let has_ended = finding.nature == Nature::Crash && finding.lacks_answer();
        let is_open = matches!(self.sign, FaultSign::Clause(_) | FaultSign::Breakdown(_));
        let of_end = (self.boundary, self.program, "crashed", finding.repair.as_ref());
        (has_ended && is_open).then_some(of_end).or_else(|| self.manner(finding))
    }

    /// Manner of a finding that the carriage of its message may explain. A missing answer is one however long the
    /// harness waited.
    pub(super) fn manner_of_carriage(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let is_open = matches!(
            self.sign,
            FaultSign::Clause(_) | FaultSign::Breakdown(MessageKind::Lines | MessageKind::Large)
        );
        let reason = if finding.lacks_answer() { "no_reply" } else { self.reason };
        (is_open && finding.nature != Nature::Crash).then_some((
            self.boundary,
            self.program,
            reason,
            finding.repair.as_ref(),
        ))
    }

    pub(super) fn id(&self) -> String {
        let Self { boundary, program, reason, sign } = self;
        let sign = match sign {
            FaultSign::Place { at, to } => format!("{at}\n{}", to.unwrap_or_default()),
            FaultSign::Died(error) => format!("died with {error}"),
            FaultSign::Breakdown(stimulus) => format!("{stimulus:?}"),
            FaultSign::Places(clause) => format!("{clause} in places"),
            FaultSign::Manner => "many clauses".to_owned(),
            FaultSign::Folder(folder) => (*folder).to_owned(),
            FaultSign::Carriage => "carriage".to_owned(),
            FaultSign::Clause(clause) => (*clause).to_owned(),
        };
        let mut id = hex(&Sha256::digest(format!("{boundary}\n{program}\n{reason}\n{sign}")));
        id.truncate(ID_DIGITS);
        id
    }
}

pub(super) fn died_with(finding: &Finding) -> Option<&str> {
    finding.occasion.as_ref()?.died_with.as_deref()
}

/// JSON Pointer with `*` for each array index.
fn without_indices(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = pointer.split('/').map(|part| if is_index(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}
