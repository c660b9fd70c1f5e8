//! Properties of the reference worker and the model for any bytes. Fuzz targets and tests call the same functions,
//! which panic if a property does not hold.

use peerproof_reference::http::{HttpCaps, HttpStep, RequestReader};
use peerproof_reference::run_queue::disk::{Disk, Fault, Kind, Op, OpResult};
use peerproof_reference::run_queue::{Adapter, Careful, Config, Decisions as _, Parts};

use peerproof_run_queue::http::may_answer;
use peerproof_run_queue::job::{self, JobVerdict};

/// The model does not call a job malformed that the reference accepts. The reference refuses more: known members of
/// wrong types.
///
/// # Panics
/// Panics if the property does not hold.
pub fn job(data: &[u8]) {
    if Careful.read(data, &Config::default()).is_ok() {
        let what = job::read(data);
        assert!(!matches!(what, JobVerdict::Malformed(_)), "{what:?}: {}", String::from_utf8_lossy(data));
    }
}

/// The model allows the reference adapter's answer to any request.
///
/// # Panics
/// Panics if the property does not hold.
pub fn http(data: &[u8]) {
    let caps = HttpCaps {
        head_bytes_max: 64 << 10,
        body_bytes_max: job::BYTES_MAX,
        discard_bytes_max: u64::MAX,
        takes_length_beside_chunks: false,
    };
    let (mut reader, mut rest) = (RequestReader::new(caps), data);
    let step = loop {
        match reader.take(&mut rest) {
            HttpStep::Continue => {}
            step => break step,
        }
    };
    let status = match step {
        HttpStep::Request(request) => {
            Adapter::new(Config::default(), Parts::new(Box::new(DiscardingStore))).answer(&request).0
        }
        HttpStep::Bad(status) => status,
        HttpStep::More | HttpStep::Continue => return,
    };
    assert!(may_answer(data, status), "status {status}: {}", data.escape_ascii());
}

/// Store that accepts every job and holds none.
struct DiscardingStore;

impl Disk for DiscardingStore {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        Ok(match op {
            Op::List(_) => OpResult::Entries(Vec::new()),
            Op::Look(_) => OpResult::Kind(Kind::Missing),
            Op::Read { .. } => return Err(Fault::Missing),
            _ => OpResult::Done,
        })
    }
}

#[cfg(test)]
mod tests {
    use peerproof_engine::data::rng::Rng;
    use peerproof_run_queue::inbox::near_miss;

    #[test]
    fn stored_requests() {
        crate::stored::replay("run_queue", super::http);
    }

    #[test]
    fn what_the_reference_answers_is_allowed() {
        let job = "{\"goal_id\":\"g\",\"inputs\":{}}";
        let head = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", job.len());
        let chunked = "Content-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n";
        let texts = [
            head("POST /enqueue", &length) + job,
            head("POST /enqueue?x=1", &length) + job,
            head("POST /enqueue", chunked) + &format!("{:x}\r\n{job}\r\n0\r\n\r\n", job.len()),
            head("POST /enqueue", &format!("{length}Expect: 100-continue\r\n")) + job,
            head("GET /health", ""),
            head("PUT /enqueue", &length) + job,
            head("POST /other", "Content-Length: 0\r\n"),
        ];
        let mut rng = Rng::new(7);
        for text in &texts {
            super::http(text.as_bytes());
            for _ in 0..2_000 {
                super::http(&near_miss(text.clone().into_bytes(), &mut rng));
            }
        }
    }

    #[test]
    fn stored_jobs() {
        crate::stored::replay("run_queue", super::job);
    }

    #[test]
    fn what_the_reference_takes_is_not_malformed() {
        for text in
            ["", "{}", "[]", "{\"goal_id\":\"g\"}", "{\"goal_id\":\"\"}", "{\"goal_id\":\"g\",\"inputs\":1}"]
        {
            super::job(text.as_bytes());
        }
    }
}
