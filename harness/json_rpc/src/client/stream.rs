//! Reports that a client may give of a stream for one of its requests.

use super::allowed_outcome::AllowedOutcome;
use peerproof_engine::data::json::Json;

/// The stream of one request so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    id: Option<String>,
    chunks: u64,
    ended: bool,
    broken: bool,
    /// Number of messages after its end.
    stray: u64,
}

impl Stream {
    /// Handles a notification of the server; `request` is the id of the client's request.
    pub(crate) fn hears(&mut self, message: &Json, request: &Json) {
        let param = |name: &str| message.get("params")?.get(name);
        let id = param("stream_id").and_then(Json::as_str);
        let is_its = id.is_some() && id == self.id.as_deref();
        match message.get("method").and_then(Json::as_str) {
            Some("stream_start") if param("task_id") == Some(request) => {
                self.broken |= self.id.is_some();
                self.id = id.map(str::to_owned);
            }
            Some("stream_data" | "stream_end") if is_its && self.ended => self.stray += 1,
            Some("stream_data") if is_its => match param("sequence").and_then(Json::as_u64) {
                Some(number) if number == self.chunks + 1 => self.chunks = number,
                _ => self.broken = true,
            },
            Some("stream_end") if is_its => {
                self.ended = true;
                self.broken |= param("total_chunks").and_then(Json::as_u64) != Some(self.chunks);
            }
            _ => {}
        }
    }

    /// True after a `stream_start`.
    pub(crate) fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    /// Adds the allowed reports of the stream to `way`, the end of its request.
    pub(super) fn told(&self, way: AllowedOutcome) -> Vec<AllowedOutcome> {
        let is_whole = self.ended && !self.broken;
        let stray = if is_whole { self.stray } else { 0 };
        let whole = (self.chunks..=self.chunks + stray)
            .map(|chunks| AllowedOutcome { chunks: Some(chunks), stream_ok: Some(true), ..way.clone() })
            .filter(|_| is_whole);
        let torn = AllowedOutcome { stream_ok: Some(false), ..way.clone() };
        match self.has_begun() {
            false => vec![way],
            // A client may count messages after the end as damage, or ignore them.
            true => whole.chain((!is_whole || stray > 0).then_some(torn)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allowed reports of a stream of this form: `s` for the start, `1`–`9` for data, `e` and a total for the end.
    fn told(form: &str) -> Vec<(Option<u64>, Option<bool>)> {
        let mut stream = Stream::default();
        let mut signs = form.chars();
        while let Some(sign) = signs.next() {
            let (method, more) = match sign {
                's' => ("start", "\"task_id\":7".to_owned()),
                'e' => ("end", format!("\"total_chunks\":{}", signs.next().unwrap())),
                number => ("data", format!("\"sequence\":{number}")),
            };
            let text =
                format!("{{\"method\":\"stream_{method}\",\"params\":{{\"stream_id\":\"x\",{more}}}}}");
            stream.hears(&text.parse().unwrap(), &Json::from(7));
        }
        let ways = stream.told(AllowedOutcome::of("result")).into_iter();
        ways.map(|way| (way.chunks, way.stream_ok)).collect()
    }

    #[test]
    fn a_stream_is_whole_or_not() {
        assert_eq!(told("s123e3"), [(Some(3), Some(true))]);
        assert_eq!(told("se0"), [(Some(0), Some(true))]);
        for torn in ["s13e2", "s2e1", "s112e3", "s213e3", "s12e3", "s12", "ss12e2", "s1s2e2"] {
            assert_eq!(told(torn), [(None, Some(false))], "{torn}");
        }
        assert_eq!(told("s1e12"), [(Some(1), Some(true)), (Some(2), Some(true)), (None, Some(false))]);
        assert_eq!(told("1e1"), [(None, None)], "that is nobody's");
    }
}
