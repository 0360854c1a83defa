# The programs of the tests, and the kernels once more under the eyes of compute-sanitizer.

# try WHAT SECONDS COMMAND ...: how it ends, and the last that it says.
try() {
  local what=$1 seconds=$2 code=0 verdict=passed more; shift 2
  timeout "$seconds" "$@" >tried 2>&1 || code=$?
  # Tests that have nothing to test say so, and pass.
  more=$(grep -o 'skipped: .*' tried | sort | uniq -c | sed 's/^ *\([0-9]*\) skipped: /; \1 left out: /' | tr -d '\n') || true
  [ -z "$more" ] || verdict=partly
  [ $code != 124 ] || more="; not done after $seconds s"
  if [ $code != 0 ]; then
    verdict=FAILED
    cat tried >&2
  fi
  row "$what" $verdict "$(grep . tried | tail -2 | tr -d '\n')$more"
}

# try_tests PROGRAM WHAT SECONDS
try_tests() {
  if left_out "$2" "${no_gpu:-$rehearsed}"; then
    :
  elif [ ! -x "$here/$1" ]; then
    row "$2" "skipped" "it was not built"
  else
    try "$2" "$3" "$here/$1"
  fi
}

# Of a toolkit, where there is one.
compute_sanitizer() {
  local program
  for program in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer; do
    if command -v "$program" >/dev/null; then echo "$program"; return; fi
  done
}

# sanitize TOOL
sanitize() {
  local what="kernels under compute-sanitizer: $1" program
  left_out "$what" "${no_tensor_cores:-$rehearsed}" && return
  program=$(compute_sanitizer)
  if [ -z "$program" ]; then
    row "$what" "skipped" "compute-sanitizer was not found"
  else
    try "$what" 900 "$program" --tool "$1" --error-exitcode 99 "$here/test_cuda" -# '[#kernels_test],[#tensor_core_kernels_test]'
  fi
}

run_tests() {
  try_tests test_cuda "tests of kernels and training" 600
  try_tests test_ipc_cuda "tests of memory shared by two processes" 300
  try_tests test_nccl_cuda "tests of two processes with NCCL" 900
  local tool
  for tool in memcheck racecheck; do sanitize "$tool"; done
}
