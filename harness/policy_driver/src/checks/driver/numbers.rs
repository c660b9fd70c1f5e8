//! Checks of numbers and strings that a driver copies from the inputs to its patch.

use super::super::super::driver::expect::{Allowed, Expect, PickForm};
use super::super::super::driver::talk::Talk;
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![integers(), big_integers(), lone_surrogates()]
}

/// A check of a value in the inputs of the role `pick_inp`, compared with an ordinary one.
fn copied(
    name: &str,
    title: &str,
    clause: &'static str,
    make: impl Fn(&mut Copying<'_, '_>) + Send + Sync + 'static,
) -> Check {
    let check =
        check(&format!("values/{name}"), title, &[clause], move |talk| make(&mut Copying { talk, clause }));
    check.roles(&["pick_inp"]).feature("patches")
}

struct Copying<'t, 'f> {
    talk: &'t mut Talk<'f>,
    clause: &'static str,
}

impl Copying<'_, '_> {
    /// Decides a payload whose inputs hold this JSON text.
    fn decide(&mut self, value: &str, expect: Expect) -> &mut Self {
        if let Some(text) = self.talk.role_with_leaf("pick_inp", value) {
            self.talk.decide_on(Payload::text(text), expect);
        }
        self
    }

    /// Decides the ordinary value, with which later ones are compared.
    fn twin(&mut self, value: &str) -> &mut Self {
        self.decide(value, Expect::block(self.clause));
        self.talk.is_twin();
        self
    }
}

fn copy(from: &str, to: &str) -> Allowed {
    Allowed::Copied { from: from.to_owned(), to: to.to_owned() }
}

/// An ordinary number, which even a 32-bit float keeps.
const ORDINARY: &str = "20250624";

fn integers() -> Check {
    copied(
        "integers",
        "An integer within ±(2^53−1) that a driver copies to its patch keeps its value.",
        "PD-PAY-12",
        |copying| {
            copying.twin(ORDINARY);
            for value in ["0", "-1", "2147483648", "4294967297", "9007199254740991", "-9007199254740991"] {
                // A driver may decide otherwise for another value.
                let expect = Expect::new("PD-PAY-12", copy(ORDINARY, value));
                let expect = expect.or(Allowed::in_form(PickForm::Plain)).or(Allowed::NoPick);
                copying.decide(value, expect.reason("integer_changed"));
            }
        },
    )
}

fn big_integers() -> Check {
    copied(
        "big-integers",
        "An integer beyond 2^53−1 in the inputs is copied exactly, rounded, or the payload is malformed.",
        "PD-PAY-11",
        |copying| {
            copying.twin(ORDINARY);
            let expect = Expect::new("PD-PAY-11", copy(ORDINARY, "9007199254740993"))
                .or(copy(ORDINARY, "9007199254740992"))
                .or(Allowed::NoPick)
                .or(Allowed::Failure)
                .or(Allowed::in_form(PickForm::Plain));
            let values = ["exact", "round", "refuse", "refuse", ""];
            copying.decide("9007199254740993", expect.choice("big_integers", &values));
            // The outcome must be one block of strict JSON, or a failure.
            for value in ["1e400", "-1e400", "123456789012345678901234567890", "1e-400"] {
                copying.decide(value, Expect::block("PD-PAY-11").or(Allowed::Failure).narrow());
            }
        },
    )
}

fn lone_surrogates() -> Check {
    copied(
        "lone-surrogates",
        "A lone surrogate escape in the inputs is copied, replaced, or the payload is malformed.",
        "PD-PAY-10",
        |copying| {
            copying.twin(r#""ordinary""#);
            for value in [r#""\udc00""#, r#""a\ud800\ud800b""#] {
                copying.decide(value, Expect::block("PD-PAY-10").or(Allowed::Failure).narrow());
            }
            let expect = Expect::new("PD-PAY-10", copy(r#""ordinary""#, r#""x\ud800y""#))
                .or(copy(r#""ordinary""#, "\"x\u{FFFD}y\""))
                .or(Allowed::Block)
                .or(Allowed::Failure);
            let values = ["echo", "replace", "", "refuse"];
            copying.decide(r#""x\ud800y""#, expect.choice("lone_surrogates", &values));
        },
    )
}
