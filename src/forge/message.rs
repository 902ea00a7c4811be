//! The message of a delivered commit. Its trailers say which loop and run made it, and by them we know it again.

use std::fmt::Write as _;

use crate::base::parsed::parsed;
use crate::base::text::{is_hex, one_line, plural};
use crate::engine::event::ActionKind;
use crate::report::digest::Digest;

/// The longest headline, in characters: hosts cut longer ones.
const MAX_HEADLINE: usize = 72;

/// The error for a text that is not the id of a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the id of a patch")]
pub struct PatchIdError;

parsed!(
    /// What `git patch-id --verbatim` says of a patch: the same for the same changes, wherever they stand.
    PatchId, PatchIdError, |text| {
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_hex) { Ok(()) } else { Err(PatchIdError) }
    }
);

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub struct MessageFacts<'m> {
    /// The loop.
    pub loop_name: &'m str,
    /// The digest of its definition.
    pub definition: &'m str,
    /// The page of the run, or its id.
    pub run: &'m str,
    /// The changes.
    pub patch: &'m PatchId,
    /// How many files they are in.
    pub files: usize,
    /// Whether something verified them.
    pub is_verified: bool,
    /// What people have to look at, a sentence each.
    pub caveats: &'m [String],
    /// The host of the agent that wrote them, if one did.
    pub agent: Option<&'m str>,
}

/// Writes the message: a headline, what was done, and the trailers.
pub fn commit_message(facts: &MessageFacts<'_>) -> String {
    let MessageFacts { loop_name, definition, run, patch, files, is_verified, caveats, agent } = *facts;
    let (headline, name) = (headline(loop_name, files), calm(loop_name));
    let files = plural(files as u64, "file");
    let verified =
        if is_verified { "and verified the result" } else { "and nothing has verified the result" };
    let mut text = format!("{headline}\n\nThe loop {name} changed {files}, {verified}.\n\n");
    for caveat in caveats {
        let _ = writeln!(text, "{}.\n", calm_sentence(caveat));
    }
    let _ = writeln!(text, "LL-Loop: {name}@{}", calm(definition));
    let _ = writeln!(text, "LL-Run: {}", address(run));
    let _ = writeln!(text, "LL-Patch: {patch}");
    if let Some(author) = agent.map(co_author) {
        let _ = writeln!(text, "Co-authored-by: {author}");
    }
    text
}

/// Returns the first line of a commit, and the title of its pull request. A long name is cut, the count is not.
pub fn headline(loop_name: &str, files: usize) -> String {
    let files = plural(files as u64, "file");
    let around = format!("Fix what  found ({files})").chars().count();
    let name = one_line(&calm(loop_name), MAX_HEADLINE.saturating_sub(around));
    format!("Fix what {name} found ({files})")
}

/// Leaves of a name only what no host acts on: `[skip ci]`, mentions, addresses and the numbers of issues, which a keyword
/// before them would close, need other characters. The exception is GitHub's `GH-1`.
pub fn calm(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ' ');
    let plain: Vec<char> = one_line(name, 120).chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let is_issue = |at: usize| {
        let before = |back: usize| at.checked_sub(back).map(|at| plain[at].to_ascii_lowercase());
        plain[at] == '-' && before(1) == Some('h') && before(2) == Some('g')
    };
    (0..plain.len()).map(|at| if is_issue(at) { '_' } else { plain[at] }).collect()
}

/// Leaves of a sentence only what no host acts on; names and lines of a run may be among its words.
fn calm_sentence(text: &str) -> String {
    // A name of this length is cut, and nobody reads a sentence of this length.
    const LONGEST: usize = 2000;
    let mut calm_words = Vec::new();
    for word in one_line(text, LONGEST).split_whitespace() {
        // A command stands in ticks, of which no host makes anything in a message.
        let (begin, rest) = word.strip_prefix('`').map_or(("", word), |rest| ("`", rest));
        let inner = rest.trim_end_matches(['`', ',', ':', ';', '.']);
        calm_words.push([begin, &calm(inner), &rest[inner.len()..]].concat());
    }
    calm_words.join(" ")
}

/// Returns the address of a run as it is, or any other word for it so that no host acts on it.
fn address(run: &str) -> String {
    let is_address = run.starts_with("https://") || run.starts_with("http://");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#&+=%".contains(c);
    let line = one_line(run, 500);
    if is_address && line.chars().all(is_plain) { line } else { calm(&line) }
}

/// Names the agent that worked in a run, if one did. A journal does not name hosts, so it is told by its model, and one
/// that is not known is an `agent`. Models that only judged have written nothing.
pub fn agent(digest: &Digest) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 4] =
        [("claude", "claude"), ("gpt", "codex"), ("gemini", "gemini"), ("qwen", "qwen")];
    let is_work = |kind: ActionKind| match kind {
        ActionKind::Prompt | ActionKind::SubLoop => true,
        ActionKind::Shell
        | ActionKind::Mcp
        | ActionKind::Board
        | ActionKind::HumanApproval
        | ActionKind::Learning => false,
    };
    let worked = digest.steps().filter_map(|step| step.action.as_ref()).any(|action| is_work(action.kind));
    if digest.usage().is_nothing() || !(worked || digest.omitted() > 0) {
        return None;
    }
    let model = digest.usage().model.as_deref().unwrap_or("").to_lowercase();
    let known = KNOWN.into_iter().find(|(part, _)| model.contains(part));
    Some(known.map_or("agent", |(_, host)| host))
}

/// Names an agent as hosts count authors. Only for Claude is there an address that stands for it; the others get one of a
/// domain that nobody can have (RFC 2606).
fn co_author(host: &str) -> String {
    match host {
        "claude" => "Claude <noreply@anthropic.com>".to_owned(),
        host => {
            let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let name: String = host.chars().filter(plain).take(40).collect();
            let name = if name.is_empty() { "agent".to_owned() } else { name };
            format!("{name} <{name}@agent.invalid>")
        }
    }
}

/// What the trailers of a commit say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The loop and the digest of its definition.
    pub of_loop: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The changes.
    pub patch: Option<PatchId>,
}

impl Trailers {
    /// Reads the trailers of a message: its last paragraph, as git does. The headline has none, and the case of a key does
    /// not count.
    pub fn of(message: &str) -> Self {
        let lines: Vec<&str> = message.trim_end().lines().map(str::trim_end).collect();
        let Some(blank) = lines.iter().rposition(|line| line.is_empty()) else { return Self::default() };
        if lines[..blank].iter().all(|line| line.is_empty()) {
            return Self::default();
        }
        let value = |key: &str| {
            let (_, value) = lines[blank..]
                .iter()
                .rev()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case(key))?;
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let patch = value("LL-Patch").and_then(|patch| PatchId::parse(&patch).ok());
        Self { of_loop: value("LL-Loop"), run: value("LL-Run"), patch }
    }

    /// Returns the name of the loop, as [`calm`] writes it.
    pub fn loop_name(&self) -> Option<&str> {
        self.of_loop.as_deref()?.rsplit_once('@').map(|(name, _digest)| name)
    }
}

/// Counts how many of the newest commits are ours, the newest message first: where each is, bots answer each other.
pub fn ours_in_a_row<'m>(messages: impl IntoIterator<Item = &'m str>) -> usize {
    messages.into_iter().take_while(|message| Trailers::of(message).of_loop.is_some()).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::event::Event;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::report::testing::{Journal, state};

    const PATCH: &str = "0123456789abcdef0123456789abcdef01234567";

    fn message(loop_name: &str, agent: Option<&str>) -> String {
        commit_message(&MessageFacts {
            loop_name,
            definition: "abc",
            run: "https://x/runs/7",
            patch: &PatchId::parse(PATCH).unwrap(),
            files: 2,
            is_verified: true,
            caveats: &[],
            agent,
        })
    }

    #[test]
    fn a_message_says_what_was_done_and_by_whom() {
        insta::assert_snapshot!(message("quality/types", Some("claude")), @r"
        Fix what quality/types found (2 files)

        The loop quality/types changed 2 files, and verified the result.

        LL-Loop: quality/types@abc
        LL-Run: https://x/runs/7
        LL-Patch: 0123456789abcdef0123456789abcdef01234567
        Co-authored-by: Claude <noreply@anthropic.com>
        ");
        assert!(message("x", Some("co dex\n")).ends_with("Co-authored-by: codex <codex@agent.invalid>\n"));
        assert!(!message("x", None).contains("Co-authored-by"));
    }

    #[test]
    fn a_name_orders_nothing_and_forges_no_trailer() {
        for name in [
            "a [skip ci] @all #1\n\nLL-Patch: x\nCo-authored-by: y",
            "fixes #1",
            "closes GH-1",
            "fixes https://github.com/o/r/issues/1",
            "***NO_CI***",
            "a\u{2028}Co-authored-by: y",
            "a\u{202e}b\u{1b}[2J",
        ] {
            let facts = MessageFacts {
                loop_name: name,
                definition: name,
                run: name,
                patch: &PatchId::parse(PATCH).unwrap(),
                files: 1,
                is_verified: false,
                caveats: &[],
                agent: Some("[x] @y"),
            };
            let hostile = commit_message(&facts);
            let trailers: Vec<&str> = hostile.lines().skip(4).collect();
            let keys: Vec<&str> = trailers.iter().map(|line| line.split(':').next().unwrap()).collect();
            assert_eq!(keys, ["LL-Loop", "LL-Run", "LL-Patch", "Co-authored-by"], "{hostile}");
            assert!(!hostile.to_lowercase().contains("gh-") && !hostile.contains("://"), "{hostile}");
            let (last, rest) = trailers.split_last().unwrap();
            assert!(
                !rest.join("").contains(['[', '@', '#', '*']) || rest[0].matches('@').count() == 1,
                "{hostile}"
            );
            assert!(last.ends_with("@agent.invalid>"), "{hostile}");
            assert!(!hostile.lines().next().unwrap().contains(['[', '@', '#', '*']), "{hostile}");
        }
    }

    #[test]
    fn a_command_in_a_sentence_can_be_read_and_orders_nothing() {
        for (text, calmed) in [
            ("nobody has; `ll-loop merge --confirm` does", "nobody has; `ll-loop merge --confirm` does"),
            ("`a`: `@user` closes `#1`, [skip ci]", "`a`: `-user` closes `-1`, -skip ci-"),
            ("` ``", "` ``"),
        ] {
            assert_eq!(calm_sentence(text), calmed);
        }
    }

    #[test]
    fn a_headline_is_short_and_keeps_its_count() {
        assert_eq!(headline("a", 1), "Fix what a found (1 file)");
        let long = headline(&"ü".repeat(120), 100);
        assert_eq!((long.chars().count(), long.ends_with("… found (100 files)")), (72, true), "{long}");
    }

    #[test]
    fn the_page_of_a_run_stays_and_nothing_else_is_one() {
        assert_eq!(address("https://x/runs/7?a=b#c"), "https://x/runs/7?a=b#c");
        assert_eq!(address("main-20260101T000000-abcdef"), "main-20260101T000000-abcdef");
        assert_eq!(address("https://x/ fixes #1"), "https-//x/ fixes -1");
    }

    #[test]
    fn an_agent_is_named_where_one_worked() {
        let said = |prompts: bool, model: Option<&str>| {
            let mut journal = Journal::start();
            journal.enter("fix", 1);
            let kind = if prompts { ActionKind::Prompt } else { ActionKind::Shell };
            let (state, action) = (state("fix"), "x".to_owned());
            journal.push(Event::ActionStart { state, action, kind, role: None, session: None, tree: None });
            journal.done(0, "", "");
            if let (Some(model), Some(Event::ActionComplete(end))) =
                (model, journal.events.last_mut().map(|last| &mut last.event))
            {
                let usage =
                    serde_json::json!({"calls": 1, "input_tokens": 1, "output_tokens": 1, "model": model});
                end.usage = serde_json::from_value(usage).unwrap();
            }
            agent(&journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true).digest())
        };
        assert_eq!(said(true, Some("us.anthropic.Claude-5")), Some("claude"));
        assert_eq!(said(true, Some("gpt-5-codex")), Some("codex"));
        assert_eq!(said(true, Some("own-7b")), Some("agent"));
        assert_eq!((said(true, None), said(false, Some("claude"))), (None, None));
    }

    #[test]
    fn trailers_are_read_back_from_the_last_paragraph() {
        let read = Trailers::of(&message("main", None));
        assert_eq!(read.of_loop.as_deref(), Some("main@abc"));
        assert_eq!(read.run.as_deref(), Some("https://x/runs/7"));
        assert_eq!(read.patch.unwrap().as_str(), PATCH);
        assert!(Trailers::of(&message("main", None).replace('\n', "\r\n")).patch.is_some());
        assert!(Trailers::of("a\n \t\nll-loop: x@1").of_loop.is_some());
        for other in [
            "LL-Loop: x@1",
            "\n\nLL-Loop: x@1",
            "",
            "LL-Loop",
            "Quote\n\nLL-Loop: x@1\n\nno trailer",
            "LL-Loop:\n",
            "x LL-Loop: y",
        ] {
            assert_eq!(Trailers::of(other), Trailers::default(), "{other:?}");
        }
        assert_eq!(Trailers::of("a\n\nLL-Loop: x\nLL-Patch: nonsense").patch, None);
    }

    #[test]
    fn commits_of_ours_are_counted_until_another_one() {
        let ours = message("main", None);
        let ours = ours.as_str();
        assert_eq!(ours_in_a_row([ours, ours, ours]), 3);
        assert_eq!(ours_in_a_row([ours, "a person's", ours]), 1);
        assert_eq!(ours_in_a_row(["a person's", ours]), 0);
        assert_eq!(ours_in_a_row([]), 0);
    }

    proptest! {
        #[test]
        fn whatever_a_loop_is_called_the_trailers_are_read_back(
            name in any::<String>(), run in any::<String>(), files in 0..1000usize,
        ) {
            let patch = PatchId::parse(PATCH).unwrap();
            let facts = MessageFacts {
                loop_name: &name,
                definition: "abc",
                run: &run,
                patch: &patch,
                files,
                is_verified: true,
                caveats: &[],
                agent: Some(&name),
            };
            let text = commit_message(&facts);
            prop_assert!(text.lines().next().unwrap().chars().count() <= MAX_HEADLINE);
            prop_assert_eq!(text.lines().count(), 8, "{}", text);
            let read = Trailers::of(&text);
            prop_assert_eq!(read.patch, Some(patch));
            prop_assert!(read.of_loop.unwrap().ends_with("@abc"));
        }
    }
}
