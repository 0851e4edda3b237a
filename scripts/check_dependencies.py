#!/usr/bin/env python3
"""Checks what we depend on: licences, sources, Rust versions and use. It reads `cargo metadata` and needs no other tool.

    python3 scripts/check_dependencies.py

- every crate has a licence whose terms we can keep (ALLOWED; what only the model's crates may have: MODEL_LICENCES)
- every crate comes from the one registry, none from a repository or a path outside this one
- none asks for a newer Rust than the `rust-version` we promise
- every dependency that a crate of ours names is used in its sources
- every crate of ours has what a registry wants to know
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Permissive licences only: a program that links them may have any licence.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
MODEL_LICENCES = ALLOWED | {"CC-BY-SA-4.0"}
# Its few lines are used unchanged; MPL asks no more than to say where they come from. The hub's cache needs it.
# A gift to the public; it runs only while the hash function of Arrow's crates is compiled.
EXCEPTIONS = {"option-ext": {"MPL-2.0"}, "tiny-keccak": {"CC0-1.0"}}
WANTED = ["description", "keywords", "categories", "license", "rust_version"]


def permits(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with `allowed` licences. `a/b` is an old way to write `a OR b`."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        met = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = both() or met
        return met

    def both() -> bool:
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            met = either()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":  # An exception only permits more.
            del tokens[:2]
        return token in allowed

    return either()


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


def unused(package: dict) -> list[str]:
    """The dependencies of one of our crates that its sources never name; tests and examples count for the dev ones only."""
    folder = Path(package["manifest_path"]).parent
    nested = [path.parent for path in folder.glob("*/Cargo.toml")]
    files = [file for file in folder.rglob("*.rs") if not any(file.is_relative_to(other) for other in nested)]
    apart = [folder / part for part in ("benches", "examples", "tests")]
    inner = [file for file in files if not any(file.is_relative_to(part) for part in apart)]
    plain = {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}
    found = []
    for dependency in package["dependencies"]:
        name, is_dev = dependency["name"], dependency["kind"] == "dev"
        pattern = re.compile(rf"\b{(dependency['rename'] or name).replace('-', '_')}\b")
        if (is_dev and name in plain) or not any(
            pattern.search(file.read_text(encoding="utf-8")) for file in (files if is_dev else inner)
        ):
            found.append(f"the {dependency['kind'] or 'plain'} dependency {name}")
    return found


def problems(metadata: dict) -> list[str]:
    packages = metadata["packages"]
    ours = {package["id"] for package in packages if package["source"] is None}
    promised = max(package["rust_version"] for package in packages if package["id"] in ours)
    registries = {package["source"] for package in packages} - {None}
    found = [f"there are several sources: {source}" for source in sorted(registries)] if len(registries) > 1 else []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        allowed = MODEL_LICENCES if package["name"].startswith("fewtag-model") else ALLOWED
        if not permits(package["license"] or "none", EXCEPTIONS.get(package["name"], allowed)):
            found.append(f"{name} has the licence {package['license']}, which is not on the list")
        if version(package["rust_version"] or "1") > version(promised):
            found.append(f"{name} needs Rust {package['rust_version']}, we promise {promised}")
        if package["id"] in ours:
            found += [f"{name} does not need {dependency}" for dependency in unused(package)]
            if package["publish"] != []:
                found += [f"{name} has no {field}" for field in WANTED if not package[field]]
        elif not package["source"].startswith("registry+"):
            found.append(f"{name} comes from {package['source']}")
    return found


def main() -> int:
    found, names = [], set()
    for manifest in ("Cargo.toml", "crates/fewtag-py/Cargo.toml"):
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", manifest]
        metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        found += [problem for problem in problems(metadata) if problem not in found]
        names |= {f"{package['name']} {package['version']}" for package in metadata["packages"]}
    print("\n".join(found) if found else f"{len(names)} crates checked, 0 problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
