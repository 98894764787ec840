package io.zerohop.spark.suites

/** The shuffle manager that the suites run on: `spark.shuffle.manager`, set by the build. */
object ManagerUnderTest {
  val Zerohop = "io.zerohop.spark.ZerohopShuffleManager"

  /** As written in `spark.shuffle.manager`. */
  val name: String = sys.props.getOrElse("spark.shuffle.manager", Zerohop)

  /** The class behind the name. */
  val className: String =
    if (name == "sort") "org.apache.spark.shuffle.sort.SortShuffleManager" else name

  /** False when the suites are tried on sort shuffle, which has no paths to count. */
  val isZerohop: Boolean = className == Zerohop
}
