// The plugin of filepact for OpenCode: copy it to ~/.config/opencode/plugin/, with `filepact` on the PATH.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { isAbsolute, join, relative } from "node:path"

const HOOK = ["filepact", "hook", "opencode"]
const EVENTS = ["tool.execute.before", "tool.execute.after", "chat.message", "session.created", "session.idle", "permission.asked"]
const BEFORE = ["tool.execute.before"]
const GONE = "filepact is gone: install it again, or remove its hooks: ~/.config/opencode/plugin/filepact.js"
const turns = {}
// One plugin may be installed for all projects and one for this: a text of both is shown once.
const shown = (globalThis[Symbol.for("filepact.shown")] ??= new WeakMap())

// By its name it is none of the project's own.
function program(inside) {
  const [name] = HOOK
  if (isAbsolute(name)) return name
  const paths = (process.env.PATH ?? "").split(":").map((folder) => join(folder, name))
  const found = paths.find(existsSync) ?? ""
  const own = inside.some((folder) => !relative(folder, found).startsWith(".."))
  return isAbsolute(found) && !own ? found : ""
}

function ask(event, inside, facts) {
  if (!EVENTS.includes(event)) return Promise.resolve({})
  const failed = (why) => {
    const text = `${GONE} (${why})`
    return BEFORE.includes(event) ? { decision: "deny", reason: text } : { message: text }
  }
  return new Promise((done) => {
    const hook = spawn(program(inside) || "/dev/null", [...HOOK.slice(1), "--event", event], {
      cwd: facts.cwd,
      stdio: ["pipe", "pipe", "inherit"],
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PYTHON"))),
    })
    let said = ""
    hook.stdout.on("data", (part) => (said += part))
    hook.on("error", (error) => done(failed(error.message)))
    hook.on("close", (code) => {
      try {
        const answer = JSON.parse(code === 0 ? said || "{}" : "null")
        done(Object(answer) === answer ? answer : failed(`its hook ended with ${code}`))
      } catch (error) {
        done(failed(error.message))
      }
    })
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(facts))
  })
}

export const Filepact = async ({ client, directory, worktree }) => {
  const inside = [directory, worktree ?? directory].filter((folder) => folder !== "/")
  async function tell(of, event, session, facts = {}) {
    const said = await ask(event, inside, {
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
      const name = event.type.replace("permission.v2.", "permission.")
      if (EVENTS.includes(name)) await tell(event, name, event.properties.info?.id ?? event.properties.sessionID)
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
