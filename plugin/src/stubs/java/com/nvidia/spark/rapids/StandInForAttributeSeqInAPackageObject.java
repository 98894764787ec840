package com.nvidia.spark.rapids;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import scala.collection.immutable.Seq;

/**
 * Spark's {@code AttributeSeq}, a class of a package object that Java source cannot name. {@code
 * KudoPartitioning} puts its name in place of this one, which is as long, when it defines a class.
 */
public class StandInForAttributeSeqInAPackageObject {
  StandInForAttributeSeqInAPackageObject() {}

  public Seq<Attribute> attrs() {
    throw new AssertionError("a stand-in for the compiler");
  }
}
