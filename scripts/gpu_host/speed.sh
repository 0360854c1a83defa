# How fast it is, by the middle of some steps.

measure_small_models() {
  local model where on type what models=(gpt-tiny gpt-small)
  [ "$device" = cuda ] || models=(gpt-tiny)
  for model in "${models[@]}"; do
    for where in cpu,fp32 cuda,fp32 cuda,tf32 cuda,fp16 cuda,bf16; do
      on=${where%,*} type=${where#*,} what="$model, ${where#*,}, ${where%,*}"
      if [ "$on" = cuda ]; then
        [ "$device" = cuda ] || continue
        left_out "$what" "$no_gpu" && continue
        [ "$type" = fp32 ] || { left_out "$what" "$no_tensor_cores" && continue; }
      fi
      if train "$on" "$model" "$model/$where" train.steps=10 train.eval_every=1000000 "precision.compute=$type" pipeline.stages=1; then
        row "$what" "" "$(rate_in "$model/$where") tokens/s"
      else
        row "$what" "FAILED" "$(said "$model/$where/said")"
      fi
    done
  done
}

# ratio WHAT ONE OTHER
ratio() { row "$1" "" "$(awk -v one="$2" -v other="$3" 'BEGIN {printf "%.3f", one / other}')"; }

# Which part of what its tensor cores can do in 16 bits at most a GPU does, where that is known: 6 operations for each weight and
# token, and 6 for each layer, channel and place of the context, half of which attention leaves out.
utilisation() {
  case $gpu in *H100* | *H200*) ;; *) return ;; esac
  awk -v rate="$1" 'BEGIN {n = 124.48e6; printf ", %.1f %% of 989.4 TFLOP/s", rate * (6 * n + 6 * 12 * 768 * 1024) / 989.4e10}'
}

# What GPT-2 124M is trained by, against the peaks of this GPU.
measure_kernels() {
  local what="gpt2 124M, bf16, kernel by kernel"
  left_out "$what" "${no_tensor_cores:-$rehearsed}" && return
  local log; log=$(log_of "$what")
  if limited 300 "$here/troupe" bench gpu >"$log" 2>"$log.said"; then
    row "$what" "" "$(tail -1 "$log")"
    below "$log"
    [ ! -s "$log.said" ] || below "$log.said"
  else
    row "$what" "FAILED" "$(said "$log.said")"
  fi
}

# GPT-2 124M, 8 micro-batches of 16 x 1024 tokens: in one stage, in four on the same GPU, and by PyTorch. Rehearsed with a small one.
measure_gpt2() {
  local what="gpt2 124M, bf16, 16 x 1024" model=gpt2 type=bf16 keys=(train.steps=8 train.eval_every=1000000)
  local shape=(--layers 12 --width 768 --heads 12 --context 1024 --vocab 50304 --micro 16 --micro-batches 8 --steps 8)
  if [ -n "$rehearsed" ]; then
    what="gpt-tiny, fp32, 4 x 64" model=gpt-tiny type=fp32
    shape=(--layers 4 --width 128 --heads 4 --context 64 --vocab 512 --micro 4 --micro-batches 8 --steps 8 --on cpu)
  elif left_out "$what" "$no_tensor_cores"; then
    return
  fi
  local stages rates=()
  for stages in 1 4; do
    if ! train "$device" "$model" "$model/$stages-stages" "${keys[@]}" "precision.compute=$type" "pipeline.stages=$stages"; then
      row "$what, $stages stages" "FAILED" "$(said "$model/$stages-stages/said")"
      return
    fi
    rates+=("$(rate_in "$model/$stages-stages")")
    row "$what, $stages stages" "" "${rates[-1]} tokens/s$(utilisation "${rates[-1]}")"
  done
  ratio "four stages to one" "${rates[1]}" "${rates[0]}"

  if ! as_host 60 python3 -c 'import torch' 2>/dev/null; then
    row "$what, PyTorch" "skipped" "PyTorch was not found"
  elif peer_torch "${shape[@]}"; then
    compare_with_peer "$what" "${rates[0]}"
  else
    row "$what, PyTorch, compiled" "skipped" "$(why_not_compiled)"
    # A compiler is what its kernels are made with, and not every host has one.
    if peer_torch "${shape[@]}" --plain; then compare_with_peer "$what" "${rates[0]}"; fi
  fi
}

peer_torch() { as_host 600 python3 "$here/peer_torch_gpu.py" "$@" >peer 2>peer-said; }
why_not_compiled() { grep -m 1 -E 'Python\.h|C compiler|CalledProcessError|RuntimeError' peer-said || tail -1 peer-said; }

# compare_with_peer WHAT RATE
compare_with_peer() {
  local peer; peer=$(sed 1d peer | middle)
  row "$1, $(head -1 peer)" "" "$peer tokens/s$(utilisation "$peer")"
  ratio "one stage to that" "$2" "$peer"
}
