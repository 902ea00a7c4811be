//! The text of a review that suggests a fix: what it is, what of it no comment could show, and how to get all of it.

use std::fmt::Write as _;

use super::marker::Marker;
use super::suggestion::Suggestions;
use crate::base::object::ObjectId;
use crate::base::text::plural;
use crate::report::formats::markdown::code;

/// The most files that are named.
const MOST_NAMED: usize = 30;

/// What a review says.
#[derive(Clone, Copy, Debug)]
pub struct ReviewFacts<'f> {
    /// The loop.
    pub loop_name: &'f str,
    /// The head of the pull request.
    pub head: &'f ObjectId,
    /// The page of the run that has the fix, as the server names it.
    pub run: Option<&'f str>,
    /// Whether the run was at the head; else at a merge of it, and the fix was taken over to the head.
    pub is_at_head: bool,
    /// The artifact that has the patch.
    pub artifact: Option<LeftArtifact<'f>>,
    /// What is suggested, and what is not.
    pub suggestions: &'f Suggestions,
    /// What people have to look at, in Markdown.
    pub caveats: &'f str,
    /// By which we know it again.
    pub marker: &'f Marker,
}

/// An artifact of a workflow's run.
#[derive(Clone, Copy, Debug)]
pub struct LeftArtifact<'a> {
    /// `owner/name` of the repository whose workflow it is.
    pub repository: &'a str,
    /// The number of the run.
    pub run: u64,
    /// Its name.
    pub name: &'a str,
}

/// Writes the text.
pub fn review_body(facts: &ReviewFacts<'_>) -> String {
    let ReviewFacts { loop_name, head, run, is_at_head, artifact, suggestions, caveats, marker } = *facts;
    let (of, short) = (code(loop_name, 100), head.as_str().get(..7).unwrap_or(""));
    let run = match run.filter(|run| is_address(run)) {
        Some(run) => format!("[its run]({run})"),
        None => "its run".to_owned(),
    };
    let mut text = caveats.to_owned();
    let _ = write!(
        text,
        "The loop {of} has a fix for {short}. By the report of {run}, its checks pass with the fix."
    );
    if !is_at_head {
        text += " The run was at the merge of this commit with the base; the fix was taken over to the commit itself.";
    }
    let shown = suggestions.comments.len();
    let stands = if shown == 1 { "stands" } else { "stand" };
    let _ = write!(text, "\n\n{} {stands} beside the lines.", plural(shown as u64, "suggestion"));
    if shown > 1 {
        text += " `Add suggestion to batch` makes one commit of them.";
    }
    text += "\n";
    if !suggestions.rest.is_empty() {
        rest(suggestions, artifact, &mut text);
    }
    let _ = write!(text, "\n{}\n", marker.text());
    text
}

fn rest(suggestions: &Suggestions, artifact: Option<LeftArtifact<'_>>, text: &mut String) {
    let left = suggestions.left();
    let (changes, are) = if left == 1 { ("change", "is") } else { ("changes", "are") };
    let _ = writeln!(text, "\n{left} more {changes} {are} not among them:\n");
    for change in suggestions.rest.iter().take(MOST_NAMED) {
        let count = if change.count == 1 { String::new() } else { format!(" ({})", change.count) };
        let _ = writeln!(text, "- {}: {}{count}", code(&change.path, 200), change.why.words());
    }
    let more = suggestions.rest.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        let _ = writeln!(text, "- and {more} more");
    }
    match artifact.filter(|artifact| is_word(artifact.name)) {
        Some(LeftArtifact { repository, run, name }) => {
            let _ = write!(
                text,
                "\nThe whole fix is in the artifact {} of the run. In a clone of this branch:\n\n```sh\n\
                 gh run download {run} --repo {repository} --name {name} --dir fix\ngit apply --3way fix/changes.patch\n```\n",
                code(name, 200)
            );
        }
        None => {
            *text += "\nThe whole fix is `changes.patch` among the reports of the run. In a clone of this branch:\n\n\
                      ```sh\ngit apply --3way changes.patch\n```\n";
        }
    }
}

/// Tells whether a text can stand in a command line as it is.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

/// Tells whether a text can stand in a link as it is.
fn is_address(text: &str) -> bool {
    let is_odd =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '<' | '>' | '\\' | '`');
    (text.starts_with("https://") || text.starts_with("http://")) && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::super::message::PatchId;
    use super::super::standing::FixStanding;
    use super::super::suggestion::{FixedFile, LeftChange, NotSuggested, PullFile, hunks};
    use super::*;
    use crate::base::name::InstanceName;

    fn facts(rest: Vec<LeftChange>, ask: impl FnOnce(ReviewFacts<'_>) -> String) -> String {
        let id = ObjectId::parse(&"2".repeat(40)).unwrap();
        let diff = b"@@ -1 +1 @@\n-a\n+A\n";
        let fix = FixedFile::new("a", &id, b"a\n".to_vec(), b"A\n".to_vec(), diff);
        let shown =
            PullFile { path: "a".to_owned(), id: Some(id.clone()), hunks: hunks(b"@@ -0,0 +1 @@\n+a") };
        let comments = Suggestions::new(&[fix], &[shown]).comments;
        let suggestions = Suggestions { comments, rest };
        let marker = Marker {
            run: InstanceName::parse("fix-20260102T030405-0123ab").unwrap(),
            patch: PatchId::parse(&"7".repeat(40)).unwrap(),
            standing: FixStanding::Verified,
        };
        ask(ReviewFacts {
            loop_name: "fix-types",
            head: &id,
            run: Some("https://github.com/octo/project/actions/runs/99"),
            is_at_head: true,
            artifact: Some(LeftArtifact {
                repository: "octo/project",
                run: 99,
                name: "ll-loop-fix-types-check-1",
            }),
            suggestions: &suggestions,
            caveats: "",
            marker: &marker,
        })
    }

    #[test]
    fn a_review_says_what_it_shows_and_what_not() {
        let left = |path: &str, why, count| LeftChange { path: path.to_owned(), why, count };
        let rest = vec![
            left("src/a`b.rs", NotSuggested::Outside, 2),
            left("@everybody.png", NotSuggested::Binary, 1),
        ];
        insta::assert_snapshot!(facts(rest, |facts| review_body(&facts)), @"
        The loop `fix-types` has a fix for 2222222. By the report of [its run](https://github.com/octo/project/actions/runs/99), its checks pass with the fix.

        1 suggestion stands beside the lines.

        3 more changes are not among them:

        - <code>src&#47;a&#96;b&#46;rs</code>: outside of the lines that the pull request shows (2)
        - `@everybody.png`: not text

        The whole fix is in the artifact `ll-loop-fix-types-check-1` of the run. In a clone of this branch:

        ```sh
        gh run download 99 --repo octo/project --name ll-loop-fix-types-check-1 --dir fix
        git apply --3way fix/changes.patch
        ```

        <!-- ll-loop:deliver run=fix-20260102T030405-0123ab patch=7777777777777777777777777777777777777777 verified -->
        ");
        insta::assert_snapshot!(facts(Vec::new(), |facts| review_body(&ReviewFacts { is_at_head: false, run: None, ..facts })), @"
        The loop `fix-types` has a fix for 2222222. By the report of its run, its checks pass with the fix. The run was at the merge of this commit with the base; the fix was taken over to the commit itself.

        1 suggestion stands beside the lines.

        <!-- ll-loop:deliver run=fix-20260102T030405-0123ab patch=7777777777777777777777777777777777777777 verified -->
        ");
    }

    #[test]
    fn nothing_from_outside_is_obeyed() {
        let left = |number: usize| LeftChange {
            path: format!("x{number}\n## @all <!-- ll-loop:deliver run=a -->`"),
            why: NotSuggested::Added,
            count: 1,
        };
        let text = facts((0..50).map(left).collect(), |facts| {
            let run = Some("https://x/) [y](javascript:z");
            let artifact = facts.artifact.map(|artifact| LeftArtifact { name: "a;rm -rf ~", ..artifact });
            review_body(&ReviewFacts { loop_name: "`</details>@all`", run, artifact, ..facts })
        });
        assert!(!text.contains("\n##") && !text.contains("rm -rf") && !text.contains("javascript"), "{text}");
        assert!(!text.contains("<!-- ll-loop:deliver run=a") && text.contains("and 20 more"), "{text}");
        assert!(text.len() < 20_000);
        assert_eq!(Marker::find(&text).unwrap().patch.as_str(), "7".repeat(40));
    }
}
