"""An emulated machine with a real kernel RDMA stack: Debian's kernel under QEMU, its root the host's root.

run() boots it, lets a bash script run inside, and returns when it has powered off. The script and everything it needs
are read from the host's files over 9p; it writes results to /run/verbscope, which is the folder `out` outside.
Hardware acceleration is used only when VERBSCOPE_KVM=1: emulation works everywhere and is fast enough.
"""

import gzip
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]  # up to the host's root, where the others are
TOOLS = ["qemu-system-x86_64", "modprobe", "depmod", "cpio", "busybox", "rdma", "ip", "ibv_devinfo"]
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
HERE = pathlib.Path(__file__).resolve().parent
RUNNING = []  # the machines that were started


class Unavailable(Exception):
    """This host cannot run the machine; the text says what is missing."""


class Failed(Exception):
    """The machine was started and did not do its work; the text ends with the tail of its console."""


def find_kernel():
    """The newest installed kernel release that has an image and soft-RoCE."""
    def version(release):
        return [int(n) for n in re.findall(r"\d+", release)]

    releases = [p.name for p in pathlib.Path("/lib/modules").glob("*") if pathlib.Path("/boot/vmlinuz-" + p.name).is_file()]
    for release in sorted(releases, key=version, reverse=True):
        if list(pathlib.Path("/lib/modules", release).rglob("rdma_rxe.ko*")):
            return release
    raise Unavailable("no kernel with soft-RoCE (rdma_rxe) in /boot and /lib/modules: install linux-image-amd64")


def require_host():
    """Raises Unavailable, naming what is missing, unless this host can run the machine."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]
    if missing:
        raise Unavailable("missing: " + " ".join(missing) + " (make -f Makefile.cluster deps names the packages)")
    kernel = find_kernel()
    if not os.access("/boot/vmlinuz-" + kernel, os.R_OK):
        raise Unavailable("/boot/vmlinuz-" + kernel + " is not readable for this user")


def tool_output(command, **options):
    result = subprocess.run(command, check=False, capture_output=True, env={**os.environ, "PATH": PATH}, timeout=120, **options)
    if result.returncode != 0:
        raise Failed(f"{shlex.join(command)}: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout


def make_initramfs(kernel, folder):
    """The initramfs for `kernel`, built once per kernel and init script, kept in `folder`."""
    init = (HERE / "init.sh").read_bytes()
    key = hashlib.sha256(init + repr(MODULES).encode()).hexdigest()[:12]
    image = pathlib.Path(folder, f"initramfs-{kernel}-{key}.gz")
    if image.is_file():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=image.parent) as scratch:
        root = pathlib.Path(scratch, "root")
        modules = root / "lib/modules" / kernel
        for place in ["bin", "proc", "sys", "dev"]:
            (root / place).mkdir(parents=True)
        (root / "init").write_bytes(init)
        (root / "init").chmod(0o755)
        shutil.copy(shutil.which("busybox", path=PATH), root / "bin/busybox")
        for name in MODULES:
            listed = tool_output(["modprobe", "-S", kernel, "--show-depends", name]).decode()
            for path in re.findall(r"^insmod (\S+)", listed, re.MULTILINE):
                target = root / path.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        for index in ["modules.order", "modules.builtin", "modules.builtin.modinfo"]:
            shutil.copy(pathlib.Path("/lib/modules", kernel, index), modules / index)
        tool_output(["depmod", "-b", str(root), kernel])
        names = "\n".join(sorted(str(p.relative_to(root)) for p in root.rglob("*")))
        archive = tool_output(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode())
        part = pathlib.Path(scratch, "image.gz")
        part.write_bytes(gzip.compress(archive, compresslevel=1))
        part.rename(image)
    return image


def qemu_command(kernel, image, out, more, words):
    fast = os.environ.get("VERBSCOPE_KVM") == "1"
    command = ["qemu-system-x86_64", *(["-accel", "kvm", "-cpu", "host"] if fast else ["-accel", "tcg,thread=multi", "-cpu", "max"])]
    command += ["-m", "3G", "-smp", "2", "-nographic", "-no-reboot", *(more or ["-nic", "none"])]
    command += ["-kernel", f"/boot/vmlinuz-{kernel}", "-initrd", str(image), "-append",
                f"console=ttyS0 quiet panic=-1 mitigations=off {words}"]
    for tag, path, more in [("host", "/", ",readonly=on"), ("out", out, "")]:
        escaped = str(path).replace(",", ",,")
        command += ["-fsdev", f"local,id={tag},path={escaped},security_model=none,multidevs=remap{more}"]
        command += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return command


def console_tail(console, lines=40):
    text = console.read_text(errors="replace").replace("\r", "")
    return "--- the machine's console ends with:\n" + "\n".join(text.splitlines()[-lines:])


def boot(script, out, cache, variables, more=(), sockets=(), words=""):
    """Starts the machine, which runs the bash file `script` with `variables` in its environment; returns its process.

    `out` (emptied first) is /run/verbscope inside, and has console.log. `more` are further arguments of QEMU (those of the
    network: without any there is none), which inherits the `sockets` that they name by number; `words` are further ones of
    the kernel. Raises Unavailable. The caller ends the process; a SIGTERM to this one ends it as well.
    """
    require_host()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())
    (out / "guest.sh").write_text(exports + pathlib.Path(script).read_text())
    kernel = find_kernel()
    image = make_initramfs(kernel, cache)
    with (out / "console.log").open("wb") as log:
        machine = subprocess.Popen(qemu_command(kernel, image, out, more, words), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, env={**os.environ, "PATH": PATH}, start_new_session=True,
                                   pass_fds=[each.fileno() for each in sockets])
    RUNNING.append(machine)
    # A time limit of ctest ends this process by SIGTERM: no machine must outlive it.
    signal.signal(signal.SIGTERM, lambda *_: ([each.kill() for each in RUNNING], os._exit(1)))
    return machine


def run(script, out, cache, variables, boot_limit_s, limit_s, words=""):
    """Boots the machine and runs the bash file `script` in it with `variables` in its environment.

    `out` (emptied first) is /run/verbscope inside; `words` are further ones of the kernel. Raises Unavailable, or Failed when it
    does not boot within boot_limit_s, is not finished within limit_s, or the script ends with a non-zero status.
    """
    out = pathlib.Path(out).resolve()
    start = time.monotonic()
    machine = boot(script, out, cache, variables, words=words)
    console = out / "console.log"
    try:
        while machine.poll() is None:
            passed = time.monotonic() - start
            if passed > boot_limit_s and not (out / "booted").exists():
                raise Failed(f"the machine did not boot within {boot_limit_s} s\n{console_tail(console)}")
            if passed > limit_s:
                raise Failed(f"the machine did not finish within {limit_s} s\n{console_tail(console)}")
            time.sleep(0.1)
    finally:
        if machine.poll() is None:
            machine.kill()
            machine.wait()
    status = out / "exit_status"
    if not status.exists() or status.read_text().strip() != "0":
        ended = status.read_text().strip() if status.exists() else "none: it ended before the script did"
        raise Failed(f"the script's exit status in the machine: {ended}\n{console_tail(console)}")


def tell(out, expected, run_checks):
    """The end of a test that boots machines: calls run_checks, which gives what came of each check by its name, and says it.

    Returns the exit status: 0 when these are the checks that were expected; 77 when this host cannot run the machines.
    """
    start = time.monotonic()
    try:
        results = run_checks()
    except Unavailable as missing:
        ci = os.environ.get("CI") == "true"
        out.mkdir(parents=True, exist_ok=True)
        (out / "skipped").write_text(f"{missing}\n")
        print(f"{'cannot run' if ci else 'skipped'}: {missing}")
        return 1 if ci else 77
    except Failed as failure:
        print(failure)
        return 1
    unknown = sorted(set(results) ^ set(expected))
    print(f"{len(results)} checks in {time.monotonic() - start:.0f} s")
    if unknown:
        print("run and listed in CMakeLists.txt are not the same checks:\n  " + "\n  ".join(unknown))
    return 1 if unknown else 0
