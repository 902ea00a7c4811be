//! Reads what an answer took while it goes through: `usage` of a document, or of server-sent events. What cannot be read is
//! not taken for nothing.

use serde_json::Value;

use super::asked::{PricedRequest, WorstCase};
use super::dollars::Dollars;
use super::model_service::Endpoint;
use super::tokens::TokenCounts;

/// The longest document and the longest line of a stream that are read.
// Beyond it nothing more is read, and the answer counts as the most that it can be.
const LONGEST: usize = 64 << 20;

/// Reads an answer.
#[derive(Debug)]
pub struct Meter {
    endpoint: Endpoint,
    is_stream: bool,
    /// What was not read yet: a line that has no end, or the document so far.
    begun: Vec<u8>,
    is_too_long: bool,
    counts: Option<TokenCounts>,
    /// Whether the service has said that nothing more follows.
    is_over: bool,
    model: Option<String>,
}

/// What was read of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What the service says that it took, the last time that it said so.
    pub counts: Option<TokenCounts>,
    /// Whether nothing can have come after that.
    pub is_final: bool,
    /// The model that answered.
    pub model: Option<String>,
}

impl Meter {
    /// Makes a reader of an answer to a request of this kind.
    pub fn new(endpoint: Endpoint, content_type: Option<&str>) -> Self {
        let is_stream = content_type.is_some_and(|of| of.trim_start().starts_with("text/event-stream"));
        Self {
            endpoint,
            is_stream,
            begun: Vec::new(),
            is_too_long: false,
            counts: None,
            is_over: false,
            model: None,
        }
    }

    /// Takes what came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.is_too_long {
            return;
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n').filter(|_| self.is_stream) {
            self.keep(&rest[..end]);
            let line = std::mem::take(&mut self.begun);
            self.line(&line);
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.begun.len() + bytes.len() > LONGEST {
            // Whatever is said afterwards, something was not read.
            (self.is_too_long, self.counts, self.begun) = (true, None, Vec::new());
        } else if !self.is_too_long {
            self.begun.extend_from_slice(bytes);
        }
    }

    /// Takes a line of a stream. Only such are parsed as can say something of use.
    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else { return };
        if data == b"[DONE]" {
            self.is_over = true;
            return;
        }
        // `sage` stands in `usage`, in `usageMetadata` and in `message`.
        let says = |word: &[u8]| data.windows(word.len()).any(|window| window == word);
        if says(b"sage") || says(b"_stop") {
            match serde_json::from_slice(data) {
                Ok(event) => self.event(&event),
                Err(_) => self.counts = None,
            }
        }
    }

    fn event(&mut self, event: &Value) {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        match self.endpoint {
            Endpoint::Messages => {
                match kind {
                    "message_start" => self.document(event.get("message")),
                    "message_delta" => self.delta(event.get("usage")),
                    _ => {}
                }
                let stops = event.get("delta").and_then(|delta| delta.get("stop_reason"));
                self.is_over |= kind == "message_stop" || stops.is_some_and(Value::is_string);
            }
            Endpoint::Responses => {
                let is_end = ["response.completed", "response.incomplete", "response.failed"].contains(&kind);
                if is_end {
                    self.document(event.get("response"));
                    self.is_over = true;
                }
            }
            Endpoint::Chat => self.document(Some(event)),
            Endpoint::Generate => {
                self.document(Some(event));
                let candidates = event.get("candidates").and_then(Value::as_array);
                let is_end = |one: &Value| one.get("finishReason").is_some_and(Value::is_string);
                self.is_over |= candidates.is_some_and(|all| all.iter().any(is_end));
            }
            Endpoint::Free => {}
        }
    }

    /// Takes what the end of a message of Anthropic says: everything that it names so far, and the rest stays.
    fn delta(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let said = anthropic(usage, self.counts.map(|counts| counts.input));
        self.counts = said.zip(self.counts).map(|(said, before)| before.or_more(said));
    }

    /// Takes a document that has everything in it.
    fn document(&mut self, document: Option<&Value>) {
        let Some(document) = document else { return };
        let model = ["model", "modelVersion"].into_iter().find_map(|key| document.get(key)?.as_str());
        self.model = model.map(str::to_owned).or(self.model.take());
        let usage = |key: &str| document.get(key).filter(|usage| !usage.is_null());
        let (usage, read): (_, fn(&Value) -> Option<TokenCounts>) = match self.endpoint {
            Endpoint::Messages => (usage("usage"), |usage| anthropic(usage, None)),
            Endpoint::Responses => (usage("usage"), |usage| openai(usage, &RESPONSES)),
            Endpoint::Chat => (usage("usage"), |usage| openai(usage, &CHAT)),
            Endpoint::Generate => (usage("usageMetadata"), gemini),
            Endpoint::Free => return,
        };
        if let Some(usage) = usage {
            let before = self.counts.take().unwrap_or_default();
            // The thoughts of a model may be told apart from its words only at the end.
            self.counts = read(usage).map(|said| before.or_more(said));
        }
    }

    /// Returns what was read, once nothing more comes. Of an answer that may have been cut, its own end is looked for.
    pub fn end(mut self, is_cut: bool) -> Reading {
        let rest = std::mem::take(&mut self.begun);
        if self.is_stream {
            self.line(&rest);
            // Anthropic says at the start what was read, and only at the end what was written.
            self.is_over |= !is_cut && self.endpoint != Endpoint::Messages;
        } else {
            match serde_json::from_slice(&rest) {
                // Gemini's stream without events is a list of them.
                Ok(Value::Array(all)) => all.iter().for_each(|one| self.document(Some(one))),
                Ok(document) => self.document(Some(&document)),
                Err(_) => self.counts = None,
            }
            // A document that can be read is whole.
            self.is_over = true;
        }
        let is_final = self.counts.is_some() && self.is_over;
        Reading { counts: self.counts, is_final, model: self.model }
    }
}

/// What is charged for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The tokens.
    pub counts: TokenCounts,
    /// The price, where it is known.
    pub cost: Option<Dollars>,
    /// What is odd about it.
    pub oddity: Option<WireOddity>,
}

/// What is odd about what a service says that an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WireOddity {
    /// It does not say it, so the most that it can be counts.
    Unsaid,
    /// It says more than the request can have taken.
    Beyond,
}

/// Returns what a request is charged that the service has answered with success.
pub fn charge(worst: &WorstCase, reading: &Reading) -> Charge {
    let most = TokenCounts { input: worst.read, output: worst.output, ..TokenCounts::default() };
    let (counts, oddity) = match reading.counts {
        Some(said) if reading.is_final => {
            // Beyond its bound or not, what the service says is what it will bill.
            let is_beyond = said.read() > worst.read || said.output > worst.output;
            (said, is_beyond.then_some(WireOddity::Beyond))
        }
        // What was read is known, what was written is not.
        Some(said) if said.read() > 0 => {
            (TokenCounts { output: worst.output, ..said }, Some(WireOddity::Unsaid))
        }
        Some(_) | None => (most, Some(WireOddity::Unsaid)),
    };
    let cost = |priced: &PricedRequest| {
        // The bound may have the price of writing to a cache, which these counts do not show.
        if counts == most { priced.most } else { priced.price.of(&counts) }
    };
    Charge { counts, cost: worst.cost.as_ref().ok().map(cost), oddity }
}

fn number(of: &Value, key: &str) -> Option<u64> {
    of.get(key)?.as_u64()
}

/// Returns a count that may be left out; none where it is there and no count.
fn optional(of: Option<&Value>, key: &str) -> Option<u64> {
    match of.and_then(|of| of.get(key)) {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_u64(),
    }
}

fn anthropic(usage: &Value, input_before: Option<u64>) -> Option<TokenCounts> {
    let written = optional(Some(usage), "cache_creation_input_tokens")?;
    let by_time = usage.get("cache_creation");
    // A service that contradicts itself must not make the subtraction below wrap.
    let for_an_hour = optional(by_time, "ephemeral_1h_input_tokens")?.min(written);
    let input = match (usage.get("input_tokens"), input_before) {
        (None | Some(Value::Null), Some(before)) => before,
        (Some(input), _) => input.as_u64()?,
        (None, None) => return None,
    };
    Some(TokenCounts {
        input,
        cached: optional(Some(usage), "cache_read_input_tokens")?,
        written: written - for_an_hour,
        written_for_an_hour: for_an_hour,
        output: number(usage, "output_tokens")?,
    })
}

/// Returns counts of a service that counts what comes from a cache as read.
fn with_cache(read: u64, cached: u64, written: u64, output: u64) -> TokenCounts {
    // Here as well, a part must not be larger than the whole.
    let cached = cached.min(read);
    let written = written.min(read - cached);
    TokenCounts { input: read - cached - written, cached, written, written_for_an_hour: 0, output }
}

/// The names by which the two APIs of OpenAI say the same.
struct OpenAiNames {
    read: &'static str,
    details: &'static str,
    output: &'static str,
}

const RESPONSES: OpenAiNames =
    OpenAiNames { read: "input_tokens", details: "input_tokens_details", output: "output_tokens" };

const CHAT: OpenAiNames =
    OpenAiNames { read: "prompt_tokens", details: "prompt_tokens_details", output: "completion_tokens" };

fn openai(usage: &Value, names: &OpenAiNames) -> Option<TokenCounts> {
    let details = usage.get(names.details);
    let (cached, written) = (optional(details, "cached_tokens")?, optional(details, "cache_write_tokens")?);
    let read = number(usage, names.read)?;
    let output = number(usage, names.output)?;
    Some(with_cache(read, cached, written, output.max(rest_of(usage, "total_tokens", read)?)))
}

fn gemini(usage: &Value) -> Option<TokenCounts> {
    let of_tools = optional(Some(usage), "toolUsePromptTokenCount")?;
    let read = number(usage, "promptTokenCount")?.saturating_add(of_tools);
    let cached = optional(Some(usage), "cachedContentTokenCount")?;
    let words = optional(Some(usage), "candidatesTokenCount")?;
    let thoughts = optional(Some(usage), "thoughtsTokenCount")?;
    let output = words.saturating_add(thoughts).max(rest_of(usage, "totalTokenCount", read)?);
    Some(with_cache(read, cached, 0, output))
}

/// Returns what a total has beyond what was read: some services leave thoughts out of what was written.
fn rest_of(usage: &Value, total: &str, read: u64) -> Option<u64> {
    Some(optional(Some(usage), total)?.saturating_sub(read))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "text/event-stream; charset=utf-8";

    fn read(endpoint: Endpoint, content_type: &str, text: &str, is_cut: bool) -> Reading {
        let mut meter = Meter::new(endpoint, Some(content_type));
        meter.push(text.as_bytes());
        meter.end(is_cut)
    }

    fn counts(input: u64, output: u64) -> TokenCounts {
        TokenCounts { input, output, ..TokenCounts::default() }
    }

    const MESSAGE: &str = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":3},"output_tokens":1}}}"#,
        "\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}"#,
        "\n\ndata: {\"type\":\"message_stop\"}\n\n",
    );

    #[test]
    fn every_api_says_what_an_answer_took() {
        let of = read(Endpoint::Messages, STREAM, MESSAGE, false);
        let said = TokenCounts { input: 10, cached: 5, written: 4, written_for_an_hour: 3, output: 20 };
        assert_eq!(of, Reading { counts: Some(said), is_final: true, model: Some("m".to_owned()) });
        for (endpoint, kind, text, expected) in [
            (
                Endpoint::Messages,
                "application/json",
                r#"{"usage":{"input_tokens":10,"output_tokens":2}}"#,
                counts(10, 2),
            ),
            (
                Endpoint::Responses,
                STREAM,
                "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":3,\"total_tokens\":13}}}\n\n",
                TokenCounts { input: 6, cached: 4, output: 3, ..TokenCounts::default() },
            ),
            (
                Endpoint::Chat,
                STREAM,
                "data: {\"choices\":[],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":20}}\n\ndata: [DONE]\n\n",
                counts(10, 10),
            ),
            (
                Endpoint::Generate,
                STREAM,
                "data: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":1,\"totalTokenCount\":11}}\r\n\r\ndata: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":4,\"totalTokenCount\":16}}\r\n\r\n",
                counts(10, 6),
            ),
            (
                Endpoint::Generate,
                "application/json",
                r#"[{"usageMetadata":{"promptTokenCount":1}},{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}]"#,
                counts(1, 2),
            ),
        ] {
            let of = read(endpoint, kind, text, false);
            assert_eq!((of.counts, of.is_final), (Some(expected), true), "{endpoint:?}");
        }
    }

    #[test]
    fn what_is_odd_is_not_taken_for_nothing() {
        for usage in [
            "null",
            "{}",
            r#"{"input_tokens":-1,"output_tokens":1}"#,
            r#"{"input_tokens":"1","output_tokens":1}"#,
            r#"{"input_tokens":1}"#,
            r#"{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":-5}"#,
            r#"{"input_tokens":1,"output_tokens":1e3}"#,
        ] {
            let of = read(Endpoint::Messages, "application/json", &format!(r#"{{"usage":{usage}}}"#), false);
            assert_eq!((of.counts, of.is_final), (None, false), "{usage}");
        }
        assert_eq!(read(Endpoint::Chat, STREAM, "data: [DONE]\n\n", false).counts, None);
    }

    #[test]
    fn of_a_cut_answer_what_was_read_is_known() {
        let worst =
            WorstCase { read: 100, output: 50, cost: Err(super::super::asked::NoPrice::Surcharge("x")) };
        let start = MESSAGE.split("\n\nevent").next().unwrap();
        let of = read(Endpoint::Messages, STREAM, &format!("{start}\n\n"), true);
        assert!(!of.is_final);
        let charged = charge(&worst, &of);
        assert_eq!((charged.counts.read(), charged.counts.output), (22, 50));
        assert_eq!(charge(&worst, &Reading::default()).counts, counts(100, 50));
        // All of it was said before it was cut.
        assert!(read(Endpoint::Messages, STREAM, MESSAGE, true).is_final);
    }

    #[test]
    fn more_than_a_request_can_take_is_counted_and_said() {
        let worst =
            WorstCase { read: 100, output: 50, cost: Err(super::super::asked::NoPrice::Surcharge("x")) };
        let said = Reading { counts: Some(counts(100, 51)), is_final: true, model: None };
        let charged = charge(&worst, &said);
        assert_eq!((charged.counts.output, charged.oddity), (51, Some(WireOddity::Beyond)));
    }

    proptest! {
        #[test]
        fn where_a_stream_is_cut_into_pieces_makes_no_difference(cuts in prop::collection::vec(1..80_usize, 0..20)) {
            let mut meter = Meter::new(Endpoint::Messages, Some(STREAM));
            let mut rest = MESSAGE.as_bytes();
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                meter.push(piece);
                rest = behind;
            }
            meter.push(rest);
            prop_assert_eq!(meter.end(false), read(Endpoint::Messages, STREAM, MESSAGE, false));
        }

        #[test]
        fn a_cut_answer_is_never_charged_less_than_a_whole_one(end in 0..MESSAGE.len()) {
            let worst = WorstCase { read: 100, output: 50, cost: Err(super::super::asked::NoPrice::Surcharge("x")) };
            let whole = charge(&worst, &read(Endpoint::Messages, STREAM, MESSAGE, false)).counts;
            let cut = charge(&worst, &read(Endpoint::Messages, STREAM, &MESSAGE[..end], true)).counts;
            prop_assert!(cut.read() >= whole.read() && cut.output >= whole.output);
        }
    }
}
