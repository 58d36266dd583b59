"""What `mkdocs` cannot make by itself for the site: pages that are generated, and llms.txt. A hook of mkdocs.yml.

Generated are the reference of the Python names (by mkdocstrings, from signatures and docstrings), the help of every
command, the pages of files outside docs/ (benchmarks, changelog, examples), and two files for language models:
llms.txt, a list of the pages with what stands in them, and llms-full.txt, all of them.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from griffe import AliasResolutionError, CyclicAliasError, load
from mkdocs.structure.files import File, Files, InclusionLevel

import gallery

ROOT = Path(__file__).resolve().parents[1]
FACE = {
    "reference/python.md": (
        "Functions",
        "rollbook.run.session.init",
        "rollbook.run.session.attach",
        "rollbook.formats.opening.open",
        "rollbook.capture.gym.RecordEpisodes",
        "rollbook.capture.gym.record_envs",
        "rollbook.run.siblings.siblings",
    ),
    "reference/run.md": ("Run and Scope", "rollbook.run.run.Run", "rollbook.run.scope.Scope"),
    "reference/book.md": ("Book", "rollbook.book.book.Book"),
    "reference/run-set.md": ("RunSet", "rollbook.runs.run_set.RunSet"),
}
"""Page of the reference -> its title, and the names of `rollbook` on it."""

FAMILIES = {
    "reference/recording.md": ("Recording: capture, samples, episodes", ("rollbook.capture", "rollbook.run")),
    "reference/sinks.md": ("Sinks and filters", ("rollbook.sinks",)),
    "reference/judging.md": (
        "Statistics, comparisons, charts, health",
        ("rollbook.stats", "rollbook.compare", "rollbook.plots", "rollbook.health", "rollbook.runs"),
    ),
    "reference/formats.md": ("Importers, exporters, data sets", ("rollbook.formats",)),
    "reference/adapters.md": ("Adapters", ("rollbook.adapters",)),
    "reference/extending.md": (
        "Errors, protocols, testing, values",
        ("rollbook.errors", "rollbook.protocols", "rollbook.testing", "rollbook.schema", "rollbook.values",
         "rollbook.system", "rollbook.server", "rollbook.demo"),
    ),
}  # fmt: skip
"""Page of the reference -> its title, and what the modules on it begin with."""

STUDIES = [gallery.STUDIES / f"{name}.py" for name in gallery.VIEWS]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
"""File of the project -> its page on the site."""

COPIES = ROOT / "build" / "gallery"
"""What `make gallery` made; without it the page of the gallery names the scripts alone."""

LEFT_OUT = {
    "simulations.md",
    "health-matrix.md",
    "figures.md",
    "internals.md",
    "testing.md",
    "contributing.md",
    "benchmarks.md",
}
"""Pages that llms.txt lists and llms-full.txt leaves out: measurements, and what people read who change rollbook."""

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """All pages of docs/adapters come under Frameworks."""
    pages = [path for path in (ROOT / "docs/adapters").glob("*.md") if path.name not in ("index.md", "faults.md")]
    pages.sort(key=lambda path: path.read_text(encoding="utf-8").partition("\n")[0].lower())  # by the title
    adapters = [f"adapters/{path.name}" for path in pages]
    for entry in config.nav:
        if "Frameworks" in entry:
            entry["Frameworks"] = ["adapters/index.md", *adapters, "adapters/faults.md"]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are generated."""
    pages = {
        **{page: _face_page(*names) for page, names in FACE.items()},
        **{page: _module_page(*family) for page, family in FAMILIES.items()},
        "reference/commands.md": _commands_page(),
        "gallery.md": _gallery_page(),
        **{page: _outside(name, page) for name, page in OUTSIDE.items() if page != "index.md"},
        **{f"examples/{path.stem}.md": _example(path) for path in sorted((ROOT / "examples").glob("*.py"))},
        **{f"examples/gallery/{path.stem}.md": _example(path) for path in STUDIES},
    }
    for uri, text in pages.items():
        level = InclusionLevel.NOT_IN_NAV if uri.startswith("examples/") else InclusionLevel.INCLUDED
        files.append(File.generated(config, uri, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Links out of docs/ lead to the generated pages; a page is not called by its file."""
    markdown = re.sub(r"\[([\w-]+)\.md\]\(", r"[\1](", markdown)
    return _relinked(markdown, "docs/" + page.file.src_uri, page.file.src_uri)


def on_post_build(*, config: Any) -> None:
    """Write llms.txt and llms-full.txt next to the pages, and copy the gallery."""
    lines, whole = [f"# {config.site_name}", "", f"> {config.site_description}", ""], []
    adapters = (ROOT / "docs/adapters/index.md").read_text(encoding="utf-8")
    changed = {
        f"adapters/{page}": f"{framework}: {what}"
        for framework, what, page in re.findall(r"^\| (.*?) \| (.*?) \| \[(\w+\.md)\]", adapters, re.MULTILINE)
        if page != "rollout_frameworks.md"
    }
    for section in config.nav:
        for title, content in section.items():
            lines.append(f"## {title}")
            for entry in [content] if isinstance(content, str) else content:
                path = entry if isinstance(entry, str) else next(iter(entry.values()))
                text = _text_of(path)
                name, about = _title_and_first_sentence(text)
                about = changed.get(path, about)
                lines.append(f"- [{name}]({posixpath.splitext(path)[0]}.html): {about}".removesuffix(": "))
                if path not in LEFT_OUT and not path.startswith("reference/"):
                    whole.append(text.strip())
            lines.append("")
    site = Path(config.site_dir)
    if COPIES.is_dir():
        shutil.copytree(COPIES, site / "gallery", dirs_exist_ok=True)
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n---\n\n".join(whole) + "\n", encoding="utf-8")


def _text_of(path: str) -> str:
    """The Markdown of a page; of a page of the reference, its heading and first lines."""
    source = ROOT / "docs" / path
    if source.exists():
        return source.read_text(encoding="utf-8")
    if path in OUTSIDE.values():
        return (ROOT / next(name for name, page in OUTSIDE.items() if page == path)).read_text(encoding="utf-8")
    if path in FAMILIES:
        return _module_page(*FAMILIES[path])
    if path in FACE:
        return _face_page(*FACE[path])
    return {"gallery.md": _gallery_page, "reference/commands.md": _commands_page}[path]()


def _face_page(title: str, *names: str) -> str:
    """What `rollbook` itself has: functions, or a class with its methods."""
    about = "Every argument, unit and error, from signatures and docstrings. [The overview](../api.md) is shorter."
    parts = [f"# {title}", "", about, ""]
    for name in names:
        parts += [f"::: {name}", ""]
    return "\n".join(parts)


def _module_page(title: str, beginnings: tuple[str, ...]) -> str:
    """The public names of the modules that begin so."""
    modules = ", ".join(f"`{name}`" for name in beginnings)
    parts = [f"# {title}", "", f"The public names of {modules} and what is below.", ""]
    for module, names in public_names().items():
        if module == "rollbook" or not f"{module}.".startswith(tuple(f"{name}." for name in beginnings)):
            continue
        documented = [name for name in names if _has_docstring(f"{module}.{name}")]
        parts += [f"## {module}", ""]
        if others := sorted({*names} - {*documented}):
            parts += ["Without a docstring of their own: " + ", ".join(f"`{name}`" for name in others) + ".", ""]
        for name in documented:
            parts += [f"::: {module}.{name}", "    options:", "      heading_level: 3", ""]
    return "\n".join(parts)


def public_names() -> dict[str, list[str]]:
    """Module -> the names of its `__all__`, of modules without an underscore; no module is imported."""
    found = {}
    for path in sorted((ROOT / "src" / "rollbook").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts) and (names := _exported(".".join(parts))):
            found[".".join(parts)] = sorted(names)
    return found


def _exported(module: str) -> set[str]:
    path = ROOT.joinpath("src", *module.split("."))
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return names


def _has_docstring(path: str) -> bool:
    """Whether the page of the site can show the name: it is ours, and written where a reader of the source finds it."""
    try:
        found = _package()[path.removeprefix("rollbook.")]
        while found.is_alias:
            found = found.final_target
    except (KeyError, AliasResolutionError, CyclicAliasError):
        return False
    return found.path.startswith("rollbook.") and found.has_docstring


@functools.cache
def _package() -> Any:
    return load("rollbook", search_paths=[ROOT / "src"], resolve_aliases=True)


def _commands_page() -> str:
    import click

    from rollbook.cli.app import app

    context = click.Context(app, info_name="rollbook", terminal_width=100, max_content_width=100)
    parts = [
        "# Commands, in full",
        "",
        "What `--help` of each command says. [The overview](../cli.md) has more examples.",
        "",
    ]
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=100, max_content_width=100)
        parts += [f"## rollbook {name}", "", "```text", command.get_help(inner).strip(), "```", ""]
    return "\n".join(parts)


def _gallery_page() -> str:
    parts = [
        "# Gallery",
        "",
        "Studies that were recorded with rollbook. Each opens a copy of the page that can be clicked.",
        "",
    ]
    for path in STUDIES:
        title, _, text = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")
        parts += [f"## {title.rstrip('.')}", "", " ".join(text.split()), ""]
        script = f"[The script](examples/gallery/{path.stem}.md)"
        there = (COPIES / path.stem / "index.html").exists()
        place = f"gallery/{path.stem}/index.html#/{gallery.VIEWS[path.stem]}"
        picture = "".join(
            f'<img alt="{title.rstrip(".")}" src="images/gallery/{path.stem}-{ground}.webp#only-{ground}">'
            for ground in ("light", "dark")
        )
        parts += [f'<a href="{place}">{picture}</a>' if there else picture, ""]
        page = f'<a href="{place}">Open the page</a>' if there else "`make gallery` makes its page"
        parts += [f"{page} · {script}", ""]
    return "\n".join(parts)


def _outside(name: str, page: str) -> str:
    return _relinked((ROOT / name).read_text(encoding="utf-8"), name, page)


def _example(path: Path) -> str:
    return f"# {path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"


def _relinked(markdown: str, source: str, page: str) -> str:
    """Links of the file `source` of the project, for the page `page` of the site."""

    def new(link: re.Match[str]) -> str:
        start, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        if "://" in target or target.startswith("mailto:"):
            return link.group(0)
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if there in OUTSIDE:
            there = OUTSIDE[there]
        elif there.startswith("examples/") and there.endswith(".py"):
            there = f"{there[:-3]}.md"
        elif there.startswith("docs/"):
            there = there[5:]
        elif (ROOT / there).exists():
            return f"`{there}`"  # a file that has no page
        return f"{start}{posixpath.relpath(there, posixpath.dirname(page) or '.')}{anchor})"

    return LINK.sub(new, markdown)


def _title_and_first_sentence(text: str) -> tuple[str, str]:
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    body = re.sub(
        r"^```.*?^```$|<!--.*?-->", "", text[title.end() :] if title else text, flags=re.MULTILINE | re.DOTALL
    )
    for paragraph in re.split(r"\n[ \t]*\n", body):
        words = re.sub(r"\]\([^)]*\)|[\[\]]", "", " ".join(paragraph.split()))
        sentence = re.match(r"[A-Z`*].*?[.?](?=\s|$)", words)
        if sentence and not words.startswith(("| ", "- ", ":::")):
            return (title.group(1) if title else ""), sentence[0]
    return (title.group(1) if title else ""), ""
