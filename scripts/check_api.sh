#!/usr/bin/env bash
# Asks a fresh server what its OpenAPI document allows and forbids (schemathesis, from PyPI): no 5xx, every answer conforms, and what the
# document forbids is refused. Three of four requests are about a domain that exists (api_hooks.py).
#   scripts/check_api.sh [BINARY] [EXAMPLES PER OPERATION]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "${1:-target/release/fewtag}")
venv=target/schemathesis-venv
if [[ ! -x $venv/bin/st ]]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q 'schemathesis>=4.32,<5'
fi
dir=$(mktemp -d)
"$binary" serve --port 0 --log warn --database "$dir/domains.sqlite" >"$dir/out" &
trap 'kill $!; rm -rf "$dir"' EXIT
until grep -q serves "$dir/out"; do
    kill -0 $! # It must be alive.
    sleep 0.2
done
# Not `positive_data_acceptance`: that a label must fit its text cannot be said in a schema. Not `use_after_free`: the hooks bring a deleted
# domain back. The seed keeps a run repeatable.
SCHEMATHESIS_HOOKS=scripts/api_hooks.py "$venv/bin/st" run "$(sed 's/.* //' "$dir/out")/openapi.json" -n "${2:-20}" --seed 7 \
    --exclude-checks positive_data_acceptance,use_after_free
