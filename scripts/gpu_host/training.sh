# Runs whose weights and rates are looked at.

# One of each kind of model.
models=(mlp quickstart llama-tiny vit-tiny resnet-tiny)

# train DEVICE CONFIG FOLDER [KEY=VALUE ...]: what it prints, and its weights, go into the folder.
train() {
  local on=$1 config=$2 into=$3 key words=(); shift 3
  mkdir -p "$into"
  for key in "$@"; do words+=(--set "$key"); done
  (cd "$into" && timeout 300 "$here/troupe" train "$here/config/$config.toml" --output json --set "train.device=$on" \
    --set train.export=weights.safetensors "${words[@]}" >told.jsonl 2>said)
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
