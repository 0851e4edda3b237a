#!/usr/bin/env bash
# Runs the nginx configuration of docs/guide/security.md, as it stands there but for ports and certificates, before a real server on loopback, and
# tries what the page promises. nginx, openssl and curl come from Debian's packages if they are missing.
#   scripts/check_proxy.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "${1:-target/release/fewtag}")
missing=()
command -v nginx > /dev/null || missing+=(nginx-light)
command -v openssl > /dev/null || missing+=(openssl)
command -v curl > /dev/null || missing+=(curl)
[[ ${#missing[@]} -eq 0 ]] || apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null

name=tags.example.org
key=$(openssl rand -hex 16)
dir=$(mktemp -d)
chmod 711 "$dir" # Started by root, nginx works as somebody else.
FEWTAG_API_KEY=$key "$binary" serve --port 0 --public-host "$name" --log warn --database "$dir/domains.sqlite" > "$dir/out" &
server=$!
trap 'kill $server; [[ ! -f $dir/nginx.pid ]] || kill "$(cat "$dir/nginx.pid")"; rm -rf "$dir"' EXIT
until grep -q serves "$dir/out"; do
    kill -0 $server # It must be alive.
    sleep 0.2
done
direct=$(sed 's/.* //' "$dir/out")
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj "/CN=$name" -addext "subjectAltName=DNS:$name" \
    -keyout "$dir/key.pem" -out "$dir/cert.pem" 2> /dev/null
sed -n '/^```nginx$/,/^```$/{/^```/!p}' docs/guide/security.md |
    sed -e "s|listen 443|listen 127.0.0.1:$port|" -e "s|http://127.0.0.1:8080|$direct|" \
        -e "s|/etc/ssl/$name.crt|$dir/cert.pem|" -e "s|/etc/ssl/$name.key|$dir/key.pem|" > "$dir/fewtag.conf"
cat > "$dir/nginx.conf" << EOF
pid $dir/nginx.pid;
error_log $dir/error.log;
events {}
http {
    access_log off;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    include $dir/fewtag.conf;
}
EOF
nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" || { cat "$dir/error.log" && exit 1; }

# The status of an answer; 000 if there was none.
ask() {
    curl -s -o "$dir/answer" -w '%{http_code}' --cacert "$dir/cert.pem" --resolve "$name:$port:127.0.0.1" "$@" || true
}
expect() {
    local wanted=$1 what=$2 status
    shift 2
    status=$(ask "$@")
    printf '%s %s\n' "$status" "$what"
    [[ $status == "$wanted" ]] || { cat "$dir/answer" && exit 1; }
}
proxy="https://$name:$port"
is_json=(-H 'Content-Type: application/json')
has_key=(-H "Authorization: Bearer $key")
tag='{"support": [{"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}], "texts": ["put on miles davis"]}'
expect 200 'the server lives' "$proxy/health"
expect 200 'the playground' "$proxy/"
expect 401 'no key' "$proxy/v1/domains"
expect 401 'an empty key' -H 'X-API-Key;' "$proxy/v1/domains"
expect 200 'the key' "${has_key[@]}" "$proxy/v1/domains"
expect 201 'a page of our own changes something' "${has_key[@]}" "${is_json[@]}" -H "Origin: $proxy" -d '{"name": "a"}' "$proxy/v1/domains"
expect 403 'a page of others' "${has_key[@]}" -H 'Origin: https://evil.example' "$proxy/v1/domains"
expect 200 'lines as they come' "${has_key[@]}" "${is_json[@]}" -H 'Accept: application/x-ndjson' -d "$tag" "$proxy/v1/tag"
grep -q '"text":"put on miles davis"' "$dir/answer"
expect 000 'another name, at the proxy' --resolve "evil.example:$port:127.0.0.1" "https://evil.example:$port/health"
expect 421 'another name, after the greeting' -H 'Host: evil.example' "$proxy/health"
expect 421 'another name, past the proxy' -H 'Host: evil.example' "$direct/health"
head -c 5000000 /dev/zero > "$dir/large"
expect 413 'a body too long' "${has_key[@]}" "${is_json[@]}" --data-binary "@$dir/large" "$proxy/v1/tag"
for _ in $(seq 150); do
    printf 'url = "%s/health"\noutput = /dev/null\n' "$proxy"
done > "$dir/flood"
statuses=$(curl -s --cacert "$dir/cert.pem" --resolve "$name:$port:127.0.0.1" -w '%{http_code}\n' -K "$dir/flood" | sort | uniq -c)
printf 'a flood:\n%s\n' "$statuses"
grep -q ' 429$' <<< "$statuses"
grep -q ' 200$' <<< "$statuses"
