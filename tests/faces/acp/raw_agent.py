"""An agent that sends what it is told, line by line, and hands back all that passed.

A script has requests for three times: ``before`` it answers ``session/new``, each of which it waits
for; ``around`` that answer, which are sent before it and answered after it; and in the ``prompt``.
A request is a method with its parameters; a list of requests is sent at once.  A step that begins
with ``notify`` is a notification, one with ``raw`` a line as it stands, one with ``await`` waits
for a notification, and one with ``allowed`` is done if the last question was answered with an option
whose id begins so.
"""

import json
import sys

SCRIPT, NAME = json.loads(sys.argv[1]), sys.argv[2]
PASSED = []
ANSWERS = {}


def send(message):
    message = {"jsonrpc": "2.0", **message}
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
    if "stopReason" not in message.get("result", {}):
        PASSED.append(["agent", message])


def receive():
    """The next request or notification; answers on the way are kept."""
    for line in sys.stdin:
        message = json.loads(line)
        PASSED.append(["client", message])
        if "method" in message:
            return message
        ANSWERS[message["id"]] = message
    return None


def wait(numbers):
    for line in sys.stdin:
        message = json.loads(line)
        PASSED.append(["client", message])
        if "method" not in message:
            ANSWERS[message["id"]] = message
        if all(number in ANSWERS for number in numbers):
            return


class Steps:
    def __init__(self):
        self.count = 0

    def start(self, step):
        """Send what one step says; the numbers of its requests."""
        if step[0] == "raw":
            sys.stdout.write(json.dumps(step[1]) + "\n")
            sys.stdout.flush()
            return []
        if step[0] == "allowed":
            said = ANSWERS[self.count - 1].get("result", {}).get("outcome", {})
            return self.start(step[1]) if str(said.get("optionId")).startswith("allow") else []
        if step[0] == "await":
            while receive()["method"] != step[1]:
                pass
            return []
        if step[0] == "notify":
            send({"method": step[1], "params": step[2]})
            return []
        numbers = []
        for method, params in step if isinstance(step[0], list) else [step]:
            send({"id": self.count, "method": method, "params": {"sessionId": "s1", **params}})
            numbers.append(self.count)
            self.count += 1
        return numbers


def main():
    steps = Steps()
    pending = []
    while message := receive():
        result, method = {}, message["method"]
        session = (message.get("params") or {}).get("sessionId")
        if session is not None and session == SCRIPT.get("wrong"):
            send({"id": message["id"], "error": "wrong"})
            continue
        if session == SCRIPT.get("refuse", ""):
            send({"id": message["id"], "error": {"code": -32603, "message": "refused"}})
            continue
        if method == "initialize":
            info = {"name": NAME, "version": "1"}
            result = {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}}
        elif method == "session/new":
            for step in SCRIPT.get("before", ()):
                wait(steps.start(step))
            for step in SCRIPT.get("around", ()):
                pending += steps.start(step)
            result = {"sessionId": "s1"}
        elif method == "session/prompt":
            if pending and not all(number in ANSWERS for number in pending):
                wait(pending)
            running = []
            for step in SCRIPT.get("prompt", ()):
                numbers = steps.start(step)
                if step[0] in ("notify", "raw", "await") or SCRIPT.get("hold"):
                    running += numbers
                elif numbers:
                    wait(numbers)
            if running:
                wait(running)
            answers = [ANSWERS[number] for number in range(steps.count)]
            order = [m["id"] for side, m in PASSED if side == "client" and "method" not in m]
            meta = {"answers": answers, "order": order, "passed": PASSED}
            result = {"stopReason": "end_turn", "_meta": meta}
        if "id" in message:
            send({"id": message["id"], "result": result})


main()
