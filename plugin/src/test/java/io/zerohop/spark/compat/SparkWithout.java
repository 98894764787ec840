package io.zerohop.spark.compat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Loads Spark's and Zerohop's classes anew, with one member of Spark's under another name: a Spark
 * that lacks it. A member is renamed in the class file that is asked for alone, so ask for the
 * class that declares it.
 */
public final class SparkWithout extends ClassLoader {
  private final String owner;
  private final String member;

  /**
   * Returns a Spark without a member.
   *
   * @param owner the class that declares it, with dots
   * @param member its name; all overloads go
   */
  public SparkWithout(final String owner, final String member) {
    super(SparkWithout.class.getClassLoader());
    this.owner = owner;
    this.member = member;
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
    try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
      if (file == null) {
        throw new ClassNotFoundException(name);
      }
      final byte[] bytes = file.readAllBytes();
      final byte[] changed = name.equals(owner) ? rename(bytes) : bytes;
      return defineClass(name, changed, 0, changed.length);
    } catch (final IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }

  /** Writes the class file with another text where its constant pool has the member's name. */
  private byte[] rename(final byte[] bytes) throws IOException {
    final DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    final ByteArrayOutputStream changed = new ByteArrayOutputStream();
    final DataOutputStream out = new DataOutputStream(changed);
    out.writeLong(in.readLong());
    final int count = in.readUnsignedShort();
    out.writeShort(count);
    boolean found = false;
    for (int i = 1; i < count; i++) {
      final int tag = in.readUnsignedByte();
      out.writeByte(tag);
      switch (tag) {
        case 1 -> {
          final String text = in.readUTF();
          found |= text.equals(member);
          out.writeUTF(text.equals(member) ? "gone" : text);
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
    if (!found) {
      throw new IOException(owner + " declares no " + member);
    }
    in.transferTo(out);
    return changed.toByteArray();
  }
}
