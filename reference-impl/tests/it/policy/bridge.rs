//! `refpeer policy-llm` against a model played by a scripted HTTP server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use super::{DEADLINE, PAYLOAD, refpeer};

/// Starts a model for one connection: it reads the whole request, then `answer` writes the reply. The thread returns
/// the request.
fn model(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/machina_policy", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut block = [0; 4096];
        loop {
            let count = stream.read(&mut block).unwrap();
            assert_ne!(count, 0, "the request is cut short");
            request.extend_from_slice(&block[..count]);
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                break;
            }
        }
        answer(&mut stream);
        String::from_utf8(request).unwrap()
    });
    (url, server)
}

fn reply(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Output and exit status of the bridge with the model at `url`.
fn ask(url: &str) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("payload.json");
    fs::write(&path, PAYLOAD).unwrap();
    let output = refpeer("policy-llm")
        .args(["--limit", "policy_llm_timeout_ms=2000", "--limit", "policy_llm_reply_bytes_max=65536"])
        .arg(&path)
        .env("MACHINA_POLICY_LLM_URL", url)
        .env("MACHINA_POLICY_LLM_AUTH", "Bearer abc")
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

fn answered(text: String) -> (String, Option<i32>) {
    let (url, server) = model(move |stream| {
        let _ = stream.write_all(text.as_bytes());
    });
    let answer = ask(&url);
    server.join().unwrap();
    answer
}

const NO_PICK: (String, Option<i32>) = (String::new(), Some(1));

#[test]
fn posts_the_payload_and_prints_the_block() {
    let (url, server) = model(|stream| {
        stream.write_all(reply(r#"{"machina_out":" <PICK><SID0008><END>\n"}"#).as_bytes()).unwrap();
    });
    assert_eq!(ask(&url), ("<PICK><SID0008><END>\n".to_owned(), Some(0)));
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /machina_policy HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nAuthorization: Bearer abc\r\n"), "{request}");
    assert!(request.contains("\r\nContent-Type: application/json\r\n"), "{request}");
    assert!(request.ends_with(PAYLOAD), "{request}");
}

#[test]
fn output_stands_in_for_machina_out() {
    let answer = answered(reply(r#"{"output":"<ASK_SUP><END>"}"#));
    assert_eq!(answer, ("<ASK_SUP><END>\n".to_owned(), Some(0)));
}

#[test]
fn a_lying_or_failing_model_is_no_pick() {
    let pick = r#"{"machina_out":"<PICK><SID0007><END>"}"#;
    for text in [
        reply(pick).replace("200 OK", "500 Oops"),
        reply(pick).replace("200 OK", "302 Found\r\nLocation: /"),
        reply(r#"{"machina_out":"<PICK><SID0099><END>"}"#),
        reply(r#"{"machina_out":"Sure! <PICK><SID0007><END>"}"#),
        reply(r#"{"machina_out":"<PICK><SID0007><END><PICK><SID0008><END>"}"#),
        reply("<PICK><SID0007><END>"),
        reply("{"),
        reply(pick).replace("Content-Length: 38", "Content-Length: 98"),
        "nonsense\r\n\r\n".to_owned(),
        String::new(),
    ] {
        assert_eq!(answered(text.clone()), NO_PICK, "{text:?}");
    }
}

#[test]
fn a_slow_model_is_no_pick_in_time() {
    let (url, server) = model(|stream| {
        // The model sends single bytes until the bridge gives up.
        let started = Instant::now();
        let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
        for byte in reply(r#"{"machina_out":"<PICK><SID0007><END>"}"#).bytes().cycle() {
            let has_gone = matches!(stream.read(&mut [0]), Ok(0));
            if has_gone || stream.write_all(&[byte]).is_err() || started.elapsed() > DEADLINE {
                return;
            }
        }
    });
    assert_eq!(ask(&url), NO_PICK);
    server.join().unwrap();
}

#[test]
fn an_enormous_reply_is_given_up() {
    let (url, server) = model(|stream| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"machina_out\":\"";
        let _ = stream.write_all(head.as_bytes());
        // The reply is endless; only the bridge closes the connection.
        let block = [b'x'; 4096];
        while stream.write_all(&block).is_ok() {}
    });
    assert_eq!(ask(&url), NO_PICK);
    server.join().unwrap();
}

#[test]
fn no_model_is_no_pick() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    for url in ["", "https://127.0.0.1/", "127.0.0.1", &url] {
        assert_eq!(ask(url), NO_PICK, "{url}");
    }
}
