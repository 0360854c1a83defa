# shellcheck shell=bash
# Sourced by scripts that have sourced inside.sh and have set `nodes`. Makes a machine for the head
# and one for each node (bridge.sh), and starts a head and daemons there. Cutting a path sets a wrong
# address in the neighbour table, so that packets are lost without an error, as with a broken cable.

declare -A started=()
machines=(head "${nodes[@]}")
# shellcheck source=tests/hosts/bridge.sh
. "$(dirname "${BASH_SOURCE[0]}")/bridge.sh"

# Drops everything that FROM sends to TO.
cut_way() { on "$1" ip neigh replace "${address[$2]}" lladdr 02:00:00:00:00:99 dev cable nud permanent; }
mend_way() { on "$1" ip neigh del "${address[$2]}" dev cable; }

troupe keys new head >/dev/null
for host in "${nodes[@]}"; do troupe keys new "$host" >>hosts.allow; done
troupe keys new me --roles operator >>hosts.allow
chmod 600 hosts.allow
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' head.key)
export TROUPE_HEAD_KEY TROUPE_HEAD=10.77.0.1:4700

# Starts a program on a machine. `started` maps the machine's name to the process.
start() { # MACHINE COMMAND
  nsenter --net --uts --target "$(cat "/mnt/$1.pid")" "${@:2}" >"$1.log" 2>&1 &
  started[$1]=$!
}
# shellcheck disable=SC2154 # The script that reads this one may set `head_words`.
start head troupe head --listen 10.77.0.1:4700 --events 10.77.0.1:4701 --keys head.key --allow hosts.allow "${head_words[@]}"
for node in "${nodes[@]}"; do start "$node" troupe node --name "$node" --keys "$node.key" --cores 1; done
for node in "${nodes[@]}"; do wait_for "joined" "$node.log" 20; done

# Ends the head and the nodes, and waits for them.
end_all() {
  local process
  for process in "${started[@]}"; do kill -TERM "$process"; done
  for process in "${started[@]}"; do wait "$process" || fail "a process ended with $?"; done
}
