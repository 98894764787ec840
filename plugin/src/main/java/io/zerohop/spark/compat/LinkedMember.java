package io.zerohop.spark.compat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * A class, method or field of another project that Zerohop's classes link. Or a class of Zerohop
 * that the other project calls, which must implement all methods that are called. Tables of links
 * are resources, which tests generate from our classes. Immutable.
 *
 * @param feature the name of what does not work without it
 * @param owner the class, with dots
 * @param member empty if it is the class alone
 * @param descriptor a method's begins with a parenthesis
 */
public record LinkedMember(String feature, String owner, String member, String descriptor) {
  private static final String OURS = "io.zerohop.";

  public static LinkedMember of(final String line) {
    final String[] parts = line.split(" ");
    final boolean isClass = parts.length == 2;
    return new LinkedMember(parts[0], parts[1], isClass ? "" : parts[2], isClass ? "" : parts[3]);
  }

  /**
   * Reads a table.
   *
   * @param beside the class beside which the resource lies
   */
  public static List<LinkedMember> read(final Class<?> beside, final String resource) {
    try (InputStream in = beside.getResourceAsStream(resource);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      return lines.lines().map(LinkedMember::of).toList();
    } catch (final IOException e) {
      throw new UncheckedIOException("Zerohop's jar lacks " + resource, e);
    }
  }

  /** Returns whether a loader's class has it; the class is not initialised. */
  public boolean isIn(final ClassLoader loader) {
    try {
      final Class<?> of = Class.forName(owner, false, loader);
      return member.isEmpty() ? !owner.startsWith(OURS) || isWhole(of) : isMember(of, loader);
    } catch (final ClassNotFoundException | LinkageError | TypeNotPresentException e) {
      return false;
    }
  }

  private static boolean isWhole(final Class<?> ours) {
    try {
      return Arrays.stream(ours.getMethods()).noneMatch(m -> Modifier.isAbstract(m.getModifiers()));
    } catch (final NoClassDefFoundError e) {
      return true; // Methods for one version of Spark name types that another one has not.
    }
  }

  private boolean isMember(final Class<?> of, final ClassLoader loader) {
    final Lookup lookup = MethodHandles.publicLookup();
    if (!descriptor.startsWith("(")) {
      final Class<?> type =
          MethodType.fromMethodDescriptorString("()" + descriptor, loader).returnType();
      return finds(() -> lookup.findGetter(of, member, type))
          || finds(() -> lookup.findStaticGetter(of, member, type));
    }
    final MethodType type = MethodType.fromMethodDescriptorString(descriptor, loader);
    return member.equals("<init>")
        ? finds(() -> lookup.findConstructor(of, type))
        : finds(() -> lookup.findVirtual(of, member, type))
            || finds(() -> lookup.findStatic(of, member, type));
  }

  @FunctionalInterface
  private interface Finder {
    Object find() throws ReflectiveOperationException;
  }

  private static boolean finds(final Finder finder) {
    try {
      return finder.find() != null;
    } catch (final ReflectiveOperationException e) {
      return false;
    }
  }

  @Override
  public String toString() {
    return member.isEmpty() ? owner : owner + " " + member + " " + descriptor;
  }
}
