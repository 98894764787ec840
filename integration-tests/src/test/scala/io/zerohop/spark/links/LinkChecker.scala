package io.zerohop.spark.links

import java.nio.file.Path
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._
import scala.util.Using

/** One reference that would fail to link, in words. */
final case class LinkError(from: String, problem: String) {
  override def toString: String = s"$from: $problem"
}

/**
 * Links the classes of a jar against a class path, as the JVM would at run time but all of them at
 * once: every class, method and field that they use from Spark, Scala and Netty must be there with
 * its exact descriptor, and what they implement must be complete.
 *
 * @param subject bytecode of the classes to check, by internal name
 * @param index these classes and those that they are linked against
 */
final class LinkChecker(subject: Map[String, Array[Byte]], index: ClassIndex) {
  import Reference._

  def errors: Seq[LinkError] =
    subject.toSeq.sortBy(_._1).flatMap { case (name, bytes) =>
      val unresolved = References.of(bytes).toSeq.flatMap(problem)
      (unresolved ++ inheritance(ClassIndex.parse(new java.io.ByteArrayInputStream(bytes))))
        .map(LinkError(name, _))
    }

  private def problem(reference: Reference): Option[String] = reference match {
    case ToClass(name) if isForeign(name) =>
      index.get(name) match {
        case None => Some(s"class $name is missing")
        case Some(info) if !info.isPublic => Some(s"class $name is not public")
        case _ => None
      }
    case ToMethod(owner, name, descriptor, isStatic) if isForeign(owner) =>
      resolve(owner, _.methods.get(name + descriptor), s"method $owner.$name$descriptor", isStatic)
    case ToField(owner, name, descriptor, isStatic) if isForeign(owner) =>
      resolve(owner, _.fields.get(name + descriptor), s"field $owner.$name $descriptor", isStatic)
    case ToLambda(interface, method, descriptor) if isForeign(interface) =>
      val abstracts = unimplemented(interface)
      if (abstracts == Set(method + descriptor)) None
      else Some(s"a lambda for $interface.$method$descriptor; it needs ${abstracts.mkString(", ")}")
    case _ => None
  }

  private def resolve(
      owner: String,
      find: ClassInfo => Option[Member],
      what: String,
      isStatic: Boolean): Option[String] =
    index.lineage(owner).flatMap(info => find(info).map(info -> _)).headOption match {
      case None => Some(s"$what is missing")
      case Some((_, member)) if member.isStatic != isStatic =>
        Some(s"$what is ${if (isStatic) "not " else ""}static")
      case Some((_, member)) if !member.isPublic && !member.isProtected =>
        Some(s"$what is not accessible")
      case _ => None
    }

  private def inheritance(info: ClassInfo): Seq[String] = {
    val ancestors = index.lineage(info.name).filter(a => isForeign(a.name))
    val finals = ancestors.filter(a => a.isFinal && info.superName.contains(a.name)).map { a =>
      s"extends the final class ${a.name}"
    }
    val overridden = for {
      ancestor <- ancestors
      method <- info.methods.values
      above <- ancestor.methods.get(method.signature)
      if above.isFinal && !above.isPrivate && !above.isStatic && method.name != "<init>"
    } yield s"overrides the final method ${ancestor.name}.${above.signature}"
    val incomplete =
      if (info.isAbstract || ancestors.isEmpty) Nil
      else unimplemented(info.name).toSeq.sorted.map(m => s"does not implement $m")
    finals ++ overridden ++ incomplete
  }

  /** Abstract methods that a class inherits or declares and nothing in its lineage implements. */
  private def unimplemented(name: String): Set[String] = {
    val lineage = index.lineage(name)
    val (interfaces, classes) = lineage.partition(_.isInterface)
    def concrete(infos: Seq[ClassInfo]): Set[String] =
      infos.flatMap(_.methods.values.filter(m => !m.isAbstract && !m.isStatic && !m.isPrivate))
        .map(_.signature)
        .toSet
    val ofObject = index.get("java/lang/Object").toSeq
    val implemented = concrete(classes) ++ concrete(interfaces) ++ concrete(ofObject)
    lineage.flatMap(_.methods.values.filter(_.isAbstract)).map(_.signature).toSet -- implemented
  }

  private def isForeign(name: String): Boolean = LinkChecker.Foreign.exists(name.startsWith)
}

object LinkChecker {
  private val Foreign = Seq("org/apache/spark/", "scala/", "io/netty/")

  /** The classes of a jar, by internal name. */
  def classesOf(jar: Path): Map[String, Array[Byte]] =
    Using.resource(new JarFile(jar.toFile)) { file =>
      file.entries.asScala
        .filter(_.getName.endsWith(".class"))
        .map { entry =>
          val bytes = Using.resource(file.getInputStream(entry))(_.readAllBytes())
          entry.getName.stripSuffix(".class") -> bytes
        }
        .toMap
    }
}
