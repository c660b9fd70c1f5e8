//! Checks about the adapter's token.

use peerproof_engine::data::carriage::{BodyFraming, Carriage};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;

use super::cases::{asks_health, health, sized};
use super::{PATH, Talk, Token, check, with_token};

/// Sends a request without the token, followed by a canary with it.
fn without(talk: &mut Talk<'_>, aim: &str, how: Carriage, body: Payload) {
    let own = talk.token.take();
    // Servers may wait 1 s for a body that is held back.
    let allow_ms = if how.held_back { 1_000 } else { 0 };
    talk.send(aim, how, body, 1).allow_ms = allow_ms;
    talk.token = own;
    talk.canary();
    talk.look();
}

/// Header values with these texts instead of the token.
fn wrong(own: &Token, texts: Vec<String>) -> Vec<String> {
    texts.iter().map(|text| own.value.replace(&own.token, text)).collect()
}

/// Check that header values with other texts than the token are refused.
fn valued(id: &str, title: &str, values: fn(&Token) -> Vec<String>) -> Check {
    with_token(&format!("token/{id}"), title, &["QUE-TOK-01"], move |talk| {
        let Some(own) = talk.token.clone() else { return Ok(()) };
        let values = values(&own);
        if values.is_empty() {
            return Err(Untestable::new("no_scheme", "the value of the header has no blank to leave out"));
        }
        for value in values {
            let job = talk.job();
            let headers = vec![format!("{}: {}", own.header, value.trim_end())];
            talk.ask("QUE-TOK-01", Carriage { headers, ..Carriage::post() }, Payload::text(job));
        }
        Ok(())
    })
}

/// All checks about the token.
pub(super) fn checks() -> Vec<Check> {
    vec![
        valued("near-misses", "Text that is nearly the token is answered by 401.", |own| {
            let token = &own.token;
            let mut texts: Vec<String> = near_misses(token).into_iter().map(|miss| miss.text).collect();
            // Other characters cannot occur in a header, or are lost there.
            texts.retain(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
            texts.extend([format!("x{token}"), token[token.len() / 2..].to_owned(), token[..1].to_owned()]);
            wrong(own, texts)
        }),
        valued("another", "Another token of the same length is answered by 401.", |own| {
            wrong(own, vec![own.token.chars().rev().collect(), "x".repeat(own.token.len())])
        }),
        valued("empty", "An empty token is answered by 401.", |own| wrong(own, vec![String::new()])),
        valued("no-blank", "The token without the blank before it is answered by 401.", |own| {
            let value = own.value.replace(' ', "");
            if value == own.value { Vec::new() } else { vec![value] }
        }),
        with_token(
            "token/missing",
            "Without the token a request is answered by 401, whatever the size and framing of its body.",
            &["QUE-TOK-01"],
            |talk| {
                let post = Carriage::post;
                let waits = vec!["Expect: 100-continue".to_owned()];
                let ways = [
                    post(),
                    post().framing(BodyFraming::Chunked(1 << 20)),
                    Carriage { headers: waits, held_back: true, ..post() },
                    post().content_type(None),
                    Carriage { path: Some(format!("{PATH}?priority=1")), ..post() },
                ];
                without(talk, "QUE-TOK-01", post(), Payload::text("no job"));
                for way in ways {
                    let job = talk.job();
                    without(talk, "QUE-TOK-01", way.on(1), Payload::text(job));
                }
                for bytes in [200_000, 2 << 20] {
                    let job = talk.job();
                    without(talk, "QUE-TOK-01", post().on(1), sized(&job, bytes, "x"));
                }
                Ok(())
            },
        ),
        with_token("token/secret", "No reply and no job contains the token.", &["QUE-TOK-02"], |talk| {
            health(talk, "");
            talk.ask("", Carriage::post(), Payload::text("no job"));
            talk.ask(
                "QUE-HTTP-19",
                Carriage { path: Some("/x".to_owned()), ..Carriage::post() },
                Payload::text("{}"),
            );
            let headers = vec!["Authorization: Bearer x".to_owned(), "X-Token: x".to_owned()];
            let job = talk.job();
            talk.ask("QUE-TOK-01", Carriage { headers, ..Carriage::post() }, Payload::text(job));
            Ok(())
        }),
        with_token(
            "token/health",
            "`GET /health` with the token is answered by 200.",
            &["QUE-HTTP-23"],
            |talk| {
                health(talk, "QUE-HTTP-23");
                Ok(())
            },
        ),
        with_token(
            "token/health-without",
            "`GET /health` without the token is answered by 200 or 401.",
            &["QUE-HTTP-24"],
            |talk| {
                without(talk, "QUE-HTTP-24", asks_health(), Payload::default());
                Ok(())
            },
        ),
        check(
            "token/none-configured",
            "Without a configured token, no token is needed.",
            &["QUE-TOK-03"],
            |talk| {
                let job = talk.job();
                talk.put("QUE-TOK-03", Carriage::post(), &job);
                let headers = vec!["Authorization: Bearer x".to_owned()];
                let job = talk.job();
                talk.put("QUE-TOK-03", Carriage { headers, ..Carriage::post() }, &job);
                talk.canary();
                talk.look();
                Ok(())
            },
        ),
    ]
}
