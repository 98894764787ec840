package io.zerohop.spark.doctor;

import picocli.CommandLine.IVersionProvider;

/** The release of the jar, for its commands. */
public final class ReleaseVersion implements IVersionProvider {
  @Override
  public String[] getVersion() {
    return new String[] {"Zerohop " + Report.version()};
  }
}
