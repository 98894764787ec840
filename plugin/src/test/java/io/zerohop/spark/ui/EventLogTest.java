package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.report.ReportJson;
import io.zerohop.spark.report.ShuffleReport;
import java.util.List;
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
    final InMemoryStore store = new InMemoryStore();
    assertThat(StoredSnapshot.isIn(store)).isFalse();
    store.write(StoredSnapshot.of(model.snapshot()));
    assertThat(StoredSnapshot.read(store)).isEqualTo(model.snapshot());
  }

  @Test
  void aSnapshotOfAnEarlierReleaseIsRead() {
    assertThat(ReportJson.read("{\"memory\":[]}", UiSnapshot.class).advice()).isEmpty();
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
