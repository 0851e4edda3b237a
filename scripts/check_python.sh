#!/usr/bin/env bash
# Builds the Python wheel, installs it into an empty environment, runs the five lines of the README there and all tests of the package
# (pytest, mypy), the ones on Spark and Ray with real local clusters. What it needs besides Rust and Python comes from PyPI and Debian.
#   scripts/check_python.sh [pytest's options]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

export CARGO_TARGET_DIR=$root/target # What `cargo build --release` compiled is used again.
cargo fmt --check --manifest-path crates/fewtag-py/Cargo.toml
python3 -m venv "$dir/build"
"$dir/build/bin/pip" install -q 'maturin>=1.9,<2'
"$dir/build/bin/maturin" build --release --locked --manifest-path crates/fewtag-py/Cargo.toml --out "$dir/wheel"

python3 -m venv "$dir/venv"
export PATH=$dir/venv/bin:$PATH
pip install -q "$dir"/wheel/fewtag-*.whl # Nothing else: the package needs no other.
python -m doctest README.md docs/guide/python.md
(cd "$dir" && fewtag tag --label artist 'play nina simone' >/dev/null)

pip install -q pytest mypy pyarrow pandas polars duckdb spacy datasets
for engine in pyspark 'ray[data]'; do
    pip install -q "$engine" || printf '== no %s here: its tests are left out\n' "$engine"
done
if ! command -v java >/dev/null && ! apt-get install -y -qq default-jre-headless >/dev/null 2>&1; then
    printf '== no Java here: the tests on Spark are left out\n'
    pip uninstall -q -y pyspark
fi
(cd crates/fewtag-py && mypy && python -m pytest -q "$@")
