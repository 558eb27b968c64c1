# Prints the installed packages as JSON, with what each says about the provider that it needs.
import sys

sys.path[:] = [entry for entry in sys.path if entry]

import json
import re
from importlib import metadata


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def plugin(distribution):
    for file in distribution.files or []:
        if file.name == "pulumi-plugin.json" and len(file.parts) == 2:
            try:
                return json.loads(file.read_text())
            except (OSError, ValueError):
                return None
    return None


found, required = {}, set()
for distribution in metadata.distributions():
    name = distribution.metadata["Name"]
    if not name or normal(name) in found:
        continue  # the first on the path is the one that is imported
    found[normal(name)] = {"name": normal(name), "version": distribution.version, "plugin": plugin(distribution)}
    for requirement in distribution.requires or []:
        if "extra ==" not in requirement:
            required.add(normal(re.match(r"[A-Za-z0-9._-]+", requirement).group()))
for name, package in found.items():
    package["direct"] = name not in required
json.dump(list(found.values()), sys.stdout)
