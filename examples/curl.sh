#!/bin/sh
# The two calls every client makes, in plain HTTP: capture an exchange, then let the function find it again.
# Needs a running server (`halo serve`) and a key of it (`halo keys create --project customer-product`):
#   HALO_API_KEY=halo_… sh examples/curl.sh
set -eu

: "${HALO_API_KEY:?set it to a key of the project}"
base=${HALO_BASE_URL:-http://127.0.0.1:8765}
project=${HALO_PROJECT_KEY:-customer-product}

# Posts the JSON of standard input to path $1, prints the answer, and fails unless the status is one of $2.
post() {
  answer=$(curl --silent --show-error --max-time 30 --write-out '\n%{http_code}' -X POST "$base$1" \
    -H "Authorization: Bearer $HALO_API_KEY" -H "Content-Type: application/json" --data-binary @-)
  status=${answer##*
}
  printf '%s\n' "$answer"
  case " $2 " in
    *" $status "*) ;;
    *) echo "$1 answered $status, expected $2" >&2; exit 1 ;;
  esac
}

# 201 the first time; 200 when this very exchange was captured a moment ago.
post /api/v1/memory/capture "201 200" <<JSON
{
  "projectKey": "$project",
  "endUserKey": "user_123",
  "sessionData": {
    "messages": [
      {"role": "user", "content": "Keep my weekly reports short and send them in the morning."}
    ]
  },
  "response": {"role": "assistant", "content": "I will keep them concise and morning-ready."}
}
JSON

post /api/v1/memory/functions/halo_retrieve_end_user_memory "200" <<JSON
{
  "projectKey": "$project",
  "endUserKey": "user_123",
  "arguments": {
    "sessionData": {
      "messages": [{"role": "user", "content": "What format do I prefer for weekly reports?"}]
    },
    "query": "weekly report preference",
    "limit": 5
  }
}
JSON

printf '%s' "$answer" | grep -q "Keep my weekly reports short" || { echo "the preference did not come back" >&2; exit 1; }
echo "The preference came back."
