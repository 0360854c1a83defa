# The programs of the tests, and the kernels once more under the eyes of compute-sanitizer.

# try_tests PROGRAM WHAT SECONDS
try_tests() {
  if left_out "$2" "${no_gpu:-$rehearsed}"; then
    :
  elif [ ! -x "$here/$1" ]; then
    row "$2" "skipped" "it was not built"
  elif timeout "$3" "$here/$1" >tests 2>&1; then
    row "$2" "passed" "$(tail -2 tests | tr -d '\n')"
  else
    row "$2" "FAILED" "$(tail -2 tests | tr -d '\n')"
    cat tests >&2
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
  elif timeout 300 "$program" --tool "$1" --error-exitcode 99 "$here/test_cuda" -# '[#kernels_test],[#tensor_core_kernels_test]' \
    >sanitized 2>&1; then
    row "$what" "passed" "$(tail -1 sanitized)"
  else
    row "$what" "FAILED" "$(tail -1 sanitized)"
    cat sanitized >&2
  fi
}

run_tests() {
  try_tests test_cuda "tests of kernels and training" 600
  try_tests test_ipc_cuda "tests of memory shared by two processes" 300
  try_tests test_nccl_cuda "tests of two processes with NCCL" 900
  local tool
  for tool in memcheck racecheck; do sanitize "$tool"; done
}
