#!/usr/bin/env bash
# Makes what boot.sh boots: Debian's kernel with a software RDMA adapter (rdma_rxe), and a root with
# what verbs need and a Java run time. Its own libucx is too old for anything.
#   image.sh FOLDER
# FOLDER keeps it all; what is there already is not made again. Run by root; needs debootstrap,
# cpio, kmod, e2fsprogs, busybox-static, and a Debian whose packages can be fetched.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

fail() {
  printf 'image: %s\n' "$1" >&2
  exit 1
}

[ $# -eq 1 ] || fail "a folder is needed: image.sh FOLDER"
[ "$(id -u)" = 0 ] || fail "a Debian root is made by root"
for tool in debootstrap cpio depmod mke2fs busybox dpkg; do
  command -v "$tool" > /dev/null || fail "$tool is missing: apt-get install debootstrap cpio kmod e2fsprogs busybox-static"
done
mkdir -p "$1"
folder="$(cd "$1" && pwd)" release=bookworm
[ ! -e "$folder/$release.ext4" ] || exit 0
root="$folder/$release" kernel="$folder/kernel"

# Debian's whole kernel: that for clouds has no RDMA. Only its files are taken.
if [ ! -e "$kernel/made" ]; then
  rm -rf "$kernel" && mkdir -p "$kernel"
  package="$(apt-cache depends linux-image-amd64 | grep -o 'linux-image-[0-9][^ ]*amd64$' | head -n 1)"
  [ -n "$package" ] || fail "apt knows no linux-image-amd64: apt-get update"
  (cd "$kernel" && apt-get download "$package" && dpkg -x linux-image-*.deb . && rm linux-image-*.deb)
  depmod -b "$kernel" "$(ls "$kernel/lib/modules")"
  touch "$kernel/made"
fi
version="$(ls "$kernel/lib/modules")"

# modules INTO MODULE ...: them and what they need
modules() {
  local into="$1" module file
  shift
  for module in "$@"; do
    modprobe -d "$kernel" -S "$version" --show-depends "$module" | awk '/^insmod/ { print $2 }'
  done | sort -u | while read -r file; do
    install -D -m 644 "$file" "$into/${file#"$kernel/"}"
  done
  cp "$kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$into/lib/modules/$version/"
  depmod -b "$into" "$version"
}

initramfs() {
  local tree="$folder/initramfs"
  rm -rf "$tree" && mkdir -p "$tree"/{bin,proc,sys,dev,root,lib}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  modules "$tree" virtio_pci virtio_blk ext4 crc32c_generic
  install -m 755 "$here/initramfs-init" "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) > "$folder/initramfs.gz"
  rm -rf "$tree"
}

if [ ! -e "$root/made" ]; then
  rm -rf --one-file-system "$root"
  # It mounts /proc there.
  unshare --mount debootstrap --variant=minbase \
    --include="libnuma1,ibverbs-providers,ibverbs-utils,librdmacm1,iproute2,kmod,procps,openjdk-17-jre-headless" \
    "$release" "$root" > "$folder/debootstrap-$release.log" ||
    fail "the root cannot be made: $folder/debootstrap-$release.log"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  touch "$root/made"
fi
modules "$root" rdma_rxe ib_uverbs rdma_ucm ib_umad virtio_net 9p 9pnet_virtio crc32_generic sch_netem
install -m 755 "$here/root-init" "$root/zerohop-init"
initramfs
mke2fs -q -t ext4 -d "$root" -m 0 "$folder/$release.ext4.part" 1600M
mv "$folder/$release.ext4.part" "$folder/$release.ext4"
rm -rf --one-file-system "$root"
