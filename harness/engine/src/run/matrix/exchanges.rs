//! Exchanges of a face's peers in a comparable form.

use crate::contract::boundary::NormalizedExchange;
use crate::contract::face::{Answer, ExpectedPart, Face, fitting, misfit, phrase};
use crate::contract::judge::listen;
use crate::data::payload::shorten;
use crate::data::transcript::Transcript;

/// Maximum number of characters that are shown and compared.
const CHARS_MAX: usize = 240;

/// Exchanges of all sessions in the order of sending. `told` renders a message without irrelevant parts.
pub fn of<F: Face>(
    face: &F,
    transcript: &Transcript,
    told: impl Fn(&ExpectedPart<F>, &F::Message) -> String,
) -> Vec<NormalizedExchange> {
    let cut = |text: &str| shorten(text, CHARS_MAX).into_owned();
    listen(face, transcript, |trace| {
        let mut all = Vec::new();
        let heard = trace.sessions.iter();
        for (asked, came, lines) in heard
            .flat_map(|heard| heard.exchanges.iter().map(move |(asked, came)| (asked, came, heard.lines)))
        {
            let line = asked.line.and_then(|line| lines.get(line));
            let sent = line.map(|line| cut(&String::from_utf8_lossy(&line.bytes))).unwrap_or_default();
            for (part, answer) in asked.due.parts.iter().zip(&came.answers) {
                let (came, fault) = match answer {
                    Some(Answer { message, .. }) => {
                        let message = [*message];
                        let fits = fitting(face, part, &message).is_some();
                        let fault = (!fits).then(|| misfit(face, part, &message).reason);
                        (cut(&told(part, message[0])), fault)
                    }
                    None => ("nothing".to_owned(), (!part.may_be_silent()).then_some("no_reply")),
                };
                all.push(NormalizedExchange {
                    sent: sent.clone(),
                    came,
                    clause: part.clause.to_owned(),
                    choice: part.choice.map(str::to_owned),
                    expected: cut(&phrase(face, part)),
                    fault: fault.map(str::to_owned),
                });
            }
        }
        all
    })
}
