package io.zerohop.spark.links

import java.net.URLClassLoader
import java.nio.file.Files
import java.util.jar.{JarEntry, JarOutputStream}

import scala.util.Using

import io.zerohop.spark.compat.{SparkFeature, SparkProbe}
import io.zerohop.spark.support.RunBy
import io.zerohop.spark.versions.{NeedsSparkHome, SparkHome, SparkHomes}
import org.objectweb.asm.{ClassWriter, Opcodes, Type}
import org.scalatest.funsuite.AnyFunSuite

/** The one jar links against every Spark that it says it runs on. */
@RunBy.Verify
class LinkCheckSuite extends AnyFunSuite with NeedsSparkHome {
  private val jar = SparkHomes.zerohopJar

  /** Classes that are loaded only from a version on, with that version; nothing else is exempt. */
  private val Since = Map("io/zerohop/spark/rows/RowsWriter$RowChecksums$Since41" -> "4.1")

  for (home <- SparkHomes.all) {
    test(s"every reference to Spark, Scala and Netty resolves in $home") {
      requireHome(home)
      val (exempt, checked) = LinkChecker.classesOf(jar).partition { case (name, _) =>
        Since.get(name).exists(isBefore(home.version, _))
      }
      Using.resource(new ClassIndex(jar +: home.jars)) { index =>
        val errors = new LinkChecker(checked, index).errors
        if (errors.nonEmpty) fail(errors.mkString("\n", "\n", ""))
        exempt.foreach { case (name, bytes) =>
          val needed = new LinkChecker(Map(name -> bytes), index).errors
          assert(needed.nonEmpty, s"$name links in $home and needs no exemption")
        }
      }
    }
  }

  for (home <- SparkHomes.all) {
    test(s"the look at the start misses nothing in $home") {
      requireHome(home)
      val classes = (jar +: home.jars).map(_.toUri.toURL).toArray
      Using.resource(new URLClassLoader(classes, ClassLoader.getPlatformClassLoader)) { loader =>
        val probe = loader.loadClass(classOf[SparkProbe].getName)
        val feature = loader.loadClass(classOf[SparkFeature].getName)
        val missing = probe.getMethod("missing", feature)
        val here = probe.getMethod("here").invoke(null)
        for (name <- feature.getEnumConstants)
          assert(missing.invoke(here, name) === null, name)
      }
    }
  }

  for (home <- SparkHomes.all) {
    test(s"a dependency of $home says by one field whether row checksums count, if it has them") {
      requireHome(home)
      // RetryChecksums sets it, by reflection.
      val names = Set("checksumMismatchFullRetryEnabled", "_checksumMismatchFullRetryEnabled")
      Using.resource(new ClassIndex(home.jars)) { index =>
        val fields = index.get("org/apache/spark/ShuffleDependency").get.fields.values
        val found = fields.filter(field => names.contains(field.name)).map(_.descriptor)
        assert(found.toSeq === (if (isBefore(home.version, "4.1")) Nil else Seq("Z")))
      }
    }
  }

  for (home <- SparkHomes.all) {
    test(s"the security manager of $home hands out what RPC has of TLS, if it has any") {
      requireHome(home)
      // SparkLinks binds both, and takes their absence for a Spark without TLS.
      Using.resource(new ClassIndex(home.jars)) { index =>
        def has(owner: String, signature: String) =
          index.get(s"org/apache/spark/$owner").get.methods.contains(signature)
        val known = !isBefore(home.version, "4.0")
        val options = "getRpcSSLOptions()Lorg/apache/spark/SSLOptions;"
        val provider = "createConfigProvider(Lorg/apache/spark/SparkConf;)" +
          "Lorg/apache/spark/network/util/ConfigProvider;"
        assert(has("SecurityManager", options) === known)
        assert(has("SSLOptions", provider) === known)
        assert(index.get("org/apache/spark/network/ssl/SSLFactory").isDefined === known)
      }
    }
  }

  for (home <- SparkHomes.all) {
    test(s"the frame of a page in the UI of $home is made by one method, the rest has defaults") {
      requireHome(home)
      // SparkPages finds it by its name.
      Using.resource(new ClassIndex(home.jars)) { index =>
        val methods = index.get("org/apache/spark/ui/UIUtils$").get.methods.values
        val frames = methods.filter(_.name == "headerSparkPage")
        assert(frames.size === 1)
        val arguments = Type.getArgumentTypes(frames.head.descriptor).map(_.getClassName).toSeq
        val servlet = if (isBefore(home.version, "4.0")) "javax" else "jakarta"
        assert(arguments.take(4) === Seq(
          s"$servlet.servlet.http.HttpServletRequest",
          "java.lang.String",
          "scala.Function0",
          "org.apache.spark.ui.SparkUITab"))
        for (number <- 5 to arguments.size)
          assert(methods.exists(_.name == s"headerSparkPage$$default$$$number"))
      }
    }
  }

  private def isBefore(version: String, other: String): Boolean = {
    def parts(text: String) = text.split('.').take(2).map(_.toInt).toSeq
    import scala.math.Ordering.Implicits._
    parts(version) < parts(other)
  }

  test("the jar holds Zerohop's classes alone, what it carries relocated where it can be") {
    val names = LinkChecker.classesOf(jar).keySet
    // JCuda and jucx find the functions of their libraries by the names of their classes.
    // Subclasses of RAPIDS' classes are defined beside these, so they are of that package.
    val own = Seq("io/zerohop/", "jcuda/", "org/openucx/jucx/", "com/nvidia/spark/rapids/Zerohop")
    assert(names.filterNot(name => own.exists(name.startsWith)).isEmpty)
    assert(names.contains("io/zerohop/spark/ZerohopShuffleManager"))
    Since.keys.foreach(name => assert(names.contains(name)))
    // JCuda's loader takes what lies in the temporary folder; ours is in its place.
    assert(names.contains("jcuda/LibUtils") && !names.contains("jcuda/LibUtils$ArchType"))
  }

  test("the check notices a method that one version lacks") {
    val caller = generate("io/zerohop/Caller", "java/lang/Object", Nil) { (_, code) =>
      code.visitMethodInsn(
        Opcodes.INVOKESTATIC,
        "org/apache/spark/scheduler/MapStatus",
        "apply",
        "(Lorg/apache/spark/storage/BlockManagerId;[JJ)Lorg/apache/spark/scheduler/MapStatus;",
        true)
    }
    assert(errorsOf(caller, SparkHomes.of("4.0.2")).isEmpty)
    val errors = errorsOf(caller, SparkHomes.of("4.1.3"))
    assert(errors.map(_.problem).exists(_.contains("MapStatus.apply")), errors)
  }

  test("the check notices an abstract method that is not implemented") {
    val manager = generate(
      "io/zerohop/Manager", "java/lang/Object", Seq("org/apache/spark/shuffle/ShuffleManager"))(
      (_, _) => ())
    val problems = errorsOf(manager, SparkHomes.of("4.1.3")).map(_.problem)
    assert(problems.exists(_.startsWith("does not implement registerShuffle")), problems)
  }

  test("the check notices a class that is gone and a final method that is overridden") {
    val child = generate(
      "io/zerohop/Child", "org/apache/spark/Gone", Nil)((_, _) => ())
    assert(
      errorsOf(child, SparkHomes.of("4.1.3"))
        .exists(_.problem == "class org/apache/spark/Gone is missing"))
    val conf = generate("io/zerohop/Conf", "org/apache/spark/rdd/RDD", Nil) { (writer, _) =>
      val descriptor = "()Lscala/collection/immutable/Seq;"
      writer.visitMethod(Opcodes.ACC_PUBLIC, "id", "()I", null, null).visitEnd()
      writer.visitMethod(Opcodes.ACC_PUBLIC, "dependencies", descriptor, null, null).visitEnd()
    }
    assert(
      errorsOf(conf, SparkHomes.of("4.1.3"))
        .exists(_.problem.startsWith("overrides the final method org/apache/spark/rdd/RDD")))
  }

  private def errorsOf(bytes: Array[Byte], home: SparkHome): Seq[LinkError] = {
    requireHome(home)
    val name = ClassIndex.parse(new java.io.ByteArrayInputStream(bytes)).name
    val file = Files.createTempFile("zerohop-links", ".jar")
    try {
      Using.resource(new JarOutputStream(Files.newOutputStream(file))) { out =>
        out.putNextEntry(new JarEntry(name + ".class"))
        out.write(bytes)
        out.closeEntry()
      }
      Using.resource(new ClassIndex(file +: home.jars)) { index =>
        new LinkChecker(Map(name -> bytes), index).errors
      }
    } finally Files.delete(file)
  }

  private def generate(name: String, superName: String, interfaces: Seq[String])(
      body: (ClassWriter, org.objectweb.asm.MethodVisitor) => Unit): Array[Byte] = {
    val writer = new ClassWriter(0)
    writer.visit(
      Opcodes.V17, Opcodes.ACC_PUBLIC, name, null, superName, interfaces.toArray)
    val code = writer.visitMethod(Opcodes.ACC_STATIC, "probe", "()V", null, null)
    code.visitCode()
    body(writer, code)
    code.visitInsn(Opcodes.RETURN)
    code.visitMaxs(8, 0)
    code.visitEnd()
    writer.visitEnd()
    writer.toByteArray
  }
}
