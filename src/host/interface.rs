//! What every host is: which calls it takes, and what is read from their output.

use std::fmt;

use serde_json::Value;

use crate::evaluate::model::{ConversationUsage, Question, Usage};

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
    /// What may be done to the files. Tools that are named say more and win.
    pub access: Access,
}

/// What an agent may do to the files of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Everything: it edits and runs commands.
    #[default]
    Write,
    /// It edits nothing, but runs commands, which a test needs.
    ReadShell,
    /// It only reads.
    ReadOnly,
}

/// Whose settings a host heeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostSettings {
    /// Those of the user. Nothing in the checkout runs because the host found it there.
    #[default]
    User,
    /// Those of the repository too: its hooks, its servers, its rules.
    Project,
}

/// Under what terms a host is called, whatever it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// The version of the program that is installed. One that does not say is taken for the newest.
    pub version: Option<Version>,
    /// Whose settings it heeds.
    pub settings: HostSettings,
    /// What is left of the cap on cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Whether a sandbox of ll-loop keeps the call inside, in which a sandbox of the host cannot start.
    pub is_confined: bool,
}

/// The version of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads a version that is written as three numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().splitn(3, '.').map(|part| part.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// What is known of the versions of a host.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// What it says before and after its version.
    pub around: (&'static str, &'static str),
    /// The oldest version that works.
    pub oldest: Version,
    /// The command that installs the newest.
    pub install: &'static str,
}

impl Release {
    /// Reads the answer to `--version`. What looks different is of no known version.
    pub fn read(&self, said: &str) -> Option<Version> {
        let (before, after) = self.around;
        Version::parse(said.trim().strip_prefix(before)?.strip_suffix(after)?)
    }
}

/// A call that asks a host whether it has an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// The arguments.
    pub arguments: &'static [&'static str],
    /// The line that says that there is none.
    pub denial: &'static str,
    /// What to do then.
    pub advice: &'static str,
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
    /// A file that it reads, for which there is no other way.
    pub file: Option<Attachment>,
}

/// A private file of a call. It lies outside of the checkout and is gone after the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Which argument is to be its path.
    pub argument: usize,
    /// How its name ends.
    pub suffix: &'static str,
    /// What is in it.
    pub text: String,
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
    /// The host ended the call because what it may cost was spent.
    OverBudget(String),
    /// The host ended the call because it took too many turns.
    OutOfTurns(String),
    /// The model gave no answer in the form that was asked for.
    WrongForm(String),
}

/// How a call is getting on, as far as its output tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pulse {
    /// Nothing was heard of the model yet, from a host whose model is heard of as soon as it begins to answer.
    Calling,
    /// The host waits for the model.
    #[default]
    Thinking,
    /// Something that the model asked for is being done, which may take as long as it takes.
    Working,
    /// The host cannot reach its service, and goes on trying.
    Retrying,
}

/// What the counts of a call mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Counting {
    /// They are those of the call.
    #[default]
    Call,
    /// They are those of the conversation that it is a part of.
    Conversation(ConversationUsage),
    /// Either; the version of the host would tell, and is not known.
    Unknown,
}

/// Reads the output of an agent while it works.
pub trait Listener {
    /// Takes a line and hands on what people should see of it.
    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str));

    /// Takes a line of the error output, which people see anyway.
    fn complaint(&mut self, _line: &str) {}

    /// Tells how the call is getting on.
    fn pulse(&self) -> Pulse {
        Pulse::Thinking
    }

    /// Returns what the host said went wrong last, while it goes on.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// Tells what the counts mean.
    fn counting(&self) -> Counting {
        Counting::Call
    }

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
    fn talks(&self) -> Option<&dyn Talker> {
        None
    }

    /// Tells whether it keeps an agent to what it may do to files.
    fn enforces(&self, access: Access) -> bool;

    /// Tells whether an agent can be kept from writing outside of the working tree.
    fn keeps_inside(&self) -> bool {
        false
    }

    /// Returns what of the checkout the host heeds although it was told not to, and that can run code or send its key
    /// elsewhere; none where it can be told.
    fn heeds(&self) -> Option<&'static str> {
        None
    }

    /// Returns what is known of its versions.
    fn release(&self) -> Release;

    /// Returns the call that asks whether there is an account, for a host that otherwise would not say so.
    fn preflight(&self, _is_set: &dyn Fn(&str) -> bool) -> Option<Preflight> {
        None
    }

    /// Returns the call that hands a prompt to an agent, which may then do what it wants.
    fn prompt(&self, prompt: &Prompt<'_>, terms: &Terms) -> Invocation;

    /// Returns the reader for the output of a call.
    fn listen(&self, terms: &Terms) -> Box<dyn Listener>;

    /// Returns the call that asks a question.
    fn judge(&self, question: &Question, max_tokens: Option<u32>, terms: &Terms) -> Invocation;

    /// Reads the answer to a question from what such a call printed, and what it cost.
    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage);
}

/// A CLI that is talked to.
pub trait Talker {
    /// Begins a conversation that hands over a prompt to an agent that works in a directory.
    fn prompted(&self, prompt: &Prompt<'_>, directory: &str) -> Box<dyn HostConversation>;

    /// Begins a conversation that asks a question.
    fn asked(&self, question: &Question, directory: &str) -> Box<dyn HostConversation>;
}

/// A conversation with a CLI that is talked to: a listener that also answers.
pub trait HostConversation: Listener {
    /// Takes what the agent is to read next.
    fn words(&mut self) -> String;

    /// Tells whether the agent can be prompted, or nothing more is awaited from it.
    fn is_under_way(&self) -> bool;

    /// Tells the agent to end its work; tells whether an answer to that can be expected.
    fn leave(&mut self) -> bool;

    /// Hands on what is left of the last line, once the agent says nothing more.
    fn close(&mut self, say: &mut dyn FnMut(&str));

    /// Ends the conversation, because the agent does not do its part.
    fn give_up(&mut self, failure: Failure);

    /// Returns the object that the last message of the agent is.
    fn reply(&mut self, exit_code: i32) -> Result<Value, Failure>;

    /// Returns the method of the request that an answer is awaited to.
    fn awaits(&self) -> &'static str;
}
