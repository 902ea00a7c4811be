//! Whatever a CI runs that may check something is a check of the loop that `ll-loop init` writes, or is named with the reason.

use super::init::{assert_has, project, written};

/// The jobs of a workflow, with lines of many kinds.
const JOBS: &str = "  all:
    runs-on: ubuntu-latest
    env:
      FLAGS: ${{ secrets.FLAGS }}
    steps:
      - uses: actions/checkout@v6
      - run: |
          # npm test
          echo one
          npm ci
          git config user.name x
      - run: codespell
      - run: ./prove -l t
      - run: |
          for file in *.sh; do
            shellcheck \"$file\"
          done
      - run: generate $FLAGS
      - run: generate | diff - made.txt
      - run: |
          cat <<EOF > made.txt
          npm run e2e
          EOF
      - run: codespell --strict
        continue-on-error: true
      - run: print(1)
        shell: python
      - uses: someone/lint-action@v1
      - uses: someone/setup-tool@v1
      - uses: actions/upload-artifact@v4
  mac:
    runs-on: macos-15
    steps:
      - run: ./check-mac
  merged:
    if: github.event_name != 'pull_request'
    runs-on: ubuntu-latest
    steps:
      - run: ./check-merged
  night:
    if: github.event_name == 'schedule'
    runs-on: ubuntu-latest
    steps:
      - run: ./check-night
";

#[test]
fn what_is_no_check_is_named_with_the_reason() {
    let (text, _) = written(JOBS, &[(".travis.yml", "script: ./old\n")]);
    assert_has(
        &text,
        &[
            "    action: codespell\n",
            "# Not added, because it names what an earlier line of its job has made or fetched:\n#   ./prove -l t # .github/workflows/",
            "# Not added, because it stands in a condition, a loop or a function of its script:\n#   shellcheck \"$file\" # ",
            "# Not added, because only its job knows the values in it:\n#   generate $FLAGS # ",
            "# Not added, because it joins commands by more than `&&`:\n#   generate | diff - made.txt # ",
            "# Not added, because its job goes on where it fails:\n#   codespell --strict # ",
            "# Not added, because it is written for another shell:\n#   print(1) # ",
            "# Not added, because it is not known what its action does:\n#   uses: someone/lint-action@v1 # ",
            "# Not added, because it runs on macOS alone:\n#   ./check-mac # ",
            "# Not added, because it runs after a merge, where others run before:\n#   ./check-merged # ",
            "# Not added, because this CI is not read:\n#   .travis.yml # .travis.yml:1\n",
        ],
        &[
            "npm test",
            "npm run e2e",
            "#   echo",
            "#   npm ci",
            "git config",
            "setup-tool",
            "artifact",
            "check-night",
            "EOF",
        ],
    );
}

#[test]
fn what_is_printed_is_bounded_and_names_the_rest() {
    let lines: Vec<String> = (0..12).map(|at| format!("      - run: ./prove {at}\n")).collect();
    let lines = lines.concat();
    let jobs = format!("  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n{lines}");
    let ci = format!("on: push\njobs:\n{jobs}");
    let project = project(&[(".github/workflows/ci.yml", ci.as_str())]);
    let printed = project.run(&["init"]).code(0).stdout;
    assert!(
        printed.contains(
            "  not added: it names what an earlier line of its job has made or fetched\n    ./prove 0  (.github/workflows/ci.yml:7)\n"
        ),
        "{printed}"
    );
    assert!(printed.contains("    ./prove 7 ") && !printed.contains("    ./prove 8 "), "{printed}");
    assert!(printed.contains("  and 4 more, which .loops/tidy.yaml names\n"), "{printed}");
    assert!(project.read(".loops/tidy.yaml").contains("#   ./prove 11 # "), "{printed}");
}

#[test]
fn a_refusal_says_what_was_seen() {
    let ci = "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          autoreconf -i\n          ./configure\n          make check\n          git diff --exit-code\n";
    let project = project(&[(".github/workflows/ci.yml", ci)]);
    let refused = project.run(&["init"]).code(2).stderr;
    for said in [
        "nothing here says how this repository checks itself\n",
        "  not added: an earlier line of its job makes the Makefile that it needs\n    make check  (.github/workflows/ci.yml:9)\n",
        "    ./configure  (.github/workflows/ci.yml:8)\n",
        "    git diff --exit-code  (.github/workflows/ci.yml:10)\n",
    ] {
        assert!(refused.contains(said), "{said} in\n{refused}");
    }
}

#[test]
fn what_a_check_does_in_another_way_or_behind_other_installs_is_named() {
    let job = |name: &str, lines: &[&str]| {
        let steps: Vec<String> = lines.iter().map(|line| format!("      - run: {line}\n")).collect();
        format!("  {name}:\n    runs-on: ubuntu-latest\n    steps:\n{}", steps.concat())
    };
    let jobs = job("test", &["pip install -r a.txt", "pytest -q", "make -j CFLAGS='-O2 -g'", "make -j"])
        + &job("old", &["pip install -r a.txt", "pip install x==1", "pytest -q"])
        + &job("same", &["pip install -r a.txt", "pytest -q"])
        + &job("cover", &["pip install -r a.txt", "pytest -q --cov"]);
    let (text, _) = written(&jobs, &[("Makefile", "all:\n\tx\n"), ("a.txt", "pytest\n")]);
    assert_has(
        &text,
        &[
            "    action: pytest -q\n",
            "# Not added, because a check calls the same; its job has installed something else before:\n#   pytest -q # .github/workflows/ci.yml:1",
            "differs in what it measures or writes alone:\n#   pytest -q --cov # ",
            "a check does the same with other properties:\n#   make -j CFLAGS='-O2 -g' # ",
        ],
        &[],
    );
}

#[test]
fn what_an_event_or_an_image_alone_has_is_no_check() {
    let jobs = "  change:\n    runs-on: ubuntu-latest\n    steps:\n      - name: Check the change\n        run: ./scripts/check-change.sh\n        env: {NUMBER: '${{ github.event.pull_request.number }}'}\n  main:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with: {ref: main}\n      - run: mypy src\n  all:\n    runs-on: ubuntu-latest\n    container: example/all:1\n    steps:\n      - run: make\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n";
    let (text, _) = written(jobs, &[("Makefile", "all:\n\tx\n"), ("scripts/check-change.sh", "x\n")]);
    assert_has(
        &text,
        &[
            "    action: codespell\n",
            "its variables are those of one event, such as a proposed change:\n#   ./scripts/check-change.sh # ",
            "its job has checked another state of the repository out, such as its main branch:\n#   mypy src # ",
            "the CI calls it only in an image, which has what it needs:\n#   make # ",
        ],
        &["    action: make\n"],
    );
}

#[test]
fn tests_of_a_toolchain_give_way_to_those_that_the_ci_runs_in_an_unknown_way() {
    let of = |line: &str| {
        let jobs = format!(
            "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell;\n      - run: {line}\n"
        );
        written(&jobs, &[("go.mod", "module x\n"), ("x_test.go", "package x\n")]).0
    };
    let otherwise =
        "the CI runs its tests in another way, in a line that is no check by itself:\n#   go test ./...";
    assert_has(&of("mage -v check;"), &["    action: codespell\n", otherwise, "#   mage -v check # "], &[]);
    assert_has(&of("mage docs"), &["    action: go test ./...\n"], &[otherwise]);
}
