//! Modules that configuration names to be loaded: plugins of pytest, mypy and pylint, files that runners of JavaScript and
//! Ruby read first.

use std::sync::LazyLock;

use regex::Regex;

use crate::base::text::{after_last, head};

/// The longest configuration that is read, and the most modules of one.
const LONGEST: usize = 256 * 1024;
const MOST: usize = 50;

/// Files of a directory that may name modules.
pub(super) const CONFIGURATIONS: [&str; 34] = [
    ".eslintrc.cjs",
    ".eslintrc.js",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".rubocop.yml",
    "eslint.config.js",
    "eslint.config.mjs",
    "ruff.toml",
    "tsconfig.json",
    ".mocharc.cjs",
    ".mocharc.js",
    ".mocharc.json",
    ".mocharc.yaml",
    ".mocharc.yml",
    ".pylintrc",
    ".pytest.ini",
    ".rspec",
    "conftest.py",
    "jest.config.cjs",
    "jest.config.js",
    "jest.config.json",
    "jest.config.mjs",
    "jest.config.ts",
    "mypy.ini",
    "package.json",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "tests/conftest.py",
    "test/conftest.py",
    "tox.ini",
    "vitest.config.js",
    "vitest.config.mjs",
    "vitest.config.ts",
];

/// Plugins of tools of Python.
static OF_PYTHON: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r#"(?m)(?:^|[\s"'=,\[])-p[\s"',]*([A-Za-z_][\w.]*)"#,
        r"(?m)^\s*pytest_plugins\s*(?::[^=\n]*)?=\s*(\[[^\]]*\]|\([^)]*\)|[^\n]*)",
        r"(?m)^\s*(?:load-plugins|plugins)\s*=\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]+)*)",
    ]
    .map(|pattern| Regex::new(pattern).expect("it is a constant"))
});

/// What runners of JavaScript load. The manifest of a package says in the same words what the package is made of, so that of it
/// the words of jest alone count.
static OF_JEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"["']?\b(?:setupFiles|setupFilesAfterEnv|globalSetup|globalTeardown|testEnvironment|testRunner|resolver)["']?\s*:\s*(\[[^\]]*\]|"[^"]*"|'[^']*')"#,
    )
    .expect("it is a constant")
});
static OF_MOCHA: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["']?\b(?:require|import|loader|file|reporter)["']?\s*:[ \t]*(\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.][\w./-]*|(?:\n\s*-\s+[^\n]+)+)"#)
        .expect("it is a constant")
});
static OF_RUBY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)(?:--require|-r)[ =]?([\w./-]+)").expect("it is a constant"));

/// Another configuration that one takes over, and what a configuration that is a program imports from beside it.
static OF_OTHERS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        r#"(?m)["']?\b(?:extends?|inherit_from|preset)["']?[ \t]*[:=][ \t]*(\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.][\w./-]*|(?:\n\s*-\s+[^\n]+)+)"#,
        r#"\b(?:from|require\(|import\(?)\s*["'](\.{1,2}/[^"'\n]*)["']"#,
    ]
    .map(|pattern| Regex::new(pattern).expect("it is a constant"))
});

/// Variables of the environment that hold options, as a text sets them.
static OF_VARIABLES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"\b(PYTEST_ADDOPTS|PYTEST_PLUGINS|NODE_OPTIONS|RUBYOPT)=(?:"([^"\n]*)"|'([^'\n]*)'|([^\s;&|]*))"#,
    )
    .expect("it is a constant")
});

/// Words within what a key says.
static WORDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z_.<@][\w./<>@-]*").expect("it is a constant"));

/// Returns the words of a configuration by which it may name modules and files.
pub(super) fn named(path: &str, text: &str) -> Vec<String> {
    let text = head(text, LONGEST);
    let name = after_last(path, &['/']);
    let mut found = Vec::new();
    let mut take = |pattern: &Regex| {
        let said = pattern.captures_iter(text).filter_map(|said| said.get(1));
        let words = said.flat_map(|said| WORDS.find_iter(said.as_str()));
        found.extend(words.take(MOST).map(|word| word.as_str().replace("<rootDir>/", "")));
    };
    if !matches!(name, "package.json" | "conftest.py") {
        OF_OTHERS.iter().for_each(&mut take);
    }
    if name.starts_with("jest") || name.starts_with("vitest") || name == "package.json" {
        take(&OF_JEST);
    } else if name.starts_with(".mocharc") {
        take(&OF_MOCHA);
    } else if name == ".rspec" {
        take(&OF_RUBY);
    } else {
        OF_PYTHON.iter().for_each(&mut take);
    }
    found
}

/// Returns the options that a text sets in variables of the environment.
pub(super) fn options_in_variables(text: &str) -> Vec<String> {
    let text = head(text, LONGEST);
    let value = |said: &regex::Captures<'_>| {
        let value = said.get(2).or_else(|| said.get(3)).or_else(|| said.get(4))?.as_str();
        Some(as_options(&said[1], value))
    };
    OF_VARIABLES.captures_iter(text).filter_map(|said| value(&said)).take(MOST).collect()
}

/// Returns the options that a variable of the environment stands for.
pub(super) fn as_options(name: &str, value: &str) -> String {
    // A list of plugins is what each of them is as an option.
    if name == "PYTEST_PLUGINS" { format!("-p {value}") } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_configuration_names_is_known() {
        for (path, text, expected) in [
            ("pytest.ini", "[pytest]\naddopts = -q -p ciplug\n", "ciplug"),
            ("pyproject.toml", "addopts = ['-p', 'ci.plug', '-q']\n", "ci.plug"),
            ("a/conftest.py", "pytest_plugins = [\n    'one',\n    \"two.three\",\n]\n", "one two.three"),
            ("conftest.py", "pytest_plugins = 'one'\n", "one"),
            ("mypy.ini", "[mypy]\nplugins =\n    pydantic.mypy,\n    ./own.py\n", "pydantic.mypy ./own.py"),
            ("jest.config.js", "setupFiles: ['<rootDir>/ci/setup.js'],\nroots: ['src'],\n", "ci/setup.js"),
            ("package.json", "{\"exports\": {\"require\": \"./index.cjs\"}}", ""),
            (".mocharc.yml", "require:\n  - ./hooks.js\nspec: x\n", "./hooks.js"),
            (".rspec", "--require ./ci/helper\n", "./ci/helper"),
            ("setup.cfg", "[metadata]\nname = a\n", ""),
            (
                "tsconfig.json",
                "{\"extends\": \"./config/base.json\", \"include\": [\"src\"]}",
                "./config/base.json",
            ),
            ("eslint.config.mjs", "import base from './config/base.mjs';\n", "./config/base.mjs"),
            ("ruff.toml", "extend = 'ci/base.toml'\n", "ci/base.toml"),
        ] {
            assert_eq!(named(path, text).join(" "), expected, "{path}: {text}");
        }
        let text = "PYTEST_ADDOPTS='-p one' PYTEST_PLUGINS=two,three pytest";
        assert_eq!(options_in_variables(text), ["-p one", "-p two,three"]);
    }
}
