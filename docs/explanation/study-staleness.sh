#!/usr/bin/env bash
# Repeats the runs of staleness.md, three seeds of each, and draws the curves of the first seed:
#     bash docs/explanation/study-staleness.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for seed in 1 2 3; do
  for name in synchronous stale ws msnag ws_msnag_ga; do
    ./dev troupe train "config/study/$name.toml" --set "seed=$seed" --set "name=$name-$seed" -q
  done
done
grep -H '"eval"' runs/{synchronous,stale,ws,msnag,ws_msnag_ga}-[123]/events.jsonl
for name in synchronous stale ws msnag ws_msnag_ga; do folders+=("runs/$name-1"); done
./dev troupe report "${folders[@]}" --format svg --title "loss with four stages, a step after every micro-batch" \
  --out docs/explanation/pictures/staleness-loss.svg
