package io.zerohop.spark.doctor;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.StringTokenizer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides which other jars the doctor and keepers may load. Root may load only what nobody else can
 * change: each file, and each folder and link on the way to it. Needs nothing but the JDK. Not
 * thread safe.
 */
public final class ForeignCode {
  private static final int ROOT = 0;
  private static final int WRITABLE_BY_OTHERS = 0022;
  private static final int STICKY = 01000;
  private static final int MAX_LINKS = 40;
  private static final String FOLDER_OF_JARS = "jars";

  private final int user;

  /** Files and folders that nobody else can change. */
  private final Set<Path> safe = new HashSet<>();

  private int links;

  /** Code that this process may load. */
  public ForeignCode() {
    this(self());
  }

  /** Code that a process of this user may load. */
  public ForeignCode(final int user) {
    this.user = user;
  }

  private static int self() {
    try {
      return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (final IOException | RuntimeException e) {
      return ROOT; // It is not known, so the strict rule holds.
    }
  }

  /** Returns why a jar may not be loaded; null if it may be. */
  @Nullable String refusal(final Path jar) {
    if (user != ROOT) {
      return null;
    }
    final String changeable = changeable(jar);
    return changeable == null
        ? null
        : jar + " is not loaded: this process runs as root, and " + changeable;
  }

  /** Returns the jars in a folder, sorted. */
  static List<Path> jars(final Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.toString().endsWith(".jar")).sorted().toList();
    }
  }

  /** Returns why the jars of an installation of Spark may not be loaded; null if they may be. */
  @Nullable String refusalOfSpark(final Path home) {
    final Path folder = home.resolve(FOLDER_OF_JARS);
    if (user != ROOT || !Files.isDirectory(folder)) {
      return null;
    }
    try {
      return Stream.concat(Stream.of(folder), jars(folder).stream())
          .map(this::refusal)
          .filter(reason -> reason != null)
          .findFirst()
          .orElse(null);
    } catch (final IOException e) {
      return folder + " cannot be read: " + e;
    }
  }

  /**
   * Looks at a class path as this process sees it, which may be another container than the
   * executor's. Folders that will not do are left out, such as an executor's own of settings.
   *
   * @param jars folders in which all of it has to lie; any if there is none
   * @throws IOException if others can change it, or it is elsewhere
   */
  public String classPath(final String classPath, final List<Path> jars) throws IOException {
    final List<String> entries = new ArrayList<>();
    final StringTokenizer all = new StringTokenizer(classPath, File.pathSeparator);
    while (all.hasMoreTokens()) {
      final String entry = all.nextToken();
      final boolean isNeeded = entries.isEmpty() || entry.endsWith(".jar");
      try {
        entries.add(entry(Path.of(entry), jars).toString());
      } catch (final IOException e) {
        if (isNeeded) {
          throw e;
        }
      }
    }
    if (entries.isEmpty()) {
      throw new IOException("it is empty"); // Java would take the daemon's own directory.
    }
    return String.join(File.pathSeparator, entries);
  }

  private Path entry(final Path entry, final List<Path> jars) throws IOException {
    final Path path;
    try {
      path = entry.toRealPath();
    } catch (final NoSuchFileException e) {
      throw new IOException("the daemon sees no " + entry, e);
    }
    if (!jars.isEmpty() && jars.stream().noneMatch(path::startsWith)) {
      throw new IOException(path + " is in no folder of --jars");
    }
    final String changeable = changeable(path);
    if (changeable != null) {
      throw new IOException(changeable);
    }
    return path;
  }

  /** Returns what on the way to a file others than its user can change; null if nothing. */
  public @Nullable String changeable(final Path file) {
    links = 0;
    try {
      return changeable(Path.of("/"), parts(file.toAbsolutePath()));
    } catch (final IOException | RuntimeException e) {
      return "it is not known who can change " + file + " (" + e + ")";
    }
  }

  private static Deque<String> parts(final Path path) {
    final Deque<String> parts = new ArrayDeque<>();
    path.forEach(part -> parts.add(part.toString()));
    return parts;
  }

  private @Nullable String changeable(final Path from, final Deque<String> parts)
      throws IOException {
    Path at = from;
    String found = look(at);
    while (found == null && !parts.isEmpty()) {
      final String part = parts.remove();
      if (part.equals("..")) {
        at = at.getParent() == null ? at : at.getParent();
        continue;
      }
      final Path next = at.resolve(part).normalize();
      found = look(next);
      if (found == null && Files.isSymbolicLink(next)) {
        if (++links > MAX_LINKS) {
          return next + " is one link of too many";
        }
        final Path target = Files.readSymbolicLink(next);
        final Deque<String> way = parts(target);
        way.addAll(parts);
        parts.clear();
        parts.addAll(way);
        at = target.isAbsolute() ? Path.of("/") : at;
      } else {
        at = next;
      }
    }
    return found;
  }

  /** Returns who else can change one file, folder or link; null if nobody can. */
  private @Nullable String look(final Path path) throws IOException {
    if (safe.contains(path)) {
      return null;
    }
    final Map<String, Object> known =
        Files.readAttributes(path, "unix:uid,mode", LinkOption.NOFOLLOW_LINKS);
    final int owner = (int) Objects.requireNonNull(known.get("uid"));
    final int mode = (int) Objects.requireNonNull(known.get("mode"));
    if (owner != ROOT && owner != user) {
      return path + " belongs to user " + Integer.toUnsignedString(owner);
    }
    // In a folder such as /tmp others make files, and cannot replace those that are there.
    final boolean guarded = Files.isDirectory(path) && (mode & STICKY) != 0;
    if ((mode & WRITABLE_BY_OTHERS) != 0 && !guarded && !Files.isSymbolicLink(path)) {
      return path + " can be written by others";
    }
    safe.add(path);
    return null;
  }
}
