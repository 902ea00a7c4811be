//! Reads the programs that Composer writes into its `bin`: texts that run the program of a package, and do nothing else. Only
//! what has their form is one of them.

use crate::base::text::up_to;

/// How a line of PHP ends that runs a file and gives back what it says.
const INCLUDES: &str = "return include ";

/// The part for an old PHP, which cannot leave out the first line of a program.
const FOR_OLD: &str = "if (PHP_VERSION_ID < 80000) {";

/// Words that no such text has: each could end it early, or run something else.
const FOREIGN: [&str; 14] = [
    "assert",
    "call_user_func",
    "die",
    "eval",
    "exec",
    "exit",
    "file_put_contents",
    "goto",
    "passthru",
    "popen",
    "proc_open",
    "require",
    "shell_exec",
    "system",
];

/// Returns the path of the program that such a text runs, from the directory in which the text stands.
pub(super) fn target(text: &str) -> Option<String> {
    let first = text.lines().next()?;
    if first.starts_with("#!") && first.ends_with("sh") { of_shell(text) } else { of_php(text) }
}

fn of_php(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim_end).enumerate();
    // A text that opens PHP twice would print or run what stands between.
    let code = lines.filter(|(at, line)| *at > 0 || !line.starts_with("#!")).map(|(_, line)| line);
    let mut lines = code.filter(|line| !line.is_empty());
    (lines.next() == Some("<?php")).then_some(())?;
    let mut lines = lines.filter(|line| !is_comment(line)).peekable();
    (lines.next() == Some("namespace Composer;")).then_some(())?;
    while lines.next_if(|line| sets_a_global(line)).is_some() {}
    let mut included = Vec::new();
    if lines.next_if_eq(&FOR_OLD).is_some() {
        for line in lines.by_ref().take_while(|line| *line != "}") {
            // What stands at the left margin is no part of it.
            (line.starts_with(' ') && !words(line).any(|word| FOREIGN.contains(&word))).then_some(())?;
            if words(line).any(|word| word.starts_with("include")) {
                let line = line.trim().strip_prefix("return include(\"phpvfscomposer://\" . ")?;
                included.push(path_of(line.strip_suffix(");")?)?);
            }
        }
    }
    let last = lines.next()?.strip_prefix(INCLUDES)?.strip_suffix(';')?;
    let target = path_of(last)?;
    (lines.next().is_none() && included.iter().all(|other| *other == target)).then_some(target)
}

/// Tells whether a line is a part of the comment in front.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("/**") && !line.contains("*/"))
        || line == "*/"
        || (line.starts_with('*') && !line.contains("*/"))
}

/// Tells whether a line sets nothing but a variable that the program may ask for.
fn sets_a_global(line: &str) -> bool {
    let known = |word: &str| matches!(word, "GLOBALS" | "__DIR__" | "array" | "realpath");
    // What stands in quotes is a text.
    let bare: Vec<&str> = line.split('\'').step_by(2).collect();
    line.starts_with("$GLOBALS['")
        && line.ends_with(';')
        && !line.contains(['"', '`', '\\'])
        && bare.concat().matches(';').count() == 1
        && bare.iter().flat_map(|part| words(part)).all(known)
}

/// Returns the path that an expression of PHP stands for, from the directory of the file: `__DIR__ . '/..'.'/a/b'`.
fn path_of(expression: &str) -> Option<String> {
    // A dot may also stand in a text, so that the texts are cut at their quotes.
    let parts: Vec<&str> = expression.strip_prefix("__DIR__")?.split('\'').collect();
    let (outside, inside): (Vec<_>, Vec<_>) = parts.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let mut outside = outside.into_iter().map(|(_, part)| part.trim()).rev();
    // Nothing but dots between the texts, and nothing behind the last one.
    (outside.next() == Some("") && outside.all(|between| between == ".")).then_some(())?;
    let path: String = inside.into_iter().map(|(_, part)| *part).collect();
    (!path.contains('\\')).then_some(())?;
    Some(path.strip_prefix('/')?.to_owned())
}

fn of_shell(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let code = lines.iter().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut folder, mut last) = (None, None);
    for line in code {
        // Nothing comes behind the line that runs the program.
        if last.is_some() {
            return None;
        }
        if let Some(inside) = line.strip_prefix(ENTERS).and_then(|rest| rest.strip_suffix(" && pwd)")) {
            let plain = inside.trim_matches('\'');
            (folder.is_none() && !plain.contains(['\'', '"', '$', '`', ';', '&', '|'])).then_some(())?;
            folder = Some(plain.to_owned());
        } else if let Some(rest) = line.strip_prefix("exec \"${dir}/") {
            last = Some(name_within(rest)?);
        } else if let Some(rest) = line.strip_prefix("source \"${dir}/") {
            name_within(rest)?;
        } else if !is_of_shell(line) {
            return None;
        }
    }
    Some(format!("{}/{}", folder?, last?))
}

/// How the line begins that looks for the directory of the program.
const ENTERS: &str = "dir=$(cd \"${self%[/\\\\]*}\" > /dev/null; cd ";

/// Returns the name in front of the arguments that are handed on.
fn name_within(rest: &str) -> Option<&str> {
    let name = up_to(rest, &['"']);
    (rest[name.len()..] == *"\" \"$@\"" && !name.contains(['$', '`', '/', '\\'])).then_some(name)
}

/// Tells whether a line is one of those that find out where the text itself stands.
fn is_of_shell(line: &str) -> bool {
    match line.split_once('=').filter(|(name, _)| name.chars().all(char::is_alphabetic)) {
        Some(("self", value)) => matches!(value, "$(realpath \"$selfArg\" 2> /dev/null)" | "\"$selfArg\""),
        Some(("selfArg" | "bashSource", value)) => matches!(value, "\"$BASH_SOURCE\"" | "\"$0\""),
        Some(("dir", value)) => matches!(value, "$(cygpath -m \"$dir\");" | "$(cygpath -m \"$dir\")"),
        Some(_) => false,
        None => {
            let is_condition = line.starts_with("if [ ") && line.ends_with(" ]; then");
            let is_plain = !line.contains(['`', '&', '|']) && line.matches(';').count() <= 1;
            is_condition && is_plain && !line.contains("$(")
                || matches!(line, "fi" | "esac" | ";;" | "return" | "case $(which php) in")
                || line == "$(readlink -n /proc/cygdrive)/*)"
                || line == "export COMPOSER_RUNTIME_BIN_DIR=\"$(cd \"${self%[/\\\\]*}\" > /dev/null; pwd)\""
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHP: &str = "#!/usr/bin/env php\n<?php\n\n/**\n * Proxy PHP file generated by Composer\n *\n * @generated\n */\n\nnamespace Composer;\n\n$GLOBALS['_composer_bin_dir'] = __DIR__;\n$GLOBALS['_composer_autoload_path'] = __DIR__ . '/..'.'/autoload.php';\n\nif (PHP_VERSION_ID < 80000) {\n    if (x()) {\n        return include(\"phpvfscomposer://\" . __DIR__ . '/..'.'/a/b/run.php');\n    }\n}\n\nreturn include __DIR__ . '/..'.'/a/b/run.php';\n";
    const SHELL: &str = "#!/usr/bin/env sh\n\n# Where it is\nselfArg=\"$BASH_SOURCE\"\nif [ -z \"$selfArg\" ]; then\n    selfArg=\"$0\"\nfi\nself=$(realpath \"$selfArg\" 2> /dev/null)\n\ndir=$(cd \"${self%[/\\\\]*}\" > /dev/null; cd '../a/b' && pwd)\n\nexec \"${dir}/run\" \"$@\"\n";

    #[test]
    fn a_program_that_composer_writes_leads_to_one_of_a_package() {
        assert_eq!(target(PHP).as_deref(), Some("../a/b/run.php"));
        assert_eq!(target(SHELL).as_deref(), Some("../a/b/run"));
    }

    #[test]
    fn a_text_that_does_something_else_is_none_of_them() {
        for (text, was, is) in [
            (PHP, "namespace Composer;", "namespace Composer;\nexit(0);"),
            (PHP, "= __DIR__;", "= exit(0);"),
            (PHP, "= __DIR__;", "= __DIR__; exit;"),
            (PHP, " * @generated", " * @generated */ exit(0); /*"),
            (PHP, "    if (x()) {", "    if (x()) { exit(0);"),
            (PHP, "    if (x()) {", "}\nexit(0);\nif (x()) {"),
            (PHP, "\nreturn include", "\nreturn 0;\nreturn include"),
            (
                PHP,
                "return include(\"phpvfscomposer://\" . __DIR__ . '/..'.'/a/b/",
                "return include(\"phpvfscomposer://\" . __DIR__ . '/",
            ),
            (PHP, "#!/usr/bin/env php\n<?php", "#!/usr/bin/env php\nok\n<?php"),
            (SHELL, "# Where it is", "exit 0"),
            (SHELL, "selfArg=\"$0\"", "selfArg=/tmp/x"),
            (SHELL, "exec ", "true || exec "),
            (SHELL, "\nexec", "\nif exit; then\nfi\nexec"),
            (SHELL, "'../a/b'", "'../a/b'; exit 0; cd x"),
        ] {
            assert!(text.contains(was), "{was}");
            let text = text.replacen(was, is, 1);
            assert_eq!(target(&text), None, "{text}");
        }
    }
}
