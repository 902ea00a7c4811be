//! How a repository writes YAML, as far as it says so: its formatters are to leave alone what `init` writes.

use super::ci::OWN_WORKFLOWS;
use super::found_repository::Repository;
use super::lined_yaml;
use crate::base::node::Node;
use crate::judges::pattern::{PathPattern, PathSet};

/// How YAML is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct YamlStyle {
    /// Columns of a level.
    indent: usize,
    /// Whether texts stand in single quotes where both kinds will do.
    single_quotes: bool,
}

/// The style in which texts are made.
const PLAIN: YamlStyle = YamlStyle { indent: 2, single_quotes: false };

/// The widest level that is taken for one.
const WIDEST: usize = 8;

/// How many files are looked at for how a repository writes YAML.
const MOST_READ: usize = 40;

/// The longest line that yamllint takes by default.
const LINE: usize = 80;

/// Says so where a line cannot be shorter: the name of an action with its commit, a command.
const LONG_LINES: &str = "# yamllint disable rule:line-length\n";

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
                    let table: toml::Table = toml::from_str(text).ok()?;
                    Some(Self::of_data(lined_yaml::parse(&serde_json::to_string(&table).ok()?)?))
                }
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
            let Some((before, after)) =
                rest.split_once("/*").filter(|(before, _)| !before.contains(['"', '\'']))
            else {
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
        if let Some(indent) = editorconfig(repository.text(".editorconfig").unwrap_or(""), path) {
            style.indent = indent;
        }
        let Some(settings) = PrettierSettings::of(repository) else { return style };
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
    }

    /// Rewrites a text that was made in the plain style.
    pub(super) fn applied(self, text: &str) -> String {
        let mut out = String::new();
        let mut levels = Levels { indent: self.indent, open: vec![(0, 0)] };
        let mut block = None;
        for line in text.lines() {
            let content = line.trim_start();
            let column = line.len() - content.len();
            let is_quoted_in_block = block.is_some_and(|above| column > above);
            if !is_quoted_in_block {
                block = content.ends_with(['|', '>']).then_some(column);
            }
            let is_text = is_quoted_in_block || content.starts_with('#');
            let content = if self.single_quotes && !is_text { requoted(content) } else { content.to_owned() };
            out.push_str(&" ".repeat(levels.column(column, &content)));
            out.push_str(&content);
            out.push('\n');
        }
        let is_long =
            |line: &str| line.chars().count() > LINE && line.trim_start_matches(['#', ' ']).contains(' ');
        if out.lines().any(is_long) { in_front(&out) } else { out }
    }
}

/// Allows long lines, behind the line that editors look for at the very top.
fn in_front(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# yaml-language-server") => {
            format!("{first}\n{LONG_LINES}{rest}")
        }
        Some(_) | None => format!("{LONG_LINES}{text}"),
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

fn indent(word: &str) -> Option<usize> {
    word.parse().ok().filter(|width| (1..=WIDEST).contains(width))
}

/// Returns the columns of a level that an `.editorconfig` asks for in a file: the last section that is about it wins.
fn editorconfig(text: &str, path: &str) -> Option<usize> {
    let (mut is_about, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if let Some(glob) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_about = matches(glob, path);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_about)
            && key.trim().eq_ignore_ascii_case("indent_size")
        {
            found = indent(value.trim()).or(found);
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
    let is_word = !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if begins && is_word && text.chars().all(is_plain) && !text.ends_with(' ') {
        return text.to_owned();
    }
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
        assert_eq!(style, YamlStyle { indent: 4, single_quotes: true });
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
        let wide = YamlStyle { indent: 4, single_quotes: true };
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
            assert_eq!(of(&[(file, text), workflow]), YamlStyle { indent: 4, single_quotes: true }, "{file}");
        }
        let said = ".prettierrc.js";
        let text = "module.exports = {\n  ...require('x'),\n  tabWidth: 2,\n};\n";
        assert_eq!(of(&[(said, text), workflow]).indent, 2);
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
}
