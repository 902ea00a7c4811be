//! A ledger that a service of the organisation keeps: it gives the lines of the day out with an entity tag, and takes lines that are
//! added to what has that tag. Whether anybody may take lines out is decided there.

use std::time::Duration;

use http::{Request, Response};

use super::day_ledger::{Appended, MOST_BYTES};
use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::base::text::{one_line, up_to};
use crate::context::Session;
use crate::forge::github::client::{Body, LostAnswer};
use crate::forge::github::http::Transport;

/// How long a request may take altogether.
const WHOLE: Duration = Duration::from_secs(30);

/// A service with a ledger.
pub(crate) struct WebLedger {
    address: String,
    shown: String,
    token: Option<String>,
    transport: Result<Transport, Explanation>,
}

impl WebLedger {
    /// Makes a client of the service at an address.
    pub(crate) fn new(address: &str, session: &Session<'_>) -> Self {
        let env: Lookup<'_> = &session.env.lookup();
        // A query may hold a token.
        let shown = one_line(up_to(address, &['?', '#']), 200);
        let token = session.env.ledger_token().map(str::to_owned);
        Self { address: address.to_owned(), shown, token, transport: Transport::from_env(env) }
    }

    /// Returns how people know it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the text and its entity tag; nothing where the service has no ledger.
    pub(crate) fn read(&self) -> Result<Option<(String, String)>, Explanation> {
        let mut answer = self.ask(Request::get(&self.address), None)?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            status => return Err(status_said(status)),
        }
        let tag = answer.headers().get("ETag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let tag = tag.ok_or_else(|| Explanation::new("it names no entity tag (`ETag`)"))?;
        let text = answer.body_mut().read_up_to(MOST_BYTES as u64).map_err(lost)?;
        let text = String::from_utf8(text).map_err(|_| Explanation::new("it is not UTF-8"))?;
        Ok(Some((text, tag)))
    }

    /// Adds lines to what has a tag.
    pub(crate) fn append(&self, tag: &str, lines: &str) -> Result<Appended, Explanation> {
        self.post(("If-Match", tag), lines)
    }

    /// Begins a ledger where there is none.
    pub(crate) fn begin(&self, lines: &str) -> Result<Appended, Explanation> {
        self.post(("If-None-Match", "*"), lines)
    }

    fn post(&self, (condition, value): (&str, &str), lines: &str) -> Result<Appended, Explanation> {
        let request = Request::post(&self.address)
            .header(condition, value)
            .header("Content-Type", "application/x-ndjson");
        match self.ask(request, Some(lines.as_bytes()))?.status().as_u16() {
            200..=299 => Ok(Appended::Done),
            // Services are to answer 412, as `If-Match` has it; one that says 409 cannot mean anything else.
            409 | 412 => Ok(Appended::Outrun),
            status => Ok(Appended::Refused(status_said(status))),
        }
    }

    fn ask(
        &self,
        request: http::request::Builder,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, Explanation> {
        let request = match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        };
        let request =
            request.body(body).map_err(|_| Explanation::new("it is not an address that can be asked"))?;
        let transport = self.transport.as_ref().map_err(Clone::clone)?;
        transport.client(Some(WHOLE)).send(request).map_err(lost)
    }
}

fn status_said(status: u16) -> Explanation {
    Explanation::new(format!("it answers with the status {status}"))
}

fn lost(answer: LostAnswer) -> Explanation {
    let (LostAnswer::Impossible(why) | LostAnswer::Unsent(why) | LostAnswer::Unanswered(why)) = answer;
    Explanation::new(format!("no answer: {}", one_line(&why, 200)))
}
