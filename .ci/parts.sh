# Sourced by `run` and `nightly`: parts of which all run whatever became of the others, and the report at the end: the
# last lines of all parts that failed, each test that failed with its reason, and all counts.
# Each part has a deadline, several times what it takes: one that hangs is cut, said to be, and costs the others nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
log=$(mktemp)
own=$(mktemp)
ends=$(mktemp)
beside=$(mktemp -d)
trap 'rm -rf "$log" "$own" "$ends" "$beside"' EXIT
status=0

within() {  # minutes, command: its exit status; 124 or 137 if it had to be stopped
    timeout --kill-after=30 "$1m" "${@:2}" 2>&1 | tee "$own" | tee -a "$log"
    cut_or_not $? "$@"
}

cut_or_not() {  # exit status, minutes, command: that status; what was cut is said
    case $1 in 124 | 137) echo "cut after $2 minutes, unfinished: ${*:3}" | tee -a "$log" "$ends" ;; esac
    return "$1"
}

failed() {  # what failed; its last lines are said at the end
    status=1
    { echo "$1 failed:"; tail -n 12 "$own" | cut -c 1-300; } >>"$ends"
}

part() {  # minutes, a target of make whose failure counts, and its variables
    within "$1" make "${@:2}" || failed "make $2"
}

begin() {  # minutes, a target: it runs beside what comes next and gives way to it, until `end` waits for it
    nice -n 10 timeout --kill-after=30 "$1m" make "$2" >"$beside/$2" 2>&1 &
    echo "$! $1" >"$beside/$2.began"
}

end() {  # a target that was begun: what it printed, and whether it failed
    local number minutes ended
    read -r number minutes <"$beside/$1.began"
    wait "$number"
    ended=$?
    tee "$own" <"$beside/$1" | tee -a "$log"
    cut_or_not $ended "$minutes" make "$1" || failed "make $1"
}

# What failed is run once more, alone (scripts/again.py says which tests get that chance): what passes then is named.
tests() {  # minutes, a target that ends with pytest; options for running some of its tests again
    within "$1" make "$2" && return
    tail -n 12 "$own" | cut -c 1-300 >>"$ends"
    within 10 .venv/bin/python scripts/again.py "${@:3}" || failed "make $2, run again,"
}

report() {
    cat "$ends"
    python3 scripts/count_tests.py "$log" || status=1
    exit $status
}
