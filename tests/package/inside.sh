#!/usr/bin/env bash
# The part of bare-root.sh that runs in the bare system, and may change all of it.
set -euo pipefail

fail() { echo "inside.sh: $*" >&2; exit 1; }
as_nobody() { setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/nonexistent "$@"; }

train() {  # train TROUPE CONFIG: trains as user nobody in an empty folder.
  local folder log; folder=$(mktemp -d) log=$(mktemp)
  chown nobody:nogroup "$folder"
  (cd "$folder" && as_nobody "$1" train "$2" --output plain) >"$log" 2>&1 || { cat "$log"; fail "$1 train $2"; }
  grep -E 'run quickstart: done|^loss of the last steps' "$log"
  [ "$(ls -A "$folder")" = runs ] || fail "train left more than runs/: $(ls -A "$folder")"
  rm -rf "$folder" "$log"
}

snapshot() {  # Lists every file with mode, owner and content, except for lists and logs of apt and dpkg, which always change.
  find / -xdev \( -path /proc -o -path /dev -o -path /sys -o -path /package -o -path /tmp -o -path /run -o -path /var/cache \
    -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg/status -o -path /var/lib/dpkg/status-old -o -path /var/lib/dpkg/available \
    -o -path '/etc/*-' -o -path '/var/lib/dpkg/*lock*' -o -path /var/lib/dpkg/triggers -o -path /var/lib/dpkg/info/format \) -prune -o \
    -printf '%p %M %u %g ' \( -type f -exec sha256sum {} \; -o -printf '%l\n' \) | sort
}

echo "== the tar.gz, before any package is installed"
mkdir "/opt/any folder"
tar -xf /package/troupe-*.tar.gz -C "/opt/any folder"
unpacked=$(echo "/opt/any folder"/troupe-*)
train "$unpacked/bin/troupe" "$unpacked/share/troupe/config/quickstart.toml"
du -sh "$unpacked"
rm -rf "/opt/any folder"

echo "== the packages that the .deb depends on"
apt-get update -qq
dpkg-deb -f /package/troupe_*.deb Depends
mapfile -t depends < <(dpkg-deb -f /package/troupe_*.deb Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g')
apt-get install -y -qq --no-install-recommends "${depends[@]}" >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get install ${depends[*]}"; }
snapshot >/tmp/before

echo "== the .deb"
apt-get install -y -qq --no-install-recommends /package/troupe_*.deb >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get install"; }
troupe version
getent passwd troupe
[ -z "$(pidof troupe)" ] || fail "installing it started a service"
train troupe /usr/share/troupe/config/quickstart.toml

echo "== the commands of the services, by hand"
install -d -m 750 -o troupe -g troupe /var/lib/troupe  # As StateDirectory= does.
service() {  # service UNIT: runs its command as its user with its variables.
  local unit=/usr/lib/systemd/system/$1 words variable
  [ -f "$unit" ] || unit=/lib/systemd/system/$1
  read -ra words < <(sed -n 's/^ExecStart=//p' "$unit" | sed 's/ \$TROUPE_OPTIONS//')
  variable=$(sed -n 's/^Environment=//p' "$unit")
  cd /var/lib/troupe && exec setpriv --reuid troupe --regid troupe --clear-groups --no-new-privs --bounding-set=-all \
    env HOME=/var/lib/troupe ${variable:+"$variable"} "${words[@]}" 2>&1
}
wait_for() {  # wait_for DESCRIPTOR TEXT
  local line
  while read -r -t 60 -u "$1" line; do
    echo "  $line"
    [[ $line != *"$2"* ]] || return 0
  done
  fail "nobody said '$2' within 60 s"
}
exec 3< <(service troupe-head.service); head=$!
wait_for 3 'troupe submit'
exec 4< <(service troupe-node.service); node=$!
wait_for 4 joined
export TROUPE_HEAD=127.0.0.1:4700
troupe submit /usr/share/troupe/config/quickstart.toml --set train.steps=50 --wait --output plain >/tmp/log 2>&1 || { cat /tmp/log; fail "troupe submit"; }
grep 'run quickstart: done' /tmp/log
[ -d /var/lib/troupe/runs/quickstart ] || fail "the run is not in /var/lib/troupe"
kill -TERM "$node"; wait "$node" || fail "the node ended with code $?"
kill -TERM "$head"; wait "$head" || fail "the head ended with code $?"
exec 3<&- 4<&-
cd /

echo "== removed: its state and its settings stay"
apt-get remove -y -qq troupe >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get remove"; }
[ -d /var/lib/troupe/runs ] && [ -f /etc/default/troupe-head ] || fail "removing it removed state or settings"
echo "== installed again, and purged"
apt-get install -y -qq --no-install-recommends /package/troupe_*.deb >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get install"; }
apt-get purge -y -qq troupe >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get purge"; }
snapshot >/tmp/after
diff /tmp/before /tmp/after || fail "the purge left or changed these"
