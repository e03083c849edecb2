-- Opens a file, types into it, and has avante send one prompt to an agent over ACP, without its sidebar.
-- FILEPACT_SCENE: as for codecompanion.lua.
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
  local env = { HOME = vim.env.HOME, PATH = vim.env.PATH, PYTHONPATH = vim.env.PYTHONPATH }
  require("avante.config").setup({
    provider = "guarded",
    acp_providers = {
      guarded = { command = scene.command[1], args = vim.list_slice(scene.command, 2), env = env },
    },
  })
  vim.cmd.edit(scene.file)
  local edited = vim.api.nvim_get_current_buf()
  if scene.typed ~= "" then
    vim.api.nvim_buf_set_lines(edited, -1, -1, false, { scene.typed })
  end
  require("avante.llm")._stream_acp({
    instructions = "go",
    on_stop = vim.schedule_wrap(function(stopped)
      vim.cmd("silent! checktime")
      tell("stopped", stopped.reason)
      tell("buffer", vim.api.nvim_buf_get_lines(edited, 0, -1, false))
      tell("modified", vim.bo[edited].modified)
      vim.cmd("qa!")
    end),
  })
end)
if not ok then
  tell("failed", err)
  vim.cmd("cq")
end
