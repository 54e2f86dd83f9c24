# One result of a judge in any shell: publish '{"score": 0.5}'
publish() {
    result=${BLASTDOOR_RESULT_PATH:-${EVO_RESULT_PATH:-}}
    if [ -z "$result" ]; then
        printf '%s\n' "$1"
        return
    fi
    (set -C && : >"$result") 2>/dev/null || { echo "the result is claimed already" >&2; return 1; }
    beside=$(mktemp "$result.XXXXXX") && printf '%s\n' "$1" >"$beside" && mv -f "$beside" "$result"
}
