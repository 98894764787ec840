package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.compat.SparkWithout;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.shuffle.ShuffleManager;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Every Java of Spark 3.5 loads what users name, and an old one is told what is wanted. */
final class EntryClassTest {
  private static final int JAVA_8 = 52;
  private static final int JAVA_17 = 61;
  private static final String VERSION = "java.specification.version";
  private static final String MANAGER = "io.zerohop.spark.ZerohopShuffleManager";
  private static final String PLUGIN = "io.zerohop.spark.ZerohopPlugin";

  private final String own = System.getProperty(VERSION);

  @AfterEach
  void thisJavaAgain() {
    System.setProperty(VERSION, own);
  }

  @Test
  void onlyEntryClassesAreOfOldByteCode() throws Exception {
    final Path folder =
        Path.of(EntryClass.class.getProtectionDomain().getCodeSource().getLocation().toURI())
            .resolve("io/zerohop/spark");
    try (Stream<Path> files = Files.list(folder)) {
      for (final Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        final String name = file.getFileName().toString();
        final boolean entry =
            List.of(
                    "EntryClass.class",
                    "HistoryListeners212.class",
                    "Main.class",
                    "ZerohopHistoryPlugin.class",
                    "ZerohopPlugin.class",
                    "ZerohopShuffleManager.class")
                .contains(name);
        try (InputStream bytes = Files.newInputStream(file)) {
          assertThat(classFileVersion(bytes)).as(name).isEqualTo(entry ? JAVA_8 : JAVA_17);
        }
      }
    }
  }

  @Test
  void oldJavaGetsOneSentence() throws Exception {
    for (final String version : List.of("1.8", "11", "16")) {
      System.setProperty(VERSION, version);
      assertThatThrownBy(() -> manager(new OldJava()))
          .isInstanceOf(InvocationTargetException.class)
          .cause()
          .isExactlyInstanceOf(IllegalStateException.class)
          .hasMessageContaining("runs on Java " + version + " (")
          .hasMessageContaining("needs Java 17 or later")
          .hasMessageContaining("spark.executorEnv.JAVA_HOME")
          .hasMessageEndingWith("take Zerohop's class out of spark.shuffle.manager");
      assertThatThrownBy(() -> plugin(new OldJava()))
          .cause()
          .isExactlyInstanceOf(IllegalStateException.class)
          .hasMessageEndingWith("take Zerohop's class out of spark.plugins");
    }
  }

  @Test
  void aHistoryServerOnOldJavaGoesOnWithoutTheTab() throws Exception {
    System.setProperty(VERSION, "11");
    final AppHistoryServerPlugin plugin =
        (AppHistoryServerPlugin)
            Class.forName("io.zerohop.spark.ZerohopHistoryPlugin", true, new OldJava())
                .getConstructor()
                .newInstance();
    assertThat(plugin.createListeners(conf(), null).isEmpty()).isTrue();
    plugin.setupUI(null);
    assertThat(plugin.displayOrder()).isPositive();
  }

  /** The loader is one that would notice: without the look at the version it refuses. */
  @Test
  void oldJavaWouldNotLoadWhatIsBehindThem() {
    for (final String version : List.of("17", "21")) {
      System.setProperty(VERSION, version);
      assertThatThrownBy(() -> manager(new OldJava()))
          .cause()
          .isExactlyInstanceOf(UnsupportedClassVersionError.class);
      assertThatThrownBy(() -> plugin(new OldJava()))
          .cause()
          .isExactlyInstanceOf(UnsupportedClassVersionError.class);
    }
  }

  @Test
  void thisJavaLoadsWhatIsBehindThem() throws Exception {
    final ShuffleManager manager = manager(getClass().getClassLoader());
    assertThat(manager).isInstanceOf(SortShuffleManager.class);
    assertThat(manager.shuffleBlockResolver().getClass().getName())
        .isEqualTo("io.zerohop.spark.staged.ZerohopBlockResolver");
    manager.stop();
    assertThat(plugin(getClass().getClassLoader()).driverPlugin()).isNotNull();
  }

  /** As in Spark 4.3, where the method is one of {@code BlockingShuffleManager}. */
  @Test
  void theManagerLinksWhereTheTraitHasNoResolver() throws Throwable {
    final ClassLoader spark =
        new SparkWithout("org.apache.spark.shuffle.ShuffleManager", "shuffleBlockResolver");
    final Class<?> confClass = spark.loadClass(SparkConf.class.getName());
    final Object conf = confClass.getConstructor(boolean.class).newInstance(false);
    confClass.getMethod("set", String.class, String.class).invoke(conf, "spark.app.id", "app");
    final Object manager =
        spark.loadClass(MANAGER).getConstructor(confClass, boolean.class).newInstance(conf, true);
    final Class<?> resolver = spark.loadClass("org.apache.spark.shuffle.ShuffleBlockResolver");
    // Not by reflection, which would load all types of the class's signatures.
    final Object made =
        MethodHandles.publicLookup()
            .findVirtual(
                manager.getClass(), "shuffleBlockResolver", MethodType.methodType(resolver))
            .invokeWithArguments(manager);
    assertThat(made.getClass().getName()).isEqualTo("io.zerohop.spark.staged.ZerohopBlockResolver");
    manager.getClass().getMethod("stop").invoke(manager);
  }

  @Test
  void aFailureOfTheClassBehindIsNotWrapped() {
    final Class<?>[] none = {};
    assertThatThrownBy(() -> EntryClass.make(Object.class, "EntryClassTest$Failing", none))
        .isExactlyInstanceOf(ArithmeticException.class);
    assertThatThrownBy(() -> EntryClass.make(Object.class, "NoSuchClass", none))
        .isExactlyInstanceOf(IllegalStateException.class)
        .hasMessageContaining("NoSuchClass is missing");
  }

  @Test
  void aClassThatMayBeAbsentIsMadeIfItIsThere() {
    assertThat(EntryClass.makeIfPresent(Object.class, "NoSuchClass")).isNull();
    assertThat(EntryClass.makeIfPresent(Object.class, "EntryClassTest$Whole"))
        .isInstanceOf(Whole.class);
    assertThatThrownBy(() -> EntryClass.makeIfPresent(Object.class, "EntryClassTest$Failing"))
        .isExactlyInstanceOf(ArithmeticException.class);
  }

  /** As Spark makes it. */
  private static ShuffleManager manager(final ClassLoader loader) throws Exception {
    return (ShuffleManager)
        Class.forName(MANAGER, true, loader)
            .getConstructor(SparkConf.class, boolean.class)
            .newInstance(conf(), true);
  }

  private static SparkPlugin plugin(final ClassLoader loader) throws Exception {
    return (SparkPlugin)
        Class.forName(PLUGIN, true, loader).getConstructor(SparkConf.class).newInstance(conf());
  }

  private static SparkConf conf() {
    return new SparkConf(false).set("spark.app.id", "app").set("spark.shuffle.manager", MANAGER);
  }

  private static int classFileVersion(final InputStream bytes) throws IOException {
    final DataInputStream data = new DataInputStream(bytes);
    data.readInt();
    data.readUnsignedShort();
    return data.readUnsignedShort();
  }

  /** Has what is wanted of it. */
  public static final class Whole {}

  /** Fails in its constructor. */
  public static final class Failing {
    public Failing() {
      throw new ArithmeticException("own");
    }
  }

  /** Zerohop's classes, as Java 8 to 16 load them. */
  private static final class OldJava extends ClassLoader {
    private static final String OURS = "io.zerohop.";

    OldJava() {
      super(EntryClassTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(final String name, final boolean resolve)
        throws ClassNotFoundException {
      if (!name.startsWith(OURS)) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        final Class<?> loaded = findLoadedClass(name);
        return loaded == null ? define(name) : loaded;
      }
    }

    private Class<?> define(final String name) throws ClassNotFoundException {
      try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
        if (file == null) {
          throw new ClassNotFoundException(name);
        }
        final byte[] bytes = file.readAllBytes();
        final int version = (bytes[6] & 0xff) << 8 | bytes[7] & 0xff;
        if (version > JAVA_8) {
          throw new UnsupportedClassVersionError(name + ": class file version " + version);
        }
        return defineClass(name, bytes, 0, bytes.length);
      } catch (final IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }
}
