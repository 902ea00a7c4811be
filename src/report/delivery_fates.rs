//! What became of what runs delivered: whether people took it, changed it first, or put it back, and what each fix that they took
//! has cost. What is unknown is not counted as anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::text::{dollars, one_line, plural};
use crate::base::time::Timestamp;
use crate::evaluate::model::read_price;

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// For how long after a merge it counts that a fix was put back.
pub const REVERTED_WITHIN: Duration = Duration::from_hours(14 * 24);

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryFate {
    /// It is still open.
    Open,
    /// It was merged as it was delivered.
    Merged,
    /// People changed it, and merged it.
    Edited,
    /// It was merged, and put back within two weeks.
    Reverted,
    /// It was closed without a merge.
    Closed,
    /// It cannot be told.
    Unknown,
}

impl DeliveryFate {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Merged, Self::Edited, Self::Reverted, Self::Open, Self::Closed, Self::Unknown];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Edited => "edited and merged",
            Self::Reverted => "merged and reverted",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }

    /// Returns its word for programs.
    pub fn id(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Edited => "edited",
            Self::Reverted => "reverted",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }

    /// Tells whether people kept it.
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Merged | Self::Edited)
    }
}

/// A delivery, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownDelivery {
    /// The number of the pull request.
    pub number: u64,
    /// Its page.
    pub url: String,
    /// The run whose fix it is.
    pub run: String,
    /// The loop, where something says it.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub loop_name: Option<String>,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was merged or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What became of it.
    pub fate: DeliveryFate,
    /// What the models of the run took, in US dollars, where the run is known and all of its calls had a price.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_price")]
    pub cost_usd: Option<f64>,
    /// The model that it asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The deliveries of a repository, as they were at some moment: what `ll-loop deliveries --json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryList {
    /// The version of the format.
    pub schema: u32,
    /// `OWNER/NAME` of the repository.
    pub repository: String,
    /// When the server was asked.
    pub at: Timestamp,
    /// Whether there are more, which were not asked for.
    #[serde(default)]
    pub is_cut: bool,
    /// The deliveries, the latest first.
    pub deliveries: Vec<KnownDelivery>,
}

/// What the fixes of a loop with a model came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FixCost {
    /// The loop; nothing where it is not known.
    #[serde(rename = "loop")]
    pub loop_name: Option<String>,
    /// The model; nothing where none was asked, or none is known.
    pub model: Option<String>,
    /// How many were delivered.
    pub delivered: u32,
    /// How many of them people kept.
    pub kept: u32,
    /// How many runs of them have a known cost.
    pub priced: u32,
    /// What these runs took, in US dollars.
    pub cost_usd: f64,
}

impl FixCost {
    /// Adds a delivery.
    pub fn add(&mut self, delivery: &KnownDelivery) {
        self.delivered += 1;
        self.kept += u32::from(delivery.fate.is_kept());
        if let Some(cost) = delivery.cost_usd {
            self.priced += 1;
            // Infinity cannot be written as JSON.
            self.cost_usd = (self.cost_usd + cost).min(f64::MAX);
        }
    }

    /// Adds deliveries up by loop and model.
    pub fn by_loop_and_model(deliveries: &[KnownDelivery]) -> Vec<Self> {
        let mut all: BTreeMap<(Option<&str>, Option<&str>), Self> = BTreeMap::new();
        for delivery in deliveries {
            let (loop_name, model) = (delivery.loop_name.as_deref(), delivery.model.as_deref());
            let new = || Self {
                loop_name: loop_name.map(str::to_owned),
                model: model.map(str::to_owned),
                ..Self::default()
            };
            all.entry((loop_name, model)).or_insert_with(new).add(delivery);
        }
        all.into_values().collect()
    }

    /// Writes it for programs.
    pub fn json(&self) -> Value {
        let mut out = json!(self);
        out["per_kept_fix_usd"] = json!(self.per_kept_fix());
        out
    }

    /// Says what a fix has cost that people kept, or why that is not known.
    pub fn price(&self) -> String {
        let unpriced = u64::from(self.delivered - self.priced);
        match self.per_kept_fix() {
            Some(usd) => format!("{} for each fix that was kept", dollars(usd)),
            None if self.kept == 0 => "none was kept".to_owned(),
            None => format!("the cost of {} is not known", plural(unpriced, "run")),
        }
    }

    /// Returns what a fix has cost that people kept, in US dollars: what all took, those that were for nothing as well. Nothing
    /// where one of them has no known cost, or none was kept.
    pub fn per_kept_fix(&self) -> Option<f64> {
        (self.kept > 0 && self.priced == self.delivered).then(|| self.cost_usd / f64::from(self.kept))
    }
}

impl DeliveryList {
    /// Counts the deliveries by what became of them.
    pub fn count(&self, fate: DeliveryFate) -> usize {
        self.deliveries.iter().filter(|delivery| delivery.fate == fate).count()
    }

    /// Adds up what fixes came to, by loop and model.
    pub fn costs(&self) -> Vec<FixCost> {
        FixCost::by_loop_and_model(&self.deliveries)
    }

    /// Writes it for programs: what [`Deserialize`] reads, with the costs added up.
    pub fn json(&self) -> Value {
        let mut out = json!(self);
        out["costs"] = self.costs().iter().map(FixCost::json).collect();
        out
    }

    /// Writes it for people.
    pub fn text(&self) -> String {
        let count = plural(self.deliveries.len() as u64, "pull request");
        let mut out =
            format!("{count} of {}{}\n", self.repository, if self.is_cut { ", the latest" } else { "" });
        let counts = DeliveryFate::ALL.map(|fate| (fate, self.count(fate)));
        for (fate, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let _ = writeln!(out, "  {count:>4}  {}", fate.word());
        }
        for delivery in &self.deliveries {
            let name = delivery.loop_name.as_deref().unwrap_or("?");
            let (word, name) = (delivery.fate.word(), one_line(name, 60));
            let _ = write!(out, "#{}  {name}  {word}", delivery.number);
            if let Some(usd) = delivery.cost_usd {
                let _ = write!(out, ", {}", dollars(usd));
            }
            let _ = writeln!(out, "  {}", one_line(&delivery.url, 200));
        }
        for row in self.costs() {
            let name = one_line(row.loop_name.as_deref().unwrap_or("?"), 60);
            out.push_str(&name);
            if let Some(model) = &row.model {
                let _ = write!(out, " with {}", one_line(model, 60));
            }
            let _ = writeln!(out, ": {} of {} kept, {}", row.kept, row.delivered, row.price());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(number: u64, fate: DeliveryFate, cost_usd: Option<f64>, model: &str) -> KnownDelivery {
        KnownDelivery {
            number,
            url: format!("https://example.com/{number}"),
            run: "tidy-1".to_owned(),
            loop_name: Some("tidy".to_owned()),
            opened: Timestamp::from_millis(0),
            ended: None,
            fate,
            cost_usd,
            model: Some(model.to_owned()),
        }
    }

    #[test]
    fn a_kept_fix_pays_for_those_that_were_for_nothing() {
        let deliveries = vec![
            delivery(1, DeliveryFate::Merged, Some(1.0), "opus"),
            delivery(2, DeliveryFate::Reverted, Some(0.5), "opus"),
            delivery(3, DeliveryFate::Edited, Some(0.5), "opus"),
            delivery(4, DeliveryFate::Merged, None, "haiku"),
            delivery(5, DeliveryFate::Closed, Some(1.0), "sonnet"),
        ];
        let (repository, at) = ("octo/site".to_owned(), Timestamp::from_millis(0));
        let list = DeliveryList { schema: SCHEMA, repository, at, is_cut: false, deliveries };
        let costs: Vec<_> = list
            .costs()
            .iter()
            .map(|row| (row.model.clone().unwrap(), row.kept, row.per_kept_fix()))
            .collect();
        assert_eq!(
            costs,
            [
                ("haiku".to_owned(), 1, None),
                ("opus".to_owned(), 2, Some(1.0)),
                ("sonnet".to_owned(), 0, None)
            ]
        );
        let text = list.text();
        for line in [
            "5 pull requests of octo/site",
            "tidy with opus: 2 of 3 kept, $1.00 for each fix that was kept",
            "tidy with haiku: 1 of 1 kept, the cost of 1 run is not known",
            "tidy with sonnet: 0 of 1 kept, none was kept",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let written = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<DeliveryList>(&written).unwrap(), list);
    }
}
