# The table, a row at a time, and the logs behind it.

# begin_table [FOLDER FOR LOGS]: without a folder the logs are kept only if something fails.
begin_table() {
  kept=$1
  logs=${kept:-$(mktemp -d)}
  mkdir -p "$logs"
  logs=$(realpath "$logs")
  failed=0
  : >"$logs/table"
}

# row WHAT VERDICT FIGURE: prints it at once, because the host may be gone at any time.
row() {
  printf '| %-44s | %-7s | %s |\n' "$1" "$2" "$3" | tee -a "$logs/table"
  [ "$2" != FAILED ] || failed=1
}

# below FILE: prints it below the row that it belongs to.
below() { sed 's/^/    /' "$1" | tee -a "$logs/table"; }

# log_of WHAT: the file for what was printed while WHAT was tried.
log_of() { echo "$logs/$(tr -cs 'a-zA-Z0-9\n' - <<<"$1" | sed 's/-$//').log"; }

# Returns whether all went well.
end_table() {
  if [ -n "$kept" ] || [ "$failed" = 1 ]; then
    echo "logs: $logs" >&2
  else
    rm -rf "$logs"
  fi
  return "$failed"
}

# left_out WHAT REASON: adds a row and succeeds if there is a reason, or no time is left.
left_out() {
  local reason=$2
  if [ -z "$reason" ] && [ -n "$deadline" ] && [ "$SECONDS" -ge "$deadline" ]; then reason="no time was left"; fi
  [ -n "$reason" ] || return 1
  row "$1" "skipped" "$reason"
}

# What a program said of its failure. One that was ended at its time limit said nothing.
said() {
  if [ -s "$1" ]; then
    grep -m 1 -e error -e FAILED "$1" || tail -1 "$1"
  else
    echo "it was not done in time"
  fi
}
