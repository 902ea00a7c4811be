"""What must hold for the action files themselves."""

import re
import subprocess
import unittest

import yaml

from runner import ROOT

ACTIONS = ["action.yml", "deliver/action.yml", "docker/action.yml", "merge/action.yml", "plan/action.yml", "setup/action.yml"]
# The contract of the program: what it writes to GITHUB_OUTPUT.
OUTPUTS = {
    "outcome", "exit-code", "verified", "reused", "reused-from", "final-state", "iterations", "steps", "duration-ms", "run-id", "handoff",
    "awaiting", "continuation", "key", "artifact-name", "resume-from", "report-dir", "junit", "summary", "cost-usd", "changed-files", "patch",
}  # fmt: skip


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


def run_texts():
    for name in ACTIONS:
        for step in load(name)["runs"].get("steps", []):
            if "run" in step:
                yield name, step["run"]
    for workflow in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(workflow.read_text())["jobs"].values():
            for step in job.get("steps", []):
                if "run" in step:
                    yield workflow.name, step["run"]


class Definitions(unittest.TestCase):
    def test_no_expression_stands_in_the_text_of_a_script(self):
        for name, text in run_texts():
            self.assertNotIn("${{", text, name)

    def test_every_script_text_passes_shellcheck(self):
        for name, text in run_texts():
            with self.subTest(name=name, text=text):
                checked = subprocess.run(
                    ["shellcheck", "--shell=bash", "-"], input=text, text=True, capture_output=True
                )
                self.assertEqual(checked.stdout, "")

    def test_no_shell_step_of_an_action_trusts_the_environment(self):
        for name in ACTIONS:
            for step in load(name)["runs"].get("steps", []):
                if "run" in step:
                    self.assertEqual(step["shell"], "bash --noprofile --norc -p -euo pipefail {0}", name)

    def test_every_input_of_a_composite_is_used(self):
        for name in ("action.yml", "deliver/action.yml", "merge/action.yml", "plan/action.yml", "setup/action.yml"):
            steps = yaml.safe_dump(load(name)["runs"])
            for declared in load(name)["inputs"]:
                self.assertRegex(steps, rf"inputs\.{declared}\b", f"{name}: `{declared}` does nothing")

    def test_every_output_of_the_program_is_an_output_of_the_actions(self):
        composite = load("action.yml")["outputs"]
        # What became of a step after the run, which the program cannot know.
        self.assertEqual(composite.pop("continued")["value"], "${{ steps.continue.outcome }}")
        self.assertEqual(composite.pop("html-url")["value"], "${{ steps.upload-page.outputs.artifact-url }}")
        for outputs in (composite, load("docker/action.yml")["outputs"]):
            self.assertEqual(set(outputs), OUTPUTS)
        # What is stored is known after the upload.
        stored = (
            "${{ (steps.run.outputs.upload-name == '' || steps.save.outputs.stored == 'true' ||"
            " steps.upload.outputs.artifact-id != '') && (steps.save.outputs.%s || steps.run.outputs.%s) || '' }}"
        )
        for name in ("artifact-name", "resume-from"):
            self.assertEqual(composite.pop(name)["value"], stored % (name, name))
        code = composite.pop("exit-code")["value"]
        self.assertEqual(
            code, "${{ steps.unstored.outputs.exit-code || steps.save.outputs.exit-code || steps.run.outputs.exit-code }}"
        )
        for name, output in composite.items():
            self.assertEqual(output["value"], f"${{{{ steps.save.outputs.{name} || steps.run.outputs.{name} }}}}")

    def test_the_container_action_takes_the_inputs_that_mean_something_there(self):
        host, container = load("action.yml")["inputs"], load("docker/action.yml")["inputs"]
        # An action that is a container cannot call the action that keeps a cache.
        only_on_the_host = {"version", "image", "network", "env", "reuse"}
        self.assertEqual(set(host) - set(container), only_on_the_host)
        for name, spec in container.items():
            self.assertEqual(spec.get("default"), host[name].get("default"), name)

    def test_the_container_action_passes_nothing_through_args(self):
        self.assertEqual(load("docker/action.yml")["runs"]["args"], ["action", "all"])

    def test_the_container_image_that_is_built_exists(self):
        image = load("docker/action.yml")["runs"]["image"]
        if not image.startswith("docker://"):
            self.assertTrue((ROOT / "docker" / image).resolve().is_file(), image)
            self.assertTrue(image.endswith("Dockerfile"), "the runner builds files of this name only")

    def test_the_container_of_the_composite_gets_every_input_of_the_program(self):
        script = (ROOT / "docker/run.sh").read_text()
        step = next(s for s in load("action.yml")["runs"]["steps"] if s.get("id") == "run")
        for variable in step["env"]:
            if variable.startswith("INPUT_"):
                self.assertRegex(script, rf"\b{variable}\b")

    def test_every_step_that_sets_the_status_knows_its_name(self):
        steps = [step for step in load("action.yml")["runs"]["steps"] if "INPUT_STATUS_CONTEXT" in step.get("env", {})]
        self.assertEqual([step["id"] for step in steps], ["run", "save", "continue", "unstored"])
        for step in steps:
            # Of a run in a matrix, the key is part of it.
            self.assertIn("inputs.key", step["env"]["INPUT_KEY"], step["id"])

    def test_no_step_that_runs_the_loop_is_out_of_reach_of_a_cancellation(self):
        step = next(s for s in load("action.yml")["runs"]["steps"] if s.get("id") == "run")
        self.assertNotIn("if", step)

    def test_the_loops_that_our_own_ci_runs_exist(self):
        workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        loops = [step["with"]["loop"] for step in steps if step.get("uses", "").startswith("./")]
        self.assertTrue(loops)
        for loop in loops:
            path = loop if "/" in loop else f".loops/{loop}.yaml"
            self.assertTrue((ROOT / path).is_file(), path)

    def test_images_are_pinned_by_digest(self):
        for name, image in re.findall(r"^ARG (\w+_IMAGE)=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
            self.assertRegex(image, r"@sha256:[0-9a-f]{64}$", name)


if __name__ == "__main__":
    unittest.main()
