//! Text from outside in command lines: pasting what somebody else wrote into one lets them write the command.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::absent_values::captured_by;
use super::checked_machine::{CheckedLoop, state};
use super::flow::FlowGraph;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair};
use crate::base::name::{StateName, VarName, captured_variable};
use crate::base::path::Segment;
use crate::base::template::{Expression, Namespace, Template};
use crate::base::text::after_last;
use crate::evaluate::Verdicts;
use crate::machine::run_variables::DEEPEST;
use crate::machine::{Action, Binding, Machine, ShellAction, Step, SubLoopAction, SubLoopInput, Target};
use crate::shell::lexer::around;
use crate::shell::token::TemplateQuotes;

/// The code of these findings, which are errors where strangers write the texts.
pub const CODE: &str = "template-injection";

/// Makes a finding.
pub fn finding(place: FindingPlace, message: String, help: impl Into<String>) -> Diagnostic {
    Diagnostic::warning("template-injection", place, message).help(help)
}

/// Programs that read a text as something else than a POSIX shell does, for whom `:shell` does not quote.
const OTHER_LANGUAGES: [&str; 17] = [
    "bun",
    "cmd",
    "deno",
    "elvish",
    "fish",
    "lua",
    "node",
    "nodejs",
    "nu",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "pypy",
    "python",
    "ruby",
    "xonsh",
];

pub(super) fn injection(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    findings.extend(injections(subject.machine, &BTreeSet::new()));
}

/// Returns every place where text from outside becomes a part of a command. `outside` are the values of the context
/// that came from there.
pub fn injections(machine: &Machine, outside: &BTreeSet<String>) -> Diagnostics {
    let search = InjectionSearch::new(machine, outside);
    let mut findings = Diagnostics::default();
    for shown in search.all() {
        let place = FindingPlace::Within(state(shown.state).key("action"), shown.expression.span.clone());
        let quoted = Repair::Replace { old: "}".to_owned(), new: ":shell}".to_owned() };
        let finding = finding(place, shown.message, shown.help);
        findings.push(finding.repair(shown.is_unquoted.then_some(quoted)));
    }
    findings
}

/// Returns the same as sentences, with the state of each.
pub fn described(machine: &Machine, outside: &BTreeSet<String>) -> Vec<(StateName, String)> {
    let search = InjectionSearch::new(machine, outside);
    search.all().into_iter().map(|shown| (shown.state.clone(), shown.message)).collect()
}

/// Returns the values of a sub-loop's context that come from outside, given those of the loop around it.
pub fn handed_on(
    machine: &Machine,
    step: &Step,
    sub: &SubLoopAction,
    outside: &BTreeSet<String>,
) -> BTreeSet<String> {
    let search = InjectionSearch::new(machine, outside);
    let at = Site { state: &step.name, step: Some(step) };
    match &sub.given {
        SubLoopInput::Nothing => BTreeSet::new(),
        // A sub-loop sees all of the values around it, so whatever is foreign here is foreign
        // there.
        SubLoopInput::Everything => {
            let names = machine.context.keys().chain(machine.parameters.keys()).map(VarName::as_str);
            let names = names.filter(|name| search.in_context(name, 0).is_some());
            // What was captured is there under its own name.
            let captures = machine.steps().flat_map(|(_, step)| captured_by(step));
            names
                .map(str::to_owned)
                .chain(captures.map(str::to_owned))
                .chain(outside.iter().cloned())
                .collect()
        }
        SubLoopInput::Parameters(bindings) => {
            let of = |inner: &Expression| search.origin(&at, inner);
            let foreign = bindings.iter().filter(|(_, binding)| {
                let origin = match binding {
                    Binding::Text(text) => worst(text.expressions().filter_map(of)),
                    Binding::Value(value) => in_value(value, &of),
                };
                origin.is_some_and(|origin| !origin.is_quoted)
            });
            foreign.map(|(name, _)| name.to_string()).collect()
        }
    }
}

/// A template in a shell text whose value can write a command.
struct InjectedTemplate<'m> {
    state: &'m StateName,
    expression: &'m Expression,
    message: String,
    help: String,
    /// Whether nothing has to be done but to quote it.
    is_unquoted: bool,
}

/// Where a text is used.
struct Site<'m> {
    state: &'m StateName,
    /// The step, unless it is an end.
    step: Option<&'m Step>,
}

/// The way of a foreign text into a template.
#[derive(Clone)]
struct TextOrigin {
    /// The expression that it came in by.
    by: String,
    /// Whether it was quoted for the shell there.
    is_quoted: bool,
}

/// Looks for foreign texts in a machine.
struct InjectionSearch<'m> {
    machine: &'m Machine,
    outside: &'m BTreeSet<String>,
    flow: OnceCell<FlowGraph>,
    /// The values of the context that were looked at.
    known: RefCell<HashMap<String, Option<TextOrigin>>>,
}

/// Returns the origin of a text that nobody quoted, if there is one, before others.
fn worst(origins: impl Iterator<Item = TextOrigin>) -> Option<TextOrigin> {
    origins.min_by_key(|origin| origin.is_quoted)
}

impl<'m> InjectionSearch<'m> {
    fn new(machine: &'m Machine, outside: &'m BTreeSet<String>) -> Self {
        Self { machine, outside, flow: OnceCell::new(), known: RefCell::default() }
    }

    fn all(&self) -> Vec<InjectedTemplate<'m>> {
        let steps = self.machine.steps().map(|(_, step)| (&step.name, Some(step), step.action.as_ref()));
        let ends = self.machine.ends().map(|(_, end)| (&end.name, None, end.closing.as_ref()));
        let mut found = Vec::new();
        for (state, step, action) in steps.chain(ends) {
            if let Some(Action::Shell(shell)) = action {
                self.in_text(&Site { state, step }, shell, &mut found);
            }
        }
        found
    }

    fn in_text(&self, at: &Site<'m>, shell: &'m ShellAction, found: &mut Vec<InjectedTemplate<'m>>) {
        let spans: Vec<_> = shell.text.expressions().map(|expression| expression.span.clone()).collect();
        let around = around(shell.text.source(), &spans);
        let language = language(&shell.shell);
        for (expression, around) in shell.text.expressions().zip(around) {
            let Some(origin) = self.origin(at, expression) else { continue };
            if let Some((message, help)) = explained(expression, &origin, around, language) {
                // Elsewhere `:shell` alone mends nothing: quotes around it or another language are in the way.
                let is_unquoted = around == TemplateQuotes::Nothing && language.is_none();
                found.push(InjectedTemplate { state: at.state, expression, message, help, is_unquoted });
            }
        }
    }

    /// Returns the way of a foreign text into an expression, if there is one.
    fn origin(&self, at: &Site<'m>, expression: &Expression) -> Option<TextOrigin> {
        match (expression.namespace, expression.path.first(), at.step) {
            (Namespace::Param, Some(Segment::Key(name)), Some(step)) => {
                let (_, value) = step.params.iter().find(|(known, _)| known.as_str() == name)?;
                let inners = value.as_template()?.expressions();
                let inner = worst(inners.filter_map(|inner| self.origin(at, inner)))?;
                Some(TextOrigin { is_quoted: inner.is_quoted || expression.shell_quoted, ..inner })
            }
            (Namespace::Context, ..) => {
                let inner = self.context(expression)?;
                Some(TextOrigin { is_quoted: inner.is_quoted || expression.shell_quoted, ..inner })
            }
            _ => self
                .is_foreign(at, expression)
                .then(|| TextOrigin { by: expression.to_string(), is_quoted: expression.shell_quoted }),
        }
    }

    fn context(&self, expression: &Expression) -> Option<TextOrigin> {
        match expression.path.first() {
            Some(Segment::Key(name)) => self.in_context(name, 0),
            Some(Segment::Index(index)) => self.in_context(&index.to_string(), 0),
            // The whole of it.
            None => {
                let names = self.machine.context.keys().map(VarName::as_str);
                let names = names.chain(self.outside.iter().map(String::as_str));
                worst(names.filter_map(|name| self.in_context(name, 0)))
            }
        }
    }

    /// Returns the origin of foreign text in a value of the context, which is made of others as deeply as `depth`.
    fn in_context(&self, name: &str, depth: usize) -> Option<TextOrigin> {
        if self.outside.contains(name) || depth > DEEPEST {
            // What is nested too deeply to be followed is taken for foreign.
            return Some(TextOrigin { by: format!("context.{name}"), is_quoted: false });
        }
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        // Values that need each other in a circle have no value.
        self.known.borrow_mut().insert(name.to_owned(), None);
        let of_context = self.machine.context.iter().find(|(known, _)| known.as_str() == name);
        let of_parameter = || {
            let (_, parameter) = self.machine.parameters.iter().find(|(known, _)| known.as_str() == name)?;
            parameter.default.as_ref()
        };
        let value = of_context.map(|(_, value)| value).or_else(of_parameter)?;
        let origin = in_value(value, &|inner| match (inner.namespace, inner.path.first()) {
            (Namespace::Env, _) => Some(TextOrigin { by: inner.to_string(), is_quoted: inner.shell_quoted }),
            (Namespace::Context, Some(Segment::Key(name))) => {
                let origin = self.in_context(name, depth + 1)?;
                Some(TextOrigin { is_quoted: origin.is_quoted || inner.shell_quoted, ..origin })
            }
            _ => None,
        });
        self.known.borrow_mut().insert(name.to_owned(), origin.clone());
        origin
    }

    /// Tells whether the value of an expression was written by somebody other than the author of the loop.
    fn is_foreign(&self, at: &Site<'m>, expression: &Expression) -> bool {
        let path = expression.path.as_slice();
        match expression.namespace {
            Namespace::Captured => match path {
                [Segment::Key(name), .., Segment::Key(field)] if field == "verdict" => {
                    any_word(&self.steps_of(name))
                }
                // Codes, times and names are made by the engine, and the same words within an answer are not.
                [_, Segment::Key(json), ..] if json == "json" => true,
                [_, .., Segment::Key(field)] if path.len() > 1 => !is_made(field),
                _ => true,
            },
            Namespace::Prev => match path {
                [Segment::Key(field)] if field == "verdict" => {
                    any_word(&self.before(at, |step| step.action.is_some()))
                }
                [Segment::Key(field)] => !is_made(field),
                _ => true,
            },
            Namespace::Result => match path {
                [Segment::Key(verdict)] if verdict == "verdict" => {
                    any_word(&self.before(at, super::unknown_names::is_judged))
                }
                _ => true,
            },
            // The text of a hand-off was printed by an action; everything else about the run is made by the engine.
            Namespace::Loop => path == [Segment::Key("continuation".to_owned())],
            // A variable of a job may be the name of a stranger's branch, or the title of a pull
            // request.
            // Messages are made of what states printed, tasks of what agents answered, criteria of a file.
            Namespace::Env | Namespace::Messages | Namespace::Board | Namespace::Criteria => true,
            Namespace::Context | Namespace::State | Namespace::Param => false,
        }
    }

    fn steps_of(&self, name: &str) -> Vec<&'m Step> {
        let steps = self.machine.steps().map(|(_, step)| step);
        steps.filter(|step| captured_by(step).any(|known| known == name)).collect()
    }

    /// Returns the steps that can be the last ones of a kind before a state.
    fn before(&self, at: &Site<'m>, is_meant: impl Fn(&Step) -> bool) -> Vec<&'m Step> {
        let machine = self.machine;
        let is_step = |target: Target| matches!(target, Target::Step(id) if is_meant(machine.step(id)));
        match machine.find(at.state) {
            // A run is resumed wherever it was left.
            Some(target) if machine.on_resume.is_none() => {
                let flow = self.flow.get_or_init(|| FlowGraph::of(machine));
                flow.last_before(target, is_step).into_iter().map(|id| machine.step(id)).collect()
            }
            Some(_) | None => machine.steps().map(|(_, step)| step).filter(|step| is_meant(step)).collect(),
        }
    }
}

/// Returns the origin of foreign text in the texts of a value.
fn in_value(value: &Value, of: &dyn Fn(&Expression) -> Option<TextOrigin>) -> Option<TextOrigin> {
    match value {
        Value::String(text) if text.contains("${") => {
            let template = Template::parse(text).ok()?;
            worst(template.expressions().filter_map(of))
        }
        Value::Array(items) => worst(items.iter().filter_map(|item| in_value(item, of))),
        Value::Object(entries) => worst(entries.values().filter_map(|item| in_value(item, of))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Tells whether one of these steps can give any word as its verdict. Nothing is known of none at all.
fn any_word(steps: &[&Step]) -> bool {
    let is_any = |step: &&Step| {
        let verdicts = step.evaluate.as_ref().map(|evaluate| evaluate.verdicts());
        matches!(verdicts, Some(Verdicts::Any))
    };
    steps.is_empty() || steps.iter().any(is_any)
}

/// Tells whether a field of a result is made by the engine.
fn is_made(field: &str) -> bool {
    matches!(field, "exit_code" | "duration_ms" | "state" | "terminated_by" | "failure_terminal")
}

/// Returns the program among the words of a `shell` that reads the text as something else than a POSIX shell does.
fn language(words: &[String]) -> Option<&str> {
    let name = |word: &'_ str| {
        let name = after_last(word, &['/']);
        // `python3.12` is Python as well.
        name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_lowercase()
    };
    words.iter().map(String::as_str).find(|word| OTHER_LANGUAGES.contains(&name(word).as_str()))
}

/// Says what is wrong with a foreign text at a place, and what to write, if something is wrong.
fn explained(
    expression: &Expression,
    origin: &TextOrigin,
    around: TemplateQuotes,
    language: Option<&str>,
) -> Option<(String, String)> {
    let shown = expression.to_string();
    let brings = (origin.by != shown).then(|| format!("`${{{shown}}}` brings `${{{}}}`", origin.by));
    // Quoting for a shell helps nothing in another language, so this comes before the question of
    // quotes.
    if let Some(language) = language {
        let message = match brings {
            Some(brings) => format!("{brings} into a program for `{language}`"),
            None => format!("`${{{shown}}}` is pasted into a program for `{language}`"),
        };
        return Some((
            message,
            format!("`:shell` quotes for POSIX shells only; {}", in_place_of(expression)),
        ));
    }
    if origin.is_quoted {
        if around == TemplateQuotes::Nothing {
            return None;
        }
        let message = format!("`${{{shown}}}` is quoted for the shell, and stands {}", around.words());
        let help = match around {
            TemplateQuotes::DoubleQuotes | TemplateQuotes::SingleQuotes => format!(
                "leave out the quotes around it, which the quotes of `:shell` end; or {}",
                in_place_of(expression)
            ),
            TemplateQuotes::HereDocument => format!(
                "a line of the value can end the here-document: write `printf '%s' ${{{shown}:shell}}`, or {}",
                in_place_of(expression)
            ),
            TemplateQuotes::Backticks => "write `$(…)` in place of the backticks".to_owned(),
            TemplateQuotes::Backslash => "leave out the backslash".to_owned(),
            TemplateQuotes::Nothing
            | TemplateQuotes::Arithmetic
            | TemplateQuotes::Comment
            | TemplateQuotes::Eval => {
                format!("no quoting is enough there; {}", in_place_of(expression))
            }
        };
        return Some((message, help));
    }
    let message = match brings {
        Some(brings) => format!("{brings} into a shell command unquoted"),
        None => format!("`${{{shown}}}` is pasted into a shell command unquoted"),
    };
    let help = match around {
        TemplateQuotes::Nothing => format!("write `${{{shown}:shell}}`{}", environment_name(expression)),
        TemplateQuotes::DoubleQuotes | TemplateQuotes::SingleQuotes => {
            format!("write `${{{shown}:shell}}` without the quotes around it{}", environment_name(expression))
        }
        TemplateQuotes::Backticks
        | TemplateQuotes::Arithmetic
        | TemplateQuotes::HereDocument
        | TemplateQuotes::Comment
        | TemplateQuotes::Eval
        | TemplateQuotes::Backslash => in_place_of(expression),
    };
    Some((message, help))
}

/// Says how the command can read a value without having it in its text.
fn in_place_of(expression: &Expression) -> String {
    match variable(expression) {
        Some(name) => format!("read the variable `{name}` of the environment"),
        None => format!("give it to the command with `env: {{VALUE: '${{{expression}}}'}}`"),
    }
}

fn environment_name(expression: &Expression) -> String {
    variable(expression).map_or_else(String::new, |name| format!(", or read \"${name}\" in the command"))
}

/// Returns the environment variable that holds the value of an expression.
fn variable(expression: &Expression) -> Option<String> {
    match (expression.namespace, expression.path.as_slice()) {
        (Namespace::Captured, [Segment::Key(name)]) => Some(captured_variable(name)),
        (Namespace::Captured, [Segment::Key(name), Segment::Key(key)]) if key == "output" => {
            Some(captured_variable(name))
        }
        (Namespace::Prev, [Segment::Key(key)]) if key == "output" => Some("LL_PREV_OUTPUT".to_owned()),
        (Namespace::Env, [Segment::Key(name)]) => Some(name.clone()),
        _ => None,
    }
}
