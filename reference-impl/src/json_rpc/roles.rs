//! The methods of the reference: the four of the profile, and those for the roles of the contract.

use super::method::{Answer, Call, MethodTable, Outcome, Step, Task, World};
use super::params::Named;
use super::reply::{Failure, FailureKind};
use super::{execute, plan, update, validate};
use crate::json::{Number, Value};
use crate::machine::Millis;

/// All methods.
pub fn methods() -> MethodTable {
    MethodTable::default()
        .with("execute_task", execute::execute_task)
        .with("create_plan", |call: &Call<'_>, _: &mut World| plan::create_plan(call).into())
        .with("validate_code", |call: &Call<'_>, _: &mut World| validate::validate_code(call).into())
        .with("update_context", |call: &Call<'_>, world: &mut World| {
            update::update_context(call, world).into()
        })
        .with("peerproof.context", |_: &Call<'_>, world: &mut World| {
            Ok(world.context.to_json().into()).into()
        })
        .with("peerproof.echo", |call: &Call<'_>, _: &mut World| echo(call).into())
        .with("peerproof.fail", |_: &Call<'_>, _: &mut World| fail().into())
        .with("peerproof.sleep", |call: &Call<'_>, _: &mut World| sleep(call))
        .with("peerproof.named", |call: &Call<'_>, _: &mut World| named(call).into())
        .with("peerproof.counter", |_: &Call<'_>, world: &mut World| counter(world).into())
        .with("peerproof.blob", |call: &Call<'_>, _: &mut World| blob(call).into())
}

/// Returns the params as spelled, or `null` if there are none.
fn echo(call: &Call<'_>) -> Outcome {
    Ok(call.params.text()?.unwrap_or("null").into())
}

/// Always fails.
fn fail() -> Outcome {
    Err(Failure::new(FailureKind::ExecutionError, "peerproof.fail was asked to fail"))
}

fn counter(world: &mut World) -> Outcome {
    world.count += 1;
    Ok(format!("{{\"count\":{}}}", world.count).into())
}

/// Required non-negative integer param.
fn amount(params: &Named, name: &str) -> Result<u64, Failure> {
    let amount = params.members().optional_integer(name, 0..=i64::MAX)?;
    let amount = amount.ok_or_else(|| Failure::invalid_params(format!("{name} is missing")))?;
    Ok(u64::try_from(amount).unwrap_or_default())
}

/// `{"ms":n}` → `{"slept_ms":n}` after that time.
fn sleep(call: &Call<'_>) -> Answer {
    let start = || {
        let params = call.params.named(call.limits)?;
        let ms = amount(&params, "ms")?;
        if ms > call.limits.sleep_ms_max {
            return Err(Failure::invalid_params(format!("ms is larger than {}", call.limits.sleep_ms_max)));
        }
        Ok((ms, params.timeout_ms))
    };
    match start() {
        Ok((ms, timeout_ms)) => {
            Answer::Later { task: Box::new(Sleep { until: call.now + ms, ms }), timeout_ms, streams: false }
        }
        Err(failure) => Answer::Done(Err(failure)),
    }
}

struct Sleep {
    until: Millis,
    ms: u64,
}

impl Task for Sleep {
    fn poll(&mut self, now: Millis) -> Step {
        if now < self.until {
            return Step::WaitUntil(self.until);
        }
        Step::Done(Ok(format!("{{\"slept_ms\":{}}}", self.ms).into()))
    }

    fn ends_at(&self) -> Option<Millis> {
        Some(self.until)
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// `{"bytes":n}` → `{"data":"xx…"}`.
fn blob(call: &Call<'_>) -> Outcome {
    let bytes = amount(&call.params.named(call.limits)?, "bytes")?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= call.result_bytes_max => {
            Ok([b"{\"data\":\"", "x".repeat(bytes).as_bytes(), b"\"}"].concat().into())
        }
        _ => Err(Failure::new(FailureKind::ResultTooLarge, "the result does not fit into a message")),
    }
}

/// `{"minuend":a,"subtrahend":b}` → a − b, exact for integers.
fn named(call: &Call<'_>) -> Outcome {
    let params = call.params.named(call.limits)?;
    let number = |name: &str| -> Result<Number, Failure> {
        match params.members().get(name) {
            Some(Value::Number(number)) => Ok(number.clone()),
            Some(_) => Err(Failure::invalid_params(format!("{name} is no number"))),
            None => Err(Failure::invalid_params(format!("{name} is missing"))),
        }
    };
    let (minuend, subtrahend) = (number("minuend")?, number("subtrahend")?);
    if let (Some(minuend), Some(subtrahend)) = (minuend.as_i64(), subtrahend.as_i64()) {
        return Ok((i128::from(minuend) - i128::from(subtrahend)).to_string().into());
    }
    let difference = minuend.as_f64() - subtrahend.as_f64();
    if !difference.is_finite() {
        return Err(Failure::invalid_params("the difference is beyond every double"));
    }
    Ok(format!("{difference:e}").into())
}
