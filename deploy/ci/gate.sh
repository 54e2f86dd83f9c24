#!/bin/sh
# One untrusted change in; verdict, JUnit, SARIF, summary and evidence out. For any CI that has git and a Docker engine.
# Exit code: 0 accepted, 1 rejected, 2 could not judge. Take this file from the base branch, never from the change.
#
#   BASE    commit that the change is to be merged into        HEAD  commit of the change
#   TASK    folder of the task, as it is in BASE               FOLDER  what the change may touch: the task's workspace
#   REPORTS where reports go (default: reports)
#
# Run it inside a clone that has both commits. Nothing of HEAD is checked out or run here: it is read as a diff.
set -eu
: "${BASE:?}" "${HEAD:?}" "${TASK:?}" "${FOLDER:?}"
reports=${REPORTS:-reports}
mkdir -p "$reports"
work=$(mktemp -d)
trap 'git worktree remove --force "$work/trusted" >/dev/null 2>&1 || :; rm -rf "$work"' EXIT

# Task, judge and gold as they are in the base branch.
git -c core.hooksPath=/dev/null worktree add --quiet --detach "$work/trusted" "$BASE"

# A name can be a command to a runner (::error…, ##vso[…]) or Markdown in a summary. Behind this sign and with a
# backslash after every hash it is neither: four spaces make it code. git writes control characters as escapes.
as_text() { sed -e 's/#/#\\/g' -e 's/^/    | /'; }

outside=$(git -c core.quotePath=true diff --name-only --no-renames "$BASE...$HEAD" -- . ":!$FOLDER")
if [ -n "$outside" ]; then
    # The gate says nothing about these, so somebody has to look at them.
    {
        printf '\nnot judged, because it lies outside of %s:\n\n' "$FOLDER"
        printf '%s\n' "$outside" | as_text
    } | tee "$reports/outside.txt"
fi
git diff --no-color --no-ext-diff --no-textconv "--relative=$FOLDER" "$BASE...$HEAD" >"$work/change.diff"
if [ ! -s "$work/change.diff" ]; then
    echo "nothing in $FOLDER is changed: nothing to judge"
    exit 0
fi

code=0
blastdoor gate --diff "$work/change.diff" --junit "$reports/gate.xml" --sarif "$reports/gate.sarif" \
    --markdown "$reports/gate.md" --evidence "$reports/evidence.json" "$work/trusted/$TASK" || code=$?
case $code in
0) echo "accepted" ;;
1) echo "rejected: $reports/gate.md says why" ;;
*) echo "could not judge: run the job again, or look at the engine" && code=2 ;;
esac
exit "$code"
