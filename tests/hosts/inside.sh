# shellcheck shell=bash
# Sourced first by other scripts, whose argument is the program. Runs the script in new namespaces
# as their root user, in a temporary folder, and ends all its processes. Exits with 77 if that is
# not possible. Afterwards `troupe`, `wanted_digest` and `fail TEXT` are defined. The run takes
# `steps` steps if that is set, and 600 otherwise.

if [ -z "${TROUPE_INSIDE:-}" ]; then
  spaces=(--net --mount --pid --uts --fork --kill-child --mount-proc)
  skip() { echo "skipped: $*"; exit 77; }
  command -v ip >/dev/null || skip "there is no ip (apt install iproute2)"
  [ "$(id -u)" -eq 0 ] || spaces=(--user --map-root-user "${spaces[@]}")
  why=$(unshare "${spaces[@]}" ip link add cable type veth peer name other 2>&1) || skip "namespaces cannot be made here: $why"
  TROUPE_INSIDE=yes exec unshare "${spaces[@]}" "$(realpath "$0")" "$(realpath "$1")"
fi

ip link set lo up
mount -t tmpfs troupe /mnt
cd /mnt || exit 1
mkdir bin
ln -s "$1" bin/troupe
export XDG_STATE_HOME=/mnt/state HOME=/mnt PATH=/mnt/bin:$PATH
unset TROUPE_HEAD TROUPE_KEYS TROUPE_HEAD_KEY

fail() {
  echo "FAILED: $*" >&2
  find . -name '*.log' -exec tail -n 20 {} + >&2
  exit 1
}

cat >run.toml <<RUN
name = "small"
seed = 3
[model]
kind    = "gpt2"
vocab   = 32
context = 16
width   = 32
heads   = 2
layers  = 4
dropout = 0.1
[data]
train = "made:markov?states=32"
[batch]
global = 16
micro  = 2
[optimizer]
kind = "adamw"
lr   = 3e-3
clip_norm = 1.0
[precision]
compute = "fp32"
[log]
every = 1
[train]
steps = ${steps:-600}
RUN

# Prints the digest of the weights that the run below this folder has saved last.
digest() { sed -n 's/.*"type":"checkpoint.saved".*"weights":"\([0-9a-f]*\)".*/\1/p' "$1/runs/small/events.jsonl" | tail -n 1; }

mkdir one
(cd one && troupe train ../run.toml -q) || fail "the run in one process"
wanted_digest=$(digest one)
[ -n "$wanted_digest" ] || fail "the run in one process has saved nothing"
