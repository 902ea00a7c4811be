//! A run as one page for a browser: a file that needs no network and can be read without scripts. Whatever the run printed is a
//! text in it, and its size is bounded.

mod blocks;
mod colours;
mod page;
pub(crate) mod page_head;
mod parts;
pub mod playground;
mod steps;

use blocks::Blocks;
use page::{HtmlPage, NAME, PageSections, brief};

use super::detail::Detail;
use super::digest::Digest;
use super::graph;
use super::markup::Markup;
use super::numbers::StepNumber;
use super::why::Why;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The size for which there is room, in bytes; what steps printed fills what the rest leaves.
const ROOM: usize = 6 << 20;

/// The most bytes of rows of steps.
const MAX_ROWS: usize = 3 << 20;

/// Writes the page.
pub fn render(digest: &Digest, detail: Detail) -> String {
    if digest.is_merge() {
        // No item leads to the next one, and none decides alone.
        return HtmlPage { digest, detail, why: None, decided: None }.written();
    }
    let why = Why::of(digest);
    let told = why.as_ref().and_then(|why| why.chain.iter().rev().find_map(|link| link.step.clone()));
    let own = || digest.deciding_step().map(|step| StepNumber::of_run(step.number));
    HtmlPage { digest, detail, why, decided: told.or_else(own) }.written()
}

impl HtmlPage<'_> {
    fn written(mut self) -> String {
        let mut rows = steps::rows(&self);
        loop {
            let (size, count) = (rows.iter().map(Markup::size).sum::<usize>(), self.detail.entries().len());
            if size <= MAX_ROWS || count == 0 {
                break;
            }
            // An estimate by the mean size of a row, and at least one less, so that the loop ends whatever the rows hold.
            let fewer = count * (MAX_ROWS / 1024) / (size / 1024 + 1);
            self.detail.thin(fewer.min(count - 1));
            rows = steps::rows(&self);
        }
        let mut main = Markup::default();
        self.main(&rows, &mut main);
        let decided = self.decided.as_ref().map(ToString::to_string);
        let room = ROOM.saturating_sub(
            main.size() + page_head::LOOK.len() + STYLE.len() + graph::CSS.len() + SCRIPT.len(),
        );
        let blocks = Blocks::of(&self.detail, decided.as_deref(), room);
        let mut out = Markup::default();
        out.ours("<!doctype html>\n").within("html", &[("lang", "en")], |out| {
            self.head(out);
            let log = self.log();
            let mut attributes = vec![("data-log", log.as_str())];
            let opened = decided.filter(|_| !self.digest.is_success()).map(|step| format!("step-{step}"));
            attributes.extend(opened.as_deref().map(|step| ("data-opens", step)));
            out.within("body", &attributes, |out| {
                out.add(&main);
                blocks.write(out);
                out.ours("<script>").ours(SCRIPT).ours("</script>\n");
            });
        });
        out.ours("\n");
        out.into_text()
    }

    fn head(&self, out: &mut Markup) {
        let title = format!("{} {}: {}", self.mark(), self.outcome(), brief(self.digest.loop_name(), NAME));
        page_head::write(&title, &[STYLE, graph::CSS], &[SCRIPT], out);
    }

    fn main(&self, rows: &[Markup], out: &mut Markup) {
        let mut sections = PageSections::default();
        parts::question(self, &mut sections);
        parts::why(self, &mut sections);
        parts::against(self, &mut sections);
        parts::nights(self, &mut sections);
        parts::tasks(self, &mut sections);
        parts::roles(self, &mut sections);
        parts::confined(self, &mut sections);
        steps::section(self, rows, &mut sections);
        parts::graph(self, &mut sections);
        parts::states(self, &mut sections);
        parts::changes(self, &mut sections);
        parts::warnings(self, &mut sections);
        parts::again(self, &mut sections);
        out.ours("\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
        // Made after the parts, because its navigation names those that there are.
        parts::header(self, &sections, out);
        out.within("main", &[("id", "main")], |out| {
            out.ours("\n");
            sections.all.iter().for_each(|section| {
                out.add(&section.markup);
            });
        });
        out.ours("\n");
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::report::detail::Printed;
    use crate::report::testing::{Journal, failing, succeeding};

    fn written(journal: &Journal) -> String {
        let mut detail = Detail::default();
        journal.events().iter().for_each(|stamped| detail.event(stamped, Printed::default()));
        detail.finish();
        let digest = journal.digest();
        detail.graph = graph::Graph::default().with_run(&digest);
        render(&digest, detail)
    }

    #[test]
    fn the_parts_have_anchors_that_stay() {
        let page = written(&failing());
        for anchor in ["why", "steps", "step-1", "step-5", "state-check", "failed", "graph", "states"] {
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        }
        assert!(
            page.contains("<body data-log=\"output.log\" data-opens=\"step-5\">"),
            "it opens where it failed"
        );
        assert_eq!(page::anchor("state", "a b/ü"), "state-a~20b~2f~c3~bc");
        let page = written(&succeeding());
        assert!(!page.contains("data-opens"), "nothing failed");
    }

    #[test]
    fn the_policy_knows_what_is_in_it() {
        let page = written(&failing());
        let between = |begin: &str, end: &str| page.split_once(begin).unwrap().1.split_once(end).unwrap().0;
        for (kind, content) in
            [("style", between("<style>", "</style>")), ("script", between("<script>", "</script>"))]
        {
            let hash = BASE64_STANDARD.encode(Sha256::digest(content));
            assert!(page.contains(&format!("{kind}-src &#39;sha256-{hash}&#39;")), "{kind}");
        }
        assert!(
            page.contains("default-src &#39;none&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;")
        );
        assert!(!page.contains(" style="));
    }

    #[test]
    fn a_file_has_a_size_that_it_does_not_exceed() {
        let mut journal = Journal::of("long", 50_000);
        let action = "\u{202e}<&".repeat(500);
        let mut noise = String::new();
        let mut random = 1_u64;
        for pass in 1..=7_000_u32 {
            noise.clear();
            for _ in 0..200 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let _ = write!(noise, "{random:x}");
            }
            journal.step((&format!("s{}", pass % 9), pass), &action, (1, &noise), "no", "check");
        }
        let page = written(&journal);
        assert!(page.len() < 8 << 20, "{}", page.len());
        assert!(page.len() > 2 << 20, "{}", page.len());
        assert!(page.contains("are not on this page"), "what is left out is named");
        assert!(
            page.contains("id=\"step-7000\"") && page.contains("id=\"out-7000\""),
            "the step that decided is there"
        );
    }
}
