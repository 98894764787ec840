package io.zerohop.spark.compat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Loads Spark's and Zerohop's classes anew, without a class or the members of a name: a Spark that
 * lacks them.
 */
public final class SparkWithout extends ClassLoader {
  private final Set<String> owners = new HashSet<>();
  private final String member;

  private SparkWithout(final String member) {
    super(SparkWithout.class.getClassLoader());
    this.member = member;
  }

  /**
   * Returns a Spark without a class or a member.
   *
   * @param owner the class that has it or inherits it, with dots
   * @param member its name, all overloads go; empty for the class itself
   */
  public SparkWithout(final String owner, final String member) {
    this(member);
    if (member.isEmpty()) {
      owners.add(owner);
      return;
    }
    try {
      addWithParents(Class.forName(owner, false, getParent()));
    } catch (final ClassNotFoundException e) {
      throw new IllegalArgumentException(e);
    }
  }

  /**
   * Returns a Spark in which a class declares no such member, and what it inherits is as it was.
   */
  public static SparkWithout declared(final String owner, final String member) {
    final SparkWithout spark = new SparkWithout(member);
    spark.owners.add(owner);
    return spark;
  }

  private void addWithParents(final Class<?> type) {
    if (type != null && owners.add(type.getName())) {
      addWithParents(type.getSuperclass());
      Arrays.stream(type.getInterfaces()).forEach(this::addWithParents);
    }
  }

  @Override
  protected Class<?> loadClass(final String name, final boolean resolve)
      throws ClassNotFoundException {
    if (!name.startsWith("org.apache.spark.") && !name.startsWith("io.zerohop.spark.")) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      final Class<?> loaded = findLoadedClass(name);
      return loaded == null ? define(name) : loaded;
    }
  }

  private Class<?> define(final String name) throws ClassNotFoundException {
    final boolean changes = owners.contains(name);
    if (changes && member.isEmpty()) {
      throw new ClassNotFoundException(name);
    }
    try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
      if (file == null) {
        throw new ClassNotFoundException(name);
      }
      final byte[] bytes = file.readAllBytes();
      final byte[] changed = changes ? withoutMember(bytes) : bytes;
      return defineClass(name, changed, 0, changed.length);
    } catch (final IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }

  /** Writes the class file without the fields and methods of the member's name. */
  private byte[] withoutMember(final byte[] bytes) throws IOException {
    final DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    final ByteArrayOutputStream changed = new ByteArrayOutputStream();
    final DataOutputStream out = new DataOutputStream(changed);
    out.writeLong(in.readLong());
    final Set<Integer> names = copyConstants(in, out);
    out.write(in.readNBytes(6));
    final int interfaces = in.readUnsignedShort();
    out.writeShort(interfaces);
    out.write(in.readNBytes(2 * interfaces));
    copyOthers(in, out, names);
    copyOthers(in, out, names);
    in.transferTo(out);
    return changed.toByteArray();
  }

  /** Copies the constant pool; returns the constants that are the member's name. */
  private Set<Integer> copyConstants(final DataInputStream in, final DataOutputStream out)
      throws IOException {
    final Set<Integer> names = new HashSet<>();
    final int count = in.readUnsignedShort();
    out.writeShort(count);
    for (int i = 1; i < count; i++) {
      final int tag = in.readUnsignedByte();
      out.writeByte(tag);
      switch (tag) {
        case 1 -> {
          final String text = in.readUTF();
          if (text.equals(member)) {
            names.add(i);
          }
          out.writeUTF(text);
        }
        case 5, 6 -> {
          out.writeLong(in.readLong());
          i++;
        }
        case 7, 8, 16, 19, 20 -> out.writeShort(in.readUnsignedShort());
        case 15 -> out.write(in.readNBytes(3));
        default -> out.writeInt(in.readInt());
      }
    }
    return names;
  }

  /** Copies the fields or the methods of other names, and private ones, which nobody misses. */
  private static void copyOthers(
      final DataInputStream in, final DataOutputStream out, final Set<Integer> names)
      throws IOException {
    final ByteArrayOutputStream kept = new ByteArrayOutputStream();
    int others = 0;
    for (int left = in.readUnsignedShort(); left > 0; left--) {
      final ByteArrayOutputStream one = new ByteArrayOutputStream();
      final DataOutputStream to = new DataOutputStream(one);
      final int access = in.readUnsignedShort();
      to.writeShort(access);
      final int name = in.readUnsignedShort();
      to.writeShort(name);
      to.writeShort(in.readUnsignedShort());
      final int attributes = in.readUnsignedShort();
      to.writeShort(attributes);
      for (int i = 0; i < attributes; i++) {
        to.writeShort(in.readUnsignedShort());
        final int length = in.readInt();
        to.writeInt(length);
        to.write(in.readNBytes(length));
      }
      if (!names.contains(name) || Modifier.isPrivate(access)) {
        one.writeTo(kept);
        others++;
      }
    }
    out.writeShort(others);
    kept.writeTo(out);
  }
}
