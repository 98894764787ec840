package io.zerohop.workload;

/**
 * What a {@link WorkloadApp} is asked: to run a workload once.
 *
 * @param workload the workload's name, see {@link Workload#named}
 * @param resultFile where its {@link Answer} goes, or null where they are not kept
 */
public record Question(String workload, String resultFile) {}
