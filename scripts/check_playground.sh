#!/usr/bin/env bash
# Tests the playground in headless Chromium.
#
#     scripts/check_playground.sh [FEWTAG] [PLAYWRIGHT OPTIONS]
#
# FEWTAG is the binary to test; without one, target/release/fewtag is built. Node and Chromium come from Debian's packages if they
# are missing (CHROMIUM names another), the test runner from npm, as crates/fewtag-serve/web-tests/package-lock.json says.
# SCREENSHOTS=docs/images writes the pictures of the documentation.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 && $1 != -* ]]; then
    binary=$1
    shift
else
    cargo build --release --locked -p fewtag-cli
    binary=target/release/fewtag
fi
CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
missing=()
[[ -x $CHROMIUM ]] || missing+=(chromium fonts-dejavu-core fonts-noto-color-emoji)
command -v npm > /dev/null || missing+=(nodejs npm)
[[ ${#missing[@]} -eq 0 ]] || apt-get install -y --no-install-recommends "${missing[@]}"
FEWTAG_BIN=$(realpath "$binary")
export CHROMIUM FEWTAG_BIN
[[ -z ${SCREENSHOTS:-} ]] || SCREENSHOTS=$(realpath "$SCREENSHOTS")

cd crates/fewtag-serve/web-tests
npm ci --no-audit --no-fund
npx playwright test "$@"
