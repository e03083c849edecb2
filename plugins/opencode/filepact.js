// The plugin of filepact for OpenCode: copy it to ~/.config/opencode/plugin/, with `filepact` on the PATH.
import { spawn } from "node:child_process"

const HOOK = ["filepact", "hook", "opencode"]
const EVENTS = ["tool.execute.before", "tool.execute.after", "chat.message", "session.created", "session.idle"]
const turns = {}
// One plugin may be installed for all projects and one for this: a text of both is shown once.
const shown = (globalThis[Symbol.for("filepact.shown")] ??= new WeakMap())

function ask(event, facts) {
  if (!EVENTS.includes(event)) return Promise.resolve({})
  return new Promise((done) => {
    const hook = spawn(HOOK[0], [...HOOK.slice(1), "--event", event], {
      cwd: facts.cwd,
      stdio: ["pipe", "pipe", "inherit"],
    })
    let said = ""
    hook.stdout.on("data", (part) => (said += part))
    hook.on("error", (error) => done({ message: `filepact could not be started: ${error.message}` }))
    hook.on("close", () => {
      try {
        done(said ? JSON.parse(said) : {})
      } catch {
        done({ message: "filepact gave no answer that can be read" })
      }
    })
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(facts))
  })
}

export const Filepact = async ({ client, directory }) => {
  async function tell(of, event, session, facts = {}) {
    const said = await ask(event, {
      session_id: session ?? "",
      turn_id: turns[session] ?? "",
      cwd: directory,
      ...facts,
    })
    if (said.message && shown.get(of) !== said.message) {
      shown.set(of, said.message)
      await client.tui?.showToast({ body: { message: said.message, variant: "warning" } }).catch(() => {})
    }
    if (said.decision === "deny") throw new Error(said.reason)
  }
  return {
    event: async ({ event }) => {
      const about = event.properties
      if (event.type === "session.created") await tell(event, event.type, about.info?.id)
      if (event.type === "session.idle") await tell(event, event.type, about.sessionID)
    },
    "chat.message": async (input, output) => {
      turns[input.sessionID] = output.message?.id ?? input.messageID
      await tell(input, "chat.message", input.sessionID)
    },
    "tool.execute.before": async (input, output) =>
      tell(input, "tool.execute.before", input.sessionID, {
        tool: input.tool,
        tool_use_id: input.callID,
        args: output.args,
      }),
    "tool.execute.after": async (input) =>
      tell(input, "tool.execute.after", input.sessionID, {
        tool: input.tool,
        tool_use_id: input.callID,
        args: input.args,
      }),
  }
}
