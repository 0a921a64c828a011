#!/usr/bin/env bash
# A hook before a question reaches a person: answers the questions of one tool, and leaves all others
# to the person.
#
# It gets the question as JSON on standard input. Exit code 0 without output means that it has no
# opinion. Needs jq.
set -euo pipefail

question=$(cat)

if [ "$(jq -r '.tool_name // ""' <<<"$question")" = mcp__booking__book_table ]; then
  jq -nc '{
    hookSpecificOutput: {
      hookEventName: "Elicitation",
      action: "accept",
      content: { guests: 2, name: "Front desk" }
    }
  }'
fi
