//! `envelope engine`: the reference engine, on the standard streams of this process or as an HTTP server.
//!
//! ```text
//! envelope engine process [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! envelope engine --http ADDRESS [the same options]
//! ```

use std::net::SocketAddr;

use super::StartError;
use super::complain;
use super::http_faults::faulty;
use super::http_server::{HttpReply, Plain, Service, serve, split_http};
use super::json_rpc::unix_ms;
use super::stdio::run_machine;
use super::toolhost::random_seed;
use crate::envelope::choices::{OverSize, TrailingText};
use crate::envelope::mutants::Mutant;
use crate::envelope::{Config, machine};
use crate::http::HttpRequest;
use crate::machine::{Action, Event, Machine};

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status after SIGTERM.
pub const STATUS_TERMINATED: i32 = 1;

/// Path of the POST endpoint.
const PATH: &str = "/api/v1/process";

/// Largest body in bytes for an engine without a size limit.
const BODY_BYTES_MAX: usize = 64 << 20;

const USAGE: &str =
    "usage: envelope engine (process | --http ADDRESS) [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Runs the engine, or a mutant of it, on the standard streams of this process, or with `--http ADDRESS` as an HTTP
/// server until it is terminated. Returns the exit status: 2 for invalid arguments or an address in use, 70 after an
/// I/O error, 1 for a refused envelope, else 0.
///
/// `arguments` are those after the `envelope` word.
pub fn run_envelope(arguments: &[String], mutant: Option<Mutant>) -> i32 {
    let make = move |config| match &mutant {
        Some(mutant) => mutant.machine(config),
        None => machine(config),
    };
    match parse(arguments) {
        Ok((config, None)) => run_machine(make(started(config)), STATUS_TERMINATED),
        Ok((config, Some(address))) => {
            let front = mutant.and_then(|mutant| mutant.carrier_fault()).map(faulty);
            let bytes_max = match config.choices.over_size {
                OverSize::Refuse => config.limits.stdin_bytes_max,
                OverSize::Process => BODY_BYTES_MAX,
            };
            let service = Engines { make, config };
            serve("envelope", address, bytes_max, Box::new(service), front.unwrap_or_else(|| Box::new(Plain)))
        }
        Err(error) => {
            complain(&format!("envelope: {error}"));
            STATUS_USAGE
        }
    }
}

/// HTTP service that creates an engine for each request.
struct Engines<F> {
    make: F,
    config: Config,
}

impl<F: Fn(Config) -> Box<dyn Machine + Send> + Send + Sync> Service for Engines<F> {
    fn respond(&self, request: &HttpRequest) -> HttpReply {
        let refused = |status| HttpReply::empty(status, request.keeps_open);
        if request.target.split('?').next() != Some(PATH) {
            return refused(404);
        }
        if request.method != "POST" {
            return refused(405);
        }
        let content_type = request.content_type.as_deref().unwrap_or("application/json");
        let name = content_type.split(';').next().unwrap_or_default().trim();
        if !name.eq_ignore_ascii_case("application/json") {
            return refused(415);
        }
        let Some(body) = &request.body else { return refused(413) };
        let mut config = started(self.config.clone());
        // The body is one entity, so nothing may follow the envelope.
        config.choices.trailing_text = TrailingText::Refuse;
        let (mut engine, mut actions) = ((self.make)(config), Vec::new());
        engine.handle(Event::Stdin(body), 0, &mut actions);
        engine.handle(Event::StdinEof, 0, &mut actions);
        let (mut status, mut out) = (200, Vec::new());
        for action in actions {
            match action {
                Action::Stdout(bytes) => out.extend(bytes),
                Action::Exit(code) if code != 0 => status = 400,
                Action::Abort => std::process::abort(),
                _ => {}
            }
        }
        HttpReply::json(status, out, request.keeps_open)
    }
}

/// Configuration with the current time and a new id seed.
pub fn started(mut config: Config) -> Config {
    config.started_unix_ms = unix_ms();
    config.id_seed = random_seed().iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    config
}

/// Reads the arguments: the configuration, and the address of the HTTP server, if any.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<(Config, Option<SocketAddr>), StartError> {
    let (address, arguments) = split_http(arguments)?;
    let mut config = Config::default();
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--choice" | "--limit" => {
                let value = arguments.next().ok_or_else(|| StartError::no_value(argument))?;
                super::set(
                    argument,
                    value,
                    |name, value| config.choices.set(name, value),
                    &mut config.limits,
                )?;
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            word => words.push(word),
        }
    }
    match (&words[..], address) {
        (["engine", "process"], None) | (["engine"], Some(_)) => Ok((config, address)),
        _ => Err(StartError::Usage(USAGE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"{"envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"u","session_id":"sess_0123456789abcdef","raw_input":"x","outputs":{},"current_stage":"start","terminated":false}"#;

    fn service() -> Engines<impl Fn(Config) -> Box<dyn Machine + Send> + Send + Sync> {
        Engines { make: machine, config: Config::default() }
    }

    fn post(body: Option<&str>) -> HttpRequest {
        HttpRequest {
            method: "POST".to_owned(),
            target: PATH.to_owned(),
            content_type: Some("Application/JSON; charset=utf-8".to_owned()),
            body: body.map(|body| body.as_bytes().to_vec()),
            keeps_open: true,
            ..HttpRequest::default()
        }
    }

    #[test]
    fn statuses_tell_what_is_refused() {
        let status = |request: &HttpRequest| service().respond(request).status;
        let plain = || post(Some(PLAIN));
        assert_eq!(status(&plain()), 200);
        assert_eq!(status(&HttpRequest { target: format!("{PATH}?a=b"), ..plain() }), 200);
        assert_eq!(status(&HttpRequest { content_type: None, ..plain() }), 200);
        assert_eq!(status(&HttpRequest { content_type: Some("text/plain".to_owned()), ..plain() }), 415);
        assert_eq!(status(&HttpRequest { method: "PUT".to_owned(), ..plain() }), 405);
        assert_eq!(status(&HttpRequest { target: "/".to_owned(), ..plain() }), 404);
        assert_eq!(status(&post(None)), 413);
        for wrong in ["", "[]", "{\"terminated\":1}", &format!("{PLAIN} x")] {
            let reply = service().respond(&post(Some(wrong)));
            assert_eq!((reply.status, reply.content_type), (400, "application/json"), "{wrong}");
            assert!(reply.body.starts_with(b"{\"error\":"), "{wrong}");
        }
    }

    #[test]
    fn every_request_has_ids_of_its_own() {
        let body = PLAIN.replace("\"envelope_id\":\"env_0123456789abcdef\",", "");
        let reply = || service().respond(&post(Some(&body))).body;
        assert_ne!(reply(), reply());
    }

    #[test]
    fn an_address_is_needed_or_the_word_process() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(parse(&words("engine process")).is_ok_and(|(_, address)| address.is_none()));
        assert!(parse(&words("engine --http 127.0.0.1:0")).is_ok_and(|(_, address)| address.is_some()));
        for wrong in
            ["engine", "engine process --http 127.0.0.1:0", "engine --http 0.0.0.0:1", "engine --http"]
        {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
