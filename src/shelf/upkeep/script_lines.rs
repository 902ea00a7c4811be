//! The lines of a script in a workflow: which of them can stand by themselves, and which commands they join.

use super::unused::Reason;
use crate::base::text::{after_last, first_word};
use crate::tools::recognise_line;

/// What reads the script of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepShell {
    /// One whose words a loop's shell reads the same way.
    Posix,
    /// One that calls programs as others do, and has a language of its own.
    PowerShell,
    /// Python, `cmd` or whatever a step names.
    Other,
}

impl StepShell {
    /// Reads what a step names, `bash -eo pipefail {0}`; without a name it is the shell of the machine.
    pub(super) fn of(shell: Option<&str>) -> Self {
        let Some(shell) = shell else { return Self::Posix };
        // One program may start another: `nix develop --command bash -e {0}`.
        let has =
            |names: &[&str]| shell.split_whitespace().any(|word| names.contains(&after_last(word, &['/'])));
        match () {
            () if has(&["bash", "sh", "dash", "zsh"]) => Self::Posix,
            () if has(&["pwsh", "powershell"]) => Self::PowerShell,
            () => Self::Other,
        }
    }

    /// Tells whether a line of its script says the same to the shell of a loop: one of PowerShell does where it only calls programs that
    /// are known.
    pub(super) fn shares(self, commands: &[&str]) -> bool {
        let is_call = |command: &&str| command.starts_with("cd ") || recognise_line(command).is_some();
        match self {
            Self::Posix => true,
            Self::PowerShell => commands.iter().all(is_call),
            Self::Other => false,
        }
    }
}

/// Joins the lines of a script that go on in the next one, each with its number from 0. What a line is given as a text, `<<EOF`, is no
/// line of its own.
pub(super) fn logical_lines(script: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = script.lines().collect();
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let start = at;
        at += 1;
        let mut text = (*line).to_owned();
        while let Some(open) = text.strip_suffix('\\') {
            text = match lines.get(at) {
                Some(next) => format!("{} {}", open.trim_end(), next.trim()),
                None => open.to_owned(),
            };
            at += 1;
        }
        at = at.min(lines.len());
        // Within quotes, a line goes on by itself. One that is never closed is none.
        if is_quote_open(&text)
            && let Some(end) =
                (at..lines.len()).find(|end| !is_quote_open(&joined_lines(&text, &lines[at..=*end])))
        {
            text = joined_lines(&text, &lines[at..=end]);
            at = end + 1;
        }
        if let Some(end) = end_of_text(&text)
            && let Some(below) = lines[at..].iter().position(|line| line.trim() == end)
        {
            at += below + 1;
        }
        found.push((start, text));
    }
    found
}

/// Returns lines without comments, and without what only says why a check has failed: `check || { echo no; exit 1; }` is `check`.
pub(super) fn without_messages(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut lines =
        lines.into_iter().map(|(at, line)| (at, without_end(without_comment(&line)).to_owned())).peekable();
    while let Some((at, line)) = lines.next() {
        let opens = ["|| {", "|| ("].iter().any(|end| line.ends_with(end));
        if !opens {
            found.push((at, without_message(&line).to_owned()));
            continue;
        }
        let mut inner = Vec::new();
        while let Some(next) = lines.next_if(|(_, next)| next.starts_with([' ', '\t'])) {
            inner.push(next);
        }
        let closed = lines.peek().filter(|(_, next)| matches!(next.trim(), "}" | ")"));
        let all: Vec<&str> = inner.iter().map(|(_, next)| next.trim()).collect();
        let whole = format!("{line} {}; }}", all.join("; "));
        match without_message(&whole) {
            command if closed.is_some() && command != whole => {
                found.push((at, command.to_owned()));
                lines.next();
            }
            _ => {
                found.push((at, line));
                found.extend(inner);
            }
        }
    }
    found
}

/// Returns a line without the sign of its end, which joins nothing there. In a `case`, two of them end more.
fn without_end(line: &str) -> &str {
    // Behind a backslash, it belongs to a command: `find … -exec x {} \;`.
    line.strip_suffix(';').filter(|plain| !plain.ends_with([';', '\\'])).map_or(line, str::trim_end)
}

/// Returns a line without the comment at its end.
fn without_comment(line: &str) -> &str {
    let bare =
        without_quoted(line).filter(|bare| !bare.contains('\n') && !bare.trim_start().starts_with('#'));
    match bare.as_deref().and_then(|bare| bare.find(" #")) {
        Some(at) => line[..at].trim_end(),
        None => line,
    }
}

/// Returns a command without what is said where it fails, if the line fails as well then.
fn without_message(line: &str) -> &str {
    let Some(bare) = without_quoted(line) else { return line };
    let Some((before, behind)) = bare.split_once(" || ") else { return line };
    let inner = behind.trim().trim_matches(['{', '}', '(', ')', ' ']);
    let says =
        |command: &str| matches!(first_word(command), "echo" | "printf" | "exit" | "false" | "" | ">&2");
    let fails = |command: &str| {
        let words: Vec<&str> = command.split_whitespace().collect();
        matches!(words.as_slice(), ["false" | "exit"])
            || matches!(words.as_slice(), ["exit", code] if *code != "0")
    };
    let commands: Vec<&str> = inner.split(';').flat_map(|part| part.split("&&")).map(str::trim).collect();
    let is_one = !before.contains(['|', ';']) && !inner.contains('|');
    let is_message =
        commands.iter().all(|command| says(command)) && commands.iter().any(|command| fails(command));
    if is_one && is_message { line[..before.len()].trim_end() } else { line }
}

fn joined_lines(first: &str, more: &[&str]) -> String {
    std::iter::once(first).chain(more.iter().copied()).collect::<Vec<_>>().join("\n")
}

/// Tells whether a line ends within quotes.
fn is_quote_open(line: &str) -> bool {
    let (mut open, mut before) = (None, ' ');
    for c in line.chars() {
        let is_escaped = before == '\\' && open != Some('\'');
        open = match open {
            Some(quote) if quote == c && !is_escaped => None,
            // A comment may have an apostrophe.
            None if c == '#' && before.is_whitespace() => return false,
            None if matches!(c, '\'' | '"') && !is_escaped => Some(c),
            same => same,
        };
        before = if is_escaped { ' ' } else { c };
    }
    open.is_some()
}

/// Returns the word with which the text ends that a line is given, `cat <<'EOF'`.
fn end_of_text(line: &str) -> Option<&str> {
    let (before, behind) = line.split_once("<<")?;
    if before.ends_with('<') || behind.starts_with('<') {
        return None;
    }
    let word = behind.trim_start_matches('-').trim_start().trim_start_matches(['\'', '"', '\\']);
    let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(word.len());
    // A number behind it is one of a sum.
    word[..end].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then(|| &word[..end])
}

/// Returns why a line is not understood: a part of it is computed, or it needs the shell around it.
pub(super) fn why_not_understood(line: &str) -> Reason {
    let line = &without_expressions(line);
    let is_computed = line.contains(['$', '`']) && !line.contains(['|', ';', '>', '<', '\n']);
    let is_statement = matches!(first_word(line), "if" | "for" | "while" | "until" | "case");
    // What stands in another command joins nothing.
    let is_called =
        line.contains("$(") && !without_calls(line).contains(['|', ';', '>', '<', '\n', '$', '`']);
    match () {
        () if is_statement => Reason::InStatement,
        () if is_called => Reason::AsksCommand,
        () if is_computed => Reason::OnlyJobKnows,
        () => Reason::Joined,
    }
}

/// Returns a line with a sign of the shell in the place of each expression, whose own signs join nothing: `${{ a && b }}`.
fn without_expressions(line: &str) -> String {
    let mut parts = line.split("${{");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push('$');
        out.push_str(part.split_once("}}").map_or(part, |(_, behind)| behind));
    }
    out
}

/// Returns a line without the commands that it takes values from, `$(pwd)`.
fn without_calls(line: &str) -> String {
    let (mut out, mut depth, mut before) = (String::new(), 0_usize, ' ');
    for c in line.chars() {
        match c {
            '(' if depth > 0 || before == '$' => {
                depth += 1;
                // The sign before it belongs to it.
                if depth == 1 {
                    out.pop();
                }
            }
            ')' if depth > 0 => depth -= 1,
            c if depth == 0 => out.push(c),
            _ => {}
        }
        before = c;
    }
    out
}

/// Returns a line without the program that shows its output to people, or keeps it.
pub(super) fn without_reporter(line: &str) -> &str {
    let Some((command, behind)) = line.split_once('|') else { return line };
    let program = first_word(behind);
    let is_reporter = matches!(program, "cs2pr" | "tee" | "reviewdog" | "xcbeautify" | "xcpretty")
        && !behind.contains(['|', ';', '&']);
    if is_reporter { command.trim_end().trim_end_matches("2>&1").trim_end() } else { line }
}

/// Tells whether a command asks git whether files have changed, and fails if so.
pub(super) fn asks_git(command: &str) -> bool {
    let by_test = ["test -z \"$(git ", "[ -z \"$(git ", "[[ -z \"$(git ", "[[ -z $(git "]
        .iter()
        .find_map(|begin| command.strip_prefix(begin))
        .and_then(|rest| rest.split_once(')'));
    if let Some((inner, behind)) = by_test {
        let is_question = ["status --porcelain", "status -s", "status --short", "diff"];
        return is_question.iter().any(|begin| inner.starts_with(begin))
            && matches!(behind.trim_matches(['"', ' ']), "" | "]" | "]]");
    }
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "--no-pager").collect();
    let ["git", "diff" | "diff-files" | "diff-index", rest @ ..] = words.as_slice() else { return false };
    // Two commits are compared, and not files.
    let is_of_commits = rest.iter().any(|word| word.contains("..") || word.starts_with("origin/"));
    let is_one = !command.contains(['|', ';', '&', '>', '$', '`']);
    rest.iter().any(|word| matches!(*word, "--exit-code" | "--quiet")) && is_one && !is_of_commits
}

/// Returns lines with each condition that fails where git says of a change as the question itself: `if ! git diff --quiet; then … exit 1; fi`
/// is `git diff --quiet`.
pub(super) fn with_questions(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut lines = lines.into_iter().peekable();
    while let Some((at, line)) = lines.next() {
        let Some(question) = question_of(&line) else {
            found.push((at, line));
            continue;
        };
        // A line may say all of it.
        if line.trim_end().ends_with("fi") {
            let is_one = line.contains("exit 1") && !line.contains("else");
            found.push((at, if is_one { question } else { line }));
            continue;
        }
        let mut inner = Vec::new();
        while let Some(next) = lines.next_if(|(_, next)| next.trim() != "fi") {
            inner.push(next);
        }
        let fails = |next: &&(usize, String)| matches!(next.1.trim(), "exit 1" | "false" | "exit 2");
        let is_other = |next: &(usize, String)| next.1.trim().starts_with("el");
        let (asked, other) = inner.split_at(inner.iter().position(is_other).unwrap_or(inner.len()));
        // What is said where nothing has changed decides nothing.
        let only_says = |next: &(usize, String)| {
            let line = next.1.trim();
            // What stands in quotes joins nothing.
            let bare: String = line.split('\'').step_by(2).collect();
            line == "else" || line.starts_with("echo ") && !bare.contains(['>', '|', ';', '&', '`'])
        };
        let is_one =
            lines.peek().is_some() && asked.iter().any(|next| fails(&next)) && other.iter().all(only_says);
        if is_one {
            lines.next();
            found.push((at, question));
        } else {
            found.push((at, line));
            found.extend(inner);
        }
    }
    found
}

/// Returns what a condition asks git that holds where files have changed.
fn question_of(line: &str) -> Option<String> {
    let condition = line.strip_prefix("if ")?;
    let condition = condition.split_once(';').map_or(condition, |(condition, _)| condition).trim();
    if let Some(question) = condition.strip_prefix("! ").map(str::trim) {
        return asks_git(question).then(|| question.to_owned());
    }
    let is_test = ["[[ ", "[ ", "test "].iter().any(|begin| condition.starts_with(begin));
    let says_some =
        condition.contains("-n ") || condition.contains("!=") || condition.starts_with("[[ $(git");
    let (before, behind) = condition.split_once("$(")?;
    let (inner, after) = behind.split_once(')')?;
    let is_whole = !before.contains('$') && !after.contains(['$', '&', '|']) && !condition.contains("-z");
    let words: Vec<&str> = inner.split_whitespace().collect();
    let plain = |word: &&str| !word.starts_with('-') || **word == *"--";
    match words.as_slice() {
        _ if !is_test || !says_some || !is_whole || inner.contains(['|', ';', '&']) => None,
        ["git", "status", ..] => {
            Some(format!("test -z \"$({inner})\"")).filter(|question| asks_git(question))
        }
        ["git", "diff", rest @ ..] => {
            let rest: Vec<&str> = rest.iter().copied().filter(|word| plain(word)).collect();
            let question = [&["git", "diff", "--exit-code"], rest.as_slice()].concat().join(" ");
            asks_git(&question).then_some(question)
        }
        _ => None,
    }
}

/// Returns a command without the variables that are set before it, `NAME='a value' make`.
pub(super) fn without_assignments(command: &str) -> &str {
    let mut rest = command.trim_start();
    while let Some((name, value)) = rest.split_once('=') {
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (quote, inner) = match value.chars().next() {
            Some(quote @ ('\'' | '"')) => (quote, &value[1..]),
            Some(_) | None => (' ', value),
        };
        // Within double quotes, a backslash keeps one from ending them.
        let is_end = |at: &usize| quote != '"' || !inner[..*at].ends_with('\\');
        let end = inner.match_indices(quote).map(|(at, _)| at).find(is_end);
        match end.filter(|_| is_name) {
            Some(end) => rest = inner[end + 1..].trim_start(),
            None => break,
        }
    }
    rest
}

/// Returns the commands that a line joins by `&&`, if each needs nothing of the shell around it.
pub(super) fn understood_commands(line: &str) -> Option<Vec<&str>> {
    let bare = without_quoted(line)?;
    let joints: Vec<usize> = bare.match_indices("&&").map(|(at, _)| at).collect();
    let bounds = std::iter::once(0).chain(joints.iter().map(|at| at + 2));
    let ends = joints.iter().copied().chain(std::iter::once(line.len()));
    is_understood(line, &bare).then(|| bounds.zip(ends).map(|(from, to)| line[from..to].trim()).collect())
}

fn is_understood(line: &str, bare: &str) -> bool {
    // What the shell or a loop puts in is computed, in whatever quotes it stands.
    let is_computed = line.contains(['$', '`', '\\']);
    !is_computed
        && !bare.replace("&&", "").contains(['|', ';', '&', '>', '<', '(', '{'])
        // Within a word, as in `nix build .#docs`, it begins no comment.
        && !bare.split_whitespace().any(|word| word.starts_with('#'))
        && !line.is_empty()
        && line.len() <= 300
        && !line.chars().any(char::is_control)
}

/// Returns the words of a command as they are written, with their quotes; nothing where a quote is not closed.
pub(super) fn raw_words(command: &str) -> Option<Vec<&str>> {
    let bare = without_quoted(command)?;
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in bare.bytes().enumerate().chain(std::iter::once((command.len(), b' '))) {
        match (start, byte == b' ') {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                found.push(&command[from..at]);
                start = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }
    Some(found)
}

/// Returns a line in which each byte between quotes is an `x`; nothing where a quote is not closed.
fn without_quoted(line: &str) -> Option<String> {
    let (mut bare, mut open) = (String::new(), None);
    for c in line.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => {
                // As many bytes as there were: places found in this line are used in the original.
                bare.push_str(&"x".repeat(c.len_utf8()));
                continue;
            }
            None if matches!(c, '\'' | '"') => open = Some(c),
            None => {}
        }
        bare.push(c);
    }
    open.is_none().then_some(bare)
}

/// Tells whether a value holds nothing that is computed.
pub(super) fn is_plain(value: &str) -> bool {
    !value.contains("${{")
        && !value.contains('$')
        && value.len() <= 200
        && !value.chars().any(char::is_control)
}

/// Tells whether an input of an action holds nothing that is computed; it may be a list, a line each.
pub(super) fn is_plain_input(value: &str) -> bool {
    value.lines().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signs_of_an_expression_or_a_word_join_nothing() {
        assert_eq!(understood_commands("nix build .#docs && x"), Some(vec!["nix build .#docs", "x"]));
        assert_eq!(understood_commands("x #docs"), None);
        for (line, expected) in [
            ("mage check;", "mage check"),
            ("x ;;", "x ;;"),
            ("find . -exec x {} \\;", "find . -exec x {} \\;"),
        ] {
            assert_eq!(without_end(line), expected);
        }
        for (line, expected) in [
            ("cargo test ${{ a && '-b' || '' }}", Reason::OnlyJobKnows),
            ("cargo test $(x)", Reason::AsksCommand),
            ("cargo test ${{ a }} | tee x", Reason::Joined),
        ] {
            assert_eq!(why_not_understood(line), expected, "{line}");
        }
    }

    #[test]
    fn git_is_asked_for_files_and_not_for_commits() {
        for command in [
            "git diff --exit-code",
            "git --no-pager diff --exit-code -- src",
            "git diff-index --quiet HEAD --",
            "test -z \"$(git status --porcelain)\"",
            "[ -z \"$(git status --porcelain docs)\" ]",
        ] {
            assert!(asks_git(command), "{command}");
        }
        for command in [
            "git diff",
            "git diff --exit-code main..HEAD",
            "git diff --quiet origin/main",
            "git status",
            "git diff --quiet || mend",
            "test -z \"$(git log)\"",
        ] {
            assert!(!asks_git(command), "{command}");
        }
        for (script, expected) in [
            (
                "if ! git diff --quiet -- docs; then\n  echo no\n  exit 1\nfi\nb",
                vec!["git diff --quiet -- docs", "b"],
            ),
            (
                "if [[ $(git diff --stat) != '' ]]; then\n  git diff\n  exit 1\nfi",
                vec!["git diff --exit-code"],
            ),
            (
                "if [ -n \"$(git status --porcelain)\" ]; then echo no; exit 1; fi",
                vec!["test -z \"$(git status --porcelain)\""],
            ),
            ("if git diff --quiet; then\n  exit 1\nfi", vec!["if git diff --quiet; then", "  exit 1", "fi"]),
            (
                "if [ -n \"$(git diff)\" ]; then\n  mend\nfi",
                vec!["if [ -n \"$(git diff)\" ]; then", "  mend", "fi"],
            ),
        ] {
            let found = with_questions(logical_lines(script));
            let found: Vec<_> = found.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn what_is_said_of_a_failure_is_no_part_of_a_check() {
        for (script, expected) in [
            ("check . || { echo \"no || yes\"; exit 1; }", vec!["check ."]),
            ("check || (echo no && exit 1)", vec!["check"]),
            ("check || exit 1", vec!["check"]),
            ("check || {\n  echo no\n  exit 1\n}\nb", vec!["check", "b"]),
            ("check || echo no", vec!["check || echo no"]),
            ("check || exit 0", vec!["check || exit 0"]),
            ("check || {\n  mend\n  exit 1\n}", vec!["check || {", "  mend", "  exit 1", "}"]),
            ("a | b || exit 1", vec!["a | b || exit 1"]),
            ("lint .  # why", vec!["lint ."]),
            ("lint '#' a#b", vec!["lint '#' a#b"]),
            ("# why", vec!["# why"]),
        ] {
            let found = without_messages(logical_lines(script));
            let found: Vec<_> = found.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn a_line_says_why_it_is_not_understood() {
        for (line, expected) in [
            ("docker run -v \"$(pwd):/x\" image check", Reason::AsksCommand),
            ("tox -e ci-$(echo x | tr -d .) -- -v", Reason::AsksCommand),
            ("make -j\"$(nproc)\" $TARGET", Reason::OnlyJobKnows),
            ("generate $FLAGS", Reason::OnlyJobKnows),
            ("a | b", Reason::Joined),
            ("for x in $(ls); do", Reason::InStatement),
        ] {
            assert_eq!(why_not_understood(line), expected, "{line}");
        }
    }

    #[test]
    fn variables_before_a_command_are_no_part_of_it() {
        for (command, expected) in [
            ("A=1 make", "make"),
            ("A='-D warnings' B_2=\"x y\" cargo test --x=1", "cargo test --x=1"),
            ("make A=1 b", "make A=1 b"),
            ("A=1", "A=1"),
            ("A= make", "make"),
        ] {
            assert_eq!(without_assignments(command), expected, "{command}");
        }
    }

    #[test]
    fn a_line_counts_that_every_shell_reads_the_same_way() {
        for (shell, command, expected) in [
            (None, "./check", true),
            (Some("bash -eo pipefail -l {0}"), "./check", true),
            (Some("nix develop --command bash {0}"), "./check", true),
            (Some("pwsh"), "dotnet test", true),
            (Some("pwsh"), "./check.ps1", false),
            (Some("python"), "dotnet test", false),
            (Some("cmd"), "dotnet test", false),
        ] {
            assert_eq!(StepShell::of(shell).shares(&[command]), expected, "{shell:?} and {command}");
        }
    }

    #[test]
    fn a_line_goes_on_behind_a_backslash_and_within_quotes() {
        for (script, expected) in [
            ("a \\\n  b\nc", vec![(0, "a b"), (2, "c")]),
            ("bash -c '\n  x\n'\nb", vec![(0, "bash -c '\n  x\n'"), (3, "b")]),
            ("# don't\nb", vec![(0, "# don't"), (1, "b")]),
            ("it's\nb", vec![(0, "it's"), (1, "b")]),
            ("a \\\"\nb", vec![(0, "a \\\""), (1, "b")]),
            ("cat <<'EOF' > x\nnpm test\nEOF\nb", vec![(0, "cat <<'EOF' > x"), (3, "b")]),
            ("cat <<-END\n\tx\n\tEND\nb", vec![(0, "cat <<-END"), (3, "b")]),
            ("x <<< EOF\nb", vec![(0, "x <<< EOF"), (1, "b")]),
            ("x <<EOF\nb", vec![(0, "x <<EOF"), (1, "b")]),
            ("a \\", vec![(0, "a ")]),
        ] {
            let found = logical_lines(script);
            let found: Vec<_> = found.iter().map(|(at, line)| (*at, line.as_str())).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn what_stands_in_quotes_is_no_sign_of_the_shell() {
        for (line, expected) in [
            ("yarn test-types --target '>=5.4 <6.0'", Some(vec!["yarn test-types --target '>=5.4 <6.0'"])),
            ("a 'b && c' && d \"e; f\"", Some(vec!["a 'b && c'", "d \"e; f\""])),
            ("a && b", Some(vec!["a", "b"])),
            ("a 'é && x' && b", Some(vec!["a 'é && x'", "b"])),
            ("a > b", None),
            ("a & b", None),
            ("a '$(b)'", None),
            ("a \"${b}\"", None),
            ("it's", None),
            ("", None),
        ] {
            assert_eq!(understood_commands(line), expected, "{line}");
        }
    }
}
