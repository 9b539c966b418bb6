#!/bin/busybox sh
# First process of the emulated machine. Its root becomes the host's root, read-only over 9p, under an overlay in memory;
# the shared folder (tag `out`) is /run/verbscope: guest.sh comes in there, results go out.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in virtio_pci 9pnet_virtio 9p overlay; do modprobe "$module" || echo "init: no module $module"; done
mkdir -p /host /memory /machine
options=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o "$options,ro,cache=loose" host /host || echo "init: cannot mount the host's root"
mount -t tmpfs memory /memory
mkdir -p /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /machine || echo "init: no overlay"
# No file system over /tmp: the overlay makes it writable, and a build folder may lie below it.
for fs in proc:proc sysfs:sys devtmpfs:dev tmpfs:run; do mount -t "${fs%:*}" "${fs%:*}" "/machine/${fs#*:}"; done
mkdir -p /machine/dev/pts /machine/dev/shm /machine/run/verbscope
mkdir -m 1777 /machine/run/lock  # as Debian has it
mount -t devpts pts /machine/dev/pts
mount -t tmpfs shm /machine/dev/shm
mount -t 9p -o "$options,rw" out /machine/run/verbscope || echo "init: cannot mount the shared folder"
echo booted > /machine/run/verbscope/booted
# This process changes its own root, not a child's: the kernel's module loader looks in the root of process 1.
exec chroot /machine /bin/busybox sh -c '
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
  cd /
  /bin/bash /run/verbscope/guest.sh
  echo $? > /run/verbscope/exit_status
  sync
  busybox poweroff -f'
