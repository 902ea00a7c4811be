//! The jobs as an Indexed Job of Kubernetes: a `List` of a `ConfigMap` with the plan and the `Job`, for `kubectl apply -f -`.
//!
//! Each pod clones the repository from a volume that all read, and leaves its bundles on a volume that outlives it: a pod
//! that is started again for the same leg goes on with what the first one handed off.

use serde_json::{Value, json};

use crate::base::text::head;

use super::format::{Fleet, Format, TooMuch};

/// The most bytes of a `ConfigMap`, its names among them.
const BYTES: usize = 1 << 20;

/// What the names and the metadata take at most.
const AROUND: usize = 4096;

/// The most indexes of a Job.
const JOBS: usize = 100_000;

pub(super) struct Kubernetes;

impl Format for Kubernetes {
    fn name(&self) -> &'static str {
        "k8s"
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<String, TooMuch> {
        fleet.at_most(JOBS, "plan fewer legs with `--legs`")?;
        let plan = fleet.plan.to_text();
        if plan.len() + AROUND > BYTES {
            return Err(TooMuch {
                what: "bytes of the plan in a ConfigMap",
                found: plan.len(),
                most: BYTES - AROUND,
                advice: "make several plans, each of a part of the items",
            });
        }
        let id = head(&fleet.plan.plan_id.to_string(), 12).to_owned();
        let list = json!({
            "apiVersion": "v1",
            "kind": "List",
            "items": [config_map(&id, &plan), job(&id, fleet)],
        });
        Ok(serde_json::to_string_pretty(&list).unwrap_or_default())
    }
}

fn metadata(id: &str) -> Value {
    json!({
        "name": format!("ll-loop-{id}"),
        "labels": {"app.kubernetes.io/name": "ll-loop", "app.kubernetes.io/instance": id},
    })
}

fn config_map(id: &str, plan: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(id), "data": {"plan.json": plan}})
}

fn job(id: &str, fleet: &Fleet<'_>) -> Value {
    let place = &fleet.place;
    let image = place
        .image
        .clone()
        .unwrap_or_else(|| format!("ghcr.io/little-loops/ll-loop:v{}", env!("CARGO_PKG_VERSION")));
    let claim =
        |claim: &Option<String>, otherwise: &str| claim.clone().unwrap_or_else(|| otherwise.to_owned());
    // The volume belongs to another user than the one of the container.
    let env = json!([
        {"name": "CI", "value": "true"},
        {"name": "GIT_CONFIG_COUNT", "value": "1"},
        {"name": "GIT_CONFIG_KEY_0", "value": "safe.directory"},
        {"name": "GIT_CONFIG_VALUE_0", "value": "*"},
    ]);
    let clone = format!(
        "git clone --quiet --no-checkout /repository /checkout && git -C /checkout checkout --quiet --detach {}",
        fleet.plan.commit
    );
    let legs = fleet.jobs.len();
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(id),
        "spec": {
            "completionMode": "Indexed",
            "completions": legs,
            "parallelism": legs,
            "backoffLimitPerIndex": 1,
            "podFailurePolicy": {"rules": [
                // The loop said no, or has to be looked at: another pod would say the same.
                {"action": "FailIndex", "onExitCodes": {"containerName": "leg", "operator": "In", "values": [1, 2, 3, 4, 5, 6]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "ll-loop", "app.kubernetes.io/instance": id}},
                "spec": {
                    "restartPolicy": "Never",
                    "initContainers": [{
                        "name": "checkout",
                        "image": image.clone(),
                        "command": ["sh", "-c", clone],
                        "env": env.clone(),
                        "volumeMounts": [
                            {"name": "repository", "mountPath": "/repository", "readOnly": true},
                            {"name": "checkout", "mountPath": "/checkout"},
                        ],
                    }],
                    "containers": [{
                        "name": "leg",
                        "image": image,
                        "workingDir": "/checkout",
                        "command": [
                            "ll-loop", "run", "--ci", "--plan", "/plan/plan.json", "--leg", "index:$(JOB_COMPLETION_INDEX)",
                            "--report-dir", format!("/bundles/{id}/$(JOB_COMPLETION_INDEX)"),
                        ],
                        "env": env,
                        "volumeMounts": [
                            {"name": "plan", "mountPath": "/plan", "readOnly": true},
                            {"name": "checkout", "mountPath": "/checkout"},
                            {"name": "bundles", "mountPath": "/bundles"},
                        ],
                    }],
                    "volumes": [
                        {"name": "plan", "configMap": {"name": format!("ll-loop-{id}")}},
                        {"name": "checkout", "emptyDir": {}},
                        {"name": "repository", "persistentVolumeClaim": {"claimName": claim(&place.repo_claim, "ll-repository"), "readOnly": true}},
                        {"name": "bundles", "persistentVolumeClaim": {"claimName": claim(&place.claim, "ll-bundles")}},
                    ],
                },
            },
        },
    })
}
