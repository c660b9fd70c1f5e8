//! Calls in progress: their turns, their streams, their end.

use super::super::exchange::Exchange;
use super::super::job::{JobId, ReplyTo, Stream};
use super::super::method::{Outcome, Step};
use super::super::reply::{Failure, FailureKind};
use super::{Output, Server};
use crate::json::write_str;
use crate::machine::Millis;

impl Server {
    /// Runs one step of each call that is due. After much output, the rest waits for the next run.
    pub fn run(&mut self, now: Millis, out: &mut Vec<Output>) {
        let bytes_max = self.config.limits.output_batch_bytes;
        let mut bytes = 0;
        for _ in 0..self.jobs.wake(now) {
            let from = out.len();
            let Some(id) = self.jobs.next_runnable() else { return };
            self.go_on(id, now, out);
            bytes += out.iter().skip(from).map(Output::len).sum::<usize>();
            if bytes >= bytes_max {
                return;
            }
        }
    }

    fn go_on(&mut self, id: JobId, now: Millis, out: &mut Vec<Output>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.is_overdue(now) {
            let failure = Failure::new(FailureKind::Timeout, "the call was not done in its time");
            return self.finish(id, Err(failure), now, out);
        }
        match job.task.poll(now) {
            Step::WaitUntil(at) => {
                let at = at.min(job.deadline);
                self.jobs.wait(id, at);
            }
            Step::Chunk(chunk) => {
                if let Some(stream) = &mut job.stream {
                    stream.sequence += 1;
                    out.push(Output::Notice(stream_data(stream, &chunk)));
                }
                self.jobs.go_on(id);
            }
            Step::Done(outcome) => self.finish(id, outcome, now, out),
        }
    }

    fn finish(&mut self, id: JobId, outcome: Outcome, now: Millis, out: &mut Vec<Output>) {
        let Some(job) = self.jobs.remove(id) else { return };
        if let Some((method, from)) = &job.label {
            let id = job.reply_to.as_ref().map(|to| &*to.id);
            self.log(method, id, (*from, now), &outcome, out);
        }
        if let Some(stream) = &job.stream {
            out.push(Output::Notice(stream_end(stream)));
        }
        let Some(ReplyTo { exchange: number, id }) = job.reply_to else { return };
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.waiting -= 1;
        match &mut exchange.batch {
            Some(batch) => {
                let before = batch.held_bytes();
                batch.answer(&id, outcome);
                self.batch_bytes += batch.held_bytes() - before;
                self.close_if_done(number, out);
            }
            None => {
                let ticket = exchange.ticket;
                self.exchanges.remove(&number);
                self.reply(ticket, &id, outcome, out);
            }
        }
    }

    pub(super) fn close_if_done(&mut self, number: u64, out: &mut Vec<Output>) {
        if self.exchanges.get(&number).is_none_or(|exchange| exchange.waiting > 0) {
            return;
        }
        let Some(Exchange { ticket, batch: Some(batch), .. }) = self.exchanges.remove(&number) else {
            return;
        };
        self.batch_bytes -= batch.held_bytes();
        out.push(Output::Reply { ticket, body: batch.finish(), is_error: false });
    }

    /// Ends the calls that would take too long after the end of input.
    pub(crate) fn hurry(&mut self, now: Millis, out: &mut Vec<Output>) {
        for id in self.jobs.ending_after(now + self.config.limits.rpc_eof_grace_ms) {
            let failure = Failure::new(FailureKind::Unavailable, "the input ended before the call was done");
            self.finish(id, Err(failure), now, out);
        }
    }

    pub(super) fn start_stream(&mut self, task_id: &str, out: &mut Vec<Output>) -> Stream {
        self.stream_last += 1;
        let stream = Stream { number: self.stream_last, sequence: 0 };
        out.push(Output::Notice(notice(
            "stream_start",
            &stream,
            format!(",\"task_id\":{task_id}").as_bytes(),
        )));
        stream
    }
}

fn stream_data(stream: &Stream, chunk: &str) -> Vec<u8> {
    let mut members = b",\"chunk\":".to_vec();
    write_str(&mut members, chunk);
    members.extend_from_slice(format!(",\"sequence\":{}", stream.sequence).as_bytes());
    notice("stream_data", stream, &members)
}

fn stream_end(stream: &Stream) -> Vec<u8> {
    notice("stream_end", stream, format!(",\"total_chunks\":{}", stream.sequence).as_bytes())
}

fn notice(method: &str, stream: &Stream, members: &[u8]) -> Vec<u8> {
    let head = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{{\"stream_id\":\"stream_{:03}\"",
        stream.number
    );
    [head.as_bytes(), members, b"}}"].concat()
}
