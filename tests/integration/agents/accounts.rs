//! Which account an agent uses is said at the start, and no value of it is ever shown.

use serde_json::json;

use crate::common::{Project, Ran};
use crate::fake_host::{self, prints};

const LOOP: &str = "name: main
description: an agent
initial: fix
budget: {llm_calls: 5}
states:
  fix: {action: '/fix it', evaluate: {type: exit_code}, on_yes: done, on_no: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

/// What stands for every token.
const VALUE: &str = "sk-very-secret-0123456789";

/// A project with an agent that says all that it knows.
fn project(text: &str, tokens: &[&str]) -> Project {
    let said = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": VALUE}]}});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": VALUE});
    let project = fake_host::project(&["claude"], text, &[prints(&[said, result])]);
    tokens.iter().fold(project, |project, name| project.env(name, VALUE))
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "main", "--llm", "--no-strict", "-v"], more].concat()).code(0)
}

#[test]
fn the_account_is_named_at_the_start_in_ci() {
    for (tokens, sentence) in [
        (&["ANTHROPIC_API_KEY"][..], "`claude` uses `ANTHROPIC_API_KEY`\n"),
        (
            &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
            "`claude` uses `ANTHROPIC_API_KEY`, and not `CLAUDE_CODE_OAUTH_TOKEN`, which is set, too\n",
        ),
        (&["CLAUDE_CODE_OAUTH_TOKEN"], "`claude` uses `CLAUDE_CODE_OAUTH_TOKEN`\n"),
        (&["ANTHROPIC_AUTH_TOKEN"], "`claude` uses `ANTHROPIC_AUTH_TOKEN`\n"),
        (&[], "`claude` uses the account that it is logged in with, if any: the environment has no"),
    ] {
        let project = project(LOOP, tokens);
        let ran = run(&project, &["--ci=plain"]);
        assert!(ran.stderr.contains(sentence), "{}", ran.all());
        let journal: String = project.events().iter().map(ToString::to_string).collect();
        let is_shown = ran.all().contains(VALUE) || journal.contains(VALUE);
        assert_eq!(is_shown, tokens.is_empty(), "{tokens:?}");
    }
}

#[test]
fn elsewhere_it_is_named_where_another_could_be_meant() {
    let tokens = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];
    assert!(run(&project(LOOP, &tokens), &["--no-ci"]).stderr.contains("and not `CLAUDE_CODE_OAUTH_TOKEN`"));
    assert!(!run(&project(LOOP, &tokens[..1]), &["--no-ci"]).all().contains("ANTHROPIC_API_KEY"));
}

#[test]
fn who_asks_nobody_needs_no_account() {
    let text = LOOP.replace("'/fix it'", "'true'");
    assert!(
        !run(&project(&text, &["ANTHROPIC_API_KEY"]), &["--ci=plain"]).all().contains("ANTHROPIC_API_KEY")
    );
}
