"""Which names the built-in rules protect, and that they are written as names are compared."""

from __future__ import annotations

from itertools import chain

import pytest

from filepact.domain.names import key
from filepact.domain.policy import ACTIONS, AccessRequest, Action, Policy, Verdict, decide
from filepact.domain.protected import BUILT_IN_RULES, NAMES
from filepact.text.glob import literal_length
from tests.domain.protected_page import PAGE, written

POLICY = Policy(BUILT_IN_RULES)


def verdict(path: str, action: Action) -> Verdict:
    return decide(AccessRequest("/project", path, action), POLICY).verdict


KEY_STORES = """
.ssh .ssh/config .ssh/authorized_keys id_rsa keys/id_ed25519 id_ecdsa_sk id_rsa.old id_rsa_work
deploy_rsa github_ed25519 putty.ppk .gnupg/secring.gpg server.key tls/private.pem key.p12 a.pfx
app.jks release.keystore upload.jceks AuthKey_ABC.p8 krb5.keytab etc/ssh/ssh_host_rsa_key
vault.kdbx old.kdb login.keychain-db .password-store/a.gpg wallet.dat .bitcoin/wallet
key4.db logins.json Cookies cookies.sqlite cookies.txt Default/Network/Cookies
.aws/credentials .aws/config .azure/msal.json .config/gcloud/x.db credentials.json
application_default_credentials.json service-account.json my-service_account-prod.json
gcp-key.json gcp-prod-key.json app-firebase-adminsdk-x1.json client_secret_123.json
.vault-token .gem/credentials .cargo/credentials.toml .config/gh/hosts.yml .config/rclone/a
.terraform.d/credentials.tfrc.json kaggle.json .databrickscfg .cache/huggingface/token
.codex/auth.json .claude/.credentials.json .claude.json .gemini/oauth_creds.json
.pi/agent/auth.json .local/share/opencode/auth.json .aider/oauth-keys.env
.bash_history .zsh_history .python_history .psql_history .node_repl_history .irb-history
fish_history ConsoleHost_history.txt .pgpass .git-credentials .htpasswd .authinfo
.config/git/credentials .mylogin.cnf .smbcredentials passwords.txt image/etc/shadow
"""

PROJECT_SECRETS = """
.env app/.env .env.local .env.production .env.prod.local .env-prod .env~ .env.bak .env.vault
production.env docker/web.env .envrc .flaskenv .dev.vars .envs/.local/.django
secrets.yaml secrets.yml secrets.json secrets.toml secrets.prod.yaml .secrets .secrets.toml
.streamlit/secrets.toml k8s/secret.yaml terraform.tfvars prod.auto.tfvars.json
terraform.tfstate terraform.tfstate.backup terraform.tfstate.1712.backup plan.tfplan
wp-config.php wp-config.php.bak LocalSettings.php database.yml config/database.yml
local.settings.json appsettings.Production.json config/credentials.yml.enc .npmrc .pypirc
.netrc _netrc .my.cnf .boto .s3cfg .kube/config kubeconfig.yaml .docker/config.json auth.json
.m2/settings.xml .gradle/gradle.properties .nuget/NuGet.Config .terraformrc office.ovpn pc.rdp
sftp-config.json .vscode/sftp.json wg0.conf
"""

VERSION_CONTROL = """
.git .git/hooks/pre-commit .git/config .git/objects/00/x .git/modules/a/config sub/.git
.hg/hgrc .svn/entries .bzr/README .jj/repo/store .sl/config _darcs/prefs
"""

CONTROL = """
.vscode/settings.json .vscode .vscode/tasks.json app.code-workspace .idea/workspace.xml x.iml
.zed/tasks.json .devcontainer/devcontainer.json .dir-locals.el .exrc .nvim.lua
.cursor/mcp.json .cursor/hooks.json .cursorrules sub/.cursorignore .claude/hooks/x.sh
.claude/settings.json CLAUDE.md CLAUDE.local.md AGENTS.md agents.md AGENTS.override.md
.mcp.json mcp.json .codex/config.toml .agents/skills/x/SKILL.md skills/y/SKILL.md .gemini/GEMINI.md
GEMINI.md QWEN.md CRUSH.md SOUL.md .github/copilot-instructions.md .github/instructions/a.md
.github/prompts/x.prompt.md .github/agents/x.md .roo/mcp.json .roomodes .clinerules
.clinerules/a.md .continue/config.yaml opencode.json opencode.jsonc .kiro/steering/a.md
.windsurfrules .windsurf/rules/a.md .junie/mcp/mcp.json .aider.conf.yml .augment/rules
.goosehints .kilocode/mcp.json .trae/rules .qoder/x .warp/x .aiignore .geminiignore .rooignore
.github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile azure-pipelines.yml
.travis.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker/a.yml
.husky/pre-commit .pre-commit-config.yaml lefthook.yml .gitattributes .gitmodules .gitconfig
.githooks/pre-push hooks/post-checkout mise.toml .mise.toml .tool-versions .bashrc .zshrc
.profile .bash_profile .zshenv profile.ps1 Microsoft.PowerShell_profile.ps1 .gdbinit .psqlrc
evil.pth python311._pth sitecustomize.py usercustomize.py conftest.py tests/conftest.py
.cargo/config.toml build.rs rust-toolchain.toml .yarnrc.yml .yarn/releases/yarn.cjs .pnpmfile.cjs
node_modules/.bin/tsc .venv/bin/python pip.conf crontab etc/cron.d/x a.service b.desktop
coc-settings.json .tmuxp.yaml .tmux.conf.local .autoenv .autoenv.zsh .autoenv_leave .arcconfig .arclint .emacs.el
.vimrc.local .luarc.json .clj-kondo/hooks/x.clj .bsp/sbt.json .settings/org.eclipse.jdt.core.prefs compile_commands.json
.ropeproject/config.py libx.so-gdb.py .gdbinit.py .erlang .ocamlinit nbproject/build-impl.xml AGENTS.local.md
.scrutinizer.yml heroku.yml .kamal/hooks/pre-deploy .changeset/config.json .lazy.lua .pre-commit-hooks.yaml
.ycm_extra_conf.py .lldbinit-Xcode Library/LaunchAgents/x.plist .config/autostart/x .htaccess autorun.inf link.lnk
"""

MANIFESTS = """
package.json package-lock.json yarn.lock pnpm-lock.yaml npm-shrinkwrap.json setup.py setup.cfg
pyproject.toml uv.lock pylock.toml pylock.dev.toml requirements.txt requirements-dev.txt
requirements/test.txt tox.ini
noxfile.py Cargo.toml Cargo.lock go.mod go.sum Makefile src/rules.mk CMakeLists.txt build.gradle
app/build.gradle.kts gradle.properties gradlew pom.xml App.csproj Directory.Build.props x.targets
web.config server.xml nuget.config Dockerfile api.Dockerfile docker-compose.yml
docker-compose.override.yml compose.yaml Gemfile Rakefile x.gemspec composer.json mix.exs
.editorconfig ruby_lsp.gemspec flake.lock .eslintrc.js eslint.config.mjs deno.json binding.gyp
.babelrc.js .postcssrc.js tailwind.config.ts .mocharc.cjs .mocharc.json .ncurc.js phpstan.neon
.php-cs-fixer.php configure autogen.sh Snakefile rules/a.smk WORKSPACE.bzlmod BUCK lib/BUCK
BUILD src/BUILD WORKSPACE Build lib/TARGETS DEPS knexfile.js .python-version lighthouserc.js OWNERS pkg/OWNERS Dangerfile.ts jsdoc.json drivers/Kconfig DESCRIPTION BUILD:x
x.config.js a/b.config.mts vite.config.build.ts release.config.cjs sst.config.ts drizzle.config.ts webpack.dev.js
gatsby-config.js gatsby-node.ts serverless.ts wdio.conf.js wdio.ci.conf.ts gunicorn.conf.py docs/conf.py hatch_build.py
pdm_build.py .markdownlint.cjs .textlintrc.js .remarkrc.js .graphqlrc.js .sequelizerc .syncpackrc.js .byebugrc .nycrc
.swcrc .eleventy.js .credo.exs .luacheckrc .simplecov .solargraph.yml App.csproj.user x.vcxproj.user x.vcxproj.filters
App.vbproj.lscache config.nims x.nims nim.cfg Setup.hs Setup.lhs cabal.project.local dune .merlin config/dev.exs bb.edn
build.gn a.gni MODULE.bazel book.toml mkdocs.yml Trunk.toml tsconfig.json tsconfig.build.json codegen.ts phpunit.xml.dist
psalm.xml .php_cs.dist rector.php project/Dependencies.scala buildSrc/src/X.kt local.properties foundry.toml lakefile.lean
x.asd Doxyfile configure.in x.gdextension Gemfile.local Appraisals config.ru analysis_options.yaml
compose.ci.yaml fly.staging.toml terragrunt.hcl .golangci.yml .air.toml magefile.go magefiles/build.go jest.config.js vite.config.ts PKGBUILD
"""

FREE = """
.env.example .env.sample .env.template .env.dist .env.schema .env.local.example .env-example
example.env app.example.env env.py environment.py .envoy.yaml .environment
id_rsa.pub .config/known_hosts_test.go server.pub public.pem server-public.pem cacert.pem
certifi/cacert.pem ca-bundle.pem etc/ssl/certs/Root.pem server.crt
monkey.py keyboard.ts tokenizer.json token.go tokens.json password_reset.html passwords.py
credentials_test.go credentials.py src/credentials/index.ts secrets.py secrets_test.py
docs/secrets.md secretary.txt .secrets.baseline chart/templates/secret.yaml settings.py
appsettings.json wp-config-sample.php lib/cookies/index.js kubeconfig.go cmd/kubeconfig/x.go
history.py history.txt docker/config.json kube/config aws/credentials.ts
README.md .gitignore .gitkeep .dockerignore .npmignore .prettierignore .gitted
.github/ISSUE_TEMPLATE/bug.md .github/FUNDING.yml .github/pull_request_template.md
docs/claude-integration.md claude-notes.md docs/claude_api.md CLAUDE_GUIDE.md src/agents_test.md docs/agents-overview.md
AGENTS-HOWTO.md build/x.js src/build/index.ts build workspace src/build deps targets/a.c BUILD/x description
app/config.js src/config.ts lib/app-config.js webpack.md x.config.test.ts x.config.spec.js types/vite.config.d.ts
config.json app.config.json profile.ts src/profile/a.ts rc.js arc.ts src.js .src procfile.py serverless.md
agents.py claude.py mcp.py mcp.go skill.py cursor.ts vscode/settings.json idea/a.xml
settings.json config.toml hooks/useThing.ts hooks/index.js service.py desktop.py
legal/java.desktop/LICENSE main.rs rebuild.rs src/setup.ts test_conftest.py packages.json
compose.py makefile.py docs/dockerfile.md requirements.md project.py locksmith.txt lock.py
id_rsa_test.go LETTER~1.DOT notes~1 paper~2.txt
workspace/a.py src/workspace/guard.py src/configure/index.ts configure.md workspace.py
main.py~ notes.bak README.md.orig a.txt.swp #main.py# v1.2.3 libfoo.so.1 copy.py old.txt key.py~
public.pem.bak (1).txt
"""


WORK = """
.claude/plans/bright-running-fox.md sub/.claude/plans/a.md .opencode/plans/1712-login.md
.claude/worktrees/x/a.py .claude/worktrees/x/src/claude.py .claude/worktrees/x/docs/README.md .claude/worktrees/x/.gitignore
.claude/worktrees/x/.claude/plans/a.md .claude/worktrees/x/.claude/worktrees/y/a.py sub/.claude/worktrees/x/a/b/c
"""
"""What agents write in their own folders, and nobody reads by itself."""

AROUND = """
.claude .claude/plans .claude/worktrees .claude/worktrees/x .claude/plans.md .claude/worktrees.json .claude/worktree/x/a
.claude/plans/x .claude/plans/x.sh .claude/plans/settings.json .claude/plans/sub/x.md .claude/plans/x.md/y
.claude/plans/CLAUDE.md .claude/plans/AGENTS.md .claude/plans/SKILL.md .claude/plans/x.prompt.md .claude/plans-2/x.md
.claude/agents/x.md .claude/commands/x.md .claude/rules/x.md .claude/skills/x/SKILL.md .claude/output-styles/x.md
.claude/agents/.claude/plans/x.md .claude/commands/worktrees/x/a.md .claude/commands/.claude/worktrees/x/a.md
.claude-2/worktrees/x/a.py .vscode/.claude/worktrees/x/tasks.json .cursor/.claude/plans/x.md .husky/.opencode/plans/a.md
.claude/worktrees/x/.claude .claude/worktrees/x/.claude/settings.json .claude/worktrees/x/.claude/settings.local.json
.claude/worktrees/x/.claude/hooks/x.sh .claude/worktrees/x/.claude/commands/c.md .claude/worktrees/x/.claude/agents/a.md
.claude/worktrees/x/sub/.claude/skills/s/SKILL.md .claude/worktrees/x/CLAUDE.md .claude/worktrees/x/sub/CLAUDE.md
.claude/worktrees/x/CLAUDE.local.md .claude/worktrees/x/AGENTS.md .claude/worktrees/x/.mcp.json .claude/worktrees/x/.cursor/rules/a.mdc
.claude/worktrees/x/.vscode/tasks.json .claude/worktrees/x/.github/workflows/ci.yml .claude/worktrees/x/.husky/pre-commit
.claude/worktrees/x/conftest.py .claude/worktrees/x/.gitattributes .claude/worktrees/x/hooks/pre-push .claude/worktrees/x/OWNERS
.claude/worktrees/x/package.json .claude/worktrees/x/Makefile .claude/worktrees/x/configure .claude/worktrees/x/waf
.claude/worktrees/x/.claude/worktrees/y/CLAUDE.md .claude/worktrees/x/.claude/plans/CLAUDE.md .claude/worktrees/x/.env
.CLAUDE/worktrees/x/.Claude/settings.json .opencode/plans/x.ts .opencode/plugin/x.md .opencode/agent/plans/x.md .codex/plans/a.md
"""
"""What lies around that, or in it, and steers an agent, or is read or run by itself."""


def by_word(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("path", by_word(KEY_STORES))
def test_key_stores_are_neither_read_nor_changed(path: str) -> None:
    assert {verdict(path, action) for action in ACTIONS - {"list"}} == {"deny"}


@pytest.mark.parametrize("path", by_word(PROJECT_SECRETS))
def test_project_secrets_are_written_only_by_a_person_s_word(path: str) -> None:
    assert verdict(path, "read") == verdict(path, "delete") == "deny"
    assert verdict(path, "write") == verdict(path, "create") == "ask"


@pytest.mark.parametrize("path", by_word(VERSION_CONTROL))
def test_version_control_is_not_changed(path: str) -> None:
    assert {verdict(path, action) for action in ("write", "create", "delete")} == {"deny"}
    assert verdict(path, "read") != "deny"


@pytest.mark.parametrize("path", by_word(CONTROL + MANIFESTS))
def test_what_runs_or_steers_is_changed_only_by_a_person_s_word(path: str) -> None:
    assert {verdict(path, action) for action in ("write", "create", "delete")} <= {"ask", "deny"}
    assert verdict(path, "write") == verdict(path, "create") == "ask"
    assert verdict(path, "read") == "allow"


@pytest.mark.parametrize("path", by_word(AROUND))
def test_what_steers_an_agent_waits_beside_and_within_its_own_work(path: str) -> None:
    assert verdict(path, "write") == verdict(path, "create") == "ask"
    assert verdict(path, "delete") != "allow"


@pytest.mark.parametrize(
    "name", [".git", ".git/hooks/post-checkout", ".filepact.toml", "id_rsa", ".filepact-1f2e"]
)
def test_what_nobody_may_change_is_so_in_an_agents_work_tree(name: str) -> None:
    assert verdict(f".claude/worktrees/x/{name}", "write") == "deny"


@pytest.mark.parametrize("path", by_word(FREE + WORK))
def test_other_names_are_free(path: str) -> None:
    assert {verdict(path, action) for action in ACTIONS} == {"allow"}


def test_every_name_may_be_listed() -> None:
    names = by_word(KEY_STORES + PROJECT_SECRETS + VERSION_CONTROL + CONTROL + MANIFESTS)
    assert {verdict(path, "list") for path in names} == {"allow"}


def test_the_settings_of_version_control_are_read_only_by_a_person_s_word() -> None:
    asked = [".git/config", "sub/.git/config", ".git/modules/a/b/config", "bare.git/config"]
    assert {verdict(path, "read") for path in asked} == {"ask"}
    free = [".git/HEAD", ".git/hooks/pre-commit", ".git/modules/a/HEAD"]
    assert {verdict(path, "read") for path in free} == {"allow"}


@pytest.mark.parametrize("path", [".filepact.toml", ".guardignore", "a/.FILEPACT.toml"])
def test_what_says_what_agents_may_do_is_changed_by_nobody_but_a_person(path: str) -> None:
    assert {verdict(path, action) for action in ("write", "create", "delete")} == {"deny"}
    assert verdict(path, "read") == "allow"


def test_temporary_files_are_nobody_s() -> None:
    assert {verdict("a/.filepact-1f2e3d", action) for action in ACTIONS - {"list"}} == {"deny"}


def test_patterns_are_written_as_names_are_compared() -> None:
    """Otherwise a pattern would never meet a name."""
    parts = {
        part
        for rule in BUILT_IN_RULES
        for pattern in rule.paths
        for part in pattern.removeprefix("!").removeprefix("/").split("/")
    }
    assert {part for part in parts if part != part.casefold() or not part} == set()
    plain = {part for part in parts if literal_length(part) == len(part)}
    assert {part for part in plain if key(part) != part} == set()


def test_no_pattern_stands_twice_in_a_rule() -> None:
    for rule in BUILT_IN_RULES:
        assert sorted(rule.paths) == sorted(set(rule.paths)), rule.name


def test_a_rule_has_a_short_name_and_says_why() -> None:
    for rule in BUILT_IN_RULES:
        assert rule.name == rule.name.lower()
        assert rule.why[0].islower()
        assert rule.why[-1] != "."
        assert rule.layer == "built-in"


def test_the_page_says_what_the_rules_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert written(text) == text, "run python -m tests.domain.protected_page"
    for rule in BUILT_IN_RULES:
        assert f"<!-- names: {rule.name} -->" in text
        assert tuple(chain.from_iterable(NAMES[rule.name].values())) == rule.paths


COPIES = (
    "{}~", "{}.~1~", "{}.bak", "{}.BAK", "{}.bak2", "{}.bak.1", "{}_bak", "{}.backup", "{}.old", "{}-old",
    "{}.orig", "{}.save", "{}.sav", "{}.swp~", ".{}.swp", ".{}.swo", "#{}#", ".#{}", "{}.1", "{}.2024-05-31",
    "{}.20240531", "{} copy", "{} copy 2", "{} - Copy", "{} (1)", "Copy of {}", "{}.old~", "{}.tmp",
)  # fmt: skip
"""What editors, systems and people call copies."""


@pytest.mark.parametrize("form", COPIES)
@pytest.mark.parametrize(
    "name", ["credentials.json", "server.key", "id_rsa", ".bash_history", ".netrc", "prod.env"]
)
def test_a_copy_of_a_key_store_or_a_secret_is_protected_as_that_is(form: str, name: str) -> None:
    copy = form.replace(".swp~", ".swp").format(name) if "swp~" not in form else f".{name}.swp~"
    for folder in ("", "deep/er/"):
        for action in ACTIONS - {"list"}:
            assert verdict(f"{folder}{copy}", action) == verdict(f"{folder}{name}", action)
    assert listed(copy) is False


@pytest.mark.parametrize(
    "path",
    ["config/database.yml~", "config/.database.yml.swp", ".aws.old/credentials", ".ssh~/config",
     "deep/credentials copy.json", "deep/credentials (2).json", "secrets.yml.old", "key.pem.bak"],
)  # fmt: skip
def test_so_is_one_of_a_folder_and_one_whose_ending_stayed(path: str) -> None:
    assert verdict(path, "read") == "deny"


def listed(name: str) -> bool:
    """Whether a walk shows a name and may look into it."""
    suspicion = POLICY.suspicion("read")
    assert suspicion.among([name, "a.txt"]) in ([0], [])
    assert suspicion(name) == (suspicion.among([name, "a.txt"]) == [0])
    assert not (suspicion(name) and suspicion.clears(["a.txt", name]))
    return not suspicion(name)
