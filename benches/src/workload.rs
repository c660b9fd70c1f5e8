//! Requests to the reference toolhost, each one line with its LF.

/// A request for `echo` in 64 bytes.
pub fn ping() -> Vec<u8> {
    let line = b"{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{\\\"x\\\":\\\"abcd\\\"}\"}\n";
    debug_assert_eq!(line.len(), 64);
    line.to_vec()
}

/// A request for `echo` in exactly `bytes` bytes, nearly all of them one plain string of the input.
pub fn one_string(bytes: usize) -> Vec<u8> {
    let bare = echo("{\"s\":\"\"}").len();
    echo(&format!("{{\"s\":\"{}\"}}", "x".repeat(bytes.saturating_sub(bare))))
}

/// The input of [`records`]: an array of small objects.
pub fn records_input(bytes: usize) -> String {
    let mut input = "{\"rows\":[".to_owned();
    // Every quote takes one byte more in the request.
    let mut wire = echo("{\"rows\":[]}").len();
    for id in 0.. {
        let row = format!("{{\"id\":{id},\"name\":\"user {id}\",\"ok\":true,\"score\":{}.5}},", id % 100);
        wire += row.len() + row.matches('"').count();
        if wire > bytes {
            break;
        }
        input.push_str(&row);
    }
    if input.ends_with(',') {
        input.pop();
    }
    input + "]}"
}

/// A request for `echo` in at most `bytes` bytes (less than one record below), whose input is an array of records.
pub fn records(bytes: usize) -> Vec<u8> {
    echo(&records_input(bytes))
}

/// A request for `any` in exactly `bytes` bytes, LF not counted; its reply is small.
pub fn padded(bytes: usize) -> Vec<u8> {
    let frame = "{\"pad\":\"\",\"aid\":\"AID.PEERPROOF.ANY.v1\"}".len();
    let pad = "x".repeat(bytes.saturating_sub(frame));
    format!("{{\"pad\":\"{pad}\",\"aid\":\"AID.PEERPROOF.ANY.v1\"}}\n").into_bytes()
}

fn echo(input: &str) -> Vec<u8> {
    let input = input.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{input}\"}}\n").into_bytes()
}
