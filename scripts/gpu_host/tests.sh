# The programs of the tests, and the kernels once more under compute-sanitizer.

# try WHAT SECONDS COMMAND ...: adds a row with the last that the command says.
try() {
  local what=$1 seconds=$2 code=0 verdict=passed more log begun=$SECONDS; shift 2
  log=$(log_of "$what")
  limited "$seconds" "$@" >"$log" 2>&1 || code=$?
  # Tests that have nothing to test say so, and pass.
  more=$(grep -o 'skipped: .*' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) skipped: /; \1 left out: /' | tr -d '\n') || true
  [ -z "$more" ] || verdict=partly
  case $code in
    0) ;;
    124 | 137) verdict=FAILED more="$more; not done after $seconds s" ;;
    *) verdict=FAILED more="$more; exit $code" ;;
  esac
  row "$what" $verdict "$(grep '[^=]' "$log" | tail -2 | tr -s '\n' ' ' | sed 's/ $//' | cut -c1-300)$more; $((SECONDS - begun)) s"
  [ $verdict != FAILED ] || failures_in "$log" >&2
}

# What failed, in a few lines: the names of failed tests, and the places.
failures_in() {
  if grep -q 'FAILED' "$1"; then
    grep -B 14 -A 6 'FAILED' "$1" | head -80
  else
    tail -20 "$1"
  fi
}

# try_tests PROGRAM WHAT SECONDS [WORD ...]: in a rehearsal the program sees no GPU and leaves out its tests. That shows that it
# starts here.
try_tests() {
  local program=$1 what=$2 seconds=$3; shift 3
  if left_out "$what" "$no_gpu"; then
    :
  elif [ ! -x "$here/$program" ]; then
    row "$what" "skipped" "it was not built"
  elif [ -n "$rehearsed" ]; then
    try "$what" "$seconds" env CUDA_VISIBLE_DEVICES= "$here/$program" "$@"
  else
    try "$what" "$seconds" "$here/$program" "$@"
  fi
}

# Prints where compute-sanitizer of a toolkit lies, if it is there.
compute_sanitizer() {
  local program
  for program in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer; do
    if command -v "$program" >/dev/null; then echo "$program"; return; fi
  done
}

# sanitize TOOL. Racecheck does not know the barriers by which cuDNN's kernels for Hopper wait for memory, and reports hundreds of
# hazards in attention and convolutions, so it leaves these two tests out.
sanitize() {
  local what="kernels under compute-sanitizer: $1" program
  local tests='[#kernels_test],[#tensor_core_kernels_test]'
  [ "$1" != racecheck ] || tests+='~"attention on tensor cores*"~"convolutions on tensor cores*"'
  left_out "$what" "${no_tensor_cores:-$rehearsed}" && return
  program=$(compute_sanitizer)
  if [ -z "$program" ]; then
    row "$what" "skipped" "compute-sanitizer was not found"
  else
    try "$what" 900 env TROUPE_TEST_BLOCKS=separate "$program" --tool "$1" --error-exitcode 99 "$here/test_cuda" -# "$tests"
  fi
}

test_one_process() { try_tests test_cuda "tests of kernels and training" 600; }
test_ipc() { try_tests test_ipc_cuda "tests of memory shared by two processes" 300 --durations yes; }
test_nccl() { try_tests test_nccl_cuda "tests of two processes with NCCL" 900 --durations yes; }

run_tests() {
  test_one_process
  test_ipc
  test_nccl
  local tool
  for tool in memcheck racecheck; do sanitize "$tool"; done
}
