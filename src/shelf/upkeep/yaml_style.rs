//! How a repository writes YAML, as far as it says so: its formatters are to leave alone what `init` writes.

use super::ci_files::{self, OWN_WORKFLOWS};
use super::found_repository::Repository;
use super::{lined_yaml, tasks};
use crate::base::node::Node;
use crate::judges::pattern::{PathPattern, PathSet};
use crate::tools::TOOLS;

/// How YAML is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct YamlStyle {
    /// Columns of a level.
    indent: usize,
    /// Whether texts stand in single quotes where both kinds will do.
    single_quotes: bool,
    /// Whether yamlfmt takes the blank lines away.
    has_no_blanks: bool,
    /// The columns behind which Prettier folds a text.
    folds_at: Option<usize>,
    /// Which linters of YAML read all files.
    linters: Linters,
    /// The longest line that an `.editorconfig` allows.
    longest: Option<usize>,
}

/// How ESLint reads YAML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EslintOfYaml {
    #[default]
    Never,
    /// With its plugin for YAML.
    Plugin,
    /// With a shared configuration that brings the plugin along, under a name of its own, and with more rules.
    Antfu,
}

/// The linters that read YAML beside code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Linters {
    yamllint: bool,
    eslint: EslintOfYaml,
    /// cspell, which reads every word.
    cspell: bool,
}

impl EslintOfYaml {
    /// Returns the comments by which it leaves a text alone. A rule by another name than that of the configuration would be an error.
    fn notes(self, text: &str) -> String {
        let mut rules: Vec<&str> = Vec::new();
        for (sign, rule) in NOT_OF_ESLINT {
            if text.contains(sign) && !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        match self {
            Self::Never => String::new(),
            Self::Plugin => {
                let lines = rules.iter().map(|rule| format!("# eslint-disable yml/{rule}\n"));
                lines.collect::<Vec<_>>().concat()
            }
            Self::Antfu => {
                if text.contains(['"', '\'']) {
                    rules.retain(|rule| *rule != "plain-scalar");
                    rules.extend(["plain-scalar", "quotes"]);
                }
                let rules: Vec<String> = rules.iter().map(|rule| format!("yaml/{rule}")).collect();
                if rules.is_empty() {
                    String::new()
                } else {
                    format!("# eslint-disable {}\n", rules.join(", "))
                }
            }
        }
    }
}

impl Linters {
    fn of(repository: &Repository) -> Self {
        let package = repository.text("package.json").unwrap_or("");
        let config = [".yamllint", ".yamllint.yml", ".yamllint.yaml"];
        Self {
            yamllint: config.iter().any(|file| repository.has(file))
                || tasks::call(repository, "yamllint")
                || ci_files::names(repository, "yamllint"),
            eslint: match () {
                () if package.contains("\"@antfu/eslint-config\"") => EslintOfYaml::Antfu,
                () if package.contains("\"eslint-plugin-yml\"") => EslintOfYaml::Plugin,
                () => EslintOfYaml::Never,
            },
            cspell: is_spelt(repository),
        }
    }
}

/// Tells whether cspell reads the words of a repository.
pub(super) fn is_spelt(repository: &Repository) -> bool {
    let config = TOOLS.tools.iter().filter(|tool| tool.name == "cspell").flat_map(|tool| &tool.config);
    config.into_iter().any(|file| repository.has(file))
        || repository.text("package.json").is_some_and(|package| package.contains("\"cspell\""))
        || tasks::call(repository, "cspell")
        || ci_files::names(repository, "cspell")
}

/// Words of ours that are in no dictionary of cspell.
const WORDS: [&str; 3] = ["pipefail", "worktrees", "zizmor"];

/// Returns the comment by which cspell takes the words of ours that a text holds; nothing where it holds none.
pub(super) fn known_words(text: &str) -> Option<String> {
    let words: Vec<&str> = WORDS.into_iter().filter(|word| text.contains(word)).collect();
    (!words.is_empty()).then(|| format!("# cspell:ignore {}\n", words.join(" ")))
}

/// The style in which texts are made.
const PLAIN: YamlStyle = YamlStyle {
    indent: 2,
    single_quotes: false,
    has_no_blanks: false,
    folds_at: None,
    linters: NO_LINTERS,
    longest: None,
};
const NO_LINTERS: Linters = Linters { yamllint: false, eslint: EslintOfYaml::Never, cspell: false };

/// The columns of a line where Prettier's settings name no others.
const WIDTH: usize = 80;

/// The widest level that is taken for one.
const WIDEST: usize = 8;

/// How many files are looked at for how a repository writes YAML.
const MOST_READ: usize = 40;

/// The longest line that yamllint takes by default.
const LINE: usize = 80;

/// Says so where a line cannot be shorter: the name of an action with its commit, a command.
const LONG_LINES: &str = "# yamllint disable rule:line-length\n";

/// What keeps yamllint away from a file; it has to be the first line. What yamllint may ask for, and Prettier forbids, is too
/// much to be kept to.
const NOT_LINTED: &str = "# yamllint disable-file\n";

/// What keeps editorconfig-checker away from the lines below.
const NOT_MEASURED: &str = "# editorconfig-checker-disable\n";

/// What ESLint's plugin for YAML would have otherwise: an empty value that GitHub's documents have, and a text that YAML 1.1
/// takes for no text without quotes.
const NOT_OF_ESLINT: [(&str, &str); 3] =
    [("  pull_request:\n", "no-empty-mapping-value"), ("\"no\":", "plain-scalar"), ("'no':", "plain-scalar")];

/// Where Prettier's settings are, in the order in which it looks.
pub(in crate::shelf) const PRETTIER: [&str; 19] = [
    "package.json",
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.yaml",
    ".prettierrc.yml",
    ".prettierrc.json5",
    ".prettierrc.js",
    ".prettierrc.ts",
    ".prettierrc.mjs",
    ".prettierrc.mts",
    ".prettierrc.cjs",
    ".prettierrc.cts",
    "prettier.config.js",
    "prettier.config.ts",
    "prettier.config.mjs",
    "prettier.config.mts",
    "prettier.config.cjs",
    "prettier.config.cts",
    ".prettierrc.toml",
];

/// What Prettier's settings say.
#[derive(Default)]
struct PrettierSettings {
    /// What can be read of them.
    said: Option<Node>,
    /// Whether only a program, or a package that is not here, knows the rest.
    is_computed: bool,
}

impl PrettierSettings {
    /// Reads those that Prettier takes; nothing where it has none.
    fn of(repository: &Repository) -> Option<Self> {
        PRETTIER.iter().find_map(|file| {
            let text = repository.text(file)?;
            match *file {
                "package.json" => Some(Self::of_data(lined_yaml::parse(text)?.get("prettier")?.clone())),
                ".prettierrc.toml" => {
                    // JSON is YAML, so that the settings are looked up in one kind of tree.
                    let table: toml::Table = toml::from_str(text).ok()?;
                    Some(Self::of_data(lined_yaml::parse(&serde_json::to_string(&table).ok()?)?))
                }
                // JSON5 has comments and bare keys, as objects of programs have.
                _ if [".json5", "js", "ts"].iter().any(|end| file.ends_with(end)) => {
                    Some(Self::of_program(text))
                }
                _ => Some(lined_yaml::parse(text).map_or_else(Self::default, Self::of_data)),
            }
        })
    }

    /// Takes settings that are data. A text is the name of a package that has them.
    fn of_data(settings: Node) -> Self {
        let is_computed = lined_yaml::text(Some(&settings)).is_some();
        Self { said: Some(settings), is_computed }
    }

    /// Reads the object of a program without running it, as far as it is written out there.
    fn of_program(text: &str) -> Self {
        let plain = without_comments(text);
        let is_computed = ["...", "require(", "import ", "assign("].iter().any(|sign| plain.contains(sign));
        let object = plain.find('{').and_then(|at| balanced(&plain[at..]));
        let kept = object.map(|object| {
            // In YAML, three dots end the document.
            let lines = object.lines().filter(|line| !line.trim_start().starts_with("..."));
            lines.collect::<Vec<_>>().join("\n")
        });
        let said = kept.and_then(|object| lined_yaml::parse(&object));
        Self { is_computed: is_computed || said.is_none(), said }
    }
}

/// Leaves out comments, which YAML would take for something else.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut is_open = false;
    for line in text.lines() {
        let mut rest = line;
        loop {
            if is_open {
                let Some((_, after)) = rest.split_once("*/") else { break };
                (is_open, rest) = (false, after);
            }
            // Behind a quote it may be part of a glob, `"**/*.yml"`.
            let Some((before, after)) =
                rest.split_once("/*").filter(|(before, _)| !before.contains(['"', '\'']))
            else {
                // Behind a colon or a quote it may be part of an address.
                let code = rest.split_once("//").filter(|(before, _)| !before.contains(['"', '\'', ':']));
                let of_line = rest.rsplit_once(" //").map_or(rest, |(before, _)| before);
                out.push_str(code.map_or(of_line, |(before, _)| before));
                break;
            };
            out.push_str(before);
            (is_open, rest) = (true, after);
        }
        out.push('\n');
    }
    out
}

/// Returns what stands between the first brace and the one that closes it.
fn balanced(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return Some(&text[..=at]);
        }
    }
    None
}

impl YamlStyle {
    /// Returns the style of a file that is to be written.
    pub(super) fn of(repository: &Repository, path: &str) -> Self {
        let mut style = PLAIN;
        let config = editorconfig(repository.text(".editorconfig").unwrap_or(""), path);
        style.indent = config.indent.unwrap_or(style.indent);
        style.longest = config.longest;
        style.linters = Linters::of(repository);
        style.has_no_blanks = loses_blanks(repository);
        let Some(settings) = PrettierSettings::of(repository) else { return style };
        // What the settings say outright is taken afterwards, and counts for more than this guess.
        if settings.is_computed {
            style = style.like_others(repository);
        }
        if let Some(settings) = settings.said {
            style.take(&settings);
            for overriding in lined_yaml::items(settings.get("overrides")) {
                let files = overriding.get("files").map_or_else(String::new, lined_yaml::texts);
                if files.lines().any(|glob| matches(glob, path)) {
                    overriding.get("options").into_iter().for_each(|options| style.take(options));
                }
            }
        }
        style
    }

    /// Takes over how the repository's own files are written, where its settings cannot be read.
    fn like_others(mut self, repository: &Repository) -> Self {
        let is_own = |path: &&str| {
            [".yml", ".yaml"].iter().any(|end| path.ends_with(end))
                // What an earlier `init` has written says nothing about the repository.
                && !path.starts_with(".loops/")
                && !OWN_WORKFLOWS.contains(path)
        };
        let texts: Vec<&str> = repository
            .paths()
            .filter(is_own)
            .take(MOST_READ)
            .filter_map(|path| repository.text(path))
            .collect();
        let mut levels = [0_usize; WIDEST + 1];
        let (mut single, mut double) = (0, 0);
        for line in texts.iter().flat_map(|text| text.lines()) {
            single += usize::from(line.ends_with('\'') && line.contains(" '"));
            double += usize::from(line.ends_with('"') && line.contains(" \""));
        }
        for text in texts {
            let depth = |line: &str| line.len() - line.trim_start().len();
            let is_key = |line: &&str| line.trim_end().ends_with(':') || line.contains(": ");
            // Each file has one vote, so that a long one does not decide alone.
            let first = text.lines().filter(is_key).map(depth).find(|depth| *depth > 0);
            if let Some(count) = first.and_then(|depth| levels.get_mut(depth)) {
                *count += 1;
            }
        }
        let most = (1..=WIDEST).filter(|width| levels[*width] > 0).max_by_key(|width| levels[*width]);
        self.indent = most.unwrap_or(self.indent);
        self.single_quotes = single > double;
        self
    }

    /// Takes over what some settings of Prettier say.
    fn take(&mut self, settings: &Node) {
        if let Some(width) = lined_yaml::text(settings.get("tabWidth")).and_then(indent) {
            self.indent = width;
        }
        if let Some(word) = lined_yaml::text(settings.get("singleQuote")) {
            self.single_quotes = word == "true";
        }
        let width = lined_yaml::text(settings.get("printWidth")).and_then(|word| word.parse().ok());
        if let Some(word) = lined_yaml::text(settings.get("proseWrap")) {
            self.folds_at = (word == "always").then_some(width.or(self.longest).unwrap_or(WIDTH));
        } else if let (Some(known), Some(width)) = (self.folds_at.as_mut(), width) {
            // An override may change the width alone.
            *known = width;
        }
    }

    /// Rewrites a text that was made in the plain style.
    pub(super) fn applied(self, text: &str) -> String {
        let mut out = String::new();
        let mut levels = Levels { indent: self.indent, open: vec![(0, 0)] };
        let mut block = None;
        for line in text.lines().filter(|line| !(self.has_no_blanks && line.is_empty())) {
            let content = line.trim_start();
            let column = line.len() - content.len();
            let is_quoted_in_block = block.is_some_and(|above| column > above);
            if !is_quoted_in_block {
                block = content.ends_with(['|', '>']).then_some(column);
            }
            // Quotes in a block or a comment are part of its text.
            let is_text = is_quoted_in_block || content.starts_with('#');
            let content = if self.single_quotes && !is_text { requoted(content) } else { content.to_owned() };
            let line = " ".repeat(levels.column(column, &content)) + &content;
            let unfolded = if is_text { None } else { self.unfolded(&line) };
            out.push_str(&unfolded.unwrap_or(line));
            out.push('\n');
        }
        let is_long =
            |line: &str| line.chars().count() > LINE && line.trim_start_matches(['#', ' ']).contains(' ');
        let is_too_long = |line: &str| self.longest.is_some_and(|longest| line.chars().count() > longest);
        let mut notes = String::new();
        // Where yamllint is known to read all files, the note below turns it off as a whole.
        if out.lines().any(is_long) && !self.linters.yamllint {
            notes.push_str(LONG_LINES);
        }
        notes.push_str(&self.linters.eslint.notes(&out));
        if let Some(words) = known_words(&out).filter(|_| self.linters.cspell) {
            notes.push_str(&words);
        }
        let lint = if self.linters.yamllint { NOT_LINTED } else { "" };
        let measure = if out.lines().any(is_too_long) { NOT_MEASURED } else { "" };
        format!("{lint}{measure}{}", in_front(&notes, &out))
    }

    /// Writes a text that Prettier would fold as a block, whose lines it keeps; nothing where it leaves the line alone.
    fn unfolded(self, line: &str) -> Option<String> {
        let width = self.folds_at.filter(|width| line.chars().count() > *width)?;
        let content = line.trim_start();
        let item = content.strip_prefix("- ").unwrap_or(content);
        let (key, value) = item.split_once(": ")?;
        let text = match value.chars().next()? {
            '"' => serde_json::from_str(value).ok()?,
            '\'' => value.strip_prefix('\'')?.strip_suffix('\'')?.replace("\'\'", "'"),
            '|' | '>' | '[' | '{' | '&' | '*' | '#' => return None,
            // A comment behind the value would become part of the block.
            _ if value.contains(" #") => return None,
            _ => value.to_owned(),
        };
        let above = line.len() - item.len();
        let is_folded = text.contains(' ') && width > 0;
        is_folded.then(|| format!("{}{key}: |-\n{}{text}", &line[..above], " ".repeat(above + self.indent)))
    }
}

/// Puts notes to linters behind the line that editors look for at the very top.
fn in_front(notes: &str, text: &str) -> String {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# yaml-language-server") => {
            format!("{first}\n{notes}{rest}")
        }
        Some(_) | None => format!("{notes}{text}"),
    }
}

/// Where the levels of a text stand: in the plain style, and as it is written.
struct Levels {
    indent: usize,
    open: Vec<(usize, usize)>,
}

impl Levels {
    /// Returns the column of a line that stands at this one in the plain style.
    fn column(&mut self, plain: usize, content: &str) -> usize {
        while self.open.len() > 1 && self.open.last().is_some_and(|(column, _)| *column > plain) {
            self.open.pop();
        }
        let (above, written) = self.open.last().copied().unwrap_or_default();
        let written = if plain > above { written + self.indent } else { written };
        if plain > above {
            self.open.push((plain, written));
        }
        // What belongs to an item of a list stands behind its dash.
        if content.starts_with("- ") {
            self.open.push((plain + 2, written + 2));
        }
        written
    }
}

/// Writes the one text in double quotes of a line in single quotes, unless something in it would have to be escaped.
fn requoted(line: &str) -> String {
    let Some((before, rest)) = line.split_once('"') else { return line.to_owned() };
    let Some((inner, after)) = rest.split_once('"') else { return line.to_owned() };
    let is_one = !after.contains('"') && !inner.contains(['\'', '\\']);
    if is_one { format!("{before}'{inner}'{after}") } else { line.to_owned() }
}

/// Where yamlfmt's settings are.
const YAMLFMT: [&str; 6] =
    [".yamlfmt", ".yamlfmt.yml", ".yamlfmt.yaml", "yamlfmt.yml", "yamlfmt.yaml", ".pre-commit-config.yaml"];

/// Tells whether yamlfmt formats a repository, and keeps no blank lines, as it does unless it is told to.
fn loses_blanks(repository: &Repository) -> bool {
    let texts = || YAMLFMT.iter().filter_map(|file| Some((*file, repository.text(file)?)));
    // Only a hook says that the files are formatted; other settings than those of hooks are there for nothing else.
    let formats = |(file, text): (&str, &str)| {
        file != ".pre-commit-config.yaml" || text.lines().any(|line| line.trim().ends_with("id: yamlfmt"))
    };
    texts().any(formats) && !texts().any(|(_, text)| text.contains("retain_line_breaks"))
}

fn indent(word: &str) -> Option<usize> {
    word.parse().ok().filter(|width| (1..=WIDEST).contains(width))
}

/// What an `.editorconfig` asks for in a file.
#[derive(Default)]
struct EditorConfig {
    /// The columns of a level.
    indent: Option<usize>,
    /// The columns of the longest line.
    longest: Option<usize>,
}

/// Reads an `.editorconfig`: the last section that is about a file wins.
fn editorconfig(text: &str, path: &str) -> EditorConfig {
    let (mut is_about, mut found) = (false, EditorConfig::default());
    for line in text.lines().map(str::trim) {
        if let Some(glob) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_about = matches(glob, path);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_about) {
            match key.trim().to_ascii_lowercase().as_str() {
                "indent_size" => found.indent = indent(value.trim()).or(found.indent),
                "max_line_length" => found.longest = value.trim().parse().ok(),
                _ => {}
            }
        }
    }
    found
}

/// Tells whether a glob of a formatter is about a path.
fn matches(glob: &str, path: &str) -> bool {
    PathPattern::parse(glob).is_ok_and(|pattern| PathSet::of([&pattern]).matches(path))
}

/// Writes a text so that YAML reads it as it is.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ./_-&=,+@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.');
    // Parsers of YAML 1.1 take `yes` and `on` for booleans.
    let is_word = !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if begins && is_word && text.chars().all(is_plain) && !text.ends_with(' ') {
        return text.to_owned();
    }
    // Every escape of JSON is one of YAML, so that any text can be written so.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "jobs:\n  # why\n  tidy:\n    \"no\": nonzero\n    steps:\n      - uses: a\n        with:\n          b: \"c d\"\n      - run: |\n          echo \"x\"\n  other: 1\n";

    fn of(files: &[(&str, &str)]) -> YamlStyle {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        YamlStyle::of(&Repository::new(files), ".loops/tidy.yaml")
    }

    #[test]
    fn the_plain_style_is_what_texts_are_made_in() {
        assert_eq!(of(&[]), PLAIN);
        assert_eq!(PLAIN.applied(TEXT), TEXT);
    }

    #[test]
    fn a_level_and_quotes_are_those_of_the_repository() {
        let style = of(&[(".prettierrc", "{\"tabWidth\": 4, \"singleQuote\": true}")]);
        assert_eq!(style, YamlStyle { indent: 4, single_quotes: true, ..PLAIN });
        assert_eq!(
            style.applied(TEXT),
            "jobs:\n    # why\n    tidy:\n        'no': nonzero\n        steps:\n            - uses: a\n              with:\n                  b: 'c d'\n            - run: |\n                  echo \"x\"\n    other: 1\n"
        );
    }

    #[test]
    fn the_settings_that_are_about_the_file_count() {
        let config = "root = true\n[*]\nindent_size = 4\n[*.{yml,yaml}]\nindent_size = 2\n";
        assert_eq!(of(&[(".editorconfig", config)]).indent, 2);
        assert_eq!(of(&[(".editorconfig", "[*]\nindent_size = 4\n[*.py]\nindent_size = 3\n")]).indent, 4);
        let package = "{\"prettier\": {\"tabWidth\": 4, \"overrides\": [{\"files\": [\"*.yaml\"], \"options\": {\"tabWidth\": 2}}]}}";
        assert_eq!(of(&[("package.json", package)]).indent, 2);
    }

    #[test]
    fn settings_are_read_in_every_form_that_prettier_takes() {
        let wide = YamlStyle { indent: 4, single_quotes: true, ..PLAIN };
        for (file, text) in [
            (".prettierrc.toml", "tabWidth = 4\nsingleQuote = true\n"),
            (
                ".prettierrc.toml",
                "tabWidth = 2\n[[overrides]]\nfiles = \"*.yaml\"\n[overrides.options]\ntabWidth = 4\nsingleQuote = true\n",
            ),
            (".prettierrc.json5", "// why\n{\n  tabWidth: 4, /* wide */\n  singleQuote: true,\n}\n"),
            (
                ".prettierrc.js",
                "module.exports = {\n  tabWidth: 4,\n  singleQuote: true, // as everywhere\n};\n",
            ),
            (
                "prettier.config.mjs",
                "/** @type {x} */\nconst config = {\n  tabWidth: 2,\n  overrides: [{ files: ['*.yaml'], options: { tabWidth: 4, singleQuote: true } }],\n};\nexport default config;\n",
            ),
            ("package.json", "{\"prettier\": {\"tabWidth\": 4, \"singleQuote\": true}}"),
        ] {
            assert_eq!(of(&[(file, text)]), wide, "{file}: {text}");
        }
    }

    #[test]
    fn where_settings_are_computed_files_are_written_like_those_that_are_there() {
        let workflow = (
            ".github/workflows/ci.yml",
            "on:\n    push:\n        branches: ['main']\nname: 'x'\nother: 'y'\n",
        );
        for (file, text) in [
            ("package.json", "{\"prettier\": \"@me/prettier-config\"}"),
            (".prettierrc.js", "module.exports = require('@me/prettier-config');\n"),
            (
                "prettier.config.js",
                "import base from '@me/x';\nexport default {\n  ...base,\n  semi: false,\n};\n",
            ),
        ] {
            let wide = YamlStyle { indent: 4, single_quotes: true, ..PLAIN };
            assert_eq!(of(&[(file, text), workflow]), wide, "{file}");
        }
        let said = ".prettierrc.js";
        let text = "module.exports = {\n  ...require('x'),\n  tabWidth: 2,\n};\n";
        assert_eq!(of(&[(said, text), workflow]).indent, 2);
    }

    #[test]
    fn blank_lines_are_left_out_where_yamlfmt_keeps_none() {
        let hook = "repos:\n  - hooks:\n      - id: yamlfmt\n";
        for files in [&[(".yamlfmt", "")][..], &[(".pre-commit-config.yaml", hook)]] {
            assert_eq!(of(files).applied("a: 1\n\nb: 2\n"), "a: 1\nb: 2\n", "{files:?}");
        }
        let keeps = (".yamlfmt.yaml", "formatter:\n  retain_line_breaks: true\n");
        for files in
            [&[(".pre-commit-config.yaml", hook), keeps][..], &[(".pre-commit-config.yaml", "")], &[]]
        {
            assert_eq!(of(files).applied("a: 1\n\nb: 2\n"), "a: 1\n\nb: 2\n", "{files:?}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_shorter_is_announced() {
        let long = format!("# yaml-language-server:$schema=x\naction: {} y\n", "x".repeat(90));
        let applied = PLAIN.applied(&long);
        assert!(
            applied
                .starts_with("# yaml-language-server:$schema=x\n# yamllint disable rule:line-length\naction"),
            "{applied}"
        );
        // What has no place to be broken at is no fault to it.
        let word = format!("# {}\n", "x".repeat(90));
        assert_eq!(PLAIN.applied(&word), word);
    }

    #[test]
    fn a_text_that_would_be_folded_is_a_block() {
        let style = of(&[(".prettierrc", "{\"proseWrap\": \"always\", \"printWidth\": 20}")]);
        assert_eq!(
            style.applied(
                "a: one two three four five\nb:\n  - run: \"one: two \\\"three\\\" four\"\nc: short\nd: [one, two, three, four]\ne: x@123456789012345 # y\n"
            ),
            "a: |-\n  one two three four five\nb:\n  - run: |-\n      one: two \"three\" four\nc: short\nd: [one, two, three, four]\ne: x@123456789012345 # y\n"
        );
        assert_eq!(of(&[(".prettierrc", "{\"printWidth\": 20}")]).folds_at, None);
    }

    #[test]
    fn linters_that_ask_for_more_are_kept_away() {
        let text = "# yaml-language-server:$schema=x\non: push\n";
        for file in [".yamllint", ".yamllint.yaml"] {
            assert_eq!(of(&[(file, "")]).applied(text), format!("{NOT_LINTED}{text}"));
        }
        let package = "{\"devDependencies\": {\"eslint-plugin-yml\": \"1\"}}";
        assert_eq!(
            of(&[("package.json", package)]).applied("a:\n  \"no\": nonzero\n"),
            "# eslint-disable yml/plain-scalar\na:\n  \"no\": nonzero\n"
        );
        let package = "{\"devDependencies\": {\"@antfu/eslint-config\": \"1\"}}";
        assert_eq!(
            of(&[("package.json", package)]).applied("on:\n  pull_request:\na: \"1\"\n"),
            "# eslint-disable yaml/no-empty-mapping-value, yaml/plain-scalar, yaml/quotes\non:\n  pull_request:\na: \"1\"\n"
        );
        assert_eq!(of(&[("package.json", package)]).applied("a: 1\n"), "a: 1\n");
        assert_eq!(
            of(&[("cspell.json", "{}")]).applied("shell: [bash, -euo, pipefail, -c]\n"),
            "# cspell:ignore pipefail\nshell: [bash, -euo, pipefail, -c]\n"
        );
        let narrow = of(&[(".editorconfig", "[*]\nmax_line_length = 20\n[*.md]\nmax_line_length = off\n")]);
        assert_eq!(
            narrow.applied(text),
            "# editorconfig-checker-disable\n# yaml-language-server:$schema=x\non: push\n"
        );
        assert_eq!(narrow.applied("on: push\n"), "on: push\n");
    }
}
