package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.ReportJson;
import io.zerohop.spark.ui.UiSnapshot.Point;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.status.KVUtils;
import org.apache.spark.status.protobuf.KVStoreProtobufSerializer;
import org.apache.spark.util.JsonProtocol$;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.apache.spark.util.kvstore.KVStoreSerializer;
import org.junit.jupiter.api.Test;

class EventLogTest {
  @Test
  void sparksOwnProtocolWritesAndReadsTheEvent() {
    final SparkListenerEvent event = new ShuffleReportEvent(Reports.full("1"));
    final String line = JsonProtocol$.MODULE$.sparkEventToJsonString(event);
    assertThat(line).doesNotContain("\n");
    assertThat(JsonProtocol$.MODULE$.sparkEventFromJson(line)).isEqualTo(event);
  }

  @Test
  void anUnknownClassIsWhatAReplaySkips() {
    final String line =
        JsonProtocol$.MODULE$
            .sparkEventToJsonString(new ShuffleReportEvent(Reports.full("1")))
            .replace(ShuffleReportEvent.class.getName(), "io.zerohop.spark.ui.NotHere");
    assertThatThrownBy(() -> JsonProtocol$.MODULE$.sparkEventFromJson(line))
        .isInstanceOf(ClassNotFoundException.class);
  }

  @Test
  void aReportOfAnotherReleaseIsReadAsFarAsItIsKnown() {
    final ShuffleReport read =
        ReportJson.read("{\"executorId\":\"1\",\"new\":{\"x\":1}}", ShuffleReport.class);
    assertThat(read)
        .isEqualTo(new ShuffleReport("1", "", 0, List.of(), List.of(), null, List.of(), List.of()));
  }

  @Test
  void whatIsNoReportIsRefused() {
    for (final String text : new String[] {"", "null", "[]", "{\"flows\":3}", "{"}) {
      assertThatThrownBy(() -> ReportJson.read(text, ShuffleReport.class))
          .as(text)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void aSnapshotComesBackFromAStore() throws Exception {
    final ShuffleModel model = new ShuffleModel();
    model.add(Reports.full("1"));
    model.add(Reports.ofKeeper("2", "n", 10, 0));
    final InMemoryStore store = new InMemoryStore();
    assertThat(StoredSnapshot.isIn(store)).isFalse();
    store.write(StoredSnapshot.of(model.snapshot()));
    assertThat(StoredSnapshot.read(store)).isEqualTo(model.snapshot());
  }

  /** As 0.2.0 wrote it, and a release before that knew no advice. */
  @Test
  void aStoredLogOfAnEarlierReleaseIsReadAndShown() throws Exception {
    final ShuffleModel model = new ShuffleModel();
    for (final String line :
        Files.readAllLines(Path.of("src/test/resources/event-log-0.2.0.jsonl"))) {
      final SparkListenerEvent event = JsonProtocol$.MODULE$.sparkEventFromJson(line);
      model.add(((ShuffleReportEvent) event).report());
    }
    final UiSnapshot read = model.snapshot();
    assertThat(read.refused()).isZero();
    final String reason = "it could not be reached: Connection refused [ZH-3034]";
    assertThat(read.shuffles().get(0).fallbacks()).containsExactly(Map.entry(reason, 72L));
    assertThat(read.shuffles().get(0).causes()).isEmpty();
    assertThat(read.contacts()).hasSize(1);
    assertThat(read.keepers()).isEmpty();
    assertThat(read.advice()).hasSize(2);
    final Advice start = read.advice().get(0).advice();
    assertThat(start.what()).endsWith("belongs to user 1000 [ZH-1010]");
    assertThat(start.remedy()).isEqualTo("set spark.zerohop.socket.dir to a folder of your own");
    assertThat(start.code() + start.where()).isEmpty();
  }

  /** A history server of an earlier release may read what this one writes. */
  @Test
  void theRemedyKeepsItsNameInLogs() {
    final String json = ReportJson.write(Reports.MEND);
    assertThat(json).contains("\"mend\":\"raise it\"", "\"code\":\"ZH-2001\"");
    assertThat(ReportJson.read(json, Advice.class)).isEqualTo(Reports.MEND);
  }

  /** Releases before this one have a component of a record for each. */
  @Test
  void figuresAreFieldsInLogsAndInStores() {
    final Memory memory =
        Reports.memory(
            Map.of(
                Figure.HOST_USED, 1L,
                Figure.HOST_LIMIT, 2L,
                Figure.DEVICE_USED, 3L,
                Figure.DEVICE_LIMIT, 4L,
                Figure.FILES, 5L,
                Figure.OVERFLOWED, 6L,
                Figure.SPILLED_TO_HOST, 7L,
                Figure.SPILLED_TO_FILES, 8L));
    final String fields =
        "\"hostUsed\":1,\"hostLimit\":2,\"deviceUsed\":3,\"deviceLimit\":4,\"files\":5,"
            + "\"overflowed\":6,\"spilledToHost\":7,\"spilledToFiles\":8";
    assertThat(fields.split(","))
        .as("a new figure is to be added above")
        .hasSameSizeAs(Figure.values());
    for (final String field : fields.split(",")) {
      assertThat(ReportJson.write(memory)).contains(field).contains("\"keeper\":null");
      assertThat(ReportJson.write(new Point(9, memory.figures()))).contains(field);
    }
    assertThat(ReportJson.read("{" + fields + "}", Memory.class)).isEqualTo(memory);
    assertThat(ReportJson.read("{" + fields + ",\"new\":[1],\"timeMillis\":9}", Point.class))
        .isEqualTo(new Point(9, memory.figures()));
    assertThat(ReportJson.read("{\"hostUsed\":null,\"files\":\"many\"}", Memory.class).figures())
        .extracting(one -> one.get(Figure.HOST_USED), one -> one.get(Figure.FILES))
        .containsExactly(0L, -1L);
  }

  @Test
  void aSnapshotOfAnEarlierReleaseIsRead() {
    assertThat(ReportJson.read("{\"memory\":[]}", UiSnapshot.class).advice()).isEmpty();
    final String advised =
        "{\"advice\":[{\"advice\":"
            + "{\"check\":\"c\",\"verdict\":\"warn\",\"what\":\"w\",\"mend\":\"m\"},"
            + "\"processes\":[\"1\"],\"count\":1}]}";
    assertThat(ReportJson.read(advised, UiSnapshot.class).advice().get(0).advice())
        .isEqualTo(new Advice("c", "warn", "", "w", "", "m"));
  }

  @Test
  void aStoreOnDiskCanWriteAndReadIt() throws Exception {
    final ShuffleModel model = new ShuffleModel();
    model.add(Reports.full("1"));
    final StoredSnapshot stored = StoredSnapshot.of(model.snapshot());
    for (final KVStoreSerializer serializer :
        List.of(new KVUtils.KVStoreScalaSerializer(), new KVStoreProtobufSerializer())) {
      final StoredSnapshot read =
          serializer.deserialize(serializer.serialize(stored), StoredSnapshot.class);
      assertThat(read.id).isEqualTo(stored.id);
      assertThat(read.json).isEqualTo(stored.json);
    }
  }
}
