//! What a request asks for, and what it can take at most. A hostile agent may have written it, so the bound holds whatever
//! it says, and what was looked at is what is sent.

use serde_json::{Map, Value};

use super::dollars::Dollars;
use super::model_service::Endpoint;
use super::prices::{CacheUse, MOST_READ, MOST_WRITTEN, ModelPrice, PriceList};

/// What a request asks for, as far as its price depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedFor {
    /// The model.
    pub model: String,
    /// The longest answer that it allows, in tokens; none leaves it to the model.
    longest: Option<u64>,
    /// How many answers it wants.
    answers: u64,
    cache: CacheUse,
    /// The most tokens that stand in it.
    inside: u64,
    /// Whether the service reads more than what stands in it.
    reaches_out: bool,
    /// What makes it dearer than a price says, if something does.
    surcharge: Option<&'static str>,
}

/// The most that a request can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// Tokens that are read.
    pub read: u64,
    /// Tokens that are written.
    pub output: u64,
    /// Its price.
    pub cost: Result<PricedRequest, NoPrice>,
}

/// A request whose price is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricedRequest {
    /// What its model costs.
    pub price: ModelPrice,
    /// The most that it can cost.
    pub most: Dollars,
}

/// Why the cost of a request is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPrice {
    /// The model has no price.
    #[error("the price of `{0}` is not known; say it under `llm: {{prices: ...}}`")]
    Model(String),
    /// It asks for more than what the price of the model covers.
    #[error("`{0}` makes a request dearer than the price of its model says")]
    Surcharge(&'static str),
}

/// Why a request cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is no JSON.
    #[error("the body is not a JSON object")]
    Json,
    /// It names no model.
    #[error("the body names no model")]
    Model,
}

/// The most tokens that a service adds to a request that has tools: what it tells the model about them.
const ABOUT_TOOLS: u64 = 1_000;

/// Keys with which a request asks to be served in another way than usual, and the values that cost no more than that.
const WAYS_TO_SERVE: [(&str, &[&str]); 4] = [
    ("service_tier", &["auto", "default", "standard", "standard_only", "flex", "batch"]),
    ("serviceTier", &["auto", "default", "standard", "flex", "SERVICE_TIER_STANDARD", "SERVICE_TIER_FLEX"]),
    ("speed", &["standard"]),
    ("inference_geo", &["global"]),
];

/// Keys by which a request names what lies elsewhere, wherever they stand.
const REFERENCES: [&str; 14] = [
    "background",
    "cachedContent",
    "cached_content",
    "container",
    "conversation",
    "fileData",
    "file_data_uri",
    "file_id",
    "file_url",
    "mcp_servers",
    "previous_response_id",
    "file_uri",
    "fileUri",
    "web_search_options",
];

/// Kinds of tools that run where the agent runs. A service runs all others itself, and the model reads what they find.
const TOOLS_OF_AGENTS: [&str; 9] = [
    "apply_patch",
    "bash_",
    "computer",
    "custom",
    "function",
    "local_shell",
    "memory_",
    "shell",
    "text_editor_",
];

impl AskedFor {
    /// Reads a request; returns it with what is to be sent in its place.
    ///
    /// # Errors
    /// It is no JSON, or names no model.
    pub fn read(
        endpoint: Endpoint,
        model_of_path: Option<&str>,
        body: &[u8],
    ) -> Result<(Self, Vec<u8>), Malformed> {
        let read: Value = serde_json::from_slice(body).map_err(|_| Malformed::Json)?;
        // Written anew: of two keys of the same name, a service might take the other one.
        let body = read.to_string().into_bytes();
        let Value::Object(asked) = read else { return Err(Malformed::Json) };
        let model = model_of_path.or_else(|| asked.get("model")?.as_str());
        let model = model.filter(|model| !model.is_empty()).ok_or(Malformed::Model)?.to_owned();
        // Gemini reads both spellings; where a request has both, the larger number counts.
        let configuration = ["generationConfig", "generation_config"];
        let settings: Vec<&Map<String, Value>> = match endpoint {
            Endpoint::Generate => {
                configuration.iter().filter_map(|key| asked.get(*key)?.as_object()).collect()
            }
            Endpoint::Messages | Endpoint::Responses | Endpoint::Chat | Endpoint::Free => vec![&asked],
        };
        // OpenAI's services keep what they like in a cache, unasked.
        let unasked = matches!(endpoint, Endpoint::Responses | Endpoint::Chat);
        let cache = if unasked { CacheUse::Minutes } else { CacheUse::None };
        let mut sight = Sight { cache, ..Sight::default() };
        sight.look(&asked);
        let tools = if asked.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
            ABOUT_TOOLS
        } else {
            0
        };
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let asked = Self {
            model,
            longest: largest(&settings, longest(endpoint)),
            answers: largest(&settings, &["n", "candidateCount", "candidate_count"]).unwrap_or(1).max(1),
            cache: sight.cache,
            // A token is a byte at least.
            inside: length.saturating_add(tools),
            reaches_out: sight.reaches_out || runs_tools(&asked),
            surcharge: surcharge(&asked),
        };
        Ok((asked, body))
    }

    /// Tells whether the service reads more than what stands in it.
    pub fn reaches_out(&self) -> bool {
        self.reaches_out
    }

    /// Returns the most that it can take.
    pub fn worst_case(&self, prices: &PriceList) -> WorstCase {
        self.bounded(self.inside, prices)
    }

    /// Returns the most that it can take where the service has counted what stands in it.
    pub fn worst_case_counted(&self, counted: u64, prices: &PriceList) -> WorstCase {
        // The counts of services are estimates, and said to be close.
        let most = counted.saturating_add(counted / 50).saturating_add(256);
        // The count of the service never raises the bound that holds without it.
        self.bounded(most.min(self.inside), prices)
    }

    fn bounded(&self, inside: u64, prices: &PriceList) -> WorstCase {
        let price = prices.find(&self.model);
        let (longest, window) =
            price.map_or((MOST_WRITTEN, MOST_READ), |price| (price.longest, price.window));
        // What a service fetches by itself is bounded by what the model can read.
        let read = if self.reaches_out { window.max(inside) } else { inside };
        let output = self.longest.unwrap_or(longest).saturating_mul(self.answers);
        let cost = match (price, self.surcharge) {
            (_, Some(what)) => Err(NoPrice::Surcharge(what)),
            (None, None) => Err(NoPrice::Model(self.model.clone())),
            (Some(price), None) => Ok(PricedRequest { price, most: price.at_most(read, output, self.cache) }),
        };
        WorstCase { read, output, cost }
    }
}

/// Returns the keys that bound an answer.
fn longest(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::Messages => &["max_tokens"],
        Endpoint::Responses => &["max_output_tokens"],
        Endpoint::Chat => &["max_completion_tokens", "max_tokens"],
        Endpoint::Generate => &["maxOutputTokens", "max_output_tokens"],
        Endpoint::Free => &[],
    }
}

/// Returns the largest number under one of these keys. Where one of them holds something else, it is unknown.
fn largest(settings: &[&Map<String, Value>], keys: &[&str]) -> Option<u64> {
    let given = settings.iter().flat_map(|of| keys.iter().filter_map(|key| of.get(*key)));
    let given = given.filter(|value| !value.is_null());
    let numbers: Option<Vec<u64>> =
        // Services of Google take a number in quotes as well.
        given.map(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok())).collect();
    numbers?.into_iter().max()
}

fn surcharge(asked: &Map<String, Value>) -> Option<&'static str> {
    let is_dearer = |key: &str, usual: &[&str]| {
        let value = asked.get(key).filter(|value| !value.is_null());
        value.is_some_and(|value| !value.as_str().is_some_and(|value| usual.contains(&value)))
    };
    WAYS_TO_SERVE.iter().find(|(key, usual)| is_dearer(key, usual)).map(|(key, _)| *key)
}

/// Tells whether the service itself is asked to run tools.
fn runs_tools(asked: &Map<String, Value>) -> bool {
    let tools = asked.get("tools").and_then(Value::as_array);
    tools.into_iter().flatten().any(|tool| {
        if let Some(kind) = tool.get("type").and_then(Value::as_str) {
            // By the beginning, because many kinds end in a date, such as `bash_20250124`.
            return !TOOLS_OF_AGENTS.iter().any(|of| kind.starts_with(of));
        }
        // Anthropic's tools of the agent have a schema and need no type; Gemini's are declared as functions.
        let declares =
            |key: &String| matches!(key.as_str(), "functionDeclarations" | "function_declarations");
        let is_own = tool.get("input_schema").is_some();
        !is_own && !tool.as_object().is_some_and(|tool| tool.keys().all(declares))
    })
}

/// What is seen of a request on all levels.
#[derive(Default)]
struct Sight {
    cache: CacheUse,
    reaches_out: bool,
}

impl Sight {
    fn look(&mut self, object: &Map<String, Value>) {
        for (key, value) in object {
            match key.as_str() {
                "cache_control" if !value.is_null() => {
                    let is_hour = value.get("ttl").and_then(Value::as_str) == Some("1h");
                    self.cache = self.cache.max(if is_hour { CacheUse::Hour } else { CacheUse::Minutes });
                }
                // What a tool was called with or has answered, and what a schema says, names nothing.
                "input_schema" | "parameters" | "args" => continue,
                key if REFERENCES.contains(&key) => {
                    self.reaches_out |= !value.is_null() && *value != Value::Bool(false);
                }
                "url" | "image_url" => {
                    let address = value.as_str().or_else(|| value.get("url")?.as_str());
                    self.reaches_out |= address.is_some_and(|address| !address.starts_with("data:"));
                }
                _ => {}
            }
            self.look_at(value);
        }
    }

    // No bound is needed here: serde_json refuses what is nested deeper than 128 levels.
    fn look_at(&mut self, value: &Value) {
        match value {
            Value::Object(object) => self.look(object),
            Value::Array(values) => values.iter().for_each(|value| self.look_at(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::broker::prices::GivenPrice;

    fn read(endpoint: Endpoint, body: &str) -> AskedFor {
        AskedFor::read(endpoint, None, body.as_bytes()).unwrap().0
    }

    fn prices() -> PriceList {
        PriceList::new([("m".to_owned(), GivenPrice { input: 1.0, output: 2.0 })])
    }

    #[test]
    fn the_most_that_a_request_takes_is_what_it_says_and_how_much_it_may_answer() {
        let body = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}"#;
        let worst = read(Endpoint::Messages, body).worst_case(&prices());
        assert_eq!((worst.read, worst.output), (body.len() as u64, 50));
        let most = worst.cost.unwrap().most;
        assert_eq!(most, Dollars::per_token(1.0).times(worst.read).plus(Dollars::per_token(2.0).times(50)));
    }

    #[test]
    fn who_names_no_limit_or_an_odd_one_gets_that_of_the_model() {
        let output = |endpoint, body: &str| read(endpoint, body).worst_case(&PriceList::default()).output;
        for odd in
            ["", r#","max_output_tokens":-1"#, r#","max_output_tokens":1.5"#, r#","max_output_tokens":null"#]
        {
            assert_eq!(
                output(Endpoint::Responses, &format!(r#"{{"model":"gpt-5"{odd}}}"#)),
                128_000,
                "{odd}"
            );
        }
        assert_eq!(
            output(Endpoint::Chat, r#"{"model":"x","max_tokens":5,"max_completion_tokens":9,"n":3}"#),
            27
        );
        let twice = r#"{"model":"x","generationConfig":{"maxOutputTokens":5},"generation_config":{"max_output_tokens":"70"}}"#;
        assert_eq!(output(Endpoint::Generate, twice), 70);
    }

    #[test]
    fn what_was_looked_at_is_what_is_sent() {
        let body = r#"{"model":"dear","model":"m","max_tokens":9,"max_tokens":1}"#;
        let (asked, sent) = AskedFor::read(Endpoint::Messages, None, body.as_bytes()).unwrap();
        assert_eq!((asked.model.as_str(), asked.longest), ("m", Some(1)));
        assert_eq!(String::from_utf8(sent).unwrap(), r#"{"model":"m","max_tokens":1}"#);
        assert_eq!(AskedFor::read(Endpoint::Messages, None, b"[]"), Err(Malformed::Json));
        assert_eq!(AskedFor::read(Endpoint::Messages, None, b"{}"), Err(Malformed::Model));
        let of_path = AskedFor::read(Endpoint::Generate, Some("g"), br#"{"model":"other"}"#).unwrap().0;
        assert_eq!(of_path.model, "g");
    }

    #[test]
    fn what_lies_elsewhere_can_fill_the_window() {
        let whole = |endpoint, more: &str| {
            let worst = read(endpoint, &format!(r#"{{"model":"gemini-2.5-pro",{more}}}"#));
            worst.worst_case(&PriceList::default()).read == 1_048_576
        };
        for (endpoint, more) in [
            (
                Endpoint::Messages,
                r#""messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x/y"}}]}]"#,
            ),
            (Endpoint::Messages, r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#),
            (Endpoint::Messages, r#""mcp_servers":[{}]"#),
            (Endpoint::Responses, r#""previous_response_id":"r""#),
            (Endpoint::Responses, r#""tools":[{"type":"web_search"}]"#),
            (
                Endpoint::Chat,
                r#""messages":[{"content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]"#,
            ),
            (Endpoint::Generate, r#""cachedContent":"c""#),
            (Endpoint::Generate, r#""tools":[{"googleSearch":{}}]"#),
        ] {
            assert!(whole(endpoint, more), "{more}");
        }
        for (endpoint, more) in [
            (
                Endpoint::Messages,
                r#""tools":[{"name":"Bash","input_schema":{"properties":{"url":{"url":"x"}}}}]"#,
            ),
            (
                Endpoint::Messages,
                r#""tools":[{"type":"custom","name":"x"}],"messages":[{"content":"https://x"}]"#,
            ),
            (
                Endpoint::Responses,
                r#""tools":[{"type":"function"},{"type":"custom"}],"previous_response_id":null"#,
            ),
            (
                Endpoint::Chat,
                r#""messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AA"}}]}]"#,
            ),
            (Endpoint::Generate, r#""tools":[{"functionDeclarations":[]}]"#),
        ] {
            assert!(!whole(endpoint, more), "{more}");
        }
    }

    #[test]
    fn what_is_dearer_has_no_known_price() {
        let cost = |more: &str| {
            read(Endpoint::Responses, &format!(r#"{{"model":"m"{more}}}"#)).worst_case(&prices()).cost
        };
        assert!(cost("").is_ok() && cost(r#","service_tier":"auto","speed":null"#).is_ok());
        assert_eq!(cost(r#","service_tier":"priority""#), Err(NoPrice::Surcharge("service_tier")));
        assert_eq!(cost(r#","speed":"fast""#), Err(NoPrice::Surcharge("speed")));
        let unknown = read(Endpoint::Messages, r#"{"model":"new"}"#).worst_case(&prices()).cost;
        assert_eq!(unknown, Err(NoPrice::Model("new".to_owned())));
    }

    #[test]
    fn a_cache_makes_reading_dearer() {
        let list = PriceList::new([("claude".to_owned(), GivenPrice { input: 1.0, output: 2.0 })]);
        let most = |more: &str| {
            let body = format!(r#"{{"model":"claude","max_tokens":1,"system":[{{"text":"x"{more}}}]}}"#);
            let worst = read(Endpoint::Messages, &body).worst_case(&list);
            (worst.read, worst.cost.unwrap().most)
        };
        let (read, minutes) = most(r#","cache_control":{"type":"ephemeral"}"#);
        assert_eq!(minutes, Dollars::per_token(1.25).times(read).plus(Dollars::per_token(2.0)));
        let (read, hour) = most(r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#);
        assert_eq!(hour, Dollars::per_token(2.0).times(read).plus(Dollars::per_token(2.0)));
    }

    proptest! {
        #[test]
        fn no_body_is_too_odd(body in ".{0,200}", number in any::<i64>()) {
            let _whatever = AskedFor::read(Endpoint::Messages, None, body.as_bytes());
            let odd = format!(r#"{{"model":"m","max_tokens":{number},"n":{number},"tools":[{number}]}}"#);
            let worst = read(Endpoint::Chat, &odd).worst_case(&prices());
            prop_assert!(worst.cost.is_ok());
        }
    }
}
