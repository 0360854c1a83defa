# Everything in its order, in rows.

source "$here/gpu_host/table.sh"
source "$here/gpu_host/training.sh"
source "$here/gpu_host/tests.sh"
source "$here/gpu_host/parity.sh"
source "$here/gpu_host/types.sh"
source "$here/gpu_host/speed.sh"
source "$here/gpu_host/smoke.sh"

# Folders that may have NVIDIA's libraries, with a colon before each.
folders_of_libraries() {
  python3 - 2>/dev/null <<'PY' || true
import glob, os, nvidia
print("".join(":" + folder for root in nvidia.__path__ for folder in sorted(glob.glob(os.path.join(root, "*", "lib")))), end="")
PY
  [ ! -d /usr/local/cuda/lib64 ] || printf ':/usr/local/cuda/lib64'
}

# Why tensor cores cannot be used; nothing where they can.
lack_of_tensor_cores() {
  local verdict told
  read -r verdict _ _ told < <("$here/troupe" doctor --output plain 2>/dev/null | grep 'CUDA libraries') || told="the doctor does not say"
  [ "$verdict" = ok ] || echo "$told"
}

# What all parts read: where that is computed which is for a GPU (`device`), and why some of it is left out: no GPU, no tensor cores, or
# cores in their place (`no_gpu`, `no_tensor_cores`, `rehearsed`; nothing where that is no reason).
look_around() {
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1) || gpu=
  device=cuda no_gpu='' no_tensor_cores='' rehearsed=''
  if [ "$1" = rehearse ]; then
    gpu='' device=cpu rehearsed="a rehearsal on cores"
  elif [ -z "$gpu" ]; then
    no_gpu="no GPU was found" no_tensor_cores=$no_gpu
  else
    no_tensor_cores=$(lack_of_tensor_cores)
  fi
}

# Each part, and its finer parts after a colon.
run_part() {
  case $1 in
    smoke) smoke ;;
    tests) run_tests ;;
    tests:cuda) test_one_process ;;
    tests:ipc) test_ipc ;;
    tests:nccl) test_nccl ;;
    tests:memcheck | tests:racecheck) sanitize "${1#*:}" ;;
    parity) compare_with_cores; compare_families; compare_late_gradients; compare_schedules; lose_a_node ;;
    parity:models) compare_with_cores ;;
    parity:families) compare_families ;;
    parity:late) compare_late_gradients ;;
    parity:schedules) compare_schedules ;;
    parity:node) lose_a_node ;;
    types) compare_types ;;
    speed) measure_small_models; measure_gpt2; measure_kernels ;;
    speed:small) measure_small_models ;;
    speed:gpt2) measure_gpt2 ;;
    speed:kernels) measure_kernels ;;
    *)
      echo "no part is called $1; there are: smoke tests parity types speed, and" \
        "tests:{cuda,ipc,nccl,memcheck,racecheck} parity:{models,families,late,schedules,node} speed:{small,gpt2,kernels}" >&2
      return 2
      ;;
  esac
}

# limited SECONDS COMMAND ...: ends the command after that time, or when no time is left for the whole.
limited() {
  local seconds=$1 left; shift
  if [ -n "$deadline" ]; then
    left=$((deadline - SECONDS))
    [ "$left" -ge "$seconds" ] || seconds=$left
    [ "$seconds" -gt 0 ] || return 124
  fi
  timeout -k 5 "$seconds" "$@"
}

# as_host SECONDS COMMAND ...: with the host's own libraries. Those of the pack are older, and are there for its programs alone.
as_host() { limited "$1" env LD_LIBRARY_PATH="$libraries_of_host" "${@:2}"; }

# run run|rehearse [--keep FOLDER] [--within SECONDS] [PART ...]
run() {
  libraries_of_host=${LD_LIBRARY_PATH-}
  export LD_LIBRARY_PATH; LD_LIBRARY_PATH="$here/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$(folders_of_libraries)"
  export TROUPE_GOLDEN="$here/golden"
  local how=$1 keep='' part work code=0; shift
  deadline=''
  while :; do
    case ${1:-} in
      --keep) keep=$(realpath -m "${2:?"wanted a folder after --keep"}") ;;
      --within) deadline=$((SECONDS + ${2:?"wanted a number of seconds after --within"})) ;;
      *) break ;;
    esac
    shift 2
  done
  work=$(mktemp -d)
  cd "$work"
  look_around "$how"
  begin_table "$keep"
  row "host" "" "$(uname -sr), $(nproc) cores, ${gpu:-no GPU}; $(date -u +%F), troupe $(cat "$here/version")"
  [ $# -gt 0 ] || set -- tests parity types speed
  for part; do
    echo "$part" >&2
    run_part "$part" || { code=$?; break; }
  done
  end_table || code=1
  cd /
  rm -rf "$work"
  return "$code"
}
