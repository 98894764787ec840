package io.zerohop.spark.rapids.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nvidia.spark.rapids.RapidsConf;
import io.zerohop.spark.rapids.api.RapidsClasses.ShuffleEnv;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import javax.tools.ToolProvider;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The shuffle environment is made in the way that a release has, which are compiled here. */
class ShuffleEnvTest {
  private static final String ENV =
      """
      package org.apache.spark.sql.rapids;
      public final class GpuShuffleEnv$ {
        public static final GpuShuffleEnv$ MODULE$ = new GpuShuffleEnv$();
        private boolean made;
        public void %s { made = %s; }
        public boolean useGPUShuffle(com.nvidia.spark.rapids.RapidsConf conf) { return made; }
      }
      """;
  private static final String DISK =
      """
      package org.apache.spark.sql.rapids;
      public final class RapidsDiskBlockManager {}
      """;
  private static final String CATALOG =
      """
      package com.nvidia.spark.rapids;
      public final class RapidsBufferCatalog$ {
        public static final RapidsBufferCatalog$ MODULE$ = new RapidsBufferCatalog$();
        private final org.apache.spark.sql.rapids.RapidsDiskBlockManager disk =
            new org.apache.spark.sql.rapids.RapidsDiskBlockManager();
        public org.apache.spark.sql.rapids.RapidsDiskBlockManager getDiskBlockManager() {
          return disk;
        }
      }
      """;
  private static final String CONF = "com.nvidia.spark.rapids.RapidsConf conf";

  @TempDir Path folder;

  /** A loader of RAPIDS' classes, of which those that are compiled take the place of the fake's. */
  private ClassLoader release(final String... sources) throws IOException {
    final List<String> arguments = new ArrayList<>(List.of("-nowarn", "-proc:none", "-d"));
    final URL fake = RapidsConf.class.getProtectionDomain().getCodeSource().getLocation();
    arguments.addAll(List.of(folder.toString(), "-cp", fake.getPath()));
    for (int i = 0; i < sources.length; i++) {
      final String name = sources[i].replaceAll("(?s).*?final class ([\\w$]+).*", "$1");
      final Path file = Files.createDirectories(folder.resolve("s" + i)).resolve(name + ".java");
      arguments.add(Files.writeString(file, sources[i]).toString());
    }
    final int status =
        ToolProvider.getSystemJavaCompiler()
            .run(null, null, null, arguments.toArray(new String[0]));
    assertThat(status).as("javac %s", Arrays.toString(sources)).isZero();
    return new URLClassLoader(
        new URL[] {folder.toUri().toURL()}, ShuffleEnvTest.class.getClassLoader()) {
      @Override
      protected Class<?> loadClass(final String name, final boolean resolve)
          throws ClassNotFoundException {
        if (!Files.exists(folder.resolve(name.replace('.', '/') + ".class"))) {
          return super.loadClass(name, resolve);
        }
        final Class<?> loaded = findLoadedClass(name);
        return loaded == null ? findClass(name) : loaded;
      }
    };
  }

  @Test
  void itIsMadeOfTheConfiguration() throws IOException, ReflectiveOperationException {
    final ClassLoader loader =
        release(String.format(Locale.ROOT, ENV, "init(" + CONF + ")", "conf != null && !made"));
    assertThat(ShuffleEnv.bind(loader).init(new SparkConf(false))).isTrue();
    assertThat(ShuffleEnv.bind(loader).init(new SparkConf(false))).as("once more").isFalse();
    final RapidsProbe probe = RapidsProbe.of(loader);
    assertThat(probe.missing(RapidsFeature.ENV_OF_CONF)).isNull();
    assertThat(probe.missing(RapidsFeature.SHUFFLE)).isNull();
  }

  @Test
  void itIsMadeWithThePlaceForSpilledBuffers() throws IOException, ReflectiveOperationException {
    final ClassLoader loader =
        release(
            DISK,
            CATALOG,
            String.format(
                Locale.ROOT,
                ENV,
                "init(" + CONF + ", RapidsDiskBlockManager disk)",
                "disk == com.nvidia.spark.rapids.RapidsBufferCatalog$.MODULE$"
                    + ".getDiskBlockManager()"));
    assertThat(ShuffleEnv.bind(loader).init(new SparkConf(false))).isTrue();
    final RapidsProbe probe = RapidsProbe.of(loader);
    assertThat(probe.missing(RapidsFeature.ENV_OF_CONF)).contains(" init ");
    assertThat(probe.missing(RapidsFeature.ENV_WITH_DISK)).isNull();
    assertThat(probe.missing(RapidsFeature.SHUFFLE)).isNull();
  }

  @Test
  void aThirdWayIsNamed() throws IOException {
    final ClassLoader loader = release(String.format(Locale.ROOT, ENV, "init()", "true"));
    assertThatThrownBy(() -> ShuffleEnv.bind(loader))
        .isInstanceOf(NoSuchMethodException.class)
        .hasMessageContaining("init");
    assertThat(RapidsProbe.of(loader).missing(RapidsFeature.SHUFFLE)).contains(" init ");
  }
}
