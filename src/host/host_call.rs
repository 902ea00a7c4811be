//! The pieces of which calls are put together: arguments, variables, and prompts that ask for a form.

use serde_json::Value;

use super::interface::Prompt;
use crate::evaluate::model::Question;

/// Returns an environment variable of a call.
pub(super) fn variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns words as arguments.
pub(super) fn words(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}

/// Returns the options that have a value, as arguments. A value may be what an action printed, as where a loop takes the name
/// of a model from there.
pub(super) fn options<'a>(options: &'a [(&'a str, Option<&'a str>)]) -> impl Iterator<Item = String> + 'a {
    let given = options.iter().filter_map(|(flag, value)| Some((*flag, (*value)?)));
    given.flat_map(|(flag, value)| {
        // As a word of its own, it would be another option.
        if value.starts_with('-') {
            vec![format!("{flag}={value}")]
        } else {
            vec![flag.to_owned(), value.to_owned()]
        }
    })
}

/// Returns a text with the form that the answer to it must have, for a host that takes no schema.
pub(super) fn with_form(text: &str, schema: &Value) -> String {
    format!(
        "{text}\n\nAnswer with one JSON object and nothing else: no other text, no code fence. It must satisfy this JSON \
         Schema:\n{schema}\n"
    )
}

/// Returns the text of a question for a host that takes no schema.
pub(super) fn asked(question: &Question) -> String {
    with_form(&question.prompt, &question.schema)
}

/// Returns the text of a prompt for a host that takes no schema.
pub(super) fn prompted(prompt: &Prompt<'_>) -> String {
    prompt.answer.map_or_else(|| prompt.text.to_owned(), |schema| with_form(prompt.text, schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_never_an_option() {
        let all = [
            ("--model", Some("small")),
            ("--agent", None),
            ("--tools", Some("")),
            ("--resume", Some("--mcp-config=x")),
        ];
        let words: Vec<String> = options(&all).collect();
        assert_eq!(words, ["--model", "small", "--tools", "", "--resume=--mcp-config=x"]);
    }
}
