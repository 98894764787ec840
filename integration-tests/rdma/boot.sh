#!/usr/bin/env bash
# Boots what image.sh made, runs one job in it as root, and ends with the job's exit status.
#   boot.sh FOLDER RELEASE HOST   HOST/job.sh is run; HOST is /host in the machine, and what the job
#                                 writes there stays. FOLDER/pack.ext4 is /pack in it
#   MACHINE  its number (1), and the last of its address 10.0.2.N
#   WIRE     a path for a socket that joins it to another machine with the same one; the first
#            machine makes it. Without, the machine is alone
#   LIMIT    seconds for all of it (600); 124 is then the exit status
#   MEMORY   of the machine (3G)
#   ACCELERATION   of the processor: emulated, so that it works within virtual machines, too; kvm
# Needs qemu-system-x86. Nothing outside can be reached from the machine, whose disk forgets what is
# written. It says nothing about speed.
set -euo pipefail
folder="$(cd "$1" && pwd)" release="$2" host="$(cd "$3" && pwd)" machine="${MACHINE:-1}"
[ -x "$(command -v qemu-system-x86_64)" ] || {
  echo "boot: qemu-system-x86 is missing" >&2
  exit 125
}
wire=user,restrict=on
if [ -n "${WIRE:-}" ]; then
  server=off
  [ "$machine" != 1 ] || server=on
  wire="stream,server=$server,addr.type=unix,addr.path=$WIRE"
fi
status=0
timeout -k 10 "${LIMIT:-600}" qemu-system-x86_64 -accel "${ACCELERATION:-tcg,thread=multi}" -cpu max -smp "${CPUS:-2}" \
  -m "${MEMORY:-3G}" -nographic -no-reboot \
  -kernel "$folder/kernel/boot/vmlinuz-$(ls "$folder/kernel/lib/modules")" -initrd "$folder/initramfs.gz" \
  -append "console=ttyS0 quiet panic=-1 mitigations=off zerohop.machine=$machine" \
  -drive "file=$folder/$release.ext4,format=raw,if=virtio,snapshot=on" \
  -drive "file=$folder/pack.ext4,format=raw,if=virtio,snapshot=on" \
  -netdev "$wire,id=n0" -device "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:0$machine,host_mtu=4200" \
  -virtfs "local,path=$host,mount_tag=host,security_model=none" \
  < /dev/null > "$host/console.log" 2>&1 || status=$?
[ "$status" -eq 0 ] || {
  echo "boot: the machine ended with $status: $host/console.log" >&2
  exit "$status"
}
line="$(tr -d '\r' < "$host/console.log" | grep '^ZEROHOP-JOB ' | tail -n 1 || true)"
[ -n "$line" ] || {
  echo "boot: the job did not come to its end: $host/console.log" >&2
  exit 125
}
read -r _ status reason <<< "$line"
[ -z "$reason" ] || echo "boot: $reason" >&2
exit "$status"
