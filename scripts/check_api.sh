#!/usr/bin/env bash
# Asks a fresh server everything its OpenAPI document allows (schemathesis, from PyPI): no 5xx, every answer conforms.
#   scripts/check_api.sh [BINARY] [EXAMPLES PER OPERATION]
set -euo pipefail
binary=$(realpath "${1:-target/release/fewtag}")
dir=$(mktemp -d)
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q schemathesis
"$binary" serve --port 0 --log warn --database "$dir/domains.sqlite" >"$dir/out" &
trap 'kill $!; rm -rf "$dir"' EXIT
until grep -q serves "$dir/out"; do sleep 0.2; done
"$dir/venv/bin/st" run "$(sed 's/.* //' "$dir/out")/openapi.json" --phases examples,fuzzing -n "${2:-20}" --checks \
    not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance
