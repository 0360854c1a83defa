# The first ten minutes on a host that nobody has tried. What can stop everything comes first; each row
# has a time limit.

# The first file of each library that would be loaded.
libraries_here() {
  local name folder found
  for name in libcuda libcublasLt libcudnn libcudnn_graph libnvrtc libnccl; do
    found=''
    while read -r -d : folder; do
      [ -z "$found" ] || break
      [ -n "$folder" ] && found=$(compgen -G "$folder/$name.so.*" | head -1) || true
    done <<<"$LD_LIBRARY_PATH:"
    [ -n "$found" ] || found=$(ldconfig -p 2>/dev/null | awk -v name="$name.so" 'index($1, name) == 1 {print $NF; exit}')
    row "library: $name" "" "${found:-not found}"
  done
}

tell_of_host() {
  row "memory" "" "$(free -g | awk '/^Mem/ {print $2 " GiB, " $7 " free"}')"
  [ -z "$gpu" ] || row "GPU" "" "$(nvidia-smi --query-gpu=name,memory.total,clocks.max.sm,power.limit,compute_cap --format=csv,noheader | head -1)"
  libraries_here
  "$here/troupe" doctor --output plain >"$(log_of doctor)" 2>&1 || true
  grep -iE 'gpu|cuda|nccl' "$(log_of doctor)" | while read -r line; do row "doctor" "" "$line"; done
  local program
  for program in "$here"/troupe "$here"/*cuda*; do
    if ldd "$program" 2>/dev/null | grep -q 'not found'; then
      row "$(basename "$program")" FAILED "$(ldd "$program" | grep 'not found' | tr -s '\t\n' ' ')"
    fi
  done
}

# warnings_of FOLDER: a row for each warning of a run.
warnings_of() {
  { grep -h '"type":"warn"' "$1/told.jsonl" || true; } | sort -u | head -8 | while read -r line; do
    row "warning" "" "$(grep -o '"text":".*"' <<<"$line" | cut -c9-)"
  done
}

# seconds_to_first_step FOLDER BEGUN: from BEGUN, in seconds since 1970, to the end of the first step.
seconds_to_first_step() {
  local first; first=$(grep -m 1 '"type":"step"' "$1/told.jsonl" | grep -o '"time":[0-9.e+]*' | cut -d: -f2)
  awk -v first="${first:-0}" -v begun="$2" 'BEGIN {printf "%.1f", first - begun}'
}

# What is trained: GPT-2 124M in bf16, and a small model in a rehearsal.
choose_smoke_model() {
  smoke_model=gpt2 smoke_type=bf16 smoke_name="gpt2 124M, bf16"
  [ -z "$rehearsed" ] || smoke_model=gpt-tiny smoke_type=fp32 smoke_name="gpt-tiny, fp32"
}

# smoke_train LOADING: 8 steps of the model, with NVIDIA's kernels loaded EAGER or LAZY.
smoke_train() {
  local what="$smoke_name, kernels loaded $1" into="smoke/$1" watcher='' memory='' begun; begun=$(date +%s.%N)
  mkdir -p "$into"
  if [ -n "$gpu" ]; then
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 200 >"$into/memory" 2>/dev/null &
    watcher=$!
  fi
  if CUDA_MODULE_LOADING=$1 train_within 90 "$device" "$smoke_model" "$into" train.steps=8 train.eval_every=1000000 \
    "precision.compute=$smoke_type"; then
    [ -z "$gpu" ] || memory="; at most $(most_in "$into/memory") MiB of the GPU"
    row "$what" "passed" "$(rate_in "$into") tokens/s$(utilisation "$(rate_in "$into")"); first step after $(seconds_to_first_step "$into" "$begun") s$memory"
  else
    row "$what" "FAILED" "$(said "$into/said")"
    tail -5 "$into/said" >&2
  fi
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  warnings_of "$into"
}
# The largest number of a file.
most_in() { sort -g "$1" | tail -1; }

smoke_twice() {
  local what="$smoke_name: the same bits twice"
  [ -f smoke/LAZY/weights.safetensors ] && [ -f smoke/EAGER/weights.safetensors ] || return 0
  if same_weights smoke/LAZY smoke/EAGER; then
    row "$what" "passed" "$(sha256sum <smoke/LAZY/weights.safetensors | cut -c1-16)"
  else
    row "$what" "FAILED" "two runs differ"
  fi
}

smoke() {
  tell_of_host
  [ "$failed" = 0 ] || return 0
  try_tests test_cuda "memory" 40 -# '[#memory_test]'
  [ "$failed" = 0 ] || return 0
  try_tests test_cuda "kernels: the cores' bits" 60 -# '[#kernels_test],[#between_layers_test]'
  try_tests test_cuda "kernels on tensor cores" 90 -# '[#tensor_core_kernels_test]'
  try_tests test_cuda "graphs" 40 -# '[#graphs_test],[#late_graphs_test]'
  local config
  for config in mlp quickstart; do
    same_as_cores "parity: $config" "$config" "smoke/$config" train.steps=12 train.eval_every=1000000 precision.compute=fp32
  done
  choose_smoke_model
  if ! left_out "$smoke_name" "$no_tensor_cores"; then
    smoke_train LAZY
    smoke_train EAGER
    smoke_twice
  fi
  measure_kernels
  try_tests test_ipc_cuda "memory shared by two processes" 100
  try_tests test_nccl_cuda "two processes with NCCL" 60
}
