//! Table of the documented members of an envelope.

/// Allowed values of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This prefix and 16 lower-case hexadecimal digits.
    Id(&'static str),
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A date-time of RFC 3339.
    Time,
    /// A whole number not less than this.
    Count(i64),
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// A boolean.
    Flag,
    /// A list of strings.
    Names,
    /// A list of objects.
    Records,
    /// A list of completed stages.
    Stages,
    /// An object.
    Map,
    /// An object of objects.
    Maps,
    /// An object of goals, each with its status.
    Goals,
    /// Any value: the document gives only an example.
    Free,
}

/// A documented member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// Its name.
    pub name: &'static str,
    /// Its allowed values.
    pub kind: Kind,
    /// True if `null` is an allowed value.
    pub nullable: bool,
    /// True for the eight members that the schema requires.
    pub core: bool,
    /// Its default as JSON text; empty if it has none.
    pub default: &'static str,
}

const fn core(name: &'static str, kind: Kind, default: &'static str) -> Member {
    Member { name, kind, nullable: false, core: true, default }
}

const fn optional(name: &'static str, kind: Kind, default: &'static str) -> Member {
    Member { name, kind, nullable: false, core: false, default }
}

const fn nullable(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, nullable: true, core: false, default: "null" }
}

/// Allowed values of `terminal_reason`.
pub(crate) const TERMINAL_REASONS: &[&str] = &[
    "completed_successfully",
    "clarification_required",
    "confirmation_required",
    "denied_by_policy",
    "tool_failed_recoverably",
    "tool_failed_fatally",
    "max_iterations_exceeded",
    "max_llm_calls_exceeded",
    "max_agent_hops_exceeded",
    "max_critic_fires_exceeded",
];

/// Allowed statuses of a goal.
pub(crate) const GOAL_STATUSES: &[&str] = &["pending", "satisfied", "failed"];

/// Counters with their maximum and the terminal reason for reaching it.
pub(crate) const BOUNDS: [(&str, &str, &str); 3] = [
    ("iteration", "max_iterations", "max_iterations_exceeded"),
    ("llm_call_count", "max_llm_calls", "max_llm_calls_exceeded"),
    ("agent_hop_count", "max_agent_hops", "max_agent_hops_exceeded"),
];

/// Documented members, in the order of the document.
pub(crate) const MEMBERS: &[Member] = &[
    core("envelope_id", Kind::Id("env_"), ""),
    core("request_id", Kind::Id("req_"), ""),
    core("user_id", Kind::Text, "\"anonymous\""),
    core("session_id", Kind::Id("sess_"), ""),
    core("raw_input", Kind::Text, "\"\""),
    optional("received_at", Kind::Time, ""),
    core("outputs", Kind::Maps, "{}"),
    core("current_stage", Kind::Text, "\"start\""),
    optional("stage_order", Kind::Names, "[]"),
    optional("iteration", Kind::Count(0), "0"),
    optional("max_iterations", Kind::Count(1), "3"),
    optional("llm_call_count", Kind::Count(0), "0"),
    optional("max_llm_calls", Kind::Count(1), "10"),
    optional("agent_hop_count", Kind::Count(0), "0"),
    optional("max_agent_hops", Kind::Count(1), "21"),
    nullable("terminal_reason", Kind::OneOf(TERMINAL_REASONS)),
    core("terminated", Kind::Flag, "false"),
    nullable("termination_reason", Kind::Text),
    optional("clarification_pending", Kind::Flag, "false"),
    nullable("clarification_question", Kind::Text),
    nullable("clarification_response", Kind::Text),
    optional("confirmation_pending", Kind::Flag, "false"),
    nullable("confirmation_id", Kind::Text),
    nullable("confirmation_message", Kind::Text),
    nullable("confirmation_response", Kind::Flag),
    optional("completed_stages", Kind::Stages, "[]"),
    optional("current_stage_number", Kind::Count(1), "1"),
    optional("max_stages", Kind::Count(1), "5"),
    optional("all_goals", Kind::Names, "[]"),
    optional("remaining_goals", Kind::Names, "[]"),
    optional("goal_completion_status", Kind::Goals, "{}"),
    optional("prior_plans", Kind::Records, "[]"),
    optional("critic_feedback", Kind::Names, "[]"),
    optional("errors", Kind::Records, "[]"),
    nullable("completed_at", Kind::Time),
    optional("metadata", Kind::Map, "{}"),
    optional("processing_history", Kind::Free, "[]"),
];

/// Members of a completed stage.
pub(crate) const STAGE_MEMBERS: &[Member] = &[
    optional("stage_number", Kind::Whole, ""),
    optional("satisfied_goals", Kind::Names, "[]"),
    optional("summary", Kind::Map, "{}"),
    nullable("plan_id", Kind::Text),
];

/// Row of the member called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Member> {
    MEMBERS.iter().find(|member| member.name == name)
}
