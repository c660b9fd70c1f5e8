//! crates.io jsonrpsee on lines: its HTTP service gets each line as the body of a request, in this process, and the
//! body of what it answers is written. Only glue.

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::BodyExt as _;
use jsonrpsee::server::{HttpBody, HttpRequest, RpcModule, Server, stop_channel};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde_json::{Map, Value, json};
use tower_service::Service as _;

#[derive(serde::Deserialize)]
struct Difference {
    minuend: i64,
    subtrahend: i64,
}

/// Parameters of a method that accepts any.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum Structured {
    ByName(Map<String, Value>),
    ByPosition(Vec<Value>),
}

fn methods() -> Result<RpcModule<AtomicU64>, Box<dyn Error>> {
    let mut module = RpcModule::new(AtomicU64::new(0));
    module.register_method("peerproof.echo", |params: Params<'_>, _, _| params.parse::<Structured>())?;
    module.register_method("peerproof.fail", |_, _, _| {
        Err::<Value, _>(ErrorObjectOwned::owned(-32000, "this method always fails", None::<()>))
    })?;
    module.register_method("peerproof.named", |params: Params<'_>, _, _| {
        params.parse().map(|Difference { minuend, subtrahend }| minuend - subtrahend)
    })?;
    module.register_method("peerproof.counter", |_, count, _| {
        Ok::<_, ErrorObjectOwned>(json!({ "count": count.fetch_add(1, Ordering::Relaxed) + 1 }))
    })?;
    Ok(module)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (stop, _handle) = stop_channel();
    let mut service = Server::builder().to_service_builder().build(methods()?, stop);
    for line in io::stdin().lock().split(b'\n') {
        let request = HttpRequest::<()>::post("/")
            .header("content-type", "application/json")
            .body(HttpBody::from(line?))?;
        let reply = runtime.block_on(async {
            let response = service.call(request).await.map_err(|error| error.to_string())?;
            response.into_body().collect().await.map_err(|error| error.to_string())
        })?;
        let mut body = reply.to_bytes().to_vec();
        if !body.is_empty() {
            body.push(b'\n');
            io::stdout().write_all(&body)?;
        }
    }
    Ok(())
}
