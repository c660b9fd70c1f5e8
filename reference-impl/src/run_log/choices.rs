//! What the contract leaves open for runners and replayers, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

choices! {
    /// Runner: how a `run_id` is spelled.
    run_id_form: RunIdForm = RunIdForm::Uuid, { "uuid" => RunIdForm::Uuid, "hex32" => RunIdForm::Hex32 };
    /// Runner: number of the first selection.
    first_step: u64 = 0, { "0" => 0, "1" => 1 };
    /// Runner: how a request without `request_id` shows on a line.
    request_id_absent: RequestIdAbsent = RequestIdAbsent::Absent, {
        "absent" => RequestIdAbsent::Absent, "null" => RequestIdAbsent::Null, "empty" => RequestIdAbsent::Empty
    };
    /// Runner: a patch of `{}` has a line `inputs_patched`.
    empty_patch_logged: bool = true, { "true" => true, "false" => false };
    /// Runner: `ASK_SUP` ends the run.
    ask_sup_ends: bool = true, { "true" => true, "false" => false };
    /// Runner: `INVALID` ends the run.
    invalid_ends: bool = true, { "true" => true, "false" => false };
    /// Runner: `tool_error` ends the run.
    tool_error_ends: bool = false, { "true" => true, "false" => false };
    /// Runner: a `control_mode` that has no meaning.
    control_mode_unknown: UnknownMode = UnknownMode::Refuse, {
        "default" => UnknownMode::Default, "refuse" => UnknownMode::Refuse
    };
    /// Runner: a `goal_id` that holds `|`.
    goal_id_with_bar: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Replayer: a byte order mark before the first line.
    log_bom: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: a line of nothing but white space.
    log_blank_line: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: a last line without LF.
    log_last_line_without_lf: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: another `spec_version` or `profile_id` than the defaults.
    other_spec_version: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: a `run_id` that is neither a UUID nor 32 hex digits.
    run_id_other_form: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: members of a patch item or its artifact that are not named, and `value:null` beside `remove`.
    patch_extra_members: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: `add` on a used slot, `replace` or `remove` on an empty one.
    patch_on_other_state: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: a `size_bytes` that is not the length of `content_json`.
    size_bytes_wrong: SizeBytes = SizeBytes::Fail, {
        "as_written" => SizeBytes::AsWritten, "correct" => SizeBytes::Correct, "fail" => SizeBytes::Fail
    };
    /// Replayer: a state digest in upper-case digits.
    digest_upper_case: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: `inputs_patched` after a PICK without `input_patch_json`.
    patch_without_selection_patch: Verdict = Verdict::Fail, {
        "accept" => Verdict::Accept, "fail" => Verdict::Fail
    };
    /// Replayer: the tool of a `tool_error` with `deterministic:true` is run again, and has to fail again.
    tool_error_rerun: bool = false, { "true" => true, "false" => false };
    /// Replayer: a second run in the file.
    two_runs: TwoRuns = TwoRuns::Fail, { "each" => TwoRuns::Each, "fail" => TwoRuns::Fail };
}

two! {
    /// See [`Choices::run_id_form`].
    RunIdForm { Uuid, Hex32 },
    /// See [`Choices::control_mode_unknown`].
    UnknownMode { Default, Refuse },
    /// What becomes of what the contract leaves to a peer.
    Verdict { Accept, Fail },
    /// See [`Choices::two_runs`].
    TwoRuns { Each, Fail },
}

impl Verdict {
    /// `Ok` for `Accept`, else the reason.
    ///
    /// # Errors
    /// The reason, for `Fail`.
    pub fn allow(self, reason: &str) -> Result<(), String> {
        match self {
            Self::Accept => Ok(()),
            Self::Fail => Err(reason.to_owned()),
        }
    }
}

/// See [`Choices::request_id_absent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIdAbsent {
    /// No member.
    Absent,
    /// `null`.
    Null,
    /// `""`.
    Empty,
}

/// See [`Choices::size_bytes_wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBytes {
    /// The number that was written.
    AsWritten,
    /// The number that is right.
    Correct,
    /// It is invalid.
    Fail,
}
