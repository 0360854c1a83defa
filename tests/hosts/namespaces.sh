#!/usr/bin/env bash
# Runs over two simulated machines: two network namespaces with host names of their own and a cable
# between. The head and a node are on alpha, another node is on beta, and all use keys. The weights
# must equal those of a run in one process.
#
#     namespaces.sh TROUPE        exits with 77 if namespaces cannot be made
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/hosts/inside.sh
. "$here/inside.sh"

# shellcheck source=tests/hosts/two_machines.sh
. "$here/two_machines.sh"

# Interfaces that must not be chosen for other machines.
on alpha ip link add docker0 type veth peer name inside
on alpha ip address add 172.17.0.1/16 dev docker0
on alpha ip link set docker0 up

cat >bin/ssh <<'SSH'
#!/usr/bin/env bash
# The interface between the namespaces.
while [ "$1" != -- ]; do shift; done
exec nsenter --net --uts --target "$(cat "/mnt/$2.pid")" sh -c "${*:3}"
SSH
chmod +x bin/ssh

printf 'alpha\nbeta\n' >hosts

mkdir alpha
(cd alpha && exec nsenter --net --uts --target "$(cat ../alpha.pid)" troupe head --listen 0.0.0.0:4700 --events 0.0.0.0:4701 \
  --keys ../head.key --allow ../hosts.allow) >alpha/head.log 2>&1 &
head=$!

export TROUPE_HEAD=10.77.0.1:4700 TROUPE_KEYS=/mnt/me.key
on beta troupe up hosts --node-keys '/mnt/{host}.key' >up.log 2>&1 || { cat up.log; fail "the nodes have not come up"; }
grep -q 'on each machine:.*--head tcp://10.77.0.1:4700' alpha/head.log || fail "the head does not know by which address it is reached"
on beta troupe doctor --hosts hosts >doctor.log || { cat doctor.log; fail "the doctor"; }
grep -q '^alpha: ok    interface       cable 10.77.0.1' doctor.log || { cat doctor.log; fail "the wrong interface was chosen"; }
grep -q ' link            alpha - beta: ' doctor.log || { cat doctor.log; fail "the link was not measured"; }

on beta troupe submit run.toml --wait --set pipeline.stages=2 --set elastic.nodes=2:2 >submit.log 2>&1 || fail "the run over two machines"
for host in alpha beta; do grep -q "$host: device" submit.log || fail "there is no device on $host"; done

[ "$(digest alpha)" = "$wanted_digest" ] || fail "other weights: $(digest alpha) over two machines, $wanted_digest in one process"

on beta troupe down >down.log 2>&1 || { cat down.log; fail "the nodes do not end"; }
kill -TERM "$head"
wait "$head" || fail "the head ended with $?"
echo "two machines: $(digest alpha); one process: $wanted_digest"
