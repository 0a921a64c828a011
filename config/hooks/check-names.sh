#!/usr/bin/env bash
# A hook after a person answered: takes the blanks off both ends of their `name`, and declines for
# them when less than three letters are left.
#
# It gets the question and the answer as JSON on standard input. Exit code 0 without output leaves the
# answer as it is. Needs jq.
set -euo pipefail

answer=$(cat)

# Who declined has given no name, and a form may have none.
if ! jq -e '.action == "accept" and (.content | has("name"))' <<<"$answer" >/dev/null; then
  exit 0
fi

jq -c '
  (.content.name | tostring | gsub("^\\s+|\\s+$"; "")) as $name
  | { hookSpecificOutput: ({ hookEventName: "ElicitationResult" } +
      if ($name | length) < 3
      then { action: "decline" }
      else { action: "accept", content: (.content + { name: $name }) }
      end) }' <<<"$answer"
