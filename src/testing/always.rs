//! What holds in every run of a loop: the sentences of `always`, read once, and asked at every moment of a run, of a walk
//! through the model and of the fuzzer alike.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, text};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::StateName;
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::text::one_line;
use crate::evaluate::verdict::Verdict;

/// A sentence that holds in every run.
#[derive(Clone, Debug, PartialEq)]
pub struct Always {
    /// As it was written.
    pub text: String,
    /// What it means.
    pub claim: SentenceClaim,
}

/// What a sentence claims.
#[derive(Clone, Debug, PartialEq)]
pub enum SentenceClaim {
    /// Whenever this state is entered, this holds.
    Enter(StateName, Condition),
    /// Whenever this state is left, this holds.
    Leave(StateName, Condition),
    /// This state is not entered.
    Never(StateName),
    /// The second state is entered only after the first one.
    Before(StateName, StateName),
    /// This state is entered so often at most.
    Visits(StateName, u32),
    /// Prompts and slash commands.
    AgentCalls(u32),
    /// The same, and what judges are asked.
    ModelCalls(u32),
    /// US dollars.
    Cost(f64),
}

/// What has to hold at a moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Something passed, and nothing failed since.
    Verified,
    /// What this state said last.
    VerdictOf(StateName, Verdict),
    /// Both.
    And(Box<Self>, Box<Self>),
    /// One of them.
    Or(Box<Self>, Box<Self>),
    /// The opposite.
    Not(Box<Self>),
}

/// Something that happens in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMoment<'a> {
    /// This state is entered.
    Enter(&'a StateName),
    /// This state is left, its verdict known.
    Leave(&'a StateName),
    /// A model was asked.
    Asked,
}

/// What is known of a run at a moment, as far as claims depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Whether something passed, and nothing failed since.
    pub verified: bool,
    /// What each state said last.
    pub verdicts: BTreeMap<StateName, Verdict>,
    /// How often each state was entered, this entry included.
    pub visits: BTreeMap<StateName, u32>,
    /// Prompts and slash commands so far.
    pub agent_calls: u32,
    /// Questions for judges so far.
    pub judge_calls: u32,
    /// What models cost so far, in US dollars.
    pub cost: f64,
}

impl SentenceClaim {
    /// Tells whether this moment breaks it.
    pub fn is_broken(&self, moment: RunMoment<'_>, known: &RunFacts) -> bool {
        let entered = |state: &StateName| moment == RunMoment::Enter(state);
        let count = |state: &StateName| known.visits.get(state).copied().unwrap_or(0);
        match self {
            Self::Enter(state, condition) => entered(state) && !condition.holds(known),
            Self::Leave(state, condition) => moment == RunMoment::Leave(state) && !condition.holds(known),
            Self::Never(state) => entered(state),
            Self::Before(first, then) => entered(then) && count(first) == 0,
            Self::Visits(state, most) => entered(state) && count(state) > *most,
            Self::AgentCalls(most) => known.agent_calls > *most,
            Self::ModelCalls(most) => known.agent_calls + known.judge_calls > *most,
            Self::Cost(most) => known.cost > *most,
        }
    }

    /// Returns every state that it names.
    pub fn states(&self) -> Vec<&StateName> {
        match self {
            Self::Enter(state, condition) | Self::Leave(state, condition) => {
                std::iter::once(state).chain(condition.states()).collect()
            }
            Self::Never(state) | Self::Visits(state, _) => vec![state],
            Self::Before(first, then) => vec![first, then],
            Self::AgentCalls(_) | Self::ModelCalls(_) | Self::Cost(_) => Vec::new(),
        }
    }

    /// Returns the states whose verdicts it asks for.
    pub fn judged(&self) -> Vec<&StateName> {
        match self {
            Self::Enter(_, condition) | Self::Leave(_, condition) => condition.states(),
            Self::Never(_)
            | Self::Visits(..)
            | Self::Before(..)
            | Self::AgentCalls(_)
            | Self::ModelCalls(_)
            | Self::Cost(_) => Vec::new(),
        }
    }
}

impl Condition {
    fn holds(&self, known: &RunFacts) -> bool {
        match self {
            Self::Verified => known.verified,
            // A sub-loop says `success` where a sentence may say `yes`: both are compared by one word.
            Self::VerdictOf(state, verdict) => {
                known.verdicts.get(state).is_some_and(|said| Verdict::canonical(said.as_str()) == *verdict)
            }
            Self::And(one, other) => one.holds(known) && other.holds(known),
            Self::Or(one, other) => one.holds(known) || other.holds(known),
            Self::Not(condition) => !condition.holds(known),
        }
    }

    fn states(&self) -> Vec<&StateName> {
        match self {
            Self::Verified => Vec::new(),
            Self::VerdictOf(state, _) => vec![state],
            Self::And(one, other) | Self::Or(one, other) => {
                one.states().into_iter().chain(other.states()).collect()
            }
            Self::Not(condition) => condition.states(),
        }
    }
}

/// How deep conditions may be nested.
const DEEPEST: usize = 32;

/// Reads a sentence word by word.
struct SentenceReader {
    words: Peekable<IntoIter<String>>,
    depth: usize,
}

/// Cuts a sentence into words; what stands in backticks is one, whatever is in it.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            // The backtick stays in front, so that a state with the name `and` is no word of the language.
            words.push(format!("`{part}"));
            continue;
        }
        let spaced = part.replace('(', " ( ").replace(')', " ) ").replace("<=", " <= ");
        words.extend(spaced.split_whitespace().map(str::to_owned));
    }
    words
}

/// Why a sentence cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SentenceError {
    #[error("something is missing at its end")]
    Short,
    #[error("`{0}` is one word too much")]
    Long(String),
    #[error("`{found}` stands where `{expected}` is expected")]
    Other { found: String, expected: &'static str },
    #[error("`{0}` is not the name of a state")]
    Name(String),
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("conditions are nested too deep")]
    Deep,
}

impl SentenceReader {
    fn word(&mut self) -> Result<String, SentenceError> {
        self.words.next().ok_or(SentenceError::Short)
    }

    fn expect(&mut self, expected: &'static str) -> Result<(), SentenceError> {
        let found = self.word()?;
        if found == expected { Ok(()) } else { Err(SentenceError::Other { found, expected }) }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }

    fn state(&mut self) -> Result<StateName, SentenceError> {
        let word = self.word()?;
        state(&word)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, SentenceError> {
        self.expect("<=")?;
        let word = self.word()?;
        word.trim_start_matches('$').parse().map_err(|_| SentenceError::Number(word))
    }

    fn claim(&mut self) -> Result<SentenceClaim, SentenceError> {
        let first = self.word()?;
        let next = self.words.peek().cloned();
        Ok(match (first.as_str(), next.as_deref()) {
            // A state may be called like a word of the language.
            (_, Some("before")) => {
                self.expect("before")?;
                SentenceClaim::Before(state(&first)?, self.state()?)
            }
            ("enter", _) => {
                self.implied().map(|(state, condition)| SentenceClaim::Enter(state, condition))?
            }
            ("leave", _) => {
                self.implied().map(|(state, condition)| SentenceClaim::Leave(state, condition))?
            }
            ("never", _) => SentenceClaim::Never(self.state()?),
            ("visits", _) => {
                let state = self.state()?;
                SentenceClaim::Visits(state, self.number()?)
            }
            ("agent", _) => {
                self.expect("calls")?;
                SentenceClaim::AgentCalls(self.number()?)
            }
            ("model", _) => {
                self.expect("calls")?;
                SentenceClaim::ModelCalls(self.number()?)
            }
            ("cost", _) => SentenceClaim::Cost(self.number()?),
            (_, _) => return Err(SentenceError::Other { found: first, expected: "enter" }),
        })
    }

    fn implied(&mut self) -> Result<(StateName, Condition), SentenceError> {
        let state = self.state()?;
        self.expect("implies")?;
        Ok((state, self.either()?))
    }

    fn either(&mut self) -> Result<Condition, SentenceError> {
        let mut one = self.both()?;
        while self.takes("or") {
            one = Condition::Or(Box::new(one), Box::new(self.both()?));
        }
        Ok(one)
    }

    fn both(&mut self) -> Result<Condition, SentenceError> {
        let mut one = self.single()?;
        while self.takes("and") {
            one = Condition::And(Box::new(one), Box::new(self.single()?));
        }
        Ok(one)
    }

    fn single(&mut self) -> Result<Condition, SentenceError> {
        // Each level is a call within a call: no sentence of parentheses may end the stack.
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(SentenceError::Deep);
        }
        let word = self.word()?;
        let condition = match word.as_str() {
            "verified" => Condition::Verified,
            "not" => Condition::Not(Box::new(self.single()?)),
            "(" => {
                let inner = self.either()?;
                self.expect(")")?;
                inner
            }
            "verdict" => {
                self.expect("of")?;
                let state = self.state()?;
                self.expect("is")?;
                Condition::VerdictOf(state, Verdict::canonical(self.word()?.trim_start_matches('`')))
            }
            _ => return Err(SentenceError::Other { found: word, expected: "verified" }),
        };
        self.depth -= 1;
        Ok(condition)
    }
}

fn state(word: &str) -> Result<StateName, SentenceError> {
    let name = word.strip_prefix('`').unwrap_or(word);
    StateName::parse(name).map_err(|_| SentenceError::Name(name.to_owned()))
}

fn read(text: &str) -> Result<SentenceClaim, SentenceError> {
    let mut reader = SentenceReader { words: words(text).into_iter().peekable(), depth: 0 };
    let claim = reader.claim()?;
    match reader.words.next() {
        None => Ok(claim),
        Some(word) => Err(SentenceError::Long(word.trim_start_matches('`').to_owned())),
    }
}

/// What a sentence can be.
const FORMS: &str = "write `enter STATE implies COND`, `leave STATE implies COND`, `never STATE`, `STATE before STATE`, \
                     `visits STATE <= N`, `agent calls <= N`, `model calls <= N` or `cost <= N`; COND is `verified`, \
                     `verdict of STATE is WORD`, and these with `and`, `or`, `not` and parentheses";

impl Decode for Always {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let written = text(node, path, "a sentence", out)?;
        match read(written) {
            Ok(claim) => Some(Self { text: written.to_owned(), claim }),
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", one_line(written, 100));
                let place = FindingPlace::Value(path.clone());
                out.push(Diagnostic::error("always", place, message).help(FORMS));
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> StateName {
        StateName::parse(name).unwrap()
    }

    #[test]
    fn every_form_is_read() {
        let verified = || Box::new(Condition::Verified);
        let said = |state: &str, word: &str| Box::new(Condition::VerdictOf(name(state), Verdict::new(word)));
        for (text, claim) in [
            ("enter deploy implies verified", SentenceClaim::Enter(name("deploy"), Condition::Verified)),
            (
                "leave a implies not (verified or verdict of b is success) and verified",
                SentenceClaim::Leave(
                    name("a"),
                    Condition::And(
                        Box::new(Condition::Not(Box::new(Condition::Or(verified(), said("b", "yes"))))),
                        verified(),
                    ),
                ),
            ),
            ("never `my state`", SentenceClaim::Never(name("my state"))),
            ("a before enter", SentenceClaim::Before(name("a"), name("enter"))),
            ("visits a<=3", SentenceClaim::Visits(name("a"), 3)),
            ("agent calls <= 3", SentenceClaim::AgentCalls(3)),
            ("model calls <= 0", SentenceClaim::ModelCalls(0)),
            ("cost <= $0.5", SentenceClaim::Cost(0.5)),
        ] {
            assert_eq!(read(text), Ok(claim), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        for (text, why) in [
            ("", "something is missing at its end"),
            ("enter a implies", "something is missing at its end"),
            ("enter a means verified", "`means` stands where `implies` is expected"),
            ("never a b", "`b` is one word too much"),
            ("visits a <= many", "`many` is not a number"),
            ("agent calls < 3", "`<` stands where `<=` is expected"),
            ("deploy is verified", "`deploy` stands where `enter` is expected"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), why, "{text}");
        }
        let deep = format!("enter a implies {}verified", "not ".repeat(100));
        assert_eq!(read(&deep), Err(SentenceError::Deep));
    }
}
