//! What every conversation with a client watches.

use super::super::super::client::scenario::Call;
use super::check;
use peerproof_engine::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![requests(), results(), ends(), leaves_nothing()]
}

fn requests() -> Check {
    check(
        "every-call/requests",
        "Whatever is called goes out as well-formed requests of the scenario, and nothing else does.",
        &["RPC-CLIENT-01", "RPC-CLIENT-02", "RPC-CLIENT-03"],
        |scene, _| {
            scene.usual(
                Call::new("object").params(Some(r#"{"é":"漢\u0000\"","n":[1,-2.5,null,true],"o":{}}"#)),
            );
            scene.usual(Call::new("array").params(Some(r#"["😀",[],{},9007199254740991]"#)));
            scene.usual(Call::new("none").params(None));
            let mut odd = Call::new("odd");
            odd.method = "métho\"d 漢".to_owned();
            scene.usual(odd);
        },
    )
    .ambient()
}

fn results() -> Check {
    check(
        "every-call/results",
        "Of every call there is one line in the results.",
        &["RPC-CLIENT-08"],
        |scene, _| {
            scene.usual(Call::new("a")).usual(Call::new("é \"b\"")).usual(Call::new("c").notify());
        },
    )
    .ambient()
}

fn ends() -> Check {
    check(
        "every-call/ends",
        "A client exits with 0 when every call has finished, while its server lives on.",
        &["RPC-CLIENT-22"],
        |scene, _| {
            scene.usual(Call::new("a"));
        },
    )
    .ambient()
}

fn leaves_nothing() -> Check {
    check(
        "every-call/leaves-nothing",
        "No process and no temporary file is left when a client has ended.",
        &["RPC-CLIENT-25"],
        |scene, _| {
            scene.usual(Call::new("a"));
        },
    )
    .on_process()
    .ambient()
}
