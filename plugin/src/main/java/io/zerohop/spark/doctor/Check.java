package io.zerohop.spark.doctor;

/** Checks one or a few items. Ends by itself within a limited time, and leaves nothing behind. */
@FunctionalInterface
interface Check {

  /**
   * Looks.
   *
   * @param notes gets what was found
   * @throws Exception whatever keeps it from looking, which is reported
   */
  void run(Notes notes) throws Exception;
}
