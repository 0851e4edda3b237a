#!/usr/bin/env bash
# Builds the Python wheel, installs it into an empty environment, runs the five lines of the README there and all tests of the package
# (pytest, mypy), the ones on Spark and Ray with real local clusters. What it needs besides Rust and Python comes from PyPI and Debian.
#   scripts/check_python.sh [pytest's options]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT

# What the tests need is fetched while Rust compiles. Nothing is compiled to bytecode that may never be imported.
packages() {
    python3 -m venv "$dir/tests"
    "$dir/tests/bin/pip" install -q --no-compile pytest mypy pyarrow pandas polars duckdb spacy datasets nbclient ipykernel
    for engine in pyspark 'ray[data]'; do
        "$dir/tests/bin/pip" install -q --no-compile "$engine" || printf '== no %s here: its tests are left out\n' "$engine"
    done
    if ! command -v java >/dev/null && ! apt-get install -y -qq default-jre-headless >/dev/null 2>&1; then
        printf '== no Java here: the tests on Spark are left out\n'
        "$dir/tests/bin/pip" uninstall -q -y pyspark
    fi
}
packages &
fetching=$!

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} # What the workspace's own builds compiled is used again.
cargo fmt --check --manifest-path crates/fewtag-py/Cargo.toml
cargo clippy --locked --manifest-path crates/fewtag-py/Cargo.toml -- -D warnings
python3 -m venv "$dir/build"
"$dir/build/bin/pip" install -q 'maturin>=1.9,<2'
"$dir/build/bin/maturin" build --release --locked --manifest-path crates/fewtag-py/Cargo.toml --out "$dir/wheel"

python3 -m venv "$dir/empty"
"$dir/empty/bin/pip" install -q "$dir"/wheel/fewtag-*.whl # Nothing else: the package needs no other.
"$dir/empty/bin/python" -m doctest README.md docs/guide/python.md
(cd "$dir" && empty/bin/fewtag tag --label artist 'play nina simone' >/dev/null)

wait "$fetching"
export PATH=$dir/tests/bin:$PATH
pip install -q "$dir"/wheel/fewtag-*.whl
python -m doctest docs/guide/python.md # Once more, beside the libraries that it mentions.
(cd crates/fewtag-py && mypy && python -m pytest -q "$@")
