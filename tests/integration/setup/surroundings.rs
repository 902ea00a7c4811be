//! What the job that `ll-loop init` writes has around the checks of a repository.

use super::init::{assert_has, project, workflow_of, written};
use crate::common::git;
/// Lets `init` write the workflow of a repository, and returns it.
fn workflow(files: &[(&str, &str)]) -> String {
    let project = project(files);
    project.run(&["init", "--ci", "github"]).code(0);
    project.read(".github/workflows/ll-loop.yml")
}

/// Fails unless these parts stand in a text one behind the other.
#[track_caller]
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            panic!("{part}, behind those before it, in\n{text}")
        };
        rest = behind;
    }
}

#[test]
fn browsers_are_fetched_when_the_packages_are_installed() {
    let ci =
        |lines: &str| format!("on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n{lines}");
    let package = ("package.json", "{\"scripts\": {\"test\": \"playwright test\"}}");
    let lock = ("pnpm-lock.yaml", "x\n");
    let of_lines = ci(
        "      - run: pnpm install\n      - run: pnpm exec playwright install chromium\n      - run: pnpm run test\n",
    );
    let text = workflow(&[package, lock, (".github/workflows/ci.yml", &of_lines)]);
    assert_in_order(&text, &["run: pnpm install\n", "run: pnpm exec playwright install chromium\n"]);
    // An action of the repository installs the packages of this job.
    let of_action = ci("      - run: npx playwright install --with-deps\n      - run: pnpm run test\n");
    let text = workflow(&[package, lock, (".github/workflows/ci.yml", &of_action)]);
    assert_in_order(
        &text,
        &["run: pnpm install --frozen-lockfile\n", "run: npx playwright install --with-deps\n"],
    );
}

#[test]
fn pushes_are_watched_on_the_branches_of_the_repository() {
    let makefile = ("Makefile", "test:\n\ttrue\n");
    let on = |branches: &str| format!("on:\n  push:\n    branches: {branches}\njobs: {{}}\n");
    for (branches, expected) in [
        ("[trunk, 'release/**']", "  push:\n    branches: [trunk]\n"),
        ("['3.x', dev, main]", "  push:\n    branches:\n      - \"3.x\"\n      - dev\n      - main\n"),
        ("['**']", "  push:\n    branches: [main, master]\n"),
    ] {
        let text = workflow(&[makefile, (".github/workflows/ci.yml", &on(branches))]);
        assert_in_order(&text, &[expected]);
    }
    let project = project(&[makefile]);
    git(&project, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop"]);
    project.run(&["init", "--ci", "github"]).code(0);
    assert_in_order(&project.read(".github/workflows/ll-loop.yml"), &["  push:\n    branches: [develop]\n"]);
}

#[test]
fn tests_run_with_the_newest_python_that_is_supported() {
    let ci = "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        py: ['3.13', '3.14', '3.15']\n    steps:\n      - uses: actions/setup-python@v6\n        with: {python-version: '${{ matrix.py }}', allow-prereleases: true}\n      - run: tox -e py\n";
    let says = "[project]\nclassifiers = [\n  \"Programming Language :: Python :: 3.13\",\n  \"Programming Language :: Python :: 3.14\",\n]\n";
    for (project, expected) in [(says, "3.14"), ("[project]\n", "3.15")] {
        let text = workflow(&[
            ("pyproject.toml", project),
            ("tox.ini", "[testenv]\ncommands = pytest\n"),
            (".github/workflows/ci.yml", ci),
        ]);
        assert_in_order(
            &text,
            &[&format!("python-version: \"{expected}\"\n"), "run: python -m pip install tox\n"],
        );
    }
}

#[test]
fn what_a_job_of_a_check_sets_up_is_set_up_for_it() {
    let ci = "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: pnpm/action-setup@v4\n        with: {version: 10}\n      - uses: ruby/setup-ruby@v1\n        with: {ruby-version: '3.4'}\n      - uses: astral-sh/setup-uv@v7\n      - uses: hashicorp/setup-terraform@v3\n      - run: npm install\n      - run: npm test\n";
    let text = workflow(&[
        ("package.json", "{\"scripts\": {\"test\": \"pnpm dlx x\"}}"),
        (".github/workflows/ci.yml", ci),
    ]);
    assert_in_order(&text, &["uses: pnpm/action-setup@", "version: \"10\"\n"]);
    for action in ["uses: ruby/setup-ruby@", "uses: astral-sh/setup-uv@", "uses: hashicorp/setup-terraform@"]
    {
        assert_in_order(&text, &[action, "run: npm install\n"]);
    }
}

#[test]
fn what_one_check_does_without_is_not_left_out_for_another_one() {
    let ci = "on: push\njobs:\n  unit:\n    runs-on: ubuntu-latest\n    env: {X_SKIP_DOWNLOAD: '1', LEVEL: '2'}\n    steps:\n      - run: npm run lint\n      - run: npm run test:unit\n        env: {X_SKIP_DOWNLOAD: '1'}\n";
    let package =
        ("package.json", "{\"scripts\": {\"lint\": \"x\", \"test:unit\": \"x\", \"test:e2e\": \"x\"}}");
    let text = workflow(&[package, (".github/workflows/ci.yml", ci)]);
    assert_in_order(&text, &["X_SKIP_DOWNLOAD: \"1\"\n"]);
    let other =
        format!("{ci}  e2e:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm run test:e2e\n");
    let text = workflow(&[package, (".github/workflows/ci.yml", &other)]);
    assert_in_order(&text, &["LEVEL: \"2\"\n"]);
    assert!(!text.contains("X_SKIP_DOWNLOAD"), "{text}");
}

#[test]
fn a_language_has_one_version_in_a_job_and_its_packages_are_installed_once() {
    let ci = "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/setup-node@v6\n        with: {node-version: 26}\n      - run: yarn install\n      - run: yarn install --immutable\n      - run: yarn lint\n      - run: yarn test\n  tools:\n    runs-on: ubuntu-latest\n    defaults:\n      run:\n        working-directory: tools\n    steps:\n      - uses: actions/setup-node@v6\n        with: {node-version: 24}\n      - run: yarn\n      - run: yarn test:unit\n";
    let package = "{\"scripts\": {\"lint\": \"x\", \"test\": \"x\"}}";
    let text = workflow(&[
        ("package.json", package),
        ("yarn.lock", "x\n"),
        ("tools/package.json", package),
        ("tools/yarn.lock", "x\n"),
        (".github/workflows/ci.yml", ci),
    ]);
    assert_in_order(
        &text,
        &["node-version: \"26\"\n", "run: yarn install --immutable\n", "working-directory: tools\n"],
    );
    assert_eq!(text.matches("uses: actions/setup-node@").count(), 1, "{text}");
    assert!(!text.contains("run: yarn install\n"), "{text}");
}

#[test]
fn a_check_has_the_services_of_one_job_and_the_variables_of_all_levels() {
    let job = |name: &str| {
        format!(
            "  {name}:\n    runs-on: ubuntu-latest\n    services:\n      {name}:\n        image: {name}\n        ports: ['3306:3306']\n    steps:\n      - run: make test\n"
        )
    };
    let jobs = job("mysql") + &job("mariadb");
    let workflow = workflow_of(&jobs, &[("Makefile", "test:\n\tx\n")]);
    assert_has(&workflow, &["image: mysql"], &["mariadb"]);
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    env: {RUSTFLAGS: -Dwarnings}\n    steps:\n      - run: cargo check --tests\n        env: {RUSTFLAGS: '--cfg exhaustive ${{env.RUSTFLAGS}}'}\n      - run: cargo build --no-default-features\n";
    let (text, _) = written(jobs, &[("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n")]);
    assert_has(
        &text,
        &["RUSTFLAGS='--cfg exhaustive -Dwarnings' cargo check --tests", "cargo build --no-default-features"],
        &[],
    );
}

#[test]
fn the_variables_of_a_service_are_for_the_checks_that_have_it() {
    let jobs = "  unit:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test\n  store:\n    runs-on: ubuntu-latest\n    services:\n      db:\n        image: mysql\n    env: {DB: mysql}\n    steps:\n      - run: make acceptance\n";
    let (text, workflow) = written(jobs, &[("Makefile", "test:\n\tx\nacceptance:\n\ty\n")]);
    assert_has(&text, &["action: make test\n", "DB=mysql make acceptance"], &[]);
    assert_has(&workflow, &["image: mysql"], &["DB:"]);
}
