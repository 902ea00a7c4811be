//! The jobs as an Indexed Job of Kubernetes, and a `ConfigMap` with the plan.

use serde_json::{Value, json};

use super::job_format::{Fleet, MatrixFormat, TooMuch, pretty};
use crate::base::text::head;

/// The most bytes of the data of a `ConfigMap`.
const BYTES: usize = 1024 * 1024;

/// The most characters of a loop in a name. A pod is called by its job and its index, in at most 63.
const NAME: usize = 24;

/// The image that releases of this version come with.
const IMAGE: &str = concat!("ghcr.io/little-loops/ll-loop:v", env!("CARGO_PKG_VERSION"));

/// Where the checkout is. Not the top of a volume, which belongs to whoever made it.
const CHECKOUT: &str = "/workspace/checkout";

/// Where temporary files are: an administrator may have made everything but the volumes read-only.
const TEMPORARY: &str = "/workspace/tmp";

/// The container that runs the leg.
const CONTAINER: &str = "leg";

/// The exit codes by which a leg has said what it had to say: it would say the same again.
const FINAL: [u8; 6] = [1, 2, 3, 4, 5, 6];

pub(super) struct Kubernetes;

impl MatrixFormat for Kubernetes {
    fn name(&self) -> &'static str {
        "k8s"
    }

    fn has_image(&self) -> bool {
        true
    }

    fn has_volumes(&self) -> bool {
        true
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch> {
        let plan = serde_json::to_string(fleet.plan).expect("a plan is JSON");
        if plan.len() > BYTES {
            let (what, found) = ("bytes of the plan in a ConfigMap", plan.len());
            let advice = "make several plans, each of some of the loops or of the values";
            return Err(TooMuch { what, found, most: BYTES, advice });
        }
        if fleet.jobs.is_empty() {
            return Ok(None);
        }
        let name = format!("ll-loop-{}-{}", dns(&fleet.plan.stem()), fleet.id());
        let labels = json!({ "app.kubernetes.io/name": "ll-loop", "app.kubernetes.io/instance": name });
        let metadata = json!({ "name": name, "labels": labels });
        let config = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "immutable": true,
            "data": { "plan.json": plan },
        });
        let legs = fleet.jobs.len();
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {
                "completionMode": "Indexed",
                "completions": legs,
                "parallelism": legs,
                "backoffLimitPerIndex": 1,
                "podFailurePolicy": { "rules": [
                    {
                        "action": "FailIndex",
                        "onExitCodes": { "containerName": CONTAINER, "operator": "In", "values": FINAL },
                    },
                    {
                        // A pod that the cluster takes away has not failed.
                        "action": "Ignore",
                        "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
                    },
                ] },
                "template": { "metadata": { "labels": labels }, "spec": pod(fleet, &name) },
            },
        });
        Ok(Some(pretty(&json!({ "apiVersion": "v1", "kind": "List", "items": [config, job] }))))
    }
}

/// Each pod works on a clone: in one checkout they would see each other's changes, and each other's claims with the numbers
/// of processes that are not there.
fn pod(fleet: &Fleet<'_>, name: &str) -> Value {
    let place = &fleet.place;
    let image = place.image.as_deref().unwrap_or(IMAGE);
    let fixed = ["run", "--plan", "/plan/plan.json", "--leg", "index:$(JOB_COMPLETION_INDEX)"];
    let fixed = fixed.into_iter().chain(["--report-dir", "/reports", "--ci"]).map(str::to_owned);
    // Kubernetes puts variables in for `$(NAME)`.
    let more = place.arguments.iter().map(|argument| argument.replace('$', "$$"));
    // The volume may belong to anybody. Of what a shell's environment says, git hands on to its other end of a clone only
    // the name of a file.
    let clone = format!(
        "mkdir -p {TEMPORARY} && git config --global safe.directory '*' && \
         git clone --quiet --no-checkout /repo {CHECKOUT} && git -C {CHECKOUT} checkout --quiet --detach {}",
        fleet.plan.commit
    );
    json!({
        // The one policy that Kubernetes takes together with a `podFailurePolicy`.
        "restartPolicy": "Never",
        // What loops run has no business with the cluster.
        "automountServiceAccountToken": false,
        "initContainers": [{
            "name": "checkout",
            "image": image,
            "command": ["sh", "-c", clone],
            "env": [{ "name": "GIT_CONFIG_GLOBAL", "value": "/workspace/gitconfig" }],
            "volumeMounts": [
                { "name": "repo", "mountPath": "/repo", "readOnly": true },
                { "name": "work", "mountPath": "/workspace" },
            ],
        }],
        "containers": [{
            "name": CONTAINER,
            "image": image,
            "command": ["ll-loop"],
            "args": fixed.chain(more).collect::<Vec<_>>(),
            "workingDir": format!("{CHECKOUT}/{}", place.directory),
            "env": [{ "name": "TMPDIR", "value": TEMPORARY }],
            "volumeMounts": [
                { "name": "plan", "mountPath": "/plan", "readOnly": true },
                { "name": "work", "mountPath": "/workspace" },
                // A pod that takes the place of another one finds what that one had handed off, and nothing of others.
                {
                    "name": "reports",
                    "mountPath": "/reports",
                    "subPathExpr": format!("{name}/$(JOB_COMPLETION_INDEX)"),
                },
            ],
        }],
        "volumes": [
            { "name": "plan", "configMap": { "name": name } },
            { "name": "work", "emptyDir": {} },
            { "name": "repo", "persistentVolumeClaim": { "claimName": place.repo_claim, "readOnly": true } },
            { "name": "reports", "persistentVolumeClaim": { "claimName": place.claim } },
        ],
    })
}

/// Returns as much of a text as a name of RFC 1123 can hold, with characters at its ends that may stand there.
fn dns(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).collect();
    match head(text.trim_matches('-'), NAME).trim_matches('-') {
        "" => "plan".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, fleet, plan_of, plan_of_legs};
    use super::*;
    use crate::fanout::item_plan::Plan;

    #[track_caller]
    fn objects(fleet: &Fleet<'_>) -> Value {
        serde_json::from_str(&Kubernetes.text(fleet).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn the_config_map_holds_the_plan_and_the_job_counts_its_legs() {
        let plan = plan_of(HOSTILE);
        let objects = objects(&fleet(&plan));
        let held = objects["items"][0]["data"]["plan.json"].as_str().unwrap();
        assert_eq!(Plan::parse(held.as_bytes()).unwrap(), plan);
        let spec = &objects["items"][1]["spec"];
        assert_eq!(spec["completions"], plan.legs.len());
        assert_eq!(spec["parallelism"], plan.legs.len());
        assert_eq!(spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"], json!([1, 2, 3, 4, 5, 6]));
        assert_eq!(spec["template"]["spec"]["automountServiceAccountToken"], false);
        let rest = objects["items"][1].to_string();
        assert!(!rest.contains("token") && !rest.contains("pwned"), "{rest}");
    }

    #[test]
    fn names_are_names_of_hosts_and_of_one_plan() {
        for (text, expected) in [
            ("tidy", "tidy"),
            ("-Web__Test.", "web--test"),
            ("é", "plan"),
            ("a2345678901234567890123-b", "a2345678901234567890123"),
        ] {
            assert_eq!(dns(text), expected, "{text}");
        }
        let (one, other) = (plan_of(&["api"]), plan_of(&["web"]));
        let name = |plan: &Plan| objects(&fleet(plan))["items"][1]["metadata"]["name"].clone();
        assert_ne!(name(&one), name(&other));
        assert!(name(&one).as_str().unwrap().len() + "-9999".len() <= 63);
    }

    #[test]
    fn arguments_are_not_expanded() {
        let plan = plan_of(&["api"]);
        let mut fleet = fleet(&plan);
        fleet.place.arguments = vec!["a=$(HOME) $$".to_owned()];
        let objects = objects(&fleet);
        let arguments = &objects["items"][1]["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(arguments.as_array().unwrap().last().unwrap(), "a=$$(HOME) $$$$");
    }

    #[test]
    fn a_plan_larger_than_a_config_map_is_refused() {
        let error = Kubernetes.text(&fleet(&plan_of_legs(10_000))).unwrap_err();
        assert!(error.found > error.most && error.most == 1_048_576, "{error}");
        assert_eq!(Kubernetes.text(&fleet(&plan_of(&[]))), Ok(None));
    }
}
