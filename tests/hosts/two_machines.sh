# shellcheck shell=bash
# Sourced by scripts that have sourced inside.sh. Makes two network namespaces, alpha (10.77.0.1)
# and beta (10.77.0.2), with host names of their own and a cable between. `on MACHINE COMMAND...`
# runs a command there. The head, both machines and `me` have keys.

# A machine is an idle process in its own namespaces; it reports when it has entered them.
machine() {
  local ready
  exec {ready}< <(exec unshare --net --uts sh -c "hostname $1 && ip link set lo up && echo && exec sleep infinity")
  echo $! >"$1.pid"
  read -r -u "$ready" || fail "there is no machine $1"
}
on() { nsenter --net --uts --target "$(cat "/mnt/$1.pid")" "${@:2}"; }

machine alpha
machine beta
ip link add cable netns "$(cat alpha.pid)" type veth peer name cable netns "$(cat beta.pid)"
on alpha ip address add 10.77.0.1/24 dev cable
on beta ip address add 10.77.0.2/24 dev cable
on alpha ip link set cable up
on beta ip link set cable up
troupe keys new head >/dev/null
for host in alpha beta; do troupe keys new "$host" >>hosts.allow; done
troupe keys new me --roles operator >>hosts.allow
chmod 600 hosts.allow
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' head.key)
export TROUPE_HEAD_KEY
