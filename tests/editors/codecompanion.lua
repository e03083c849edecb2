-- Opens a file, types into it, and has CodeCompanion's chat send one prompt to an agent over ACP.
-- FILEPACT_SCENE: JSON with plugins (folders), command (of the agent), file, typed (a last line; "" for none).
local scene = vim.json.decode(vim.env.FILEPACT_SCENE)
for _, one in ipairs(scene.plugins) do
  vim.opt.rtp:append(one)
end
vim.o.swapfile = false

local function tell(name, value)
  io.stdout:write(vim.json.encode({ name, value }) .. "\n")
  io.stdout:flush()
end

local ok, err = pcall(function()
  require("codecompanion").setup({
    adapters = {
      acp = {
        guarded = function()
          return require("codecompanion.adapters").extend("gemini_cli", {
            commands = { default = scene.command },
            defaults = { auth_method = vim.NIL, timeout = 60000 },
          })
        end,
      },
    },
    interactions = { chat = { adapter = "guarded" } },
  })
  vim.cmd.edit(scene.file)
  local edited = vim.api.nvim_get_current_buf()
  if scene.typed ~= "" then
    vim.api.nvim_buf_set_lines(edited, -1, -1, false, { scene.typed })
  end
  local chat = require("codecompanion").chat({ params = { adapter = "guarded" } })
    or require("codecompanion").last_chat()
  vim.api.nvim_create_autocmd("User", {
    pattern = "CodeCompanionChatDone",
    callback = vim.schedule_wrap(function()
      vim.cmd("silent! checktime")
      tell("buffer", vim.api.nvim_buf_get_lines(edited, 0, -1, false))
      tell("modified", vim.bo[edited].modified)
      vim.cmd("qa!")
    end),
  })
  chat:add_buf_message({ role = "user", content = "go" })
  chat:submit()
end)
if not ok then
  tell("failed", err)
  vim.cmd("cq")
end
