# What is rounded by tensor cores: twice the same bits, and the loss of fp32 to 2 %.

# same_twice TYPE CONFIG
same_twice() {
  local what="$1: $2" into="types/$2"
  # So few steps shall not be spent on finding a loss scale.
  local keys=(train.steps=12 train.eval_every=1000000 precision.loss_scale.initial_power=8)
  if ! { [ -d "$into/fp32" ] || train "$device" "$2" "$into/fp32" "${keys[@]}" precision.compute=fp32; }; then
    row "$what" "FAILED" "in fp32: $(said "$into/fp32/said")"
  elif ! train "$device" "$2" "$into/$1" "${keys[@]}" "precision.compute=$1"; then
    row "$what" "FAILED" "$(said "$into/$1/said")"
  elif ! train "$device" "$2" "$into/$1-again" "${keys[@]}" "precision.compute=$1"; then
    row "$what" "FAILED" "for the second time: $(said "$into/$1-again/said")"
  elif ! same_weights "$into/$1" "$into/$1-again"; then
    row "$what" "FAILED" "two runs differ"
  else
    local loss wanted verdict
    loss=$(loss_in "$into/$1") wanted=$(loss_in "$into/fp32")
    verdict=$(awk -v loss="$loss" -v wanted="$wanted" 'BEGIN {d = loss / wanted - 1; print (d < 0.02 && d > -0.02 ? "passed" : "FAILED")}')
    row "$what" "$verdict" "loss $loss, in fp32 $wanted"
  fi
}

compare_types() {
  local type config
  for type in tf32 fp16 bf16; do
    for config in "${models[@]}"; do
      if [ "$type" = tf32 ]; then
        left_out "$type: $config" "${no_tensor_cores:-$rehearsed}" && continue
      else
        left_out "$type: $config" "$no_tensor_cores" && continue
      fi
      same_twice "$type" "$config"
    done
  done
}
