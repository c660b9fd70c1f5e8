//! Picks: blocks of 64 KiB, driver processes, and the reference selector that starts them.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peerproof_reference::io::policy_exec;
use peerproof_reference::json::Policy;
use peerproof_reference::limits::Limits;
use peerproof_reference::policy_driver::SelectorChoices;
use peerproof_reference::policy_driver::block::{BlockReader, Rules};
use peerproof_reference::policy_driver::settings::Settings;

use crate::pipe::Pipe;

/// Maximum output of a driver, bytes.
pub(crate) const OUTPUT_BYTES: usize = 65_536;

/// Reference's parser with a selector's defaults.
pub fn reader() -> BlockReader {
    let policy = Policy::default();
    BlockReader::new(Rules { lenient_base64: false, trims_vt_ff: false, nesting_max: 64, policy })
}

/// Longest possible block with a plain patch of one string.
pub fn one_string() -> Vec<u8> {
    let frame = block("{\"s\":\"\"}").len();
    block(&format!("{{\"s\":\"{}\"}}", "x".repeat(OUTPUT_BYTES - frame)))
}

/// Block with a patch of many small objects, as long as fits into [`OUTPUT_BYTES`].
pub fn records() -> Vec<u8> {
    let mut rows = Vec::new();
    let mut bytes = block("{\"rows\":[]}").len();
    for id in 0.. {
        let row = format!("{{\"id\":{id},\"name\":\"user {id}\",\"ok\":true,\"score\":{}.5}}", id % 100);
        bytes += row.len() + usize::from(!rows.is_empty());
        if bytes > OUTPUT_BYTES {
            break;
        }
        rows.push(row);
    }
    block(&format!("{{\"rows\":[{}]}}", rows.join(",")))
}

fn block(patch: &str) -> Vec<u8> {
    format!("<PICK><SID0001><INP>{patch}</INP><END>\n").into_bytes()
}

/// Cheapest possible driver: a static program of 165 bytes that prints a block and exits. Written to `folder`.
///
/// # Errors
/// Fails if the file cannot be written, or not on x86-64.
pub fn noop(folder: &Path) -> io::Result<PathBuf> {
    const OUTPUT: &[u8] = b"<NOOP><END>\n";
    const CODE: &[u8] = &[
        0xb8,
        1,
        0,
        0,
        0, // mov eax, 1 (write)
        0xbf,
        1,
        0,
        0,
        0, // mov edi, 1 (standard output)
        0x48,
        0x8d,
        0x35,
        16,
        0,
        0,
        0, // lea rsi, [rip + 16], where OUTPUT stands
        0xba,
        OUTPUT.len() as u8,
        0,
        0,
        0, // mov edx, its length
        0x0f,
        0x05, // syscall
        0xb8,
        60,
        0,
        0,
        0, // mov eax, 60 (exit)
        0x31,
        0xff, // xor edi, edi
        0x0f,
        0x05, // syscall
    ];
    const HEADERS_BYTES: u64 = 64 + 56;
    const ADDRESS: u64 = 0x40_0000;
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(io::Error::other("the static driver is for Linux on x86-64"));
    }
    let bytes = HEADERS_BYTES + (CODE.len() + OUTPUT.len()) as u64;
    let mut image = b"\x7fELF\x02\x01\x01".to_vec();
    image.resize(16, 0);
    let mut put = |value: u64, width: usize| image.extend_from_slice(&value.to_le_bytes()[..width]);
    // Executable for x86-64: entry point, one program header after this one, no sections.
    for (value, width) in [(2, 2), (62, 2), (1, 4), (ADDRESS + HEADERS_BYTES, 8), (64, 8), (0, 8), (0, 4)] {
        put(value, width);
    }
    for value in [64, 56, 1, 0, 0, 0] {
        put(value, 2);
    }
    // The whole file is loaded readable and executable.
    for (value, width) in
        [(1, 4), (5, 4), (0, 8), (ADDRESS, 8), (ADDRESS, 8), (bytes, 8), (bytes, 8), (0x1000, 8)]
    {
        put(value, width);
    }
    image.extend_from_slice(CODE);
    image.extend_from_slice(OUTPUT);
    let path = folder.join("noop");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&path)?;
    file.write_all(&image)?;
    Ok(path)
}

/// Request with a small menu and its LF.
pub fn request() -> Vec<u8> {
    let mut line = payload();
    line.push(b'\n');
    line
}

/// Payload of a driver for [`request`].
pub fn payload() -> Vec<u8> {
    concat!(
        r#"{"goal_digest":"GOAL.BENCH|m1|FLAGS:","state_digest":"s1","control_mode":"POLICY_ONLY","inputs":{"cmd":"ls"},"#,
        r#""menu":[{"sid":"SID0001","aid":"AID.BENCH.A.v1","name":"a","tags":["x"]},"#,
        r#"{"sid":"SID0002","aid":"AID.BENCH.B.v1","name":"b","tags":["shell"]}]}"#
    )
    .as_bytes()
    .to_vec()
}

/// Starts a driver and waits for its end and its whole output; returns the time.
///
/// # Errors
/// Fails if it cannot be started, fails or prints nothing.
pub fn bare(words: &[OsString], payload: &Path) -> io::Result<Duration> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .arg(payload)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut printed = Vec::new();
    child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_end(&mut printed)?;
    let status = child.wait()?;
    let time = start.elapsed();
    match status.success() && printed.starts_with(b"<") {
        true => Ok(time),
        false => Err(io::Error::other(format!("the driver printed {} bytes: {status}", printed.len()))),
    }
}

/// Starts the reference selector for the driver `words`, which must lack quotes and blanks.
///
/// The selector is `refpeer` next to this program: it starts itself again to set limits, and this program is larger.
///
/// # Errors
/// Fails if it is not built or cannot be started.
pub fn selector(words: &[OsString], script_root: &Path) -> io::Result<Pipe> {
    let mut command = Command::new(refpeer()?);
    command
        .arg("policy-select")
        .env("MACHINA_POLICY_CMD", words.join(OsStr::new(" ")))
        .env("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", script_root);
    if words.first().is_none_or(|program| program != "python3") {
        command.env("MACHINA_POLICY_ALLOW_UNSAFE", "1");
    }
    Pipe::of(command)
}

/// Command line that starts the driver `program` as the reference selector does, through its limit-setting launcher.
///
/// # Errors
/// Fails if `refpeer` is not built.
pub fn limited(program: &OsStr) -> io::Result<Vec<OsString>> {
    let documented = Settings::read(&|_| None, &Limits::default(), &SelectorChoices::default());
    let limits = documented.map_err(io::Error::other)?.resources.encode();
    let shim = [refpeer()?.into(), policy_exec::WORD.into(), limits.into()];
    Ok(shim.into_iter().chain([program.to_owned(), program.to_owned()]).collect())
}

fn refpeer() -> io::Result<PathBuf> {
    let refpeer = std::env::current_exe()?.with_file_name("refpeer");
    match refpeer.exists() {
        true => Ok(refpeer),
        false => Err(io::Error::other("no refpeer: cargo build --release -p peerproof-reference")),
    }
}

/// Makes one pick with a selector; returns the time until its Selection.
///
/// # Errors
/// Fails if it has gone or fell back.
pub fn pick(selector: &mut Pipe, line: &[u8]) -> io::Result<Duration> {
    let start = Instant::now();
    selector.write(line)?;
    let answer = selector.line()?;
    let time = start.elapsed();
    match memchr::memmem::find(&answer, b"\"raw\":\"<").is_some() {
        true => Ok(time),
        false => Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
    }
}
