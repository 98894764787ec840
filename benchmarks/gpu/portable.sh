#!/usr/bin/env bash
# Makes what rapids.sh needs beside our own jars for a GPU host without a network: layers that are cut
# into parts, and put together there to a kit for each cell of the compatibility matrix.
#
#   portable.sh DIR CELL ...          layers of cells, each SPARK_SCALA-RAPIDS-CUDA, such as
#                                     4.1.3_2.13-26.08.1-cuda13; needs a JDK 17, Maven, Python 3, xz,
#                                     readelf and strip, 5 GB of disk, and some minutes for a release of
#                                     RAPIDS, which is 600 MB to 1 GB
#   portable.sh DIR maven             the layer maven: Maven, and a repository for "mvn -o verify -Pgpu"
#   portable.sh setup DIR KIT CELL    there: the kit of one cell
#   portable.sh setup DIR KIT maven CELL
#                                     the same with Maven, and one jar of RAPIDS, rapids-whole.jar
#
# DIR gets jre/00/part, rapids-VERSION-CUDA_SCALA/NN/part and spark-VERSION_SCALA/NN/part, of PART_MIB (56)
# at most, and work, which need not travel. A layer that is there is not made again. libcudf and libnvcomp keep
# the code of one GPU architecture, ARCH (90), and jars what Linux on x86-64 needs.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ $# -ge 2 ] || {
  sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}

parts() { # layer, folder with its files
  rm -rf "${dir:?}/$1.part" && mkdir -p "$dir/$1.part"
  tar -C "$2" -cf - . | xz -T0 "-${XZ_LEVEL:-3}" | split -b "${PART_MIB:-56}M" -d -a 2 - "$dir/$1.part/"
  local part
  for part in "$dir/$1.part"/??; do
    mv "$part" "$part.tmp" && mkdir "$part" && mv "$part.tmp" "$part/part"
  done
  mv "$dir/$1.part" "$dir/$1"
  rm -rf "$2"
  echo "$1: $(du -sm "$dir/$1" | cut -f1) MiB, $(find "$dir/$1" -name part | wc -l) parts"
}

jre() {
  [ ! -d "$dir/jre" ] || return 0
  rm -rf "$work/jre"
  mkdir -p "$work/jre"
  "${JAVA_HOME:+$JAVA_HOME/bin/}jlink" --add-modules ALL-MODULE-PATH --strip-debug --no-man-pages \
    --compress=0 --output "$work/jre/jre17"
  parts jre "$work/jre"
}

# With an own, empty parent where the released pom names one that was never released.
fetch() { # scala, version, classifier
  local repository="${RAPIDS_REPOSITORY:-$work/repository}" parent
  jar="$repository/com/nvidia/rapids-4-spark_$1/$2/rapids-4-spark_$1-$2-$3.jar"
  [ ! -f "$jar" ] || return 0
  for parent in "rapids-4-spark-parent_$1" "rapids-4-spark-jdk-profiles_$1"; do
    mkdir -p "$repository/com/nvidia/$parent/$2"
    cat > "$repository/com/nvidia/$parent/$2/$parent-$2.pom" << POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.nvidia</groupId>
  <artifactId>$parent</artifactId>
  <version>$2</version>
  <packaging>pom</packaging>
</project>
POM
  done
  (cd "$work" && mvn -B -q -Dmaven.repo.local="$repository" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get -Dartifact="com.nvidia:rapids-4-spark_$1:$2:jar:$3" -Dtransitive=false)
}

rapids() { # version, classifier, scala, shims ...
  local layer="rapids-$1-$2_$3" jar library
  [ ! -d "$dir/$layer" ] || return 0
  fetch "$3" "$1" "$2"
  rm -rf "${work:?}/$layer"
  mkdir -p "$work/$layer/native/amd64/Linux"
  for library in $(unzip -Z1 "$jar" 'amd64/Linux/libcudf.so' 'amd64/Linux/libnvcomp.so' 2> /dev/null); do
    unzip -q -o -j "$jar" "$library" -d "$work"
    python3 "$here/portable/strip_fatbin.py" "$work/${library##*/}" "$work/$layer/native/$library" "${ARCH:-90}"
    rm "$work/${library##*/}"
    strip --strip-all -R .gnu.build.attributes "$work/$layer/native/$library"
  done
  python3 "$here/portable/repack.py" rapids "$jar" "$work/$layer/rapids.jar" "${@:4}"
  parts "$layer" "$work/$layer"
}

spark() { # version, scala
  local layer="spark-$1_$2" home="$here/../../integration-tests/sparks/$1_$2/target/spark-home/jars"
  [ ! -d "$dir/$layer" ] || return 0
  [ "$1_$2" != "$default_spark" ] || home="$here/../spark/target/spark-home/jars"
  if [ ! -d "$home" ]; then
    home="$work/$layer-jars"
    mkdir -p "$work/$layer-pom"
    sed -e "s/@spark@/$1/" -e "s/@scala@/$2/" "$here/portable/spark.xml" > "$work/$layer-pom/pom.xml"
    mvn -B -q -f "$work/$layer-pom/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$home"
  fi
  rm -rf "${work:?}/$layer"
  mkdir -p "$work/$layer/spark/jars"
  touch "$work/$layer/spark/RELEASE"
  python3 "$here/portable/repack.py" spark "$home" "$work/$layer/spark/jars"
  parts "$layer" "$work/$layer"
}

# What the build needs beside a JDK, a C compiler and nvcc, but for RAPIDS, which the other layers have.
# All tests are skipped where there is no GPU, yet Maven has fetched what runs them.
maven() {
  local home tree="$work/maven-tree"
  [ ! -d "$dir/maven" ] || return 0
  rm -rf "$work/maven" "$tree"
  mkdir -p "$work/maven"
  home="$(mvn -v | sed -n 's/^Maven home: //p')"
  cp -rL "$home" "$work/maven/maven"
  git clone -q "$here/../.." "$tree"
  (cd "$tree" && mvn -B -q verify -Pgpu -pl integration-tests -am -Dmaven.repo.local="$work/maven/repository")
  rm -rf "$tree"
  parts maven "$work/maven"
}

# A cell's words: Spark, Scala, RAPIDS, CUDA
words() { sed -E 's/^([0-9.]+)_([0-9.]+)-([0-9.]+)-(cuda[0-9]+)$/\1 \2 \3 \4/' <<< "$1"; }

setup() { # dir, kit, maven or nothing, cell
  local spark scala rapids cuda layer
  if [ "$3" = maven ]; then
    setup "$1" "$2" "$4"
    cat "$1/maven"/??/part | xz -dc -T0 | tar -xf - -C "$2"
    cp "$2/rapids.jar" "$2/rapids-whole.jar"
    "$2/jre17/bin/jar" --update --file "$2/rapids-whole.jar" -C "$2/native" .
    return
  fi
  read -r spark scala rapids cuda < <(words "$3")
  mkdir -p "$2"
  for layer in jre "rapids-$rapids-${cuda}_$scala" "spark-${spark}_$scala"; do
    [ -d "$1/$layer/00" ] || {
      echo "$1 has no layer $layer" >&2
      exit 1
    }
    cat "$1/$layer"/??/part | xz -dc -T0 | tar -xf - -C "$2"
  done
  # Other shims were left out when the layer was made.
  grep -qa "spark${spark//./}/com/" "$2/rapids.jar" || {
    echo "the layer of RAPIDS $rapids has no shim for Spark $spark: make both cells by one call" >&2
    exit 1
  }
}

if [ "$1" = setup ]; then
  setup "${@:2}"
  exit
fi
mkdir -p "$1/work"
dir="$(cd "$1" && pwd)"
shift
work="$dir/work"
default_spark="$(sed -n 's:.*<spark.version>\(.*\)</spark.version>.*:\1:p' "$here/../../pom.xml")_2.13"
for cell in "$@"; do
  if [ "$cell" = maven ]; then
    maven
    continue
  fi
  read -r spark scala rapids cuda < <(words "$cell")
  [ -n "$cuda" ] || {
    echo "'$cell' is no cell" >&2
    exit 2
  }
  jre
  # One layer of RAPIDS has the shims of all cells that were named.
  shims=()
  for other in "$@"; do
    [[ "$other" != *_"$scala-$rapids-$cuda" ]] || shims+=("spark$(sed 's/_.*//; s/\.//g' <<< "$other")")
  done
  rapids "$rapids" "$cuda" "$scala" "${shims[@]}"
  spark "$spark" "$scala"
done
