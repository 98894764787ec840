package io.zerohop.spark.links

import java.io.InputStream
import java.nio.file.Path
import java.util.jar.{JarEntry, JarFile}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.objectweb.asm.{ClassReader, ClassVisitor, FieldVisitor, MethodVisitor, Opcodes}

/** A method or field, as the JVM resolves it: by name and exact descriptor. */
final case class Member(name: String, descriptor: String, access: Int) {
  def isAbstract: Boolean = (access & Opcodes.ACC_ABSTRACT) != 0
  def isStatic: Boolean = (access & Opcodes.ACC_STATIC) != 0
  def isFinal: Boolean = (access & Opcodes.ACC_FINAL) != 0
  def isPrivate: Boolean = (access & Opcodes.ACC_PRIVATE) != 0
  def isPublic: Boolean = (access & Opcodes.ACC_PUBLIC) != 0
  def isProtected: Boolean = (access & Opcodes.ACC_PROTECTED) != 0
  def signature: String = name + descriptor
}

/** What linking needs to know of a class. */
final case class ClassInfo(
    name: String,
    access: Int,
    superName: Option[String],
    interfaces: Seq[String],
    methods: Map[String, Member],
    fields: Map[String, Member]) {
  def isInterface: Boolean = (access & Opcodes.ACC_INTERFACE) != 0
  def isAbstract: Boolean = (access & Opcodes.ACC_ABSTRACT) != 0
  def isFinal: Boolean = (access & Opcodes.ACC_FINAL) != 0
  def isPublic: Boolean = (access & Opcodes.ACC_PUBLIC) != 0
}

/** The classes of a class path and of the JDK, read from bytecode and never loaded. */
final class ClassIndex(jars: Seq[Path]) extends AutoCloseable {
  private val files = jars.map(jar => new JarFile(jar.toFile))
  private val entries: Map[String, (JarFile, JarEntry)] =
    files.reverseIterator
      .flatMap(file => file.entries.asScala.map(entry => entry.getName -> ((file, entry))))
      .filter(_._1.endsWith(".class"))
      .toMap
  private val parsed = mutable.Map.empty[String, Option[ClassInfo]]

  /** The class with an internal name (`java/lang/Object`), if there is one. */
  def get(name: String): Option[ClassInfo] =
    parsed.getOrElseUpdate(name, open(name).map(ClassIndex.parse))

  /** A class and all that it inherits from, in the JVM's order of resolution. */
  def lineage(name: String): Seq[ClassInfo] = {
    val classes = Iterator
      .iterate(get(name))(_.flatMap(_.superName).flatMap(get))
      .takeWhile(_.isDefined)
      .flatten
      .toVector
    val seen = mutable.LinkedHashMap.empty[String, ClassInfo]
    classes.foreach(info => seen(info.name) = info)
    def interfaces(info: ClassInfo): Unit = for {
      next <- info.interfaces
      found <- get(next)
      if !seen.contains(next)
    } {
      seen(next) = found
      interfaces(found)
    }
    classes.foreach(interfaces)
    seen.values.toVector
  }

  private def open(name: String): Option[InputStream] =
    entries
      .get(name + ".class")
      .map { case (file, entry) => file.getInputStream(entry) }
      .orElse(Option(ClassLoader.getPlatformClassLoader.getResourceAsStream(name + ".class")))

  override def close(): Unit = files.foreach(_.close())
}

object ClassIndex {
  def parse(in: InputStream): ClassInfo =
    try {
      val visitor = new InfoVisitor
      new ClassReader(in).accept(visitor, ClassReader.SKIP_CODE)
      visitor.info
    } finally in.close()

  private final class InfoVisitor extends ClassVisitor(Opcodes.ASM9) {
    private var head: ClassInfo = _
    private val methods = mutable.Map.empty[String, Member]
    private val fields = mutable.Map.empty[String, Member]

    def info: ClassInfo = head.copy(methods = methods.toMap, fields = fields.toMap)

    override def visit(
        version: Int,
        access: Int,
        name: String,
        signature: String,
        superName: String,
        interfaces: Array[String]): Unit =
      head = ClassInfo(
        name, access, Option(superName), interfaces.toSeq, Map.empty, Map.empty)

    override def visitMethod(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        exceptions: Array[String]): MethodVisitor = {
      methods(name + descriptor) = Member(name, descriptor, access)
      null
    }

    override def visitField(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        value: Any): FieldVisitor = {
      fields(name + descriptor) = Member(name, descriptor, access)
      null
    }
  }
}
