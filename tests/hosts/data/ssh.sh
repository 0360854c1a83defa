#!/usr/bin/env bash
# Nodes for the head tcp://10.0.0.1:4700 on 2 machines. bash THIS up; bash THIS down
set -uo pipefail

# Runs a script, given on standard input, on a machine; each line stands behind the machine's name.
on() {
  ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -- "$1" exec sh -s 2>&1 | sed "s/^/$1: /"
}
processes=()
case ${1:-} in
up)
on alpha <<'SCRIPT' &
cd '/data/it'\''s here' 2>/dev/null || { echo there is no folder '/data/it'\''s here' >&2; exit 120; }
export WORDS='two words'
export TROUPE_KEYS=/etc/troupe/alpha.key TROUPE_HEAD_KEY=kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
folder="${XDG_STATE_HOME:-$HOME/.local/state}/troupe/up-0123456789abcdef"
program=/opt/troupe
(umask 077 && mkdir -p "$folder") || exit 1
command -v "$program" >/dev/null || { echo "there is no $program" >&2; exit 127; }
cores=$((($(nproc) + 2 - 1) / 2))
for node in alpha-0 alpha-1; do
  # A node that an earlier `up` has started runs on.
  grep -qszxF TROUPE_UP=up-0123456789abcdef "/proc/$(cat "$folder/$node.pid" 2>/dev/null)/environ" && continue
  : >"$folder/$node.log"
  TROUPE_UP=up-0123456789abcdef setsid "$program" node --head tcp://10.0.0.1:4700 --name "$node" --cores "$cores" </dev/null >>"$folder/$node.log" 2>&1 &
  echo $! >"$folder/$node.pid"
done
failed=0
for node in alpha-0 alpha-1; do
  # What it says, until it has joined, has ended, or the patience is over.
  process=$(cat "$folder/$node.pid")
  timeout 30 tail -n +1 -s 0.1 -f --pid="$process" "$folder/$node.log" | sed '/^joined /q'
  if ! kill -0 "$process" 2>/dev/null || ! grep -q '^joined ' "$folder/$node.log"; then
    echo "node $node has not joined the head; its log: $folder/$node.log" >&2
    failed=1
  fi
done
exit "$failed"
SCRIPT
processes+=("$!")
on me@10.0.0.7 <<'SCRIPT' &
cd '/data/it'\''s here' 2>/dev/null || { echo there is no folder '/data/it'\''s here' >&2; exit 120; }
export WORDS='two words'
export TROUPE_KEYS=/etc/troupe/10.0.0.7.key TROUPE_HEAD_KEY=kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
folder="${XDG_STATE_HOME:-$HOME/.local/state}/troupe/up-0123456789abcdef"
program=/opt/troupe
(umask 077 && mkdir -p "$folder") || exit 1
command -v "$program" >/dev/null || { echo "there is no $program" >&2; exit 127; }
cores=$((($(nproc) + 1 - 1) / 1))
for node in 10.0.0.7; do
  # A node that an earlier `up` has started runs on.
  grep -qszxF TROUPE_UP=up-0123456789abcdef "/proc/$(cat "$folder/$node.pid" 2>/dev/null)/environ" && continue
  : >"$folder/$node.log"
  TROUPE_UP=up-0123456789abcdef setsid "$program" node --head tcp://10.0.0.1:4700 --name "$node" --cores "$cores" </dev/null >>"$folder/$node.log" 2>&1 &
  echo $! >"$folder/$node.pid"
done
failed=0
for node in 10.0.0.7; do
  # What it says, until it has joined, has ended, or the patience is over.
  process=$(cat "$folder/$node.pid")
  timeout 30 tail -n +1 -s 0.1 -f --pid="$process" "$folder/$node.log" | sed '/^joined /q'
  if ! kill -0 "$process" 2>/dev/null || ! grep -q '^joined ' "$folder/$node.log"; then
    echo "node $node has not joined the head; its log: $folder/$node.log" >&2
    failed=1
  fi
done
exit "$failed"
SCRIPT
processes+=("$!")
;;
down)
on alpha <<'SCRIPT' &
folder="${XDG_STATE_HOME:-$HOME/.local/state}/troupe/up-0123456789abcdef"
ours() { grep -lzxF TROUPE_UP=up-0123456789abcdef /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
# In a container without an init a process that has ended stays as a zombie. It has no environment.
runs() { grep -qszxF TROUPE_UP=up-0123456789abcdef "/proc/$1/environ"; }
seconds() { cut -d. -f1 /proc/uptime; }
wait_for() { # SECONDS PROCESS: in the background
  (
    end=$(($(seconds) + $1))
    while runs "$2" && [ "$(seconds)" -le "$end" ]; do sleep 0.1; done
  ) &
}
count=$(ours | wc -l)
for file in "$folder"/*.pid; do
  [ -e "$file" ] || break
  process=$(cat "$file")
  runs "$process" || continue
  kill -TERM "$process" 2>/dev/null
  wait_for 30 "$process"
done
wait
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "killed, as they did not end in time: $left"
  for process in $left; do
    kill -KILL "$process" 2>/dev/null
    wait_for 5 "$process"
  done
  wait
fi
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "these processes do not end: $left" >&2
  exit 1
fi
rm -rf "$folder"
echo "ended $count processes"
SCRIPT
processes+=("$!")
on me@10.0.0.7 <<'SCRIPT' &
folder="${XDG_STATE_HOME:-$HOME/.local/state}/troupe/up-0123456789abcdef"
ours() { grep -lzxF TROUPE_UP=up-0123456789abcdef /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
# In a container without an init a process that has ended stays as a zombie. It has no environment.
runs() { grep -qszxF TROUPE_UP=up-0123456789abcdef "/proc/$1/environ"; }
seconds() { cut -d. -f1 /proc/uptime; }
wait_for() { # SECONDS PROCESS: in the background
  (
    end=$(($(seconds) + $1))
    while runs "$2" && [ "$(seconds)" -le "$end" ]; do sleep 0.1; done
  ) &
}
count=$(ours | wc -l)
for file in "$folder"/*.pid; do
  [ -e "$file" ] || break
  process=$(cat "$file")
  runs "$process" || continue
  kill -TERM "$process" 2>/dev/null
  wait_for 30 "$process"
done
wait
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "killed, as they did not end in time: $left"
  for process in $left; do
    kill -KILL "$process" 2>/dev/null
    wait_for 5 "$process"
  done
  wait
fi
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "these processes do not end: $left" >&2
  exit 1
fi
rm -rf "$folder"
echo "ended $count processes"
SCRIPT
processes+=("$!")
;;
*)
  echo "usage: $0 up | down" >&2
  exit 2
  ;;
esac

failed=0
for process in "${processes[@]}"; do
  wait "$process" || failed=$((failed + 1))
done
if [ "$failed" -gt 0 ]; then
  echo "error: $failed of ${#processes[@]} machines failed" >&2
  exit 1
fi
