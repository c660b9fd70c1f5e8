//! Mutants by tool: a fetching tool whose rule about hosts has a hole.

use super::{Mutant, Seam};
use crate::toolhost::{AllowedHosts, Answer, Components, Config, Context, HttpGet, Input, Step, Tool};

const fn http(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut Config, &mut Components),
) -> Mutant {
    Mutant { id, clauses, fault, seam: Seam::Parts(change) }
}

/// The mutants of this seam.
pub const MUTANTS: &[Mutant] = &[
    http(
        "listed-name-anywhere",
        &["TH-HTTP-08", "TH-HTTP-09"],
        "A URL that holds a listed name anywhere is fetched.",
        |config, components| {
            replace(
                config,
                components,
                |list, url| list.iter().any(|entry| url.contains(entry.as_str())),
                false,
            );
        },
    ),
    http(
        "trusts-trailing-dots",
        &["TH-HTTP-09"],
        "A host with a trailing dot is not compared with the list.",
        |config, components| {
            replace(
                config,
                components,
                |_, url| url.contains(".:") || url.contains("./") || url.ends_with('.'),
                false,
            );
        },
    ),
    http(
        "trusts-redirects",
        &["TH-HTTP-10"],
        "The target of a redirect is not checked.",
        |config, components| {
            replace(config, components, |_, _| false, true);
        },
    ),
    http("trusts-ipv6", &["TH-HTTP-12"], "IPv6 literals are not checked.", |config, components| {
        replace(config, components, |_, url| url.contains('['), false);
    }),
];

type Hole = fn(&[String], &str) -> bool;

struct Leaky {
    list: Vec<String>,
    strict: HttpGet,
    open: HttpGet,
    hole: Hole,
    trusts_redirects: bool,
    through_hole: bool,
}

fn replace(config: &mut Config, components: &mut Components, hole: Hole, trusts_redirects: bool) {
    let text = config.http_allowed_hosts.clone().unwrap_or_default();
    for aid in ["AID.NET.HTTP_GET.v1", "AID.PEERPROOF.HTTP_GET.v1"] {
        if let Some(entry) = components.tools.get_mut(aid) {
            entry.tool = Box::new(Leaky {
                list: text
                    .split(',')
                    .map(|entry| entry.trim().to_lowercase())
                    .filter(|e| !e.is_empty())
                    .collect(),
                strict: HttpGet::new(AllowedHosts::parse(&text)),
                open: HttpGet::new(AllowedHosts::parse("")),
                hole,
                trusts_redirects,
                through_hole: false,
            });
        }
    }
}

impl Tool for Leaky {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        self.through_hole = (self.hole)(&self.list, &input.text().to_lowercase());
        if self.through_hole {
            return self.open.call(input, cx);
        }
        let first = self.strict.call(input, cx);
        if self.trusts_redirects && matches!(first, Step::Fetch(_)) {
            self.through_hole = true;
            return self.open.call(input, cx);
        }
        first
    }

    fn resume(&mut self, answer: Answer, cx: &mut Context<'_>) -> Step {
        if self.through_hole { self.open.resume(answer, cx) } else { self.strict.resume(answer, cx) }
    }
}
