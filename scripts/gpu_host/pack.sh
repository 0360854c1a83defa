# What the other host lacks, in one archive.

largest_mib=16

# Of the system itself: a host has its own, which fit its kernel and its loader.
is_of_system() {
  case $1 in
    ld-linux-*.so.* | libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.*) return 0 ;;
  esac
  return 1
}

# pack ARCHIVE [FOLDER THAT WAS BUILT]
pack() {
  local archive built folder program library
  archive=$(realpath "$1")
  built=${2:-build/release}
  cd "$here/.."
  [ -n "${2:-}" ] || ./dev build release
  local programs=("$built/apps/troupe" "$built/tests/cuda/test_cuda" "$built/tests/ipc/test_ipc_cuda" "$built/tests/ipc/ipc_cuda_peer")
  # Where there is NCCL's header; the library is the other host's.
  [ ! -x "$built/tests/nccl/test_nccl_cuda" ] || programs+=("$built/tests/nccl/test_nccl_cuda" "$built/tests/nccl/nccl_cuda_peer")
  [ -x "${programs[1]}" ] || { echo "no CUDA toolkit was found: nothing for a GPU was built" >&2; exit 1; }
  folder=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$folder'" EXIT
  mkdir -p "$folder/troupe-gpu/libraries"
  for program in "${programs[@]}"; do
    strip -o "$folder/troupe-gpu/$(basename "$program")" "$program"
    # A library that is not found here would not be there either.
    ldd "$program" | awk '/not found/ {print "missing: " $1 > "/dev/stderr"; exit 1}'
    for library in $(ldd "$program" | awk '$3 ~ /^\// {print $3}'); do
      is_of_system "$(basename "$library")" || cp -Lu "$library" "$folder/troupe-gpu/libraries/"
    done
  done
  cp -r config "$folder/troupe-gpu/config"
  find "$folder/troupe-gpu/config" -type f ! -name '*.toml' -delete
  # What test_cuda reads, and the configurations of families.
  cp -r tests/golden "$folder/troupe-gpu/golden"
  rm -r "$folder/troupe-gpu/golden/images" "$folder/troupe-gpu/golden/unet" "$folder/troupe-gpu/golden/tokenizers"
  find "$folder/troupe-gpu/golden/families" -type f ! -name config.json -delete
  cp -r scripts/gpu-host scripts/gpu_host bench/peers/peer_torch.py bench/peers/peer_torch_gpu.py "$folder/troupe-gpu/"
  git describe --always --dirty >"$folder/troupe-gpu/version"
  # The programs share most of their code. Only a dictionary larger than a program finds that.
  XZ_OPT=-9 tar -C "$folder" -cJf "$archive" troupe-gpu
  local bytes; bytes=$(stat -c %s "$archive")
  echo "$archive: $((bytes / 1024)) KiB"
  [ "$bytes" -le $((largest_mib << 20)) ] || { echo "wanted at most $largest_mib MiB" >&2; exit 1; }
}
