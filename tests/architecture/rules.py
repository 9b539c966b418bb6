"""The dependency rules of docs/architecture.md, read from its table of folders, and the checks that hold the tree to
them: #include lines of the sources, which never lead back to the folder that they start from, and the libraries that
CMake targets link; then the files and functions that pages of docs/ name. A check returns its complaints, a line each.
"""

import pathlib
import re

TARGET_COMMANDS = r"\b(verbscope_library|verbscope_binary|verbscope_benchmark|verbscope_test|add_library|add_executable|target_link_libraries)"


def read_rules(document):
    """folder -> the folders that it may include (None: everything), from the table in docs/architecture.md."""
    rows = re.findall(r"^\| `([\w/]+)/` \|.*\| ([^|]*) \|$", document.read_text(), re.MULTILINE)
    folders = [name for name, _ in rows]
    rules = {}
    for name, cell in rows:
        cell = re.sub(r"\(.*?\)", "", cell).strip()
        allowed = [word.strip() for word in cell.split(",") if word.strip() not in ("", "-")]
        unknown = [word for word in allowed if word not in folders and word != "everything"]
        if unknown:
            raise ValueError(f"{document}: row {name}: no such folder: {' '.join(unknown)}")
        rules[name] = None if "everything" in allowed else allowed
    if "common" not in rules:
        raise ValueError(f"{document}: no table of folders")
    return rules


def folder_of(path, rules):
    """The folder of the table that `path` (from the root) is in: the longest one that fits; None when none does."""
    fits = [name for name in rules if path == name or path.startswith(name + "/")]
    return max(fits, key=len, default=None)


def allowed(user, used, rules):
    """Whether code in folder `user` may use folder `used`."""
    if user == used or rules[user] is None:
        return True
    return any(used == name or used.startswith(name + "/") for name in rules[user])


def source_files(root, rules):
    top = sorted({name.split("/")[0] for name in rules})
    for folder in top:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".cpp", ".h"))


def included_files(source):
    """(line number, name) of each include of a project file; system headers are not."""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]*)"', line)
        if found:
            yield number, found.group(1)


def check_includes(root, rules):
    complaints = []
    for source in source_files(root, rules):
        name = str(source.relative_to(root))
        user = folder_of(name, rules)
        for number, header in included_files(source):
            used = folder_of(header, rules)
            if used is None or not (root / header).is_file():
                complaints.append(f'{name}:{number}: "{header}" is no file of this project, named from its root')
            elif not allowed(user, used, rules):
                complaints.append(f'{name}:{number}: {user} must not include "{header}" ({used})')
    return complaints


def folder_includes(root, rules):
    """folder -> the folders that its sources include, each with the first file and line that does."""
    used_by = {name: {} for name in rules}
    for source in source_files(root, rules):
        name = str(source.relative_to(root))
        user = folder_of(name, rules)
        for number, header in included_files(source):
            used = folder_of(header, rules)
            if used not in (None, user):
                used_by[user].setdefault(used, f"{name}:{number}")
    return used_by


def check_cycles(root, rules):
    """No way along real includes leads from a folder back to it; each such way is told once, a shortest one."""
    used_by = folder_includes(root, rules)
    complaints, told = [], set()
    for start in used_by:
        came_from, todo = {start: None}, [start]
        while todo:
            folder = todo.pop(0)
            if folder != start and start in used_by[folder]:
                way = [folder]
                while way[0] != start:
                    way.insert(0, came_from[way[0]])
                if frozenset(way) not in told:
                    told.add(frozenset(way))
                    steps = zip(way, way[1:] + [start])
                    complaints.append("; ".join(f"{user} includes {used} ({used_by[user][used]})" for user, used in steps))
                break
            for used in used_by[folder]:
                if used not in came_from:
                    came_from[used] = folder
                    todo.append(used)
    return complaints


def read_targets(root):
    """target -> (its CMakeLists.txt, its source files, what it links), from every CMakeLists.txt."""
    targets = {}
    for listing in sorted(root.glob("*/**/CMakeLists.txt")):
        if listing.relative_to(root).parts[0].startswith("build"):
            continue
        text = re.sub(r"#.*", "", listing.read_text())
        for command, body in re.findall(TARGET_COMMANDS + r"\s*\(([^)]*)\)", text):
            words = body.split()
            if "$" in words[0]:  # the name is an argument of a function
                continue
            target = targets.setdefault(words[0], (listing, [], []))
            target[1].extend(listing.parent / word for word in words[1:] if word.endswith(".cpp"))
            if "RUNS" in words:  # programs that a test starts
                words = words[:words.index("RUNS")]
            linked = words[words.index("LINK") + 1:] if "LINK" in words else []
            target[2].extend(words[1:] if command == "target_link_libraries" else linked)
    return targets


def reached_folders(root, sources, rules):
    """The folders of every project file that `sources` include, directly or through one another."""
    seen, todo = set(), [str(source.relative_to(root)) for source in sources]
    while todo:
        name = todo.pop()
        if name not in seen and (root / name).is_file():
            seen.add(name)
            todo.extend(header for _, header in included_files(root / name))
    return {folder_of(name, rules) for name in seen}


def check_links(root, rules):
    """A target links only libraries of folders that its own folder may include, and only those that it includes."""
    complaints = []
    targets = read_targets(root)

    def home(name):
        listing, sources, _ = targets[name]
        return folder_of(str(listing.parent.relative_to(root)), rules) if sources else None

    for name, (listing, sources, linked) in targets.items():
        user = home(name)
        if user is None:
            continue
        reached = reached_folders(root, sources, rules)
        for library in linked:
            used = home(library) if library in targets else None
            if used is None:
                continue
            where = listing.relative_to(root)
            if not allowed(user, used, rules):
                complaints.append(f"{where}: {name} ({user}) must not link {library} ({used})")
            elif used not in reached and used != user:
                complaints.append(f"{where}: {name} links {library} and includes nothing of {used}")
    return complaints


def check_files_named(root, page):
    """Every file of the project that the page names in backquotes exists, except those that a build or a run makes. A C++
    source may be named without its folder."""
    text = (root / page).read_text()
    named = re.findall(r"`((?:[a-z0-9_.-]+/)+[a-z0-9_-]+\.[a-z]+)`", text)
    made = ("build", "results/local/", ".../")
    complaints = [f"{page}: {name} does not exist" for name in sorted(set(named))
                  if not name.startswith(made) and not (root / name).is_file()]
    without_folder = set(re.findall(r"`([a-z0-9_-]+\.[ch]pp)`", text))
    return complaints + [f"{page}: no file is called {name}" for name in sorted(without_folder - source_names(root))]


def source_names(root):
    """The names of all C++ sources, without their folders."""
    folders = [folder for folder in root.iterdir() if folder.is_dir() and not folder.name.startswith(("build", "."))]
    return {source.name for folder in folders for source in folder.rglob("*.[ch]pp")}


def check_quotes(root, page):
    """What a page quotes, in blocks that begin with ```LANGUAGE FILE, is in that file, word for word."""
    complaints = []
    for name, quoted in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", (root / page).read_text(), re.MULTILINE | re.DOTALL):
        text = (root / name).read_text() if (root / name).is_file() else ""
        if quoted not in text:
            complaints.append(f"{page}: {name} does not say: {quoted.splitlines()[0].strip()} ...")
    return complaints


def defines(text, function):
    """Whether the C++ source `text` defines `function`, which may be NAME or CLASS::NAME, out of line or in its class."""
    if re.search(rf"^\S.*\b{function}\(|^{function}\(", text, re.MULTILINE):
        return True
    holder, _, member = function.rpartition("::")
    return bool(holder and re.search(rf"^(?:class|struct) {holder}\b", text, re.MULTILINE)
                and re.search(rf"^  \S.*\b{member}\([^;]*\{{$", text, re.MULTILINE))


def check_tour(root, page):
    """The stops of the tour are numbered in order, and the function of each is in its file."""
    stops = re.findall(r"^\| (\d+) \| `([\w:]+)` \| `([^`]+)` \|", (root / page).read_text(), re.MULTILINE)
    complaints = []
    if [int(number) for number, _, _ in stops] != list(range(1, max(len(stops), 1) + 1)):
        complaints.append(f"{page}: the stops are not numbered from 1 on")
    for number, function, name in stops:
        if (root / name).is_file() and not defines((root / name).read_text(), function):
            complaints.append(f"{page}: stop {number}: {name} defines no {function}")
    return complaints
