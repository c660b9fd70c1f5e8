//! Benchmark results for people and as lines of JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::printer::{Printer, Tone};
use peerproof_engine::data::text::wrap;
use peerproof_engine::run::bench::budget::Broken;
use peerproof_engine::run::bench::figures::{Comparison, Metric, Rounds, Spread};
use peerproof_engine::run::bench::overhead::Overhead;
use peerproof_engine::run::bench::{BenchRow, Missing};

/// Subject of a run.
#[derive(Debug, Clone)]
pub struct Header {
    /// Name of the boundary.
    pub boundary: String,
    /// Name of the peer.
    pub peer: String,
    /// Name of the second peer.
    pub against: Option<String>,
    /// Time for measuring, seconds.
    pub time_s: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// Ids of all rows.
    pub planned: Vec<String>,
    /// Notes on rows that this machine cannot measure.
    pub notes: Vec<String>,
}

/// Width of the first column.
const NAME: usize = 44;

/// First lines of the report.
pub fn head(header: &Header, printer: &Printer) -> String {
    let mut out = String::new();
    let against = header.against.as_ref().map(|name| format!(" against {name}")).unwrap_or_default();
    let line = format!(
        "{}{against} · {} · {} rows · {} rounds · {:.0} s",
        header.peer,
        header.boundary,
        header.planned.len(),
        header.rounds,
        header.time_s
    );
    let _ = writeln!(out, "{}", printer.paint(Tone::Head, &line));
    for note in &header.notes {
        let _ = writeln!(out, "{}", wrap(&format!("note: {note}"), "  "));
    }
    let titles = "req/s     ±      MB/s       p50       p90       p99     p99.9       max   CPU/req  peak RSS     slope";
    let _ = writeln!(out, "\n{}", printer.paint(Tone::Dim, &format!("{:NAME$}{titles}", "")));
    out
}

/// Lines of one row.
pub fn row(row: &BenchRow, printer: &Printer) -> String {
    let mut out = String::new();
    if is_left_out(row) {
        return out;
    }
    if row.peer.0.is_empty() {
        let _ = writeln!(out, "{}", printer.paint(Tone::Name, &row.id));
    } else {
        let padding = " ".repeat(NAME.saturating_sub(row.id.len()));
        let name = printer.paint(Tone::Name, &row.id);
        let _ = writeln!(out, "{name}{padding}{}", absolute(&row.peer));
        if !row.echo.0.is_empty() {
            let line = format!("{:>width$}  {}", "÷ echo", ratios(&row.peer, &row.echo), width = NAME - 2);
            let _ = writeln!(out, "{}", printer.paint(Tone::Dim, &line));
        }
        if let Some(against) = &row.against {
            let line = format!("{:>width$}  {}", "÷ second", ratios(&row.peer, against), width = NAME - 2);
            let _ = writeln!(out, "{line}");
        }
    }
    for line in remarks(row) {
        let _ = writeln!(out, "    {}", printer.paint(Tone::Warn, &line));
    }
    if let Some(comparison) = row.comparison() {
        let (tone, text) = compared(&comparison, row.decisive);
        let _ = writeln!(out, "    {}", printer.paint(tone, &text));
    }
    out
}

/// True if there is nothing to show for a row.
fn is_left_out(row: &BenchRow) -> bool {
    let why = matches!(row.missing, Some(Missing::AfterTrouble | Missing::Time | Missing::Interrupted));
    why && row.peer.0.is_empty()
}

/// Rows that were not measured, grouped by reason.
pub fn left_out(rows: &[BenchRow], printer: &Printer) -> String {
    let mut out = String::new();
    for why in [Missing::AfterTrouble, Missing::Time, Missing::Interrupted] {
        let ids: Vec<&str> = rows
            .iter()
            .filter(|row| is_left_out(row) && row.missing.as_ref() == Some(&why))
            .map(|row| row.id.as_str())
            .collect();
        if !ids.is_empty() {
            let line = format!("{}, {} rows", missing(&why, 0), ids.len());
            let _ = writeln!(out, "\n{}", printer.paint(Tone::Warn, &line));
            let _ = writeln!(out, "{}", wrap(&ids.join(" "), "    "));
        }
    }
    out
}

fn remarks(row: &BenchRow) -> Vec<String> {
    let mut lines = Vec::new();
    if row.peer.behind() > 0 {
        let all = row.peer.requests() + row.peer.behind();
        lines.push(format!(
            "the peer fell behind: {} of {all} requests were not answered in time",
            row.peer.behind()
        ));
    }
    lines.extend(row.missing.as_ref().map(|why| missing(why, row.peer.0.len())));
    lines
}

/// Reason why a row is incomplete, as a sentence without its full stop.
pub fn missing(why: &Missing, rounds: usize) -> String {
    let what = if rounds == 0 { "not measured".to_owned() } else { format!("only {rounds} rounds") };
    match why {
        Missing::Peer(trouble) => format!("{what}: {trouble}"),
        Missing::Other(who, trouble) => format!("the {who} failed: {trouble}"),
        Missing::AfterTrouble => format!("{what}: the peer failed in an earlier row"),
        Missing::Time => format!("{what}: not enough time (raise --time)"),
        Missing::Interrupted => format!("{what}: interrupted"),
    }
}

fn compared(comparison: &Comparison, by: Metric) -> (Tone, String) {
    let (words, name) = match by {
        Metric::ReqS => (["faster", "slower"], "req/s"),
        Metric::P50Us => (["faster", "slower"], "p50"),
        _ => (["faster", "slower"], "p99"),
    };
    match comparison {
        Comparison::Better { by, noise } => (
            Tone::Good,
            format!("{} than the second peer: {name} by {} (noise {})", words[0], share(*by), share(*noise)),
        ),
        Comparison::Worse { by, noise } => (
            Tone::Bad,
            format!("{} than the second peer: {name} by {} (noise {})", words[1], share(*by), share(*noise)),
        ),
        Comparison::CannotTell { effect, noise } => (
            Tone::Dim,
            format!("cannot tell: {name} differs by {}, rounds differ by {}", share(*effect), share(*noise)),
        ),
    }
}

fn share(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn absolute(rounds: &Rounds) -> String {
    let value = |figure: Metric| rounds.figure(figure).map(|spread| spread.median);
    let rate = rounds.figure(Metric::ReqS);
    let mut out = format!("{:>9}{:>6}", show(rate.map(|rate| rate.median), count), noise(rate));
    let _ = write!(out, "{:>10}", show(value(Metric::MbS), |value| format!("{value:.1}")));
    for figure in [Metric::P50Us, Metric::P90Us, Metric::P99Us, Metric::P999Us, Metric::MaxUs, Metric::CpuUs]
    {
        let _ = write!(out, "{:>10}", show(value(figure), micros));
    }
    let _ = write!(out, "{:>10}", show(value(Metric::RssPeak), bytes));
    let _ = write!(out, "{:>10}", show(value(Metric::RssSlope), |value| format!("{}/r", bytes(value))));
    out
}

fn ratios(rounds: &Rounds, other: &Rounds) -> String {
    let ratio = |figure: Metric| rounds.ratio(other, figure);
    let cell =
        |figure: Metric| show(ratio(figure).map(|spread| spread.median), |value| format!("{value:.2}×"));
    let rate = ratio(Metric::ReqS);
    let mut out = format!("{:>9}{:>6}", cell(Metric::ReqS), noise(rate));
    for figure in &Metric::ALL[1..9] {
        let _ = write!(out, "{:>10}", cell(*figure));
    }
    out
}

fn noise(spread: Option<Spread>) -> String {
    show(spread, |spread| format!("{:.0}%", spread.noise() * 100.0))
}

fn show<T>(value: Option<T>, form: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), form)
}

fn count(value: f64) -> String {
    if value >= 100.0 { thousands(value.round() as u64) } else { format!("{value:.1}") }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn micros(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{:.2}s", value / 1e6),
        _ if value >= 1e3 => format!("{:.2}ms", value / 1e3),
        _ => format!("{value:.1}µs"),
    }
}

fn bytes(value: f64) -> String {
    match value.abs() {
        size if size >= f64::from(1 << 20) => format!("{:.1}MiB", value / f64::from(1 << 20)),
        size if size >= 1_024.0 => format!("{:.1}KiB", value / 1_024.0),
        size if size < 0.5 => "0B".to_owned(),
        _ => format!("{value:.0}B"),
    }
}

/// Cost of recording and judging, on one line.
pub fn overhead(found: &Overhead) -> String {
    format!(
        "checked exchanges: {}/s with transcript and oracles, {}/s in a bare loop: ratio {:.2} ({:.2}–{:.2})\n",
        count(found.checked.median),
        count(found.bare.median),
        found.share.median,
        found.share.low,
        found.share.high
    )
}

/// Lines about broken bounds.
pub fn broken(broken: &[Broken], printer: &Printer) -> String {
    let mut out = String::new();
    for Broken { row, key, bound, got } in broken {
        let got = show(*got, |got| format!("{got:.2}"));
        let line = format!("over budget: {row}: {key} is {bound}, measured {got}");
        let _ = writeln!(out, "{}", printer.paint(Tone::Bad, &line));
    }
    out
}

/// Legend of the columns.
pub fn legend() -> String {
    let text = "± is the largest distance of a round from the median. ÷ echo: the figure as a multiple of \
        that of a peer that only copies, measured in the same rounds. Open loops count latency from the \
        scheduled time of a request. A percentile is missing if there are too few requests for it. MB/s \
        are bytes of requests; slope is the growth of resident memory per request.";
    format!("\n{}\n", wrap(text, ""))
}

/// First line of a file.
pub fn head_json(header: &Header) -> Value {
    json!({
        "type": "bench",
        "boundary": header.boundary,
        "peer": header.peer,
        "against": header.against,
        "time_s": header.time_s,
        "rounds": header.rounds,
        "planned": header.planned,
        "notes": header.notes,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Line of a row in a file.
pub fn row_json(row: &BenchRow) -> Value {
    let mut value = json!({
        "type": "row",
        "id": row.id,
        "peer": row.peer.to_json(),
        "echo": row.echo.to_json(),
        "ratio_to_echo": row.peer.ratios_to_json(&row.echo),
    });
    if let Some(against) = &row.against {
        value["against"] = against.to_json();
        value["ratio_to_against"] = row.peer.ratios_to_json(against);
        value["decisive"] = json!(row.decisive.name());
        value["comparison"] = json!(row.comparison());
    }
    if let Some(why) = &row.missing {
        value["missing"] = json!(missing(why, row.peer.0.len()));
    }
    value
}

/// Line about the cost of recording and judging.
pub fn overhead_json(found: &Overhead) -> Value {
    json!({
        "type": "harness_overhead",
        "bare_req_s": found.bare,
        "checked_req_s": found.checked,
        "checked_of_bare": found.share,
    })
}

/// Last line of a file.
pub fn end_json(broken: &[Broken], exit_code: i32) -> Value {
    let broken: Vec<Value> = broken
        .iter()
        .map(|broken| json!({ "row": broken.row, "key": broken.key, "bound": broken.bound, "got": broken.got }))
        .collect();
    json!({ "type": "end", "broken": broken, "exit_code": exit_code })
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::run::bench::live::Trouble;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([count(1_234_567.0), count(12.34)], ["1,234,567", "12.3"]);
        assert_eq!([micros(8.04), micros(1_500.0), micros(2e6)], ["8.0µs", "1.50ms", "2.00s"]);
        assert_eq!([bytes(0.1), bytes(-2_048.0), bytes(3.5 * 1_048_576.0)], ["0B", "-2.0KiB", "3.5MiB"]);
    }

    #[test]
    fn a_row_without_figures_says_why() {
        let mut row = BenchRow::planned("serve/64B/ping-pong/one-core");
        row.missing = Some(Missing::Peer(Trouble::Died("the process ended with status 3".to_owned())));
        let text = super::row(&row, &Printer::plain());
        assert!(text.contains("not measured: the process ended with status 3"), "{text}");
        assert_eq!(row_json(&row)["peer"]["requests"], 0);
    }

    #[test]
    fn a_comparison_that_decides_nothing_says_so() {
        let (_, text) = compared(&Comparison::CannotTell { effect: 0.02, noise: 0.05 }, Metric::ReqS);
        assert_eq!(text, "cannot tell: req/s differs by 2.0 %, rounds differ by 5.0 %");
    }
}
