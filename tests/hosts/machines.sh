# shellcheck shell=bash
# For scripts that have read inside.sh and have set `nodes`: makes a machine for the head and one for each node, and starts
# a head and daemons there. A machine is a network namespace with a name of its own; a bridge joins all of them. A path is
# cut by the neighbour table: frames go to an address that nobody has, so that packets are lost without an error, as with a
# broken cable.

ip link add bridge type bridge 2>why || { echo "skipped: there is no bridge here: $(cat why)"; exit 77; }
ip link set bridge up

declare -A address=() started=()
machines=(head "${nodes[@]}")
machine() { # NAME NUMBER
  local ready
  address[$1]=10.77.0.$2
  exec {ready}< <(exec unshare --net --uts sh -c "hostname $1 && ip link set lo up && echo && exec sleep infinity")
  echo $! >"$1.pid"
  read -r -u "$ready" || fail "there is no machine $1"
  ip link add "to-$1" type veth peer name cable netns "$(cat "$1.pid")"
  ip link set "to-$1" master bridge up
  on "$1" ip address add "${address[$1]}/24" dev cable
  on "$1" ip link set cable up
}
on() { nsenter --net --uts --target "$(cat "/mnt/$1.pid")" "${@:2}"; }
for index in "${!machines[@]}"; do machine "${machines[index]}" $((index + 1)); done

# Loses all that FROM sends to TO.
cut_way() { on "$1" ip neigh replace "${address[$2]}" lladdr 02:00:00:00:00:99 dev cable nud permanent; }
mend_way() { on "$1" ip neigh del "${address[$2]}" dev cable; }

troupe keys new head >/dev/null
for host in "${nodes[@]}"; do troupe keys new "$host" >>hosts.allow; done
troupe keys new me --roles operator >>hosts.allow
chmod 600 hosts.allow
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' head.key)
export TROUPE_HEAD_KEY TROUPE_HEAD=10.77.0.1:4700

wait_for() { # TEXT FILE SECONDS
  local end=$((SECONDS + $3))
  until grep -qs -- "$1" "$2"; do
    [ "$SECONDS" -le "$end" ] || fail "$2 does not say '$1'"
    sleep 0.05
  done
}
# Starts a program on a machine. `started` has the process by the machine's name.
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
