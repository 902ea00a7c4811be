//! A plan: the items of a fan-out, the legs on which they run, and an id by which its runs are known again.
//!
//! A plan travels through artifacts and can be edited on the way, so that reading it checks everything that `run` and
//! `merge` rely on.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::MOST_ITEMS;
use super::item::{ItemId, LegKey};
use crate::base::name::{LoopName, VarName};
use crate::base::object::ObjectId;
use crate::base::relative::{Line, RelativePath};
use crate::base::sum::Sum;
use crate::base::text::plural;
use crate::base::time::Timestamp;
use crate::engine::changes::TreeEntry;
use crate::engine::reused::ReusedRun;

/// The version of the format that this program writes. Another one is refused.
pub const SCHEMA: u32 = 1;

/// Which items run, and on which legs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the file says `plan_id`, and so does everything that names it"
)]
pub struct Plan {
    /// The version of the format.
    pub schema: u32,
    /// The digest of what the plan decides: see [`Plan::identity`].
    pub plan_id: Sum,
    /// The commit that every leg has to check out.
    pub commit: ObjectId,
    /// How the tree of which it was made differs from that commit; empty unless somebody wanted that.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub differs: Vec<TreeEntry>,
    /// When it was made.
    pub created: Timestamp,
    /// The loops of its items.
    pub loops: Vec<FanoutLoop>,
    /// What runs.
    pub items: Vec<Item>,
    /// The jobs, each with its items in the order in which they run.
    pub legs: Vec<Leg>,
    /// What need not run.
    pub skipped: Vec<Skipped>,
    /// What is not run because an earlier run has verified the same.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reused: Vec<ReusedItem>,
    /// Why it has no items, if it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Line>,
}

/// The most bytes of a plan that is read.
// Room for 10,000 items of 6 KiB. A plan comes out of an artifact, in which a file may have any size.
pub const MAX_PLAN: u64 = 64 << 20;

/// What stands in the place of a loop where a plan has several.
pub const SEVERAL: &str = "plan";

/// Returns what names of artifacts have in the place of a loop, for a plan of these.
pub fn stem(loops: &[FanoutLoop]) -> String {
    match loops {
        [one] => one.name.file_stem(),
        _ => SEVERAL.to_owned(),
    }
}

/// A loop of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FanoutLoop {
    /// The loop.
    pub name: LoopName,
    /// Digest of the definition and everything it pulled in.
    pub definition_sha256: Sum,
    /// Its file, where its name alone does not lead to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RelativePath>,
}

/// One loop with one value of its parameters and one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What it is called, also in the names of files.
    pub id: ItemId,
    /// The loop.
    pub r#loop: LoopName,
    /// The values of its parameters.
    pub params: BTreeMap<VarName, String>,
    /// The paths that its run claims, as seen from the directory of the loops.
    pub scope: Vec<String>,
    /// How long it is expected to take, in milliseconds.
    pub weight_ms: u64,
    /// How that is known.
    pub weight_from: WeightFrom,
    /// The earlier run that it proves right or wrong: it is run although that one stands for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proves: Option<Line>,
}

/// How the weight of an item is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightFrom {
    /// The median of its last verified runs.
    Runs,
    /// The median of the items that have runs.
    Median,
    /// No item has runs.
    Default,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// What it is called, such as `l03`.
    pub key: LegKey,
    /// Its items, in the order in which they run.
    pub items: Vec<ItemId>,
    /// The sum of their weights, in milliseconds.
    pub estimate_ms: u64,
}

/// An item that need not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// What it is called.
    pub id: ItemId,
    /// Why.
    pub reason: Line,
}

/// An item that is not run, because an earlier run has verified the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReusedItem {
    /// The item.
    pub item: Item,
    /// The earlier run.
    pub proof: ReusedRun,
}

/// Why a text is not a plan that can be obeyed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is not the JSON of a plan.
    #[error("this is not a plan: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version of this program wrote it.
    #[error("the plan has the schema {found}, and this program knows {SCHEMA}")]
    Schema {
        /// Its version.
        found: u32,
    },
    /// It has more items than any plan of ours.
    #[error("the plan has {0} items; a plan has at most {MOST_ITEMS}")]
    TooMany(usize),
    /// Its parts contradict each other.
    #[error("the plan contradicts itself: {0}")]
    Contradiction(String),
    /// It is not what its id says.
    #[error("the plan was edited: its id is {written}, and its content has the id {computed}")]
    Edited {
        /// The id in it.
        written: Sum,
        /// The id of what it says.
        computed: Sum,
    },
}

/// What the id of a plan depends on: neither weights nor when it was made.
#[derive(Serialize)]
struct Identity<'p> {
    schema: u32,
    commit: &'p ObjectId,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    differs: &'p [TreeEntry],
    loops: &'p [FanoutLoop],
    items: Vec<ItemIdentity<'p>>,
    legs: Vec<LegIdentity<'p>>,
    skipped: &'p [Skipped],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reused: Vec<ReusedIdentity<'p>>,
}

#[derive(Serialize)]
struct ItemIdentity<'p> {
    id: &'p ItemId,
    r#loop: &'p LoopName,
    params: &'p BTreeMap<VarName, String>,
    scope: &'p [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    proves: Option<&'p Line>,
}

impl<'p> ItemIdentity<'p> {
    fn of(item: &'p Item) -> Self {
        // Without `..`, so that a new field has to be put into the identity or left out on purpose.
        let Item { id, r#loop, params, scope, proves, weight_ms: _, weight_from: _ } = item;
        Self { id, r#loop, params, scope, proves: proves.as_ref() }
    }
}

#[derive(Serialize)]
struct ReusedIdentity<'p> {
    item: ItemIdentity<'p>,
    proof: &'p ReusedRun,
}

#[derive(Serialize)]
struct LegIdentity<'p> {
    key: &'p LegKey,
    items: &'p [ItemId],
}

/// What a plan is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanParts {
    /// The commit that every leg has to check out.
    pub commit: ObjectId,
    /// How the tree differs from it.
    pub differs: Vec<TreeEntry>,
    /// When the plan is made.
    pub created: Timestamp,
    /// The loops of its items.
    pub loops: Vec<FanoutLoop>,
    /// What runs.
    pub items: Vec<Item>,
    /// The jobs.
    pub legs: Vec<Leg>,
    /// What need not run.
    pub skipped: Vec<Skipped>,
    /// What an earlier run stands for.
    pub reused: Vec<ReusedItem>,
    /// Why there are no items, if there are none.
    pub reason: Option<Line>,
}

impl Plan {
    /// Makes a plan, with its id.
    pub fn of(parts: PlanParts) -> Self {
        let PlanParts { commit, differs, created, loops, items, legs, skipped, reused, reason } = parts;
        // A placeholder: the identity does not cover itself.
        let plan_id = Sum::of(&[]);
        let schema = SCHEMA;
        let plan =
            Self { schema, plan_id, commit, differs, created, loops, items, legs, skipped, reused, reason };
        Self { plan_id: plan.identity(), ..plan }
    }

    /// Reads a plan and checks it.
    ///
    /// # Errors
    /// It is not a plan, is one of another version, contradicts itself, or is not the one that its id names.
    pub fn parse(text: &[u8]) -> Result<Self, PlanError> {
        /// What every version says.
        #[derive(Deserialize)]
        struct PlanVersion {
            schema: u32,
        }
        // Read by itself: a plan of another version may have other fields.
        let PlanVersion { schema } = serde_json::from_slice(text)?;
        if schema != SCHEMA {
            return Err(PlanError::Schema { found: schema });
        }
        let plan: Self = serde_json::from_slice(text)?;
        // Whatever its id says: that is not a signature, and can be computed again after an edit.
        plan.check()?;
        let computed = plan.identity();
        if computed != plan.plan_id {
            return Err(PlanError::Edited { written: plan.plan_id, computed });
        }
        Ok(plan)
    }

    /// Returns the SHA-256 of the RFC 8785 form of everything that the plan decides. With other weights, the same legs
    /// are the same plan.
    pub fn identity(&self) -> Sum {
        let items = self.items.iter().map(ItemIdentity::of);
        let reused = self.reused.iter();
        let reused =
            reused.map(|ReusedItem { item, proof }| ReusedIdentity { item: ItemIdentity::of(item), proof });
        let legs = self.legs.iter().map(|Leg { key, items, .. }| LegIdentity { key, items });
        let identity = Identity {
            schema: self.schema,
            commit: &self.commit,
            differs: &self.differs,
            loops: &self.loops,
            items: items.collect(),
            legs: legs.collect(),
            skipped: &self.skipped,
            reused: reused.collect(),
        };
        let text = serde_json_canonicalizer::to_vec(&identity);
        Sum::of(&text.expect("texts and small numbers have a canonical form"))
    }

    /// Returns the plan as it is written to a file.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a plan is JSON");
        text.push('\n');
        text
    }

    /// Returns what names of artifacts have in the place of a loop.
    pub fn stem(&self) -> String {
        stem(&self.loops)
    }

    /// Returns the leg with this key.
    pub fn leg(&self, key: &str) -> Option<&Leg> {
        self.legs.iter().find(|leg| leg.key.as_str() == key)
    }

    /// Returns the item with this id.
    pub fn item(&self, id: &ItemId) -> Option<&Item> {
        self.items.iter().find(|item| item.id == *id)
    }

    /// Returns every item that is verified by a run: one of this plan, or an earlier one.
    pub fn verifiable(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().chain(self.reused.iter().map(|reused| &reused.item))
    }

    /// Returns the earlier run that stands for an item.
    pub fn reused(&self, id: &ItemId) -> Option<&ReusedItem> {
        self.reused.iter().find(|reused| reused.item.id == *id)
    }

    /// Returns how long the runs took, in milliseconds, that need not be made.
    pub fn saved_ms(&self) -> u64 {
        self.reused.iter().fold(0, |sum, reused| sum.saturating_add(reused.proof.duration_ms))
    }

    /// Returns the leg on which an item runs.
    pub fn leg_of(&self, id: &ItemId) -> Option<&Leg> {
        self.legs.iter().find(|leg| leg.items.contains(id))
    }

    /// Returns a loop of the plan.
    pub fn planned(&self, name: &LoopName) -> Option<&FanoutLoop> {
        self.loops.iter().find(|planned| planned.name == *name)
    }

    /// Returns what people call a leg: its items, as far as there is room.
    pub fn title(&self, leg: &Leg) -> String {
        const ROOM: usize = 80;
        let mut title = String::new();
        // A leg may have thousands, of which a few are shown.
        for (index, item) in leg.items.iter().filter_map(|id| self.item(id)).enumerate() {
            let label = item.label();
            let longer = title.chars().count() + 1 + label.chars().count();
            if index > 0 && longer > ROOM {
                return format!("{title} +{}", leg.items.len() - index);
            }
            if index > 0 {
                title.push(' ');
            }
            title.push_str(&label);
        }
        title
    }

    /// Checks what the types do not.
    fn check(&self) -> Result<(), PlanError> {
        let wrong = |what: String| Err(PlanError::Contradiction(what));
        let count = self.items.len() + self.skipped.len() + self.reused.len();
        if count > MOST_ITEMS {
            return Err(PlanError::TooMany(count));
        }
        let mut loops = BTreeSet::new();
        if let Some(twice) = self.loops.iter().find(|planned| !loops.insert(&planned.name)) {
            return wrong(format!("the loop `{}` is listed twice", twice.name));
        }
        let mut ids = BTreeSet::new();
        let all =
            self.verifiable().map(|item| &item.id).chain(self.skipped.iter().map(|skipped| &skipped.id));
        if let Some(twice) = all.into_iter().find(|id| !ids.insert(*id)) {
            return wrong(format!("two items have the id `{twice}`"));
        }
        if let Some(item) = self.verifiable().find(|item| !loops.contains(&item.r#loop)) {
            return wrong(format!(
                "the item `{}` runs the loop `{}`, which is not listed",
                item.id, item.r#loop
            ));
        }
        // No program can be given such a text: an argument and a path end at a NUL byte.
        let is_odd = |text: &String| text.contains('\0');
        if let Some(odd) = self.verifiable().find(|item| item.params.values().chain(&item.scope).any(is_odd))
        {
            return wrong(format!("a value or a scope of the item `{}` has a NUL byte", odd.id));
        }
        // People follow the link, so that it must not be a `javascript:` one. A run without a check has proved nothing.
        let is_proof = |proof: &ReusedRun| {
            let is_address = proof.link.as_ref().is_none_or(|link| link.starts_with("https://"));
            is_address && !proof.checks.is_empty() && !proof.has_uncommitted
        };
        if let Some(odd) = self.reused.iter().find(|reused| !is_proof(&reused.proof)) {
            return wrong(format!("no run stands for the item `{}`", odd.item.id));
        }
        let mut waiting: BTreeSet<&ItemId> = self.items.iter().map(|item| &item.id).collect();
        let mut keys = BTreeSet::new();
        for leg in &self.legs {
            if !keys.insert(&leg.key) {
                return wrong(format!("two legs have the key `{}`", leg.key));
            }
            if leg.items.is_empty() {
                return wrong(format!("the leg `{}` has no items", leg.key));
            }
            if let Some(odd) = leg.items.iter().find(|id| !waiting.remove(*id)) {
                return wrong(format!(
                    "the item `{odd}` of the leg `{}` is unknown, or on another leg too",
                    leg.key
                ));
            }
        }
        match waiting.first() {
            None => Ok(()),
            Some(first) => {
                wrong(format!("{} on no leg, among them `{first}`", plural(waiting.len() as u64, "item")))
            }
        }
    }
}

impl Item {
    /// Returns what people call the item beside others: its path, its values, or its loop.
    pub fn label(&self) -> String {
        let values: Vec<&str> = self.params.values().map(String::as_str).collect();
        let label = if values.is_empty() { self.r#loop.to_string() } else { values.join(",") };
        crate::base::text::one_line(&label, 40)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::sum::Sum;

    fn plan() -> Plan {
        let item = |id: &str, value: &str| Item {
            id: ItemId::parse(id).unwrap(),
            r#loop: LoopName::parse("tidy").unwrap(),
            params: [(VarName::parse("p").unwrap(), value.to_owned())].into(),
            scope: vec![format!("src/{value}")],
            weight_ms: 1000,
            weight_from: WeightFrom::Default,
            proves: None,
        };
        let leg = |key: &str, items: &[&str]| Leg {
            key: LegKey::parse(key).unwrap(),
            items: items.iter().map(|id| ItemId::parse(id).unwrap()).collect(),
            estimate_ms: 1000,
        };
        let skipped = Skipped { id: ItemId::parse("d").unwrap(), reason: Line::of("nothing changed") };
        Plan::of(PlanParts {
            commit: ObjectId::parse(&"a".repeat(40)).unwrap(),
            differs: Vec::new(),
            created: Timestamp::from_millis(0),
            loops: vec![FanoutLoop {
                name: LoopName::parse("tidy").unwrap(),
                definition_sha256: Sum::of(b"tidy"),
                file: None,
            }],
            items: vec![item("a", "api"), item("b", "web ${{ x }}\n\"'"), item("c", "é")],
            legs: vec![leg("l01", &["a", "c"]), leg("l02", &["b"])],
            skipped: vec![skipped],
            reused: Vec::new(),
            reason: None,
        })
    }

    /// Edits the plan, and gives it the id of what it now says where asked to.
    fn edited(edit: impl FnOnce(&mut Value), again: bool) -> Result<Plan, PlanError> {
        let mut value = serde_json::to_value(plan()).unwrap();
        edit(&mut value);
        if again && let Ok(plan) = serde_json::from_value::<Plan>(value.clone()) {
            value["plan_id"] = json!(plan.identity());
        }
        Plan::parse(value.to_string().as_bytes())
    }

    #[test]
    fn what_is_written_is_read() {
        let plan = plan();
        assert_eq!(Plan::parse(plan.to_text().as_bytes()).unwrap(), plan);
        assert_eq!(plan.title(&plan.legs[0]), "api é");
        assert_eq!(plan.title(&plan.legs[1]), "web ${{ x }}…");
    }

    #[test]
    fn the_id_is_that_of_a_known_text() {
        // Everything that the id covers, as RFC 8785 writes it: keys in order, no blanks, `é` as it is.
        let sum = Sum::of(b"tidy");
        let text = format!(
            concat!(
                r#"{{"commit":"{commit}","items":["#,
                r#"{{"id":"a","loop":"tidy","params":{{"p":"api"}},"scope":["src/api"]}},"#,
                r#"{{"id":"b","loop":"tidy","params":{{"p":"web ${{{{ x }}}}\n\"'"}},"scope":["src/web ${{{{ x }}}}\n\"'"]}},"#,
                r#"{{"id":"c","loop":"tidy","params":{{"p":"é"}},"scope":["src/é"]}}],"#,
                r#""legs":[{{"items":["a","c"],"key":"l01"}},{{"items":["b"],"key":"l02"}}],"#,
                r#""loops":[{{"definition_sha256":"{sum}","name":"tidy"}}],"schema":1,"#,
                r#""skipped":[{{"id":"d","reason":"nothing changed"}}]}}"#,
            ),
            commit = "a".repeat(40),
            sum = sum,
        );
        assert_eq!(plan().plan_id, Sum::of(text.as_bytes()), "{text}");
    }

    #[test]
    fn weights_and_times_are_no_part_of_the_id() {
        let of = |edit: &dyn Fn(&mut Value)| edited(|value| edit(value), false).map(|plan| plan.plan_id);
        assert_eq!(of(&|value| value["items"][0]["weight_ms"] = json!(7)).unwrap(), plan().plan_id);
        assert_eq!(of(&|value| value["items"][0]["weight_from"] = json!("runs")).unwrap(), plan().plan_id);
        assert_eq!(of(&|value| value["legs"][0]["estimate_ms"] = json!(7)).unwrap(), plan().plan_id);
        assert_eq!(
            of(&|value| value["created"] = json!("2020-01-01T00:00:00.000Z")).unwrap(),
            plan().plan_id
        );
    }

    #[test]
    fn an_edited_plan_is_refused() {
        let edits: &[&dyn Fn(&mut Value)] = &[
            &|value| value["commit"] = json!("b".repeat(40)),
            &|value| value["loops"][0]["definition_sha256"] = json!(Sum::of(b"other")),
            &|value| value["items"][0]["params"]["p"] = json!("other"),
            &|value| value["items"][0]["scope"] = json!(["."]),
            &|value| value["legs"][0]["key"] = json!("l09"),
            &|value| value["skipped"] = json!([]),
            &|value| value["skipped"][0]["reason"] = json!("other"),
        ];
        for (index, edit) in edits.iter().enumerate() {
            let found = edited(|value| edit(value), false);
            assert!(matches!(found, Err(PlanError::Edited { .. })), "{index}: {found:?}");
        }
    }

    #[test]
    fn a_key_that_means_nothing_is_refused_wherever_it_stands() {
        // Somebody may believe that items are confined, or that a loop is judged, because the plan says so.
        for key in ["sandbox", "broker", "judges", "approvers", "reuse", "snadbox"] {
            for place in ["", "/loops/0", "/items/0", "/legs/0", "/skipped/0"] {
                let found =
                    edited(|value| value.pointer_mut(place).unwrap()[key] = json!("workspace"), false);
                let why = found.map(|_| ()).unwrap_err().to_string();
                assert!(why.contains(&format!("unknown field `{key}`")), "{place}: {why}");
            }
        }
    }

    #[track_caller]
    fn contradicts(edit: impl FnOnce(&mut Value), expected: &str) {
        let found = edited(edit, true).unwrap_err().to_string();
        assert!(found.ends_with(expected), "{found}");
    }

    #[test]
    fn what_contradicts_itself_is_refused_whatever_its_id() {
        contradicts(|value| value["items"][1]["id"] = json!("a"), "two items have the id `a`");
        contradicts(|value| value["skipped"][0]["id"] = json!("a"), "two items have the id `a`");
        contradicts(|value| value["legs"][1]["key"] = json!("l01"), "two legs have the key `l01`");
        contradicts(|value| value["legs"][1]["items"] = json!([]), "the leg `l02` has no items");
        contradicts(
            |value| drop(value["legs"].as_array_mut().unwrap().pop()),
            "1 item on no leg, among them `b`",
        );
        contradicts(
            |value| value["legs"][1]["items"] = json!(["b", "a"]),
            "the item `a` of the leg `l02` is unknown, or on another leg too",
        );
        contradicts(
            |value| value["items"][0]["loop"] = json!("other"),
            "the item `a` runs the loop `other`, which is not listed",
        );
        contradicts(
            |value| value["items"][0]["scope"] = json!(["a\0b"]),
            "a value or a scope of the item `a` has a NUL byte",
        );
        let twice = |value: &mut Value| {
            let first = value["loops"][0].clone();
            value["loops"].as_array_mut().unwrap().push(first);
        };
        contradicts(twice, "the loop `tidy` is listed twice");
    }

    #[test]
    fn what_is_no_plan_of_this_version_is_refused() {
        assert!(matches!(Plan::parse(b""), Err(PlanError::Form(_))));
        assert!(matches!(Plan::parse(b"[]"), Err(PlanError::Form(_))));
        assert!(matches!(Plan::parse(br#"{"schema": 2}"#), Err(PlanError::Schema { found: 2 })));
        assert!(matches!(
            edited(|value| value["items"][0]["id"] = json!("../x"), true),
            Err(PlanError::Form(_))
        ));
        assert!(matches!(
            edited(|value| value["commit"] = json!("--output=x"), true),
            Err(PlanError::Form(_))
        ));
        let many = |value: &mut Value| {
            let skipped = (0..=MOST_ITEMS).map(|n| json!({"id": format!("s{n}"), "reason": "x"}));
            value["skipped"] = skipped.collect();
        };
        assert!(matches!(edited(many, true), Err(PlanError::TooMany(_))));
    }
}
