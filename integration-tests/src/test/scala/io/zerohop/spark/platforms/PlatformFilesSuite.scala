package io.zerohop.spark.platforms

import java.nio.file.Files

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.introspect.{Annotated, JacksonAnnotationIntrospector}
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory
import io.fabric8.kubernetes.api.model.{Container, Pod, PodSpec, Volume}
import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** Files in examples/ that no cluster here can be given say what the pages and the API say. */
@RunBy.Verify
class PlatformFilesSuite extends AnyFunSuite {
  private val yaml = new ObjectMapper(new YAMLFactory)

  /** What the API does not know is kept by its classes apart, and must not count as known. */
  private val api = new ObjectMapper().setAnnotationIntrospector(new JacksonAnnotationIntrospector {
    override def hasAnyGetter(annotated: Annotated): java.lang.Boolean = false
  })

  private val templates = Seq("executor-pod.yaml", "executor-pod-gpu.yaml").map(kubernetes)
  private val application = kubernetes("spark-application.yaml")
  private val operator =
    Using.resource(scala.io.Source.fromResource("spark-operator.txt"))(_.getLines().toSet)

  test("each key of Zerohop's is one, and the plugin or the shuffle manager is ours") {
    val page = Files.readString(Distribution.repository.resolve("docs/configuration.md"))
    val confs = Examples.files(".conf").map(file => file -> Examples.conf(file)) :+
      (Examples.folder -> texts(application.at("/spec/sparkConf")))
    assert(confs.size > 4)
    for ((file, conf) <- confs) {
      assert(
        conf.get("spark.plugins").exists(_.split(',').contains("io.zerohop.spark.ZerohopPlugin")) ||
          conf.get("spark.shuffle.manager").contains("io.zerohop.spark.ZerohopShuffleManager"),
        file)
      for (key <- conf.keys if key.startsWith("spark.zerohop.")) {
        assert(page.contains(s"| `$key` |"), s"$file has $key")
      }
    }
  }

  test("each manifest parses") {
    val files = Examples.files(".yaml")
    assert(files.size >= 5)
    for (file <- files) {
      val documents = yaml.readerFor(classOf[JsonNode]).readValues[JsonNode](file.toFile)
      assert(documents.readAll().asScala.forall(_.isObject), file)
    }
  }

  test("templates have no field that the API of Kubernetes does not have") {
    for (template <- templates) assertKnown(template, classOf[Pod])
    val spec = application.get("spec")
    spec.get("volumes").forEach(assertKnown(_, classOf[Volume]))
    spec.at("/executor/initContainers").forEach(assertKnown(_, classOf[Container]))
  }

  test("a field that the API does not have is noticed") {
    val wrong = templates.head.toString.replace("\"hostPath\"", "\"hostPaths\"")
    intercept[org.scalatest.exceptions.TestFailedException] {
      assertKnown(yaml.readTree(wrong), classOf[Pod])
    }
  }

  test("templates, settings and the application speak of one folder and one user") {
    val conf = Examples.conf("kubernetes/zerohop.conf")
    val socketDir = conf("spark.zerohop.socket.dir")
    assert(texts(application.at("/spec/sparkConf"))("spark.zerohop.socket.dir") === socketDir)
    val pods = templates.map(_.get("spec")) :+ application.at("/spec/executor")
    for (pod <- pods) {
      val security = if (pod.has("securityContext")) "securityContext" else "podSecurityContext"
      assert(pod.at(s"/$security/runAsNonRoot").asBoolean)
      val init = pod.at("/initContainers/0")
      assert(init.at("/command/2").asText.endsWith(s" $socketDir/$$ZEROHOP_APP"))
      assert(init.at("/securityContext/runAsUser").isMissingNode)
      val executor = if (pod.has("containers")) pod.at("/containers/0") else pod
      for (container <- Seq(init, executor)) {
        assert(container.at("/volumeMounts/0/mountPath").asText === socketDir)
        val app = container.get("env").elements.asScala.find(_.get("name").asText == "ZEROHOP_APP")
        assert(app.get.at("/valueFrom/fieldRef/fieldPath").asText ===
          "metadata.labels['spark-app-selector']")
      }
      assert(executor.at("/volumeMounts/0/subPathExpr").asText === "$(ZEROHOP_APP)")
    }
    val node = kubernetes("node-folder.yaml").at("/spec/template/spec")
    assert(node.at("/containers/0/command/2").asText.startsWith(s"chmod 1777 $socketDir "))
    assert(
      node.at("/volumes/0/hostPath/path") === templates.head.at("/spec/volumes/0/hostPath/path"))
  }

  test("the daemon of keepers has the executors' user, folder and jar, and sees their processes") {
    val daemon = kubernetes("keeper-daemon.yaml")
    val pod = daemon.at("/spec/template/spec")
    assertKnown(pod, classOf[PodSpec])
    assert(pod.at("/hostPID").asBoolean)
    assert(pod.get("securityContext") === templates.head.at("/spec/securityContext"))
    val volumes = pod.get("volumes").elements.asScala.toSeq
    assert(templates.head.at("/spec/volumes").elements.asScala.forall(volumes.contains(_)))
    val words = pod.at("/containers/0/command").elements.asScala.map(_.asText).toSeq
    val conf = Examples.conf("kubernetes/zerohop.conf")
    assert(words.contains(conf("spark.executor.extraClassPath")))
    assert(words.contains(s"--socket-dir=${conf("spark.zerohop.socket.dir")}/{app}"))
    // What is beyond memory goes to a volume of the pod, and not into its image.
    val dir = words.find(_.startsWith("--dir=")).get.stripPrefix("--dir=")
    val mounts = pod.at("/containers/0/volumeMounts").elements.asScala
    val mounted = mounts.find(_.get("mountPath").asText == dir).get.get("name")
    assert(volumes.exists(volume => volume.get("name") == mounted && volume.has("emptyDir")))
  }

  test("Helm values and the application have no name that the operator does not know") {
    assert(unknown("values", kubernetes("values.yaml")) === Nil)
    assert(unknown("application", application.get("spec"), "spec.") === Nil)
    // One name too many at each depth, and one that has to have something below it.
    val wrong = yaml.readTree("{webhook: {enabled: true}, jobNamespaces: [spark], spark: 1}")
    assert(unknown("values", wrong) === Seq("webhook.enabled", "jobNamespaces", "spark"))
  }

  test("the image is of the Spark that is built against, and its jar lies where settings look") {
    val image = Files.readAllLines(Examples.folder.resolve("kubernetes/Dockerfile")).asScala
    val spark = org.apache.spark.SPARK_VERSION
    assert(image.contains(s"ARG SPARK_IMAGE=apache/spark:$spark-java17"))
    assert(application.at("/spec/sparkVersion").asText === spark)
    val jar = image.filter(_.startsWith("COPY ")).map(_.split(' ').last)
    for (side <- Seq("driver", "executor"); key = s"spark.$side.extraClassPath") {
      assert(Seq(Examples.conf("kubernetes/zerohop.conf")(key)) === jar)
      assert(Seq(texts(application.at("/spec/sparkConf"))(key)) === jar)
    }
  }

  test("the settings for GPUs are those for the host, with RAPIDS and its pod template") {
    val host = Examples.conf("kubernetes/zerohop.conf")
    val gpu = Examples.conf("kubernetes/zerohop-gpu.conf")
    assert(gpu("spark.plugins") === "com.nvidia.spark.SQLPlugin," + host("spark.plugins"))
    assert(gpu("spark.kubernetes.executor.podTemplateFile") === "executor-pod-gpu.yaml")
    for (key <- Seq("driver", "executor").map(side => s"spark.$side.extraClassPath"))
      assert(gpu(key) === "/opt/zerohop/rapids-4-spark.jar:" + host(key))
    for (key <- Seq("spark.zerohop.socket.dir",
        "spark.kubernetes.executor.podTemplateContainerName"))
      assert(gpu(key) === host(key))
    assert(host.keySet -- gpu.keySet === Set.empty)
    // The row of docs/tuning.md, whose pool TuningPageTest computes.
    val row = Files.readAllLines(Examples.folder.resolve("../docs/tuning.md")).asScala
      .find(_.startsWith("| Kubernetes, one H100 ")).get.split('|').map(_.trim)
    val of = (key: String) => gpu(key).replace("g", " GiB")
    assert(row.slice(2, 7) === Array(of("spark.executor.memory"), gpu("spark.executor.cores"),
      "any", of("spark.executor.memoryOverhead"), of("spark.rapids.memory.pinnedPool.size")))
  }

  /** Names in a file of ours that the operator's of the same kind does not have. */
  private def unknown(kind: String, node: JsonNode, at: String = ""): Seq[String] =
    node.properties.asScala.toSeq.flatMap { entry =>
      val name = at + entry.getKey
      if (operator(s"$kind $name *") || operator(s"$kind $name") && !entry.getValue.isObject) Nil
      else if (entry.getValue.isObject && operator.exists(_.startsWith(s"$kind $name.")))
        unknown(kind, entry.getValue, s"$name.")
      else Seq(name)
    }

  private def kubernetes(name: String): JsonNode =
    yaml.readTree(Examples.folder.resolve("kubernetes").resolve(name).toFile)

  private def texts(node: JsonNode): Map[String, String] =
    node.properties.asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap

  /** Read by the class and written again it has every field that it had. */
  private def assertKnown[T <: AnyRef](written: JsonNode, kind: Class[T]): Unit = {
    val again = api.valueToTree[JsonNode](api.treeToValue(written, kind))
    val lost = fields(written, "").toSet -- fields(again, "")
    assert(lost.isEmpty, s"no fields of ${kind.getSimpleName}")
  }

  private def fields(node: JsonNode, at: String): Seq[String] =
    if (node.isObject) {
      node.properties.asScala.toSeq.flatMap { entry =>
        val name = s"$at/${entry.getKey}"
        name +: fields(entry.getValue, name)
      }
    } else if (node.isArray) {
      node.asScala.toSeq.zipWithIndex.flatMap { case (part, i) => fields(part, s"$at/$i") }
    } else Nil
}
