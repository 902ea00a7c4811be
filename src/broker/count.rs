//! How services are asked how many tokens a request has, which costs nothing.

use serde_json::{Map, Value, json};

use super::model_service::Endpoint;

/// A request for a count.
#[derive(Clone, Debug, PartialEq)]
pub struct CountRequest {
    /// The path below the base address.
    pub path: String,
    /// The body.
    pub body: Value,
    /// Where the count is in the answer.
    key: &'static str,
}

/// What a count depends on; services refuse a request for one that has anything else.
const OF_MESSAGES: [&str; 6] = ["messages", "model", "system", "thinking", "tool_choice", "tools"];
const OF_RESPONSES: [&str; 8] =
    ["input", "instructions", "model", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools"];

impl CountRequest {
    /// Makes the request that counts the tokens of another one; none where the service has no such thing.
    pub fn of(endpoint: Endpoint, path: &str, body: &[u8]) -> Option<Self> {
        let body: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let only = |keys: &[&str]| {
            let kept = body.iter().filter(|(key, _)| keys.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        match endpoint {
            Endpoint::Messages => {
                let path = format!("{path}/count_tokens");
                Some(Self { path, body: only(&OF_MESSAGES), key: "input_tokens" })
            }
            Endpoint::Responses => {
                let path = format!("{path}/input_tokens");
                Some(Self { path, body: only(&OF_RESPONSES), key: "input_tokens" })
            }
            Endpoint::Generate => {
                let (model, _) = path.rsplit_once(':')?;
                let (_, name) = model.rsplit_once('/')?;
                let mut asked = body.clone();
                // The request inside has to name the model as well, and as a resource.
                asked.insert("model".to_owned(), format!("models/{name}").into());
                let path = format!("{model}:countTokens");
                Some(Self { path, body: json!({"generateContentRequest": asked}), key: "totalTokens" })
            }
            // OpenAI counts tokens for responses only.
            Endpoint::Chat | Endpoint::Free => None,
        }
    }

    /// Reads the answer.
    pub fn read(&self, answer: &[u8]) -> Option<u64> {
        serde_json::from_slice::<Value>(answer).ok()?.get(self.key)?.as_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_asked_for_as_each_service_has_it() {
        let body = br#"{"model":"m","messages":[],"max_tokens":5,"stream":true}"#;
        let of = CountRequest::of(Endpoint::Messages, "/v1/messages", body).unwrap();
        assert_eq!(
            (of.path.as_str(), of.body.to_string().as_str()),
            ("/v1/messages/count_tokens", r#"{"model":"m","messages":[]}"#)
        );
        assert_eq!(of.read(br#"{"input_tokens":7}"#), Some(7));
        assert_eq!(of.read(br#"{"input_tokens":-7}"#), None);
        let path = "/v1beta/models/g:streamGenerateContent";
        let of = CountRequest::of(Endpoint::Generate, path, br#"{"contents":[]}"#).unwrap();
        assert_eq!(of.path, "/v1beta/models/g:countTokens");
        assert_eq!(of.body.to_string(), r#"{"generateContentRequest":{"contents":[],"model":"models/g"}}"#);
        assert_eq!(CountRequest::of(Endpoint::Chat, "/chat/completions", body), None);
    }
}
