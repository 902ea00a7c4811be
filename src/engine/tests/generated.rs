//! Loops at random, and a world for those that only run commands: what several property tests begin with.

use super::*;

/// A loop of a few states, drawn from these shapes; each `@` in one becomes the name of a state or of an end. `top` makes
/// what stands before the states of switches and of a name.
pub(super) fn any_loop_of<const N: usize>(
    shapes: Vec<&'static str>,
    top: fn([bool; N], &str) -> String,
    ends: &'static str,
) -> impl Strategy<Value = String> {
    let state = (prop::sample::select(shapes), prop::collection::vec(0..8usize, 6));
    let head = (any::<[bool; N]>(), 0..8usize);
    (prop::collection::vec(state, 1..6), head).prop_map(move |(states, (switches, at))| {
        let count = states.len();
        let name = |index: usize| match index % (count + 2) {
            index if index < count => format!("s{index}"),
            index if index == count => "done".to_owned(),
            _ => "failed".to_owned(),
        };
        let mut text = top(switches, &name(at));
        text.push_str("states:\n");
        for (index, (shape, targets)) in states.iter().enumerate() {
            let mut shape = (*shape).to_owned();
            for target in targets {
                shape = shape.replacen('@', &name(*target), 1);
            }
            let _ = writeln!(text, "  s{index}: {{{shape}}}");
        }
        text + ends
    })
}

/// Returns the lines that are switched on.
pub(super) fn chosen<const N: usize>(switches: [bool; N], lines: [String; N]) -> String {
    let chosen = switches.iter().zip(lines).filter(|(is_on, _)| **is_on);
    chosen.map(|(_, line)| line + "\n").collect()
}

/// Answers a run whose loop runs commands that print no signals, until it is over.
pub(super) fn answer_commands(
    engine: &Engine<'_>,
    survey: impl FnOnce() -> Surveyed,
    command: impl FnOnce() -> Observation,
) -> Option<Input> {
    match engine.next() {
        Next::Done(_) => None,
        Next::Begin => Some(Input::Begin),
        Next::Wait(_) => Some(Input::WaitDone),
        Next::Yield => Some(Input::Yielded),
        Next::Survey(_) => Some(Input::Surveyed(survey())),
        Next::Run(_) => Some(Input::ActionDone(command())),
        other @ (Next::Prompt(_)
        | Next::Call(_)
        | Next::Approve(_)
        | Next::Learn(_)
        | Next::Ask(_)
        | Next::SubLoop(_)
        | Next::ReadContinuation
        | Next::LookForQuestion
        | Next::Look
        | Next::LookForJudges(_)
        | Next::Restore(_)
        | Next::SetAside(_)
        | Next::Measure(_)
        | Next::Read(_)
        | Next::Query(_)) => unreachable!("only commands here, not {other:?}"),
    }
}
