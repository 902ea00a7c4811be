//! Fixes that hold what looks like somebody's secret.

use super::scene::{BRANCH_REF, Delivered, Scene, TIDY, deliver};

/// A token with a right checksum, in the parts in which a shell puts it together.
const TOKEN: [&str; 2] = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"];

/// A loop that does something besides its fix, in a repository with these files.
fn scene(makes: &str, more: &[(&str, &str)]) -> Scene {
    let fix = format!("'grep -rl wrong src | xargs sed -i s/wrong/right/; {makes}'");
    let tidy = TIDY.replace("'grep -rl wrong src | xargs sed -i s/wrong/right/'", &fix);
    assert_ne!(tidy, TIDY);
    Scene::with(&tidy, more)
}

/// Prints the token, which no file of the repository holds as a whole.
fn token() -> String {
    format!("printf %s%s {} {}", TOKEN[0], TOKEN[1])
}

/// Nothing was pushed, kept or said but the place.
#[track_caller]
fn is_refused(scene: &Scene, delivered: Delivered, place: &str) {
    let delivered = delivered.is(5, "refused").says(place).keeps_nothing();
    let said = delivered.ran.all() + &delivered.project.read("summary") + &delivered.project.read("out");
    assert!(!said.contains(&TOKEN.concat()), "{said}");
    assert_eq!(scene.hub.writes(), [""; 0], "{said}");
    assert!(!scene.bare.refs().contains_key(BRANCH_REF), "{said}");
    assert_eq!(delivered.output("patch"), "", "{said}");
}

#[track_caller]
fn refuses(makes: &str, more: &[(&str, &str)], place: &str) {
    let scene = scene(makes, more);
    let bundle = scene.night();
    scene.hub.begin(None);
    is_refused(&scene, scene.deliver(&bundle), place);
    is_refused(&scene, scene.deliver_with(&bundle, &["--to", "patch"]), place);
}

#[test]
fn a_secret_in_an_added_line_is_refused_by_its_place() {
    let token = token();
    refuses(
        &format!("{{ echo one; {token}; }} > src/new.py"),
        &[],
        "src/new.py:2: a token of GitHub (github-token)",
    );
    refuses(&format!("{{ echo; {token}; }} >> src/a.txt"), &[], "src/a.txt:27: a token of GitHub");
    refuses(
        &format!("{{ printf \"\\\\0\\\\1\\\\377\"; {token}; printf \"\\\\0\"; }} > src/x.bin"),
        &[],
        "src/x.bin:1: ",
    );
    let moved = format!("mv README.md src/README.txt; {{ echo; {token}; }} >> src/README.txt");
    refuses(&moved, &[], "src/README.txt:3: ");
    refuses(&format!("ln -s x$({token}) src/link; ln -s $({token}) src/link2"), &[], "src/link2:1: ");
    refuses(&format!("echo x > src/a.$({token})"), &[], "src/a.***: its name is a token of GitHub");
    let key = "openssl genpkey -algorithm ed25519 -out src/key.pem 2>/dev/null";
    refuses(key, &[], "src/key.pem:1: a private key (private-key)");
    // The first line of the key was there before.
    let old = ["-----BEGIN ", "PRIVATE KEY-----\n"].concat();
    refuses(
        &format!("{key}; cp src/key.pem k.pem; rm src/key.pem"),
        &[("k.pem", &old)],
        "k.pem:1: a private key",
    );
}

#[test]
fn what_was_there_before_is_delivered_around() {
    let held = format!("one\n{}\ntwo\n", TOKEN.concat());
    for makes in [
        "sed -i s/two/three/ old.txt",
        "mv old.txt new.txt",
        "mv old.txt new.txt; echo more >> new.txt",
        "rm old.txt",
    ] {
        let scene = scene(makes, &[("old.txt", &held)]);
        let delivered = scene.deliver(&scene.night()).is(0, "created");
        assert!(!delivered.ran.all().contains(&TOKEN.concat()), "{makes}");
    }
    let scene = scene("sed -i s/$/x/ old.txt", &[("old.txt", &held.replace("17\n", "17 \n"))]);
    let bundle = scene.night();
    scene.hub.begin(None);
    is_refused(&scene, scene.deliver(&bundle), "old.txt:2: ");
}

#[test]
fn an_example_is_allowed_at_exactly_its_place() {
    // It is there already: a fix adds no such name.
    let scene = scene(&format!("{{ echo; {}; }} > src/a:b.md", token()), &[("src/a:b.md", "x\n")]);
    let bundle = scene.night();
    scene.hub.begin(None);
    for other in ["src/a:b.md:1", "src/a:b.md:3", "a:b.md:2", "./src/a:b.md:2", "src/*:2"] {
        is_refused(&scene, scene.deliver_with(&bundle, &["--allow-secret", other]), "src/a:b.md:2: ");
    }
    for odd in ["src/a.md", "src/a:b.md:0", "src/a:b.md:x", ":2"] {
        let refused = scene.deliver_with(&bundle, &["--allow-secret", odd]);
        assert_eq!(refused.ran.code, Some(2), "{odd}: {}", refused.ran.all());
    }
    scene.deliver_with(&bundle, &["--allow-secret", "src/a:b.md:2"]).is(0, "created");
    // A secret of the job is not an example.
    let project = scene.job(&bundle).env("DEPLOY_SECRET", TOKEN.concat());
    deliver(project, &["--allow-secret", "src/a:b.md:2"]).is(5, "refused").keeps_nothing();
}

#[test]
fn a_patch_that_was_kept_before_goes() {
    let scene = scene(&format!("{} > src/new", token()), &[]);
    let project = scene.job(&scene.night());
    project.write("kept/changes.patch", &TOKEN.concat());
    deliver(project, &[]).is(5, "refused").keeps_nothing();
}

#[test]
fn what_a_run_says_is_searched_too() {
    // The pull request shows what was run.
    let tidy = TIDY.replace("grep -rq wrong src", &format!("TOKEN={} grep -rq wrong src", TOKEN.concat()));
    assert_ne!(tidy, TIDY);
    let scene = Scene::with(&tidy, &[]);
    let bundle = scene.night();
    scene.hub.begin(None);
    scene.deliver(&bundle).is(5, "refused").says("the text of the pull request, line ");
    assert_eq!(scene.hub.writes(), [""; 0]);
    assert!(scene.pulls().is_empty());
}

#[test]
fn without_a_token_the_patch_is_kept_all_the_same() {
    let scene = Scene::new();
    let project = scene.job(&scene.night()).env("LL_TOKEN", "").env("GITHUB_TOKEN", "");
    let failed = deliver(project, &[]);
    assert_eq!(failed.ran.code, Some(2), "{}", failed.ran.all());
    assert!(failed.output("patch").ends_with("kept/changes.patch"), "{:?}", failed.outputs);
    assert!(failed.output("bundle-digest").starts_with("sha256:"), "{:?}", failed.outputs);
    failed.keeps_the_patch();
}

#[test]
fn a_rehearsal_names_the_branch() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver_with(&bundle, &["--dry-run"]).is(0, "created").says("branch: ll-loop/tidy/main, onto main");
    scene.deliver(&bundle).is(0, "created");
    scene
        .deliver_with(&bundle, &["--dry-run"])
        .is(0, "unchanged")
        .says("branch: ll-loop/tidy/main, onto main");
}

#[test]
fn names_with_control_characters_are_refused() {
    for name in ["a\\tb", "a\\177b", "a\\nb", "a\\302\\205b", "a\\033[31mb", "a\\342\\200\\250b"] {
        let scene = scene(&format!("echo x > \"src/$(printf \"{name}\")\""), &[]);
        let bundle = scene.night();
        scene.hub.begin(None);
        let refused = scene.deliver(&bundle).is(5, "refused");
        let said = refused.ran.all();
        assert!(!said.contains(['\t', '\u{7f}', '\u{85}', '\u{1b}', '\u{2028}']), "{said:?}");
        assert_eq!(scene.hub.writes(), [""; 0], "{said}");
    }
}
