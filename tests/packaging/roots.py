"""Roots that hold a Debian and what is put into them, made by mmdebstrap; commands run in them see no other file."""
import os
import pathlib
import shutil
import subprocess

SUITE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def reason_to_skip():
    if os.geteuid() != 0:
        return "a root needs root"
    return "" if shutil.which("mmdebstrap") else "mmdebstrap is not there"


def sources():
    """The files that tell this machine's apt where Debian is."""
    found = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")]
    return [path for path in found if path.exists() and path.stat().st_size > 0]


class Root:
    def __init__(self, folder, include=()):
        """`include`: packages by name, or the paths of .deb files."""
        self.folder = pathlib.Path(folder)
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--skip=cleanup/reproducible",
                   "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount"]
        command += [f"--include={each}" for each in include]
        subprocess.run([*command, SUITE, self.folder, *sources()], check=True, timeout=3600)

    def run(self, *command, user="root", directory="/", seconds=600, check=True, **environment):
        """Runs it in the root; returns the process, with what it printed."""
        enter = 'mount -t proc none "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot --userspec="$1" "$0" ' \
                'sh -c \'cd "$1" && shift && exec "$@"\' sh "${@:2}"'
        home = "/root" if user == "root" else f"/home/{user}"
        ran = subprocess.run(["unshare", "-m", "bash", "-c", enter, self.folder, user, directory, *command],
                             env={"PATH": PATH, "HOME": home, "LC_ALL": "C.UTF-8", **environment}, capture_output=True,
                             text=True, timeout=seconds)
        if check and ran.returncode != 0:
            raise AssertionError(f"{command}: exit status {ran.returncode}\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
        return ran
