"""Prints a YAML file as JSON, as PyYAML (YAML 1.1) and ruamel.yaml (YAML 1.2) read it."""

import json
import sys

import yaml
from ruamel.yaml import YAML

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
json.dump({"pyyaml": yaml.safe_load(text), "ruamel": YAML(typ="safe", pure=True).load(text)}, sys.stdout)
