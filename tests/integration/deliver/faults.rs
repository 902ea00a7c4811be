//! What goes wrong on the way: a service that fails anywhere, a token that may not, limits, and others who were faster.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::model::{Level, Limit, Owner, Stands, TOKEN, Token};
use super::scene::{Scene, deliver};
use crate::forge::web::{Fault, Planned, When};

/// The requests with which each delivery begins, and which change nothing.
const READS: usize = 6;

/// Lets each request of a delivery fail in turn, from one on, and delivers again. Returns how many requests there are.
fn each_request_fails(
    from: usize,
    (fault, when, count): (Fault, When, usize),
    begins: impl Fn(&Scene, &[u8]),
) -> usize {
    let scene = Scene::new();
    let bundle = scene.night();
    for at in from.. {
        assert!(at < 100, "it never ends");
        scene.reset();
        begins(&scene, &bundle);
        scene.hub.begin(Some(Planned { at, count, fault, when }));
        let first = deliver(scene.job(&bundle), &[]);
        let made = scene.hub.web.served().len();
        let what = format!(
            "{fault:?} {when:?} at {at} for {count}\n{}\n{:#?}",
            first.ran.all(),
            scene.hub.web.log()
        );
        assert!(matches!(first.ran.code, Some(0 | 69 | 73)), "{:?} {what}", first.ran.code);
        assert!(!first.ran.stderr.contains("panicked"), "{what}");
        if made <= at {
            return made;
        }
        scene.hub.begin(None);
        let second = deliver(scene.job(&bundle), &[]);
        let what = format!("{what}\n-- then\n{}", second.ran.all());
        assert_eq!(second.ran.code, Some(0), "{what}");
        scene.is_in_order(&what);
        let pulls = scene.pulls();
        let open = pulls.iter().filter(|pull| pull.stands == Stands::Open).count();
        assert_eq!((pulls.len(), open), (1, 1), "{pulls:#?}\n{what}");
        assert_eq!(scene.bare.file("ll-loop/tidy/main", "src/a.txt").unwrap().matches("right").count(), 1);
    }
    unreachable!()
}

#[test]
fn a_request_that_fails_once_costs_nothing_but_a_delivery() {
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (fault, when) in
            [(Fault::Error, When::Before), (Fault::Error, When::After), (Fault::Lost, When::After)]
        {
            let asked = &asked;
            scope.spawn(move || {
                asked.fetch_add(each_request_fails(0, (fault, when, 1), |_, _| ()), Ordering::SeqCst);
            });
        }
    });
    assert!(asked.load(Ordering::SeqCst) > 15, "{asked:?} requests");
}

#[test]
fn a_delivery_that_was_broken_off_is_finished_by_the_next_one() {
    std::thread::scope(|scope| {
        for when in [When::Before, When::After] {
            scope.spawn(move || each_request_fails(0, (Fault::Lost, when, usize::MAX), |_, _| ()));
        }
    });
}

#[test]
fn an_update_that_was_broken_off_is_finished_by_the_next_one() {
    let moved = |scene: &Scene, bundle: &[u8]| {
        // Always the same base to begin with, and one more commit after the first delivery.
        let base = scene.bare.git(&["rev-list", "--max-parents=0", "main"]);
        scene.bare.git(&["update-ref", "refs/heads/main", &base]);
        scene.deliver(bundle).is(0, "created");
        scene.bare.commits("main", &[("README.md", Some("moved\n"))], "base moves");
    };
    std::thread::scope(|scope| {
        for when in [When::Before, When::After] {
            scope.spawn(move || each_request_fails(READS, (Fault::Error, when, usize::MAX), moved));
        }
    });
}

#[test]
fn a_permission_that_is_missing_is_named() {
    let scene = Scene::new();
    let bundle = scene.night();
    let whole = || Token::of(Owner::App);
    for (token, named) in [
        (whole().may("contents", None), "contents"),
        (whole().may("contents", Some(Level::Read)), "contents: write"),
        (whole().may("pull_requests", None), "pull-requests"),
        (whole().may("pull_requests", Some(Level::Read)), "pull-requests: write"),
    ] {
        scene.reset();
        scene.hub.admit(TOKEN, token);
        scene.deliver(&bundle).is(4, "").says(named).keeps_the_patch();
        assert!(scene.pulls().is_empty());
        let stays = scene.bare.refs().into_keys().find(|name| name.contains("ll-loop-tmp"));
        assert_eq!(stays, None, "{named}");
        scene.hub.admit(TOKEN, whole());
        let made = scene.deliver(&bundle).is(0, "created");
        scene.is_in_order(&made.ran.all());
    }
    scene.reset();
    scene.hub.admit(TOKEN, Token::of(Owner::Actions));
    scene.hub.set(|state| state.actions_may_open = false);
    scene
        .deliver(&bundle)
        .is(4, "")
        .says("Allow GitHub Actions to create and approve pull requests")
        .keeps_the_patch();
    scene.hub.set(|state| state.actions_may_open = true);
    let made = scene.deliver(&bundle).is(0, "created");
    scene.is_in_order(&made.ran.all());
    scene.reset();
    let unknown = scene.job(&bundle).env("LL_TOKEN", "ghs_unknown");
    deliver(unknown, &[]).is(4, "").keeps_the_patch();
}

#[test]
fn limits_that_end_soon_are_waited_for_and_others_are_not() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.reset();
    scene.hub.set(|state| state.limited = Some((1, 2, Limit::Secondary(0))));
    let made = scene.deliver(&bundle).is(0, "created");
    scene.is_in_order(&made.ran.all());
    for limit in [Limit::Primary(3000), Limit::Secondary(3000)] {
        for from in [0, 2, 4] {
            scene.reset();
            scene.hub.set(|state| state.limited = Some((from, usize::MAX, limit)));
            scene.deliver(&bundle).is(69, "").keeps_the_patch();
            assert!(scene.hub.web.served().len() < from + 8, "it goes on asking: {:#?}", scene.hub.web.log());
            scene.hub.begin(None);
            let made = scene.deliver(&bundle);
            assert_eq!(made.ran.code, Some(0), "{}", made.ran.all());
            scene.is_in_order(&made.ran.all());
        }
    }
}

#[test]
fn twenty_deliveries_at_once_make_one_pull_request_with_one_commit() {
    let scene = Scene::new();
    let bundle = scene.night();
    let jobs: Vec<_> = (0..20).map(|_| scene.job(&bundle)).collect();
    let ended: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = jobs.into_iter().map(|job| scope.spawn(|| deliver(job, &[]))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let of = |code: i32, word: &str| {
        ended.iter().filter(|one| one.ran.code == Some(code) && one.output("delivered") == word).count()
    };
    let said: String = ended.iter().map(|one| format!("{:?} {}\n", one.ran.code, one.ran.all())).collect();
    let said = format!("{said}{:#?}", scene.hub.web.log());
    assert_eq!((of(0, "created"), of(0, "created") + of(0, "unchanged") + of(73, "")), (1, 20), "{said}");
    scene.is_in_order(&said);
    assert_eq!(scene.pulls().len(), 1);
}
