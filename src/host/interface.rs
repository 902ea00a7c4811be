//! What every host is: which calls it takes, and what is read from their output.

use serde_json::Value;

use crate::evaluate::model::{Question, Usage};

use super::acp::Acp;

/// A prompt for an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The agent, where the host has several.
    pub agent: Option<&'a str>,
    /// The tools that may be used; the host's own choice when empty.
    pub tools: &'a [String],
    /// The model.
    pub model: Option<&'a str>,
    /// The model in its place where that one cannot be asked.
    pub fallback: Option<&'a str>,
    /// The JSON Schema of the answer, where one in a certain form is wanted.
    pub answer: Option<&'a Value>,
    /// What the host calls the conversation that goes on; a new one when absent.
    pub session: Option<&'a str>,
}

/// How a host is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it reads from standard input.
    pub stdin: Option<String>,
    /// Environment that it needs.
    pub env: Vec<(String, String)>,
}

/// Why a call failed. Decided by fields and exit codes, never by searching texts for words: those change from version
/// to version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The call failed; another one may not.
    Failed(String),
    /// The service is overloaded or cannot be reached for now.
    Transient(String),
    /// The quota is used up until then, in seconds since 1970, where that is known.
    Quota(String, Option<i64>),
    /// The host is not there.
    Missing(String),
    /// The host is not set up: no account, no right, no such model.
    Unavailable(String),
    /// The output has another shape than that of any version we know.
    Misunderstood(String),
}

/// Reads the output of an agent while it works.
pub trait Listener {
    /// Takes a line and hands on what people should see of it.
    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str));

    /// Tells whether the agent has said its last word, whether or not its process ends.
    fn is_done(&self) -> bool;

    /// Returns what it cost so far.
    fn usage(&self) -> &Usage;

    /// Returns what the agent said so far.
    fn said(&self) -> &str;

    /// Returns what the agent said, once its process has ended with this code.
    fn end(&mut self, exit_code: i32) -> Result<String, Failure>;

    /// Returns the answer to a prompt that asks for one in a certain form, once the process has ended with this code:
    /// the last words alone. Whether they have that form is not looked at.
    fn answer(&mut self, exit_code: i32) -> Result<String, Failure>;
}

/// A CLI that takes prompts.
pub trait Host {
    /// Returns its name, which is also that of its program.
    fn name(&self) -> &str;

    /// Tells whether it says what a call cost.
    fn prices(&self) -> bool;

    /// Returns the keys of a loop that have no effect with this host.
    fn ignores(&self) -> &'static [&'static str];

    /// Returns the host as one that is talked to while it works, if it is. The others read what they are to do at once, and
    /// need no answers.
    fn talks(&self) -> Option<&Acp> {
        None
    }

    /// Returns the call that hands a prompt to an agent, which may then do what it wants.
    fn prompt(&self, prompt: &Prompt<'_>) -> Invocation;

    /// Returns the reader for the output of such a call.
    fn listen(&self) -> Box<dyn Listener>;

    /// Returns the call that asks a question.
    fn judge(&self, question: &Question, max_tokens: Option<u32>) -> Invocation;

    /// Reads the answer to a question from what such a call printed, and what it cost.
    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage);
}
