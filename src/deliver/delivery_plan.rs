//! What a delivery does to the branch and the pull request of a loop and a base, decided from what stands on the server.
//!
//! One rule stands above all others: a branch that does not stand where we left it was worked on by a person, and is
//! never touched.

use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::forge::forge_trait::{Commit, Pull, PullState, RefMove};
use crate::forge::marker::Marker;
use crate::forge::message::{PatchId, Trailers, calm};
use crate::forge::names::StickyNames;
use crate::forge::standing::{FixStanding, Refusal};

/// What stands on the server.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The newest commit of the base.
    pub base: Commit,
    /// The head of the branch of deliveries.
    pub head: Option<Commit>,
    /// The last commit that we made.
    pub delivered: Option<ObjectId>,
    /// The pull requests from this branch into the base, the newest first.
    pub pulls: Vec<Pull>,
}

/// What is to be delivered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The files of the base with the fix.
    pub tree: ObjectId,
    /// The changes.
    pub patch: PatchId,
    /// Whether something verified them.
    pub standing: FixStanding,
}

/// What is done about the pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullStep {
    /// Nothing: none is wanted.
    None,
    /// One is opened.
    Open,
    /// The open one gets a new text.
    Edit {
        /// The pull request.
        pull: Pull,
        /// Whether it is a draft of ours that can be merged now.
        makes_ready: bool,
    },
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryPlan {
    /// Nothing.
    Unchanged {
        /// Why.
        why: String,
        /// The pull request that stands for it.
        pull: Option<Pull>,
    },
    /// Nothing, and a person has to look.
    Refused(Refusal),
    /// A commit is made on the base, and these refs are moved to it.
    Write {
        /// The refs.
        moves: Vec<RefMove>,
        /// What follows.
        pull: PullStep,
    },
    /// The branch is as it should be, and the pull request is not.
    Pull(PullStep),
}

/// Decides.
///
/// What nothing verified is never more than a draft: it goes into no branch without a pull request, and into no pull request
/// that people could merge. What people have to look at is a draft where there are drafts. A title or a text that alone
/// would differ is not written, so that the same fix night after night disturbs nobody.
pub fn plan(names: &StickyNames, observed: &Observed, offer: &Offer, wants_pull: bool) -> DeliveryPlan {
    let unchanged =
        |why: &str, pull: Option<&Pull>| DeliveryPlan::Unchanged { why: why.to_owned(), pull: pull.cloned() };
    let refused = |why: String| DeliveryPlan::Refused(Refusal::new(why));
    let open = observed.pulls.iter().find(|pull| pull.state == PullState::Open);
    // Asked before anything about the branch: a base that has the fix needs nothing, whoever holds
    // the branch.
    if offer.tree == observed.base.tree {
        return unchanged("the base has the fix already", open);
    }
    let head = observed.head.as_ref();
    // A branch that is gone passes: whoever deletes it hands it back, whatever the delivered ref
    // still names.
    if let Some(head) = head
        && observed.delivered.as_ref() != Some(&head.id)
    {
        let branch = &names.branch;
        return refused(format!(
            "the branch `{branch}` does not stand where the last delivery left it, so a person works on it: merge it, or \
             delete it to hand it back"
        ));
    }
    if let Some(other) = head.and_then(|head| other_loop(names, head)) {
        let branch = &names.branch;
        return refused(format!(
            "the branch `{branch}` has the fix of the loop `{other}`, whose name makes the same branch: rename one of both loops"
        ));
    }
    let (is_unverified, needs_draft) =
        (offer.standing == FixStanding::Unverified, offer.standing.needs_draft());
    // The parent counts as well as the tree: a branch that began at an older base is written anew
    // on top of the present one.
    let is_there =
        head.is_some_and(|head| head.tree == offer.tree && head.parents == [observed.base.id.clone()]);
    if !wants_pull {
        return match (is_there, is_unverified) {
            (true, _) => unchanged("the branch has the fix already", None),
            (false, true) => {
                refused("nothing verified the fix, and a branch cannot be a draft: use `--to pr`".to_owned())
            }
            (false, false) => write(names, observed, PullStep::None),
        };
    }
    let Some(open) = open else {
        return match observed.pulls.iter().find(|pull| is_of(pull, offer)) {
            Some(closed) if closed.state == PullState::Closed => {
                unchanged("a person closed the pull request with this very fix", Some(closed))
            }
            // A merged one counts for nothing here: its fix is not in the base any more, so
            // somebody took it back out.
            Some(_) | None if is_there => DeliveryPlan::Pull(PullStep::Open),
            Some(_) | None => write(names, observed, PullStep::Open),
        };
    };
    let left = Marker::find(&open.body);
    let is_same = left.as_ref().is_some_and(|left| left.patch == offer.patch);
    // A text without our mark was written by a person, who may have judged the fix.
    let was = left.as_ref().map(|left| left.standing);
    if is_there && is_same && was > Some(offer.standing) {
        return unchanged(
            "the pull request has the fix already, and an earlier run showed more of it",
            Some(open),
        );
    }
    // A draft gives way to one that has shown as much.
    let gives_way = was.is_some_and(|was| was.needs_draft() && was <= offer.standing);
    if needs_draft && !(gives_way && (open.is_draft || is_same)) {
        let why = if is_unverified { "nothing verified the fix" } else { "people have to look at the fix" };
        return refused(format!(
            "{why}, and the pull request {} is not the draft of one like it: merge it or close it, and the next delivery \
             opens a draft",
            open.url
        ));
    }
    // What is on the branch already is not new to the person who turned it on.
    if open.merges_itself && !is_same && !is_there {
        return refused(format!(
            "the pull request {} merges by itself, and nobody would have seen this other fix: merge it, or turn \
             auto-merge off",
            open.url
        ));
    }
    // A draft that a person made stays one.
    let makes_ready = open.is_draft && was.is_some_and(FixStanding::needs_draft) && !needs_draft;
    let is_told = is_same && was == Some(offer.standing);
    let step = PullStep::Edit { pull: open.clone(), makes_ready };
    match (is_there, is_told) {
        (true, true) => unchanged("the pull request has the fix already", Some(open)),
        (true, false) => DeliveryPlan::Pull(step),
        (false, _) => write(names, observed, step),
    }
}

/// Returns the loop that a commit of ours is of, if it is another one: `web/tidy` and `web.tidy` share a branch.
fn other_loop(names: &StickyNames, head: &Commit) -> Option<String> {
    let trailers = Trailers::of(&head.message);
    let name = trailers.loop_name()?;
    (name != calm(names.r#loop.as_str())).then(|| one_line(name, 200))
}

/// Tells whether a pull request had these changes. Of several that had, the newest says what people decided.
fn is_of(pull: &Pull, offer: &Offer) -> bool {
    Marker::find(&pull.body).is_some_and(|marker| marker.patch == offer.patch)
}

fn write(names: &StickyNames, observed: &Observed, pull: PullStep) -> DeliveryPlan {
    let from = |id: Option<&ObjectId>| id.cloned();
    let moves = vec![
        RefMove { name: names.branch_ref(), from: from(observed.head.as_ref().map(|head| &head.id)) },
        RefMove { name: names.delivered.clone(), from: from(observed.delivered.as_ref()) },
    ];
    DeliveryPlan::Write { moves, pull }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::name::{InstanceName, LoopName};
    use crate::forge::names::BranchName;

    fn id(number: u32) -> ObjectId {
        ObjectId::parse(&format!("{number:040x}")).unwrap()
    }

    fn names() -> StickyNames {
        StickyNames::new(&LoopName::parse("main").unwrap(), &BranchName::parse("trunk").unwrap()).unwrap()
    }

    fn commit(number: u32, tree: u32, parent: u32) -> Commit {
        Commit { id: id(number), tree: id(tree), parents: vec![id(parent)], message: String::new() }
    }

    fn patch(number: u32) -> PatchId {
        PatchId::parse(id(number).as_str()).unwrap()
    }

    fn offer(tree: u32) -> Offer {
        Offer { tree: id(tree), patch: patch(tree), standing: FixStanding::Verified }
    }

    fn pull(state: PullState, of: u32) -> Pull {
        let run = InstanceName::parse("main-20260101T000000-abcdef").unwrap();
        let body = Marker { run, patch: patch(of), standing: FixStanding::Verified }.text();
        let (number, url, title) = (7, "https://x/7".to_owned(), "t".to_owned());
        Pull { number, url, state, is_draft: false, merges_itself: false, title, body }
    }

    /// The same of a fix that nothing verified.
    fn doubtful(pull: Pull) -> Pull {
        Pull { body: pull.body.replace(" verified", " unverified"), ..pull }
    }

    /// The base 1 with tree 10; the head 2, which we left there, with the tree 20.
    fn delivered(pulls: Vec<Pull>) -> Observed {
        Observed { base: commit(1, 10, 0), head: Some(commit(2, 20, 1)), delivered: Some(id(2)), pulls }
    }

    fn empty() -> Observed {
        Observed { base: commit(1, 10, 0), head: None, delivered: None, pulls: Vec::new() }
    }

    fn moves(head: Option<u32>, delivered: Option<u32>) -> Vec<RefMove> {
        let names = names();
        vec![
            RefMove { name: names.branch_ref(), from: head.map(id) },
            RefMove { name: names.delivered, from: delivered.map(id) },
        ]
    }

    fn decided(observed: &Observed, offer: &Offer) -> DeliveryPlan {
        plan(&names(), observed, offer, true)
    }

    #[test]
    fn a_branch_that_another_loop_shares_is_left_alone() {
        let trunk = BranchName::parse("trunk").unwrap();
        let names = |name: &str| StickyNames::new(&LoopName::parse(name).unwrap(), &trunk).unwrap();
        let (ours, theirs) = (names("web/tidy"), names("web.tidy"));
        assert_eq!(ours.branch, theirs.branch);
        let message = |name: &str| format!("Fix\n\nIt is fixed.\n\nLL-Loop: {name}@abc\nLL-Run: x\n");
        let observed = |name: &str| Observed {
            base: commit(1, 1, 0),
            head: Some(Commit { message: message(name), ..commit(2, 2, 1) }),
            delivered: Some(id(2)),
            pulls: Vec::new(),
        };
        let patch = PatchId::parse(&"a".repeat(40)).unwrap();
        let offer = Offer { tree: id(3), patch, standing: FixStanding::Verified };
        let own = plan(&ours, &observed("web/tidy"), &offer, true);
        assert!(matches!(own, DeliveryPlan::Write { .. }), "{own:?}");
        for (names, name) in [(&ours, "web.tidy"), (&theirs, "web/tidy")] {
            let other = plan(names, &observed(name), &offer, true);
            let DeliveryPlan::Refused(refusal) = other else { panic!("{other:?}") };
            assert!(format!("{refusal:?}").contains(&format!("of the loop `{name}`")), "{refusal:?}");
        }
        // What no trailer names is known by the refs alone, as before.
        let unnamed = Observed { head: Some(commit(2, 2, 1)), ..observed("web/tidy") };
        assert!(matches!(plan(&ours, &unnamed, &offer, true), DeliveryPlan::Write { .. }));
    }

    #[test]
    fn the_first_delivery_opens_and_the_same_again_does_nothing() {
        let first = decided(&empty(), &offer(20));
        assert_eq!(first, DeliveryPlan::Write { moves: moves(None, None), pull: PullStep::Open });
        let again = decided(&delivered(vec![pull(PullState::Open, 20)]), &offer(20));
        assert!(matches!(again, DeliveryPlan::Unchanged { pull: Some(_), .. }), "{again:?}");
    }

    #[test]
    fn another_fix_or_a_newer_base_goes_to_the_same_pull_request() {
        let open = pull(PullState::Open, 20);
        let step = PullStep::Edit { pull: open.clone(), makes_ready: false };
        let expected = DeliveryPlan::Write { moves: moves(Some(2), Some(2)), pull: step };
        assert_eq!(decided(&delivered(vec![open.clone()]), &offer(21)), expected);
        let moved = Observed { base: commit(3, 11, 1), ..delivered(vec![open]) };
        assert_eq!(decided(&moved, &offer(20)), expected);
    }

    #[test]
    fn what_a_person_touched_stays() {
        for delivered_ref in [None, Some(id(9))] {
            let touched = Observed { delivered: delivered_ref, ..delivered(vec![pull(PullState::Open, 20)]) };
            for offer in [offer(20), offer(21)] {
                assert!(matches!(decided(&touched, &offer), DeliveryPlan::Refused(_)));
            }
        }
    }

    #[test]
    fn a_branch_that_is_gone_is_handed_back() {
        let gone = Observed { head: None, ..delivered(vec![pull(PullState::Merged, 19)]) };
        let expected = DeliveryPlan::Write { moves: moves(None, Some(2)), pull: PullStep::Open };
        assert_eq!(decided(&gone, &offer(20)), expected);
    }

    #[test]
    fn a_fix_that_the_base_has_is_no_fix() {
        assert!(matches!(decided(&delivered(vec![]), &offer(10)), DeliveryPlan::Unchanged { .. }));
        // Also where a person works on the branch: there is nothing to write.
        let touched = Observed { delivered: None, ..delivered(vec![]) };
        assert!(matches!(decided(&touched, &offer(10)), DeliveryPlan::Unchanged { .. }));
    }

    #[test]
    fn what_a_person_closed_is_not_opened_again() {
        let closed = |of| pull(PullState::Closed, of);
        for observed in [
            delivered(vec![closed(20)]),
            delivered(vec![closed(19), pull(PullState::Merged, 18), closed(20)]),
            Observed { head: None, ..delivered(vec![closed(20)]) },
        ] {
            assert!(matches!(decided(&observed, &offer(20)), DeliveryPlan::Unchanged { pull: Some(_), .. }));
            assert!(matches!(
                decided(&observed, &offer(21)),
                DeliveryPlan::Write { pull: PullStep::Open, .. }
            ));
        }
    }

    #[test]
    fn a_delivery_that_was_broken_off_is_finished() {
        assert_eq!(decided(&delivered(vec![]), &offer(20)), DeliveryPlan::Pull(PullStep::Open));
        let old = pull(PullState::Open, 19);
        let step = PullStep::Edit { pull: old.clone(), makes_ready: false };
        assert_eq!(decided(&delivered(vec![old]), &offer(20)), DeliveryPlan::Pull(step));
    }

    #[test]
    fn only_our_own_drafts_become_ready() {
        let unverified = |is_draft| Pull { is_draft, ..doubtful(pull(PullState::Open, 20)) };
        let ready = |open: Pull| match decided(&delivered(vec![open]), &offer(20)) {
            DeliveryPlan::Pull(PullStep::Edit { makes_ready, .. }) => Some(makes_ready),
            DeliveryPlan::Unchanged { .. } => None,
            other @ (DeliveryPlan::Refused(_) | DeliveryPlan::Write { .. } | DeliveryPlan::Pull(_)) => {
                panic!("{other:?}")
            }
        };
        assert_eq!(ready(unverified(true)), Some(true));
        assert_eq!(ready(unverified(false)), Some(false));
        assert_eq!(ready(Pull { is_draft: true, ..pull(PullState::Open, 20) }), None);
    }

    #[test]
    fn what_nothing_verified_replaces_nothing_that_was() {
        let unverified = |of| Offer { standing: FixStanding::Unverified, ..offer(of) };
        let open = || pull(PullState::Open, 20);
        assert!(matches!(decided(&delivered(vec![open()]), &unverified(21)), DeliveryPlan::Refused(_)));
        assert!(matches!(
            decided(&empty(), &unverified(21)),
            DeliveryPlan::Write { pull: PullStep::Open, .. }
        ));
        // The same fix is there, and was verified.
        assert!(matches!(decided(&delivered(vec![open()]), &unverified(20)), DeliveryPlan::Unchanged { .. }));
        let moved = Observed { base: commit(3, 11, 1), ..delivered(vec![open()]) };
        assert!(matches!(decided(&moved, &unverified(20)), DeliveryPlan::Refused(_)));
        // A person wrote the text.
        let own = Pull { is_draft: true, body: "mine".to_owned(), ..open() };
        assert!(matches!(decided(&delivered(vec![own]), &unverified(20)), DeliveryPlan::Refused(_)));
    }

    #[test]
    fn what_people_have_to_look_at_is_a_draft_and_takes_the_place_of_none_that_showed_more() {
        let to_review = |of| Offer { standing: FixStanding::ToReview, ..offer(of) };
        let unverified = |of| Offer { standing: FixStanding::Unverified, ..offer(of) };
        let left = |word: &str| {
            let open = pull(PullState::Open, 20);
            Pull { is_draft: true, body: open.body.replace(" verified", &format!(" {word}")), ..open }
        };
        let opened = decided(&empty(), &to_review(20));
        assert!(matches!(opened, DeliveryPlan::Write { pull: PullStep::Open, .. }));
        // A branch alone knows no drafts, and takes it: its message says what is to be looked at.
        let branch = plan(&names(), &empty(), &to_review(20), false);
        assert!(matches!(branch, DeliveryPlan::Write { .. }));
        let of = |body: &str, offer: &Offer| decided(&delivered(vec![left(body)]), offer);
        assert!(matches!(of("to_review", &to_review(21)), DeliveryPlan::Write { .. }));
        assert!(matches!(of("unverified", &to_review(21)), DeliveryPlan::Write { .. }));
        assert!(matches!(of("verified", &to_review(21)), DeliveryPlan::Refused(_)));
        assert!(matches!(of("to_review", &unverified(21)), DeliveryPlan::Refused(_)));
        assert!(matches!(of("to_review", &to_review(20)), DeliveryPlan::Unchanged { .. }));
        assert!(matches!(
            of("to_review", &offer(20)),
            DeliveryPlan::Pull(PullStep::Edit { makes_ready: true, .. })
        ));
    }

    #[test]
    fn a_draft_that_nothing_verified_is_replaced_by_another_one_until_a_person_wants_it() {
        let unverified = |of| Offer { standing: FixStanding::Unverified, ..offer(of) };
        let open = |is_draft| Pull { is_draft, ..doubtful(pull(PullState::Open, 20)) };
        let step = PullStep::Edit { pull: open(true), makes_ready: false };
        let expected = DeliveryPlan::Write { moves: moves(Some(2), Some(2)), pull: step };
        assert_eq!(decided(&delivered(vec![open(true)]), &unverified(21)), expected);
        assert!(matches!(decided(&delivered(vec![open(false)]), &unverified(21)), DeliveryPlan::Refused(_)));
        assert!(matches!(
            decided(&delivered(vec![open(false)]), &unverified(20)),
            DeliveryPlan::Unchanged { .. }
        ));
        let step = PullStep::Edit { pull: open(true), makes_ready: true };
        let expected = DeliveryPlan::Write { moves: moves(Some(2), Some(2)), pull: step };
        assert_eq!(decided(&delivered(vec![open(true)]), &offer(21)), expected);
    }

    #[test]
    fn what_merges_itself_gets_nothing_new() {
        let itself = || Pull { merges_itself: true, ..pull(PullState::Open, 20) };
        assert!(matches!(decided(&delivered(vec![itself()]), &offer(21)), DeliveryPlan::Refused(_)));
        let moved = Observed { base: commit(3, 11, 1), ..delivered(vec![itself()]) };
        assert!(matches!(decided(&moved, &offer(20)), DeliveryPlan::Write { .. }));
        // The branch has it already, and only the text is of an earlier one.
        let told = Pull { merges_itself: true, ..pull(PullState::Open, 19) };
        assert!(matches!(
            decided(&delivered(vec![told]), &offer(20)),
            DeliveryPlan::Pull(PullStep::Edit { .. })
        ));
    }

    #[test]
    fn without_pull_requests_the_branch_alone_counts() {
        let plan = |observed: &Observed, of| plan(&names(), observed, &offer(of), false);
        assert_eq!(
            plan(&empty(), 20),
            DeliveryPlan::Write { moves: moves(None, None), pull: PullStep::None }
        );
        assert!(matches!(plan(&delivered(vec![]), 20), DeliveryPlan::Unchanged { .. }));
    }

    #[test]
    fn a_branch_alone_holds_nothing_that_nobody_verified() {
        let unverified = Offer { standing: FixStanding::Unverified, ..offer(20) };
        assert!(matches!(plan(&names(), &empty(), &unverified, false), DeliveryPlan::Refused(_)));
        let there = plan(&names(), &delivered(vec![]), &unverified, false);
        assert!(matches!(there, DeliveryPlan::Unchanged { .. }));
    }

    #[test]
    fn what_was_merged_after_it_had_been_closed_may_come_back() {
        let [merged, closed] = [PullState::Merged, PullState::Closed].map(|state| pull(state, 20));
        let gone = |pulls| Observed { head: None, ..delivered(pulls) };
        let back = decided(&gone(vec![merged.clone(), closed.clone()]), &offer(20));
        assert!(matches!(back, DeliveryPlan::Write { pull: PullStep::Open, .. }), "{back:?}");
        let stays = decided(&gone(vec![closed, merged]), &offer(20));
        assert!(matches!(stays, DeliveryPlan::Unchanged { pull: Some(_), .. }), "{stays:?}");
    }

    #[test]
    fn what_a_person_wrote_around_the_mark_is_left() {
        let open = pull(PullState::Open, 20);
        let edited = Pull { title: "mine".to_owned(), body: format!("Mine.\r\n{}\r\n", open.body), ..open };
        assert!(matches!(decided(&delivered(vec![edited]), &offer(20)), DeliveryPlan::Unchanged { .. }));
    }

    fn any_pull() -> impl Strategy<Value = Pull> {
        let states = prop_oneof![Just(PullState::Open), Just(PullState::Closed), Just(PullState::Merged)];
        (states, 18..23u32, any::<[bool; 4]>()).prop_map(
            |(state, of, [is_draft, merges_itself, is_marked, is_verified])| {
                let pull = pull(state, of);
                let pull = if is_verified { pull } else { doubtful(pull) };
                let body = if is_marked { pull.body.clone() } else { "edited".to_owned() };
                Pull { is_draft, merges_itself, body, ..pull }
            },
        )
    }

    prop_compose! {
        fn any_observed()(
            base in (1..4u32, 10..12u32),
            head in prop::option::of((2..5u32, 19..22u32, 1..4u32)),
            delivered in prop::option::of(2..5u32),
            pulls in prop::collection::vec(any_pull(), 0..4),
        ) -> Observed {
            Observed {
                base: commit(base.0, base.1, 0),
                head: head.map(|(id, tree, parent)| commit(id, tree, parent)),
                delivered: delivered.map(id),
                pulls,
            }
        }
    }

    fn any_offer() -> impl Strategy<Value = Offer> {
        (10..23u32, prop::sample::select(FixStanding::ALL.to_vec()))
            .prop_map(|(tree, standing)| Offer { standing, ..offer(tree) })
    }

    /// Makes of a pull request what the texts of an offer make of it.
    fn told(old: Option<&Pull>, offer: &Offer, makes_ready: bool) -> Pull {
        let new = Pull { is_draft: offer.standing.needs_draft(), ..pull(PullState::Open, 20) };
        let pull = old.cloned().unwrap_or(new);
        let marker = Marker {
            run: InstanceName::parse("main-20260102T000000-abcdef").unwrap(),
            patch: offer.patch.clone(),
            standing: offer.standing,
        };
        Pull { body: marker.text(), is_draft: pull.is_draft && !makes_ready, ..pull }
    }

    /// Does what a plan says, up to the commit or to the end.
    fn done(observed: &Observed, offer: &Offer, plan: &DeliveryPlan, wholly: bool) -> Observed {
        let mut after = observed.clone();
        let step = match plan {
            DeliveryPlan::Unchanged { .. } | DeliveryPlan::Refused(_) => return after,
            DeliveryPlan::Pull(step) => step,
            DeliveryPlan::Write { pull, .. } => {
                let parents = vec![observed.base.id.clone()];
                let message = String::new();
                after.head = Some(Commit { id: id(99), tree: offer.tree.clone(), parents, message });
                after.delivered = Some(id(99));
                pull
            }
        };
        match step {
            PullStep::Open if wholly => after.pulls.insert(0, told(None, offer, false)),
            PullStep::Edit { pull: old, makes_ready } if wholly => {
                let at = after.pulls.iter().position(|pull| pull == old).unwrap();
                after.pulls[at] = told(Some(old), offer, *makes_ready);
            }
            PullStep::None | PullStep::Open | PullStep::Edit { .. } => {}
        }
        after
    }

    proptest! {
        #[test]
        fn refs_move_only_from_where_they_were_seen_and_never_a_persons(
            observed in any_observed(), offer in any_offer(), wants_pull: bool,
        ) {
            let first = plan(&names(), &observed, &offer, wants_pull);
            if let DeliveryPlan::Write { moves: moved, .. } = first {
                let head = observed.head.as_ref().map(|head| &head.id);
                prop_assert!(head.is_none() || head == observed.delivered.as_ref(), "a person's");
                let names = names();
                let expected = [
                    RefMove { name: names.branch_ref(), from: head.cloned() },
                    RefMove { name: names.delivered, from: observed.delivered.clone() },
                ];
                prop_assert_eq!(moved, expected);
            }
        }

        #[test]
        fn what_was_delivered_is_delivered(
            observed in any_observed(), offer in any_offer(), wants_pull: bool, is_broken_off: bool,
        ) {
            let mut seen = observed;
            let first = plan(&names(), &seen, &offer, wants_pull);
            if is_broken_off {
                seen = done(&seen, &offer, &first, false);
                let second = plan(&names(), &seen, &offer, wants_pull);
                let writes_again = matches!((&first, &second), (DeliveryPlan::Write { .. }, DeliveryPlan::Write { .. }));
                prop_assert!(!writes_again, "{:?}", second);
                seen = done(&seen, &offer, &second, true);
            } else {
                seen = done(&seen, &offer, &first, true);
            }
            let last = plan(&names(), &seen, &offer, wants_pull);
            let is_at_rest = match (&first, &last) {
                (DeliveryPlan::Refused(_), last) => matches!(last, DeliveryPlan::Refused(_)),
                (_, last) => matches!(last, DeliveryPlan::Unchanged { .. }),
            };
            prop_assert!(is_at_rest, "{:?} {:?}", first, last);
        }

        #[test]
        fn nothing_that_needs_a_draft_can_be_merged_unless_a_person_wanted_this_very_fix(
            observed in any_observed(), offer in any_offer(), wants_pull: bool,
        ) {
            let first = plan(&names(), &observed, &offer, wants_pull);
            if let (DeliveryPlan::Write { .. }, true) = (&first, offer.standing.needs_draft()) {
                prop_assert!(wants_pull || offer.standing == FixStanding::ToReview);
                if !wants_pull {
                    return Ok(());
                }
                let open = |seen: &Observed| seen.pulls.iter().find(|pull| pull.state == PullState::Open).cloned();
                let (before, after) = (open(&observed), open(&done(&observed, &offer, &first, true)).unwrap());
                prop_assert!(after.is_draft || before.is_some_and(|before| is_of(&before, &offer)));
            }
        }
    }
}
