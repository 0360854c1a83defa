# shellcheck shell=bash
# Sourced by scripts that have sourced inside.sh and have set `machines`. Makes these machines. A
# machine is a network namespace with its own host name; a bridge joins all of them. `on MACHINE
# COMMAND...` runs a command there, `address` has the machines' addresses.

ip link add bridge type bridge 2>why || { echo "skipped: there is no bridge here: $(cat why)"; exit 77; }
ip link set bridge up

declare -A address=()
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

wait_for() { # TEXT FILE SECONDS
  local end=$((SECONDS + $3))
  until grep -qs -- "$1" "$2"; do
    [ "$SECONDS" -le "$end" ] || fail "$2 does not say '$1'"
    sleep 0.05
  done
}
