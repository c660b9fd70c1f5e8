//! Requests to the reference toolhost, each one line with its LF.

/// Request for `echo` in 64 bytes.
pub fn ping() -> Vec<u8> {
    let line = b"{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{\\\"x\\\":\\\"abcd\\\"}\"}\n";
    debug_assert_eq!(line.len(), 64);
    line.to_vec()
}

/// Request for `echo` in exactly `bytes` bytes, mostly one plain string of the input.
pub fn one_string(bytes: usize) -> Vec<u8> {
    let bare = echo("{\"s\":\"\"}").len();
    echo(&format!("{{\"s\":\"{}\"}}", "x".repeat(bytes.saturating_sub(bare))))
}

/// Input of [`records`]: an array of small objects.
pub fn records_input(bytes: usize) -> String {
    let mut input = "{\"rows\":[".to_owned();
    // Every quote takes an additional byte in the request.
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

/// Request for `echo` in at most `bytes` bytes, at most one record shorter, whose input is an array of records.
pub fn records(bytes: usize) -> Vec<u8> {
    echo(&records_input(bytes))
}

/// Request for `any` in exactly `bytes` bytes without LF; its reply is small.
pub fn padded(bytes: usize) -> Vec<u8> {
    let frame = "{\"pad\":\"\",\"aid\":\"AID.PEERPROOF.ANY.v1\"}".len();
    let pad = "x".repeat(bytes.saturating_sub(frame));
    format!("{{\"pad\":\"{pad}\",\"aid\":\"AID.PEERPROOF.ANY.v1\"}}\n").into_bytes()
}

fn echo(input: &str) -> Vec<u8> {
    let input = input.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{input}\"}}\n").into_bytes()
}
