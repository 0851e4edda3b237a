#!/usr/bin/env bash
# Runs a command with a throw-away PostgreSQL from Debian's packages; FEWTAG_TEST_POSTGRES is its address and
# FEWTAG_TEST_POSTGRES_CTL the command that stops (`stop`) and starts (`start`) it.
#   scripts/with_postgres.sh cargo test -p fewtag-serve
set -euo pipefail
if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    apt-get install -y -qq postgresql >/dev/null
fi
bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb | tail -1)")
dir=$(mktemp -d)
# PostgreSQL refuses to run as root.
as_user() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
port=$((20000 + RANDOM % 20000))
as_user "$bin/initdb" -D "$dir/data" -A trust -U fewtag --no-sync >/dev/null
cat >"$dir/ctl" <<END
#!/usr/bin/env bash
as_user() { if [ "\$(id -u)" = 0 ]; then runuser -u postgres -- "\$@"; else "\$@"; fi; }
as_user "$bin/pg_ctl" -D "$dir/data" -w -m fast -l "$dir/log" -o "-p $port -k $dir -c fsync=off" "\$1" >/dev/null
END
chmod 755 "$dir/ctl"
trap '"$dir/ctl" stop || true; rm -rf "$dir"' EXIT
"$dir/ctl" start
export FEWTAG_TEST_POSTGRES="postgres://fewtag@localhost:$port/postgres" FEWTAG_TEST_POSTGRES_CTL="$dir/ctl"
"$@"
