#!/usr/bin/env bash
# Checks that the pack of scripts/gpu-host is complete: the program finds all libraries in the pack,
# and prints a table.
set -euo pipefail
program=$1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
built=$(cd "$(dirname "$program")/.." && pwd)
[ -x "$built/tests/cuda/test_cuda" ] || { echo "skipped: built without CUDA"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$source/scripts/gpu-host" pack "$folder/pack.tar.xz" "$built"
mkdir "$folder/empty"
cd "$folder/empty"
tar -xf ../pack.tar.xz

# No library of the toolkit may come from this machine.
elsewhere=$(LD_LIBRARY_PATH=troupe-gpu/libraries ldd troupe-gpu/{troupe,*cuda*} |
  awk '/=>/ {print $3}' | grep -v '^troupe-gpu/libraries/' |
  grep -v -e '/libc\.so' -e '/libm\.so' -e '/libdl\.so' -e '/librt\.so' -e '/libpthread\.so' -e '/libresolv\.so' || true)
[ -z "$elsewhere" ] || { echo "not in the pack: $elsewhere"; exit 1; }

# The first call on a host, with cores in the GPU's place and a small model in that of GPT-2.
smoke_begun=$SECONDS
troupe-gpu/gpu-host rehearse --keep logs --within 540 smoke | tee smoked
[ $((SECONDS - smoke_begun)) -le 600 ] || { echo "smoke took $((SECONDS - smoke_begun)) s, wanted at most 600 s"; exit 1; }
for what in "parity: "{mlp,quickstart} "gpt-tiny, fp32"{", kernels loaded LAZY",", kernels loaded EAGER",": the same bits twice"}; do
  grep -q "^| $what  *| passed" smoked || { echo "no row of smoke: $what, passed"; exit 1; }
done
# Test programs start, and have nothing to test without a GPU.
for what in memory "kernels: the cores' bits" "kernels on tensor cores" graphs "memory shared by two processes" "two processes with NCCL"; do
  grep -q "^| $what  *| \(partly\|skipped | it was not built\)" smoked || { echo "no row of smoke: $what, partly"; exit 1; }
done
cmp smoked logs/table

# Each line of the table gives the result, or the reason why the test was skipped.
troupe-gpu/gpu-host run | tee told
grep -q '^| host ' told
for what in "tests of kernels and training" "tests of memory shared by two processes" "tests of two processes with NCCL" "kernels under compute-sanitizer: memcheck" \
  "parity: "{mlp,quickstart,llama-tiny,vit-tiny,resnet-tiny} "parity: family "{gpt2,yarn,gemma2} "late gradients: ws_msnag_ga_jfl" \
  "a node is killed: the same weights" "four stages have the bits of one, "{fp32,bf16} {tf32,fp16,bf16}": "{mlp,quickstart,llama-tiny,vit-tiny,resnet-tiny}; do
  grep -q "^| $what .*\(skipped\|passed\)" told
done
for type in fp32 tf32 fp16 bf16; do grep -q "^| gpt-small, $type, cuda .*\(skipped\|tokens/s\)" told; done
grep -q '^| gpt-small, fp32, cpu .* tokens/s' told

# Parts that are not simulated without a GPU are rehearsed, so that nothing runs for the first time
# on the GPU host.
troupe-gpu/gpu-host rehearse | tee rehearsed
for what in "parity: "{mlp,quickstart,llama-tiny,vit-tiny,resnet-tiny} "parity: "{"family "{gpt2,yarn,gemma2},"additions and an average","groups and frozen parameters"} \
  "late gradients: ws_msnag_ga_jfl" "four stages have the bits of one, "{fp32,bf16} {fp16,bf16}": "{mlp,quickstart,llama-tiny,vit-tiny,resnet-tiny} "a node is killed: the same weights"; do
  grep -q "^| $what .*passed" rehearsed
done
grep -q '^| four stages to one ' rehearsed
