# The table, and what becomes of its lines.

begin_table() {
  table=$PWD/table
  failed=0
  : >"$table"
  : >"$table-below"
}

# row WHAT VERDICT FIGURE
row() {
  printf '| %-44s | %-7s | %s |\n' "$1" "$2" "$3" >>"$table"
  [ "$2" != FAILED ] || failed=1
}

# below_table FILE
below_table() {
  echo
  cat "$1"
} >>"$table-below"

# Prints it; how that ends is how all went.
end_table() {
  cat "$table" "$table-below"
  rm -rf "$PWD"
  return "$failed"
}

# left_out WHAT REASON: where there is a reason.
left_out() {
  [ -n "$2" ] || return 1
  row "$1" "skipped" "$2"
}

# What a program said of its failure.
said() { grep -m 1 -e error -e FAILED "$1" || tail -1 "$1"; }
