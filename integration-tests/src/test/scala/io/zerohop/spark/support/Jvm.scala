package io.zerohop.spark.support

/** The JVMs that tests start. */
object Jvm {

  /**
   * What each of them is told. In `verify` and `-Pfull` it is to compile quickly rather than well:
   * they live for seconds, and the optimising compiler takes as much of them as all else. Soaks
   * leave Java as users have it.
   */
  val options: Seq[String] =
    sys.props.getOrElse("zerohop.test.jvm", "").split(' ').toSeq.filter(_.nonEmpty)

  /** `conf` with these options for executors, beside those that it has. */
  def forExecutors(conf: Map[String, String]): Map[String, String] = {
    val all = conf.get(Executors).toSeq ++ options
    if (all.isEmpty) conf else conf + (Executors -> all.mkString(" "))
  }

  private val Executors = "spark.executor.extraJavaOptions"
}
