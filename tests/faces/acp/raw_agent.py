"""An agent that sends what it is told, line by line, and hands back every answer."""

import json
import sys

SCRIPT = json.loads(sys.argv[1])


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        message = json.loads(line)
        result = {}
        if message.get("method") == "initialize":
            result = {"protocolVersion": 1, "agentInfo": {"name": sys.argv[2], "version": "1"}}
        elif message.get("method") == "session/new":
            result = {"sessionId": "s1"}
        elif message.get("method") == "session/prompt":
            answers = []
            for number, (method, params) in enumerate(SCRIPT):
                send({"id": number, "method": method, "params": {"sessionId": "s1", **params}})
                answers.append(json.loads(sys.stdin.readline()))
            result = {"stopReason": "end_turn", "_meta": {"answers": answers}}
        if "id" in message:
            send({"id": message["id"], "result": result})


main()
