//! How `ll-loop init` takes the place of one job of a matrix: with its versions, its variables and its installs.

use super::init::{Layout, assert_has, assert_layouts, project, workflow_of};

#[test]
fn versions_variables_and_installs_are_of_one_job() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    continue-on-error: ${{ matrix.gemfile == 'head' }}\n    env:\n      BUNDLE_GEMFILE: ${{ github.workspace }}/gemfiles/${{ matrix.gemfile }}.gemfile\n    strategy:\n      matrix:\n        ruby: ['3.3', '3.4']\n        gemfile: [rails_7, rails_8, head]\n        exclude:\n          - {ruby: '3.4', gemfile: rails_7}\n        include:\n          - {ruby: '3.4', gemfile: rails_8, pkgs: libfoo-dev}\n          - {ruby: '3.3', pkgs: libold-dev}\n    steps:\n      - uses: actions/checkout@v6\n      - run: sudo apt-get install -y make ${{ matrix.pkgs }}\n      - uses: ruby/setup-ruby@v1\n        with: {ruby-version: '${{ matrix.ruby }}', bundler-cache: true}\n      - run: bundle exec rake\n";
    let workflow = workflow_of(jobs, &[("Gemfile", "x\n"), ("Rakefile", "task default: :test\n")]);
    assert_has(
        &workflow,
        &[
            "ruby-version: \"3.4\"\n",
            "BUNDLE_GEMFILE: \"${{ github.workspace }}/gemfiles/rails_8.gemfile\"\n",
            "run: sudo apt-get install -y make libfoo-dev\n",
        ],
        &["libold", "rails_7", "head"],
    );
}

#[test]
fn a_job_with_options_of_its_own_is_not_the_one_and_a_plain_one_has_no_packages() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        java: [17, 21]\n        include:\n          - {java: 25, arguments: -Dodd=true}\n    steps:\n      - run: sudo apt-get install -y tool ${{ matrix.pkgs }}\n      - uses: actions/setup-java@v5\n        with: {distribution: zulu, java-version: '${{ matrix.java }}'}\n      - run: mvn verify ${{ matrix.arguments || '' }}\n";
    let workflow = workflow_of(jobs, &[("pom.xml", "<project/>\n")]);
    assert_has(
        &workflow,
        &["java-version: \"21\"\n", "run: sudo apt-get install -y tool\n"],
        &["\"25\"", "odd"],
    );
}

#[test]
fn a_service_has_the_values_of_the_job() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        database: [\n          {image: redis, version: 7.0.15}, {image: valkey, version: 8.1.0}\n        ]\n    services:\n      store:\n        image: ${{ matrix.database.image }}:${{ matrix.database.version }}\n        ports: ['6379:6379']\n    steps:\n      - run: make test\n";
    let workflow = workflow_of(jobs, &[("Makefile", "test:\n\tx\n")]);
    assert_has(&workflow, &["image: valkey:8.1.0", "6379:6379"], &["matrix"]);
}

#[test]
fn a_tool_has_the_version_that_is_set_up() {
    let jobs = "  lint:\n    runs-on: ubuntu-latest\n    env: {DOCS_VERSION: v0.20.0}\n    steps:\n      - uses: terraform-linters/setup-tflint@v4\n        if: github.event_name\n        with: {version: v0.59.1}\n      - uses: example/hooks@v1\n        with: {terraform-docs-version: '${{ env.DOCS_VERSION }}'}\n      - uses: taiki-e/install-action@v2\n        with: {tool: cargo-hack@0.6.30}\n      - run: pre-commit run --all-files\n      - run: cargo hack check\n";
    let hooks = "repos:\n  - hooks:\n      - id: terraform_tflint\n      - id: terraform_docs\n";
    let workflow = workflow_of(jobs, &[(".pre-commit-config.yaml", hooks)]);
    assert_has(
        &workflow,
        &["tflint@v0.59.1\n", "terraform-docs@v0.20.0\n", "cargo install cargo-hack@0.6.30 --locked\n"],
        &["tflint@latest", "terraform-docs@latest"],
    );
}

#[test]
fn another_program_that_does_the_same_has_versions_of_its_own() {
    let jobs = "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: j178/prek-action@v3\n        with: {prek-version: 0.2.27}\n";
    let workflow = workflow_of(jobs, &[(".pre-commit-config.yaml", "repos: []\n")]);
    assert_has(&workflow, &["run: pipx install pre-commit\n"], &["0.2.27"]);
}

#[test]
fn an_install_is_left_out_whose_packages_only_other_jobs_have() {
    let jobs = "  test:\n    runs-on: ubuntu-20.04\n    strategy:\n      matrix:\n        cxx: [clang-10]\n    steps:\n      - run: sudo apt-get install -y ${{ matrix.cxx }}\n      - run: npm install --save-dev ${{ matrix.more }}\n      - run: npm install\n      - run: npm test\n";
    let package = "{\"scripts\": {\"test\": \"x\"}, \"devDependencies\": {\"a\": \"1\"}}";
    let workflow = workflow_of(jobs, &[("package.json", package)]);
    assert_has(&workflow, &["run: npm install\n"], &["clang-10", "--save-dev"]);
}

#[test]
fn of_lists_of_java_that_of_most_jobs_is_the_usual_one() {
    let job = |name: &str, versions: &str, task: &str| {
        format!(
            "  {name}:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/setup-java@v5\n        with:\n          distribution: zulu\n          java-version: |\n{versions}      - run: ./gradlew {task}\n"
        )
    };
    let jobs = job("a", "            11\n            21\n", "check")
        + &job("b", "            17\n            21\n", "test")
        + &job("c", "            24\n", "module:test");
    let workflow = workflow_of(&jobs, &[("build.gradle", "x\n"), ("gradlew", "x\n")]);
    let list = "java-version: |\n            11\n            17\n            24\n            21\n";
    assert_has(&workflow, &[list], &[]);
}

#[test]
fn a_version_stands_where_the_jobs_have_it() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix: {python: ['3.13', '3.14']}\n    steps:\n      - uses: astral-sh/setup-uv@v7\n        with: {python-version: '${{ matrix.python }}'}\n      - run: uv sync\n      - run: uv run pytest\n";
    let workflow = workflow_of(jobs, &[("uv.lock", "x\n"), ("pyproject.toml", "[project]\nname = \"x\"\n")]);
    assert_has(&workflow, &["python-version: \"3.14\"\n"], &["actions/setup-python@"]);
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: denoland/setup-deno@v2\n        with: {deno-version-file: .tool-versions}\n      - uses: actions/setup-node@v6\n        with: {node-version-file: .tool-versions}\n      - run: deno task test\n";
    let workflow = workflow_of(
        jobs,
        &[(".tool-versions", "deno 2.4.5\n"), ("deno.json", "{\"tasks\": {\"test\": \"deno test\"}}")],
    );
    assert_has(
        &workflow,
        &["deno-version-file: .tool-versions\n", "node-version-file: .tool-versions\n"],
        &["v2.x", "lts"],
    );
}

#[test]
fn only_what_stands_before_a_check_prepares_for_it() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: sudo apt-get install -y zsh nushell=0.114.1-0\n      - run: make test\n      - run: make install\n";
    let workflow = workflow_of(jobs, &[("Makefile", "test:\n\tx\ninstall:\n\ty\n")]);
    assert_has(&workflow, &["run: sudo apt-get install -y zsh\n"], &["make install", "nushell"]);
}

#[test]
fn what_an_action_of_the_repository_sets_up_is_not_set_up_again() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ./.github/actions/install\n      - run: pnpm run test\n";
    let action = "runs:\n  using: composite\n  steps:\n    - uses: pnpm/action-setup@v6\n    - uses: actions/setup-node@v6\n    - run: pnpm install\n      shell: bash\n";
    let workflow = workflow_of(
        jobs,
        &[
            (".github/actions/install/action.yml", action),
            ("package.json", "{\"scripts\": {\"test\": \"x\"}}"),
            ("pnpm-lock.yaml", "x\n"),
        ],
    );
    assert_has(
        &workflow,
        &["uses: ./.github/actions/install"],
        &["pnpm/action-setup@", "actions/setup-node@", "run: pnpm install"],
    );
}

const LAYOUTS: &[Layout] = &[
    (
        "a variable that a line of the workflow sets itself",
        &[(
            ".github/workflows/ci.yml",
            "on: push\nenv: {RUSTFLAGS: -D warnings}\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: RUSTFLAGS='--cfg x' cargo test\n",
        )],
        &[("test", "RUSTFLAGS='--cfg x' cargo test", ".github/workflows/ci.yml:7", "")],
    ),
    (
        "steps at the same time, with a task of each job of a matrix",
        &[
            ("Makefile", "lint:\n\tx\ntest:\n\tx\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix: {task: [lint, e2e]}\n    steps:\n      - parallel:\n          - run: make ${{ matrix.task }}\n          - if: matrix.task == 'e2e'\n            run: npx playwright test\n",
            ),
        ],
        &[
            ("lint", "make lint", "Makefile:1 (lint)", ""),
            ("test_e2e", "make e2e", ".github/workflows/ci.yml:9", ""),
            ("test_playwright", "npx playwright test", ".github/workflows/ci.yml:11", ""),
        ],
    ),
    (
        "a way to call a tool that only jobs with another version have",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix: {php: ['8.1', '8.5']}\n    steps:\n      - if: matrix.php == '8.1'\n        run: vendor/bin/phpunit --old\n      - if: matrix.php != '8.1'\n        run: vendor/bin/phpunit --new\n      - if: matrix.php == '8.1'\n        run: vendor/bin/phpstan analyse\n",
        )],
        &[
            ("lint", "vendor/bin/phpstan analyse", ".github/workflows/ci.yml:13", ""),
            ("test", "vendor/bin/phpunit --new", ".github/workflows/ci.yml:11", ""),
        ],
    ),
    (
        "scripts of a package by another manager than its own",
        &[
            ("package.json", "{\"scripts\": {\"test\": \"x\", \"test:ci\": \"x\"}}"),
            ("package-lock.json", "{}"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  own:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm test\n      - run: bun test\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm install\n      - run: pnpm run test:ci\n",
            ),
        ],
        &[
            ("test", "npm test", "package.json:1 (test)", ""),
            ("test_bun", "bun test", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "hooks of pre-commit that no workflow calls, where one calls other checks",
        &[
            (".pre-commit-config.yaml", "repos: []\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n",
            ),
        ],
        &[("lint", "codespell", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "tests behind a server that a script waits for",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n      - run: |\n          bin/server -d\n          until curl -s localhost:9200; do sleep 1; done\n      - run: vendor/bin/phpunit\n",
        )],
        &[("lint", "codespell", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "parts of a build that tests behind them look at",
        &[
            ("package.json", "{\"scripts\": {\"test\": \"x\"}}"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm run build\n      - run: npm run build:dts\n      - run: npm test\n",
            ),
        ],
        &[
            ("build", "npm run build", ".github/workflows/ci.yml:6", ""),
            ("build_dts", "npm run build:dts", ".github/workflows/ci.yml:7", ""),
            ("test", "npm test", "package.json:1 (test)", ""),
        ],
    ),
];

#[test]
fn a_check_is_that_of_the_job_whose_place_a_loop_takes() {
    assert_layouts(LAYOUTS);
}

#[test]
fn tests_that_the_ci_calls_on_another_machine_alone_are_offered() {
    let project = project(&[
        ("Package.swift", "x\n"),
        ("Tests/ATests/a.swift", "x\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n      - run: codespell\n  mac:\n    runs-on: macos-15\n    steps:\n      - uses: actions/checkout@v6\n      - run: swift test 2>&1 | xcbeautify\n",
        ),
    ]);
    project.run(&["init", "--ci", "github"]).code(0);
    let text = project.read(".loops/tidy.yaml");
    assert!(text.contains("#   swift test # Package.swift:1\n"), "{text}");
    assert!(!text.contains("    action: swift test\n"), "{text}");
}

#[test]
fn tests_of_cmake_may_stand_behind_options_of_folders() {
    let top = "option(A_ON \"x\" ON)\nenable_testing()\nadd_subdirectory( a )\n";
    let below = "option(a_tests \"x\" OFF)\nif (a_tests)\n  enable_testing()\nendif()\n";
    let files = [("CMakeLists.txt", top), ("a/CMakeLists.txt", below)];
    let text = |files: &[(&str, &str)]| {
        let project = project(files);
        let _ran = project.run(&["init", "--ci", "github"]);
        project.read(".loops/tidy.yaml")
    };
    let lint = "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n";
    let ci = |job: &str| format!("on: push\njobs:\n{lint}{job}");
    let of = ci("");
    let offered = text(&[&files[..], &[(".github/workflows/ci.yml", of.as_str())]].concat());
    assert!(offered.contains("#   build=") && offered.contains(" -Da_tests=ON && "), "{offered}");
    assert!(!offered.contains("    action: build="), "{offered}");
    let of = ci(
        "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cmake -B b -Da_tests=ON\n      - run: ctest --test-dir b\n",
    );
    let on = text(&[&files[..], &[(".github/workflows/ci.yml", of.as_str())]].concat());
    assert!(on.contains(" -Da_tests=ON && "), "{on}");
}

#[test]
fn what_a_job_runs_that_calls_packages_stands_behind_their_install() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - name: Setup the database\n        run: php vendor/bin/testbench create\n      - run: vendor/bin/phpunit\n";
    let workflow = workflow_of(jobs, &[("composer.json", "{}\n"), ("composer.lock", "{}\n")]);
    let at = |sign: &str| workflow.find(sign).unwrap_or_else(|| panic!("{sign} in\n{workflow}"));
    assert!(at("composer install") < at("php vendor/bin/testbench create"), "{workflow}");
}

#[test]
fn of_versions_the_one_counts_with_which_most_checks_are_made() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        include:\n          - {php: '8.2', flags: --prefer-lowest}\n          - {php: '8.4', flags: --odd}\n    steps:\n      - uses: shivammathur/setup-php@v2\n        with: {php-version: '${{ matrix.php }}', coverage: none, ini-file: development}\n      - run: composer update ${{ matrix.flags }}\n      - run: vendor/bin/phpunit\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: shivammathur/setup-php@v2\n        with: {php-version: '8.2', coverage: none, tools: 'cs2pr, phive'}\n      - run: vendor/bin/phpstan analyse\n  measure:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: shivammathur/setup-php@v2\n        with: {php-version: '7.4', coverage: xdebug, tools: 'cs2pr:1'}\n      - run: vendor/bin/phpunit\n";
    let workflow = workflow_of(jobs, &[("composer.json", "{}\n")]);
    assert_has(
        &workflow,
        &[
            "php-version: \"8.2\"\n",
            "coverage: none\n",
            "ini-file: development\n",
            "cs2pr, phive",
            "composer update --prefer-lowest\n",
        ],
        &["8.4", "xdebug", "--odd"],
    );
}
