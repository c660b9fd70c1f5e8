//! What the judge has to be told of each boundary: the words of `refpeer`, and forms of its references beyond choices.

use peerproof_engine::clause::Side;

/// What is judged of one boundary.
#[derive(Clone, Copy)]
pub struct Judged {
    /// Name of the boundary.
    pub boundary: &'static str,
    /// The sides whose references lie in the folder that is mutated.
    pub sides: &'static [Side],
    /// What `refpeer` calls a reference, by the first argument that `peerproof peer` takes for it. The last of these
    /// has no such argument, or keeps it.
    pub words: &'static [(&'static str, &'static str)],
    /// Choices that checks are not told: what is left of them fits two values.
    pub untold: &'static [&'static str],
    /// Forms beyond the plain references and their choices.
    pub forms: &'static [Form],
}

/// The first reference of a side in one more form.
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// The side.
    pub side: Side,
    /// Choices that the contract names.
    pub choices: &'static [(&'static str, &'static str)],
    /// Choices that are the reference's own.
    pub own: &'static [(&'static str, &'static str)],
    /// Features that it does not have.
    pub without: &'static [&'static str],
    /// The one feature that it is about.
    pub feature: Option<&'static str>,
    /// It is a process, though a machine could play it.
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

/// What is judged of a boundary: where no row says more, all of its references, which `refpeer` calls by its name.
pub fn of(boundary: &'static str) -> Judged {
    let usual =
        Judged { boundary, sides: &[Side::Provider, Side::Consumer], words: &[], untold: &[], forms: &[] };
    ROWS.iter().find(|judged| judged.boundary == boundary).copied().unwrap_or(usual)
}

/// Boundaries about which there is more to say.
const ROWS: &[Judged] = &[
    Judged {
        boundary: "toolhost",
        // The consumer lies elsewhere.
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
        // One who drops a line that is cut in silence may serve a complete one.
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
