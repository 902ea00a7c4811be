use std::collections::BTreeMap;

use super::super::tree::FileAt;
use super::*;
use crate::base::file_mode::FileMode;

fn tree(files: &[(&str, &str)]) -> BTreeMap<String, FileAt> {
    let file = |path: &str, text: &str| {
        let mode = if path.ends_with(EXECUTABLE) { FileMode::Executable } else { FileMode::File };
        FileAt { mode, bytes: text.as_bytes().to_vec(), is_ignored: false }
    };
    files.iter().map(|(path, text)| ((*path).to_owned(), file(path, text))).collect()
}

/// How the paths of programs end that need no interpreter in front.
const EXECUTABLE: &str = "/bare";

fn found(text: &str, search: &[&str], files: &[(&str, &str)]) -> String {
    let search: Vec<String> = search.iter().map(|place| (*place).to_owned()).collect();
    let shell = ["tools/sh", "-c"].map(str::to_owned);
    let variables = [("BASH_ENV", "./.ci-env"), ("NODE_OPTIONS", "--require ./ci/pre")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = if search.contains(&"variables".to_owned()) { variables.to_vec() } else { Vec::new() };
    let command = CheckCommand {
        state: "check",
        text,
        directory: "",
        search: &search,
        libraries: &[],
        variables: &variables,
        shell: &shell,
    };
    let all = instructions(&[command], &tree(files)).all;
    // Each rule that is needed has its target, which has a test of its own.
    let all = all.iter().filter(|instruction| instruction.part != InstructionPart::Target);
    let shown = all.map(|instruction| match &instruction.part {
        InstructionPart::Whole => instruction.path.clone(),
        InstructionPart::Folder => format!("{}/", instruction.path),
        InstructionPart::SourcedFolder => format!("{}/.", instruction.path),
        InstructionPart::Targets(targets) => format!("{}[{}]", instruction.path, targets.join(" ")),
        InstructionPart::Keys(keys) => format!("{}[{}]", instruction.path, keys.join(" ")),
        InstructionPart::Product => format!("{}*", instruction.path),
        InstructionPart::Sourced => format!("{}.", instruction.path),
        InstructionPart::Shadow => format!("{}?", instruction.path),
        InstructionPart::Words => format!("{}$", instruction.path),
        InstructionPart::AnyScript => "any script".to_owned(),
        InstructionPart::Target => "a target".to_owned(),
        InstructionPart::Asked(elsewhere) | InstructionPart::Anywhere(elsewhere) => {
            let sign = if matches!(instruction.part, InstructionPart::Asked(_)) { "+" } else { "~" };
            format!("{}{sign}{}", instruction.path, elsewhere.as_deref().unwrap_or_default())
        }
        InstructionPart::Program(None) => format!("{}=", instruction.path),
        InstructionPart::Program(Some(elsewhere)) => format!("{}={elsewhere}", instruction.path),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The same, without the shell itself.
fn beside_shell(text: &str, files: &[(&str, &str)]) -> String {
    let found = found(text, &[], files);
    found.split(' ').filter(|path| *path != "tools/sh").collect::<Vec<_>>().join(" ")
}

#[test]
fn what_stands_in_front_of_an_interpreter_need_not_be_known() {
    let files =
        &[("ci/one.sh", "true"), ("greet.sh", ""), ("tool/__main__.py", ""), ("Makefile", "check:\n\tx\n")];
    for (text, expected) in [
        ("flock l sh ci/one.sh", "ci/one.sh"),
        ("flock l -c 'cd . && sh ci/one.sh'", "ci/one.sh"),
        ("taskset 1 /bin/bash -e ci/one.sh", "ci/one.sh"),
        ("script -qec 'sh ci/one.sh' /dev/null", "ci/one.sh"),
        ("docker run --rm image sh -c 'sh ci/one.sh'", "ci/one.sh"),
        ("awk 'BEGIN { exit system(\"sh ci/one.sh\") }'", "ci/one.sh"),
        ("retry 3 python3 tool", "tool? tool/__main__.py"),
        ("flock l make check", "GNUmakefile? Makefile[check] makefile?"),
        ("apt-get install -y make; echo sh ci/one.sh; which sh ci/one.sh; shellcheck sh ci/one.sh", ""),
        (
            "flock l sh; flock l bash other.sh; x folder/sh ci/one.sh; ./x sh greet.sh; f() { y; }; f sh greet.sh",
            "x",
        ),
    ] {
        assert_eq!(beside_shell(text, files), expected, "{text}");
    }
}

#[test]
fn what_stands_in_front_of_a_program_that_checks_need_not_be_known() {
    let files = &[
        ("ci/bare", "#!/bin/sh\nsh ci/one.sh\n"),
        ("ci/one.sh", "true"),
        ("src/bare", "#!/bin/sh\n"),
        ("ci/data", ""),
    ];
    for (text, expected) in [
        ("flock l ci/bare", "ci/bare ci/one.sh"),
        ("retry 3 ./ci/bare -v", "ci/bare ci/one.sh"),
        ("flock l sh < ci/one.sh", "ci/one.sh"),
        ("timeout 5 sh < ci/one.sh", "ci/one.sh"),
        ("flock l src/bare; flock l ci/data; flock l cat < ci/data", ""),
        ("chmod +x ci/bare; grep -q set ci/bare; shellcheck ci/bare; shfmt -d < ci/one.sh; wc ci/bare", ""),
    ] {
        assert_eq!(beside_shell(text, files), expected, "{text}");
    }
}

#[test]
fn what_is_read_in_or_read_as_a_list_is_obeyed() {
    let files = &[("lib.d/a.inc", "run() { :; }\n"), ("ci/known.txt", "x\n"), ("ci/one.sh", "true\n")];
    for (text, expected) in [
        ("for f in lib.d/*.inc; do . $f; done; run", "lib.d/. lib.d/a.inc."),
        ("for f in lib.d/*.inc; do source \"${f}\" || exit 1; done", "lib.d/. lib.d/a.inc."),
        ("for f in lib.d/*.inc; do cat $f; done", ""),
        ("! grep -L good work.txt | grep -vxFf ci/known.txt", "ci/known.txt"),
        ("grep -vf ci/known.txt work.txt; tar -xf ci/known.txt", "ci/known.txt"),
    ] {
        assert_eq!(beside_shell(text, files), expected, "{text}");
    }
}

#[test]
fn a_limit_that_was_reached_does_not_read_as_nothing_more() {
    let many: Vec<(String, String)> =
        (0..=MOST_TURNS).map(|at| (format!("ci/{at}.sh"), String::new())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let text = "for f in ci/*.sh; do sh $f || exit 1; done";
    assert!(beside_shell(text, &many).contains("any script"));
    assert!(!beside_shell(text, &many[..9]).contains("any script"));
    let more: Vec<(String, String)> = (0..=MOST).map(|at| (format!("ci/{at}"), String::new())).collect();
    let more: Vec<(&str, &str)> = more.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(beside_shell("run-parts ci", &more).contains("any script"));
    assert!(!beside_shell("run-parts ci", &more[..9]).contains("any script"));
    let long = format!("D=$(dirname \"$0\")\nsh \"$D/ci/0.sh\"\n{}", "# more\n".repeat(40_000));
    assert!(beside_shell("sh check.sh", &[("check.sh", long.as_str())]).contains("any script"));
}

#[test]
fn what_was_chosen_for_a_folder_of_cmake_is_obeyed() {
    let files = &[("build/CMakeCache.txt", "WITH_TESTS:BOOL=ON\n"), ("CMakeLists.txt", "")];
    for text in [
        "ctest --test-dir build",
        "cmake --build build && cd build && ctest",
        "ninja -C build test",
        "cd build && ninja",
    ] {
        assert_eq!(beside_shell(text, files), "build/CMakeCache.txt*", "{text}");
    }
    for text in ["cmake -B build", "ninja", "ctest", "cmake --build ../x"] {
        assert_eq!(beside_shell(text, files), "", "{text}");
    }
}

#[test]
fn the_lists_of_ctest_are_found_in_their_folders() {
    let files = &[
        ("build/CTestTestfile.cmake", "subdirs(\"tests\")\nadd_test(a \"a\")\n"),
        ("build/tests/CTestTestfile.cmake", "subdirs(\"../tests\")\n"),
        ("CTestTestfile.cmake", ""),
    ];
    let both = "build/CTestTestfile.cmake* build/tests/CTestTestfile.cmake*";
    for (text, expected) in [
        ("ctest --test-dir build", both),
        ("cd build && ctest", both),
        ("ctest --test-dir=build/tests -V", "build/tests/CTestTestfile.cmake*"),
        ("ctest --test-dir /tmp/x; cmake --build build", ""),
    ] {
        assert_eq!(beside_shell(text, files), expected, "{text}");
    }
}

#[test]
fn a_program_is_found_as_its_interpreter_finds_it() {
    let files = &[
        ("tool/__main__.py", ""),
        ("ci/look.py", ""),
        ("ci/look.js", ""),
        ("web/index.js", ""),
        ("app/package.json", "{\"main\": \"lib/main.js\"}"),
        ("app/lib/main.js", ""),
        ("lines", "#!/usr/bin/env -S sh ci/real.sh\n"),
        ("ci/real.sh", "true"),
        ("read", "#!ci/reader -x\n"),
        ("ci/reader", "#!ci/reader\n"),
        ("go.mod", "module example.org/calc\n"),
        ("tools/lint/main.go", ""),
    ];
    for (text, expected) in [
        ("python3 tool", "tool? tool/__main__.py"),
        ("python3 -m look", "look.py? look/__init__.py? look/__main__.py?"),
        (
            "PYTHONPATH=ci python3 -m look",
            "ci/look.py? ci/look/__init__.py? ci/look/__main__.py? look.py? look/__init__.py? look/__main__.py?",
        ),
        ("node ci/look", "ci/look? ci/look.js"),
        ("node web/", "web? web.cjs? web.js? web.mjs? web.ts? web/index.js"),
        ("node ./ci/look.js", "ci/look.js"),
        ("./lines", "ci/real.sh lines"),
        ("./read", "ci/reader read"),
        ("go run example.org/calc/tools/lint -v", "tools/lint/"),
        ("go run example.org/other/lint@v1", ""),
    ] {
        assert_eq!(beside_shell(text, files), expected, "{text}");
    }
    assert!(found("node app", &[], files).contains("app/lib/main.js"));
}

#[test]
fn what_a_command_runs_or_obeys_is_found() {
    let files = &[
        ("check.sh", "#!/bin/sh\npython tools/look.py src/a.py\n. ./lib.sh\n"),
        ("lib.sh", "pytest -c conf/pytest.ini tests\n"),
        ("tools/look.py", ""),
        ("conf/pytest.ini", ""),
        ("src/a.py", ""),
        ("Makefile", "test: unit\n\tsh check.sh\nunit:\n\t@bash -c 'node x.js'\nother:\n\tsh other.sh\n"),
        ("x.js", ""),
        ("other.sh", ""),
        ("package.json", r#"{"scripts":{"test":"npm run unit","unit":"node x.js","pretest":"sh lib.sh"}}"#),
        ("part/package.json", r#"{"scripts":{"check":"sh x.sh"}}"#),
        ("part/x.sh", ""),
        (
            "Taskfile.yml",
            "tasks:\n  default:\n    deps: [ci]\n  ci:\n    cmds:\n      - task: look\n  look:\n    cmds:\n      - sh other.sh\n",
        ),
        ("justfile", "x := 'y'\ntest arg='1': lint\n  sh other.sh\nlint:\n  ruff .\nall: lint test\n"),
        ("tox.ini", "[testenv]\ncommands =\n  sh other.sh\n"),
        (".pre-commit-config.yaml", "- repo: local\n  hooks:\n    - entry: ./other.sh\n"),
        (".cargo/config.toml", "[alias]\nci = 'xtask ci'\n"),
        ("part/tox.toml", "[env_run_base]\ncommands = [['sh', '{tox_root}/x.sh']]\n"),
        ("sub/run.sh", "echo"),
        ("glob.mk", "include mk/*.mk\ntest: part\n"),
        ("mk/a.mk", "part:\n\tsh other.sh\n"),
        ("other.just", "look:\n  sh other.sh\n"),
        ("inc.mk", "include more.mk\n-include gone.mk\ntest: other\n"),
        ("vars.mk", "CHECK := ./other.sh\nQ = @\nALL = one\ntest: $(ALL)\none:\n\t$(Q)$(CHECK) -q\n"),
        ("more.mk", "other:\n\tsh other.sh\n"),
        (
            "look.sh",
            "[ \"$(sh work.sh)\" = x ]\nsh other.sh\nsh work.sh > out\ncmp out x\nx=$(sh scripts/more.sh)\n",
        ),
        ("work.sh", ""),
        ("look.py", ""),
        ("web/Makefile", "test:\n\t./look.sh\n"),
        ("web/look.sh", ""),
        ("scripts/more.sh", ""),
        (
            "scripts/all.sh",
            "DIR=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n. \"$DIR/lib/a.sh\"\ncd \"$DIR/..\"\n./scripts/more.sh\n\"$DIR\"/../other.sh\n",
        ),
        ("scripts/lib/a.sh", ""),
        ("composer.json", r#"{"scripts":{"test":["@unit"],"unit":"node x.js"}}"#),
    ];
    for (text, expected) in [
        ("ruff check src/a.py", ""),
        ("sh check.sh", "check.sh conf/pytest.ini lib.sh. tools/look.py"),
        ("./check.sh", "check.sh conf/pytest.ini lib.sh. tools/look.py"),
        ("bash -eu check.sh < src/a.py", "check.sh conf/pytest.ini lib.sh. src/a.py tools/look.py"),
        ("sh < other.sh", "other.sh"),
        ("bash -n other.sh; node --check x.js; ruby -wc lib.sh; php -l x.js; php x.js", "x.js"),
        ("bash -eun other.sh; node -c x.js; bash -e other.sh", "other.sh"),
        ("perl -Iscripts x.js", "x.js"),
        ("timeout -k 1 60 env X=1 python3 -u tools/look.py", "tools/look.py"),
        ("/usr/bin/env python3 tools/look.py", "tools/look.py"),
        ("/usr/bin/timeout --signal KILL --kill-after 5 60 sh other.sh", "other.sh"),
        ("/usr/bin/time -f %e sh other.sh", "other.sh"),
        ("direnv exec . sh other.sh", "other.sh"),
        ("./env sh other.sh", "env"),
        ("cd sub && ./run.sh", "sub/run.sh"),
        ("sh look.sh", "look.sh other.sh scripts/more.sh"),
        ("sh look.sh | tail", "look.sh other.sh scripts/more.sh"),
        ("[ \"$(sh work.sh)\" = x ]", ""),
        ("cd sub; ../other.sh", "other.sh"),
        ("cd sub; cd ..; ./other.sh", "other.sh"),
        ("(cd sub && ./run.sh); ./other.sh", "other.sh sub/run.sh"),
        ("X=$(cd sub && (pwd)); ./other.sh", "other.sh"),
        ("{ cd sub; }; ./run.sh", "sub/run.sh"),
        ("cd sub; sh ../scripts/all.sh", "scripts/all.sh scripts/lib/a.sh. scripts/more.sh other.sh"),
        ("cd sub; make -C .. unit", "GNUmakefile? Makefile[unit] makefile? x.js"),
        ("pytest --config-file=conf/pytest.ini tests", "conf/pytest.ini"),
        ("make -j 2 unit", "GNUmakefile? Makefile[unit] makefile? x.js"),
        ("make -f inc.mk test", "gone.mk[other test] inc.mk inc.mk[other test] more.mk[other test] other.sh"),
        ("make -finc.mk test", "gone.mk[other test] inc.mk[other test] more.mk[other test] other.sh"),
        (
            "make --makefile=inc.mk test",
            "gone.mk[other test] inc.mk inc.mk[other test] more.mk[other test] other.sh",
        ),
        ("make -f vars.mk test", "other.sh vars.mk vars.mk[test]"),
        ("make -Cweb test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
        ("make -sC web test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
        ("make --directory=web test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
        ("make -f glob.mk test", "glob.mk glob.mk[part test] mk/ mk/a.mk[part test] other.sh"),
        ("just -f other.just look", "other.just other.sh"),
        ("just --justfile=other.just", "other.just other.sh"),
        ("for f in sub/*.sh; do sh \"$f\"; done; ./other.sh", "sub/run.sh other.sh"),
        ("cd sub; for f in *.sh; do ./${f} $fine; done", "sub/run.sh"),
        ("for f in other.sh x.js; do for g in $f; do bash -e $g; done; done", "other.sh x.js"),
        ("run-parts --exit-on-error sub", "sub/ sub/run.sh"),
        (
            "coverage run --source src -m tools.look",
            "tools/look.py? tools/look/__init__.py? tools/look/__main__.py?",
        ),
        ("coverage run -p look.py -q", "look.py"),
        ("composer test", "vendor/bin/node= x.js"),
        (
            "npm test -- a",
            "lib.sh package.json[scripts.pretest scripts.test scripts.posttest] package.json[scripts.preunit scripts.unit scripts.postunit] x.js conf/pytest.ini node_modules/.bin/node= node_modules/.bin/npm= node_modules/.bin/pytest= node_modules/.bin/sh=",
        ),
        (
            "npm --prefix=part run check",
            "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
        ),
        (
            "npm run check -w part",
            "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
        ),
        (
            "turbo run check",
            "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
        ),
        (
            "yarn workspace part check",
            "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
        ),
        (
            "npm run check --workspace=@x/part",
            "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
        ),
        (
            "pnpm -w unit",
            "package.json[scripts.preunit scripts.unit scripts.postunit] x.js node_modules/.bin/node=",
        ),
        (
            "bun run unit",
            "unit .env$ .env.local$ .env.test$ package.json[scripts.preunit scripts.unit scripts.postunit] x.js node_modules/.bin/node=",
        ),
        ("bun run x.js", "x.js .env$ .env.local$ .env.test$"),
        ("just test", "justfile other.sh"),
        ("just", "justfile other.sh"),
        ("just all", "justfile other.sh"),
        ("task", "Taskfile.yml other.sh"),
        ("task ci", "Taskfile.yml other.sh"),
        ("tox -e py", "other.sh"),
        ("cd part && tox", "part/x.sh"),
        ("pre-commit run -a", ".pre-commit-config.yaml other.sh"),
        ("cargo ci", "xtask/"),
        ("go run ./cmd/look", "cmd/look/"),
        ("python -m tools.look", "tools/look.py? tools/look/__init__.py? tools/look/__main__.py?"),
        ("find . -name '*.sh' -exec sh other.sh {} +", "other.sh"),
        ("uv run ./check", "check"),
        ("uv run look.py src/a.py", "look.py .venv/bin/look.py="),
        ("find sub -name '*.sh' -exec sh {} +", "sub/run.sh"),
        ("find sub -name '*.sh' | xargs -n 1 sh", "sub/run.sh"),
        ("cat other.sh | sh -s", "other.sh"),
        ("sh \"$PWD/other.sh\"; sh ${PWD}/sub/run.sh", "other.sh sub/run.sh"),
        ("sh \"$(git rev-parse --show-toplevel)/other.sh\"", "other.sh"),
        ("S=sub; sh $S/run.sh", "sub/run.sh"),
        ("eval sh other.sh; setsid -w stdbuf -oL sh sub/run.sh", "other.sh sub/run.sh"),
        ("T=(other.sh); for t in \"${T[@]}\"; do sh $t; done", ""),
        ("T=(scripts/more.sh); for t in \"${T[@]}\"; do sh $t; done", "scripts/more.sh"),
        ("run() { sh \"$1\"; }; run scripts/more.sh", "scripts/more.sh"),
        ("ls sub | while read f; do sh sub/$f; done", "sub/"),
        ("bash \"$x\" sub/$f; sh -e \"scripts/$f\"", "scripts/"),
        ("printf '%s\\n' other.sh | xargs -I{} sh {}", "other.sh"),
        ("bash -e <<'X'\nsh other.sh\nX\ncat <<Y\nsh x.sh\nY\n", "other.sh"),
        ("diff conf/expected.out out; cmp out src/a.py", "conf/expected.out/"),
        ("git diff --check", ".gitattributes? .git/info/attributes?"),
        ("./all check.sh src/a.py", "all check.sh lib.sh. tools/look.py conf/pytest.ini"),
        ("$X/check.sh; /usr/bin/check; ~/check.sh", ""),
    ] {
        let mut expected: Vec<&str> = expected.split(' ').filter(|word| !word.is_empty()).collect();
        let found = found(text, &[], files);
        let mut found: Vec<&str> = found.split(' ').filter(|word| !word.is_empty()).collect();
        // The shell that reads each of them.
        expected.push("tools/sh");
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_hostile_text_comes_to_an_end() {
    let package = r#"{"scripts":{"a":"npm run a; npm run b","b":"npm run a"}}"#;
    let deep = ["find -exec ", "python -m ", "env ", "timeout 1 "].map(|word| word.repeat(20_000));
    let many = "npm run a\n".repeat(50_000);
    for text in deep.iter().chain([&many]) {
        let found = found(text, &[], &[("package.json", package)]);
        assert!(found.len() < 1_000_000, "{text:.40}");
    }
}

#[test]
fn a_program_is_looked_for_where_the_one_is_that_runs_it() {
    let package = r#"{"scripts":{"test":"jest"}}"#;
    let files = &[("a/package.json", package), ("/usr/bin/jest", ""), ("bin/jest", "")];
    let search = &["bin", "/usr/bin", "late"];
    for (text, expected) in [
        ("jest", "bin/jest=/usr/bin/jest"),
        ("ruff check", "bin/ruff= late/ruff="),
        (
            "cd a && npm test",
            "a/node_modules/.bin/jest=/usr/bin/jest a/package.json[scripts.pretest scripts.test scripts.posttest] bin/jest=/usr/bin/jest bin/npm= late/npm= node_modules/.bin/jest=/usr/bin/jest",
        ),
        ("npx jest", "bin/jest=/usr/bin/jest bin/npx= late/npx= node_modules/.bin/jest=/usr/bin/jest"),
        ("uv run pytest", ".venv/bin/pytest= bin/pytest= bin/uv= late/pytest= late/uv="),
    ] {
        let found = found(text, search, files);
        let found: Vec<&str> = found.split(' ').filter(|path| *path != "tools/sh").collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }
}

#[test]
fn a_program_is_looked_for_where_a_text_says() {
    let files = &[
        ("/usr/bin/pytest", ""),
        ("check.sh", "export PATH=\"$PWD/tools:$PATH\"\npytest -q\n"),
        ("env.sh", "PATH=tools:$PATH\n"),
        ("tools/pytest", "#!/bin/sh\nsh other.sh\n"),
        ("other.sh", ""),
        ("Makefile", "V = .venv\nexport PATH := $(CURDIR)/$(V)/bin:$(PATH)\ntest:\n\tpytest\n"),
        ("justfile", "export PATH := justfile_directory() + '/tools:' + env('PATH')\ntest:\n  pytest\n"),
        (".envrc", "PATH_add tools\n"),
    ];
    for (text, expected) in [
        ("PATH=.venv/bin:$PATH pytest", ".venv/bin/pytest+/usr/bin/pytest"),
        (". .venv/bin/activate && pytest -q", ".venv/bin/activate. .venv/bin/pytest+/usr/bin/pytest"),
        ("export PATH=tools:$PATH; pytest", "other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        ("PATH=$PATH:late pytest", ""),
        ("sh check.sh", "check.sh other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        ("sh check.sh; pytest", "check.sh other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        (". ./env.sh; pytest", "env.sh. other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        ("PATH=$(f)/x:$PATH pytest", "x/pytest~/usr/bin/pytest f~"),
        ("make test", "GNUmakefile? Makefile[test] makefile? .venv/bin/pytest+/usr/bin/pytest"),
        ("just test", "justfile other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        ("direnv exec . pytest", "other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
        ("cd sub; PATH=bin:$PATH pytest", "bin/pytest+/usr/bin/pytest sub/bin/pytest+/usr/bin/pytest"),
    ] {
        let all = found(text, &["/usr/bin"], files);
        // The programs of the directories matter for `pytest` alone.
        let known = all.split(' ').filter(|path| *path != "tools/sh" && !path.ends_with("/f~"));
        let mut known: Vec<&str> = known.collect();
        let mut wanted: Vec<&str> = expected.split(' ').filter(|path| !path.is_empty()).collect();
        wanted.retain(|path| !path.ends_with("f~"));
        known.retain(|path| !path.ends_with("/make+") && !path.ends_with("f~"));
        known.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(known, wanted, "{text}");
    }
}

#[test]
fn what_variables_name_is_found() {
    let files = &[(".ci-env", "sh other.sh\n"), ("other.sh", ""), ("ci/pre.js", "")];
    let found = found("true", &["variables"], files);
    assert_eq!(found, ".ci-env. ci/pre.js other.sh tools/sh variables/sh=");
}

#[test]
fn what_becomes_words_or_is_named_to_be_loaded_is_found() {
    let files = &[
        ("ciplug.py", ""),
        ("ci/hooks.js", ""),
        ("ci/list.txt", ""),
        ("pytest.ini", "[pytest]\naddopts = -p ci.more\n"),
        ("ci/more.py", ""),
        ("Makefile", "-include .env\nexport\nT = $(shell cat ci/list.txt)\ntest:\n\tpytest $(T)\n"),
        ("justfile", "set dotenv-load\ntest:\n  pytest\n"),
    ];
    for (text, expected) in [
        ("export $(grep -v '^#' .env | xargs); pytest", ".env$"),
        ("env $(cat .env) pytest", ".env$"),
        ("node --env-file=.env x", ".env$ x"),
        ("docker run --env-file ci.env x", "ci.env$"),
        ("dotenv run -- pytest", ".env$ .env.local$ .env.test$"),
        ("xargs pytest < ci/list.txt", "ci/list.txt$"),
        ("while read t; do pytest $t; done < ci/list.txt", "ci/list.txt$"),
        ("pytest @ci/list.txt", "ci/list.txt$"),
        (
            "make test",
            ".env[test *= T= shell=] GNUmakefile? Makefile[test *= T= shell=] makefile? ci/list.txt$",
        ),
        ("just test", ".env$ justfile"),
        ("pytest -p ciplug", "ciplug.py ciplug/__init__.py?"),
        ("pytest -p xdist", "xdist.py? xdist/__init__.py?"),
        ("PYTEST_ADDOPTS='-p ciplug' pytest", "ciplug.py ciplug/__init__.py?"),
        ("mocha --require ./ci/hooks", "ci/hooks.js"),
        ("mkdir -p ci/more", ""),
    ] {
        let all = found(text, &[], files);
        let mut known: Vec<&str> = all.split(' ').collect();
        // The shell, and what the configuration names for each check.
        known.retain(|path| !matches!(*path, "tools/sh" | "ci/more.py"));
        known.sort_unstable();
        let mut wanted: Vec<&str> = expected.split(' ').filter(|path| !path.is_empty()).collect();
        wanted.sort_unstable();
        assert_eq!(known, wanted, "{text}");
        assert!(all.contains("ci/more.py"), "{text}");
    }
}

#[test]
fn scripts_are_followed_as_deep_as_they_call_each_other() {
    let package = r#"{"scripts":{"test":"run-s unit 'more:*'","unit":"npm run a","a":"npm run b","b":"npm run c","c":"npm run d","d":"sh last.sh","more:x":"concurrently \"npm:y\" \"sh other.sh\"","y":"true"}}"#;
    let files = &[("package.json", package), ("last.sh", ""), ("other.sh", "")];
    let found = found("npm test", &[], files);
    for path in ["last.sh", "other.sh", "scripts.more:x", "scripts.y"] {
        assert!(found.contains(path), "{path}: {found}");
    }
    let scripts: Vec<(String, String)> =
        (0..40).map(|at| (format!("s{at}.sh"), format!("sh s{}.sh", at + 1))).collect();
    let files: Vec<(&str, &str)> =
        scripts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    // What is deeper than any repository goes may be anything.
    let deep = self::found("sh s0.sh", &[], &files);
    assert!(deep.contains("s5.sh") && deep.contains("any script"), "{deep}");
    assert!(!self::found("sh s35.sh", &[], &files).contains("any script"));
}

#[test]
fn a_path_is_read_where_it_is_run() {
    assert_eq!(resolved("a/b", "../c/./d").as_deref(), Some("a/c/d"));
    assert_eq!(resolved("", "../c"), None);
    assert_eq!(resolved("a", "/c"), None);
    assert_eq!(resolved("", "."), None);
    assert_eq!(entered("a", "..").as_deref(), Some(""));
    assert_eq!(entered("a", "../.."), None);
}
