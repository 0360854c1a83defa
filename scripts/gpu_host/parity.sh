# Which runs have the same bits.

# same_as_cores WHAT CONFIG FOLDER [KEY=VALUE ...]: the cores' bits, and twice.
same_as_cores() {
  local what=$1 config=$2 into=$3; shift 3
  if left_out "$what" "$no_gpu"; then
    :
  elif ! train cpu "$config" "$into/cpu" "$@"; then
    row "$what" "FAILED" "on the cores: $(said "$into/cpu/said")"
  elif ! { train "$device" "$config" "$into/gpu" "$@" && train "$device" "$config" "$into/again" "$@"; }; then
    row "$what" "FAILED" "on the GPU: $(said "$into/gpu/said")"
  elif ! same_weights "$into/gpu" "$into/again"; then
    row "$what" "FAILED" "two runs on the GPU differ"
  elif ! same_weights "$into/cpu" "$into/gpu"; then
    row "$what" "FAILED" "other weights than the cores"
  else
    row "$what" "passed" "$(sha256sum <"$into/gpu/weights.safetensors" | cut -c1-16)"
  fi
}

compare_with_cores() {
  local config
  for config in "${models[@]}"; do
    same_as_cores "parity: $config" "$config" "$config" train.steps=12 train.eval_every=1000000 precision.compute=fp32
  done
}

# Families of models by the configurations that transformers wrote, and what fine-tuning adds to a model.
families=(gpt2 llama llama3 linear yarn mistral qwen2 qwen3 gpt_neox gpt_neox_serial gptj phi gemma gemma2 mixtral qwen3_moe qwen3_moe_sparse)

# config_of_family NAME FAMILY [LINE ...]: writes NAME.toml, and prints its place without ".toml".
config_of_family() {
  local place=$PWD/$1
  mkdir -p "$(dirname "$place")"
  {
    printf '[model]\nfrom = "%s"\ninit = "random"\n' "$here/golden/families/$2"
    printf '[data]\ntrain = "made:markov?states=48"\n[batch]\nglobal = 8\nmicro = 4\n[optimizer]\nlr = 1e-3\nclip_norm = 1.0\n'
    printf '%s\n' "${@:3}"
  } >"$place.toml"
  echo "$place"
}

compare_families() {
  local family config
  for family in "${families[@]}"; do
    config=$(config_of_family "families/$family/config" "$family")
    same_as_cores "parity: family $family" "$config" "families/$family" train.steps=8 precision.compute=fp32
  done
  config=$(config_of_family tuned/lora/config llama '[model.lora]' 'rank = 4' 'alpha = 8' 'match = ["*_proj"]' '[train]' 'ema = 0.9')
  same_as_cores "parity: additions and an average" "$config" tuned/lora train.steps=8 precision.compute=fp32
  config=$(config_of_family tuned/groups/config gpt2 '[[optimizer.group]]' 'match = ["h.0.*"]' 'frozen = true' \
    '[[optimizer.group]]' 'match = ["*.bias", "*ln_*"]' 'weight_decay = 0' 'lr = 0.5')
  same_as_cores "parity: groups and frozen parameters" "$config" tuned/groups train.steps=8 precision.compute=fp32
}

# Stale weights in four stages on one GPU, and what is done about them.
compare_late_gradients() {
  local remedy
  for remedy in stale ws msnag aggmsnag msnag_ws ws_ga ga_jfl ws_msnag_ga ws_msnag_ga_jfl; do
    same_as_cores "late gradients: $remedy" study/stale "late/$remedy" train.steps=24 "staleness.preset=$remedy"
  done
}

# Four stages on one GPU have the bits of one, by every synchronous schedule.
compare_schedules() {
  local schedule type
  for type in fp32 bf16; do
    local what="four stages have the bits of one, $type" by=()
    left_out "$what" "$([ "$type" = fp32 ] && echo "$no_gpu" || echo "$no_tensor_cores")" && continue
    for schedule in $("$here/troupe" schedule --list | awk '$2 == "synchronous" {print $1}'); do
      local keys=("train.device=$device" "precision.compute=$type" pipeline.stages=4 "pipeline.schedule=$schedule")
      case $schedule in interleaved | bfs | hanayo) keys+=(pipeline.chunks=2) ;; esac
      if limited 300 "$here/troupe" verify "$here/config/gpt-tiny.toml" --output plain "${keys[@]/#/--set=}" >verified 2>&1; then
        by+=("$schedule")
      else
        row "$what" "FAILED" "by $schedule: $(said verified)"
      fi
    done
    [ ${#by[@]} = 0 ] || row "$what" "passed" "by ${by[*]}"
  done
}

# Two nodes share the GPU, and one of them is killed.
lose_a_node() {
  local what="a node is killed: the same weights"
  left_out "$what" "$no_gpu" && return
  sed -e "s/^set = \[/&\"train.device=$device\", \"precision.compute=fp32\", /" -e "s|\"\.\./|\"$here/config/|" \
    "$here/config/scenarios/loses-a-node.toml" >loses-a-node.toml
  if limited 600 "$here/troupe" play loses-a-node.toml >played 2>&1; then
    row "$what" "passed" "$(tail -1 played)"
  else
    row "$what" "FAILED" "$(said played)"
    cp played "$(log_of "$what")"
    tail -20 played >&2
  fi
}
