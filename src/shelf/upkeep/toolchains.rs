//! What the toolchain of a language brings along: the tests that lie in a repository, and the format of its files.

use std::collections::BTreeSet;

use super::ci::{self, CiContents};
use super::ci_files;
use super::found_repository::{Evidence, Finding, Repository, declared, line_of};
use super::tasks::python;
use super::unused::{Reason, UnusedCommand};
use crate::base::text::{after_last, up_to};
use crate::judges::tree::extension;
use crate::tools::Purpose;

/// Go's check of the format. Without `gofmt`, or where it fails, it is not green.
const GOFMT: &str = "files=$(gofmt -l .) && { [ -z \"$files\" ] || { printf '%s\\n' \"$files\"; exit 1; }; }";

/// Returns the tests of toolchains whose tests are there.
pub(super) fn tests(repository: &Repository, contents: &CiContents) -> Vec<Finding> {
    let found = [
        rust(repository),
        go(repository),
        python_tests(repository),
        maven(repository),
        gradle(repository),
        dotnet(repository),
        cmake(repository, contents),
        deno(repository),
        elixir(repository),
        ruby(repository),
        swift(repository),
        haskell(repository, contents),
        dart(repository),
        zig(repository),
        ocaml(repository),
        nix(repository),
    ];
    let mut found: Vec<Finding> = found.into_iter().flatten().collect();
    // Beside another toolchain, files of Bazel are often only for those who build the project into theirs.
    let is_second = !found.is_empty() && !calls_bazel(repository);
    found.extend(bazel(repository).filter(|_| !is_second));
    found
}

/// Returns the checks of the format that come with a toolchain. Whether a repository keeps to it, only a try tells.
pub(super) fn formats(repository: &Repository) -> Vec<Finding> {
    let terraform = repository.paths().find(|path| is_below(path, 2) && extension(path) == Some("tf"));
    let dotnet = solution(repository);
    let known = [
        (repository.first(&["Cargo.toml"]), "cargo fmt --all --check"),
        (repository.first(&["go.mod"]), GOFMT),
        (dotnet, "dotnet format --verify-no-changes"),
        (terraform, "terraform fmt -check -recursive"),
        (repository.first(&["deno.json", "deno.jsonc"]), "deno fmt --check"),
        (repository.first(&[".formatter.exs"]), "mix format --check-formatted"),
        (repository.first(&["pubspec.yaml"]), "dart format --output=none --set-exit-if-changed ."),
        (repository.first(&["build.zig"]), "zig fmt --check ."),
    ];
    known
        .into_iter()
        .filter_map(|(file, command)| Some(finding(Purpose::Format, command, file?, 1)))
        .collect()
}

/// Returns the build of documents, which is the test of a repository of documents.
pub(super) fn documents(repository: &Repository) -> Vec<Finding> {
    let run = python(repository);
    // Both build out of the tree, where a site would look like a change, and fail on warnings, such as a broken link.
    let mkdocs = repository.first(&["mkdocs.yml", "mkdocs.yaml"]).map(|file| {
        let command = format!("{run}mkdocs build --strict --site-dir \"$(mktemp -d)\"");
        finding(Purpose::Build, &command, file, 1)
    });
    let sphinx = ["docs/conf.py", "doc/conf.py", "docs/source/conf.py", "doc/source/conf.py"];
    let sphinx = repository.first(&sphinx).map(|file| {
        let directory = file.trim_end_matches("/conf.py");
        let command = format!("{run}sphinx-build -W -b html {directory} \"$(mktemp -d)\"");
        finding(Purpose::Build, &command, file, 1)
    });
    mkdocs.into_iter().chain(sphinx).collect()
}

fn finding(purpose: Purpose, command: &str, file: &str, line: usize) -> Finding {
    Finding {
        purpose: Some(purpose),
        is_fix: false,
        command: command.to_owned(),
        directory: String::new(),
        evidence: Evidence { file: file.to_owned(), line, task: None },
    }
}

fn is_below(path: &str, depth: usize) -> bool {
    path.matches('/').count() < depth
}

fn rust(repository: &Repository) -> Option<Finding> {
    let has_tests = |path: &str| {
        extension(path) == Some("rs")
            // Runtimes have attributes of their own, such as `#[tokio::test]`.
            && repository.text(path).is_some_and(|text| text.contains("#[test]") || text.contains("::test]"))
    };
    let file = repository.first(&["Cargo.toml"])?;
    let is_workspace = repository.text(file).is_some_and(|text| text.contains("[workspace"));
    // Where the top is a package itself, cargo would test that one alone.
    let command = if is_workspace { "cargo test --workspace" } else { "cargo test" };
    repository.paths().any(has_tests).then(|| finding(Purpose::Test, command, file, 1))
}

fn go(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["go.mod"])?;
    let has_tests = repository.paths().any(|path| path.ends_with("_test.go"));
    has_tests.then(|| finding(Purpose::Test, "go test ./...", file, 1))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_python_test(path: &str) -> bool {
    let name = name(path);
    extension(name) == Some("py")
        && (name.starts_with("test_") || name.ends_with("_test.py") || name == "tests.py")
}

/// Tells whether a file belongs to a package of Bazel, which runs the tests of that.
fn is_of_bazel(repository: &Repository, path: &str) -> bool {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let at = |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
    ["BUILD", "BUILD.bazel"].iter().any(|name| repository.has(&at(name)))
}

/// Returns the place that says that pytest is used: it is configured, or a declared dependency.
fn pytest_evidence(repository: &Repository) -> Option<(String, usize)> {
    let configured = [
        ("pytest.ini", "["),
        (".pytest.ini", "["),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "[pytest]"),
    ];
    let of_section = configured.into_iter().find_map(|(file, sign)| {
        let has = |line: &str| line.trim_start().starts_with(sign);
        let text = repository.text(file)?;
        text.lines().any(has).then(|| (file.to_owned(), line_of(text, has)))
    });
    of_section.or_else(|| declared(repository, "pytest"))
}

fn python_tests(repository: &Repository) -> Option<Finding> {
    // The modules of a collection of Ansible are found only where it is installed as one.
    if repository.has("galaxy.yml") {
        return None;
    }
    let is_own = |path: &&str| is_python_test(path) && !is_of_bazel(repository, path);
    let test = repository.paths().find(is_own)?;
    let run = python(repository);
    if let Some((file, line)) = pytest_evidence(repository) {
        // Called as a module, it has the top of the repository on the path of imports, which the bare program has not.
        return Some(finding(Purpose::Test, &format!("{run}python -m pytest"), &file, line));
    }
    let uses_unittest = |path: &&str| {
        is_own(path)
            && repository
                .text(path)
                .is_some_and(|text| text.contains("import unittest") || text.contains("from unittest"))
    };
    let test = repository.paths().find(uses_unittest).unwrap_or(test);
    let is_unittest = uses_unittest(&test);
    let directory = test.split_once('/').map(|(directory, _)| directory);
    let command = match directory {
        // With `-t .` the tests can import what lies beside their folder, which unittest then imports by its name.
        Some(directory) if directory.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            format!("{run}python -m unittest discover -s {directory} -t .")
        }
        Some(_) | None => format!("{run}python -m unittest discover"),
    };
    is_unittest.then(|| finding(Purpose::Test, &command, test, 1))
}

fn has_java_tests(repository: &Repository) -> bool {
    repository.paths().any(|path| {
        let is_source = [".java", ".kt", ".groovy", ".scala"].iter().any(|end| path.ends_with(end));
        // Kotlin for many platforms has its tests in `commonTest`, `jvmTest` and others.
        let is_of_tests = |part: &str| part == "test" || part.ends_with("Test");
        is_source && path.rsplit('/').skip(1).any(is_of_tests)
    })
}

fn maven(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["pom.xml"])?;
    let program = if repository.has("mvnw") { "./mvnw" } else { "mvn" };
    // What is packed with other names, the other modules need packed.
    let is_pom = |path: &&str| name(path) == "pom.xml";
    let mut texts = repository.paths().filter(is_pom).filter_map(|path| repository.text(path));
    let is_packed = texts.any(|text| text.contains("<relocation>"));
    let goal = if is_packed { "verify" } else { "test" };
    has_java_tests(repository)
        .then(|| finding(Purpose::Test, &format!("{program} --batch-mode {goal}"), file, 1))
}

fn gradle(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["build.gradle.kts", "build.gradle"])?;
    let program = if repository.has("gradlew") { "./gradlew" } else { "gradle" };
    // Where Kotlin is built for many platforms, `test` is not a task of those packages.
    let is_multiplatform = repository.paths().any(|path| {
        let is_build = matches!(name(path), "build.gradle.kts" | "build.gradle");
        path.contains("src/commonMain/")
            || (is_build && repository.text(path).is_some_and(|text| text.contains("multiplatform")))
    });
    let task = if is_multiplatform { multiplatform_tests(repository) } else { "test".to_owned() };
    has_java_tests(repository).then(|| finding(Purpose::Test, &format!("{program} {task}"), file, 1))
}

/// Returns the task that makes the tests of Kotlin for many platforms: those on the machine of Java, after the name that it has there,
/// or all where nothing names that.
fn multiplatform_tests(repository: &Repository) -> String {
    let is_build = |path: &&str| {
        let of_plugins = path.starts_with("buildSrc/") || path.starts_with("build-logic/");
        path.ends_with(".gradle.kts")
            || path.ends_with(".gradle")
            || (of_plugins && extension(path) == Some("kt"))
    };
    let texts = repository.paths().filter(is_build).filter_map(|path| repository.text(path));
    let mut names: Vec<&str> = texts.flat_map(str::lines).filter_map(target_of_jvm).collect();
    // The usual name first: what one package calls its own way, the others do not have.
    names.sort_by_key(|name| *name != "jvm");
    let task = names.first().map_or_else(|| "allTests".to_owned(), |name| format!("{name}Test"));
    // Beside them, packages for Java alone have the tests of that.
    let is_of_jvm = |text: &str| {
        ["kotlin(\"jvm\")", "kotlin-jvm", "org.jetbrains.kotlin.jvm"].iter().any(|sign| text.contains(sign))
    };
    let texts = || repository.paths().filter(is_build).filter_map(|path| repository.text(path));
    let has_plain = texts().any(is_of_jvm) && !texts().any(|text| text.contains("com.android"));
    if has_plain && task != "allTests" { task + " test" } else { task }
}

/// Returns the name of the target that a line of a build file declares: `jvm()`, `jvm {` or `jvm("desktop") {`.
fn target_of_jvm(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("jvm")?.trim_start();
    let inner = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.0.trim()));
    match inner {
        Some("") => Some("jvm"),
        Some(quoted) => {
            let name = quoted.trim_matches(['"', '\'']);
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            (name.len() + 2 == quoted.len() && is_name).then_some(name)
        }
        None => rest.starts_with('{').then_some("jvm"),
    }
}

fn elixir(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["mix.exs"])?;
    let has_tests = repository.paths().any(|path| path.ends_with("_test.exs"));
    has_tests.then(|| finding(Purpose::Test, "mix test", file, 1))
}

/// RSpec, where its file of options says that it is used.
fn ruby(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&[".rspec"]).filter(|_| repository.has("Gemfile"))?;
    let has_tests = repository.paths().any(|path| path.starts_with("spec/") && path.ends_with("_spec.rb"));
    has_tests.then(|| finding(Purpose::Test, "bundle exec rspec", file, 1))
}

fn swift(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["Package.swift"])?;
    let has_tests =
        repository.paths().any(|path| path.starts_with("Tests/") && extension(path) == Some("swift"));
    has_tests.then(|| finding(Purpose::Test, "swift test", file, 1))
}

fn haskell(repository: &Repository, contents: &CiContents) -> Option<Finding> {
    let is_suite = |line: &str| line.trim_start().starts_with("test-suite");
    let has_tests = |path: &str| {
        extension(path) == Some("cabal")
            && repository.text(path).is_some_and(|text| text.lines().any(is_suite))
    };
    let suite = repository.paths().find(|path| is_below(path, 2) && has_tests(path))?;
    // Of two tools that build the same, the CI says which one is looked after.
    let calls = |program: &str| {
        contents.commands.iter().any(|line| ci::words(&line.command).first() == Some(&program))
    };
    let calls_only = |one: &str, other: &str| calls(one) && !calls(other);
    let (command, file) = match repository.first(&["stack.yaml", "cabal.project"]) {
        Some("stack.yaml") if !repository.has("cabal.project") && !calls_only("cabal", "stack") => {
            ("stack test", "stack.yaml")
        }
        Some("stack.yaml") if !repository.has("cabal.project") => ("cabal test", suite),
        // At the top of a project there may be no package, and cabal then asks for a target.
        Some(_) => ("cabal test all", "cabal.project"),
        None => ("cabal test", suite),
    };
    Some(finding(Purpose::Test, command, file, 1))
}

fn dart(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["pubspec.yaml"])?;
    let has_tests = repository.paths().any(|path| path.starts_with("test/") && path.ends_with("_test.dart"));
    let text = repository.text(file)?;
    let is_of_flutter = text.lines().any(|line| line.trim() == "sdk: flutter");
    let command = if is_of_flutter { "flutter test" } else { "dart test" };
    has_tests.then(|| finding(Purpose::Test, command, file, 1))
}

fn zig(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["build.zig"])?;
    let text = repository.text(file)?;
    let is_step = |line: &str| line.contains(".step(\"test\"");
    text.lines().any(is_step).then(|| finding(Purpose::Test, "zig build test", file, line_of(text, is_step)))
}

fn ocaml(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["dune-project"])?;
    let is_test = |line: &str| {
        let line = line.trim_start();
        ["(test", "(tests", "(cram", "(rule (alias runtest"].iter().any(|sign| line.starts_with(sign))
            || line.contains("(alias runtest)")
            || line.contains("(inline_tests")
    };
    let has_tests = repository.paths().any(|path| {
        name(path) == "dune" && repository.text(path).is_some_and(|text| text.lines().any(is_test))
    });
    has_tests.then(|| finding(Purpose::Test, "dune runtest", file, 1))
}

fn bazel(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"])?;
    let is_test = |line: &str| {
        // Bazel demands this ending of every rule that tests.
        line.split_once('(')
            .is_some_and(|(rule, _)| rule.ends_with("_test") && !rule.contains([' ', '"', '#']))
    };
    let has_tests = repository.paths().any(|path| {
        matches!(name(path), "BUILD" | "BUILD.bazel")
            && repository.text(path).is_some_and(|text| text.lines().any(is_test))
    });
    has_tests.then(|| finding(Purpose::Test, "bazel test //...", file, 1))
}

/// Tells whether a CI calls the tests of Bazel, also that of Bazel's own projects.
fn calls_bazel(repository: &Repository) -> bool {
    let is_of_bazel = |path: &str| path.starts_with(".bazelci/");
    let calls = ["bazel test", "bazelisk test"];
    // Other systems than those that are read here call scripts.
    let is_script = |path: &str| {
        extension(path) == Some("sh")
            && repository.text(path).is_some_and(|text| calls.iter().any(|call| text.contains(call)))
    };
    repository.paths().any(|path| is_of_bazel(path) || is_script(path)) || ci_files::say(repository, &calls)
}

/// The checks of a flake: it says itself that it has some. Beside another toolchain they are often only its packages.
fn nix(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["flake.nix"])?;
    let text = repository.text(file)?;
    let is_check = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("checks").is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
    };
    let is_only = repository.paths().all(|path| !OF_OTHERS.contains(&path));
    (is_only && text.lines().any(is_check))
        .then(|| finding(Purpose::Test, "nix flake check", file, line_of(text, is_check)))
}

/// What says at the top that a repository is of another toolchain than Nix.
const OF_OTHERS: [&str; 9] = [
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "pom.xml",
    "build.gradle",
    "mix.exs",
    "CMakeLists.txt",
    "Gemfile",
];

/// Returns the solution or the project at the top that .NET takes by itself.
fn solution(repository: &Repository) -> Option<&str> {
    let ends = |end: &str| repository.paths().find(|path| is_below(path, 1) && path.ends_with(end));
    ends(".sln").or_else(|| ends(".slnx")).or_else(|| ends(".csproj"))
}

fn dotnet(repository: &Repository) -> Option<Finding> {
    let file = solution(repository)?;
    let has_tests = repository.paths().any(|path| {
        let signs = ["Microsoft.NET.Test.Sdk", "xunit", "NUnit", "MSTest", "TUnit"];
        (path.ends_with(".csproj") || path.ends_with(".fsproj"))
            && repository.text(path).is_some_and(|text| signs.iter().any(|sign| text.contains(sign)))
    });
    has_tests.then(|| finding(Purpose::Test, "dotnet test", file, 1))
}

/// The tests of `CMake`, and whether they are switched on in the way that the workflows do it.
struct TestsOfCmake {
    finding: Finding,
    are_on: bool,
}

/// Returns the tests of `CMake`, with the options that are off by default and that its tests are behind.
fn tests_of_cmake(repository: &Repository, contents: &CiContents) -> Option<TestsOfCmake> {
    let file = repository.first(&["CMakeLists.txt"])?;
    let text = repository.text(file)?;
    // A project of Swift has such a file for who builds it with others, and tests itself in its own way.
    if repository.has("Package.swift") || !text.lines().any(adds_tests) {
        return None;
    }
    let of_folders = options_of_folders(repository, text);
    let mut needed = options_of_tests(text);
    needed.extend(of_folders.iter().flat_map(|folder| options_of_tests(folder)));
    let known = ci::definitions_of_ctest(contents);
    let of_ci = |name: &str| {
        let is_of = |definition: &&String| {
            up_to(definition, &[':', '=']) == name && !is_off(after_last(definition, &['=']))
        };
        known.iter().find(is_of)
    };
    let is_on = |way: &&Vec<&str>| way.iter().all(|name| of_ci(name).is_some());
    let are_on = needed.iter().all(|ways| ways.iter().any(|way| is_on(&way)));
    let chosen = needed.iter().filter_map(|ways| ways.iter().find(is_on).or(ways.first())).flatten();
    let put_in = |name: &&str| of_ci(name).map_or_else(|| format!("{name}=ON"), Clone::clone);
    let chosen: Vec<&str> = chosen.copied().collect();
    let is_chosen = |definition: &&String| chosen.iter().any(|name| *name == name_of_option(definition));
    let others = known.iter().filter(|definition| !is_chosen(definition) && says_how(&known, definition));
    let options: BTreeSet<String> = chosen.iter().map(put_in).chain(others.cloned()).collect();
    let options = options.iter().fold(String::new(), |all, option| all + " -D" + option);
    // Where no test was made, ctest says so and succeeds.
    let command = format!(
        "build=$(mktemp -d) && cmake -S . -B \"$build\"{options} && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure --no-tests=error"
    );
    let finding = finding(Purpose::Test, &command, file, line_of(text, adds_tests));
    Some(TestsOfCmake { finding, are_on })
}

fn name_of_option(definition: &str) -> &str {
    up_to(definition, &[':', '='])
}

/// Tells whether a definition of the job that makes the tests says how they are built, and not where, or with which programs: those that
/// another machine may lack.
fn says_how(all: &[String], definition: &str) -> bool {
    let name = name_of_option(definition);
    let is_usual = matches!(
        name,
        "CMAKE_BUILD_TYPE" | "CMAKE_CXX_STANDARD" | "CMAKE_C_STANDARD" | "CMAKE_CXX_EXTENSIONS"
    );
    let is_of_machine =
        ["CMAKE_", "COMPILER", "TOOLCHAIN", "PREFIX", "PYTHON_"].iter().any(|sign| name.contains(sign));
    // A job may build in several ways.
    let is_one = all.iter().all(|other| name_of_option(other) != name || other == definition);
    is_one && (is_usual || !is_of_machine) && !definition.contains('/')
}

/// Returns the texts of the folders below in which tests begin, where the top only allows them and all of these have them behind options
/// that are off: each with the text of the top behind it, which may declare those.
fn options_of_folders(repository: &Repository, top: &str) -> Vec<String> {
    let makes = |line: &str| {
        adds_tests(line) && !line.trim_start().to_ascii_lowercase().starts_with("enable_testing")
    };
    if top.lines().any(makes) {
        return Vec::new();
    }
    let named = top.lines().filter_map(|line| {
        let (command, inner) = line.split_once('(')?;
        let inner = inner.split([')', ' ']).find(|word| !word.is_empty())?;
        command.trim().eq_ignore_ascii_case("add_subdirectory").then_some(inner)
    });
    let texts = named.filter_map(|folder| repository.text(&format!("{folder}/CMakeLists.txt")));
    let with_tests: Vec<String> =
        texts.filter(|text| text.lines().any(adds_tests)).map(|text| format!("{text}\n{top}")).collect();
    // What is on in one folder is enough for tests to be there.
    let is_any_on = with_tests.iter().any(|text| options_of_tests(text).is_empty());
    if is_any_on { Vec::new() } else { with_tests }
}

fn cmake(repository: &Repository, contents: &CiContents) -> Option<Finding> {
    tests_of_cmake(repository, contents).filter(|tests| tests.are_on).map(|tests| tests.finding)
}

/// Returns the tests of a toolchain that a repository has switched off, and no workflow switches on.
pub(super) fn offered(repository: &Repository, contents: &CiContents) -> Option<UnusedCommand> {
    let tests = tests_of_cmake(repository, contents).filter(|tests| !tests.are_on)?;
    Some(ci::unused_finding(tests.finding, Reason::TestsAreOff))
}

/// Tells whether a line of `CMake` is where tests begin.
fn adds_tests(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    ["enable_testing", "add_test", "include(ctest", "include (ctest", "gtest_discover_tests"]
        .iter()
        .any(|sign| line.starts_with(sign))
}

/// Returns what has to be switched on for the first tests of a file of `CMake`: of each condition around them the ways to meet it, each
/// the options that are off by default.
fn options_of_tests(text: &str) -> Vec<Vec<Vec<&str>>> {
    let mut conditions: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if adds_tests(line) {
            break;
        }
        let (command, behind) = line.split_once('(').unwrap_or((line, ""));
        match command.trim_end().to_ascii_lowercase().as_str() {
            "if" => conditions.push(behind),
            "endif" => drop(conditions.pop()),
            // What holds in the other case, its condition does not say.
            "else" => conditions.last_mut().into_iter().for_each(|condition| *condition = ""),
            "elseif" => conditions.last_mut().into_iter().for_each(|condition| *condition = behind),
            _ => {}
        }
    }
    let ways = conditions.into_iter().map(|condition| {
        condition.split(" OR ").map(|way| options_that_are_off(text, way)).collect::<Vec<_>>()
    });
    // What needs nothing that is off may hold as it is.
    ways.filter(|ways| !ways.iter().any(Vec::is_empty)).collect()
}

/// Returns the options in a condition that are off by default. A negation holds where its option is off.
fn options_that_are_off<'c>(text: &str, condition: &'c str) -> Vec<&'c str> {
    let names = condition.split([' ', ')']).filter(|_| !condition.contains("NOT "));
    names.filter(|name| text.lines().any(|line| is_option_off(line, name))).collect()
}

/// Tells whether a line of `CMake` declares an option that is off by default.
fn is_option_off(line: &str, name: &str) -> bool {
    let Some((command, inner)) = line.split_once('(') else { return false };
    let behind = inner.trim_start().strip_prefix(name).filter(|behind| behind.starts_with([' ', '\t']));
    let is_option = command.trim().eq_ignore_ascii_case("option") && !name.is_empty();
    behind.filter(|_| is_option).is_some_and(|behind| {
        // What it is for stands in quotes; without a value behind that it is off.
        let value = after_last(behind, &['"']).split_once(')');
        value.is_some_and(|(value, _)| value.trim().is_empty() || is_off(value.trim()))
    })
}

/// Tells whether a value of `CMake` means no.
fn is_off(value: &str) -> bool {
    ["OFF", "FALSE", "NO", "N", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

fn deno(repository: &Repository) -> Option<Finding> {
    let file = repository.first(&["deno.json", "deno.jsonc"])?;
    let ends = ["_test.ts", ".test.ts", "_test.js", ".test.js"];
    let has_tests = repository.paths().any(|path| ends.iter().any(|end| path.ends_with(end)));
    has_tests.then(|| finding(Purpose::Test, "deno test", file, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_cmake_stand_behind_options_that_are_off() {
        let behind = |condition: &str| {
            format!(
                "option(A_TESTS \"x\" OFF)\nOPTION (B \"y\" ON)\noption(C \"z\")\nif (B)\nendif()\n{condition}\n  include(CTest)\nendif()\n"
            )
        };
        for (condition, expected) in [
            ("if(A_TESTS)", "[[[\"A_TESTS\"]]]"),
            ("if (A_TESTS AND C)", "[[[\"A_TESTS\", \"C\"]]]"),
            ("if(A_TESTS OR C)", "[[[\"A_TESTS\"], [\"C\"]]]"),
            ("if(B)", "[]"),
            ("if(NOT A_TESTS)", "[]"),
            ("if(A_TESTS)\nelse()", "[]"),
            ("if(B OR A_TESTS)", "[]"),
            ("if(A_TESTS)\nif(B)\nendif()", "[[[\"A_TESTS\"]]]"),
        ] {
            let found = format!("{:?}", options_of_tests(&behind(condition)));
            assert_eq!(found, expected, "{condition}");
        }
    }

    #[test]
    fn the_tests_of_many_platforms_have_the_name_of_their_target() {
        for (line, expected) in [
            ("  jvm()", Some("jvm")),
            ("jvm {", Some("jvm")),
            ("jvm() {", Some("jvm")),
            ("jvm(\"desktop\") {", Some("desktop")),
            ("jvm(name)", None),
            ("jvmToolchain(17)", None),
            ("jvmMain.dependencies {", None),
        ] {
            assert_eq!(target_of_jvm(line), expected, "{line}");
        }
        let tests = |text: &str| {
            let files =
                [("build.gradle.kts", "plugins { kotlin(\"multiplatform\") }"), ("a/build.gradle.kts", text)];
            multiplatform_tests(&Repository::new(
                files.map(|(path, text)| (path.to_owned(), text.to_owned())),
            ))
        };
        assert_eq!(tests("kotlin {\n  jvm(\"desktop\")\n}\n"), "desktopTest");
        assert_eq!(tests("kotlin {\n  jvm(\"desktop\")\n  jvm()\n}\n"), "jvmTest");
        assert_eq!(tests("kotlin {\n  iosX64()\n}\n"), "allTests");
        assert_eq!(tests("plugins { kotlin(\"jvm\") }\nkotlin {\n  jvm()\n}\n"), "jvmTest test");
    }
}
