//! What a client sends.

use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, result};
use super::check;
use peerproof_engine::check::Check;
use peerproof_engine::near_miss::near_misses;

use super::super::super::client::expect::Allowed;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![notification(), in_flight(), batch(), large_batch(), near_refs(), after()]
}

fn notification() -> Check {
    check(
        "request/notification",
        "Notifications go out without an id, and are done when they are sent.",
        &["RPC-CLIENT-04"],
        |scene, _| {
            scene.usual(Call::new("n1").notify()).usual(Call::new("a"));
            scene.usual(Call::new("n2").notify().params(None)).usual(Call::new("n3").notify().batch("b"));
            scene.usual(Call::new("b").batch("b"));
        },
    )
}

fn in_flight() -> Check {
    check(
        "request/many-at-once",
        "Calls that may wait at the same time have ids of their own, and each gets its own answer.",
        &["RPC-CLIENT-05", "RPC-CLIENT-09"],
        |scene, _| {
            for n in 0..20_u64 {
                let name = format!("m{n}");
                scene.call(Call::new(&name), [Allowed::result(&n.to_string()).attempts(1)]);
                // The later a call is made, the sooner it is answered.
                scene.on(&name, [Deed::line(&result(&n.to_string())).in_ms(200 - 10 * n)]);
            }
            scene.takes_ms(4_000);
        },
    )
}

fn batch() -> Check {
    check(
        "request/batches",
        "The calls of a batch go out in one array, whatever else is called.",
        &["RPC-CLIENT-06"],
        |scene, _| {
            scene.usual(Call::new("a1").batch("a")).usual(Call::new("single"));
            scene.usual(Call::new("b1").batch("b")).usual(Call::new("a2").batch("a"));
            scene.usual(Call::new("lone").batch("c")).usual(Call::new("a3").batch("a").params(None));
        },
    )
}

fn large_batch() -> Check {
    check(
        "request/batch-of-forty",
        "Forty calls of a batch go out in one array, and each gets its own answer.",
        &["RPC-CLIENT-06", "RPC-CLIENT-09"],
        |scene, _| {
            for n in 0..40 {
                scene.usual(Call::new(&format!("b{n}")).batch("x"));
            }
        },
    )
}

fn near_refs() -> Check {
    check(
        "request/refs-that-nearly-agree",
        "Calls whose refs differ by case, length, a blank or a look-alike are told apart, in `after` and in the results.",
        &["RPC-CLIENT-08", "RPC-CLIENT-07"],
        |scene, _| {
            let names: Vec<String> = near_misses("Step-1").into_iter().map(|miss| miss.text).collect();
            scene.call(Call::new("Step-1"), [Allowed::result("1").attempts(1)]);
            scene.on("Step-1", [Deed::line(&result("1")).in_ms(150)]);
            for name in &names {
                scene.usual(Call::new(name));
            }
            scene.usual(Call::new("behind").after("Step-1"));
        },
    )
}

fn after() -> Check {
    check(
        "request/after-others",
        "A call waits until the calls it comes after have finished.",
        &["RPC-CLIENT-07"],
        |scene, _| {
            scene.call(Call::new("slow"), [Allowed::result("1")]);
            scene.on("slow", [Deed::line(&result("1")).in_ms(150)]);
            scene.usual(Call::new("quick")).usual(Call::new("second").after("slow").after("quick"));
            scene.usual(Call::new("third").after("second"));
        },
    )
}
