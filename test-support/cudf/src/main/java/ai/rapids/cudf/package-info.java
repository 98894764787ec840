/**
 * A fake of cudf on host memory, under cudf's names: what our code calls, and what tests need to
 * make tables and look into them. It has cudf's signatures (26.08), so that {@code CudfContract}
 * runs with either. It lets tests drive the writer and the reader of RAPIDS' batches where there is
 * no GPU, and keeps the rules that they rely on:
 *
 * <ul>
 *   <li>Buffers, columns and tables count their references. Whoever closes once too often, or uses
 *       what is closed, fails; {@link ai.rapids.cudf.FakeGpu#checkNothingIsLeft} finds what nobody
 *       closed.
 *   <li>Memory is freed in the order of the thread's stream: behind what our device was given on
 *       it, and before what another stream still has to do ({@link ai.rapids.cudf.GpuQueue}). Who
 *       then reads it fails.
 *   <li>Memory is limited. Where there is none RAPIDS' list of what can spill is asked, and then
 *       the allocation fails as RAPIDS' do; any allocation can be made to fail.
 *   <li>Packed tables and Kudo blocks have the real layouts, which our code parses.
 * </ul>
 *
 * <p>It is slow: each operation takes columns apart into values and lays these out again.
 */
package ai.rapids.cudf;
