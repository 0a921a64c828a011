#!/usr/bin/env bash
# A small MCP server for the tests of servers that are programs.
#
#   server.sh legacy|modern [HABIT…]
#
# It reads one message a line and writes one message a line. What a tool does is in `call`, what a habit
# changes is where its name stands. Every process writes its number into the file $STARTS, if there is one.
#
# The JSON that it reads is what the gateway writes: compact, with the id before the parameters.

era=$1
shift
habits=" $* "
has() { [[ $habits == *" $1 "* ]]; }

[[ -n ${STARTS-} ]] && echo $$ >>"$STARTS"
has quits && { echo "no database" >&2; exit 1; }
# Until a file exists whose name is in $HEALTHY.
has sick && [[ ! -e $HEALTHY ]] && exit 1
has grumbles && echo "starting up" >&2

# What waits for answers: the question's id → the call's id, and what was answered so far.
declare -A call_of said
cancelled=
subscription=

say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
notice() { say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/$1\",\"params\":$2}"; }
ask() { # id, call, message
  call_of[${1//\"/}]=$2
  say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"elicitation/create\",\"params\":$(form "$3")}"
}
form() { printf '{"message":"%s","requestedSchema":{"type":"object","properties":{"nick":{"type":"string"}}}}' "$1"; }

# A tool's result with one text.
text_result() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\t'/ }
  local kind=
  [[ $era == modern ]] && kind='"resultType":"complete",'
  printf '{%s"content":[{"type":"text","text":"%s"}]}' "$kind" "$text"
}
text() { result "$1" "$(text_result "$2")"; }

# The first value of a member, as it is spelled; for texts and numbers.
member() { # line, name
  [[ $1 =~ \"$2\":(\"[^\"]*\"|[0-9]+) ]] && printf %s "${BASH_REMATCH[1]}"
}
plain() { local value; value=$(member "$1" "$2"); value=${value#\"}; printf %s "${value%\"}"; }

call() { # id, line
  local id=$1 line=$2 tool n
  tool=$(plain "$line" name)
  case $tool in
    echo) text "$id" "$(member "$line" x)" ;;
    whole) text "$id" "$line" ;;
    pid) text "$id" $$ ;;
    env) text "$id" "$(tr '\0' ' ' </proc/$$/environ)" ;;
    pwd) text "$id" "$(pwd -P)" ;;
    cancelled) text "$id" "$cancelled" ;;
    hang) ;;
    hang_and_tell) notice message '{"level":"info","data":"I hang"}' ;;
    # Asks once, or twice at once.
    ask)
      if [[ $era == legacy ]]; then
        ask "\"q-$id\"" "$id" "$(plain "$line" x)"
      elif [[ $line == *'"inputResponses"'* ]]; then
        text "$id" "$(plain "$line" nick)"
      else
        result "$id" "{\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":\"elicitation/create\",\"params\":$(form "$(plain "$line" x)")}},\"requestState\":\"s\"}"
      fi
      ;;
    ask_two) for n in 1 2; do ask "\"q-$id-$n\"" "$id" "question $n"; done ;;
    # A question whose id is the call's.
    ask_same_id) ask "$id" "$id" "same" ;;
    ask_and_exit) ask "\"q-$id\"" "$id" "too late"; sleep 0.2; read -r _ <"$GO"; exit 3 ;;
    ask_without_end) for ((n = 0; n < 12; n++)); do ask "\"q-$id-$n\"" "\"$id-$n\"" "again"; done ;;
    exit) echo "out of order" >&2; exit 3 ;;
    result_and_exit) notice message '{"level":"info","data":"last words"}'; text "$id" done; exit 3 ;;
    shut_output) exec >&-; sleep 1000 ;;
    # What is no message, of several kinds.
    junk)
      printf 'Listening on port 3000\n\n[]\n42\nnull\n{"a":1}\n{"jsonrpc":"2.0","id":\n'
      printf '\xff\xfe\x00\x00\n{"jsonrpc":"2.0","id":%s,"result":{"x":"\xc3\x28"}}\n' "$id"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"nul":"\0"}}\n' "$id"
      printf '%0.s[' {1..20000}
      printf '\n'
      text "$id" clean
      ;;
    deep)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"deep":' "$id"
      printf '%0.s[' {1..20000}
      printf '%0.s]' {1..20000}
      printf '}}\n'
      ;;
    # So many bytes in one line; the id first, or last.
    huge)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"x":"' "$id"
      head -c "$(member "$line" bytes)" /dev/zero | tr '\0' x
      printf '"}}\n'
      ;;
    huge_id_last)
      printf '{"jsonrpc":"2.0","result":{"x":"'
      head -c "$(member "$line" bytes)" /dev/zero | tr '\0' x
      printf '"},"id":%s}\n' "$id"
      ;;
    no_newline) head -c "$(member "$line" bytes)" /dev/zero | tr '\0' x; printf '\n'; text "$id" still ;;
    many_lines) yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}' | head -c "$(member "$line" bytes)"; printf '\n'; text "$id" "after the flood" ;;
    much_junk) yes 'log: something happened, and this is no JSON at all' | head -c "$(member "$line" bytes)"; printf '\n'; text "$id" "after the junk" ;;
    unreadable) for ((n = 0; n < 3; n++)); do say "{\"jsonrpc\":\"2.0\",\"id\":$n,\"id\":$n,\"method\":\"ping\"}"; done; text "$id" told ;;
    # Answers that nobody waits for.
    strangers)
      for n in 999 '"x"' null '"999"' 1.5; do result "$n" '{}'; done
      text "$id" mine
      text "$id" again
      ;;
    others) for ((n = 1; n <= 40; n++)); do [[ $n != "$id" ]] && text "$n" "not yours"; done; text "$id" mine ;;
    split)
      for n in '{"jsonrpc":"2.0",' "\"id\":$id," '"result":' "$(text_result whole)"; do printf %s "$n"; sleep 0.05; done
      printf '}\n'
      ;;
    crlf) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\r\n' "$id" "$(text_result crlf)" ;;
    batch) say "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"in a batch\"}},{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$(text_result batch)}]" ;;
    no_last_newline) printf '{"jsonrpc":"2.0","id":%s,"result":%s}' "$id" "$(text_result "no end")"; exit 0 ;;
    progress)
      for n in 1 2 3; do notice progress "{\"progressToken\":$(member "$line" progressToken),\"progress\":$n}"; done
      text "$id" done
      ;;
    # Progress of a call that goes on.
    progress_and_hang) notice progress "{\"progressToken\":$(member "$line" progressToken),\"progress\":1,\"message\":$(member "$line" x)}" ;;
    log) notice message '{"level":"info","data":"one"}'; notice custom '{"x":1.0}'; text "$id" done ;;
    stderr) printf 'a\e[31m"b"\x00 \xff c\n' >&2; text "$id" done ;;
    stderr_flood) for ((n = 0; n < 5000; n++)); do echo "line $n of a flood" >&2; done; head -c 100000 /dev/zero | tr '\0' y >&2; echo >&2; text "$id" done ;;
    # Children: one that ignores being asked to end; many; and one that leaves the process group.
    child) (trap '' TERM HUP INT; exec sleep 1000) & text "$id" $! ;;
    children) for ((n = 0; n < 60; n++)); do (trap '' TERM; exec sleep 1000) & printf '%s ' $!; done >"$LIST"; text "$id" "$(<"$LIST")" ;;
    runaway) setsid sleep 1000 </dev/null >/dev/null 2>&1 & text "$id" $! ;;
    # A child that keeps the pipes after the program has ended.
    legacy_of_pipes) setsid sleep 1000 & text "$id" $!; exit 0 ;;
    stubborn) text "$id" $$; trap '' TERM; exec sleep 1000 ;;
    freeze) text "$id" $$; kill -STOP $$ ;;
    changed) notice tools/list_changed "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$subscription}}"; text "$id" told ;;
    *) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no such tool: $tool\"}}" ;;
  esac
}

answered() { # id, line
  local key=${1//\"/} what
  [[ -z $key ]] && return
  local call=${call_of[$key]-}
  [[ -z $call ]] && return
  unset "call_of[$key]"
  what=$(plain "$2" nick)
  [[ -z $what ]] && what=$(plain "$2" action)
  [[ -z $what ]] && what="error $(member "$2" code)"
  said[$call]+="$what "
  local other
  for other in "${call_of[@]}"; do [[ $other == "$call" ]] && return; done
  text "$call" "${said[$call]% }"
}

while IFS= read -r line || [[ -n $line ]]; do
  id=$(member "$line" id)
  method=$(plain "$line" method)
  # A response has no method of its own; what is in it may have one.
  [[ $line =~ ^\{\"jsonrpc\":\"2.0\",\"id\":[^,]*,\"(result|error)\" ]] && method=
  case $method in
    server/discover)
      has probe-silent && continue
      has probe-exits && exit 1
      has probe-junk && { echo "Unknown method: server/discover"; continue; }
      if [[ $era == modern ]]; then
        result "$id" '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":60000,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"program","version":"2"}}}'
      else
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}"
      fi
      ;;
    initialize)
      has never-answers && continue
      has ends-early && { echo "can't begin" >&2; exit 2; }
      if has pings-first; then
        say '{"jsonrpc":"2.0","id":"p","method":"ping"}'
        IFS= read -r pong
        [[ $pong == *'"id":"p"'*'"result"'* ]] || exit 4
      fi
      if has asks-early; then
        say '{"jsonrpc":"2.0","id":"early","method":"roots/list"}'
        call_of[early]=0
        notice message '{"level":"info","data":"early"}'
      fi
      version=$(member "$line" protocolVersion)
      result "$id" "{\"protocolVersion\":$version,\"capabilities\":{\"tools\":{\"listChanged\":true},\"logging\":{}},\"serverInfo\":{\"name\":\"program\",\"version\":\"1\"}}"
      ;;
    subscriptions/listen)
      subscription=$id
      notice subscriptions/acknowledged "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$id},\"notifications\":{\"toolsListChanged\":true}}"
      ;;
    notifications/cancelled)
      cancelled+="$(member "$line" requestId) "
      echo "cancelled $(member "$line" requestId)" >&2
      ;;
    notifications/*) ;;
    ping) result "$id" '{}' ;;
    tools/list) result "$id" '{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}' ;;
    tools/call) call "$id" "$line" ;;
    '') answered "$id" "$line" ;;
    *) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}" ;;
  esac
done
has stubborn && { trap '' TERM; exec sleep 1000; }
exit 0
