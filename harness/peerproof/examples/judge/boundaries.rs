//! Data about each boundary for the judge: the words of `refpeer`, and further forms of its references.

use peerproof_engine::data::clause::Side;

/// Scope of judging one boundary.
#[derive(Clone, Copy)]
pub(crate) struct Judged {
    /// Name of the boundary.
    pub boundary: &'static str,
    /// Sides whose references are in the mutated folder.
    pub sides: &'static [Side],
    /// Name of a reference for `refpeer`, by the first argument that `peerproof peer` takes for it. The last one has no
    /// such argument, or keeps it.
    pub words: &'static [(&'static str, &'static str)],
    /// Choices that the checks are not given, because the remaining behaviour fits two values.
    pub untold: &'static [&'static str],
    /// Forms besides the plain references and their choices.
    pub forms: &'static [Form],
}

/// Additional form of the first reference of a side.
pub(crate) struct Form {
    /// Name of the form.
    pub name: &'static str,
    /// Side of the reference.
    pub side: Side,
    /// Choices that the contract names.
    pub choices: &'static [(&'static str, &'static str)],
    /// Choices of the reference's own.
    pub own: &'static [(&'static str, &'static str)],
    /// Features that it lacks.
    pub without: &'static [&'static str],
    /// The only feature to check.
    pub feature: Option<&'static str>,
    /// Set for a process, even if a machine could play it.
    pub is_process: bool,
}

const PROVIDER: Form = Form {
    name: "",
    side: Side::Provider,
    choices: &[],
    own: &[],
    without: &[],
    feature: None,
    is_process: false,
};

const CONSUMER: Form = Form { side: Side::Consumer, ..PROVIDER };

/// Scope of a boundary. Without a row of its own: all its references, under their usual name for `refpeer`.
pub(crate) fn of(boundary: &'static str) -> Judged {
    let usual =
        Judged { boundary, sides: &[Side::Provider, Side::Consumer], words: &[], untold: &[], forms: &[] };
    ROWS.iter().find(|judged| judged.boundary == boundary).copied().unwrap_or(usual)
}

/// Boundaries with further data.
const ROWS: &[Judged] = &[
    Judged {
        boundary: "toolhost",
        // The consumer is in another folder.
        sides: &[Side::Provider],
        words: &[("", "toolhost")],
        untold: &[],
        forms: &[
            Form {
                name: "that-refuses-redirects",
                choices: &[("redirects", "refuse"), ("loopback_hosts", "fetch")],
                feature: Some("http_get"),
                is_process: true,
                ..PROVIDER
            },
            Form {
                name: "that-refuses-this-machine",
                choices: &[("loopback_hosts", "refuse")],
                feature: Some("http_get"),
                is_process: true,
                ..PROVIDER
            },
        ],
    },
    Judged {
        boundary: "json_rpc",
        sides: &[Side::Provider, Side::Consumer],
        words: &[("--client", "json-rpc-client"), ("--stdio", "json-rpc"), ("", "json-rpc")],
        untold: &[],
        forms: &[Form { name: "bare", without: &["batch", "streaming", "concurrent"], ..PROVIDER }],
    },
    Judged {
        boundary: "policy_driver",
        sides: &[Side::Provider, Side::Consumer],
        words: &[("--drive", "policy-driver"), ("--bridge", "policy-llm"), ("--select", "policy-select")],
        // A peer that silently drops a cut line may serve a complete one.
        untold: &["last_line_without_lf"],
        forms: &[
            Form {
                name: "that-asks-instead-of-refusing",
                own: &[("refusal", "ask_sup"), ("bom", "ignore")],
                ..PROVIDER
            },
            Form { name: "that-stops-instead-of-refusing", own: &[("refusal", "noop")], ..PROVIDER },
            Form { name: "without-patches", without: &["patches"], ..CONSUMER },
            Form { name: "without-merged-inputs", without: &["merged_inputs"], ..CONSUMER },
        ],
    },
];
