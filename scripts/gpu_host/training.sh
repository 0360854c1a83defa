# Runs whose weights and rates are looked at.

# One of each kind of model.
models=(mlp quickstart llama-tiny vit-tiny resnet-tiny)

# train DEVICE CONFIG FOLDER [KEY=VALUE ...]: what it prints, and its weights, go into the folder.
train() { train_within 300 "$@"; }

# train_within SECONDS DEVICE CONFIG FOLDER [KEY=VALUE ...]: CONFIG is one of the pack's by its name, or a place, without ".toml".
train_within() {
  local seconds=$1 on=$2 config=$3 into=$4 code=0 key words=(); shift 4
  case $config in /*) ;; *) config=$here/config/$config ;; esac
  mkdir -p "$into"
  for key in "$@"; do words+=(--set "$key"); done
  (cd "$into" && limited "$seconds" "$here/troupe" train "$config.toml" --output json --set "train.device=$on" \
    --set train.export=weights.safetensors "${words[@]}" >told.jsonl 2>said) || code=$?
  cp "$into/told.jsonl" "$(log_of "train $into").jsonl"
  cp "$into/said" "$(log_of "train $into")"
  return $code
}

same_weights() { cmp -s "$1/weights.safetensors" "$2/weights.safetensors"; }

# The rate of the steps but the first, in the middle.
rate_in() {
  grep '"type":"step"' "$1/told.jsonl" | sed 1d | grep -o '"rate":[0-9.e+]*' | cut -d: -f2 | middle
}

# The loss of the last step.
loss_in() { grep '"type":"step"' "$1/told.jsonl" | tail -1 | grep -o '"loss":[0-9.e+-]*' | cut -d: -f2; }

# Of numbers on lines.
middle() { sort -g | awk '{all[NR] = $1} END {if (NR) printf "%.6g", all[int((NR + 1) / 2)]}'; }
