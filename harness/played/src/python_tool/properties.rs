//! Properties of the reference runner and the model for any bytes. Fuzz targets and tests call the same functions,
//! which panic if a property does not hold.

#[cfg(test)]
mod stored;

use std::sync::OnceLock;

use peerproof_reference::python_tool::{Config, Order};

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::rng::Rng;
use peerproof_python_tool::generate;
use peerproof_python_tool::model::{Acceptance, Request};

fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| peerproof_python_tool::boundary().full_facts(Side::Provider))
}

/// The reference refuses requests that the model refuses, accepts those without any peculiarity, and is exactly as
/// strict with guarantees as the model.
///
/// # Panics
/// Panics if the property does not hold.
pub fn request(data: &[u8]) {
    let request = Request::read(facts(), data);
    let order = Order::read(data.trim_ascii_start(), &Config::default());
    let text = || String::from_utf8_lossy(data).into_owned();
    let is_refused = request.of(|it| *it == Acceptance::Refuse).is_some();
    match &order {
        Ok(_) => assert!(!is_refused, "{:?}\naccepted: {}", request.traits, text()),
        Err(why) => assert!(!request.traits.is_empty(), "{why}\nrefused: {}", text()),
    }
    if let (Ok(order), Some(call)) = (order, request.call) {
        let in_force: Vec<String> = call.guarantees.iter().map(|name| (*name).to_owned()).collect();
        let mut own = order.guarantees;
        own.sort();
        own.dedup();
        assert_eq!(own, in_force, "{}", text());
    }
}

/// Runner and model agree about generated requests.
///
/// # Panics
/// Panics if the property does not hold.
pub fn generated(mut rng: Rng) {
    let plan = generate::conversation(facts(), &mut rng);
    for step in &plan.steps {
        if let Act::Send { payload, .. } = &step.act {
            let vars: Vars = payload.variables().map(|name| (name.to_owned(), "x".to_owned())).collect();
            request(&payload.expand(&vars).unwrap_or_default());
        }
    }
}
