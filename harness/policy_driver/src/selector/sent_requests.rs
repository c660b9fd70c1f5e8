//! Sent requests, each with its expectation and the events up to the next one.

use super::super::block::{self, Block};
use super::super::request::FALLBACK_ONLY;
use super::expect::{Allowed, Expect};
use super::selection::Selection;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// One request line.
pub(super) struct SentRequest {
    /// Step that sent it.
    pub step: usize,
    /// True for a canary.
    pub canary: bool,
    /// Expectation.
    pub expect: Expect,
    /// The request, if it is strict JSON.
    pub request: Option<Json>,
    /// Time of sending, microseconds.
    pub at_us: u64,
    /// Index, within its session, of the event that began it. Earlier Selections do not answer it.
    pub sent: usize,
    /// Number of drivers started before the next request.
    pub starts: u32,
    /// Index of the first event from this request on.
    pub from: usize,
    /// Index after its last event.
    pub to: usize,
}

/// All requests of a session, in order.
pub(super) fn asked(transcript: &Transcript, session: usize) -> Vec<SentRequest> {
    let begun = lines::begun(transcript, session);
    let mut all: Vec<SentRequest> = Vec::new();
    for (index, event) in transcript.events.iter().enumerate() {
        if event.session != session {
            continue;
        }
        match &event.kind {
            EventKind::Sent { step, payload } => {
                let Some(planned) = transcript.plan.steps.get(*step) else { continue };
                let bytes = payload.expand(&Vars::new()).unwrap_or_default();
                let mut expects = Expect::of_step(&planned.expect);
                if expects.is_empty() && transcript.plan.by_model {
                    // The model derives the expectation.
                    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
                    expects = vec![Expect::new("PD-SEL-01", Allowed::Anything); lines];
                }
                if expects.is_empty() {
                    continue;
                }
                if let Some(last) = all.last_mut() {
                    last.to = index;
                }
                let mut texts = bytes.split(|byte| *byte == b'\n');
                let last = expects.len() - 1;
                let (first, other) = begun.get(step).copied().unwrap_or_default();
                for (place, expect) in expects.into_iter().enumerate() {
                    let line = texts.next().unwrap_or_default().trim_ascii();
                    // Later events count for the last line of a write.
                    let to = if place == last { transcript.events.len() } else { index };
                    all.push(SentRequest {
                        step: *step,
                        canary: planned.canary,
                        expect,
                        request: json::decode(line, &DecodeLimits::default()).ok().map(|it| it.value),
                        at_us: event.at_us,
                        sent: if place == 0 { first } else { other },
                        starts: 0,
                        from: index,
                        to,
                    });
                }
            }
            EventKind::ActorStarted { .. } => {
                if let Some(last) = all.last_mut() {
                    last.starts += 1;
                }
            }
            _ => {}
        }
    }
    all
}

/// Clause, if other than that of the expectation, and reason code of a Selection that does not fit.
pub(super) type Misfit = (Option<&'static str>, &'static str);

/// Clauses about Selections that every conversation can break.
mod clause {
    pub(crate) const PATCH: &str = "PD-SELN-03";
    /// Clauses about the acceptance of patches.
    pub(crate) const OF_PATCHES: [&str; 5] =
        ["PD-GRAM-08", "PD-GRAM-09", "PD-GRAM-12", "PD-GRAM-17", "PD-SEL-17"];
    pub(crate) const RAW: &str = "PD-SELN-04";
    pub(crate) const SAME_AS_FALLBACK: &str = "PD-SELN-05";
    pub(crate) const RAW_NO_BLOCK: &str = "PD-SELN-06";
    pub(crate) const MERGED: &str = "PD-SELN-07";
    pub(crate) const MERGED_SPECIAL: &str = "PD-SELN-08";
    pub(crate) const MERGED_MEMBER: &str = "PD-SELN-09";
    pub(crate) const RAW_TELLS: &str = "PD-SELN-10";
    pub(crate) const DISALLOWED: &str = "PD-ALLOW-03";
}

/// Size of a block with a patch of 4 KiB, up to which merged inputs are promised, bytes.
const MERGED_BYTES_MAX: usize = 4_096 + "<PICK><SID0000><INP></INP><END>".len();

impl SentRequest {
    /// Index of the request that showed the fallback for this one: the same request with FALLBACK_ONLY.
    pub(crate) fn fallback(&self, all: &[SentRequest]) -> Option<usize> {
        let request = self.request.as_ref().filter(|_| self.expect.may_fall_back())?;
        let same = |name: &str, twin: &Json| twin.get(name) == request.get(name);
        all.iter().position(|asked| {
            asked.request.as_ref().is_some_and(|twin| {
                twin.get("control_mode").and_then(Json::as_str) == Some(FALLBACK_ONLY)
                    && ["inputs", "menu", "goal_digest", "state_digest"].iter().all(|name| same(name, twin))
            })
        })
    }

    /// Index of the allowed outcome that the Selection fits.
    ///
    /// # Errors
    /// No allowed outcome fits. The error describes the nearest one.
    pub(crate) fn fit(
        &self,
        selection: &Selection,
        fallback: Option<&Selection>,
        transcript: &Transcript,
    ) -> Result<usize, Misfit> {
        let mut nearest: Option<Misfit> = None;
        for (place, allowed) in self.expect.allowed.iter().enumerate() {
            let misfit = self.fit_one(allowed, selection, fallback, transcript);
            match misfit {
                Ok(()) => return Ok(place),
                // An outcome with a clause of its own is nearer.
                Err(misfit) if misfit.0.is_some() || nearest.is_none() => nearest = Some(misfit),
                Err(_) => {}
            }
        }
        Err(nearest.unwrap_or((None, "nothing_allowed")))
    }

    fn fit_one(
        &self,
        allowed: &Allowed,
        selection: &Selection,
        fallback: Option<&Selection>,
        transcript: &Transcript,
    ) -> Result<(), Misfit> {
        match allowed {
            Allowed::Taken(block) => self.taken(block, selection, transcript),
            Allowed::Fallback if self.expect.is_about_fallback => {
                fell_back(selection, fallback).map_err(|(_, reason)| (None, reason))
            }
            Allowed::Fallback => fell_back(selection, fallback),
            Allowed::Invalid if selection.kind == "INVALID" => self.reason_given(selection),
            Allowed::Invalid => Err((None, "not_invalid")),
            Allowed::Anything => Ok(()),
            Allowed::Nothing => Err((None, "answered")),
            Allowed::Undecided { came, .. } => self.fit_one(came, selection, fallback, transcript),
        }
    }

    /// Checks that an INVALID Selection gives a reason, if it must.
    fn reason_given(&self, selection: &Selection) -> Result<(), Misfit> {
        let has_to = self.expect.clause.0 == clause::DISALLOWED;
        if has_to && !selection.tells_why() { Err((None, "tells_no_reason")) } else { Ok(()) }
    }

    /// Finding about a fallback without a reason, although a driver ran.
    pub(crate) fn tells_nothing(&self, place: usize, selection: &Selection) -> Option<Finding> {
        let fell_back = self.expect.allowed.get(place) == Some(&Allowed::Fallback);
        (fell_back && self.starts > 0 && selection.raw.is_empty()).then(|| {
            let expected = "a `raw` with the reason why the internal selector answers";
            Finding::new(clause::RAW_TELLS, "raw_tells_nothing", expected, selection.text.clone())
        })
    }

    /// Checks that the Selection is the one that the driver's block spells.
    fn taken(&self, text: &Payload, selection: &Selection, transcript: &Transcript) -> Result<(), Misfit> {
        let bytes = text.expand(&Vars::new()).unwrap_or_default();
        let Ok(block) = block::parse_within(&bytes, usize::MAX) else {
            return Err((None, "no_block_expected"));
        };
        if selection.kind != block.form.kind() {
            return Err((None, if selection.kind == "INVALID" { "invalid" } else { "not_taken" }));
        }
        if selection.sid.as_deref() != block.sid.as_deref() {
            return Err((None, "other_sid"));
        }
        if selection.patch.as_ref() != block.patch.as_ref() {
            let is_about_it = clause::OF_PATCHES.contains(&self.expect.clause.0.as_str());
            return Err(((!is_about_it).then_some(clause::PATCH), "other_patch"));
        }
        if !selection.raw.as_bytes().windows(block.span.len()).any(|part| part == &bytes[block.span.clone()])
        {
            return Err((Some(clause::RAW), "raw_without_block"));
        }
        self.merged(&block, selection, transcript)
    }

    /// Checks that the merged inputs are those of the request with the patch.
    fn merged(&self, block: &Block, selection: &Selection, transcript: &Transcript) -> Result<(), Misfit> {
        let patch = block.patch.as_ref();
        // If peers may read other inputs in the request, the merge is open.
        if self.expect.given.as_ref().is_some_and(|given| !given.inputs.is_empty()) {
            return Ok(());
        }
        let Some(Json::Object(inputs)) = self.request.as_ref().and_then(|request| request.get("inputs"))
        else {
            return Ok(());
        };
        let mut merged = Json::Object(inputs.clone());
        for (name, value) in patch.and_then(Json::as_object).unwrap_or_default() {
            merged.set(name, value.clone());
        }
        match (&selection.inputs, patch) {
            (Some(inputs), _) if *inputs == merged => Ok(()),
            (Some(_), None) => Err((Some(clause::MERGED_MEMBER), "other_inputs")),
            (Some(inputs), Some(patch)) => {
                let is_special =
                    |name: &str| ["__proto__", "constructor", "sid", "", "inputs"].contains(&name);
                let differs = patch.as_object().unwrap_or_default().iter().any(|(name, value)| {
                    (value.is_null() || is_special(name)) && inputs.get(name) != Some(value)
                });
                let clause = match self.expect.clause.0.as_str() {
                    clause::MERGED_MEMBER => clause::MERGED_MEMBER,
                    _ if differs => clause::MERGED_SPECIAL,
                    _ => clause::MERGED,
                };
                Err((Some(clause), "other_inputs"))
            }
            (None, Some(_)) => {
                let is_promised =
                    block.span.len() <= MERGED_BYTES_MAX && transcript.facts.claims("merged_inputs");
                if is_promised { Err((Some(clause::MERGED), "no_inputs")) } else { Ok(()) }
            }
            (None, None) => Ok(()),
        }
    }
}

/// Checks that the Selection is the fallback.
pub(super) fn fell_back(selection: &Selection, fallback: Option<&Selection>) -> Result<(), Misfit> {
    let is_block = block::parse_within(selection.raw.as_bytes(), usize::MAX).is_ok();
    let Some(fallback) = fallback else {
        return if is_block { Err((None, "taken")) } else { Ok(()) };
    };
    if selection.kind == "INVALID" && fallback.kind != "INVALID" {
        return Err((None, "invalid"));
    }
    if selection.kind != fallback.kind || selection.sid != fallback.sid {
        // Taken from the driver's output, which has tags or near misses of them; otherwise the fallback of another
        // request.
        let is_taken =
            is_block || selection.patch.is_some() || selection.raw.contains(['<', '[', '\u{FF1C}']);
        let clause = (!is_taken).then_some(clause::SAME_AS_FALLBACK);
        return Err((clause, if clause.is_some() { "other_fallback" } else { "taken" }));
    }
    if selection.patch.is_some() {
        return Err((Some(clause::SAME_AS_FALLBACK), "patch_in_fallback"));
    }
    if is_block { Err((Some(clause::RAW_NO_BLOCK), "raw_is_a_block")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::super::request::Request;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;

    fn selection(text: &str) -> Selection {
        Selection::of(text.parse().unwrap(), text.as_bytes())
    }

    fn asked(expect: Expect, starts: u32) -> SentRequest {
        let request = Some(Request::plain().0);
        SentRequest { step: 0, canary: false, expect, request, at_us: 0, sent: 0, starts, from: 0, to: 0 }
    }

    fn transcript() -> Transcript {
        let mut facts = Facts::new(Side::Consumer);
        facts.features.insert("merged_inputs".to_owned(), true.into());
        Transcript {
            boundary: "policy_driver".to_owned(),
            check: "by-hand".to_owned(),
            facts: facts.into(),
            plan: peerproof_engine::data::plan::Plan::default().into(),
            timeout_scale: 1.0,
            events: Vec::new(),
        }
    }

    #[test]
    fn raw_of_a_fallback_may_be_empty_and_is_missed_only_where_a_driver_ran() {
        let fallback = selection(r#"{"kind":"NOOP","raw":"why"}"#);
        let empty = selection(r#"{"kind":"NOOP","raw":""}"#);
        let block = selection(r#"{"kind":"NOOP","raw":" <NOOP><END>\n"}"#);
        assert_eq!(fell_back(&empty, Some(&fallback)), Ok(()));
        assert_eq!(fell_back(&block, Some(&fallback)), Err((Some("PD-SELN-06"), "raw_is_a_block")));
        let missed = |starts| asked(Expect::fallback("C"), starts).tells_nothing(0, &empty);
        assert_eq!(missed(0), None);
        assert_eq!(missed(1).map(|finding| finding.clause.0), Some("PD-SELN-10".to_owned()));
    }

    #[test]
    fn merged_inputs_are_promised_for_patches_of_4_kib() {
        let fit = |bytes: usize| {
            let patch = format!("{{\"k\":\"{}\"}}", "x".repeat(bytes - 8));
            let block = format!("<PICK><SID0042><INP>{patch}</INP><END>");
            let texts = [patch, block.clone()].map(|text| Json::from(text).to_text());
            let [patch, raw] = texts;
            let text = format!(
                "{{\"kind\":\"PICK\",\"sid\":\"SID0042\",\"input_patch_json\":{patch},\"raw\":{raw}}}"
            );
            asked(Expect::taken("C", block), 1).fit(&selection(&text), None, &transcript())
        };
        assert_eq!(fit(4_096), Err((Some("PD-SELN-07"), "no_inputs")));
        assert_eq!(fit(4_097), Ok(0));
    }

    #[test]
    fn a_reason_may_stand_in_a_member_of_its_own() {
        let fit =
            |text: &str| asked(Expect::refused("PD-ALLOW-03"), 0).fit(&selection(text), None, &transcript());
        assert_eq!(fit(r#"{"kind":"INVALID","raw":"","error":"x"}"#), Ok(0));
        assert_eq!(fit(r#"{"kind":"INVALID","raw":"x"}"#), Ok(0));
        assert_eq!(fit(r#"{"kind":"INVALID","raw":""}"#), Err((None, "tells_no_reason")));
        let malformed = asked(Expect::invalid("PD-SEL-05"), 0);
        assert_eq!(malformed.fit(&selection(r#"{"kind":"INVALID","raw":""}"#), None, &transcript()), Ok(0));
    }
}
