//! jq expressions: read when a loop is loaded, executed where they do no harm.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::Value;

use super::jq_question::{LONGEST_VALUE, too_long};
use super::judged_text::excerpt;
use crate::base::explanation::Explanation;

/// The longest expression, in bytes.
const LONGEST_FILTER: usize = 4 * 1024;

type Filter = jaq_core::compile::Filter<jaq_core::Native<data::JustLut<Val>>>;

/// What it takes to read the deepest expression of [`LONGEST_FILTER`] bytes.
// Only reserved: a system gives memory to a stack as it is used.
const STACK: usize = 128 * 1024 * 1024;

/// Executes an expression on a JSON document and returns the one value that it yields. It may take any time and memory.
pub fn run(filter: &str, text: &str) -> Result<Value, Explanation> {
    on_large_stack(|| execute(filter, text))
}

/// Reads an expression and executes nothing.
pub fn check(filter: &str) -> Result<(), Explanation> {
    on_large_stack(|| compile(filter).map(drop))
}

/// Expressions are read by functions that call themselves.
fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, Explanation> + Send) -> Result<T, Explanation> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| Explanation::new(format!("no thread for a jq expression: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(Explanation::new("the jq expression failed")))
    })
}

fn execute(filter: &str, text: &str) -> Result<Value, Explanation> {
    let compiled = compile(filter)?;
    let input = read::parse_single(text.as_bytes())
        .map_err(|error| Explanation::new(format!("`{}` is not JSON: {error}", excerpt(text))))?;
    let shown = excerpt(filter);
    let context = Ctx::<data::JustLut<Val>>::new(&compiled.lut, Vars::new([]));
    let mut values = compiled.id.run((context, input)).map(unwrap_valr);
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            return Err(Explanation::new(format!("`{shown}` failed: {}", excerpt(&error.to_string()))));
        }
        None => return Err(Explanation::new(format!("`{shown}` yields no values where one is needed"))),
    };
    if values.next().is_some() {
        return Err(Explanation::new(format!("`{shown}` yields several values where one is needed")));
    }
    // By its text, because a value of jaq may be something that JSON cannot say.
    let written = value.to_string();
    if written.len() > LONGEST_VALUE {
        return Err(Explanation::new(too_long(&shown, written.len())));
    }
    serde_json::from_str(&written)
        .map_err(|error| Explanation::new(format!("`{shown}` failed: the result is not JSON: {error}")))
}

fn compile(filter: &str) -> Result<Filter, Explanation> {
    let wrong = || Explanation::new(format!("`{}` is not a valid jq expression", excerpt(filter)));
    if filter.len() > LONGEST_FILTER {
        return Err(wrong());
    }
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules =
        Loader::new(definitions).load(&arena, File { code: filter, path: () }).map_err(|_| wrong())?;
    Compiler::default().with_funs(functions).compile(modules).map_err(|_| wrong())
}
