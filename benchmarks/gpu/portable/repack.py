#!/usr/bin/env python3
"""Rewrites jars without what a SQL job on Linux and x86-64 does not need.

repack.py spark JARS OUT                    the jars of a Spark
repack.py rapids JAR OUT_JAR SHIM ...       RAPIDS' jar, with the shims of some versions (spark413, ...)

Entries are stored, not compressed, since the whole is compressed afterwards. A jar that is rewritten
may not keep META-INF/INDEX.LIST. Directories stay: Spark's UI looks one up. RAPIDS' large libraries
lie beside its jar.
"""

import pathlib
import re
import sys
import zipfile

UNUSED_JARS = re.compile(
    r"rocksdbjni|netty-codec-native-quic|netty-tcnative-boringssl|osx|windows|aarch|riscv|zookeeper|curator"
    r"|netty-(codec-(haproxy|memcache|mqtt|redis|smtp|stomp|http3|classes-quic|dns|xml|marshalling|socks)|resolver-dns"
    r"|transport-(rxtx|sctp|udt))|avro-ipc|avro-mapred|metrics-graphite|xmlschema|checker-qual|error_prone|j2objc|arrow-compression"
)
NATIVE = re.compile(r"\.(so|dll|dylib|jnilib|a)$")
LARGE = ("amd64/Linux/libcudf.so", "amd64/Linux/libnvcomp.so")


def is_for_this_platform(name):
    if not NATIVE.search(name.lower()):
        return True
    low = name.lower()
    return (
        "linux" in low
        and ("x86_64" in low or "amd64" in low or "linux64" in low)
        and "musl" not in low
    )


def rewrite(source, target, wanted):
    seen = set()
    with zipfile.ZipFile(source) as jar, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for name in jar.namelist():
            if (
                name in seen
                or name == "META-INF/INDEX.LIST"
                or name.startswith("META-INF/maven/")
                or not wanted(name)
            ):
                continue
            seen.add(name)
            out.writestr(zipfile.ZipInfo(name), jar.read(name))


def spark(jars, out):
    for jar in sorted(pathlib.Path(jars).iterdir()):
        if not UNUSED_JARS.search(jar.name):
            rewrite(jar, pathlib.Path(out) / jar.name, is_for_this_platform)


def rapids(jar, out, *shims):
    def wanted(name):
        top = name.split("/")[0]
        return (
            (not re.match(r"spark\d", top) or top in shims)
            and name not in LARGE
            and not name.startswith("rapids/")
        )

    rewrite(jar, out, wanted)


if __name__ == "__main__":
    {"spark": spark, "rapids": rapids}[sys.argv[1]](*sys.argv[2:])
